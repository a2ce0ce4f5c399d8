//! Subqueries.
//!
//! Each stands as an [`Apply`] below what asks for it: its outcome is a column beside the rows around
//! it. The subquery is compiled once for all of them ([`Around`](super::around::Around)), and joined
//! with them on the values that it takes.

mod compared;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable, Filter};
use stillframe_protocol::{Aggregate, AggregateFunction, Expression, Literal, Plan};

use super::around::Around;
use super::equal::{Key, joined, same, with_keys};
use super::{Compiler, Rows, build, optimize};
use crate::Error;
use crate::functions::{ONLY_ROW_OF, is_single};
use crate::query::{Apply, Kind, classify};

/// Which rows around a subquery are wanted: those for which its outcome is this, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    True,
    False,
}

/// The rows around a subquery, and the subquery's own.
struct Asked {
    /// Their columns, the values that they depend on themselves, and what the subquery needs beyond.
    plan: Arc<Plan>,
    /// How many columns of their own they have.
    width: usize,
    /// How many values from further around.
    values: usize,
    /// The columns that tell which of the subquery's rows belong to a row.
    keys: Vec<usize>,
    /// The subquery's rows; the keys' values stand after its columns.
    answer: Rows,
}

impl Asked {
    /// What ties the subquery's rows to those around.
    fn on(&self) -> Vec<stillframe_protocol::JoinKey> {
        let first = self.answer.width;
        same(self.keys.iter().copied(), first..first + self.keys.len())
    }

    fn columns(&self) -> usize {
        self.plan.schema().fields().len()
    }

    /// The rows around, each with an outcome that is computed of a plan that begins with their
    /// columns.
    fn outcome(&self, plan: Arc<Plan>, outcomes: Vec<build::Column>) -> Arc<Plan> {
        let own = build::columns(&self.plan, 0..self.width);
        let values = build::columns(&self.plan, self.width..self.width + self.values);
        build::project(plan, own.chain(outcomes).chain(values).collect())
    }
}

