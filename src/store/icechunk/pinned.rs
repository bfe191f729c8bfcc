//! The snapshot that the store shows, until its branch has another one.
//!
//! Every request asks the store of the repository for the version of the file that has the branch. A store on a server
//! answers that for the time to live from memory. When there is another version, the file is read again. A snapshot
//! that takes the place of another one is a change of the whole store at once, which happens when this process notices
//! it.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, RwLock};

use super::branches::{BranchFile, NamedSnapshot, unknown};
use super::containers::Containers;
use super::files::{RepositoryFiles, key_of};
use super::reference::Reference;
use super::snapshot::Snapshot;
use crate::store::{
    Access, Arrival, Key, Object, ObjectMeta, ReadRight, Readers, StoreError, Version,
};

/// The directories of a repository, through which its files are reached.
const DIRECTORIES: [&str; 3] = ["snapshots", "manifests", "chunks"];

/// The facts about a repository whose snapshot is shown.
#[derive(Debug)]
pub(super) struct Pinning {
    pub(super) reference: Reference,
    /// The file that has the branch or tag; `None` if the snapshot itself was named, which never changes.
    pub(super) file: Option<BranchFile>,
    current: RwLock<Option<Current>>,
    /// Held while a server is asked for the version of the file, so that one answer serves all callers that wait for
    /// it.
    asking: Mutex<()>,
}

/// The version of a file, and its owner and mode.
type ReadFrom = (Version, Access);

/// The state that was read last.
#[derive(Debug)]
struct Current {
    read_from: Option<ReadFrom>,
    pinned: Result<Arc<Pinned>, StoreError>,
    /// The snapshot that was shown last, also if `pinned` is an error.
    shown: Option<Arc<Pinned>>,
}

/// A snapshot that is shown.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) snapshot: Snapshot,
    /// The owner and mode with which all files of the snapshot are shown.
    pub(super) access: Access,
    /// The containers that the locations of its virtual chunks may name.
    pub(super) containers: Containers,
    /// When it took the place of another snapshot.
    pub(super) arrival: Arrival,
}

impl Pinning {
    /// The snapshot that `reference` stands for, which `file` says.
    pub(super) fn new(reference: Reference, file: Option<BranchFile>) -> Pinning {
        Pinning {
            reference,
            file,
            current: RwLock::new(None),
            asking: Mutex::default(),
        }
    }

    /// The snapshot that is shown now.
    ///
    /// # Errors
    /// [`StoreError`] when the branch or its snapshot cannot be read, or the branch is gone.
    pub(super) fn current(&self, files: &RepositoryFiles) -> Result<Arc<Pinned>, StoreError> {
        let found = match &self.file {
            Some(file) => Some(self.examine(file, files)?),
            None => None,
        };
        if let Some(pinned) = self.read_from(found.as_ref()) {
            return pinned;
        }
        // Concurrent callers wait here, and use the snapshot that the first one reads.
        let mut current = self.current.write();
        if let Some(current) = current
            .as_ref()
            .filter(|current| current.is_from(found.as_ref()))
        {
            return current.pinned.clone();
        }
        let before = current.as_ref().and_then(|current| current.shown.as_ref());
        let (read_from, pinned) = self.read(files, found.as_ref(), before);
        // An error of the system may be temporary, and is not remembered.
        if pinned.is_ok() || matches!(pinned, Err(StoreError::Damaged { .. })) {
            let shown = pinned.as_ref().ok().or(before).cloned();
            *current = Some(Current {
                read_from,
                pinned: pinned.clone(),
                shown,
            });
        }
        pinned
    }

    /// The snapshot that is shown now, if that is known without a request.
    pub(super) fn known(&self, files: &RepositoryFiles) -> Option<Arc<Pinned>> {
        let found = match &self.file {
            Some(file) => Some(files.store.known_object(file.key())??),
            None => None,
        };
        self.read_from(found.as_ref())?.ok()
    }

