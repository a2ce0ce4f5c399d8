//! Carries dbsp's exchange between this host and its peers, for the life of one circuit.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use stillframe_protocol::HostId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::handshake::{Answer, Hello};
use super::{NextExchange, Place};

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
        let mut tunnel = Self { runtime: runtime.clone(), admit, close, tasks: JoinSet::new() };

        let expected = place.clone();
        tunnel.serve(next.acceptor, &closed, move |stream, stopped| {
            accept(stream, expected.clone(), local, admitted.clone(), stopped)
        })?;

        let mut addresses = Vec::with_capacity(place.acceptors.len());
        for (peer, acceptor) in (0..).map(HostId).zip(&place.acceptors) {
            if peer == place.host {
                addresses.push(local);
                continue;
            }
            let forwarder = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            addresses.push(forwarder.local_addr()?);
            let hello = Hello {
                epoch: place.epoch,
                generation: place.generation,
                from: place.host,
                to: peer,
            };
            let peer = Peer { hello, acceptor: *acceptor, lost: Arc::clone(lost) };
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
        let Self { runtime, close, mut tasks, .. } = self;
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

/// The accepting side: lets a proper peer through to dbsp's listener.
async fn accept(
    mut peer: TcpStream,
    place: Place,
    dbsp: SocketAddr,
    mut admitted: watch::Receiver<bool>,
    mut stopped: Stopped,
) -> io::Result<()> {
    peer.set_nodelay(true)?;
    let welcome = |hello: &Hello| {
        hello.epoch == place.epoch
            && hello.generation == place.generation
            && hello.to == place.host
            && hello.from != place.host
            && (hello.from.0 as usize) < place.acceptors.len()
    };
    let hello = tokio::select! {
        hello = tokio::time::timeout(HELLO_TIMEOUT, Hello::receive(&mut peer, welcome)) => hello??,
        () = stopped.wait() => return Ok(()),
    };
    if hello.is_none() {
        warn!(epoch = %place.epoch, host = %place.host, "exchange connection was refused");
        return Ok(());
    }
    tokio::select! {
        // A sender that is gone has closed the tunnel.
        _ = admitted.wait_for(|admitted| *admitted) => {}
        () = stopped.wait() => return Ok(()),
    }
    let mut dbsp = TcpStream::connect(dbsp).await?;
    dbsp.set_nodelay(true)?;
    let mut uncounted = 0;
    tokio::select! {
        ended = splice(&mut peer, &mut dbsp, &mut uncounted) => ended,
        () = stopped.wait() => Ok(()),
    }
}

/// A host as this one reaches it.
#[derive(Clone)]
struct Peer {
    hello: Hello,
    acceptor: SocketAddr,
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
    async fn dial(&self) -> TcpStream {
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

    async fn introduce(&self) -> io::Result<(TcpStream, Answer)> {
        let mut stream = TcpStream::connect(self.acceptor).await?;
        stream.set_nodelay(true)?;
        let answer = self.hello.introduce(&mut stream).await?;
        Ok((stream, answer))
    }
}

/// Copies both ways until one side ends. Counts what went to `left`.
async fn splice(left: &mut TcpStream, right: &mut TcpStream, received: &mut u64) -> io::Result<()> {
    let (left_reader, left_writer) = left.split();
    let (right_reader, right_writer) = right.split();
    let mut uncounted = 0;
    // Whoever ends first ends both: dbsp never closes one direction alone.
    tokio::select! {
        ended = pump(left_reader, right_writer, &mut uncounted) => ended,
        ended = pump(right_reader, left_writer, received) => ended,
    }
}

async fn pump(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, count: &mut u64) -> io::Result<()> {
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
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream as StdStream;
    use std::sync::mpsc::{Receiver, channel};
    use stillframe_protocol::{Epoch, Generation};
    use tokio::runtime::Runtime;

    const DEADLINE: Duration = Duration::from_secs(10);

    struct Pair {
        runtime: Runtime,
        tunnels: Vec<Tunnel>,
        ends: Vec<Ends>,
        acceptors: Vec<SocketAddr>,
        /// What the hosts have lost, in order.
        lost: Receiver<HostId>,
    }

    /// Two hosts' ends of the tunnel; the second host believes in another generation if asked to.
    fn pair(generations: [u64; 2]) -> Pair {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let next: Vec<_> =
            generations.iter().map(|g| NextExchange::bind(Generation(*g)).unwrap()).collect();
        let acceptors: Vec<_> = next.iter().map(|next| next.reported().1).collect();
        let (sender, lost) = channel();
        let tell: Lost = Arc::new(move |host| {
            // A test that has ended doesn't want to know.
            let _ = sender.send(host);
        });
        let mut tunnels = Vec::new();
        let mut ends = Vec::new();
        for (host, next) in next.into_iter().enumerate() {
            let place = Place {
                epoch: Epoch(1),
                generation: next.reported().0,
                host: HostId(host as u32),
                acceptors: acceptors.clone(),
            };
            let (tunnel, end) = Tunnel::open(runtime.handle(), next, &place, &tell).unwrap();
            tunnel.admit();
            tunnels.push(tunnel);
            ends.push(end);
        }
        Pair { runtime, tunnels, ends, acceptors, lost }
    }

    fn accept_at(listener: &StdListener) -> StdStream {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    fn connect(to: SocketAddr) -> StdStream {
        let stream = StdStream::connect(to).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    #[test]
    fn carries_bytes_both_ways() {
        let pair = pair([1, 1]);
        let mut client = connect(pair.ends[0].addresses[1]);
        client.write_all(b"message").unwrap();
        let mut server = accept_at(&pair.ends[1].listener);
        let mut bytes = [0; 7];
        server.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"message");
        server.write_all(&1_u64.to_le_bytes()).unwrap();
        let mut acknowledgement = [0; 8];
        client.read_exact(&mut acknowledgement).unwrap();
        assert_eq!(u64::from_le_bytes(acknowledgement), 1);

        drop(server);
        assert_eq!(client.read(&mut bytes).unwrap(), 0, "the end is carried too");
    }

    #[test]
    fn nothing_comes_through_before_it_is_admitted() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let next: Vec<_> = (0..2).map(|_| NextExchange::bind(Generation(1)).unwrap()).collect();
        let acceptors: Vec<_> = next.iter().map(|next| next.reported().1).collect();
        let lost: Lost = Arc::new(|host| panic!("host {host} is there"));
        let mut opened = next.into_iter().zip(0..).map(|(next, host)| {
            let (epoch, generation, acceptors) = (Epoch(1), Generation(1), acceptors.clone());
            let place = Place { epoch, generation, host: HostId(host), acceptors };
            Tunnel::open(runtime.handle(), next, &place, &lost).unwrap()
        });
        let ((first, from), (second, to)) = (opened.next().unwrap(), opened.next().unwrap());
        let mut client = connect(from.addresses[1]);
        client.write_all(b"early").unwrap();
        to.listener.set_nonblocking(true).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(to.listener.accept().is_err(), "dbsp was reached");
        to.listener.set_nonblocking(false).unwrap();
        second.admit();
        let mut bytes = [0; 5];
        accept_at(&to.listener).read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"early");
        first.close();
        second.close();
    }

    #[test]
    fn closing_silences_clients_and_closes_every_port() {
        let Pair { runtime: _runtime, tunnels, ends, acceptors, .. } = pair([1, 1]);
        let mut client = connect(ends[0].addresses[1]);
        client.write_all(b"message").unwrap();
        let mut server = accept_at(&ends[1].listener);
        server.read_exact(&mut [0; 7]).unwrap();
        // An acknowledgement that is cut short.
        server.write_all(&[5, 0, 0]).unwrap();
        client.read_exact(&mut [0; 3]).unwrap();

        let reader = std::thread::spawn(move || {
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).unwrap();
            rest
        });
        for tunnel in tunnels {
            tunnel.close();
        }
        let rest = reader.join().unwrap();
        assert_eq!(rest.len(), 5 + 8);
        assert_eq!(rest[5..], u64::MAX.to_le_bytes());
        assert_eq!(server.read(&mut [0; 8]).unwrap(), 0);
        for address in [ends[0].addresses[1], ends[1].addresses[0], acceptors[0], acceptors[1]] {
            assert!(StdStream::connect(address).is_err());
        }
    }

    #[test]
    fn a_host_that_has_gone_is_noticed_without_anything_to_send() {
        let Pair { runtime: _runtime, mut tunnels, ends, lost, .. } = pair([1, 1]);
        let mut client = connect(ends[0].addresses[1]);
        client.write_all(b"message").unwrap();
        let mut server = accept_at(&ends[1].listener);
        server.read_exact(&mut [0; 7]).unwrap();
        assert!(lost.try_recv().is_err());
        // Its part of the circuit is given up.
        drop(tunnels.pop());
        assert_eq!(lost.recv_timeout(DEADLINE), Ok(HostId(1)));
    }

    #[test]
    fn another_generation_is_refused() {
        let Pair { runtime: _runtime, tunnels, ends, acceptors, lost } = pair([1, 2]);
        let mut client = connect(ends[0].addresses[1]);
        client.write_all(b"message").unwrap();
        ends[1].listener.set_nonblocking(true).unwrap();
        assert_eq!(lost.recv_timeout(DEADLINE), Ok(HostId(1)));

        // A stranger who speaks first is answered with a refusal.
        let mut stranger = connect(acceptors[1]);
        stranger.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = [9];
        stranger.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [0]);

        assert!(ends[1].listener.accept().is_err(), "nothing has reached dbsp");
        for tunnel in tunnels {
            tunnel.close();
        }
    }
}
