//! A cluster in memory for this crate's tests: a coordinator and hosts that keep the contract with
//! tables only. Views hold no rows unless a test puts them there.

mod conditions;
mod reservations;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arrow::array::{Array, BooleanArray};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use async_trait::async_trait;
use datafusion::common::ScalarValue;
use futures::StreamExt;
use futures::stream;
use stillframe_protocol::{
    Activation, CatalogSnapshot, CatalogVersion, Change, Changes, ClusterStatus, Command,
    Committed, Coordinator, CoordinatorError, Entry, Epoch, Expression, FrameId, Grant, Host,
    HostError, HostId, LeaseId, RelationId, Report, Reservation, Retention, RowError, ScanPart,
    ScanRequest, ScanStream, Staging, Statistics, Step, TransactionId,
};

use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout_at;

use self::reservations::Reservations;
use crate::{Catalog, Database, Error, Response, Session};

/// The one epoch.
const EPOCH: Epoch = Epoch(1);

/// A whole cluster.
#[derive(Debug)]
pub(crate) struct Fake {
    hosts: u32,
    workers: u32,
    state: Mutex<State>,
    /// Told when a reservation is given back.
    freed: Notify,
    /// Commits wait for a permit while a test holds them all.
    commits: Semaphore,
}

#[derive(Debug)]
struct State {
    step: Step,
    catalog: CatalogSnapshot,
    /// The rows of all relations at each step, never forgotten.
    frames: BTreeMap<Step, Contents>,
    staged: HashMap<TransactionId, Vec<Changes>>,
    reservations: Reservations,
    /// How many requests for reservations wait.
    waiting: usize,
    calls: Calls,
    leases: BTreeSet<LeaseId>,
    /// How many leases were granted.
    granted: usize,
    /// What `view_errors` answers.
    errors: BTreeMap<RelationId, Vec<RowError>>,
    /// Every scan that was asked for.
    scans: Vec<ScanRequest>,
    /// Changes whose base is no longer the newest: how many are still to be refused.
    catalog_races: usize,
    /// Whether scans stop without their end.
    truncates: bool,
}

/// How often the cluster was asked for something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) leases: usize,
    pub(crate) scans: usize,
    pub(crate) reservations: usize,
    pub(crate) stagings: usize,
    pub(crate) commits: usize,
}

/// Rows by relation, one copy each.
type Contents = BTreeMap<RelationId, Vec<RecordBatch>>;

impl Fake {
    /// A cluster and a front end of it.
    pub(crate) fn start(hosts: u32, workers: u32) -> (Arc<Self>, Arc<Database>) {
        let fake = Arc::new(Self {
            hosts,
            workers,
            state: Mutex::new(State {
                step: Step(0),
                catalog: CatalogSnapshot { version: CatalogVersion(0), bytes: Arc::new([]) },
                frames: BTreeMap::from([(Step(0), Contents::new())]),
                staged: HashMap::new(),
                reservations: Reservations::default(),
                waiting: 0,
                calls: Calls::default(),
                leases: BTreeSet::new(),
                granted: 0,
                errors: BTreeMap::new(),
                scans: vec![],
                catalog_races: 0,
                truncates: false,
            }),
            freed: Notify::new(),
            commits: Semaphore::new(1),
        });
        let coordinator = Arc::clone(&fake) as Arc<dyn Coordinator>;
        let parts = (0..hosts).map(|host| {
            Arc::new(FakeHost { host: HostId(host), fake: Arc::clone(&fake) }) as Arc<dyn Host>
        });
        let database = Database::new(coordinator, parts.collect(), workers);
        (fake, database)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The step that the next lease gets.
    pub(crate) fn step(&self) -> Step {
        self.state().step
    }

    /// What was asked for since the last time.
    pub(crate) fn take_calls(&self) -> Calls {
        std::mem::take(&mut self.state().calls)
    }

    /// Whether nobody holds, waits for or has staged anything.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        state.reservations.holders() == 0 && state.waiting == 0 && state.staged.is_empty()
    }

