//! The store as its catalog shows it.

use std::sync::Arc;
use std::time::SystemTime;

use super::copies::CopiedNode;
use super::groups::Catalog;
use super::known::{CopyObject, Known, is_document_name};
use super::listing::{CheckedListing, CopiesListing, NamesListing};
use crate::store::{
    AnswerTimes, Cursor, Detail, FetchBuffer, FetchRequest, Fetched, FirstRead, Key, Listing,
    Object, ObjectMeta, Prefix, Profile, Stat, Store, StoreError,
};

/// A store whose catalog is consulted before it.
#[derive(Debug)]
pub(in crate::hierarchy) struct CatalogStore {
    catalog: Arc<Catalog>,
    face: Face,
}

/// The choice between copies and stored documents, which may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hierarchy) enum Face {
    /// The copies, which make the nodes.
    Nodes,
    /// The stored documents, byte for byte, and the stored names. A copy takes the place of a
    /// document that is not stored.
    Keys,
}

/// An answer about a key without a request.
enum Told<T> {
    /// The catalog knows this object, or its absence.
    Here(Option<T>),
    /// Only the store knows.
    Unknown,
}

impl CatalogStore {
    /// The store of `catalog`, as this face shows it.
    pub(in crate::hierarchy) fn shared(catalog: &Arc<Catalog>, face: Face) -> Arc<dyn Store> {
        let catalog = Arc::clone(catalog);
        Arc::new(CatalogStore { catalog, face })
    }

    fn within(&self) -> &dyn Store {
        &*self.catalog.store
    }

    /// The object or prefix at `key`.
    fn stat_known(&self, key: &Key) -> Result<Told<Stat>, StoreError> {
        let known = self.catalog.known(key)?;
        Ok(match (known, self.face) {
            (Known::Prefix(meta), _) => Told::Here(Some(Stat::of_prefix(meta))),
            (Known::Copy(copy), Face::Nodes) => Told::Here(Some(Stat::of_object(copy.meta))),
            (Known::Own(meta), Face::Nodes) => Told::Here(meta.map(Stat::of_object)),
            (Known::Absent, Face::Nodes) => Told::Here(None),
            _ => Told::Unknown,
        })
    }

    /// The copy at `key`, which is shown where the store has no document there.
    fn copy_instead(&self, key: &Key) -> Result<Option<CopyObject>, StoreError> {
        if self.face == Face::Nodes || !is_document_name(key.name()) {
            return Ok(None);
        }
        Ok(match self.catalog.known(key)? {
            Known::Copy(copy) => Some(copy),
            _ => None,
        })
    }

    /// The object at `key`.
    fn open_known(&self, key: &Key) -> Result<Told<Arc<dyn Object>>, StoreError> {
        // A chunk is never a copy, and must not wait until copies are checked.
        if self.face == Face::Keys || !is_document_name(key.name()) {
            return Ok(Told::Unknown);
        }
        Ok(match self.catalog.known(key)? {
            Known::Copy(copy) => Told::Here(Some(Arc::new(copy))),
            Known::Own(None) | Known::Absent => Told::Here(None),
            Known::Own(Some(_)) | Known::Prefix(_) | Known::Unknown => Told::Unknown,
        })
    }

    /// `found`, or the copy at `key` where nothing was found.
    fn stat_or_copy(
        &self,
        key: &Key,
        found: Result<Option<Stat>, StoreError>,
    ) -> Result<Option<Stat>, StoreError> {
        match found? {
            None => Ok(self
                .copy_instead(key)?
                .map(|copy| Stat::of_object(copy.meta))),
            found => Ok(found),
        }
    }

    fn fetched_or_copy(
        &self,
        request: &mut FetchRequest<'_>,
        found: Result<Option<Fetched>, StoreError>,
    ) -> Result<Option<Fetched>, StoreError> {
        if let Some(found) = found? {
            return Ok(Some(found));
        }
        let copy = self.copy_instead(request.key)?;
        let copy = copy.map(|copy| Arc::new(copy) as Arc<dyn Object>);
        copy.map(|copy| Fetched::of_object(copy, request.most_bytes, request.buffer))
            .transpose()
    }
}

impl Catalog {
    /// The listing of the group at `prefix` from copies; `None` if they do not show that it is a group.
    fn list_copies(
        &self,
        prefix: &Prefix,
        after: &Cursor,
    ) -> Result<Option<CopiesListing>, StoreError> {
        let Some(covered) = self.covering(prefix)? else {
            return Ok(None);
        };
        let group = &covered.holder.group;
        let path = if prefix == group {
            &b""[..]
        } else {
            group.strip(prefix.as_bytes()).unwrap_or_default()
        };
        if covered.node_at(path) != Some(CopiedNode::Group) {
            return Ok(None);
        }
        let meta = self.prefix_meta()?;
        Ok(Some(CopiesListing::new(covered.clone(), path, meta, after)))
    }
}

