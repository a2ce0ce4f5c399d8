//! Addresses to listen on, and who may reach them.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::Args;
use stillframe::Security;
use tokio::net::TcpListener;

use super::ServeError;

/// How processes of a cluster know each other.
#[derive(Debug, Args)]
pub(super) struct Peers {
    /// A folder with the cluster's certificates (ca.crt, node.crt and node.key, see make-certs):
    /// all connections between its processes are secured by TLS, and both sides must have one that
    /// the authority has signed. Without it processes are reached on loopback addresses only.
    #[arg(long, value_name = "FOLDER")]
    pub(super) certs: Option<PathBuf>,
}

impl Peers {
    pub(super) fn security(&self) -> Result<Security, ServeError> {
        let mutual = self.certs.as_deref().map(Security::mutual).transpose()?;
        Ok(mutual.unwrap_or_default())
    }

    /// Refuses an address that others than this machine could reach, or that leads off it, without
    /// certificates.
    pub(super) fn allows(&self, address: &str) -> Result<(), ServeError> {
        let loopback = resolve(address)?.iter().all(|address| address.ip().is_loopback());
        if loopback || self.certs.is_some() {
            return Ok(());
        }
        Err(ServeError::NotSecured(address.to_owned()))
    }
}

/// Refuses an address that clients of other machines could reach.
pub(super) fn must_be_loopback(address: &str) -> Result<(), ServeError> {
    if resolve(address)?.iter().all(|address| address.ip().is_loopback()) {
        return Ok(());
    }
    Err(ServeError::NotLoopback(address.to_owned()))
}

/// Listens on an address.
pub(super) async fn listen(address: &str) -> Result<TcpListener, ServeError> {
    let addresses = resolve(address)?;
    let listening = TcpListener::bind(&addresses[..]).await;
    listening.map_err(|error| ServeError::Listen(address.to_owned(), error))
}

pub(super) fn local_address(listener: &TcpListener) -> Result<SocketAddr, ServeError> {
    listener.local_addr().map_err(|error| ServeError::Listen("a socket".to_owned(), error))
}

/// What an address stands for; at least one.
pub(super) fn resolve(address: &str) -> Result<Vec<SocketAddr>, ServeError> {
    let failed = |error| ServeError::Address(address.to_owned(), error);
    let addresses: Vec<_> = address.to_socket_addrs().map_err(failed)?.collect();
    if addresses.is_empty() {
        return Err(failed(io::ErrorKind::AddrNotAvailable.into()));
    }
    Ok(addresses)
}
