//! A store with the stores in it: a zip file or a set of references that holds a Zarr hierarchy is an object, and also
//! the prefix of its keys.
//!
//! ```text
//! key              stat                        list
//! a/x.zip          an object, keys are below   what is at the root of the hierarchy in the file
//! a/x.zip/t/0      an entry of the zip file
//! a/notes.zip      an object                   None: it holds no hierarchy
//! a/r.json         an object, keys are below   what is at the root of the set of references
//! a/r.parq         a prefix                    the same, of a set in Parquet: its own files are not seen
//! ```
//!
//! Listings of `a` name `x.zip` once, as an object. Stores within these stores are objects only.
//!
//! Names say which files may be stores (`form`), and the contents say which are. Requests go to the store that has
//! the key (`store`). Each request examines the version of the file first, so that a file that is replaced is looked at
//! again. The contents of a file of one version are remembered for many files (`contents`); the directories and
//! references of few stores are in memory, because they may be large (`opened`).
//!
//! A store that is damaged is a prefix too, in which every request gets the error: it might hold a hierarchy, and
//! absence would mean the fill value.
//!
//! # On servers
//!
//! On a server, it takes a request to look into a file. A file with the name of a zip file counts as a prefix without a
//! request. It is opened, from its last bytes, when a key below it is asked for. Many other files are JSON, so the first
//! bytes of a JSON file are read to find out whether it is a set. For all files of a listing together, this takes one
//! round trip (`listing`). Files in a Zarr hierarchy are not looked into, because it has no nodes but its own.

mod contents;
mod form;
mod listing;
mod opened;
mod store;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use self::contents::{Contents, KnownContents, SharedContents};
use self::form::{NamedForm, named_forms};
use self::opened::OpenStores;
use super::packed::find_hierarchy;
use super::references::{metadata_key, metadata_of_set};
use super::targets::{Address, Home};
use super::zip::TAIL_BYTES;
use super::{
    AllowedPrefix, FirstRead, Key, Object, ObjectMeta, OpenOptions, Prefix, Profile,
    ReferenceStore, Stat, StatKind, Store, StoreError, ZipStore,
};

pub use self::form::{is_named_as_zip, may_be_store_file};

/// The memory budget of one set of references, a half of which its references may take.
const SET_BYTES: u64 = 32 << 20;

/// The number of files on a server that are looked at concurrently. Local files are looked at one after the other,
/// because the directory of a zip file may take much memory.
const MOST_LOOKS: usize = 16;

/// The documents that show that a prefix is in a Zarr hierarchy.
const DOCUMENTS: [&[u8]; 4] = [b"zarr.json", b".zgroup", b".zarray", b".zmetadata"];

/// The stores in a store that are looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NestedForms {
    /// Only directories: files are shown as they are stored.
    Directories,
    /// Files too.
    All,
}

/// A store with the stores in it.
#[derive(Debug)]
pub struct NestedStores {
    within: Arc<dyn Store>,
    forms: NestedForms,
    is_on_server: bool,
    profile: Profile,
    /// The address of `within`, to which the addresses in references are relative.
    address: Option<Address>,
    /// The options with which sets of references are opened.
    options: OpenOptions,
    known: SharedContents,
    open: OpenStores,
    /// One of these locks is held while a file is looked at. The key of the file chooses the lock.
    looking: Vec<Mutex<()>>,
    /// Held while a set of references is opened: that takes several times the memory of its references.
    opening_set: Mutex<()>,
}

/// The place of a path.
enum Place {
    /// In the outer store.
    Outside,
    /// In a store within the outer store, at this path.
    Within(Arc<dyn Store>, Prefix),
}

/// A key of a store within the outer one.
struct NestedKey {
    store: Arc<dyn Store>,
    key: Key,
}

