//! The process of a host.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use stillframe_engine::{
    Duplex, EngineError, ExchangeOptions, Functions, HostOptions, LocalHost, Secure,
};
use stillframe_protocol::{Epoch, Host, HostId, Incarnation, Registration};
use stillframe_remote::{
    Addresses, End, Identity, Member, Security, join, serve_bulk, serve_control,
};
use stillframe_sql as sql;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::BUILD;

/// An engine that waits for hosts that are gone waits for ever; nobody waits for it longer than this.
const END_TIME_MAX: Duration = Duration::from_secs(2);

/// What a host's process is to be.
#[derive(Clone, Debug)]
pub struct HostProcessOptions {
    /// The cluster's name.
    pub cluster: String,
    /// How many workers it runs.
    pub workers: NonZeroU32,
    /// Its place among the hosts, from 0; any, if there is none.
    pub place: Option<u32>,
    /// Where its coordinator takes hosts in.
    pub coordinator: SocketAddr,
    /// The newest epoch that the process before this one has known of; 0 if there was none.
    pub newest_epoch: u64,
    /// Where the workers of other hosts reach its own.
    pub exchange: IpAddr,
    /// The ports that they use; any, if there are none.
    pub exchange_ports: Option<RangeInclusive<u16>>,
    /// Where other processes reach it, if not where it listens.
    pub advertise: Option<IpAddr>,
    /// How connections to other processes are secured.
    pub security: Security,
}

/// Where a host's process is asked.
#[derive(Debug)]
pub struct HostListeners {
    /// By requests.
    pub control: TcpListener,
    /// With rows.
    pub bulk: TcpListener,
}

impl HostListeners {
    fn addresses(&self, advertise: Option<IpAddr>) -> io::Result<Addresses> {
        let advertised = |listener: &TcpListener| {
            let mut address = listener.local_addr()?;
            if let Some(ip) = advertise {
                address.set_ip(ip);
            }
            io::Result::Ok(address)
        };
        Ok(Addresses { control: advertised(&self.control)?, bulk: advertised(&self.bulk)? })
    }
}

/// The engine's exchange is secured as everything else is.
#[derive(Debug)]
struct SecureExchange(Security);

#[async_trait]
impl Secure for SecureExchange {
    async fn accept(&self, stream: TcpStream) -> io::Result<Box<dyn Duplex>> {
        Ok(Box::new(self.0.accept(stream).await?))
    }

    async fn connect(&self, stream: TcpStream) -> io::Result<Box<dyn Duplex>> {
        Ok(Box::new(self.0.connect(stream).await?))
    }
}

/// The only host of this process.
#[derive(Debug)]
pub struct HostProcess {
    host: Arc<LocalHost>,
    /// For all that it writes; goes with it, even if the engine is left behind.
    directory: TempDir,
}

impl HostProcess {
    /// Starts a host that is part of nothing yet.
    ///
    /// # Errors
    ///
    /// If the system doesn't give what an engine needs: a directory, a port, threads.
    pub fn start(options: &HostProcessOptions) -> Result<Self, EngineError> {
        let directory = tempfile::Builder::new().prefix("stillframe-host-").tempdir()?;
        let secure = || Arc::new(SecureExchange(options.security.clone())) as Arc<dyn Secure>;
        let exchange = ExchangeOptions {
            listen: options.exchange,
            ports: options.exchange_ports.clone(),
            advertise: options.advertise,
            secure: options.security.is_mutual().then(secure),
        };
        let options = HostOptions {
            directory: Some(directory.path().to_owned()),
            exchange,
            ..HostOptions::new(Functions::new(sql::functions()))
        };
        Ok(Self { host: LocalHost::start(options)?, directory })
    }

    /// Is part of the cluster until it can't go on as it is, or until `stop` ends; that is none. Then
    /// all is gone that it had, but for threads that wait for other hosts.
    pub async fn serve(
        self,
        options: HostProcessOptions,
        listeners: HostListeners,
        stop: impl Future<Output = ()>,
    ) -> Option<End> {
        let incarnation = Incarnation(rand::random());
        let member = Member::new(incarnation, Arc::clone(&self.host) as Arc<dyn Host>);
        let identity =
            Identity { cluster: options.cluster.clone(), build: BUILD.to_owned(), incarnation };
        let registration = Registration {
            cluster: options.cluster,
            build: BUILD.to_owned(),
            incarnation,
            place: options.place.map(HostId),
            workers: options.workers.get(),
            fresh: true,
            newest_epoch: Epoch(options.newest_epoch),
        };
        let end = match listeners.addresses(options.advertise) {
            Ok(addresses) => {
                let HostListeners { control, bulk } = listeners;
                let security = options.security;
                let host = Arc::clone(&member) as Arc<dyn Host>;
                let asked =
                    serve_control(control, security.clone(), identity.clone(), Arc::clone(&host));
                let scanned = serve_bulk(bulk, security.clone(), identity, host);
                let joined = join(options.coordinator, &security, addresses, registration, &member);
                tokio::select! {
                    end = joined => Some(end),
                    () = asked => None,
                    () = scanned => None,
                    () = stop => None,
                }
            }
            Err(error) => Some(End::Refused { reason: error.to_string() }),
        };
        let _ = timeout(END_TIME_MAX, self.host.shut_down()).await;
        if let Err(error) = self.directory.close() {
            tracing::warn!(%error, "temporary files are left behind");
        }
        end
    }
}
