//! Certificates for a cluster that has no authority of its own yet.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use thiserror::Error;

use crate::security::{AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE, NODE_NAME};

/// The authority's private key. No process of a cluster needs it: keep it elsewhere.
pub const AUTHORITY_KEY_FILE: &str = "ca.key";

const VALID_FOR: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Why there are no certificates.
#[derive(Debug, Error)]
pub enum CertificatesError {
    /// Nothing is overwritten.
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    /// A file can't be written.
    #[error("cannot write {}: {source}", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The library can't make them.
    #[error("cannot make certificates: {0}")]
    Make(#[from] rcgen::Error),
}

/// Makes an authority, and a certificate that all processes of a cluster may share, as files of a
/// folder, which is made if there is none.
///
/// # Errors
///
/// If one of the files is there already, or can't be written.
pub fn make_certificates(directory: &Path) -> Result<(), CertificatesError> {
    let authority_key = KeyPair::generate()?;
    let mut authority = parameters("Stillframe cluster authority", vec![])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, &authority_key);

    let key = KeyPair::generate()?;
    let mut node = parameters(NODE_NAME, vec![NODE_NAME.to_owned()])?;
    node.use_authority_key_identifier_extension = true;
    node.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    node.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = node.signed_by(&key, &issuer)?;

    let secret = 0o600;
    let files = [
        (AUTHORITY_FILE, authority_certificate.pem(), 0o644),
        (AUTHORITY_KEY_FILE, authority_key.serialize_pem(), secret),
        (CERTIFICATE_FILE, certificate.pem(), 0o644),
        (KEY_FILE, key.serialize_pem(), secret),
    ];
    fs::create_dir_all(directory)
        .map_err(|source| CertificatesError::Write { file: directory.to_owned(), source })?;
    if let Some((name, ..)) = files.iter().find(|(name, ..)| directory.join(name).exists()) {
        return Err(CertificatesError::Exists(directory.join(name)));
    }
    for (name, pem, mode) in files {
        let file = directory.join(name);
        let written = create(&file, mode).and_then(|mut file| file.write_all(pem.as_bytes()));
        written.map_err(|source| CertificatesError::Write { file, source })?;
    }
    Ok(())
}

fn parameters(name: &str, names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.not_after = (SystemTime::now() + VALID_FOR).into();
    Ok(parameters)
}

fn create(file: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(file)
}
