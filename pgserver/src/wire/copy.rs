//! COPY FROM STDIN: the client sends data, in pieces that are cut anywhere. COPY TO STDOUT: it gets
//! them, a row in each.

use futures::StreamExt;
use pgwire::messages::copy::{CopyData, CopyDone, CopyInResponse, CopyOutResponse};
use stillframe_sql::{CopyOut, Error, SqlState};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::backend::Backend;
use super::connection::Connection;
use super::frontend::{Message, violation};
use super::incoming::{Ended, Interruption};

/// The format code of text or of binary, for the whole and for each column.
fn code(is_binary: bool) -> i8 {
    is_binary.into()
}

impl<B, R, W> Connection<B, R, W>
where
    B: Backend,
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Sends the data of a COPY; returns the command tag.
    pub(super) async fn copy_out(
        &mut self,
        mut copy: CopyOut,
        deadline: Option<Instant>,
    ) -> Result<String, Interruption> {
        let count = i16::try_from(copy.columns)
            .map_err(|_| Error::new(SqlState::TOO_MANY_COLUMNS, "too many columns"))?;
        let code = code(copy.is_binary);
        let codes = vec![code.into(); copy.columns];
        self.outgoing.put(&CopyOutResponse::new(code, count, codes))?;
        let mut sent = 0_u64;
        while let Some(lines) = self.incoming.attend(deadline, copy.lines.next()).await? {
            for line in lines? {
                sent += 1;
                self.outgoing.put(&CopyData::new(line.into()))?;
                if self.outgoing.is_full() {
                    self.send(deadline).await?;
                }
            }
        }
        self.outgoing.put(&CopyDone::new())?;
        Ok(format!("COPY {}", sent - copy.lines_beside))
    }

    /// Takes the data of a COPY; returns the command tag. When it fails nothing remains.
    pub(super) async fn copy_in(
        &mut self,
        mut copy: B::CopyIn,
        deadline: Option<Instant>,
    ) -> Result<String, Interruption> {
        let columns = B::copy_columns(&copy);
        let count = i16::try_from(columns)
            .map_err(|_| Error::new(SqlState::TOO_MANY_COLUMNS, "too many columns"))?;
        let code = code(B::is_binary_copy(&copy));
        self.outgoing.put(&CopyInResponse::new(code, count, vec![code.into(); columns]))?;
        self.flush().await?;
        loop {
            let frame = self.incoming.next_of_copy(deadline).await?;
            let kind = frame.kind;
            match Message::read(frame)? {
                Message::CopyData(data) => {
                    let written = B::copy_write(&mut copy, &data);
                    self.incoming.attend(deadline, written).await??;
                }
                Message::CopyDone => {
                    return Ok(self.incoming.attend(deadline, B::copy_finish(copy)).await??);
                }
                Message::CopyFail(reason) => {
                    let message = format!("COPY from stdin failed: {reason}");
                    return Err(Error::new(SqlState::QUERY_CANCELED, message).into());
                }
                // A client may end its request before it knows that data is wanted.
                Message::Flush | Message::Sync => {}
                Message::Terminate => return Err(Ended::Terminated.into()),
                _ => {
                    let message =
                        format!("unexpected message type 0x{kind:02X} during COPY from stdin");
                    return Err(violation(message).into());
                }
            }
        }
    }
}
