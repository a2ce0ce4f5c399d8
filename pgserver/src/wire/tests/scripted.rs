//! A session whose statements say what they answer.
//!
//! | statement | answer |
//! |---|---|
//! | `rows N` | the numbers from 1 to N, in batches of 3 |
//! | `endless` | numbers without end, each batch a thousand |
//! | `stall N` | N rows, then nothing ever |
//! | `break N` | N rows, then 22012 |
//! | `echo` | its parameter `$1`, an integer |
//! | `hang` | nothing ever |
//! | `commit-slowly` | nothing, and it is committing, until it is told to go on |
//! | `fail` | 42P01 |
//! | `copy` | takes the data of a COPY of two columns |
//! | `begin`, `end`, `done`, `notice`, `panic` | what they say |

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use futures::stream::{self, BoxStream, StreamExt};
use stillframe_protocol::Step;
use stillframe_sql::{
    Error, IdleLimit, Notice, Notification, OutputColumn, Parameter, Progress, Request, Rows,
    SqlState, TextFormat, TransactionStatus, Type,
};
use tokio::sync::Notify;

use crate::wire::backend::{Answer, Backend};

/// What all sessions of a test share and the test looks at.
#[derive(Debug, Default)]
pub(super) struct World {
    /// Statements, results and COPYs that are alive.
    pub(super) alive: AtomicUsize,
    /// Batches that were taken from results.
    pub(super) batches: AtomicUsize,
    /// What COPY has brought to an end.
    pub(super) copied: Mutex<Vec<u8>>,
    /// Lets `commit-slowly` go on.
    pub(super) go_on: Notify,
    /// A limit for statements.
    pub(super) timeout: Mutex<Option<Duration>>,
}

impl World {
    pub(super) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// Counts as alive until it drops.
    fn live(self: &Arc<Self>) -> Alive {
        self.alive.fetch_add(1, Ordering::SeqCst);
        Alive(Arc::clone(self))
    }
}

pub(super) struct Alive(Arc<World>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) struct Scripted {
    world: Arc<World>,
    status: TransactionStatus,
    kept: HashMap<String, Option<Arc<Plan>>>,
    notices: Vec<Notice>,
    progress: Progress,
    zone: String,
}

pub(super) struct Plan {
    text: String,
    parameters: Vec<Type>,
    columns: Option<Vec<OutputColumn>>,
}

pub(super) struct Copy {
    world: Arc<World>,
    data: Vec<u8>,
    _alive: Alive,
}

impl Scripted {
    pub(super) fn new(world: Arc<World>) -> Self {
        let status = TransactionStatus::Idle;
        let zone = "UTC".to_owned();
        Self {
            world,
            status,
            kept: HashMap::new(),
            notices: vec![],
            progress: Progress::default(),
            zone,
        }
    }

    fn rows(&self, numbers: BoxStream<'static, Result<Vec<i32>, Error>>) -> Answer<Copy> {
        let (alive, world) = (self.world.live(), Arc::clone(&self.world));
        let batches = numbers.map(move |numbers| {
            let _ = &alive;
            world.batches.fetch_add(1, Ordering::SeqCst);
            numbers.map(|numbers| batch(&numbers))
        });
        Answer::Rows(Rows {
            columns: columns(),
            step: Some(Step(7)),
            batches: batches.boxed(),
            tag: "SELECT",
            affected: None,
        })
    }
}

fn columns() -> Vec<OutputColumn> {
    vec![OutputColumn { name: "n".to_owned(), kind: Type::Integer, origin: None }]
}

fn batch(numbers: &[i32]) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, true)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int32Array::from(numbers.to_vec()))]).unwrap()
}

fn some(count: i32) -> BoxStream<'static, Result<Vec<i32>, Error>> {
    let numbers: Vec<i32> = (1..=count).collect();
    let batches: Vec<_> = numbers.chunks(3).map(|chunk| Ok(chunk.to_vec())).collect();
    stream::iter(batches).boxed()
}

impl Backend for Scripted {
    type Statement = String;
    type Prepared = Plan;
    type CopyIn = Copy;

