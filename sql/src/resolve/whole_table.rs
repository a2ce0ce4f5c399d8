//! TABLE t, as SELECT * FROM t.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    GroupByExpr, Ident, ObjectName, Query, Select, SelectFlavor, SelectItem, SetExpr, Table,
    TableFactor, TableWithJoins, WildcardAdditionalOptions,
};

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

/// SELECT of expressions alone.
pub(super) fn of_nothing(projection: Vec<SelectItem>) -> Query {
    query(SetExpr::Select(Box::new(bare(projection, vec![]))))
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
