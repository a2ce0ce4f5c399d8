//! The tunnel between two hosts of one process, with plain sockets in the place of dbsp.

use super::*;
use crate::exchange::ExchangeOptions;
use std::io::{Read, Write};
use std::net::TcpStream as StdStream;
use std::sync::mpsc::{Receiver, channel};
use stillframe_protocol::{Epoch, Fingerprint, Generation};
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

/// Two hosts' ends of the tunnel; each believes in a generation, and in what it computes.
fn pair(circuits: [(u64, u128); 2]) -> Pair {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let next: Vec<_> = circuits
        .iter()
        .map(|(g, _)| NextExchange::bind(&ExchangeOptions::default(), Generation(*g)).unwrap())
        .collect();
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
            circuit: Fingerprint(circuits[host].1),
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
    let pair = pair([(1, 3), (1, 3)]);
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
    let next: Vec<_> = (0..2)
        .map(|_| NextExchange::bind(&ExchangeOptions::default(), Generation(1)).unwrap())
        .collect();
    let acceptors: Vec<_> = next.iter().map(|next| next.reported().1).collect();
    let lost: Lost = Arc::new(|host| panic!("host {host} is there"));
    let mut opened = next.into_iter().zip(0..).map(|(next, host)| {
        let (epoch, generation, acceptors) = (Epoch(1), Generation(1), acceptors.clone());
        let place =
            Place { epoch, generation, circuit: Fingerprint(3), host: HostId(host), acceptors };
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
    let Pair { runtime: _runtime, tunnels, ends, acceptors, .. } = pair([(1, 3), (1, 3)]);
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
    let Pair { runtime: _runtime, mut tunnels, ends, lost, .. } = pair([(1, 3), (1, 3)]);
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
fn another_circuit_is_refused() {
    // Of another generation, or one that computes something else.
    for other in [(2, 3), (1, 4)] {
        let Pair { runtime: _runtime, tunnels, ends, acceptors, lost } = pair([(1, 3), other]);
        let mut client = connect(ends[0].addresses[1]);
        client.write_all(b"message").unwrap();
        ends[1].listener.set_nonblocking(true).unwrap();
        assert_eq!(lost.recv_timeout(DEADLINE), Ok(HostId(1)));

        // A stranger who speaks first is answered with a refusal.
        let mut stranger = connect(acceptors[1]);
        stranger
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: nobody\r\n\r\n")
            .unwrap();
        let mut answer = [9];
        stranger.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [0]);

        assert!(ends[1].listener.accept().is_err(), "nothing has reached dbsp");
        for tunnel in tunnels {
            tunnel.close();
        }
    }
}
