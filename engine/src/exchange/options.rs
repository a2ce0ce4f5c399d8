//! How a host's part of the exchange is reached.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::Arc;

use async_trait::async_trait;
use stillframe_protocol::Generation;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// How a host's part of the exchange is reached. Default: on the loopback interface, unsecured.
#[derive(Clone, Debug)]
pub struct ExchangeOptions {
    /// Where it listens.
    pub listen: IpAddr,
    /// The ports it may use, in turns; any that are free, if there are none. A circuit has one for
    /// as long as it lives, and while it is replaced there are up to three.
    pub ports: Option<RangeInclusive<u16>>,
    /// Where the other hosts reach it, if not where it listens.
    pub advertise: Option<IpAddr>,
    /// How connections are secured, if they are.
    pub secure: Option<Arc<dyn Secure>>,
}

impl Default for ExchangeOptions {
    fn default() -> Self {
        Self { listen: Ipv4Addr::LOCALHOST.into(), ports: None, advertise: None, secure: None }
    }
}

impl ExchangeOptions {
    /// Listens on a port for one circuit.
    pub(super) fn bind(&self, generation: Generation) -> io::Result<TcpListener> {
        let Some(ports) = &self.ports else { return TcpListener::bind((self.listen, 0)) };
        let count = usize::from(ports.end().saturating_sub(*ports.start())) + 1;
        // Each circuit begins with another, so that a late connection to an old one meets nobody.
        let first = usize::try_from(generation.0).unwrap_or_default() % count;
        let ports = ports.clone().cycle().skip(first).take(count);
        let mut refused = io::ErrorKind::AddrInUse.into();
        for port in ports {
            match TcpListener::bind((self.listen, port)) {
                Ok(listener) => return Ok(listener),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

/// Secures connections between hosts: each side makes sure of the other before anything is said.
#[async_trait]
pub trait Secure: fmt::Debug + Send + Sync {
    /// Secures a connection that was accepted.
    async fn accept(&self, stream: TcpStream) -> io::Result<Box<dyn Duplex>>;

    /// Secures a connection that was made.
    async fn connect(&self, stream: TcpStream) -> io::Result<Box<dyn Duplex>>;
}

/// A connection, whatever it is made of.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circuits_take_turns_with_the_ports() {
        // Ports that were free a moment ago.
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let ports = free..=free.saturating_add(7);
        let options = ExchangeOptions { ports: Some(ports.clone()), ..Default::default() };
        let mut bound = vec![];
        while let Ok(listener) = options.bind(Generation(bound.len() as u64)) {
            assert!(ports.contains(&listener.local_addr().unwrap().port()));
            bound.push(listener);
        }
        assert!(!bound.is_empty() && bound.len() <= 8, "{bound:?}");
        let given_up = bound.pop().unwrap().local_addr().unwrap();
        assert_eq!(options.bind(Generation(0)).unwrap().local_addr().unwrap(), given_up);
    }
}
