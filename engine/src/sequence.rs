//! Which command comes next.
//!
//! Pure: decides what is to be done with a command that arrives, whoever sends it however often.

use std::collections::VecDeque;
use std::sync::Arc;

use stillframe_protocol::{Action, Command, CommandNumber, Step};
use thiserror::Error;

/// How many executed commands are remembered, to notice one that has changed.
const REMEMBERED: usize = 64;

/// The commands of one epoch, as this host has seen them.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// The newest last.
    executed: VecDeque<Arc<Command>>,
    running: Option<Arc<Command>>,
    next: CommandNumber,
}

/// What is to be done with a command that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Execute it now.
    Start,
    /// It is being executed.
    Running,
    /// It was executed before.
    Executed,
}

/// A command that can't be part of the sequence: a bug of whoever sent it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum OutOfSequence {
    #[error("command {number} was sent before {expected} was done")]
    Gap { number: CommandNumber, expected: CommandNumber },
    #[error("command {0} has changed since it was sent first")]
    Changed(CommandNumber),
    #[error("the first command of an epoch must be a replacement that makes step 0")]
    NoCircuit,
    #[error("command {number} makes step {step} instead of {expected}")]
    WrongStep { number: CommandNumber, step: Step, expected: Step },
}

impl Sequence {
    /// Decides about a command, and takes note that it is running if it is to be started.
    pub(crate) fn admit(&mut self, command: &Arc<Command>) -> Result<Admission, OutOfSequence> {
        let number = command.number;
        if let Some(running) = &self.running {
            return match number.cmp(&running.number) {
                std::cmp::Ordering::Less => self.executed(command),
                std::cmp::Ordering::Equal => same(running, command, Admission::Running),
                std::cmp::Ordering::Greater => {
                    Err(OutOfSequence::Gap { number, expected: running.number })
                }
            };
        }
        if number < self.next {
            return self.executed(command);
        }
        if number > self.next {
            return Err(OutOfSequence::Gap { number, expected: self.next });
        }
        self.follows(command)?;
        self.running = Some(Arc::clone(command));
        Ok(Admission::Start)
    }

    /// Whether a command is being executed.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether any command was started.
    pub(crate) fn has_begun(&self) -> bool {
        self.running.is_some() || !self.executed.is_empty()
    }

    /// The running command is done.
    pub(crate) fn done(&mut self) {
        let command = self.running.take().expect("only a running command can be done");
        self.next = command.number.next();
        self.executed.push_back(command);
        if self.executed.len() > REMEMBERED {
            self.executed.pop_front();
        }
    }

    /// The running command was refused and has changed nothing: it may be sent again.
    pub(crate) fn refused(&mut self) {
        self.running = None;
    }

    fn executed(&self, command: &Arc<Command>) -> Result<Admission, OutOfSequence> {
        match self.executed.iter().find(|executed| executed.number == command.number) {
            Some(executed) => same(executed, command, Admission::Executed),
            None => Ok(Admission::Executed),
        }
    }

    /// The first command makes step 0 of a circuit, and each later one the next step.
    fn follows(&self, command: &Command) -> Result<(), OutOfSequence> {
        let step = command.action.step();
        match self.executed.back() {
            None if step == Step(0) && matches!(command.action, Action::Replace { .. }) => Ok(()),
            None => Err(OutOfSequence::NoCircuit),
            Some(last) => {
                let newest = last.action.step();
                let makes_step = command.action.makes_step();
                let expected = if makes_step { newest.next() } else { newest };
                let number = command.number;
                (step == expected).then_some(()).ok_or(OutOfSequence::WrongStep {
                    number,
                    step,
                    expected,
                })
            }
        }
    }
}

