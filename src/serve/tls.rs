//! Encrypted connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate with its key.
#[derive(Debug, Clone)]
pub struct Tls(pub(super) Arc<ServerConfig>);

/// The reason why connections cannot be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is no certificate, or no key.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault of the file.
        error: pem::Error,
    },
    /// The certificate and the key cannot be used.
    #[error("the certificate and the key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

impl Tls {
    /// The chain of certificates in the PEM file `certificate`, that of the server first, with the private key in the PEM
    /// file `key`.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let in_file = |path: &Path, error| {
            let path = path.to_owned();
            TlsError::File { path, error }
        };
        let chain = CertificateDer::pem_file_iter(certificate);
        let chain = chain.and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| in_file(certificate, error))?;
        if chain.is_empty() {
            return Err(in_file(certificate, pem::Error::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| in_file(key, error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(Arc::new(config)))
    }
}
