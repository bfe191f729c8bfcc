//! A store without directories, as in a bucket or on a web server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::store::{
    Cursor, Detail, FetchBuffer, FetchRequest, Fetched, Key, Listing, Object, ObjectMeta, Prefix,
    Profile, Stat, Store, StoreError,
};

/// Another store, without directories: prefixes have no attributes. Names can be listed or not.
#[derive(Debug)]
pub struct Flat {
    within: Arc<dyn Store>,
    refusal: Option<Refusal>,
    refused: AtomicUsize,
}

/// The way in which a [`Flat`] store refuses requests to list names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// With [`StoreError::Unlisted`].
    Unlisted,
    /// With [`StoreError::Denied`].
    Denied,
}

impl Flat {
    /// A store like a bucket, where names can be listed.
    pub fn new(within: Arc<dyn Store>) -> Flat {
        Flat {
            within,
            refusal: None,
            refused: AtomicUsize::new(0),
        }
    }

    /// A store like a web server, where names cannot be listed. So it is unknown whether a prefix
    /// exists.
    pub fn unlisted(within: Arc<dyn Store>, refusal: Refusal) -> Flat {
        Flat {
            refusal: Some(refusal),
            ..Flat::new(within)
        }
    }

    /// The number of listings that were refused.
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    fn shows(&self, stat: &Stat) -> bool {
        self.refusal.is_none() || stat.object_meta().is_some()
    }
}

impl Store for Flat {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.within)
    }

    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        Ok(self.within.stat(key)?.filter(|stat| self.shows(stat)))
    }

    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        let found = self.within.stat_many(keys).into_iter();
        found
            .map(|stat| Ok(stat?.filter(|stat| self.shows(stat))))
            .collect()
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        self.within.stat_root()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        absent_if_prefix(self.within.open(key))
    }

    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        absent_if_prefix(self.within.fetch(key, most_bytes, buffer))
    }

    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let found = self.within.fetch_many(requests).into_iter();
        found.map(absent_if_prefix).collect()
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let Some(refusal) = self.refusal else {
            return self.within.list(prefix, after, detail);
        };
        self.refused.fetch_add(1, Ordering::Relaxed);
        let (key, reason) = (prefix.to_string(), "the test says so".to_owned());
        Err(match refusal {
            Refusal::Unlisted => StoreError::Unlisted { key, reason },
            Refusal::Denied => StoreError::Denied { key, reason },
        })
    }

    fn profile(&self) -> Profile {
        Profile {
            is_local: false,
            has_directories: false,
            ..self.within.profile()
        }
    }
}

/// A store without directories has nothing where another one has a directory.
fn absent_if_prefix<T>(found: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match found {
        Err(StoreError::NotAnObject { .. }) => Ok(None),
        found => found,
    }
}
