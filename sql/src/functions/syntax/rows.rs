//! Rows like `(a, b)` beside operators, as what PostgreSQL does with their fields.

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, Query, SelectItem, SetExpr, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, UnaryOperator, Value, helpers::attached_token::AttachedToken,
};

use super::bare_select;
use crate::{Error, SqlState, names};

/// The name of a subquery that a row is compared with.
const SIDE: &str = "stillframe row";

/// Rewrites an operator on rows; leaves all else as it is.
pub(super) fn rewrite(expr: &mut Expr) -> Result<(), Error> {
    let rewritten = match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Overlaps, right } => {
            match (fields(left), fields(right)) {
                (Some(left), Some(right)) if left.len() == 2 && right.len() == 2 => {
                    Some(super::calls::overlaps(left.into_iter().chain(right).collect()))
                }
                _ => {
                    let message = "wrong number of parameters on a side of OVERLAPS expression";
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message));
                }
            }
        }
        Expr::BinaryOp { left, op, right } => match (fields(left), fields(right)) {
            (Some(left), Some(right)) => Some(compare(op, &left, &right)?),
            (Some(row), None) => match right.as_ref() {
                Expr::Subquery(subquery) => Some(beside(op, &row, subquery)?),
                _ => None,
            },
            _ => None,
        },
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
            match (fields(left), right.as_ref()) {
                (Some(row), Expr::Subquery(subquery)) => Some(in_subquery(&row, subquery)?),
                _ => None,
            }
        }
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => {
            match (fields(left), right.as_ref()) {
                (Some(row), Expr::Subquery(subquery)) => {
                    Some(negated_if(true, in_subquery(&row, subquery)?))
                }
                _ => None,
            }
        }
        Expr::IsDistinctFrom(left, right) => match (fields(left), fields(right)) {
            (Some(left), Some(right)) => Some(distinct(&left, &right, true)?),
            _ => None,
        },
        Expr::IsNotDistinctFrom(left, right) => match (fields(left), fields(right)) {
            (Some(left), Some(right)) => Some(distinct(&left, &right, false)?),
            _ => None,
        },
        Expr::IsNull(operand) => {
            let null = |field| Expr::IsNull(Box::new(nested(field)));
            fields(operand).map(|fields| all(fields.into_iter().map(null)))
        }
        Expr::IsNotNull(operand) => {
            let null = |field| Expr::IsNotNull(Box::new(nested(field)));
            fields(operand).map(|fields| all(fields.into_iter().map(null)))
        }
        Expr::Between { expr, negated, low, high } => {
            match (fields(expr), fields(low), fields(high)) {
                (Some(row), Some(low), Some(high)) => {
                    let inside = all([
                        compare(&BinaryOperator::GtEq, &row, &low)?,
                        compare(&BinaryOperator::LtEq, &row, &high)?,
                    ]);
                    Some(negated_if(*negated, inside))
                }
                _ => None,
            }
        }
        Expr::InList { expr, list, negated } => match fields(expr) {
            Some(row) => Some(negated_if(*negated, in_list(&row, list)?)),
            None => None,
        },
        Expr::InSubquery { expr, subquery, negated } => match fields(expr) {
            Some(row) => Some(negated_if(*negated, in_subquery(&row, subquery)?)),
            None => None,
        },
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expr = nested(rewritten);
    }
    Ok(())
}

/// `(a, b) [NOT] IN (SELECT ...)` among the conjuncts of WHERE, where what isn't known is as good as
/// false: as an EXISTS that is planned as a join.
pub(super) fn rewrite_conjuncts(expr: &mut Expr) -> Result<(), Error> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            rewrite_conjuncts(left)?;
            rewrite_conjuncts(right)
        }
        Expr::Nested(inner) => rewrite_conjuncts(inner),
        Expr::InSubquery { expr: operand, subquery, negated } => {
            let Some(row) = fields(operand) else { return Ok(()) };
            let (query, columns) = side(subquery, row.len())?;
            let equal = compare(&BinaryOperator::Eq, &row, &columns)?;
            *expr = match negated {
                false => exists(query, equal, false),
                true => exists(query, Expr::IsNotFalse(Box::new(nested(equal))), true),
            };
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The fields of a row.
fn fields(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(fields) => Some(fields.clone()),
        Expr::Nested(inner) => fields(inner).filter(|fields| fields.len() > 1),
        Expr::Function(Function {
            name, args: FunctionArguments::List(list), over: None, ..
        }) if names::function(name) == "row" => {
            let field = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(field)) => Some(field.clone()),
                _ => None,
            };
            list.args.iter().map(field).collect()
        }
        _ => None,
    }
}

fn check(left: &[Expr], right: &[Expr]) -> Result<(), Error> {
    if left.len() == right.len() && !left.is_empty() {
        return Ok(());
    }
    let message = match left.is_empty() || right.is_empty() {
        true => "cannot compare rows of zero length",
        false => "unequal number of entries in row expressions",
    };
    let state = match left.len() == right.len() {
        true => SqlState::FEATURE_NOT_SUPPORTED,
        false => SqlState::SYNTAX_ERROR,
    };
    Err(Error::new(state, message))
}

