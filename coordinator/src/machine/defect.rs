//! Machines with one rule broken, to see that the simulator's checker notices.

/// The rule that a machine breaks. A real one breaks none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Defect {
    /// No rule.
    #[default]
    None,
    /// Leases are granted on the step under way.
    GrantsAhead,
    /// A step counts as common when the first host has made it.
    TrustsFirstReport,
    /// Hosts aren't told which steps are pinned.
    DropsPins,
    /// Leases never end by themselves.
    NeverExpires,
    /// A gap in the coordinator's clock counts as time.
    TrustsClock,
    /// Renewals are answered but don't prolong.
    ForgetsRenewals,
    /// Commits are answered when their step is sent.
    AnswersEarly,
    /// Reservations end when their step is sent.
    ReleasesEarly,
    /// What was written is not remembered.
    ForgetsHistory,
    /// What was written is forgotten while somebody may ask.
    TrimsTooMuch,
    /// What was written is remembered for ever.
    NeverForgets,
    /// Whoever wants a whole relation isn't told of keys that were written.
    ForgetsKeys,
    /// Newcomers don't queue behind those who wait already.
    Overtakes,
    /// Shared reservations don't keep exclusive ones out.
    SharesExclusively,
    /// Cycles of waiters are not looked for.
    IgnoresDeadlocks,
    /// A change of the catalog may start from an old version.
    MergesBlindly,
    /// Leases carry the newest accepted catalog.
    ShowsCatalogEarly,
    /// A commit that is asked for twice enters twice.
    CommitsTwice,
    /// What is committed can be aborted until its step is common.
    AbortsCommitted,
    /// Steps are stamped with whatever the clock on the wall says.
    FollowsWallClock,
    /// A waiter that gives up is forgotten, its place isn't.
    KeepsPlace,
}

impl Defect {
    /// Whether this rule is broken. Never outside tests.
    pub(crate) fn is(self, rule: Self) -> bool {
        cfg!(test) && self == rule
    }
}
