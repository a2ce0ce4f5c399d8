//! `stillframe make-certs`.

use std::path::PathBuf;

use clap::Args;
use stillframe::{AUTHORITY_KEY_FILE, make_certificates};

use super::ServeError;

/// Makes an authority and a certificate that the processes of a test cluster may share.
#[derive(Debug, Args)]
pub(super) struct MakeCertificates {
    /// The folder for them.
    folder: PathBuf,
}

impl MakeCertificates {
    pub(super) fn run(&self) -> Result<(), ServeError> {
        make_certificates(&self.folder)?;
        let folder = self.folder.display();
        println!("{folder}: made ca.crt, node.crt and node.key, for --certs {folder}");
        println!("{folder}: keep {AUTHORITY_KEY_FILE} where no process of the cluster runs");
        Ok(())
    }
}
