//! What every step must show, worked out from what was staged and what was sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stillframe_protocol::{
    Action, CatalogSnapshot, CatalogVersion, Command, Grant, Retention, Step, TransactionId,
};

use super::super::bank::{self, BALANCE, Contents, Write, must_stop};
use super::super::clients::Definitions;

/// The contents of every step.
pub(super) struct History {
    accounts: u64,
    commands: Vec<Arc<Command>>,
    contents: Vec<Contents>,
    views: Vec<BTreeSet<u32>>,
    /// What will be shown with the cutover.
    new: Option<BTreeSet<u32>>,
    staged: BTreeMap<TransactionId, Vec<Write>>,
    /// By the order in which they were asked for first.
    commits: BTreeMap<TransactionId, u64>,
    asked: u64,
    aborted: BTreeSet<TransactionId>,
    entered: BTreeMap<TransactionId, Step>,
    /// Those whose step isn't made by all.
    under_way: BTreeMap<Step, Vec<TransactionId>>,
    /// The last step's.
    clock_us: i64,
    catalogs: BTreeMap<u64, CatalogSnapshot>,
    items: BTreeMap<u32, Item>,
}

/// What is known of something defined.
enum Item {
    /// Somebody is at it.
    Unknown,
    /// From this step on it is there, or it isn't.
    Known { since: Step, present: bool },
}

impl History {
    pub(super) fn new(accounts: u64) -> Self {
        Self {
            accounts,
            commands: vec![],
            contents: vec![],
            views: vec![],
            new: None,
            staged: BTreeMap::new(),
            commits: BTreeMap::new(),
            asked: 0,
            aborted: BTreeSet::new(),
            entered: BTreeMap::new(),
            under_way: BTreeMap::new(),
            clock_us: i64::MIN,
            catalogs: BTreeMap::new(),
            items: BTreeMap::new(),
        }
    }

    pub(super) fn staged(&mut self, transaction: TransactionId, writes: &[Write]) {
        self.staged.insert(transaction, writes.to_vec());
    }

    pub(super) fn commit_asked(&mut self, transaction: TransactionId) {
        self.asked += 1;
        self.commits.entry(transaction).or_insert(self.asked);
    }

    pub(super) fn commit_refused(&mut self, transaction: TransactionId) {
        self.commits.remove(&transaction);
    }

    /// Whether the transaction can't commit any more.
    pub(super) fn aborted(&mut self, transaction: TransactionId) -> bool {
        let aborted = !self.commits.contains_key(&transaction);
        if aborted {
            self.aborted.insert(transaction);
        }
        aborted
    }

    /// The transaction has no effect.
    pub(super) fn never_enters(&mut self, transaction: TransactionId) {
        self.aborted.insert(transaction);
    }

    /// Whether a catalog of this version was shown.
    pub(super) fn knows_catalog(&self, version: CatalogVersion) -> bool {
        let first = self.catalogs.keys().next().copied();
        first.is_some_and(|first| first >> 24 == version.0 >> 24)
    }

    /// The step that a transaction has entered.
    pub(super) fn entered(&self, transaction: TransactionId) -> Option<Step> {
        self.entered.get(&transaction).copied()
    }

    /// Takes out those that entered steps up to this one.
    pub(super) fn entered_up_to(&mut self, step: Step) -> Vec<TransactionId> {
        let later = self.under_way.split_off(&step.next());
        std::mem::replace(&mut self.under_way, later).into_values().flatten().collect()
    }

