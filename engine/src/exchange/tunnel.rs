//! Carries dbsp's exchange between this host and its peers, for the life of one circuit.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use stillframe_protocol::HostId;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::handshake::{Answer, Hello};
use super::{Duplex, NextExchange, Place, Secure, lost_tasks};

/// Bytes read at once. Exchanged batches may be large.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long a connection may take to introduce itself.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait before a peer is dialled again.
const REDIAL_PAUSE: Duration = Duration::from_millis(200);
/// How long dbsp may take to close a connection that has been told of its end.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// The live tunnel of one circuit.
#[derive(Debug)]
pub(crate) struct Tunnel {
    runtime: Handle,
    admit: watch::Sender<bool>,
    close: watch::Sender<bool>,
    tasks: JoinSet<()>,
    /// Where dbsp's clients connect to.
    forwarders: Vec<SocketAddr>,
}

/// Is told of a host that can't be part of the circuit any more: it refuses connections.
///
/// A host that is merely silent, or cut off, is waited for.
pub(crate) type Lost = Arc<dyn Fn(HostId) + Send + Sync>;

/// What dbsp needs to know of a tunnel.
pub(crate) struct Ends {
    /// For dbsp to accept connections from.
    pub(crate) listener: StdListener,
    /// Where dbsp reaches each host, by place; its own place has the listener's address.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Tunnel {
    /// Opens this host's end of the tunnel.
    pub(crate) fn open(
        runtime: &Handle,
        next: NextExchange,
        place: &Place,
        lost: &Lost,
    ) -> io::Result<(Self, Ends)> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let local = listener.local_addr()?;
        let (close, closed) = watch::channel(false);
        let (admit, admitted) = watch::channel(false);
        let mut tunnel = Self {
            runtime: runtime.clone(),
            admit,
            close,
            tasks: JoinSet::new(),
            forwarders: Vec::new(),
        };

        let acceptor = Acceptor { place: place.clone(), dbsp: local, secure: next.secure.clone() };
        tunnel.serve(next.acceptor, &closed, move |stream, stopped| {
            acceptor.clone().accept(stream, admitted.clone(), stopped)
        })?;

        let mut addresses = Vec::with_capacity(place.acceptors.len());
        for (peer, acceptor) in (0..).map(HostId).zip(&place.acceptors) {
            if peer == place.host {
                addresses.push(local);
                continue;
            }
            let forwarder = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let address = forwarder.local_addr()?;
            lost_tasks::begin_client(address);
            tunnel.forwarders.push(address);
            addresses.push(address);
            let hello = Hello {
                epoch: place.epoch,
                generation: place.generation,
                circuit: place.circuit,
                from: place.host,
                to: peer,
            };
            let secure = next.secure.clone();
            let peer = Peer { hello, acceptor: *acceptor, secure, lost: Arc::clone(lost) };
            tunnel.serve(forwarder, &closed, move |stream, stopped| {
                forward(stream, peer.clone(), stopped)
            })?;
        }
        Ok((tunnel, Ends { listener, addresses }))
    }

    /// Lets through to dbsp what peers have sent. Not before this host's part of the circuit is
    /// built: dbsp loses messages for operators that it doesn't know yet.
    pub(crate) fn admit(&self) {
        self.admit.send_replace(true);
    }

    /// Closes every socket; returns when it is done. To be called by a plain thread, when dbsp
    /// needs the tunnel no more.
    pub(crate) fn close(self) {
        let Self { runtime, close, mut tasks, forwarders, .. } = self;
        lost_tasks::end_clients(forwarders);
        close.send_replace(true);
        runtime.block_on(async { while tasks.join_next().await.is_some() {} });
    }

    /// Serves every connection to a listener until the tunnel is closed.
    fn serve<F>(
        &mut self,
        listener: StdListener,
        closed: &watch::Receiver<bool>,
        connection: impl Fn(TcpStream, Stopped) -> F + Send + 'static,
    ) -> io::Result<()>
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        listener.set_nonblocking(true)?;
        let listener = {
            let _context = self.runtime.enter();
            TcpListener::from_std(listener)?
        };
        let mut closed = Stopped(closed.clone());
        self.tasks.spawn_on(
            async move {
                // First no new connection, then no old one: who is cut off must not come again.
                let (stop, stopped) = watch::channel(false);
                let mut connections = JoinSet::new();
                loop {
                    let stream = tokio::select! {
                        accepted = listener.accept() => accepted,
                        Some(ended) = connections.join_next() => {
                            report(ended);
                            continue;
                        }
                        () = closed.wait() => break,
                    };
                    match stream {
                        Ok((stream, _)) => {
                            connections.spawn(connection(stream, Stopped(stopped.clone())));
                        }
                        Err(error) => {
                            warn!(%error, "exchange connection was not accepted");
                            tokio::time::sleep(REDIAL_PAUSE).await;
                        }
                    }
                }
                drop(listener);
                stop.send_replace(true);
                while let Some(ended) = connections.join_next().await {
                    report(ended);
                }
            },
            &self.runtime,
        );
        Ok(())
    }
}

fn report(ended: Result<io::Result<()>, tokio::task::JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "exchange connection ended"),
        Err(error) => warn!(%error, "exchange connection failed"),
    }
}

/// Becomes true once, and stays so.
#[derive(Clone)]
struct Stopped(watch::Receiver<bool>);