impl Compiler<'_> {
    /// Rows with the outcome of a subquery.
    pub(super) fn apply(&self, apply: &Apply) -> Result<Rows, Error> {
        let input = self.rows(&apply.input)?;
        self.applied(apply, input, Wanted::All)
    }

    /// Those of the rows with the outcome of a subquery for which all conditions are true. What
    /// doesn't read the outcome is asked before.
    pub(super) fn filtered_apply(
        &self,
        apply: &Apply,
        conditions: &[&Expr],
    ) -> Result<Rows, Error> {
        if matches!(apply.kind, Kind::Lateral { .. }) {
            let rows = self.apply(apply)?;
            return self.filtered(rows, &apply.schema, conditions);
        }
        let (qualifier, field) = apply.schema.qualified_field(apply.schema.fields().len() - 1);
        let outcome = Column::from((qualifier, field));
        let (above, below): (Vec<_>, Vec<_>) =
            conditions.iter().copied().partition(|c| c.column_refs().contains(&outcome));
        let input = match conjunction(below.into_iter().cloned()) {
            None => self.rows(&apply.input)?,
            Some(below) => {
                let input = Arc::new(apply.input.clone());
                self.filter(&Filter::try_new(below, input).map_err(classify)?)?
            }
        };
        let is_condition = matches!(apply.kind, Kind::Exists | Kind::Compared { .. });
        let is_outcome = |expr: &Expr| matches!(expr, Expr::Column(c) if *c == outcome);
        let mut wanted = Wanted::All;
        let mut rest = vec![];
        for condition in above {
            match condition {
                expr if is_condition && wanted != Wanted::False && is_outcome(expr) => {
                    wanted = Wanted::True;
                }
                Expr::Not(expr) if is_condition && wanted != Wanted::True && is_outcome(expr) => {
                    wanted = Wanted::False;
                }
                other => rest.push(other),
            }
        }
        let rows = self.applied(apply, input, wanted)?;
        self.filtered(rows, &apply.schema, &rest)
    }

    fn applied(&self, apply: &Apply, input: Rows, wanted: Wanted) -> Result<Rows, Error> {
        let (asked, operand) = self.asked(apply, input)?;
        let depends = asked.values > 0;
        let (plan, width) = match &apply.kind {
            Kind::Scalar => (scalar(apply, &asked)?, asked.width + 1),
            Kind::Exists => (exists(&asked, wanted), asked.width + 1),
            Kind::Compared { op, quantifier } => {
                let Some(operand) = operand else {
                    return Err(Error::internal("a comparison without an operand"));
                };
                let nullable = compared::Nullable {
                    operand: apply
                        .expressions
                        .last()
                        .is_none_or(|e| e.nullable(apply.input.schema()).unwrap_or(true)),
                    value: apply.subquery.schema().field(0).is_nullable(),
                };
                let plan = compared::compared(&asked, operand, *op, *quantifier, wanted, nullable)?;
                (plan, asked.width + 1)
            }
            Kind::Lateral { keeps } => (lateral(&asked, *keeps), asked.width + asked.answer.width),
        };
        Ok(Rows { plan, width, depends })
    }

    /// Compiles a subquery for the rows around it.
    fn asked(&self, apply: &Apply, mut input: Rows) -> Result<(Asked, Option<usize>), Error> {
        let schema = apply.input.schema();
        let is_further = self.around.is_read_in(&apply.subquery)?;
        if is_further || apply.expressions.iter().any(|expr| self.around.is_read_by(expr)) {
            input = self.depending(input)?;
        }
        let values = if input.depends { self.around.columns.len() } else { 0 };
        let value = apply.subquery.schema().fields().first();
        let expressions = apply.expressions.iter().enumerate().map(|(place, expr)| {
            let found = expr.get_type(schema).map_err(classify)?;
            // The operand of a comparison is compared with the subquery's value.
            let stored = match value {
                Some(value) if place >= apply.outer.len() => build::stored_type(value.data_type())?,
                _ => build::stored_type(&found)?,
            };
            Ok(Key { expression: self.convert(expr, schema, &input)?, found, stored })
        });
        let expressions = expressions.collect::<Result<Vec<_>, Error>>()?;
        let (plan, mut keys) = with_keys(input.plan, expressions);
        let operand = keys.split_off(apply.outer.len()).pop();
        let mut columns = apply.outer.clone();
        if is_further && input.depends {
            columns.extend(self.around.columns.iter().cloned());
            keys.extend(input.width..input.width + values);
        }
        build::keys(&plan, keys.iter().copied(), "a correlated subquery")?;
        let domain = (!keys.is_empty()).then(|| {
            let input = build::pick(Arc::clone(&plan), &keys);
            Arc::new(Plan::Distinct { input })
        });
        let around = Around { columns, domain };
        let subquery = optimize::optimize_subquery(self.context.state(), &apply.subquery)?;
        let answer = Compiler { around: &around, ..*self }.rows(&subquery)?;
        if !answer.depends {
            keys.clear();
        }
        Ok((Asked { plan, width: input.width, values, keys, answer }, operand))
    }
}

