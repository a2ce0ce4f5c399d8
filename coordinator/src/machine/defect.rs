//! Machines with one rule broken, to see that the simulator's checker notices. Outside tests there
//! are none: no rule has a name, and [`breaks!`] is false.

/// Whether a rule is broken.
#[cfg(test)]
macro_rules! breaks {
    ($defect:expr, $rule:ident) => {
        $defect == crate::machine::Defect::$rule
    };
}

/// Whether a rule is broken: never outside tests.
#[cfg(not(test))]
macro_rules! breaks {
    ($defect:expr, $rule:ident) => {{
        let _: crate::machine::Defect = $defect;
        false
    }};
}

/// The rule that a machine breaks: none, outside tests.
#[cfg(not(test))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defect;

#[cfg(not(test))]
impl Defect {
    /// No rule is broken.
    pub(crate) const NONE: Self = Self;
}

/// The rule that a machine breaks. A real one breaks none.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// No rule.
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
    /// Reservations and commits of an epoch that has ended are taken for those of the next.
    ForgetsEpochs,
    /// When an epoch ends, whoever waits for a step under way is told that it has no effect.
    DeniesCommits,
    /// A new epoch has the number of the last.
    ReusesEpoch,
    /// A process that was part of an epoch may be part of another.
    TakesUsedHosts,
    /// A new process takes the place of a lost one in the epoch that lives.
    SwapsHosts,
    /// Nobody is told that his epoch has ended.
    RetiresNobody,
    /// An epoch begins before all places are taken.
    BeginsEarly,
    /// What waits for an epoch to begin is forgotten if that one ends at once.
    ForgetsParked,
    /// The cutover comes when the first host has filled all.
    CutsOverEarly,
    /// A new circuit is shown before it is filled.
    ShowsUnfilled,
    /// Pumps wait for transactions.
    StarvesPumps,
    /// Transactions wait for pumps.
    StarvesSteps,
    /// Writers aren't slowed however far the new relations are behind.
    IgnoresBacklog,
    /// A circuit that can't be filled while steps go on counts as one that can.
    LosesRefusal,
    /// A job begins while another fills.
    FillsTwice,
    /// Relations go with a circuit that fills others.
    DropsOnline,
    /// The cutover never comes.
    FillsForever,
}

#[cfg(test)]
impl Defect {
    /// No rule is broken.
    pub(crate) const NONE: Self = Self::None;
}

pub(crate) use breaks;
