//! An object that a reference names, and the range of it that is an object of the set.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use super::seen::{SeenTargets, hash};
use crate::store::dir::rights::readers_through;
#[cfg(feature = "remote")]
use crate::store::remote::tag_number;
use crate::store::{
    Arrival, Key, Object, ObjectMeta, OpenedPart, Prefix, ReadRange, ReadRight, ReceivedBytes,
    Store, StoreError, Version,
};

/// A reference to the bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Reference<'r> {
    /// The path or URL of the target.
    pub(in crate::store) address: &'r str,
    /// The first byte, and how many bytes; `None` for the whole target.
    pub(in crate::store) range: Option<(u64, u64)>,
    /// The version that the target must have, if the set names one.
    pub(in crate::store) checksum: Option<Checksum>,
}

/// The version of a target that a reference was made for.
#[cfg_attr(
    not(feature = "icechunk"),
    allow(dead_code, reason = "only repositories of Icechunk have checksums")
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) enum Checksum {
    /// The `ETag` of the target. For a file, this is the `ETag` that the crate `object_store` computes.
    Tag(String),
    /// The target was last changed at this time or before.
    UnchangedSince(SystemTime),
}

/// An object that a reference may name, as a key of a store that it is read from.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) store: Arc<dyn Store>,
    pub(super) key: Key,
    /// The address, for messages.
    pub(super) shown: String,
    pub(super) rights: TargetRights,
    /// The versions of objects on servers that were read.
    pub(super) seen: Arc<SeenTargets>,
}

/// Which users may reach a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetRights {
    /// A file. Only the user of the daemon sees the mount.
    OwnFile,
    /// A file. Other users may read it if they may search the directories on the way to it.
    SharedFile {
        /// The directory in which the way begins.
        root: PathBuf,
        /// The file, below `root`.
        path: Prefix,
    },
    /// An object of a server, which has no rights of its own.
    Object,
}

impl Target {
    /// Attributes of the whole target, as they are shown: with read permission only for users who may also read the
    /// set, which has the attributes `set`.
    ///
    /// # Errors
    /// [`StoreError`] where the target is missing or cannot be examined.
    fn meta(&self, set: &ObjectMeta) -> Result<ObjectMeta, StoreError> {
        let found = self.store.stat_object(&self.key);
        let meta = found.map_err(|error| self.named(error))?;
        let meta = meta.ok_or_else(|| self.missing())?;
        Ok(self.restricted(meta, set))
    }

    fn restricted(&self, meta: ObjectMeta, set: &ObjectMeta) -> ObjectMeta {
        let (root, path) = match &self.rights {
            TargetRights::OwnFile => return meta,
            TargetRights::Object => {
                // An object is shown with the rights of the set.
                let (mode, uid, gid) = (set.mode, set.uid, set.gid);
                return ObjectMeta {
                    mode,
                    uid,
                    gid,
                    ..meta
                };
            }
            TargetRights::SharedFile { root, path } => (root, path),
        };
        // An unknown right is granted only to the owner.
        let way = readers_through(root, path);
        let bits = way.map_or(0o400, |mut readers| {
            readers.add(ReadRight::of_object(set.access()));
            readers.bits_for(meta.access())
        });
        ObjectMeta {
            mode: meta.mode & bits,
            ..meta
        }
    }

    /// Whether the attributes of the whole target take no request.
    pub(super) fn is_known_at_once(&self) -> bool {
        self.rights != TargetRights::Object
            || matches!(self.store.known_object(&self.key), Some(Some(_)))
    }

    /// Whether the attributes of an object at `reference` are those of the set, because the target is on a server, and
    /// the set has the length.
    fn has_told_length(&self, reference: &Reference<'_>) -> bool {
        reference.range.is_some() && self.rights == TargetRights::Object
    }

    /// The number of changes that is a part of the version of an object at `reference`, if the attributes of the target are
    /// not requested and so cannot show a change; otherwise 0.
    fn changes(&self, reference: &Reference<'_>) -> u64 {
        if self.has_told_length(reference) {
            self.seen.changes()
        } else {
            0
        }
    }

    fn missing(&self) -> StoreError {
        // This must not be the absence of a key, which would mean the fill value.
        StoreError::damaged(&self.shown, "the target of a reference is missing")
    }

    /// `error` of the store of the target, about the target.
    fn named(&self, error: StoreError) -> StoreError {
        let key = self.shown.clone();
        match error {
            error if error.is_absent() => self.missing(),
            StoreError::Denied { reason, .. } => StoreError::Denied { key, reason },
            StoreError::Changed { .. } => StoreError::Changed { key },
            StoreError::NotAnObject { found, .. } => StoreError::NotAnObject { key, found },
            StoreError::Io { message, errno, .. } => StoreError::Io {
                key,
                message,
                errno,
            },
            other => other,
        }
    }

