//! Messages over a socket: MessagePack with names, so that what both sides know is understood even if
//! one of them is of another build, and pieces of bytes after it.
//!
//! ```text
//! length  number of pieces  message     length  piece     length  piece ...
//! 4       4                 ..          4       ..        4       ..
//! ```

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::{SinkExt, StreamExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// The longest message or piece of one.
const LENGTH_MAX: usize = 1 << 30;
/// How long it may take to reach a process.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// A connection on which messages travel both ways.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Framed<TcpStream, LengthDelimitedCodec>,
}

/// Why no message was sent or received.
#[derive(Debug, Error)]
pub(crate) enum WireError {
    /// The message can't be sent to anyone.
    #[error("a message has no form: {0}")]
    Formless(String),
    /// The connection is broken.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It ended where a message was expected.
    #[error("the connection was closed")]
    Closed,
    /// What came isn't what was expected.
    #[error("a message can't be read: {0}")]
    Malformed(String),
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, WireError> {
        let connecting = TcpStream::connect(address);
        let connected = tokio::time::timeout(CONNECT_TIME_MAX, connecting).await;
        Self::new(connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??)
    }

    pub(crate) fn new(stream: TcpStream) -> Result<Self, WireError> {
        stream.set_nodelay(true)?;
        let codec = LengthDelimitedCodec::builder().max_frame_length(LENGTH_MAX).new_codec();
        Ok(Self { stream: Framed::new(stream, codec) })
    }

    /// Sends a message, and pieces of bytes that belong to it.
    pub(crate) async fn send<T: Serialize>(
        &mut self,
        message: &T,
        pieces: Vec<Bytes>,
    ) -> Result<(), WireError> {
        let count = u32::try_from(pieces.len()).map_err(|e| WireError::Formless(e.to_string()))?;
        let mut head = BytesMut::new().writer();
        head.get_mut().put_u32(count);
        // A plan nests as deep as the statement that it was made of.
        let mut serializer = rmp_serde::Serializer::new(&mut head).with_struct_map();
        serializer.unstable_set_max_depth(usize::MAX);
        message.serialize(&mut serializer).map_err(|e| WireError::Formless(e.to_string()))?;
        let head = head.into_inner().freeze();
        if let Some(long) = std::iter::once(&head).chain(&pieces).find(|b| b.len() > LENGTH_MAX) {
            return Err(WireError::Formless(format!("{} bytes at once", long.len())));
        }
        self.stream.feed(head).await?;
        for piece in pieces {
            self.stream.feed(piece).await?;
        }
        SinkExt::<Bytes>::flush(&mut self.stream).await?;
        Ok(())
    }

    /// The next message and its pieces; [`WireError::Closed`] if there is none.
    pub(crate) async fn receive<T: DeserializeOwned>(
        &mut self,
    ) -> Result<(T, Vec<Bytes>), WireError> {
        let mut head = self.frame().await?;
        let count = head.try_get_u32().map_err(|e| WireError::Malformed(e.to_string()))?;
        let mut deserializer = rmp_serde::Deserializer::from_read_ref(head.as_ref());
        deserializer.set_max_depth(usize::MAX);
        let message = T::deserialize(&mut deserializer)
            .map_err(|error| WireError::Malformed(error.to_string()))?;
        let mut pieces = Vec::new();
        for _ in 0..count {
            pieces.push(self.frame().await?);
        }
        Ok((message, pieces))
    }

    async fn frame(&mut self) -> Result<Bytes, WireError> {
        match self.stream.next().await {
            Some(frame) => Ok(frame?.freeze()),
            None => Err(WireError::Closed),
        }
    }
}