impl NestedStores {
    /// `within`, which is at `address`, with the stores in it. Sets of references are opened with `options`; they are
    /// not looked into if there is no address.
    pub(super) fn new(
        within: Arc<dyn Store>,
        forms: NestedForms,
        address: Option<Address>,
        options: &OpenOptions,
    ) -> NestedStores {
        let profile = within.profile();
        let is_on_server = !profile.has_directories;
        // References may name what is on a server.
        let mut allowed = options.allowed_references.iter();
        let is_local = profile.is_local && !allowed.any(AllowedPrefix::is_on_server);
        let looks = if is_on_server { MOST_LOOKS } else { 1 };
        NestedStores {
            within,
            forms,
            is_on_server,
            profile: Profile {
                is_local,
                ..profile
            },
            address,
            options: OpenOptions {
                memory_bytes: Some(SET_BYTES),
                ..options.clone()
            },
            known: Arc::new(KnownContents::new()),
            open: OpenStores::new(),
            looking: (0..looks).map(|_| Mutex::default()).collect(),
            opening_set: Mutex::default(),
        }
    }

    /// The place of `path`. A zip file itself is the root of its own store.
    fn place(&self, path: &Prefix) -> Result<Place, StoreError> {
        for (end, form) in named_forms(path.as_bytes()) {
            let (file, rest) = path.as_bytes().split_at(end);
            let file = Prefix::parse(file)?;
            if let Some(store) = self.store_at(&file, form)? {
                return Ok(Place::Within(store, Prefix::parse(rest)?));
            }
        }
        Ok(Place::Outside)
    }

    /// Like [`NestedStores::place`], for a key: a zip file itself is an object of the outer store.
    fn place_of(&self, key: &Key) -> Result<Option<NestedKey>, StoreError> {
        Ok(match self.place(&key.parent())? {
            Place::Within(store, parent) => {
                let key = parent.key(key.name())?;
                Some(NestedKey { store, key })
            }
            Place::Outside => None,
        })
    }

    /// The store at `path`, which has a name of `form`; `None` if there is none.
    fn store_at(
        &self,
        path: &Prefix,
        form: NamedForm,
    ) -> Result<Option<Arc<dyn Store>>, StoreError> {
        let file = match form {
            NamedForm::Parquet => Some(metadata_key(path)?),
            NamedForm::Zip | NamedForm::Json => {
                path.to_key().filter(|key| self.looks_into(form, key))
            }
        };
        let Some(file) = file else {
            return Ok(None);
        };
        let Some(meta) = self.object_at(&file, form)? else {
            return Ok(None);
        };
        match self.contents(&file, form, &meta)? {
            Contents::Other => Ok(None),
            Contents::Damaged(error) => Err(error),
            found => self.opened(&file, form, &meta, &found).map(Some),
        }
    }

    /// Whether the file at `key`, which has a name of `form`, may be a store.
    fn looks_into(&self, form: NamedForm, key: &Key) -> bool {
        let is_meant = form.is_file() && self.forms == NestedForms::All;
        is_meant && !(self.is_on_server && self.is_known_hierarchy(&key.parent()))
    }

    /// Whether documents show that `path` is in a Zarr hierarchy. Sends no request.
    fn is_known_hierarchy(&self, path: &Prefix) -> bool {
        let has_document = |prefix: Prefix| {
            let keys = DOCUMENTS.iter().filter_map(|name| prefix.key(name).ok());
            let mut known = keys.map(|key| self.within.known_object(&key));
            known.any(|known| matches!(known, Some(Some(_))))
        };
        path.with_ancestors().any(has_document)
    }

    /// The attributes of the object at `key` of the outer store; `None` if there is none.
    fn object_at(&self, key: &Key, form: NamedForm) -> Result<Option<ObjectMeta>, StoreError> {
        if !self.is_on_server {
            let stat = self.within.stat(key)?;
            return Ok(stat.and_then(|stat| stat.object_meta()));
        }
        if let Some(known) = self.within.known_object(key) {
            return Ok(known);
        }
        let keys = std::slice::from_ref(key);
        match form {
            // Most versions are those that were looked at before.
            _ if self.known.has(key) => {}
            NamedForm::Zip => return self.first_look_at_zip(key),
            NamedForm::Json => {
                let found = self.known.look_at_starts(&*self.within, keys).pop();
                return Ok(found.unwrap_or(Ok(None))?.map(|(meta, _)| meta));
            }
            // The metadata is read in any case, and remembered.
            NamedForm::Parquet => drop(metadata_of_set(&*self.within, &key.parent())?),
        }
        let mut found = self.within.stat_objects(keys);
        found.pop().unwrap_or(Ok(None))
    }

