//! The frames a host keeps.
//!
//! A frame is what every relation is after one step, on this host. It never changes, and to keep it
//! costs nothing but what has been replaced since. Which frames are kept is the coordinator's
//! decision alone ([`Retention`]): nothing here knows leases.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use stillframe_protocol::{RelationId, Retention, Step};

use crate::circuit::ShardSnapshot;
use crate::row::Codec;

/// What every relation is after a step, on this host.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The step.
    pub(crate) step: Step,
    /// All relations of the circuit that made the step.
    pub(crate) relations: HashMap<RelationId, Relation>,
}

/// What one relation is after a step, on this host.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) codec: Arc<Codec>,
    /// How many leading columns are the key; 0 if there is none.
    pub(crate) key_columns: usize,
    /// By worker of the host.
    pub(crate) shards: Vec<ShardSnapshot>,
}

/// The frames that are kept, and the retention they are kept by.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    kept: BTreeMap<Step, Arc<Frame>>,
    retention: Retention,
}

impl Frames {
    /// Adds the frame of the next step.
    ///
    /// # Panics
    ///
    /// If a step is missing or comes again.
    pub(crate) fn publish(&mut self, frame: Frame) {
        let expected = self.newest().map_or(Step(0), |newest| newest.step.next());
        assert_eq!(frame.step, expected, "steps have no gaps");
        self.kept.insert(frame.step, Arc::new(frame));
    }

    /// Learns what must be kept and returns what need not be, unless it has learned better already.
    /// Frames are returned so that they can be freed without a lock.
    pub(crate) fn retain(&mut self, retention: &Retention) -> Vec<Arc<Frame>> {
        if retention.sequence < self.retention.sequence {
            return Vec::new();
        }
        self.retention = retention.clone();
        let newest = self.newest().map(|frame| frame.step);
        let dropped: Vec<Step> = self
            .kept
            .keys()
            .copied()
            // The newest is what the next frame starts from.
            .filter(|step| !retention.keeps(*step) && Some(*step) != newest)
            .collect();
        dropped.iter().filter_map(|step| self.kept.remove(step)).collect()
    }

    /// The frame of a step, if it is kept.
    pub(crate) fn get(&self, step: Step) -> Option<Arc<Frame>> {
        self.kept.get(&step).cloned()
    }

    /// The frame of the last step.
    pub(crate) fn newest(&self) -> Option<&Arc<Frame>> {
        self.kept.last_key_value().map(|(_, frame)| frame)
    }

    /// The steps whose frames are kept, ascending.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.kept.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(steps: u64) -> Frames {
        let mut frames = Frames::default();
        for step in 0..steps {
            frames.publish(Frame { step: Step(step), relations: HashMap::new() });
        }
        frames
    }

    fn retention(sequence: u64, common: u64, pinned: &[u64]) -> Retention {
        Retention {
            sequence,
            common: Some(Step(common)),
            pinned: pinned.iter().copied().map(Step).collect(),
        }
    }

    fn kept(frames: &Frames) -> Vec<u64> {
        frames.steps().into_iter().map(|step| step.0).collect()
    }

    #[test]
    fn everything_is_kept_until_told_otherwise() {
        let mut frames = frames(4);
        assert!(frames.retain(&Retention::default()).is_empty());
        assert_eq!(kept(&frames), [0, 1, 2, 3]);
    }

    #[test]
    fn pinned_and_common_frames_stay() {
        let mut frames = frames(6);
        let dropped = frames.retain(&retention(1, 3, &[1]));
        assert_eq!(dropped.iter().map(|frame| frame.step.0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(kept(&frames), [1, 3, 4, 5]);
        assert!(frames.get(Step(2)).is_none());
        frames.retain(&retention(2, 5, &[]));
        assert_eq!(kept(&frames), [5]);
    }

    #[test]
    fn stale_retention_is_passed_over() {
        let mut frames = frames(6);
        frames.retain(&retention(5, 2, &[0]));
        frames.retain(&retention(4, 5, &[]));
        assert_eq!(kept(&frames), [0, 2, 3, 4, 5]);
        frames.retain(&retention(5, 2, &[0]));
        assert_eq!(kept(&frames), [0, 2, 3, 4, 5], "the same again is harmless");
    }

    #[test]
    #[should_panic(expected = "steps have no gaps")]
    fn a_missing_step_is_noticed() {
        frames(2).publish(Frame { step: Step(3), relations: HashMap::new() });
    }
}
