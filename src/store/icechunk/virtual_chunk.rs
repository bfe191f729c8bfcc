//! Virtual chunks: ranges of objects outside the repository. They are read by the rules for the targets of references
//! ([`targets`](crate::store::targets)).

use std::sync::Arc;

use super::containers::Containers;
use super::manifest::VirtualPlace;
use crate::store::targets::{Reference, Targets, sized};
use crate::store::{Key, Object, ObjectMeta, StoreError, percent_decoded};

/// A virtual chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct VirtualChunk<'p> {
    pub(super) targets: &'p Targets,
    pub(super) containers: &'p Containers,
    pub(super) place: &'p VirtualPlace,
}

impl VirtualChunk<'_> {
    /// Attributes of the object `key` of the repository, which is this chunk. `meta` has those that its target does not
    /// change.
    pub(super) fn stat(&self, key: &Key, meta: &ObjectMeta) -> Result<ObjectMeta, StoreError> {
        match self.address() {
            Ok(address) => self.targets.stat(key, &self.reference(&address), meta),
            // The error is returned when the chunk is opened.
            Err(_) => Ok(ObjectMeta {
                mode: 0,
                ..sized(self.place.length, meta)
            }),
        }
    }

    /// Opens the object `key`, as [`VirtualChunk::stat`] examines it.
    pub(super) fn open(&self, key: &Key, meta: &ObjectMeta) -> Result<Arc<dyn Object>, StoreError> {
        let denied = |reason| StoreError::denied(key, reason);
        let address = self.address().map_err(denied)?;
        self.targets.open(key, &self.reference(&address), meta)
    }

    /// The directory or bucket of the object, if chunks in it are not read.
    pub(super) fn refused_directory(&self) -> Option<String> {
        if let Ok(address) = self.address() {
            let is_refused = self.targets.refusal(&address).is_some();
            return is_refused.then(|| self.targets.directory_of(&address));
        }
        let location = self.place.location.as_str();
        let parent = location.rsplit_once('/').map(|(parent, _)| parent);
        Some(parent.unwrap_or(location).to_owned())
    }

    fn reference<'a>(&self, address: &'a str) -> Reference<'a> {
        Reference {
            address,
            range: Some((self.place.offset, self.place.length)),
            checksum: self.place.checksum.clone(),
        }
    }

    /// The path or URL of the object.
    ///
    /// # Errors
    /// The reason why there is none.
    fn address(&self) -> Result<String, String> {
        let location = &self.place.location;
        let resolved = self.containers.resolve(location)?;
        address_of(resolved.as_ref().unwrap_or(location))
    }
}

/// The address for `location`. Icechunk escapes characters in the keys of buckets, and this program does not.
fn address_of(location: &str) -> Result<String, String> {
    let Some((scheme, rest)) = location.split_once("://") else {
        return Err(format!("{location}: the location of a chunk is no URL"));
    };
    let is_decoded_later = |known: &&str| scheme.eq_ignore_ascii_case(known);
    if ["file", "http", "https"].iter().any(is_decoded_later) {
        return Ok(location.to_owned());
    }
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if let Some(at) = key.find(['?', '#']) {
        let key = &key[..at];
        return Err(format!(
            "{scheme}://{bucket}/{key}: URLs with a query or a fragment are not read"
        ));
    }
    let key = String::from_utf8(percent_decoded(key.as_bytes()));
    let key = key.map_err(|_| format!("{location}: a key that is not UTF-8"))?;
    Ok(format!("{scheme}://{bucket}/{key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_buckets_are_decoded_once() {
        for (location, expected) in [
            ("s3://b/a%20b%2525", Ok("s3://b/a b%25")),
            ("gcs://b/a%3Fb", Ok("gcs://b/a?b")),
            ("https://h/a%20b", Ok("https://h/a%20b")),
            ("FILE:///a%20b", Ok("FILE:///a%20b")),
            (
                "s3://b/a?versionId=secret",
                Err("s3://b/a: URLs with a query"),
            ),
            ("s3://b/%ff", Err("not UTF-8")),
            ("data/a.nc", Err("no URL")),
            ("/data/a.nc", Err("no URL")),
        ] {
            match (address_of(location), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => panic!("{location}: {found:?}, not {expected:?}"),
            }
        }
    }
}
