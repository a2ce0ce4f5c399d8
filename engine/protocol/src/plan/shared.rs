//! Plans whose parts stand in several places.
//!
//! A plan is a tree in form, but parts of it may be one and the same node in memory, and the view
//! compiler makes much of that. Whatever walks a plan looks at such a part once: as trees, plans may
//! be exponentially larger than they are. In their serialised form nodes stand in a list, each after
//! its inputs, and an input is a reference to a place in the list.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Fingerprint, Plan};
use crate::RelationId;

/// Writes a plan as a list of nodes.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<S: Serializer>(plan: &Arc<Plan>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut nodes = vec![];
    list(plan, &mut nodes, &mut HashMap::new());
    nodes.serialize(serializer)
}

/// Reads a list of nodes as a plan.
///
/// # Errors
///
/// Those of the deserializer, and one for a node that refers to none before it.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Plan>, D::Error> {
    let nodes = Vec::<Plan>::deserialize(deserializer)?;
    let mut plans: Vec<Arc<Plan>> = vec![];
    for node in nodes {
        let mut is_whole = true;
        let plan = node.map_inputs(&mut |input| {
            let place = match input.as_ref() {
                Plan::Reference(place) => usize::try_from(*place).ok(),
                _ => None,
            };
            match place.and_then(|place| plans.get(place)) {
                Some(known) => Arc::clone(known),
                None => {
                    is_whole = false;
                    Arc::clone(input)
                }
            }
        });
        if !is_whole {
            return Err(D::Error::custom("a plan refers to what isn't there"));
        }
        plans.push(Arc::new(plan));
    }
    plans.pop().ok_or_else(|| D::Error::custom("a plan without a node"))
}

/// Adds a plan's nodes to a list; returns the place of the topmost.
fn list(plan: &Arc<Plan>, nodes: &mut Vec<Plan>, known: &mut HashMap<*const Plan, u128>) -> u128 {
    if let Some(place) = known.get(&Arc::as_ptr(plan)) {
        return *place;
    }
    let node = plan.map_inputs(&mut |input| Arc::new(Plan::Reference(list(input, nodes, known))));
    nodes.push(node);
    let place = nodes.len() as u128 - 1;
    known.insert(Arc::as_ptr(plan), place);
    place
}

/// The relations that a plan reads, in the order in which it comes upon them.
pub(super) fn relations(plan: &Plan, seen: &mut HashSet<*const Plan>, found: &mut Vec<RelationId>) {
    if !seen.insert(std::ptr::from_ref::<Plan>(plan)) {
        return;
    }
    if let Plan::Relation { id, .. } = plan {
        found.push(*id);
    }
    plan.inputs().into_iter().for_each(|input| relations(input, seen, found));
}

/// Fingerprints of plans and of all that they consist of.
#[derive(Debug, Default)]
pub struct Fingerprints {
    /// By node. The plans are held, so that no other one takes their place in memory.
    known: HashMap<*const Plan, (Arc<Plan>, Fingerprint)>,
}

impl Fingerprints {
    /// A plan's fingerprint.
    pub fn of(&mut self, plan: &Plan) -> Fingerprint {
        let node = plan.map_inputs(&mut |input| Arc::new(Plan::Reference(self.of_input(input).0)));
        Fingerprint::of(&node.nameless())
    }

    fn of_input(&mut self, plan: &Arc<Plan>) -> Fingerprint {
        if let Some((_, known)) = self.known.get(&Arc::as_ptr(plan)) {
            return *known;
        }
        let fingerprint = self.of(plan);
        self.known.insert(Arc::as_ptr(plan), (Arc::clone(plan), fingerprint));
        fingerprint
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::View;

    /// A union of a union of .. with itself: a tree of 2^60 leaves.
    fn deep() -> Arc<Plan> {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let mut plan = Arc::new(Plan::Relation { id: RelationId(7), schema: Arc::clone(&schema) });
        for _ in 0..60 {
            let inputs = vec![Arc::clone(&plan), plan];
            plan = Arc::new(Plan::UnionAll { inputs, schema: Arc::clone(&schema) });
        }
        plan
    }

    #[test]
    fn a_shared_part_is_looked_at_once() {
        let plan = deep();
        assert_eq!(plan.relations(), [RelationId(7)]);
        let view = View { id: RelationId(8), plan };
        let text = serde_json::to_string(&view).unwrap();
        let read: View = serde_json::from_str(&text).unwrap();
        assert_eq!(read, view);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn sharing_is_no_part_of_what_a_plan_computes() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let leaf = || Arc::new(Plan::Relation { id: RelationId(7), schema: Arc::clone(&schema) });
        let union = |inputs| Plan::UnionAll { inputs, schema: Arc::clone(&schema) };
        let one = leaf();
        let shared = union(vec![Arc::clone(&one), one]);
        let apart = union(vec![leaf(), leaf()]);
        assert_eq!(shared.fingerprint(), apart.fingerprint());
        assert_ne!(shared.fingerprint(), leaf().fingerprint());
    }

    #[test]
    fn what_refers_to_nothing_is_refused() {
        let text = r#"{"id":8,"plan":[{"Distinct":{"input":{"Reference":3}}}]}"#;
        assert!(serde_json::from_str::<View>(text).is_err());
        assert!(serde_json::from_str::<View>(r#"{"id":8,"plan":[]}"#).is_err());
    }
}
