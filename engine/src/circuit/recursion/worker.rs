//! The thread that computes a recursion, for which whoever asks waits.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use dbsp::ZWeight;
use stillframe_protocol::RowError;

use super::apart::run_apart;
use super::fixpoint::Fixpoint;
use super::iteration::Iteration;
use super::limits::{Endless, Limits};
use super::stored::Change;
use super::term::{Term, Weights};
use super::{Definition, Shape};

/// A recursion that is being computed.
pub(super) struct Worker {
    orders: Sender<(Change, Limits)>,
    answers: Receiver<Answer>,
}

/// What comes of a change.
pub(super) struct Answer {
    /// How the rows that there are have changed; where there is no end, that there are none.
    pub(super) delta: Weights,
    /// The errors that there are now.
    pub(super) errors: Result<BTreeMap<RowError, ZWeight>, Endless>,
}

impl Worker {
    /// Starts one that has no rows.
    pub(super) fn start(definition: &Definition) -> Self {
        let (orders, incoming) = channel();
        let (outgoing, answers) = channel();
        let definition = definition.clone();
        // It ends when the orders do.
        run_apart(move || run(&definition, &incoming, &outgoing));
        Self { orders, answers }
    }

    /// Follows a change of the inputs. After one without an end it follows no other.
    pub(super) fn change(&self, change: Change, limits: Limits) -> Answer {
        let answer =
            self.orders.send((change, limits)).ok().and_then(|()| self.answers.recv().ok());
        answer.expect("a recursion's thread lives as long as it is asked")
    }
}

fn run(definition: &Definition, orders: &Receiver<(Change, Limits)>, answers: &Sender<Answer>) {
    let (mut term, _) = Term::build(definition).expect("the term was built before");
    let mut method = Method::of(definition.shape);
    for (change, limits) in orders {
        let mut delta = Weights::default();
        let outcome = method.change(&mut term, &change, definition.distinct, &limits, &mut delta);
        if outcome.is_err() {
            // What there was before is gone.
            for (row, weight) in method.result() {
                *delta.entry(row.clone()).or_default() -= weight;
            }
        }
        delta.retain(|_, weight| *weight != 0);
        let errors = outcome.map(|()| method.errors(&term));
        let is_over = errors.is_err();
        if answers.send(Answer { delta, errors }).is_err() || is_over {
            return;
        }
    }
}

/// How the recursion is computed.
enum Method {
    RowByRow(Fixpoint),
    Whole(Iteration),
}

impl Method {
    fn of(shape: Shape) -> Self {
        match shape {
            Shape::RowByRow => Self::RowByRow(Fixpoint::default()),
            Shape::Constant | Shape::Whole => Self::Whole(Iteration::default()),
        }
    }

    fn change(
        &mut self,
        term: &mut Term,
        change: &Change,
        distinct: bool,
        limits: &Limits,
        delta: &mut Weights,
    ) -> Result<(), Endless> {
        match self {
            Self::RowByRow(state) => state.change(term, change, distinct, limits, delta),
            Self::Whole(state) => state.change(term, change, distinct, limits, delta),
        }
    }

    fn result(&self) -> &Weights {
        match self {
            Self::RowByRow(state) => state.result(),
            Self::Whole(state) => state.result(),
        }
    }

    fn errors(&self, term: &Term) -> BTreeMap<RowError, ZWeight> {
        match self {
            Self::RowByRow(_) => term.errors(),
            Self::Whole(state) => state.errors().clone(),
        }
    }
}