    /// Opens the target, of which the bytes `part` are read next.
    fn open(&self, part: &Range<u64>) -> Result<OpenedPart, StoreError> {
        let opened = self.store.open_part(&self.key, part);
        let opened = opened.map_err(|error| self.named(error))?;
        opened.ok_or_else(|| self.missing())
    }
}

impl Checksum {
    fn check(&self, target: &Target, meta: &ObjectMeta) -> Result<(), StoreError> {
        let is_same = match self {
            Checksum::UnchangedSince(time) => meta.version.mtime <= *time,
            Checksum::Tag(tag) if target.rights == TargetRights::Object => {
                #[cfg(feature = "remote")]
                let number = tag_number(tag);
                #[cfg(not(feature = "remote"))]
                let number: Option<u64> = tag.parse().ok();
                number == Some(meta.version.tag)
            }
            Checksum::Tag(tag) => {
                let since = meta.version.mtime.duration_since(UNIX_EPOCH);
                let micros = since.map_or(0, |since| since.as_micros());
                let Version { inode, size, .. } = meta.version;
                tag.trim_matches('"') == format!("{inode:x}-{micros:x}-{size:x}")
            }
        };
        if is_same {
            return Ok(());
        }
        let problem = "this is not the version that the reference was made for";
        Err(StoreError::problem(&target.shown, problem))
    }
}

/// A range of a target, as an object of the set.
pub(super) struct RangeObject {
    key: Key,
    meta: ObjectMeta,
    target: Target,
    offset_bytes: u64,
    checksum: Option<Checksum>,
    /// How many changes of objects on servers `meta` stands for.
    changes: u64,
    /// The version of the target that is read. An object of a server is opened when it is read.
    opened: OnceLock<Arc<dyn Object>>,
}

/// When the `target` came to a key of the set `set`. This is not before the set itself came, which may be much younger than
/// the target.
fn arrival_of(target: &ObjectMeta, set: &ObjectMeta) -> Arrival {
    let here = |meta: &ObjectMeta| match meta.arrival {
        Arrival::Changed => Some(meta.changed()),
        Arrival::Uploaded(here) => Some(here),
        Arrival::Untold => None,
    };
    match (here(target), here(set)) {
        (Some(of_target), Some(of_set)) if of_target < of_set => Arrival::Uploaded(of_set),
        (Some(_), Some(_)) => target.arrival,
        _ => Arrival::Untold,
    }
}

impl RangeObject {
    /// Attributes of the object at `reference`. If it is a range of an object on a server, they are known without a
    /// request: the length is that of the range, and the version is that of the set.
    ///
    /// # Errors
    /// [`StoreError`] where the target is missing or cannot be examined.
    pub(super) fn stat(
        target: &Target,
        reference: &Reference<'_>,
        set: &ObjectMeta,
    ) -> Result<ObjectMeta, StoreError> {
        let meta = if target.has_told_length(reference) {
            *set
        } else {
            target.meta(set)?
        };
        let changes = target.changes(reference);
        Ok(RangeObject::meta_of(
            meta,
            target,
            (reference, changes),
            set,
        ))
    }

