//! The values of `--allow-refs`: objects and prefixes to which references may lead.

use std::fmt;
use std::path::Path;

use super::address::Address;
use crate::store::StoreError;

/// A file, an object, or all that lies below a directory or a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedPrefix(pub(super) Address);

impl AllowedPrefix {
    /// Parses an absolute path or a URL.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] for anything else. The message has no secret.
    pub fn parse(text: &str) -> Result<AllowedPrefix, StoreError> {
        let is_url = text.contains("://");
        if !is_url && !text.starts_with('/') {
            return Err(StoreError::Unsupported(format!(
                "{text}: expected an absolute path or a URL, such as file:///data/ or s3://BUCKET/PREFIX/"
            )));
        }
        let root = Address::of_path(Path::new("/"))?;
        Address::parse(text, &root).map(AllowedPrefix)
    }

    /// Whether this is on a server, and not on this machine.
    pub(in crate::store) fn is_on_server(&self) -> bool {
        self.0.local_path().is_none()
    }
}

impl fmt::Display for AllowedPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
