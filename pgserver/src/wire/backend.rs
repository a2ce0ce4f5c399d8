//! What a connection needs of the session behind it; tests put a scripted one in its place.

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use stillframe_sql::{
    CopyIn, CopyOut, Error, IdleLimit, Notice, Notification, OutputColumn, Parameter, Prepared,
    Progress, Request, Response, Rows, Session, Statement, TextFormat, TransactionStatus, Type,
};

/// A session, as the wire sees it. Contracts are those of [`Session`].
pub(crate) trait Backend: Send + 'static {
    /// A parsed statement.
    type Statement: Send + 'static;
    /// A planned statement.
    type Prepared: Send + Sync + 'static;
    /// A COPY under way.
    type CopyIn: Send + 'static;

    fn parse(&self, text: &str) -> Result<Vec<Self::Statement>, Error>;

    fn prepare(
        &mut self,
        statement: Self::Statement,
        declared: &[Option<Type>],
    ) -> impl Future<Output = Result<Self::Prepared, Error>> + Send;

    fn parameters(prepared: &Self::Prepared) -> &[Type];

    fn columns(prepared: &Self::Prepared) -> Option<&[OutputColumn]>;

    fn check(&self, prepared: &Self::Prepared, parameters: &[Parameter]) -> Result<(), Error>;

    fn execute(
        &mut self,
        prepared: &Self::Prepared,
        parameters: Vec<Parameter>,
    ) -> impl Future<Output = Result<Answer<Self::CopyIn>, Error>> + Send;

    fn copy_columns(copy: &Self::CopyIn) -> usize;

    fn is_binary_copy(copy: &Self::CopyIn) -> bool;

    fn copy_write(
        copy: &mut Self::CopyIn,
        data: &[u8],
    ) -> impl Future<Output = Result<(), Error>> + Send;

    fn copy_finish(copy: Self::CopyIn) -> impl Future<Output = Result<String, Error>> + Send;

    fn keep(&mut self, name: &str, prepared: Option<Arc<Self::Prepared>>) -> Result<(), Error>;

    fn kept(&self, name: &str) -> Result<Option<Arc<Self::Prepared>>, Error>;

    fn forget(&mut self, name: &str);

    fn fail(&mut self);

    fn begin_request(&mut self, request: Request);

    fn finish_request(&mut self) -> impl Future<Output = Result<(), Error>> + Send;

    fn status(&self) -> TransactionStatus;

    fn take_notices(&mut self) -> Vec<Notice>;

    fn set(&mut self, name: &str, value: &str) -> Result<(), Error>;

    fn reported_settings(&self) -> Vec<(&'static str, String)>;

    fn statement_timeout(&self) -> Option<Duration>;

    fn idle_limit(&self) -> Option<IdleLimit>;

    fn take_notifications(&mut self) -> Vec<Notification>;

    fn notified(&self) -> impl Future<Output = ()> + Send + 'static;

    fn columns_of_cursor(&self, name: &str) -> Option<&[OutputColumn]>;

    fn forget_cursor(&mut self, name: &str);

    fn cursor_of(statement: &Self::Statement) -> Option<&str>;

    fn adopt_cursor(&mut self, name: &str, rows: Rows);

    fn fetch_forward(
        &self,
        name: &str,
        rows_max: Option<NonZeroUsize>,
    ) -> impl Future<Output = Result<Rows, Error>> + Send;

    /// How values are written now.
    fn text_format(&self) -> TextFormat;

    fn progress(&self) -> Progress;
}

/// What a statement answers.
pub(crate) enum Answer<C> {
    /// Rows, as they come.
    Rows(Rows),
    /// Done, with its command tag.
    Complete(String),
    /// The data of a COPY is wanted.
    CopyIn(C),
    /// The data of a COPY, as it comes.
    CopyOut(CopyOut),
}

impl Backend for Session {
    type Statement = Statement;
    type Prepared = Prepared;
    type CopyIn = CopyIn;

