//! The machine against simulated hosts and clients, on virtual time, by a seed.
//!
//! Messages are late, lost, doubled and out of order, hosts are slow, the coordinator stands still,
//! the clock on the wall goes wrong, clients disappear in the middle of anything. In most worlds
//! hosts are processes that register, and they and the coordinator are killed and start again, or
//! stand still. Then all goes well, and everything must come to its end. A [`checker`] that shares no code with the machine
//! judges what clients see, what hosts are told, and what is left over.
//!
//! To see that the checker sees, machines with one rule broken ([`Defect`]) must be caught.
//!
//! `STILLFRAME_SIMULATION_SEEDS=10000 cargo test` runs as many seeds; a failing one is named, and
//! `STILLFRAME_SIMULATION_SEED=7` runs it alone.

mod bank;
mod checker;
mod clients;
mod host;
mod session;
mod wires;
mod world;

use std::collections::BTreeMap;
use std::env;

use self::world::{Summary, World};
use crate::machine::Defect;

/// So many seeds are run if nobody says otherwise.
const SEEDS: u64 = 500;
/// A broken machine must be caught within so many seeds.
const CANARY_SEEDS: u64 = 500;

fn run(seed: u64, defect: Defect) -> Result<Summary, String> {
    World::new(seed, defect).run()
}

fn number_of(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|value| value.parse().expect("the variable holds a number"))
}

#[test]
fn every_promise_is_kept() {
    let seeds = match number_of("STILLFRAME_SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_of("STILLFRAME_SIMULATION_SEEDS").unwrap_or(SEEDS),
    };
    let (mut steps, mut tally) = (0, BTreeMap::new());
    for seed in seeds.clone() {
        let summary =
            run(seed, Defect::None).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        steps += summary.steps;
        for (what, count) in summary.tally {
            *tally.entry(what).or_insert(0) += count;
        }
    }
    println!("{} seeds, {steps} steps: {tally:#?}", seeds.end - seeds.start);
    if seeds.end - seeds.start >= SEEDS {
        assert_everything_happens(steps, &tally);
    }
}

/// A simulation in which nothing happens proves nothing.
fn assert_everything_happens(steps: u64, tally: &BTreeMap<&'static str, u64>) {
    let least = [
        ("frames read", 50 * SEEDS),
        ("commits", 20 * SEEDS),
        ("reservations changed", 5 * SEEDS),
        ("replacements sent", SEEDS),
        ("online replacements sent", SEEDS),
        ("pumps sent", 3 * SEEDS),
        ("cutovers sent", SEEDS / 2),
        ("leases", 50 * SEEDS),
        ("leases gone", 10),
        ("frames gone", 10),
        ("waits given up", 100),
        ("deadlocks", 100),
        ("lock timeouts", 100),
        ("changes refused", 100),
        ("transactions refused", 10),
        ("failures", 10),
        ("epochs", SEEDS * 3 / 2),
        ("coordinators lost", 50),
        ("not ready", 100),
        ("outcomes unknown", 50),
    ];
    assert!(steps > 20 * SEEDS, "{steps} steps");
    for (what, least) in least {
        let count = tally.get(what).copied().unwrap_or_default();
        assert!(count >= least, "{what}: {count}, should be {least}");
    }
}

#[test]
fn a_seed_makes_one_world() {
    for seed in 0..5 {
        assert_eq!(run(seed, Defect::None), run(seed, Defect::None));
    }
}

/// Each broken rule, and what the checker says of it.
#[test]
fn canaries_are_caught() {
    let canaries = [
        (Defect::GrantsAhead, &["is granted on step"][..]),
        (Defect::TrustsFirstReport, &["all hosts have made"]),
        (Defect::DropsPins, &["drops step"]),
        (Defect::NeverExpires, &["nobody holds a lease"]),
        (Defect::TrustsClock, &["was renewed in time and is gone"]),
        (Defect::ForgetsRenewals, &["lease"]),
        (Defect::AnswersEarly, &["is acknowledged at step"]),
        (Defect::ReleasesEarly, &["changed at step", "gets", "is replaced as"]),
        (Defect::ForgetsHistory, &["is replaced as"]),
        (Defect::TrimsTooMuch, &["is replaced as"]),
        (Defect::NeverForgets, &["left over"]),
        (Defect::ForgetsKeys, &["is replaced as", "are swept as"]),
        (Defect::Overtakes, &["overtakes"]),
        (Defect::SharesExclusively, &["gets"]),
        (Defect::IgnoresDeadlocks, &["no progress"]),
        (Defect::MergesBlindly, &["since step"]),
        (Defect::ShowsCatalogEarly, &["its catalog shows"]),
        (Defect::CommitsTwice, &["entered", "never answered"]),
        (Defect::AbortsCommitted, &["gets", "is replaced as"]),
        (Defect::FollowsWallClock, &["goes back"]),
        (Defect::KeepsPlace, &["no progress"]),
        (Defect::ForgetsEpochs, &["enters step", "of epoch"]),
        (Defect::DeniesCommits, &["is said to have no effect"]),
        (Defect::ReusesEpoch, &["begins where"]),
        (Defect::TakesUsedHosts, &["is used, and taken"]),
        (Defect::SwapsHosts, &["isn't part of epoch", "and then", "is granted in epoch"]),
        (Defect::RetiresNobody, &["no progress"]),
        (Defect::BeginsEarly, &["places in epoch"]),
        (Defect::ForgetsParked, &["no progress", "overtakes"]),
        (Defect::CutsOverEarly, &["hasn't filled all"]),
        (Defect::ShowsUnfilled, &["its catalog shows"]),
        (Defect::StarvesPumps, &["have their turn", "is behind"]),
        (Defect::StarvesSteps, &["waits for"]),
        (Defect::IgnoresBacklog, &["is behind"]),
        (Defect::LosesRefusal, &["has nothing to fill"]),
        (Defect::FillsTwice, &["is filling, and is sent"]),
        (Defect::DropsOnline, &["is taken away while"]),
        (Defect::FillsForever, &["no progress"]),
    ];
    for (defect, signs) in canaries {
        let caught = (0..CANARY_SEEDS)
            .find_map(|seed| run(seed, defect).err().map(|violation| (seed, violation)));
        let (seed, violation) = caught.unwrap_or_else(|| panic!("{defect:?} was not noticed"));
        println!("{defect:?}, seed {seed}: {violation}");
        let expected = signs.iter().any(|sign| violation.contains(sign));
        assert!(expected, "{defect:?} was noticed as: {violation}");
    }
}