    /// The snapshot of the version `found` of the file, if that is the one that was read last.
    fn read_from(&self, found: Option<&ObjectMeta>) -> Option<Result<Arc<Pinned>, StoreError>> {
        let current = self.current.read();
        let current = current.as_ref().filter(|current| current.is_from(found));
        current.map(|current| current.pinned.clone())
    }

    /// The attributes of the file that has the branch, once they can be trusted.
    fn examine(
        &self,
        file: &BranchFile,
        files: &RepositoryFiles,
    ) -> Result<ObjectMeta, StoreError> {
        let mut patience = None;
        loop {
            let key = file.key();
            let is_local = files.store.profile().is_local;
            let asking = (!is_local).then(|| self.asking.lock());
            let found = files.store.stat_object(key);
            drop(asking);
            let Some(found) = found? else {
                return Err(self.absent(file, files));
            };
            let Some(wait) = found.settles_in(SystemTime::now()) else {
                return Ok(found);
            };
            let until = *patience.get_or_insert_with(|| Instant::now() + found.dating.patience());
            if Instant::now() > until || wait > Duration::from_secs(60) {
                return Err(StoreError::changed(key));
            }
            thread::sleep(wait);
        }
    }

    /// The error that the file that has the branch does not exist.
    fn absent(&self, file: &BranchFile, files: &RepositoryFiles) -> StoreError {
        let current = self.current.read();
        if current.is_none() {
            return unknown(files, &self.reference, None);
        }
        let problem = format!("the {} is gone", self.reference);
        StoreError::problem(file.key(), problem)
    }

    /// Reads the branch, whose file had the attributes `found`, and its snapshot unless that is `before`.
    fn read(
        &self,
        files: &RepositoryFiles,
        found: Option<&ObjectMeta>,
        before: Option<&Arc<Pinned>>,
    ) -> (Option<ReadFrom>, Result<Arc<Pinned>, StoreError>) {
        let named = match (&self.file, &self.reference) {
            (None, Reference::Snapshot(id)) => NamedSnapshot::by_itself(*id, files),
            (None, reference) => {
                let problem = format!("the repository has no {reference}");
                Err(StoreError::Unsupported(problem))
            }
            (Some(file), reference) => file.read(files, reference),
        };
        let named = match named {
            Ok(named) => named,
            Err(error) => {
                let read_from = found.map(|meta| (meta.version, meta.access()));
                return (read_from, Err(error));
            }
        };
        // A version that may still change without a trace is read again.
        let settled = named.object.as_ref().map(|object| object.meta());
        let settled = settled.filter(|meta| meta.settles_in(SystemTime::now()).is_none());
        let read_from = settled.map(|meta| (meta.version, meta.access()));
        let read_from = read_from.filter(|_| self.file.is_some());
        (read_from, self.pin(files, named, before))
    }

    fn pin(
        &self,
        files: &RepositoryFiles,
        named: NamedSnapshot,
        before: Option<&Arc<Pinned>>,
    ) -> Result<Arc<Pinned>, StoreError> {
        let NamedSnapshot {
            id,
            object: named_by,
            containers,
        } = named;
        let key = key_of("snapshots", id)?;
        let (snapshot, object) = files.snapshot(id)?.ok_or_else(|| match &self.reference {
            Reference::Snapshot(id) => {
                StoreError::Unsupported(format!("the repository has no snapshot {id}"))
            }
            reference => {
                StoreError::damaged(&key, format!("the snapshot of the {reference} is missing"))
            }
        })?;
        let access = access_of(files, [Some(&*object), named_by.as_deref()])?;
        let is_same = |before: &&Arc<Pinned>| {
            before.snapshot.id == id
                && before.access == access
                && before.containers.are_as(&containers)
        };
        if let Some(before) = before.filter(is_same) {
            return Ok(Arc::clone(before));
        }
        // The first snapshot that is shown is as old as possible: no request came before it.
        let arrival = match before {
            None => SystemTime::UNIX_EPOCH,
            Some(_) => SystemTime::now(),
        };
        log::info!("the {} is snapshot {id}", self.reference);
        Ok(Arc::new(Pinned {
            snapshot,
            access,
            containers,
            arrival: Arrival::Uploaded(arrival),
        }))
    }
}