    /// How many requests for reservations wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting
    }

    /// Lets commits wait, once they were sent, for as long as the answer lives.
    pub(crate) async fn hold_commits(&self) -> tokio::sync::SemaphorePermit<'_> {
        self.commits.acquire().await.unwrap()
    }

    /// How many leases are held.
    pub(crate) fn leases(&self) -> usize {
        self.state().leases.len()
    }

    /// How many leases were ever granted.
    pub(crate) fn granted(&self) -> usize {
        self.state().granted
    }

    /// Takes the scans that hosts were asked for since the last time.
    pub(crate) fn take_scans(&self) -> Vec<ScanRequest> {
        std::mem::take(&mut self.state().scans)
    }

    /// Lets the next so many changes of the catalog come second.
    pub(crate) fn race_catalog(&self, times: usize) {
        self.state().catalog_races = times;
    }

    /// Lets all scans stop without their end.
    pub(crate) fn truncate_scans(&self) {
        self.state().truncates = true;
    }

    /// What a view's rows raise.
    pub(crate) fn fail_view(&self, view: RelationId, errors: Vec<RowError>) {
        self.state().errors.insert(view, errors);
    }

    /// Makes a step with other rows of one relation, given as stored.
    pub(crate) fn put(&self, relation: RelationId, rows: RecordBatch) {
        let mut state = self.state();
        let mut contents = state.frames[&state.step].clone();
        contents.insert(relation, vec![rows]);
        state.advance(contents);
    }

    /// The rows of one relation, as stored; there are none any more.
    pub(crate) fn take(&self, relation: RelationId) -> Vec<RecordBatch> {
        let mut state = self.state();
        let mut contents = state.frames[&state.step].clone();
        let rows = contents.remove(&relation).unwrap_or_default();
        if !rows.is_empty() {
            state.advance(contents);
        }
        rows
    }

    fn shards(&self) -> usize {
        (self.hosts * self.workers) as usize
    }
}

impl State {
    fn advance(&mut self, contents: Contents) -> Committed {
        self.step = self.step.next();
        self.frames.insert(self.step, contents);
        Committed { step: self.step }
    }

    /// Applies what a transaction has staged. Tables `before` this command have to be reserved; one
    /// that comes with it is nobody else's yet.
    fn apply(&mut self, transaction: TransactionId, before: &CatalogSnapshot) -> Committed {
        let before = Catalog::decode(before).unwrap().program().tables;
        let mut contents = self.frames[&self.step].clone();
        let catalog = Catalog::decode(&self.catalog).unwrap();
        for changes in self.staged.remove(&transaction).unwrap_or_default() {
            assert!(
                self.reservations.may_write(transaction, changes.relation)
                    || before.iter().all(|table| table.id != changes.relation),
                "a write of a relation that isn't reserved"
            );
            change(&mut contents, &changes);
        }
        for table in catalog.program().tables {
            check_key(&contents, table.id, table.key_columns);
        }
        let committed = self.advance(contents);
        self.reservations.end(transaction, Some(committed.step));
        committed
    }
}

/// Takes away and adds rows. To take away what isn't there is a bug of whoever staged it.
fn change(contents: &mut Contents, changes: &Changes) {
    let batches = contents.entry(changes.relation).or_default();
    for (row, weight) in changes.weights.iter().enumerate() {
        let one = changes.rows.slice(row, 1);
        if *weight > 0 {
            batches.extend(std::iter::repeat_n(one, *weight as usize));
            continue;
        }
        for _ in 0..-weight {
            let key = texts(&one).remove(0);
            let found = batches.iter().enumerate().find_map(|(place, batch)| {
                let row = texts(batch).iter().position(|text| *text == key)?;
                Some((place, row))
            });
            let (place, row) = found.expect("a retraction of a row that isn't there");
            let batch = batches.remove(place);
            batches.push(batch.slice(0, row));
            batches.push(batch.slice(row + 1, batch.num_rows() - row - 1));
        }
    }
    batches.retain(|batch| batch.num_rows() > 0);
}

/// Two rows with one key are a bug of whoever staged them.
fn check_key(contents: &Contents, table: RelationId, columns: usize) {
    let key: Vec<_> = (0..columns).collect();
    let mut seen = BTreeSet::new();
    for batch in contents.get(&table).into_iter().flatten().filter(|_| columns > 0) {
        for key in texts(&batch.project(&key).unwrap()) {
            assert!(seen.insert(key.clone()), "two rows with the key {key}");
        }
    }
}

/// Each row as one text.
pub(crate) fn texts(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    (0..batch.num_rows())
        .map(|row| {
            let values: Vec<_> =
                columns.iter().map(|column| column.value(row).to_string()).collect();
            values.join("|")
        })
        .collect()
}