fn same(
    known: &Arc<Command>,
    command: &Arc<Command>,
    admission: Admission,
) -> Result<Admission, OutOfSequence> {
    // The same allocation is the same command, without a look at a whole program.
    if Arc::ptr_eq(known, command) || known == command {
        Ok(admission)
    } else {
        Err(OutOfSequence::Changed(command.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stillframe_protocol::{Epoch, Generation, Program, Retention};

    fn replace(number: u64, step: u64) -> Arc<Command> {
        command(
            number,
            Action::Replace {
                is_hidden: false,
                step: Step(step),
                clock_us: 0,
                generation: Generation(1),
                program: Arc::new(Program::default()),
                exchange: vec![],
            },
        )
    }

    fn advance(number: u64, step: u64) -> Arc<Command> {
        command(number, Action::Advance { step: Step(step), clock_us: 0, transactions: vec![] })
    }

    fn command(number: u64, action: Action) -> Arc<Command> {
        Arc::new(Command {
            epoch: Epoch(1),
            number: CommandNumber(number),
            retention: Retention::default(),
            action,
        })
    }

    fn after(commands: &[Arc<Command>]) -> Sequence {
        let mut sequence = Sequence::default();
        for command in commands {
            assert_eq!(sequence.admit(command), Ok(Admission::Start));
            sequence.done();
        }
        sequence
    }

    #[test]
    fn a_command_is_started_once() {
        let mut sequence = after(&[replace(0, 0)]);
        assert_eq!(sequence.admit(&advance(1, 1)), Ok(Admission::Start));
        assert_eq!(sequence.admit(&advance(1, 1)), Ok(Admission::Running));
        assert_eq!(sequence.admit(&replace(0, 0)), Ok(Admission::Executed));
        sequence.done();
        assert_eq!(sequence.admit(&advance(1, 1)), Ok(Admission::Executed));
    }

    #[test]
    fn a_command_never_changes() {
        let mut sequence = after(&[replace(0, 0), advance(1, 1)]);
        assert_eq!(sequence.admit(&advance(0, 0)), Err(OutOfSequence::Changed(CommandNumber(0))));
        assert_eq!(sequence.admit(&advance(2, 2)), Ok(Admission::Start));
        assert_eq!(sequence.admit(&replace(2, 2)), Err(OutOfSequence::Changed(CommandNumber(2))));
    }

    #[test]
    fn nothing_is_left_out() {
        let mut sequence = after(&[replace(0, 0)]);
        let gap = |number, expected| {
            Err(OutOfSequence::Gap {
                number: CommandNumber(number),
                expected: CommandNumber(expected),
            })
        };
        assert_eq!(sequence.admit(&advance(2, 2)), gap(2, 1));
        assert_eq!(sequence.admit(&advance(1, 1)), Ok(Admission::Start));
        assert_eq!(sequence.admit(&advance(2, 2)), gap(2, 1));
        sequence.done();
        assert!(matches!(sequence.admit(&advance(2, 3)), Err(OutOfSequence::WrongStep { .. })));
    }

    #[test]
    fn an_epoch_begins_with_a_circuit() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.admit(&advance(0, 0)), Err(OutOfSequence::NoCircuit));
        assert_eq!(sequence.admit(&replace(0, 1)), Err(OutOfSequence::NoCircuit));
        assert_eq!(sequence.admit(&replace(0, 0)), Ok(Admission::Start));
    }

    #[test]
    fn a_refused_command_may_come_again() {
        let mut sequence = after(&[replace(0, 0)]);
        assert_eq!(sequence.admit(&replace(1, 1)), Ok(Admission::Start));
        sequence.refused();
        assert_eq!(sequence.admit(&replace(1, 1)), Ok(Admission::Start));
    }

    #[test]
    fn memory_is_bounded() {
        let mut commands = vec![replace(0, 0)];
        commands.extend((1..200).map(|number| advance(number, number)));
        let mut sequence = after(&commands);
        assert_eq!(sequence.executed.len(), REMEMBERED);
        assert_eq!(sequence.admit(&commands[3]), Ok(Admission::Executed));
    }
}