/// The first fields that differ decide, and NULL if they are not known to.
fn compare(op: &BinaryOperator, left: &[Expr], right: &[Expr]) -> Result<Expr, Error> {
    check(left, right)?;
    let pairs = left.iter().cloned().zip(right.iter().cloned());
    let strict = match op {
        BinaryOperator::Eq => {
            let pairs = pairs.map(|(left, right)| binary(left, BinaryOperator::Eq, right));
            return Ok(all(pairs.collect::<Result<Vec<_>, _>>()?));
        }
        BinaryOperator::NotEq => {
            let pairs = pairs.map(|(left, right)| binary(left, BinaryOperator::NotEq, right));
            return Ok(any(pairs.collect::<Result<Vec<_>, _>>()?));
        }
        BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::Gt | BinaryOperator::GtEq => BinaryOperator::Gt,
        other => return Err(Error::unsupported(format!("the operator {other} on rows"))),
    };
    let mut pairs = pairs.rev();
    let Some((left, right)) = pairs.next() else {
        return Err(Error::internal("a row without fields"));
    };
    let last = binary(left, op.clone(), right)?;
    pairs.try_fold(last, |rest, (left, right)| {
        let decided = binary(left.clone(), strict.clone(), right.clone())?;
        let equal = binary(left, BinaryOperator::Eq, right)?;
        Ok(any([decided, all([equal, rest])]))
    })
}

fn distinct(left: &[Expr], right: &[Expr], is_distinct: bool) -> Result<Expr, Error> {
    check(left, right)?;
    let pairs = left.iter().zip(right).map(|(left, right)| {
        let (left, right) = (Box::new(nested(left.clone())), Box::new(nested(right.clone())));
        match is_distinct {
            true => Expr::IsDistinctFrom(left, right),
            false => Expr::IsNotDistinctFrom(left, right),
        }
    });
    Ok(if is_distinct { any(pairs) } else { all(pairs) })
}

fn in_list(row: &[Expr], list: &[Expr]) -> Result<Expr, Error> {
    let compared = list.iter().map(|other| match fields(other) {
        Some(other) => compare(&BinaryOperator::Eq, row, &other),
        None => Err(Error::unsupported("a row beside something else")),
    });
    Ok(any(compared.collect::<Result<Vec<_>, _>>()?))
}

/// True if a row of the subquery is equal, NULL if one may be, else false.
fn in_subquery(row: &[Expr], subquery: &Query) -> Result<Expr, Error> {
    let (query, columns) = side(subquery, row.len())?;
    let equal = compare(&BinaryOperator::Eq, row, &columns)?;
    let maybe = Expr::IsNull(Box::new(nested(equal.clone())));
    let when = |condition: Expr, result: Value| CaseWhen { condition, result: Expr::value(result) };
    Ok(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            when(exists(query.clone(), equal, false), Value::Boolean(true)),
            when(exists(query, maybe, false), Value::Null),
        ],
        else_result: Some(Box::new(Expr::value(Value::Boolean(false)))),
    })
}

/// A row beside the only row of a subquery.
fn beside(op: &BinaryOperator, row: &[Expr], subquery: &Query) -> Result<Expr, Error> {
    let (relation, columns) = side(subquery, row.len())?;
    let compared = compare(op, row, &columns)?;
    Ok(Expr::Subquery(Box::new(select(compared, relation, None))))
}

/// A subquery as a relation, and its columns.
pub(super) fn side(subquery: &Query, width: usize) -> Result<(TableFactor, Vec<Expr>), Error> {
    let names: Vec<_> = (1..=width).map(|place| names::exact(&format!("c{place}"))).collect();
    let name = names::exact(SIDE);
    let columns =
        names.iter().map(|column| Expr::CompoundIdentifier(vec![name.clone(), column.clone()]));
    let columns = columns.collect();
    let column = |name: &Ident| TableAliasColumnDef { name: name.clone(), data_type: None };
    let alias = TableAlias {
        explicit: true,
        name: name.clone(),
        columns: names.iter().map(column).collect(),
        at: None,
    };
    let factor = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(subquery.clone()),
        alias: Some(alias),
        sample: None,
    };
    Ok((factor, columns))
}

fn exists(relation: TableFactor, condition: Expr, negated: bool) -> Expr {
    let query = select(Expr::value(Value::Boolean(true)), relation, Some(condition));
    Expr::Exists { subquery: Box::new(query), negated }
}

pub(super) fn select(output: Expr, relation: TableFactor, selection: Option<Expr>) -> ast::Query {
    let mut select = bare_select();
    select.projection = vec![SelectItem::UnnamedExpr(output)];
    select.from = vec![TableWithJoins { relation, joins: vec![] }];
    select.selection = selection;
    ast::Query {
        with: None,
        body: Box::new(SetExpr::Select(Box::new(select))),
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

fn all(conditions: impl IntoIterator<Item = Expr>) -> Expr {
    joined(conditions, &BinaryOperator::And)
}

fn any(conditions: impl IntoIterator<Item = Expr>) -> Expr {
    joined(conditions, &BinaryOperator::Or)
}

fn joined(conditions: impl IntoIterator<Item = Expr>, op: &BinaryOperator) -> Expr {
    let joined = conditions.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(nested(left)),
        op: op.clone(),
        right: Box::new(nested(right)),
    });
    joined.unwrap_or_else(|| Expr::value(Value::Boolean(*op == BinaryOperator::And)))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Result<Expr, Error> {
    let mut pair =
        Expr::BinaryOp { left: Box::new(nested(left)), op, right: Box::new(nested(right)) };
    // A field may be a row itself.
    rewrite(&mut pair)?;
    Ok(pair)
}

fn nested(expr: Expr) -> Expr {
    match expr {
        nested @ (Expr::Nested(_) | Expr::Value(_) | Expr::CompoundIdentifier(_)) => nested,
        other => Expr::Nested(Box::new(other)),
    }
}

fn negated_if(negated: bool, expr: Expr) -> Expr {
    match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(expr)) },
        false => expr,
    }
}