#[async_trait]
impl Coordinator for Fake {
    async fn lease(&self, lease: LeaseId, _: Duration) -> Result<Grant, CoordinatorError> {
        let mut state = self.state();
        state.leases.insert(lease);
        state.granted += 1;
        state.calls.leases += 1;
        Ok(Grant { lease, epoch: EPOCH, step: state.step, catalog: state.catalog.clone() })
    }

    async fn renew(&self, leases: Vec<(LeaseId, Step)>) -> Result<Vec<LeaseId>, CoordinatorError> {
        let state = self.state();
        let gone = leases.into_iter().map(|(lease, _)| lease);
        Ok(gone.filter(|lease| !state.leases.contains(lease)).collect())
    }

    async fn release(&self, lease: LeaseId) {
        self.state().leases.remove(&lease);
    }

    async fn reserve(
        &self,
        transaction: TransactionId,
        frame: Option<FrameId>,
        entries: Vec<Entry>,
        timeout: Option<Duration>,
    ) -> Result<Reservation, CoordinatorError> {
        let frame = frame.map(|frame| frame.step);
        let longest = Duration::from_secs(60);
        let deadline = tokio::time::Instant::now() + timeout.unwrap_or(longest);
        self.state().calls.reservations += 1;
        loop {
            let freed = self.freed.notified();
            let reserved = self.state().reservations.reserve(transaction, frame, &entries);
            if let Some(reservation) = reserved {
                return Ok(reservation);
            }
            let _waiting = Waiting::new(self);
            if timeout_at(deadline, freed).await.is_err() {
                return Err(CoordinatorError::LockTimeout);
            }
        }
    }

    async fn commit(
        &self,
        transaction: TransactionId,
        _: Epoch,
        _: BTreeSet<HostId>,
    ) -> Result<Committed, CoordinatorError> {
        self.state().calls.commits += 1;
        let _permit = self.commits.acquire().await.unwrap();
        let mut state = self.state();
        let catalog = state.catalog.clone();
        let committed = state.apply(transaction, &catalog);
        drop(state);
        self.freed.notify_waiters();
        Ok(committed)
    }

    async fn abort(&self, transaction: TransactionId) {
        self.state().reservations.end(transaction, None);
        self.freed.notify_waiters();
    }

    async fn catalog_head(&self) -> Result<CatalogSnapshot, CoordinatorError> {
        Ok(self.state().catalog.clone())
    }

    async fn change(&self, change: Change) -> Result<Committed, CoordinatorError> {
        let mut state = self.state();
        if state.catalog_races > 0 {
            state.catalog_races -= 1;
            state.catalog.version = state.catalog.version.next();
        }
        if change.base != state.catalog.version {
            return Err(CoordinatorError::CatalogChanged);
        }
        let next = CatalogSnapshot { version: change.base.next(), bytes: change.bytes };
        let before = std::mem::replace(&mut state.catalog, next);
        let committed = state.apply(change.transaction, &before);
        drop(state);
        self.freed.notify_waiters();
        Ok(committed)
    }

    async fn status(&self) -> Result<ClusterStatus, CoordinatorError> {
        Ok(ClusterStatus {
            epoch: EPOCH,
            common: Some(self.step()),
            hosts: vec![],
            leases: vec![],
            steps: vec![],
            jobs: vec![],
        })
    }
}

/// A request for reservations that waits.
struct Waiting<'a>(&'a Fake);