    /// A command is sent to a host: a new one, or one that was sent to others before.
    /// Tells which.
    pub(super) fn sent(&mut self, command: &Arc<Command>, all_made: bool) -> Result<bool, String> {
        let number = command.number.0 as usize;
        if let Some(sent) = self.commands.get(number) {
            return if sent == command {
                Ok(false)
            } else {
                Err(format!("command {number} has changed: {sent:?}, {command:?}"))
            };
        }
        let step = command.action.step();
        let makes_step = command.action.makes_step();
        let newest = self.contents.len() as u64 - u64::from(!makes_step);
        if number != self.commands.len() || step.0 != newest {
            return Err(format!("a gap before command {number} that makes step {step}"));
        }
        if !all_made {
            return Err(format!("command {number} is sent before the one before is done"));
        }
        if let Some(last) = self.commands.last() {
            grows(&last.retention, &command.retention)?;
        }
        if let Some(clock_us) = command.action.clock_us() {
            if clock_us < self.clock_us {
                return Err(format!("the clock of step {step} goes back"));
            }
            self.clock_us = clock_us;
        }
        self.commands.push(Arc::clone(command));
        let mut contents = match self.contents.last() {
            Some(contents) => contents.clone(),
            None => Contents::initial(self.accounts, |_| true),
        };
        let mut views = self.views.last().cloned().unwrap_or_default();
        match &command.action {
            Action::Replace { program, .. } => views = bank::views(program),
            Action::ReplaceOnline { program, .. } => {
                if !must_stop(&views, program) {
                    self.new = Some(bank::views(program));
                }
            }
            Action::Pump { .. } => return Ok(true),
            Action::Cutover { .. } => {
                views = self.new.take().ok_or("a cutover where nothing was filled")?;
            }
            Action::Advance { transactions, .. } => {
                self.enter(step, transactions)?;
                for transaction in transactions {
                    for write in self.staged.get(transaction).into_iter().flatten() {
                        contents
                            .apply(write)
                            .map_err(|error| format!("{transaction} in step {step}: {error}"))?;
                    }
                }
            }
        }
        contents.show(&views);
        self.contents.push(contents);
        self.views.push(views);
        Ok(true)
    }

    fn enter(&mut self, step: Step, transactions: &[TransactionId]) -> Result<(), String> {
        let mut last = None;
        for transaction in transactions {
            if let Some(before) = self.entered.insert(*transaction, step) {
                return Err(format!("{transaction} entered step {before} and enters {step}"));
            }
            if self.aborted.contains(transaction) {
                return Err(format!("{transaction} was aborted and enters step {step}"));
            }
            let order = self.commits.get(transaction);
            if order <= last {
                return Err(format!("{transaction} enters step {step} out of turn"));
            }
            last = order;
        }
        self.under_way.insert(step, transactions.to_vec());
        Ok(())
    }

    /// Whether these are the contents of a step.
    pub(super) fn reads(&self, step: Step, contents: &Contents) -> Result<(), String> {
        let right = &self.contents[step.0 as usize];
        if contents != right {
            return Err(format!("step {step} reads {contents:?} where it is {right:?}"));
        }
        let total: i64 = contents.accounts.values().sum();
        if total != BALANCE * self.accounts as i64 {
            return Err(format!("the total at step {step} is {total}"));
        }
        Ok(())
    }

    /// Whether a catalog is that of a step: what it says is computed, and one version has one text.
    pub(super) fn shows(&mut self, step: Step, catalog: &CatalogSnapshot) -> Result<(), String> {
        let (shown, computed) = (Definitions::parse(catalog).views, &self.views[step.0 as usize]);
        if shown != *computed {
            return Err(format!("step {step} computes {computed:?}, its catalog shows {shown:?}"));
        }
        let known = self.catalogs.entry(catalog.version.0).or_insert_with(|| catalog.clone());
        if known != catalog {
            return Err(format!("version {} of the catalog has two texts", catalog.version));
        }
        Ok(())
    }

    pub(super) fn defines(&mut self, item: u32) {
        self.items.insert(item, Item::Unknown);
    }

    pub(super) fn defined(&mut self, item: u32, present: bool, since: Step) {
        self.items.insert(item, Item::Known { since, present });
    }

    /// Whether a lease's catalog has what was defined by then.
    pub(super) fn defines_all(&self, grant: &Grant) -> Result<(), String> {
        let Definitions { views, comments } = Definitions::parse(&grant.catalog);
        for (item, known) in &self.items {
            let Item::Known { since, present } = known else { continue };
            let shown = views.contains(item) || comments.contains(item);
            if grant.step >= *since && shown != *present {
                return Err(format!(
                    "{item} is {present} since step {since}, and {shown} at step {}",
                    grant.step
                ));
            }
        }
        Ok(())
    }
}

fn grows(older: &Retention, newer: &Retention) -> Result<(), String> {
    if newer.sequence <= older.sequence || newer.common < older.common {
        return Err(format!("retention goes back from {older:?} to {newer:?}"));
    }
    Ok(())
}
