//! How the rows that come out of a recursive term depend on those that went in.

use stillframe_protocol::Plan;

/// What is known of a term or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// It doesn't read the last iteration's rows.
    Constant,
    /// Each row is made of one of the last iteration's, whatever others there are, and of rows that
    /// are given; one row more on either side takes none away. So what is made of two sets of rows
    /// together is what is made of each; with UNION ALL, as often.
    RowByRow,
    /// Anything else.
    Whole,
}

impl Shape {
    /// Of a term, or a part of it, whose rows are united by UNION or by UNION ALL.
    pub(super) fn of(term: &Plan, distinct: bool) -> Self {
        use Shape::{Constant, RowByRow, Whole};
        let of = |plan: &Plan| Self::of(plan, distinct);
        match term {
            Plan::Given { place: 0, .. } => RowByRow,
            Plan::Reference(_)
            | Plan::Relation { .. }
            | Plan::Values { .. }
            | Plan::Given { .. } => Constant,
            Plan::Filter { input, .. }
            | Plan::Project { input, .. }
            | Plan::Unnest { input, .. } => of(input),
            Plan::Join { left, right, .. } => match (of(left), of(right)) {
                (Constant, Constant) => Constant,
                (RowByRow, Constant) | (Constant, RowByRow) => RowByRow,
                _ => Whole,
            },
            Plan::Semijoin { left, right, negated, .. } => match (of(left), of(right), negated) {
                (Constant, Constant, _) => Constant,
                (RowByRow, Constant, false) => RowByRow,
                _ => Whole,
            },
            Plan::UnionAll { inputs, .. } => {
                // What doesn't read the last iteration comes again with each.
                let mut shapes = inputs.iter().map(|input| of(input));
                let first = shapes.next().unwrap_or(Constant);
                if shapes.all(|shape| shape == first) { first } else { Whole }
            }
            Plan::Distinct { input } => match of(input) {
                RowByRow if !distinct => Whole,
                shape => shape,
            },
            Plan::Temporal { .. }
            | Plan::Aggregate { .. }
            | Plan::Partition { .. }
            | Plan::Recursion { .. } => {
                let mut inputs = term.inputs().into_iter();
                if inputs.all(|input| of(input) == Constant) { Constant } else { Whole }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::DataType;

    use super::*;
    use crate::circuit::relation::schema_of;

    #[test]
    fn only_what_is_made_row_by_row_is_maintained_so() {
        let schema = Arc::new(schema_of(&[DataType::Int32]));
        let given = |place| Arc::new(Plan::Given { place, schema: Arc::clone(&schema) });
        let (last, other) = (given(0), given(1));
        let join = |left: &Arc<Plan>, right: &Arc<Plan>| {
            Arc::new(Plan::Join {
                left: Arc::clone(left),
                right: Arc::clone(right),
                on: vec![],
                residual: None,
                schema: Arc::clone(&schema),
            })
        };
        let semijoin = |left: &Arc<Plan>, right: &Arc<Plan>, negated| {
            Arc::new(Plan::Semijoin {
                left: Arc::clone(left),
                right: Arc::clone(right),
                on: vec![],
                negated,
            })
        };
        let union = |inputs: &[&Arc<Plan>]| {
            let inputs = inputs.iter().map(|input| Arc::clone(input)).collect();
            Arc::new(Plan::UnionAll { inputs, schema: Arc::clone(&schema) })
        };
        let distinct = |input: &Arc<Plan>| Arc::new(Plan::Distinct { input: Arc::clone(input) });
        let count = |input: &Arc<Plan>| {
            Arc::new(Plan::Aggregate {
                input: Arc::clone(input),
                groups: vec![0],
                aggregates: vec![],
                schema: Arc::clone(&schema),
            })
        };
        for (term, with_all, with_distinct) in [
            (Arc::clone(&last), Shape::RowByRow, Shape::RowByRow),
            (Arc::clone(&other), Shape::Constant, Shape::Constant),
            (join(&last, &other), Shape::RowByRow, Shape::RowByRow),
            (join(&other, &last), Shape::RowByRow, Shape::RowByRow),
            (join(&last, &last), Shape::Whole, Shape::Whole),
            (join(&other, &count(&other)), Shape::Constant, Shape::Constant),
            (semijoin(&last, &other, false), Shape::RowByRow, Shape::RowByRow),
            (semijoin(&last, &other, true), Shape::Whole, Shape::Whole),
            (semijoin(&other, &last, false), Shape::Whole, Shape::Whole),
            (union(&[&last, &join(&last, &other)]), Shape::RowByRow, Shape::RowByRow),
            (union(&[&last, &other]), Shape::Whole, Shape::Whole),
            (union(&[&other, &other]), Shape::Constant, Shape::Constant),
            (distinct(&last), Shape::Whole, Shape::RowByRow),
            (distinct(&other), Shape::Constant, Shape::Constant),
            (count(&last), Shape::Whole, Shape::Whole),
            (join(&last, &count(&other)), Shape::RowByRow, Shape::RowByRow),
        ] {
            assert_eq!(Shape::of(&term, false), with_all, "{term:?}");
            assert_eq!(Shape::of(&term, true), with_distinct, "{term:?}");
        }
    }
}