impl Store for CatalogStore {
    fn inner(&self) -> Option<&dyn Store> {
        Some(self.within())
    }

    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        match self.stat_known(key)? {
            Told::Here(known) => Ok(known),
            Told::Unknown => self.stat_or_copy(key, self.within().stat(key)),
        }
    }

    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        let known: Vec<_> = keys.iter().map(|key| self.stat_known(key)).collect();
        let unknown = keys.iter().zip(&known);
        let unknown = unknown.filter(|(_, known)| matches!(known, Ok(Told::Unknown)));
        let unknown: Vec<Key> = unknown.map(|(key, _)| key.clone()).collect();
        let mut asked = if unknown.is_empty() {
            Vec::new()
        } else {
            self.within().stat_many(&unknown)
        }
        .into_iter();
        let all = keys.iter().zip(known).map(|(key, known)| match known? {
            Told::Here(known) => Ok(known),
            Told::Unknown => {
                let found = asked.next().unwrap_or_else(|| self.within().stat(key));
                self.stat_or_copy(key, found)
            }
        });
        all.collect()
    }

    fn stat_objects(&self, keys: &[Key]) -> Vec<Result<Option<ObjectMeta>, StoreError>> {
        // A chunk is never a copy, and must not wait until copies are checked.
        let known = keys.iter().map(|key| {
            if is_document_name(key.name()) {
                self.stat_known(key)
            } else {
                Ok(Told::Unknown)
            }
        });
        let known: Vec<_> = known.collect();
        let unknown = keys.iter().zip(&known);
        let unknown = unknown.filter(|(_, known)| matches!(known, Ok(Told::Unknown)));
        let unknown: Vec<Key> = unknown.map(|(key, _)| key.clone()).collect();
        let mut asked = if unknown.is_empty() {
            Vec::new()
        } else {
            self.within().stat_objects(&unknown)
        }
        .into_iter();
        let all = keys.iter().zip(known).map(|(key, known)| match known? {
            Told::Here(None) => Ok(None),
            Told::Here(Some(stat)) => match stat.object_meta() {
                Some(meta) => Ok(Some(meta)),
                None => Err(StoreError::not_an_object(key, "a directory")),
            },
            Told::Unknown => match asked.next().unwrap_or(Ok(None))? {
                None => Ok(self.copy_instead(key)?.map(|copy| copy.meta)),
                found => Ok(found),
            },
        });
        all.collect()
    }

    /// The attributes are remembered, because nothing changes those of a store that is not a directory.
    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        self.catalog.prefix_meta()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        if let Told::Here(known) = self.open_known(key)? {
            return Ok(known);
        }
        if let Some(object) = self.within().open(key)? {
            return Ok(Some(object));
        }
        let copy = self.copy_instead(key)?;
        Ok(copy.map(|copy| Arc::new(copy) as Arc<dyn Object>))
    }

    fn open_reading(
        &self,
        key: &Key,
        first: FirstRead,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        // Documents are read whole.
        if is_document_name(key.name()) {
            return self.open(key);
        }
        self.within().open_reading(key, first)
    }

    fn known_object(&self, key: &Key) -> Option<Option<ObjectMeta>> {
        // A document may be a copy here, whatever the store knows of the object of that name.
        if is_document_name(key.name()) {
            return None;
        }
        self.within().known_object(key)
    }

    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        let whole = |object, buffer: &mut dyn FetchBuffer| {
            Fetched::of_object(object, most_bytes, buffer).map(Some)
        };
        match self.open_known(key)? {
            Told::Here(None) => return Ok(None),
            Told::Here(Some(object)) => return whole(object, buffer),
            Told::Unknown => {}
        }
        if let Some(fetched) = self.within().fetch(key, most_bytes, buffer)? {
            return Ok(Some(fetched));
        }
        match self.copy_instead(key)? {
            Some(copy) => whole(Arc::new(copy), buffer),
            None => Ok(None),
        }
    }

    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let known = requests.iter().map(|request| self.open_known(request.key));
        let known: Vec<_> = known.collect();
        let unknown = requests.iter_mut().zip(&known);
        let unknown = unknown.filter(|(_, known)| matches!(known, Ok(Told::Unknown)));
        let unknown = unknown.map(|(request, _)| FetchRequest {
            key: request.key,
            most_bytes: request.most_bytes,
            buffer: &mut *request.buffer,
        });
        let mut unknown: Vec<_> = unknown.collect();
        let mut asked = if unknown.is_empty() {
            Vec::new()
        } else {
            self.within().fetch_many(&mut unknown)
        }
        .into_iter();
        drop(unknown);
        let all = requests.iter_mut().zip(known);
        let all = all.map(|(request, known)| match known? {
            Told::Here(None) => Ok(None),
            Told::Here(Some(object)) => {
                Fetched::of_object(object, request.most_bytes, request.buffer).map(Some)
            }
            Told::Unknown => {
                let found = asked.next().unwrap_or(Ok(None));
                self.fetched_or_copy(request, found)
            }
        });
        all.collect()
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        let copied = self.catalog.list_copies(prefix, &after)?;
        let copied = copied.map(|listing| Box::new(listing) as Box<dyn Listing>);
        if self.face == Face::Nodes && copied.is_some() {
            return Ok(copied);
        }
        let listed = self.within().list(prefix, after.clone(), detail);
        self.catalog.note_listing(prefix, listed.as_ref().err());
        match listed {
            Ok(None) => Ok(copied),
            Ok(Some(listing)) if self.face == Face::Nodes => {
                let checked = CheckedListing::new(listing, self.catalog.clone(), prefix.clone());
                Ok(Some(Box::new(checked)))
            }
            Err(error @ (StoreError::Unlisted { .. } | StoreError::Denied { .. })) => {
                if copied.is_some() {
                    return Ok(copied);
                }
                let names = self.catalog.names_known_in(prefix, &error)?;
                Ok(Some(Box::new(NamesListing::new(&names, &after, error))))
            }
            listed => listed,
        }
    }

    fn profile(&self) -> Profile {
        self.within().profile()
    }

    /// The times for a copy are those of the document that has it.
    fn told_at(&self, key: &Key) -> Option<AnswerTimes> {
        let holder = self.catalog.document_with(key);
        self.within().told_at(holder.as_ref().unwrap_or(key))
    }

    /// Copies are trusted for the time to live after a check, and the answers that the check used may have been as old.
    fn told_since(&self) -> Option<SystemTime> {
        let since = self.within().told_since()?;
        Some(self.catalog.trusted_before(since))
    }
}