    /// The attributes of the range, from `meta` of the target or of the set. `changes` counts the changes of targets on
    /// servers so far.
    fn meta_of(
        meta: ObjectMeta,
        target: &Target,
        (reference, changes): (&Reference<'_>, u64),
        set: &ObjectMeta,
    ) -> ObjectMeta {
        let (offset, size) = reference.range.unwrap_or((0, meta.size()));
        let version = Version {
            size,
            tag: hash((meta.version.tag, &target.shown, offset, changes)),
            ..meta.version
        };
        // If targets have changed since, the time at which the set came does not say since when they are there.
        let arrival = match changes {
            0 => arrival_of(&meta, set),
            _ => Arrival::Untold,
        };
        // A mode grants reading and nothing else.
        let mode = meta.mode & 0o444;
        ObjectMeta {
            version,
            mode,
            arrival,
            ..meta
        }
    }

    /// Opens the object at `reference`, which is called `key` in the set.
    ///
    /// # Errors
    /// Those of [`RangeObject::stat`]; also if the target ends before the range does.
    pub(super) fn open(
        key: &Key,
        target: Target,
        reference: &Reference<'_>,
        set: &ObjectMeta,
    ) -> Result<RangeObject, StoreError> {
        let opened = OnceLock::new();
        let changes = target.changes(reference);
        let meta = if target.has_told_length(reference) {
            *set
        } else {
            let object = target.open(&(0..0))?.object;
            let meta = target.restricted(*object.meta(), set);
            // The lock is empty.
            let _ = opened.set(object);
            meta
        };
        let object = RangeObject {
            key: key.clone(),
            meta: RangeObject::meta_of(meta, &target, (reference, changes), set),
            changes,
            offset_bytes: reference.range.map_or(0, |(offset, _)| offset),
            checksum: reference.checksum.clone(),
            target,
            opened,
        };
        if let Some(opened) = object.opened.get() {
            object.check(opened.meta())?;
        }
        Ok(object)
    }

    /// Checks that the target has the range, and is the version that the reference was made for.
    fn check(&self, target: &ObjectMeta) -> Result<(), StoreError> {
        if let Some(checksum) = &self.checksum {
            checksum.check(&self.target, target)?;
        }
        let end = self.offset_bytes.checked_add(self.meta.size());
        if end.is_some_and(|end| end <= target.size()) {
            return Ok(());
        }
        Err(StoreError::damaged(
            &self.key,
            format!(
                "the reference is to {} bytes at {} of {}, which has {}",
                self.meta.size(),
                self.offset_bytes,
                self.target.shown,
                target.size()
            ),
        ))
    }

    /// The open target; and the bytes `part` of it, if they came when it was opened.
    fn opened(
        &self,
        part: &Range<u64>,
    ) -> Result<(&Arc<dyn Object>, Option<ReceivedBytes>), StoreError> {
        if let Some(opened) = self.opened.get() {
            return Ok((opened, None));
        }
        let OpenedPart { object, bytes } = self.target.open(part)?;
        let seen = &self.target.seen;
        seen.note(&self.target.shown, &object.meta().version);
        self.check(object.meta())?;
        if seen.changes() != self.changes {
            return Err(self.target.named(StoreError::changed(&self.key)));
        }
        let opened = self.opened.get_or_init(|| Arc::clone(&object));
        // Another thread may have opened the target, perhaps another version of it.
        let is_this = Arc::ptr_eq(opened, &object);
        Ok((opened, bytes.filter(|_| is_this)))
    }
}

/// The range, if there is only one; otherwise an empty range.
fn only(ranges: &[Range<u64>]) -> Range<u64> {
    match ranges {
        [only] => only.clone(),
        _ => 0..0,
    }
}

impl Object for RangeObject {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.read_ranges(&mut [ReadRange { offset_bytes, buf }])
    }

    fn read_ranges(&self, ranges: &mut [ReadRange<'_>]) -> Result<(), StoreError> {
        for range in ranges.iter() {
            let len = range.buf.len();
            self.meta.check_range(&self.key, range.offset_bytes, len)?;
        }
        let mut moved: Vec<_> = ranges
            .iter_mut()
            .map(|range| ReadRange {
                offset_bytes: range.offset_bytes.saturating_add(self.offset_bytes),
                buf: range.buf,
            })
            .collect();
        let wanted: Vec<_> = moved
            .iter()
            .map(|range| {
                range.offset_bytes..range.offset_bytes.saturating_add(range.buf.len() as u64)
            })
            .collect();
        let (target, bytes) = self.opened(&only(&wanted))?;
        if let (Some(bytes), [only]) = (bytes, moved.as_mut_slice())
            && bytes.read(only.offset_bytes, only.buf)
        {
            return Ok(());
        }
        let read = target.read_ranges(&mut moved);
        read.map_err(|error| self.target.named(error))
    }

    fn receive(&self, ranges: &[Range<u64>]) -> Result<ReceivedBytes, StoreError> {
        let by = self.offset_bytes;
        let mut moved = Vec::with_capacity(ranges.len());
        for range in ranges {
            let len = range.end.saturating_sub(range.start);
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            self.meta.check_range(&self.key, range.start, len)?;
            moved.push(range.start.saturating_add(by)..range.end.saturating_add(by));
        }
        let (target, bytes) = self.opened(&only(&moved))?;
        let received = match bytes {
            Some(bytes) => Ok(bytes),
            None => target.receive(&moved),
        };
        let received = received.map_err(|error| self.target.named(error))?;
        Ok(received.moved_back(by))
    }

    fn verify(&self) -> Result<(), StoreError> {
        let opened = self.opened.get();
        opened.map_or(Ok(()), |object| {
            object.verify().map_err(|error| self.target.named(error))
        })
    }

    fn doubt(&self) {
        if let Some(opened) = self.opened.get() {
            opened.doubt();
        }
    }
}

impl fmt::Debug for RangeObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeObject")
            .field("key", &self.key)
            .field("target", &self.target.shown)
            .field("offset_bytes", &self.offset_bytes)
            .finish_non_exhaustive()
    }
}