    /// Opens the zip file at `key` on a server, of which nothing is known. One request brings its attributes and its
    /// last bytes.
    fn first_look_at_zip(&self, key: &Key) -> Result<Option<ObjectMeta>, StoreError> {
        let last = FirstRead::End(TAIL_BYTES);
        let Some(object) = self.within.open_reading(key, last)? else {
            return Ok(None);
        };
        let meta = *object.meta();
        // The error comes again when something in the file is asked for.
        let look = || self.look_at_opened_zip(key, &meta, object);
        drop(self.looked_at(key, &meta, look));
        Ok(Some(meta))
    }

    /// The contents of the file at `key`, which has a name of `form` and the attributes `meta`.
    fn contents(
        &self,
        key: &Key,
        form: NamedForm,
        meta: &ObjectMeta,
    ) -> Result<Contents, StoreError> {
        self.looked_at(key, meta, || match form {
            NamedForm::Zip => self.look_at_zip(key, meta),
            NamedForm::Json => self.look_at_json(key),
            NamedForm::Parquet => self.look_at_directory(&key.parent()),
        })
    }

    /// The contents of the file at `key`. If they are not remembered, `look` finds them out.
    fn looked_at(
        &self,
        key: &Key,
        meta: &ObjectMeta,
        look: impl FnOnce() -> Result<Contents, StoreError>,
    ) -> Result<Contents, StoreError> {
        if let Some(known) = self.known.get(key, &meta.version) {
            return Ok(known);
        }
        let _one_at_a_time = self.lock_for(key);
        if let Some(known) = self.known.get(key, &meta.version) {
            return Ok(known);
        }
        let contents = match look() {
            Ok(contents) => contents,
            // A file that may not be read stays a file.
            Err(StoreError::Denied { .. } | StoreError::NotAnObject { .. })
                if !self.is_on_server =>
            {
                Contents::Other
            }
            // The file is damaged, not the system in trouble.
            Err(error @ StoreError::Damaged { .. }) => {
                log::warn!("{error}");
                Contents::Damaged(error)
            }
            Err(error) => return Err(error),
        };
        self.known.put(key, meta, contents.clone());
        Ok(contents)
    }

    fn look_at_zip(&self, key: &Key, meta: &ObjectMeta) -> Result<Contents, StoreError> {
        if self.is_on_server {
            let opened = self.within.open_reading(key, FirstRead::End(TAIL_BYTES))?;
            let object = opened.ok_or_else(|| StoreError::changed(key))?;
            return self.look_at_opened_zip(key, meta, object);
        }
        if !ZipStore::is_zip_in(&self.within, key)? {
            return Ok(Contents::Other);
        }
        let zip = ZipStore::within(&self.within, key)?;
        let Some(root) = find_hierarchy(&zip)? else {
            return Ok(Contents::Other);
        };
        self.keep_zip(key, meta, zip.below(root.clone()));
        Ok(Contents::Zip(root))
    }

    /// Like [`NestedStores::look_at_zip`], on a server. Because of its name, the file is already shown as a directory. So
    /// all its entries are shown, even if it has no hierarchy.
    fn look_at_opened_zip(
        &self,
        key: &Key,
        meta: &ObjectMeta,
        object: Arc<dyn Object>,
    ) -> Result<Contents, StoreError> {
        let zip = ZipStore::within_opened(&self.within, key, object)?;
        let zip = zip.ok_or_else(|| StoreError::damaged(key, "this is no zip file"))?;
        let root = find_hierarchy(&zip)?.unwrap_or_else(Prefix::root);
        self.keep_zip(key, meta, zip.below(root.clone()));
        Ok(Contents::Zip(root))
    }

    fn keep_zip(&self, key: &Key, meta: &ObjectMeta, zip: ZipStore) {
        let bytes = zip.memory_bytes();
        self.open.put(key, meta.version, Arc::new(zip), bytes);
    }

    fn look_at_json(&self, key: &Key) -> Result<Contents, StoreError> {
        let keys = std::slice::from_ref(key);
        let found = self.known.look_at_starts(&*self.within, keys).pop();
        let contents = found.unwrap_or(Ok(None))?.map(|(_, contents)| contents);
        Ok(contents
            .filter(|_| self.address.is_some())
            .unwrap_or(Contents::Other))
    }