    fn parse(&self, text: &str) -> Result<Vec<String>, Error> {
        if text.contains("syntax") {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "syntax error").at(3));
        }
        let statements = text.split(';').map(str::trim).filter(|text| !text.is_empty());
        Ok(statements.map(str::to_owned).collect())
    }

    async fn prepare(&mut self, text: String, declared: &[Option<Type>]) -> Result<Plan, Error> {
        let kind = declared.first().cloned().flatten().unwrap_or(Type::Integer);
        let parameters = if text == "echo" { vec![kind] } else { vec![] };
        let verb = text.split(' ').next().unwrap_or_default();
        let returns_rows = ["rows", "endless", "stall", "break", "echo"].contains(&verb);
        Ok(Plan { parameters, columns: returns_rows.then(columns), text })
    }

    fn parameters(plan: &Plan) -> &[Type] {
        &plan.parameters
    }

    fn columns(plan: &Plan) -> Option<&[OutputColumn]> {
        plan.columns.as_deref()
    }

    fn check(&self, _: &Plan, _: &[Parameter]) -> Result<(), Error> {
        Ok(())
    }

    async fn execute(
        &mut self,
        plan: &Plan,
        parameters: Vec<Parameter>,
    ) -> Result<Answer<Copy>, Error> {
        let _alive = self.world.live();
        let (verb, count) = plan.text.split_once(' ').unwrap_or((&plan.text, "0"));
        let count: i32 = count.parse().unwrap();
        Ok(match verb {
            "rows" => self.rows(some(count)),
            "endless" => self.rows(stream::repeat_with(|| Ok((0..1000).collect())).boxed()),
            "stall" => self.rows(some(count).chain(stream::pending()).boxed()),
            "break" => {
                let error = Error::new(SqlState::DIVISION_BY_ZERO, "division by zero");
                self.rows(some(count).chain(stream::iter([Err(error)])).boxed())
            }
            "echo" => match &parameters[0] {
                Parameter::Text(text) => {
                    let number = text.parse().unwrap();
                    self.rows(stream::iter([Ok(vec![number])]).boxed())
                }
                parameter => panic!("{parameter:?}"),
            },
            "hang" => std::future::pending().await,
            "commit-slowly" => {
                let _committing = self.progress.commit();
                self.world.go_on.notified().await;
                Answer::Complete("INSERT 0 1".to_owned())
            }
            "fail" => {
                return Err(Error::new(SqlState::UNDEFINED_TABLE, "no such table")
                    .with_detail("A detail.")
                    .with_hint("A hint.")
                    .at(5));
            }
            "copy" => Answer::CopyIn(Copy {
                world: Arc::clone(&self.world),
                data: vec![],
                _alive: self.world.live(),
            }),
            "begin" => {
                self.status = TransactionStatus::Open;
                Answer::Complete("BEGIN".to_owned())
            }
            "end" => {
                self.status = TransactionStatus::Idle;
                Answer::Complete("COMMIT".to_owned())
            }
            "zone" => {
                self.zone = "Europe/Paris".to_owned();
                Answer::Complete("SET".to_owned())
            }
            "notice" => {
                let error = Error::new(SqlState::SUCCESSFUL_COMPLETION, "look");
                self.notices.push(Notice { severity: "NOTICE", error });
                Answer::Complete("DO".to_owned())
            }
            "done" => Answer::Complete("DONE".to_owned()),
            "panic" => panic!("as asked"),
            verb => panic!("{verb}"),
        })
    }

    fn begin_request(&mut self, _: Request) {}

    async fn finish_request(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn copy_columns(_: &Copy) -> usize {
        2
    }

    fn is_binary_copy(_: &Copy) -> bool {
        false
    }

    async fn copy_write(copy: &mut Copy, data: &[u8]) -> Result<(), Error> {
        if data.contains(&b'!') {
            return Err(Error::new(SqlState::BAD_COPY_FILE_FORMAT, "bad data"));
        }
        copy.data.extend_from_slice(data);
        Ok(())
    }

    async fn copy_finish(copy: Copy) -> Result<String, Error> {
        copy.world.copied.lock().unwrap().extend_from_slice(&copy.data);
        Ok("COPY 1".to_owned())
    }

    fn keep(&mut self, name: &str, prepared: Option<Arc<Plan>>) -> Result<(), Error> {
        self.kept.insert(name.to_owned(), prepared);
        Ok(())
    }

    fn kept(&self, name: &str) -> Result<Option<Arc<Plan>>, Error> {
        self.kept.get(name).cloned().ok_or_else(|| {
            let message = format!("prepared statement \"{name}\" does not exist");
            Error::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    fn forget(&mut self, name: &str) {
        self.kept.remove(name);
    }

    fn fail(&mut self) {
        if self.status == TransactionStatus::Open {
            self.status = TransactionStatus::Failed;
        }
    }

    fn status(&self) -> TransactionStatus {
        self.status
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match name {
            "TimeZone" => value.clone_into(&mut self.zone),
            "application_name" => {}
            name => {
                let message = format!("unrecognized configuration parameter \"{name}\"");
                return Err(Error::new(SqlState::UNDEFINED_OBJECT, message));
            }
        }
        Ok(())
    }

    fn reported_settings(&self) -> Vec<(&'static str, String)> {
        vec![("TimeZone", self.zone.clone())]
    }

    fn statement_timeout(&self) -> Option<Duration> {
        *self.world.timeout.lock().unwrap()
    }

    fn idle_limit(&self) -> Option<IdleLimit> {
        None
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        vec![]
    }

    fn notified(&self) -> impl Future<Output = ()> + Send + 'static {
        std::future::pending()
    }

    fn columns_of_cursor(&self, _: &str) -> Option<&[OutputColumn]> {
        None
    }

    fn forget_cursor(&mut self, _: &str) {}

    fn cursor_of(_: &String) -> Option<&str> {
        None
    }

    fn adopt_cursor(&mut self, _: &str, _: Rows) {}

    async fn fetch_forward(&self, name: &str, _: Option<NonZeroUsize>) -> Result<Rows, Error> {
        Err(Error::internal(name))
    }

    fn text_format(&self) -> TextFormat {
        TextFormat::default()
    }

    fn progress(&self) -> Progress {
        self.progress.clone()
    }
}