impl<'a> Waiting<'a> {
    fn new(fake: &'a Fake) -> Self {
        fake.state().waiting += 1;
        Self(fake)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

#[derive(Debug)]
struct FakeHost {
    host: HostId,
    fake: Arc<Fake>,
}

#[async_trait]
impl Host for FakeHost {
    async fn activate(&self, _: Activation) -> Result<Report, HostError> {
        Err(HostError::Invalid("a fake takes no activation".to_owned()))
    }

    async fn execute(&self, _: Arc<Command>) -> Result<Report, HostError> {
        Err(HostError::Invalid("a fake takes no commands".to_owned()))
    }

    async fn retain(&self, _: Epoch, _: Retention) -> Result<(), HostError> {
        Ok(())
    }

    async fn stage(&self, staging: Staging) -> Result<(), HostError> {
        let mut state = self.fake.state();
        state.calls.stagings += 1;
        state.staged.entry(staging.transaction).or_default().extend(staging.changes);
        Ok(())
    }

    async fn unstage(&self, _: Epoch, transaction: TransactionId) -> Result<(), HostError> {
        self.fake.state().staged.remove(&transaction);
        Ok(())
    }

    async fn scan(&self, request: ScanRequest) -> Result<ScanStream, HostError> {
        let shard = (self.host.0 * self.fake.workers + request.worker) as usize;
        let mut state = self.fake.state();
        state.scans.push(request.clone());
        state.calls.scans += 1;
        let frame = state.frames.get(&request.step).ok_or(HostError::FrameGone(request.step))?;
        let batches = frame.get(&request.relation).cloned().unwrap_or_default();
        let mut parts = vec![];
        if let Some(first) = batches.first() {
            let all = concat_batches(&first.schema(), &batches).unwrap();
            let all = mine(&all, shard, self.fake.shards());
            let all = with_keys(&all, request.keys.as_ref());
            let all = filtered(&all, &request.filters);
            let rows = request.limit.map_or(all.num_rows(), |limit| limit.min(all.num_rows()));
            parts.push(project(&all.slice(0, rows), &request.projection));
        }
        let rows = parts.iter().map(|batch| batch.num_rows() as u64).sum();
        let mut answer: Vec<_> = parts.into_iter().map(|b| Ok(ScanPart::Batch(b))).collect();
        if !state.truncates {
            answer.push(Ok(ScanPart::End { rows }));
        }
        Ok(stream::iter(answer).boxed())
    }

    async fn view_errors(
        &self,
        _: Epoch,
        _: Step,
        view: RelationId,
    ) -> Result<Vec<RowError>, HostError> {
        Ok(self.fake.state().errors.get(&view).cloned().unwrap_or_default())
    }

    async fn statistics(&self, _: Epoch, _: Step) -> Result<Statistics, HostError> {
        Ok(Statistics::default())
    }
}

/// The rows of one shard, by a hash of their text.
fn mine(batch: &RecordBatch, shard: usize, shards: usize) -> RecordBatch {
    let mask: BooleanArray = texts(batch)
        .iter()
        .map(|text| Some(text.bytes().map(usize::from).sum::<usize>() % shards == shard))
        .collect();
    filter_record_batch(batch, &mask).unwrap()
}

fn with_keys(batch: &RecordBatch, keys: Option<&RecordBatch>) -> RecordBatch {
    let Some(keys) = keys else { return batch.clone() };
    let prefix: Vec<_> = (0..keys.num_columns()).collect();
    let wanted: BTreeSet<_> = texts(keys).into_iter().collect();
    let has_null =
        |row: usize| batch.project(&prefix).unwrap().columns().iter().any(|c| c.is_null(row));
    let mask: BooleanArray = texts(&batch.project(&prefix).unwrap())
        .iter()
        .enumerate()
        .map(|(row, text)| Some(wanted.contains(text) && !has_null(row)))
        .collect();
    filter_record_batch(batch, &mask).unwrap()
}

fn filtered(batch: &RecordBatch, conditions: &[Expression]) -> RecordBatch {
    let values = |row| {
        let columns = batch.columns().iter();
        columns.map(|c| ScalarValue::try_from_array(c, row).unwrap()).collect::<Vec<_>>()
    };
    let holds = |row| {
        let values = values(row);
        conditions.iter().all(|condition| conditions::holds(condition, &values) == Some(true))
    };
    let mask: BooleanArray = (0..batch.num_rows()).map(|row| Some(holds(row))).collect();
    filter_record_batch(batch, &mask).unwrap()
}

fn project(batch: &RecordBatch, columns: &[usize]) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = Arc::new(batch.schema().project(columns).unwrap());
    let columns = columns.iter().map(|column| Arc::clone(batch.column(*column))).collect();
    RecordBatch::try_new_with_options(schema, columns, &options).unwrap()
}

/// Runs all statements of a text; returns the last one's rows, or its tag.
pub(crate) async fn run(session: &mut Session, text: &str) -> Result<Vec<String>, Error> {
    let mut last = vec![];
    for statement in session.parse(text)? {
        let prepared = session.prepare(statement, &[]).await?;
        last = match session.execute(&prepared, vec![]).await? {
            Response::Rows(mut rows) => {
                let mut texts_of_all = vec![];
                while let Some(batch) = rows.batches.next().await {
                    match batch {
                        Ok(batch) => texts_of_all.extend(texts(&batch)),
                        Err(error) => {
                            session.fail();
                            return Err(error);
                        }
                    }
                }
                texts_of_all
            }
            Response::Complete { tag } => vec![tag],
            Response::CopyIn(_) | Response::CopyOut(_) => vec!["COPY".to_owned()],
        };
    }
    Ok(last)
}
