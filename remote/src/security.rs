//! Who may speak with a process of the cluster: anyone, or who has a certificate of the cluster's own
//! authority. The same certificates secure control, bulk data and, through the engine's tunnel, dbsp's
//! exchange.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// The certificate of the authority, in a folder of certificates.
pub const AUTHORITY_FILE: &str = "ca.crt";
/// The certificate of a process.
pub const CERTIFICATE_FILE: &str = "node.crt";
/// Its private key.
pub const KEY_FILE: &str = "node.key";
/// The name that every process of a cluster is certified for, wherever it runs: what counts is that
/// the cluster's authority has signed it.
pub const NODE_NAME: &str = "node.stillframe";

/// How long it may take to reach a process.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a peer may take to show who it is.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// How connections between processes are secured.
#[derive(Clone, Default)]
pub struct Security {
    mutual: Option<Tls>,
}

#[derive(Clone)]
struct Tls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

/// Why certificates can't be used.
#[derive(Debug, Error)]
pub enum SecurityError {
    /// A file isn't there, or isn't what it should be.
    #[error("cannot read {}: {reason}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// They don't fit together.
    #[error("the certificates in {} cannot be used: {reason}", .directory.display())]
    Mismatch {
        /// Where they are.
        directory: PathBuf,
        /// What is wrong with them.
        reason: String,
    },
}

impl Security {
    /// Anyone may come, and what is said can be read on the way: for one machine only.
    pub fn none() -> Self {
        Self::default()
    }

    /// Both sides of every connection show a certificate that the authority has signed. The folder
    /// has `ca.crt`, `node.crt` and `node.key`, in PEM.
    ///
    /// # Errors
    ///
    /// If they can't be read, or don't fit together.
    pub fn mutual(directory: &Path) -> Result<Self, SecurityError> {
        let authorities = certificates(&directory.join(AUTHORITY_FILE))?;
        let chain = certificates(&directory.join(CERTIFICATE_FILE))?;
        let file = directory.join(KEY_FILE);
        let key = PrivateKeyDer::from_pem_file(&file)
            .map_err(|error| SecurityError::File { file, reason: error.to_string() })?;

        let mismatch =
            |reason: String| SecurityError::Mismatch { directory: directory.to_owned(), reason };
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority).map_err(|error| mismatch(error.to_string()))?;
        }
        let roots = Arc::new(roots);
        // Named, because a process may have linked more than one.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
                .build()
                .map_err(|error| mismatch(error.to_string()))?;
        let tls = |error: rustls::Error| mismatch(error.to_string());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(tls)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(tls)?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(tls)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(tls)?;
        let acceptor = TlsAcceptor::from(Arc::new(server));
        let connector = TlsConnector::from(Arc::new(client));
        Ok(Self { mutual: Some(Tls { acceptor, connector }) })
    }

    /// Whether peers must show who they are.
    pub fn is_mutual(&self) -> bool {
        self.mutual.is_some()
    }

    /// Reaches a process.
    ///
    /// # Errors
    ///
    /// If it isn't there, or isn't one of the cluster's.
    pub async fn open(&self, address: SocketAddr) -> io::Result<Socket> {
        let opened = async { self.connect(TcpStream::connect(address).await?).await };
        timeout(CONNECT_TIME_MAX, opened).await?
    }

    /// Secures a connection that was made to a process.
    ///
    /// # Errors
    ///
    /// If it ends, or the peer isn't a process of the cluster.
    pub async fn connect(&self, stream: TcpStream) -> io::Result<Socket> {
        stream.set_nodelay(true)?;
        let Some(tls) = &self.mutual else { return Ok(Socket::Plain(stream)) };
        let name = ServerName::try_from(NODE_NAME).expect("it is a name");
        let secured = tls.connector.connect(name, stream);
        Ok(Socket::Secured(Box::new(timeout(HANDSHAKE_TIME_MAX, secured).await??.into())))
    }

    /// Secures a connection that was accepted.
    ///
    /// # Errors
    ///
    /// If it ends, or the peer isn't a process of the cluster.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<Socket> {
        stream.set_nodelay(true)?;
        let Some(tls) = &self.mutual else { return Ok(Socket::Plain(stream)) };
        let secured = timeout(HANDSHAKE_TIME_MAX, tls.acceptor.accept(stream)).await??;
        Ok(Socket::Secured(Box::new(secured.into())))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    let unusable = |reason| SecurityError::File { file: file.to_owned(), reason };
    let read = CertificateDer::pem_file_iter(file).map_err(|error| unusable(error.to_string()))?;
    let read = read.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(error.to_string()))?;
    if read.is_empty() {
        return Err(unusable("it holds no certificate".to_owned()));
    }
    Ok(read)
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Security").field("mutual", &self.is_mutual()).finish()
    }
}

/// A connection between two processes.
#[derive(Debug)]
pub enum Socket {
    /// As it is.
    Plain(TcpStream),
    /// By TLS, of which both sides have shown a certificate.
    Secured(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Secured(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secured(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Secured(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secured(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
