//! The references of a set, in either form.

use std::borrow::Cow;
use std::sync::Arc;

use super::json::JsonSet;
use super::names::{ExaminedFile, ListedName};
#[cfg(feature = "references")]
use super::parquet::ParquetSet;
use super::row::Found;
use crate::store::{Cursor, Key, ObjectMeta, Prefix, StoreError};

/// The references of one version of a set.
#[derive(Debug)]
pub(super) enum Contents {
    Json(JsonSet),
    #[cfg(feature = "references")]
    Parquet(ParquetSet),
}

/// A reference, and the object of the set that has it.
#[derive(Debug)]
pub(super) struct FoundReference {
    pub(super) found: Found,
    /// Attributes of the object that has the reference.
    pub(super) set: ObjectMeta,
    /// The object, where it is not the set itself.
    pub(super) file: Option<Key>,
}

impl Contents {
    /// The reference at `key`, with the address of its target, in the set with the attributes `set`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] for a reference that is not understood; other errors where it cannot be read.
    pub(super) fn get(
        &self,
        key: &Key,
        set: &ObjectMeta,
    ) -> Result<Option<FoundReference>, StoreError> {
        let found = match self {
            Contents::Json(json) => json.get(key)?.map(|found| (found, *set, None)),
            #[cfg(feature = "references")]
            Contents::Parquet(parquet) => parquet.get(key, set)?,
        };
        Ok(found.map(|(found, set, file)| FoundReference { found, set, file }))
    }

    /// The file that has the record of the chunk `key`, if that is not the set itself.
    #[cfg_attr(
        not(feature = "references"),
        expect(unused_variables, reason = "only sets in Parquet have such files")
    )]
    pub(super) fn record_file(&self, key: &Key) -> Option<Key> {
        match self {
            Contents::Json(_) => None,
            #[cfg(feature = "references")]
            Contents::Parquet(parquet) => parquet.record_file(key),
        }
    }

    /// Whether keys lie below `prefix`.
    pub(super) fn has_prefix(&self, prefix: &Prefix) -> bool {
        match self {
            Contents::Json(json) => json.table.has_prefix(prefix),
            #[cfg(feature = "references")]
            Contents::Parquet(parquet) => parquet.has_prefix(prefix),
        }
    }

    /// The first name below `prefix` after `after`. A listing passes the same `examined` with each call.
    ///
    /// # Errors
    /// [`StoreError`] where references cannot be read.
    #[cfg_attr(
        not(feature = "references"),
        expect(
            unused_variables,
            clippy::unnecessary_wraps,
            clippy::needless_pass_by_ref_mut,
            reason = "only those in Parquet are read here"
        )
    )]
    pub(super) fn next(
        &self,
        prefix: &Prefix,
        after: &Cursor,
        examined: &mut ExaminedFile,
    ) -> Result<Option<ListedName>, StoreError> {
        match self {
            Contents::Json(json) => Ok(json.table.next(prefix, after)),
            #[cfg(feature = "references")]
            Contents::Parquet(parquet) => parquet.next(prefix, after, examined),
        }
    }

    /// Memory of the references, and of those that are read later.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Contents::Json(json) => json.memory_bytes(),
            #[cfg(feature = "references")]
            Contents::Parquet(parquet) => parquet.memory_bytes(),
        }
    }

    /// Addresses of targets: all that a set in JSON lists, and some of those of generators and of a set in Parquet.
    pub(super) fn addresses(&self) -> Box<dyn Iterator<Item = String> + '_> {
        match self {
            Contents::Json(json) => {
                // They are expanded one by one, because all of them may take far more memory than the templates.
                let expanded = json.table.addresses().filter_map(|address| {
                    let expanded = json.templates.expand(&address);
                    expanded.ok().map(Cow::into_owned)
                });
                Box::new(expanded)
            }
            #[cfg(feature = "references")]
            Contents::Parquet(parquet) => Box::new(parquet.some_addresses().into_iter()),
        }
    }
}

impl JsonSet {
    fn get(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        let bad = |problem: &str| StoreError::damaged(key, format!("its reference: {problem}"));
        Ok(match self.table.get(key.as_bytes()) {
            Some(Found::Bad(problem)) => return Err(bad(&problem)),
            Some(Found::At(address, range)) => {
                let expanded = self.templates.expand(&address);
                let address = match expanded.map_err(|problem| bad(&problem))? {
                    Cow::Borrowed(_) => Arc::clone(&address),
                    Cow::Owned(expanded) => expanded.into(),
                };
                Some(Found::At(address, range))
            }
            found => found,
        })
    }
}
