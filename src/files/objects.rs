//! Documents that are made from several objects, and changes of several objects one after the other.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::SystemTime;

use crate::error::Error;
use crate::store::{
    DirWriter, Draft, Key, ObjectMeta, StoreError, StoreWriter, StoredFile, Version,
};
use crate::translate::ObjectChange;

/// The objects that hold the documents of a node. Each may be absent in the store.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) own: Option<Key>,
    pub(crate) attributes: Option<Key>,
    /// Copies of the documents of other nodes, which are part of a document in another version.
    pub(crate) copies: Option<Key>,
}

impl Objects {
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.own.iter().chain(&self.attributes).chain(&self.copies)
    }

    /// The attributes of the objects together; `None` if none of the node's own documents exists.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub(crate) fn now(&self, writer: &DirWriter) -> Result<Option<ObjectMeta>, StoreError> {
        self.together(|key| writer.stat(key))
    }

    /// The first existing object, with the attributes of all objects together.
    ///
    /// # Errors
    /// [`StoreError`] when one cannot be opened.
    pub(crate) fn open(&self, writer: &DirWriter) -> Result<Option<StoredFile>, StoreError> {
        let mut opened = None;
        let meta = self.together(|key| {
            let stored = writer.open_object(key, false)?;
            let meta = stored.as_ref().map(|stored| stored.meta);
            opened = opened.take().or(stored);
            Ok(meta)
        })?;
        let stored = opened.zip(meta);
        Ok(stored.map(|(stored, meta)| StoredFile { meta, ..stored }))
    }

    /// The attributes of the objects together. `ask` returns those of one object.
    fn together(
        &self,
        mut ask: impl FnMut(&Key) -> Result<Option<ObjectMeta>, StoreError>,
    ) -> Result<Option<ObjectMeta>, StoreError> {
        let mut ask = |key: &Option<Key>| key.as_ref().map_or(Ok(None), &mut ask);
        let own = together(ask(&self.own)?, ask(&self.attributes)?);
        let copies = ask(&self.copies)?.filter(|_| own.is_some());
        Ok(together(own, copies))
    }
}

/// Makes the changes. With `--durability close`, their names then survive a loss of power. `new` makes the
/// draft of a missing object, with its bytes. Returns the position of the first change that was not made because
/// another program has changed its object.
pub(crate) fn change(
    writer: &DirWriter,
    changes: &[ObjectChange],
    new: impl Fn(&Key, &[u8]) -> Result<Draft, Error>,
) -> Result<Option<usize>, Error> {
    for (at, change) in changes.iter().enumerate() {
        let key = &change.key;
        let is_made = if let Some(bytes) = &change.bytes {
            let put = writer.put_with((key, bytes), change.replaces, || new(key, bytes))?;
            put.is_some()
        } else {
            writer.erase(key, change.replaces)?
        };
        if !is_made {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The attributes of two objects together: those of the first one, with a version that changes with
/// each of them.
fn together(own: Option<ObjectMeta>, other: Option<ObjectMeta>) -> Option<ObjectMeta> {
    let (Some(own), Some(other)) = (own, other) else {
        return own.or(other);
    };
    let mut hasher = DefaultHasher::new();
    (own.version, other.version).hash(&mut hasher);
    let version = Version {
        mtime: own.version.mtime.max(other.version.mtime),
        tag: hasher.finish(),
        ..own.version
    };
    let now = SystemTime::now();
    let is_settled = own.settles_in(now).or(other.settles_in(now)).is_none();
    Some(ObjectMeta {
        version,
        // If both are settled, no reader has to wait until the version is older.
        is_own: is_settled,
        ..own
    })
}
