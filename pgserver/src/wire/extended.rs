//! The extended protocol: statements are parsed once, bound to parameters as portals, and executed
//! a part at a time. After an error everything up to Sync is passed over.

use std::collections::HashMap;
use std::mem;
use std::num::NonZeroUsize;
use std::sync::Arc;

use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    BindComplete, CloseComplete, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::EmptyQueryResponse;
use stillframe_sql::binary::{self, utf8};
use stillframe_sql::{Error, Parameter, Request, SqlState, TransactionStatus, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::backend::{Answer, Backend};
use super::connection::Connection;
use super::frontend::{Bind, Frame, Message, Parse, Target, violation};
use super::incoming::{Ended, Interruption, deadline};
use super::rows::{Format, check_width, description};
use super::simple::{Cursor, Fetched};

/// The statement without a name and the portals of a connection; the portal without a name is called
/// "". Statements with a name are the session's, which PREPARE and DEALLOCATE know too.
pub(super) struct Extended<B: Backend> {
    unnamed: Option<Planned<B>>,
    portals: HashMap<String, Portal<B>>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Messages are executed.
    Serving,
    /// Messages are passed over until Sync.
    Skipping,
}

/// A statement as Parse leaves it; none is text without a statement.
type Planned<B> = Option<Arc<<B as Backend>::Prepared>>;

fn parameters_of<B: Backend>(planned: &Planned<B>) -> &[Type] {
    planned.as_deref().map_or(&[], B::parameters)
}

/// A statement with its parameters.
struct Portal<B: Backend> {
    planned: Planned<B>,
    /// By column of the result.
    formats: Vec<Format>,
    state: State,
}

enum State {
    /// It hasn't run.
    Bound(Vec<Parameter>),
    /// It has rows, some of which may be sent.
    Open(Cursor),
    /// Its rows are those of a cursor of its name, from which FETCH and MOVE take some, too.
    Lent,
    /// All its rows were sent: there are no more, however often it is executed.
    Drained(&'static str),
    /// It has done what it does once.
    Spent,
}

impl<B: Backend> Default for Extended<B> {
    fn default() -> Self {
        Self { unnamed: None, portals: HashMap::new(), phase: Phase::Serving }
    }
}

impl<B: Backend> Extended<B> {
    /// Whether messages are passed over.
    pub(super) fn is_skipping(&self) -> bool {
        self.phase == Phase::Skipping
    }

    /// Sync has come.
    pub(super) fn synced(&mut self) {
        self.phase = Phase::Serving;
    }

    /// Portals live as long as the transaction they were made in.
    pub(super) fn leave(&mut self, status: TransactionStatus) {
        if status != TransactionStatus::Open {
            self.portals.clear();
        }
    }

    /// A simple query takes the place of what has no name.
    pub(super) fn forget_unnamed(&mut self) {
        self.unnamed = None;
        self.portals.remove("");
    }
}

fn no_portal(name: &str) -> Error {
    let message = format!("portal \"{name}\" does not exist");
    Error::new(SqlState::INVALID_CURSOR_NAME, message)
}

impl<B, R, W> Connection<B, R, W>
where
    B: Backend,
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Serves a message of the extended protocol.
    pub(super) async fn on_extended(&mut self, frame: Frame) -> Result<(), Ended> {
        let done = self.extended_message(frame).await;
        if let Err(Interruption::Statement(_)) = done {
            self.extended.phase = Phase::Skipping;
        }
        self.settle(done).await?;
        if self.outgoing.is_full() {
            self.flush().await?;
        }
        Ok(())
    }

    async fn extended_message(&mut self, frame: Frame) -> Result<(), Interruption> {
        match Message::read(frame)? {
            Message::Parse(parse) => self.parse(parse).await,
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(Target::Statement(name)) => self.describe_statement(&name),
            Message::Describe(Target::Portal(name)) => self.describe_portal(&name),
            Message::Execute { portal, rows_max } => self.execute(portal, rows_max).await,
            Message::Close(target) => self.close(&target),
            Message::Flush => Ok(self.flush().await?),
            message => Err(Error::internal(format!("{message:?} is not extended")).into()),
        }
    }

    /// What was executed since the last Sync is one transaction, if it says nothing else.
    pub(super) async fn sync(&mut self) -> Result<(), Interruption> {
        let deadline = deadline(self.session.statement_timeout());
        let finish = self.session.finish_request();
        Ok(self.incoming.attend(deadline, finish).await??)
    }

    async fn parse(&mut self, parse: Parse) -> Result<(), Interruption> {
        if parse.name.is_empty() {
            self.extended.unnamed = None;
        } else if self.session.kept(&parse.name).is_ok() {
            let message = format!("prepared statement \"{}\" already exists", parse.name);
            return Err(Error::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message).into());
        }
        let declared = parse.types.iter().copied().map(declared).collect::<Result<Vec<_>, _>>()?;
        let mut statements = self.session.parse(&parse.text)?;
        let planned = match (statements.pop(), statements.is_empty()) {
            (None, _) => None,
            (Some(statement), true) => {
                let deadline = deadline(self.session.statement_timeout());
                self.lend_portal(&statement, deadline).await?;
                let prepared = self.session.prepare(statement, &declared);
                Some(Arc::new(self.incoming.attend(deadline, prepared).await??))
            }
            (Some(_), false) => {
                let message = "cannot insert multiple commands into a prepared statement";
                return Err(Error::new(SqlState::SYNTAX_ERROR, message).into());
            }
        };
        if parse.name.is_empty() {
            self.extended.unnamed = Some(planned);
        } else {
            self.session.keep(&parse.name, planned)?;
        }
        self.tell_notices()?;
        Ok(self.outgoing.put(&ParseComplete::new())?)
    }

    fn planned(&self, name: &str) -> Result<Planned<B>, Error> {
        if !name.is_empty() {
            return self.session.kept(name);
        }
        self.extended.unnamed.clone().ok_or_else(|| {
            let message = "unnamed prepared statement does not exist";
            Error::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    fn bind(&mut self, bind: Bind) -> Result<(), Interruption> {
        let planned = self.planned(&bind.statement)?;
        if !bind.portal.is_empty() && self.extended.portals.contains_key(&bind.portal) {
            let message = format!("cursor \"{}\" already exists", bind.portal);
            return Err(Error::new(SqlState::DUPLICATE_CURSOR, message).into());
        }
        let parameters = parameters(&bind, parameters_of::<B>(&planned))?;
        if let Some(prepared) = &planned {
            self.session.check(prepared, &parameters)?;
        }
        let columns = planned.as_deref().and_then(B::columns);
        let formats = match columns {
            Some(columns) => Format::spread(&bind.result_formats, columns.len(), "result")?,
            None => vec![],
        };
        let portal = Portal { planned, formats, state: State::Bound(parameters) };
        self.extended.portals.insert(bind.portal, portal);
        Ok(self.outgoing.put(&BindComplete::new())?)
    }

    fn describe_statement(&mut self, name: &str) -> Result<(), Interruption> {
        let planned = self.planned(name)?;
        let types = parameters_of::<B>(&planned).iter().map(Type::oid).collect();
        self.outgoing.put(&ParameterDescription::new(types))?;
        self.describe(&planned, None)
    }

    fn describe_portal(&mut self, name: &str) -> Result<(), Interruption> {
        let Some(portal) = self.extended.portals.get(name) else {
            // What DECLARE has made is a portal, too; FETCH will say how its rows come.
            let columns = self.session.columns_of_cursor(name).ok_or_else(|| no_portal(name))?;
            check_width(columns)?;
            return Ok(self.outgoing.put(&description(columns, None))?);
        };
        let (planned, formats) = (portal.planned.clone(), portal.formats.clone());
        self.describe(&planned, Some(&formats))
    }

    fn describe(
        &mut self,
        planned: &Planned<B>,
        formats: Option<&[Format]>,
    ) -> Result<(), Interruption> {
        let columns = planned.as_deref().and_then(B::columns);
        match columns {
            Some(columns) => {
                check_width(columns)?;
                self.outgoing.put(&description(columns, formats))?;
            }
            None => self.outgoing.put(&NoData::new())?,
        }
        Ok(())
    }

    async fn execute(
        &mut self,
        name: String,
        rows_max: Option<NonZeroUsize>,
    ) -> Result<(), Interruption> {
        // Out of the map while it runs: a portal that fails is gone, and its lease with it.
        let portal = self.extended.portals.remove(&name);
        let mut portal = portal.ok_or_else(|| no_portal(&name))?;
        let deadline = deadline(self.session.statement_timeout());
        self.run_portal(&name, &mut portal, rows_max, deadline).await?;
        self.extended.portals.insert(name, portal);
        Ok(())
    }

    async fn run_portal(
        &mut self,
        name: &str,
        portal: &mut Portal<B>,
        rows_max: Option<NonZeroUsize>,
        deadline: Option<Instant>,
    ) -> Result<(), Interruption> {
        let mut cursor = match mem::replace(&mut portal.state, State::Spent) {
            State::Bound(parameters) => {
                let (planned, formats) = (portal.planned.clone(), portal.formats.clone());
                match self.start_portal(&planned, formats, parameters, deadline).await? {
                    Some(cursor) => cursor,
                    None => return Ok(()),
                }
            }
            State::Open(cursor) => cursor,
            State::Lent => {
                portal.state = State::Lent;
                return self.fetch_lent(name, &portal.formats, rows_max, deadline).await;
            }
            State::Drained(tag) => {
                portal.state = State::Drained(tag);
                return self.complete(format!("{tag} 0"));
            }
            State::Spent => {
                let message = format!("portal \"{name}\" cannot be run");
                let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
                return Err(Error::new(state, message).into());
            }
        };
        let fetched = self.send_rows(&mut cursor, rows_max, deadline);
        match fetched.await? {
            Fetched::Suspended => {
                self.outgoing.put(&PortalSuspended::new())?;
                portal.state = State::Open(cursor);
            }
            Fetched::All => {
                self.complete_rows(&cursor)?;
                portal.state = State::Drained(cursor.tag());
            }
        }
        Ok(())
    }

    /// Lets the session have the rows of the portal that a FETCH, a MOVE or a CLOSE names, unless it has
    /// a cursor of that name.
    pub(super) async fn lend_portal(
        &mut self,
        statement: &B::Statement,
        deadline: Option<Instant>,
    ) -> Result<(), Interruption> {
        let Some(name) = B::cursor_of(statement).filter(|name| !name.is_empty()) else {
            return Ok(());
        };
        let name = name.to_owned();
        // Outside of a block a portal has gone when another statement comes.
        let is_in_block = self.session.status() == TransactionStatus::Open;
        if !is_in_block || self.session.columns_of_cursor(&name).is_some() {
            return Ok(());
        }
        let Some(mut portal) = self.extended.portals.remove(&name) else { return Ok(()) };
        let has_rows = portal.planned.as_deref().is_some_and(|p| B::columns(p).is_some());
        let cursor = match mem::replace(&mut portal.state, State::Spent) {
            State::Bound(parameters) if has_rows => {
                let (planned, formats) = (portal.planned.clone(), portal.formats.clone());
                self.start_portal(&planned, formats, parameters, deadline).await?
            }
            State::Open(cursor) => Some(cursor),
            other => {
                portal.state = other;
                None
            }
        };
        if let Some(cursor) = cursor {
            self.session.adopt_cursor(&name, cursor.into_rows());
            portal.state = State::Lent;
        }
        self.extended.portals.insert(name, portal);
        Ok(())
    }

    /// Sends the next rows of a portal that the session has the rows of.
    async fn fetch_lent(
        &mut self,
        name: &str,
        formats: &[Format],
        rows_max: Option<NonZeroUsize>,
        deadline: Option<Instant>,
    ) -> Result<(), Interruption> {
        let rows = self.session.fetch_forward(name, rows_max);
        let rows = self.incoming.attend(deadline, rows).await??;
        let mut cursor = Cursor::new(rows, formats.to_vec(), self.session.text_format());
        self.send_rows(&mut cursor, None, deadline).await?;
        if rows_max.is_some_and(|max| max.get() == cursor.sent()) {
            return Ok(self.outgoing.put(&PortalSuspended::new())?);
        }
        self.complete_rows(&cursor)
    }

    /// Runs a portal's statement; without rows to fetch it is answered here.
    async fn start_portal(
        &mut self,
        planned: &Planned<B>,
        formats: Vec<Format>,
        parameters: Vec<Parameter>,
        deadline: Option<Instant>,
    ) -> Result<Option<Cursor>, Interruption> {
        let Some(prepared) = planned else {
            self.outgoing.put(&EmptyQueryResponse::new())?;
            return Ok(None);
        };
        let before = self.session.status();
        self.session.begin_request(Request::Pipeline);
        let answer = self.session.execute(prepared, parameters);
        match self.incoming.attend(deadline, answer).await?? {
            Answer::Rows(rows) => {
                check_width(&rows.columns)?;
                if rows.columns.len() != formats.len() {
                    let message = "cached plan must not change result type";
                    return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message).into());
                }
                return Ok(Some(Cursor::new(rows, formats, self.session.text_format())));
            }
            Answer::Complete(tag) => self.complete(tag)?,
            Answer::CopyOut(copy) => {
                let tag = self.copy_out(copy, deadline).await?;
                self.complete(tag)?;
            }
            Answer::CopyIn(copy) => {
                let tag = self.copy_in(copy, deadline).await?;
                self.complete(tag)?;
            }
        }
        if before == TransactionStatus::Open {
            self.extended.leave(self.session.status());
        }
        Ok(None)
    }

    fn close(&mut self, target: &Target) -> Result<(), Interruption> {
        // What isn't there is closed already.
        match target {
            Target::Statement(name) if name.is_empty() => self.extended.unnamed = None,
            Target::Statement(name) => self.session.forget(name),
            Target::Portal(name) => {
                self.extended.portals.remove(name);
                self.session.forget_cursor(name);
            }
        }
        Ok(self.outgoing.put(&CloseComplete::new())?)
    }
}

/// The type that a client declares for a parameter; 0 and `unknown` leave it open.
fn declared(oid: u32) -> Result<Option<Type>, Error> {
    if oid == 0 || oid == Type::Unknown.oid() {
        return Ok(None);
    }
    match Type::from_oid(oid) {
        Some(kind) => Ok(Some(kind)),
        None => {
            let message = format!("type with OID {oid} does not exist");
            Err(Error::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

fn parameters(bind: &Bind, types: &[Type]) -> Result<Vec<Parameter>, Error> {
    if bind.parameters.len() != types.len() {
        return Err(violation(format!(
            "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
            bind.parameters.len(),
            bind.statement,
            types.len()
        )));
    }
    let formats = Format::spread(&bind.parameter_formats, types.len(), "parameter")?;
    let parameter = |(place, value): (usize, &Option<bytes::Bytes>)| {
        let Some(value) = value else { return Ok(Parameter::Null) };
        match formats[place] {
            Format::Text => Ok(Parameter::Text(utf8(value)?.to_owned())),
            Format::Binary => match binary::read(&types[place], value) {
                Err(error) if error.state == SqlState::INVALID_BINARY_REPRESENTATION => {
                    let number = place + 1;
                    let message =
                        format!("incorrect binary data format in bind parameter {number}");
                    Err(Error::new(error.state, message))
                }
                read => read.map(Parameter::Text),
            },
        }
    };
    bind.parameters.iter().enumerate().map(parameter).collect()
}
