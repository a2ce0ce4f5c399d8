//! How clients come in: whether what they say is secured, and whether they must show who they are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use stillframe_sql::scram::Verifier;
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

/// How clients come in.
#[derive(Clone, Default)]
pub struct Access {
    pub(crate) tls: Option<TlsAcceptor>,
    /// Whether nobody is served without TLS.
    pub(crate) requires_tls: bool,
    pub(crate) authentication: Authentication,
}

/// Whether clients must show who they are.
#[derive(Clone, Debug, Default)]
pub(crate) enum Authentication {
    /// They are who they say.
    #[default]
    Trust,
    /// They show by SCRAM-SHA-256 that they know the password of their role.
    Scram {
        /// The owner's, while no statement has set one.
        owner: Option<Verifier>,
        /// What the salts of those who aren't there are made of.
        secret: [u8; 32],
    },
}

/// Why clients can't come in as they should.
#[derive(Debug, Error)]
pub enum AccessError {
    /// A file isn't there, or isn't what it should be.
    #[error("cannot read {}: {reason}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The certificate and the key don't fit together.
    #[error("the certificate in {} cannot be used: {reason}", .file.display())]
    Certificate {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Access {
    /// Anyone may come, and what is said can be read on the way: for one machine only.
    pub fn trust() -> Self {
        Self::default()
    }

    /// Clients must know the password of their role. `owner` is that of the role that owns everything,
    /// as long as no statement sets another, or a SCRAM verifier of it.
    #[must_use]
    pub fn with_passwords(self, owner: Option<&str>) -> Self {
        let verify = |text| Verifier::parse(text).unwrap_or_else(|| Verifier::of_password(text));
        let authentication =
            Authentication::Scram { owner: owner.map(verify), secret: rand::random() };
        Self { authentication, ..self }
    }

    /// Clients may come by TLS, or must. The files are in PEM: a chain that begins with the server's
    /// certificate, and its private key.
    ///
    /// # Errors
    ///
    /// If they can't be read, or don't fit together.
    pub fn with_tls(self, chain: &Path, key: &Path, required: bool) -> Result<Self, AccessError> {
        let unusable =
            |file: &Path, reason: String| AccessError::File { file: file.to_owned(), reason };
        let certificates = CertificateDer::pem_file_iter(chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unusable(chain, error.to_string()))?;
        if certificates.is_empty() {
            return Err(unusable(chain, "it holds no certificate".to_owned()));
        }
        let private =
            PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error.to_string()))?;
        // Named, because a process may have linked more than one.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(certificates, private)
            })
            .map_err(|error| AccessError::Certificate {
                file: chain.to_owned(),
                reason: error.to_string(),
            })?;
        let tls = Some(TlsAcceptor::from(Arc::new(config)));
        Ok(Self { tls, requires_tls: required, ..self })
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("tls", &self.tls.is_some())
            .field("requires_tls", &self.requires_tls)
            .finish_non_exhaustive()
    }
}