impl Stopped {
    async fn wait(&mut self) {
        // A sender that is gone has nothing left to stop.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

/// The accepting side: lets proper peers through to dbsp's listener.
#[derive(Clone)]
struct Acceptor {
    place: Place,
    dbsp: SocketAddr,
    secure: Option<Arc<dyn Secure>>,
}

impl Acceptor {
    async fn accept(
        self,
        stream: TcpStream,
        mut admitted: watch::Receiver<bool>,
        mut stopped: Stopped,
    ) -> io::Result<()> {
        let introduced = tokio::select! {
            introduced = tokio::time::timeout(HELLO_TIMEOUT, self.introduced(stream)) => introduced??,
            () = stopped.wait() => return Ok(()),
        };
        let Some(mut peer) = introduced else {
            let Place { epoch, host, .. } = &self.place;
            warn!(%epoch, %host, "exchange connection was refused");
            return Ok(());
        };
        tokio::select! {
            // A sender that is gone has closed the tunnel.
            _ = admitted.wait_for(|admitted| *admitted) => {}
            () = stopped.wait() => return Ok(()),
        }
        let mut dbsp = TcpStream::connect(self.dbsp).await?;
        dbsp.set_nodelay(true)?;
        let mut uncounted = 0;
        tokio::select! {
            ended = splice(&mut peer, &mut dbsp, &mut uncounted) => ended,
            () = stopped.wait() => Ok(()),
        }
    }

    /// A peer that has shown that it means this circuit; none if it doesn't.
    async fn introduced(&self, stream: TcpStream) -> io::Result<Option<Box<dyn Duplex>>> {
        stream.set_nodelay(true)?;
        let mut peer: Box<dyn Duplex> = match &self.secure {
            Some(secure) => secure.accept(stream).await?,
            None => Box::new(stream),
        };
        let place = &self.place;
        let welcome = |hello: &Hello| {
            hello.epoch == place.epoch
                && hello.generation == place.generation
                && hello.circuit == place.circuit
                && hello.to == place.host
                && hello.from != place.host
                && (hello.from.0 as usize) < place.acceptors.len()
        };
        Ok(Hello::receive(&mut peer, welcome).await?.map(|_| peer))
    }
}

/// A host as this one reaches it.
#[derive(Clone)]
struct Peer {
    hello: Hello,
    acceptor: SocketAddr,
    secure: Option<Arc<dyn Secure>>,
    lost: Lost,
}

/// The connecting side: carries what dbsp sends to a peer.
async fn forward(mut dbsp: TcpStream, peer: Peer, mut stopped: Stopped) -> io::Result<()> {
    dbsp.set_nodelay(true)?;
    let mut received = 0;
    let carried = async {
        // The client of a circuit that ended long ago has nothing to say.
        dbsp.readable().await?;
        let mut stream = peer.dial().await;
        let ended = splice(&mut dbsp, &mut stream, &mut received).await;
        // Is the peer still there? dbsp asks only if it has something to send.
        drop(peer.dial().await);
        ended
    };
    tokio::select! {
        ended = carried => ended,
        () = stopped.wait() => farewell(&mut dbsp, received).await,
    }
}

impl Peer {
    /// Connects to the peer's acceptor, however long it takes: dbsp would only try again at once.
    async fn dial(&self) -> Box<dyn Duplex> {
        loop {
            let refused = match self.introduce().await {
                Ok((stream, Answer::Welcome)) => return stream,
                Ok((_, Answer::Refused)) => true,
                Err(error) => error.kind() == io::ErrorKind::ConnectionRefused,
            };
            if refused {
                (self.lost)(self.hello.to);
            }
            tokio::time::sleep(REDIAL_PAUSE).await;
        }
    }

    async fn introduce(&self) -> io::Result<(Box<dyn Duplex>, Answer)> {
        let stream = TcpStream::connect(self.acceptor).await?;
        stream.set_nodelay(true)?;
        let mut stream: Box<dyn Duplex> = match &self.secure {
            Some(secure) => secure.connect(stream).await?,
            None => Box::new(stream),
        };
        let answer = self.hello.introduce(&mut stream).await?;
        Ok((stream, answer))
    }
}

/// Copies both ways until one side ends. Counts what went to `left`.
async fn splice(
    left: &mut impl Duplex,
    right: &mut impl Duplex,
    received: &mut u64,
) -> io::Result<()> {
    let (left_reader, left_writer) = split(left);
    let (right_reader, right_writer) = split(right);
    let mut uncounted = 0;
    // Whoever ends first ends both: dbsp never closes one direction alone.
    tokio::select! {
        ended = pump(left_reader, right_writer, &mut uncounted) => ended,
        ended = pump(right_reader, left_writer, received) => ended,
    }
}

async fn pump(
    mut from: ReadHalf<impl Duplex>,
    mut to: WriteHalf<impl Duplex>,
    count: &mut u64,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            // Not `write_all`: the count must be right whenever this is given up.
            let written = to.write(rest).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            *count += written as u64;
            rest = &rest[written..];
        }
        // What is secured keeps bytes back until it is told.
        to.flush().await?;
    }
}

/// Tells a client of dbsp that all it has sent was received, so that it will have nothing to say
/// when it connects again to a port that is somebody else's by then, and lets it close.
///
/// What dbsp's server sends is nothing but such acknowledgements: a little-endian `u64` each, the
/// number of the next message it expects. One of them may have been cut short.
async fn farewell(dbsp: &mut TcpStream, received: u64) -> io::Result<()> {
    let cut = (received % 8) as usize;
    let mut words = vec![0; (8 - cut) % 8];
    words.extend(u64::MAX.to_le_bytes());
    let closed = async {
        dbsp.write_all(&words).await?;
        dbsp.shutdown().await?;
        while dbsp.read(&mut [0; 1024]).await? > 0 {}
        io::Result::Ok(())
    };
    match tokio::time::timeout(FAREWELL_TIMEOUT, closed).await {
        // dbsp resets the connection.
        Ok(Ok(()) | Err(_)) => Ok(()),
        Err(_) => {
            warn!("an exchange client did not close its connection");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
