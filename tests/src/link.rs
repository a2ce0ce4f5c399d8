//! A link between two processes, which a test can make slow.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// So many pieces may be on their way at once; who sends more waits.
const PIECES_MAX: usize = 4096;
const PIECE_BYTES: usize = 16 * 1024;

/// A proxy for TCP. What is sent over it arrives later, if it is told so: all bytes, in order, and
/// both ways.
#[derive(Debug)]
pub struct Link {
    delay_ms: Arc<AtomicU64>,
    proxy: JoinHandle<()>,
}

impl Link {
    /// Leads from an address to another. Must be called inside a Tokio runtime.
    pub fn open(from: SocketAddr, to: SocketAddr) -> Self {
        let listener = std::net::TcpListener::bind(from)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .and_then(TcpListener::from_std)
            .unwrap_or_else(|error| panic!("cannot listen on {from}: {error}"));
        let delay_ms = Arc::new(AtomicU64::new(0));
        let proxy = tokio::spawn(carry_all(listener, to, Arc::clone(&delay_ms)));
        Self { delay_ms, proxy }
    }

    /// How late arrives what is sent from now on.
    pub fn delay(&self, delay: Duration) {
        let delay_ms = u64::try_from(delay.as_millis()).expect("a reasonable delay");
        self.delay_ms.store(delay_ms, Ordering::Relaxed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.proxy.abort();
    }
}

async fn carry_all(listener: TcpListener, to: SocketAddr, delay_ms: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.expect("connections can be accepted");
                connections.spawn(carry(stream, to, Arc::clone(&delay_ms)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(near: TcpStream, to: SocketAddr, delay_ms: Arc<AtomicU64>) -> io::Result<()> {
    let far = TcpStream::connect(to).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near_reader, near_writer) = near.into_split();
    let (far_reader, far_writer) = far.into_split();
    let there = pump(near_reader, far_writer, &delay_ms);
    let back = pump(far_reader, near_writer, &delay_ms);
    // Whoever ends first ends both, when all it has said has arrived.
    tokio::select! {
        ended = there => ended,
        ended = back => ended,
    }
}

async fn pump(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    delay_ms: &AtomicU64,
) -> io::Result<()> {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES_MAX);
    let reads = async move {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let read = from.read(&mut buffer).await?;
            if read == 0 {
                return io::Result::Ok(());
            }
            let due = Instant::now() + Duration::from_millis(delay_ms.load(Ordering::Relaxed));
            if sender.send((due, buffer[..read].to_vec())).await.is_err() {
                return Ok(());
            }
        }
    };
    let writes = async {
        while let Some((due, piece)) = pieces.recv().await {
            sleep_until(due).await;
            to.write_all(&piece).await?;
        }
        io::Result::Ok(())
    };
    tokio::try_join!(reads, writes).map(|((), ())| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_arrive_in_order_and_not_before_their_time() {
        let to = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let link = Link::open(free, to.local_addr().unwrap());
        let mut near = TcpStream::connect(free).await.unwrap();
        let (mut far, _) = to.accept().await.unwrap();
        let mut read = [0; 2];
        near.write_all(b"ab").await.unwrap();
        far.read_exact(&mut read).await.unwrap();
        let delay = Duration::from_millis(200);
        link.delay(delay);
        let began = Instant::now();
        near.write_all(b"c").await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        link.delay(Duration::ZERO);
        near.write_all(b"d").await.unwrap();
        far.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"cd");
        assert!(began.elapsed() >= delay);
    }
}