    fn look_at_directory(&self, path: &Prefix) -> Result<Contents, StoreError> {
        if self.address.is_none() || metadata_of_set(&*self.within, path)?.is_none() {
            return Ok(Contents::Other);
        }
        let documents = DOCUMENTS.iter().filter(|name| **name != b".zmetadata");
        let documents = documents.map(|name| path.key(name));
        let documents: Vec<_> = documents.collect::<Result<_, _>>()?;
        for found in self.within.stat_objects(&documents) {
            match found {
                // Documents of Zarr win.
                Ok(Some(_)) => return Ok(Contents::Other),
                Ok(None) | Err(StoreError::Denied { .. } | StoreError::NotAnObject { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Contents::References)
    }

    /// The store in the file at `key`, which has these `contents` and the attributes `meta`.
    fn opened(
        &self,
        key: &Key,
        form: NamedForm,
        meta: &ObjectMeta,
        contents: &Contents,
    ) -> Result<Arc<dyn Store>, StoreError> {
        if let Some(opened) = self.open.get(key, &meta.version) {
            return Ok(opened);
        }
        let _one_at_a_time = self.lock_for(key);
        if let Some(opened) = self.open.get(key, &meta.version) {
            return Ok(opened);
        }
        let (store, bytes): (Arc<dyn Store>, u64) = if let Contents::Zip(root) = contents {
            let zip = ZipStore::within(&self.within, key)?.below(root.clone());
            let bytes = zip.memory_bytes();
            (Arc::new(zip), bytes)
        } else {
            let set = self.opened_set(key, form).inspect_err(|error| {
                if matches!(error, StoreError::Damaged { .. }) {
                    let damaged = Contents::Damaged(error.clone());
                    self.known.put(key, meta, damaged);
                }
            })?;
            let bytes = set.held_bytes();
            (Arc::new(set), bytes)
        };
        self.open.put(key, meta.version, Arc::clone(&store), bytes);
        Ok(store)
    }

    /// Opens the set of references in the file at `key`.
    fn opened_set(&self, key: &Key, form: NamedForm) -> Result<ReferenceStore, StoreError> {
        let set = match form {
            NamedForm::Parquet => key.parent(),
            NamedForm::Zip | NamedForm::Json => key.to_prefix(),
        };
        let path = set.to_key().map_or_else(Prefix::root, |set| set.parent());
        let Some(address) = &self.address else {
            let problem = "references are not read here";
            return Err(StoreError::damaged(key, problem));
        };
        let home = Home {
            address: address.joined(&path),
            store: Arc::clone(&self.within),
            path,
        };
        let _one_at_a_time = self.opening_set.lock();
        let opened = ReferenceStore::open(home, key.clone(), &self.options);
        opened.map_err(|error| match error {
            StoreError::Damaged { key, problem } => {
                let problem = format!("{problem}; {ALONE}");
                StoreError::Damaged { key, problem }
            }
            error => error,
        })
    }

    /// The attributes of the prefix of the same name, where `stat` is of an object at `key` that may be looked into.
    fn prefix_below(&self, key: &Key, stat: &Stat) -> Option<ObjectMeta> {
        let form = NamedForm::of(key.as_bytes());
        let form = form.filter(|&form| self.looks_into(form, key));
        let Some(form) = form.filter(|_| stat.kind == StatKind::Object) else {
            return stat.below;
        };
        let is_by_name = self.is_on_server && form == NamedForm::Zip;
        let is_other = || matches!(self.contents(key, form, &stat.meta), Ok(Contents::Other));
        if !is_by_name && is_other() {
            return stat.below;
        }
        Some(ZipStore::prefix_meta_of(&stat.meta))
    }

    fn lock_for(&self, key: &Key) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let count = self.looking.len().max(1) as u64;
        let at = usize::try_from(hasher.finish() % count).unwrap_or(0);
        self.looking.get(at).map(Mutex::lock)
    }
}

/// Advice on a set of references that cannot be read in a directory of stores, where it may take less memory.
const ALONE: &str = "if it is too large here, name it as STORE by itself";

#[cfg(test)]
mod tests;
