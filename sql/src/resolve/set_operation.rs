//! INTERSECT ALL and EXCEPT ALL, which DataFusion computes wrongly, in terms of what it computes
//! rightly: equal rows of a side are numbered, which makes all rows distinct.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArgumentList, FunctionArguments, GroupByExpr, Ident, ObjectName, Query,
    Select, SelectFlavor, SelectItem, SetExpr, SetOperator, SetQuantifier, Table, TableAlias,
    TableFactor, TableWithJoins, WildcardAdditionalOptions, WindowSpec, WindowType,
    helpers::attached_token::AttachedToken,
};

use super::{OutputName, internal_alias, resolved};

/// The name of a relation that only such a rewritten query has.
const SIDE: &str = "stillframe side";
/// The name of the column with the numbers.
const NUMBER: &str = "stillframe number";

/// Rewrites a resolved INTERSECT ALL or EXCEPT ALL; leaves all else as it is.
pub(super) fn rewrite(body: &mut SetExpr, left_names: &[OutputName], right_names: &[OutputName]) {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return };
    if *set_quantifier != SetQuantifier::All || *op == SetOperator::Union {
        return;
    }
    let take = |side: &mut SetExpr| std::mem::replace(side, empty());
    let numbered = SetExpr::SetOperation {
        op: *op,
        set_quantifier: SetQuantifier::None,
        left: Box::new(numbered(take(left), left_names)),
        right: Box::new(numbered(take(right), right_names)),
    };
    let columns = left_names.iter().map(|name| column(&name.internal));
    *body = select(columns.collect(), derived(numbered));
}

/// TABLE t, as SELECT * FROM t.
pub(super) fn table(table: &Table) -> Query {
    let part = |name: &Option<String>| name.as_ref().map(|name| Ident::new(name.clone()));
    let parts = [part(&table.schema_name), part(&table.table_name)].into_iter().flatten();
    let relation = TableFactor::Table {
        name: ObjectName::from(parts.collect::<Vec<_>>()),
        alias: None,
        args: None,
        with_hints: vec![],
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    };
    query(select(vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())], relation))
}

fn numbered(side: SetExpr, names: &[OutputName]) -> SetExpr {
    let qualified = |name: &str| Expr::CompoundIdentifier(vec![resolved(SIDE), resolved(name)]);
    let number = Expr::Function(Function {
        name: ObjectName::from(vec![resolved("row_number")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![],
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: Some(WindowType::WindowSpec(WindowSpec {
            window_name: None,
            partition_by: names.iter().map(|name| qualified(&name.internal)).collect(),
            order_by: vec![],
            window_frame: None,
        })),
        within_group: vec![],
    });
    let numbered = SelectItem::ExprWithAlias { expr: number, alias: resolved(NUMBER) };
    let columns = names.iter().map(|name| column(&name.internal)).chain([numbered]);
    select(columns.collect(), derived(side))
}

fn column(name: &str) -> SelectItem {
    let expr = Expr::CompoundIdentifier(vec![resolved(SIDE), resolved(name)]);
    SelectItem::ExprWithAlias { expr, alias: resolved(name) }
}

fn derived(body: SetExpr) -> TableFactor {
    let alias: TableAlias = internal_alias(SIDE);
    TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query(body)),
        alias: Some(alias),
        sample: None,
    }
}

fn empty() -> SetExpr {
    SetExpr::Select(Box::new(bare(vec![], vec![])))
}

fn select(projection: Vec<SelectItem>, relation: TableFactor) -> SetExpr {
    let from = vec![TableWithJoins { relation, joins: vec![] }];
    SetExpr::Select(Box::new(bare(projection, from)))
}

fn bare(projection: Vec<SelectItem>, from: Vec<TableWithJoins>) -> Select {
    Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: vec![],
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from,
        lateral_views: vec![],
        prewhere: None,
        selection: None,
        connect_by: vec![],
        group_by: GroupByExpr::Expressions(vec![], vec![]),
        cluster_by: vec![],
        distribute_by: vec![],
        sort_by: vec![],
        having: None,
        named_window: vec![],
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    }
}

fn query(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: vec![],
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: vec![],
    }
}