    fn parse(&self, text: &str) -> Result<Vec<Statement>, Error> {
        Self::parse(self, text)
    }

    async fn prepare(
        &mut self,
        statement: Statement,
        declared: &[Option<Type>],
    ) -> Result<Prepared, Error> {
        Self::prepare(self, statement, declared).await
    }

    fn parameters(prepared: &Prepared) -> &[Type] {
        prepared.parameters()
    }

    fn columns(prepared: &Prepared) -> Option<&[OutputColumn]> {
        prepared.columns()
    }

    fn check(&self, prepared: &Prepared, parameters: &[Parameter]) -> Result<(), Error> {
        Self::check(self, prepared, parameters)
    }

    async fn execute(
        &mut self,
        prepared: &Prepared,
        parameters: Vec<Parameter>,
    ) -> Result<Answer<CopyIn>, Error> {
        Ok(match Self::execute(self, prepared, parameters).await? {
            Response::Rows(rows) => Answer::Rows(rows),
            Response::Complete { tag } => Answer::Complete(tag),
            Response::CopyIn(copy) => Answer::CopyIn(copy),
            Response::CopyOut(copy) => Answer::CopyOut(copy),
        })
    }

    fn copy_columns(copy: &CopyIn) -> usize {
        copy.columns
    }

    fn is_binary_copy(copy: &CopyIn) -> bool {
        copy.is_binary
    }

    async fn copy_write(copy: &mut CopyIn, data: &[u8]) -> Result<(), Error> {
        copy.write(data).await
    }

    async fn copy_finish(copy: CopyIn) -> Result<String, Error> {
        copy.finish().await
    }

    fn keep(&mut self, name: &str, prepared: Option<Arc<Prepared>>) -> Result<(), Error> {
        Self::keep(self, name, prepared)
    }

    fn kept(&self, name: &str) -> Result<Option<Arc<Prepared>>, Error> {
        Self::kept(self, name)
    }

    fn forget(&mut self, name: &str) {
        Self::forget(self, name);
    }

    fn fail(&mut self) {
        Self::fail(self);
    }

    fn begin_request(&mut self, request: Request) {
        Self::begin_request(self, request);
    }

    async fn finish_request(&mut self) -> Result<(), Error> {
        Self::finish_request(self).await
    }

    fn status(&self) -> TransactionStatus {
        self.transaction_status()
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        Self::take_notices(self)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        Self::set(self, name, value)
    }

    fn reported_settings(&self) -> Vec<(&'static str, String)> {
        Self::reported_settings(self)
    }

    fn statement_timeout(&self) -> Option<Duration> {
        Self::statement_timeout(self)
    }

    fn idle_limit(&self) -> Option<IdleLimit> {
        Self::idle_limit(self)
    }

    fn take_notifications(&mut self) -> Vec<Notification> {
        Self::take_notifications(self)
    }

    fn notified(&self) -> impl Future<Output = ()> + Send + 'static {
        Self::notified(self)
    }

    fn columns_of_cursor(&self, name: &str) -> Option<&[OutputColumn]> {
        Self::columns_of_cursor(self, name)
    }

    fn forget_cursor(&mut self, name: &str) {
        Self::forget_cursor(self, name);
    }

    fn cursor_of(statement: &Statement) -> Option<&str> {
        statement.cursor()
    }

    fn adopt_cursor(&mut self, name: &str, rows: Rows) {
        Self::adopt_cursor(self, name, rows);
    }

    async fn fetch_forward(
        &self,
        name: &str,
        rows_max: Option<NonZeroUsize>,
    ) -> Result<Rows, Error> {
        Self::fetch_forward(self, name, rows_max).await
    }

    fn text_format(&self) -> TextFormat {
        Self::text_format(self)
    }

    fn progress(&self) -> Progress {
        Self::progress(self)
    }
}