/// Rows beside the only row of a subquery.
fn scalar(apply: &Apply, asked: &Asked) -> Result<Arc<Plan>, Error> {
    let field = apply.schema.field(apply.schema.fields().len() - 1);
    let wanted = build::stored_type(field.data_type())?;
    let outcome = |expression: Expression, found: &DataType| {
        build::Column::new(field.name(), build::cast(expression, found, &wanted), wanted.clone())
    };
    let answer = &asked.answer;
    let found = answer.plan.schema().field(0).data_type().clone();
    let columns = asked.columns();
    let inner = |right: &Arc<Plan>, on| {
        Arc::new(Plan::Join {
            left: Arc::clone(&asked.plan),
            right: Arc::clone(right),
            on,
            residual: None,
            schema: joined(&asked.plan, right),
        })
    };
    if is_single(&apply.subquery) {
        let value = outcome(Expression::Column(columns), &found);
        return Ok(asked.outcome(inner(&answer.plan, asked.on()), vec![value]));
    }
    let keys = asked.keys.len();
    let counted = build::columns(&answer.plan, answer.width..answer.width + keys);
    let types = counted.map(|column| column.data_type().clone());
    let types: Vec<_> = types.chain([DataType::Int64, found.clone()]).collect();
    let counted = Arc::new(Plan::Aggregate {
        input: Arc::clone(&answer.plan),
        groups: (answer.width..answer.width + keys).collect(),
        aggregates: vec![
            Aggregate { function: AggregateFunction::Count, argument: None },
            Aggregate { function: AggregateFunction::Max, argument: Some(0) },
        ],
        schema: build::schema(types.iter().map(|data_type| ("c", data_type.clone()))),
    });
    let on = same(asked.keys.iter().copied(), 0..keys);
    let only = Expression::Call {
        function: ONLY_ROW_OF.to_owned(),
        arguments: vec![Expression::Column(columns + keys), Expression::Column(columns + keys + 1)],
        returns: found.clone(),
    };
    let matched = asked.outcome(inner(&counted, on.clone()), vec![outcome(only, &found)]);
    if keys == 0 {
        // There is always one group.
        return Ok(matched);
    }
    let unmatched = Arc::new(Plan::Semijoin {
        left: Arc::clone(&asked.plan),
        right: counted,
        on,
        negated: true,
    });
    let null = Expression::Literal(Literal::Null(found.clone()));
    let unmatched = asked.outcome(unmatched, vec![outcome(null, &found)]);
    Ok(union(vec![matched, unmatched]))
}

/// Rows beside whether a subquery has a row.
fn exists(asked: &Asked, wanted: Wanted) -> Arc<Plan> {
    let part = |negated: bool| {
        let rows = Arc::new(Plan::Semijoin {
            left: Arc::clone(&asked.plan),
            right: Arc::clone(&asked.answer.plan),
            on: asked.on(),
            negated,
        });
        asked.outcome(rows, vec![boolean(Some(!negated))])
    };
    match wanted {
        Wanted::True => part(false),
        Wanted::False => part(true),
        Wanted::All => union(vec![part(false), part(true)]),
    }
}

/// Rows beside each row of a subquery.
fn lateral(asked: &Asked, keeps: bool) -> Arc<Plan> {
    let answer = &asked.answer;
    let columns = asked.columns();
    let matched = Arc::new(Plan::Join {
        left: Arc::clone(&asked.plan),
        right: Arc::clone(&answer.plan),
        on: asked.on(),
        residual: None,
        schema: joined(&asked.plan, &answer.plan),
    });
    let beside = build::columns(&answer.plan, 0..answer.width);
    let matched = asked.outcome(matched, beside.map(|column| column.moved(columns)).collect());
    if !keeps {
        return matched;
    }
    let unmatched = Arc::new(Plan::Semijoin {
        left: Arc::clone(&asked.plan),
        right: Arc::clone(&answer.plan),
        on: asked.on(),
        negated: true,
    });
    let nulls = build::columns(&answer.plan, 0..answer.width).map(build::Column::null);
    union(vec![matched, asked.outcome(unmatched, nulls.collect())])
}

fn boolean(value: Option<bool>) -> build::Column {
    let literal = match value {
        Some(value) => Literal::Boolean(value),
        None => Literal::Null(DataType::Boolean),
    };
    build::Column::new("outcome", Expression::Literal(literal), DataType::Boolean)
}

/// All rows of plans with the same columns.
fn union(inputs: Vec<Arc<Plan>>) -> Arc<Plan> {
    let schema = inputs[0].schema();
    Arc::new(Plan::UnionAll { inputs, schema })
}
