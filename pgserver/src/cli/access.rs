//! Options for who may come in as a client, and how.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stillframe::Access;

use super::ServeError;
use super::listen::resolve;

/// How clients come in.
#[derive(Debug, Args)]
pub(super) struct Clients {
    /// Whether clients must show who they are: not at all, or by the password of their role.
    #[arg(long, default_value = "trust", value_name = "HOW")]
    auth: Authentication,
    /// A file whose first line is the password of the role stillframe, or a SCRAM verifier of it, as
    /// long as ALTER ROLE sets no other.
    #[arg(long, value_name = "F")]
    password_file: Option<PathBuf>,
    /// The certificate that clients are shown, and those between it and an authority, in PEM.
    #[arg(long, value_name = "F", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key, in PEM.
    #[arg(long, value_name = "F", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve nobody without TLS.
    #[arg(long, requires = "tls_cert")]
    tls_require: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Authentication {
    Trust,
    Scram,
}

impl Clients {
    /// Refuses an address that clients of other machines could reach, if they could come in
    /// without a password, or be listened to.
    pub(super) fn allows(&self, address: &str) -> Result<(), ServeError> {
        let loopback = resolve(address)?.iter().all(|address| address.ip().is_loopback());
        if loopback || self.auth == Authentication::Scram && self.tls_require {
            return Ok(());
        }
        Err(ServeError::NotLoopback(address.to_owned()))
    }

    /// Reads the files.
    pub(super) fn access(&self) -> Result<Access, ServeError> {
        let mut access = Access::trust();
        if let (Some(chain), Some(key)) = (&self.tls_cert, &self.tls_key) {
            access = access.with_tls(chain, key, self.tls_require)?;
        }
        if self.auth == Authentication::Trust {
            return match &self.password_file {
                None => Ok(access),
                Some(file) => Err(ServeError::NoPasswords(file.clone())),
            };
        }
        let owner = match &self.password_file {
            None => None,
            Some(file) => {
                let failed =
                    |reason: String| ServeError::PasswordFile { file: file.clone(), reason };
                let text =
                    std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
                let password = text.lines().next().filter(|line| !line.is_empty());
                Some(password.ok_or_else(|| failed("it is empty".to_owned()))?.to_owned())
            }
        };
        Ok(access.with_passwords(owner.as_deref()))
    }
}