impl Current {
    /// Whether it was read from the version `found` of the file.
    fn is_from(&self, found: Option<&ObjectMeta>) -> bool {
        match (&self.read_from, found) {
            (Some(read_from), Some(found)) => *read_from == (found.version, found.access()),
            (None, None) => true,
            _ => false,
        }
    }
}

/// Owner and mode that grant the content of a repository to those users alone who may read these files, and search the
/// directories of the repository.
fn access_of(
    files: &RepositoryFiles,
    read: [Option<&dyn Object>; 2],
) -> Result<Access, StoreError> {
    let store = &files.store;
    let root = store.stat_root()?.access();
    let mut readers = Readers::default();
    for object in read.into_iter().flatten() {
        readers.add(ReadRight::of_object(object.meta().access()));
    }
    // Prefixes of an object store have no rights, and examining them takes a listing.
    if store.profile().has_directories {
        readers.add(ReadRight::of_directory(root));
        for directory in DIRECTORIES {
            let key = Key::parse(directory.as_bytes())?;
            let found = store.stat(&key)?;
            if let Some(meta) = found.and_then(|found| found.prefix_meta()) {
                readers.add(ReadRight::of_directory(meta.access()));
            }
        }
    }
    let shown = root.with_mode(0o444);
    Ok(shown.with_mode(readers.bits_for(shown)))
}

#[cfg(test)]
mod tests {
    use super::super::flat::testing::snapshot;
    use super::super::limits::Limits;
    use super::super::object_id::ObjectId;
    use super::*;
    use crate::store::MemoryStore;
    use crate::store::testing::{CallKind, Recording, wrap};

    #[test]
    fn a_snapshot_after_an_error_takes_the_place_of_the_one_before() {
        let store = Arc::new(MemoryStore::new());
        let ids = [1, 2, 3].map(|number| ObjectId([number; 12]));
        for id in [ids[0], ids[2]] {
            store.insert(key_of("snapshots", id).unwrap(), snapshot(id));
        }
        let branch = Reference::Branch("main".to_owned());
        let file = BranchFile::of_version_1(&branch).unwrap().unwrap();
        let file_key = file.key().clone();
        let name = |text: String| store.insert(file_key.clone(), text);
        let point_to = |id: ObjectId| name(format!(r#"{{"snapshot": "{id}"}}"#));
        let recording = Arc::default();
        let within = wrap::<Recording>(Arc::clone(&store) as _, &recording);
        let files = RepositoryFiles::new(within, Limits::of_budget(32 << 20));
        let pinning = Pinning::new(branch, Some(file));
        point_to(ids[0]);
        let first = pinning.current(&files).unwrap();
        assert_eq!(first.arrival, Arrival::Uploaded(SystemTime::UNIX_EPOCH));
        for broken in [format!(r#"{{"snapshot": "{}"}}"#, ids[1]), "{}".to_owned()] {
            name(broken);
            assert!(pinning.current(&files).is_err());
            recording.clear();
            assert!(pinning.current(&files).is_err());
            // The error is remembered, so only the version of the file is examined.
            assert_eq!(recording.count(CallKind::Open), 0);
            point_to(ids[0]);
            assert!(Arc::ptr_eq(&first, &pinning.current(&files).unwrap()));
        }
        name("{}".to_owned());
        assert!(pinning.current(&files).is_err());
        point_to(ids[2]);
        let later = pinning.current(&files).unwrap();
        assert!(later.snapshot.id == ids[2] && later.arrival != first.arrival);
    }
}
