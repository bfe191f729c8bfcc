//! The files of a mount, by the rules of docs/src/writing.md: the simplest model that could be right.
//!
//! The store has objects. An open file has an object as its base, and a draft once it was written to. The states of a
//! file, and the transitions between them, are those of the table `OpenState::after`, which the program uses, too. All
//! errors are errno.

mod names;
mod writing;

use std::collections::BTreeSet;

use zarr_mount::files::{FileEvent, OpenState};
use zarr_mount::view::HandleAccess;

use crate::codecs::{FILL, LEN};

/// The way in which a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A decoded chunk: it has one length, is shown even if it is absent, and is merged.
    Chunk,
    /// An object that is replaced whole.
    Whole,
    /// An object that is written in place.
    InPlace,
}

/// An object that the store has, or had. The bytes are those that the view shows for it.
#[derive(Debug)]
struct Object {
    bytes: Vec<u8>,
    /// How often its times were set, or its shard was changed.
    version: usize,
    /// Whether another program has stored it.
    is_foreign: bool,
}

/// An object of a certain version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Base {
    object: usize,
    version: usize,
}

/// The bytes that were written to a file since its last commit.
#[derive(Debug)]
struct Draft {
    bytes: Vec<u8>,
    /// Which bytes were written; the other bytes are those of the base. `None` if all were written.
    written: Option<[bool; LEN]>,
    began_empty: bool,
    /// Whether no writer can have read the file.
    is_blind: bool,
    /// The handles that made the file empty.
    rewriters: BTreeSet<usize>,
    /// The bytes that were written since the file was made or made empty.
    anew: [bool; LEN],
    /// The handles to which others have left their written bytes, too.
    left_to: BTreeSet<usize>,
    /// The first offset at which a write was refused, of a handle that had written before.
    refused: usize,
}

impl Draft {
    /// The draft of a file that has these bytes, all of which count as written.
    fn of(bytes: Vec<u8>) -> Draft {
        Draft {
            bytes,
            written: None,
            began_empty: true,
            is_blind: true,
            rewriters: BTreeSet::new(),
            anew: [false; LEN],
            left_to: BTreeSet::new(),
            refused: usize::MAX,
        }
    }
}

/// A file that is or was open.
#[derive(Debug)]
struct File {
    /// The number of its name; `None` once the name was removed, or belongs to another file.
    name: Option<usize>,
    manner: Manner,
    base: Option<Base>,
    state: OpenState,
    /// The draft; `None` in the states that have none.
    draft: Option<Draft>,
    /// Whether the base was the store's object when the file lost its name.
    was_current: bool,
    n_handles: usize,
}

impl File {
    /// Goes to the state that follows `event` in the table.
    fn on(&mut self, event: FileEvent) {
        let after = self.state.after(event);
        self.state = after.unwrap_or_else(|| panic!("{event:?} of {self:?}"));
        if matches!(self.state, OpenState::Clean | OpenState::Lost) {
            self.draft = None;
        }
    }

    fn is_lost(&self) -> bool {
        self.state == OpenState::Lost
    }

    /// Whether a handle that has made the file empty is still writing it. Until it is closed, other handles save nothing.
    fn is_rewritten(&self) -> bool {
        let has_rewriters = |draft: &Draft| !draft.rewriters.is_empty();
        self.state != OpenState::Broken && self.draft.as_ref().is_some_and(has_rewriters)
    }

    fn begin(&mut self, draft: Draft) {
        self.on(FileEvent::Begin);
        self.draft = Some(draft);
    }

    /// Whether it is a chunk, all bytes of which were written anew.
    fn is_whole(&self) -> bool {
        let has_all = |draft: &Draft| draft.anew.iter().all(|is_written| *is_written);
        self.manner == Manner::Chunk && self.draft.as_ref().is_some_and(has_all)
    }
}

/// A handle.
#[derive(Debug)]
pub(crate) struct Handle {
    number: usize,
    file: usize,
    access: HandleAccess,
    has_written: bool,
}

impl Handle {
    pub(crate) fn reads(&self) -> bool {
        self.access != HandleAccess::Writes
    }
}

/// The bytes that a read may return.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Readable {
    Bytes(Vec<u8>),
    /// These bytes, or an error because the file has changed.
    BytesOrStale(Vec<u8>),
    /// Any bytes that the file had, or that error.
    Lost,
}

/// The model.
#[derive(Debug)]
pub(crate) struct Model {
    manners: Vec<Manner>,
    /// Whether the files are the inner chunks of one shard.
    is_sharded: bool,
    /// Whether all programs encode equal elements to the same bytes.
    is_encoded_alike: bool,
    objects: Vec<Object>,
    /// The objects of the store.
    store: Vec<Option<usize>>,
    files: Vec<File>,
    /// The files that another open of their name joins.
    open: Vec<Option<usize>>,
    pub(crate) handles: Vec<Handle>,
    n_handles: usize,
}

impl Model {
    pub(crate) fn new(manners: Vec<Manner>, is_sharded: bool, is_encoded_alike: bool) -> Model {
        let nothing = vec![None; manners.len()];
        Model {
            manners,
            is_sharded,
            is_encoded_alike,
            objects: Vec::new(),
            store: nothing.clone(),
            files: Vec::new(),
            open: nothing,
            handles: Vec::new(),
            n_handles: 0,
        }
    }

    /// The object that the store has under this name, as the view shows it.
    pub(crate) fn stored(&self, name: usize) -> Option<&[u8]> {
        let object = self.store[name]?;
        Some(&self.objects[object].bytes)
    }

    /// The bytes that a new open of this name reads; `None` if there is no such file.
    pub(crate) fn shown(&self, name: usize) -> Option<Vec<u8>> {
        let open = self.open[name].map(|file| &self.files[file]);
        if let Some(file) = open.filter(|file| file.name.is_some())
            && let Some(draft) = &file.draft
        {
            return Some(self.with_base(file, draft));
        }
        let absent = (self.manners[name] == Manner::Chunk).then(|| vec![FILL; LEN]);
        self.stored(name).map(<[u8]>::to_vec).or(absent)
    }

    fn base_bytes(&self, file: &File) -> Vec<u8> {
        match file.base {
            Some(base) => self.objects[base.object].bytes.clone(),
            None => vec![FILL; LEN],
        }
    }

    fn with_base(&self, file: &File, draft: &Draft) -> Vec<u8> {
        let mut bytes = draft.bytes.clone();
        if let Some(written) = draft.written {
            let base = self.base_bytes(file);
            for (at, byte) in bytes.iter_mut().enumerate() {
                if !written[at] {
                    *byte = base[at];
                }
            }
        }
        bytes
    }

    fn base_of(&self, name: usize) -> Option<Base> {
        let object = self.store[name]?;
        let version = self.objects[object].version;
        Some(Base { object, version })
    }

    /// Whether the store's object is the base of the file.
    fn is_current(&self, file: &File) -> bool {
        let Some(name) = file.name else { return false };
        let now = self.base_of(name);
        if file.manner == Manner::InPlace {
            return now.map(|base| base.object) == file.base.map(|base| base.object);
        }
        self.has_same_base(name, file.base) && (now.is_some() || file.manner == Manner::Chunk)
    }

    fn new_object(&mut self, bytes: Vec<u8>) -> usize {
        self.objects.push(Object {
            bytes,
            version: 0,
            is_foreign: false,
        });
        self.objects.len() - 1
    }

    fn new_handle(&mut self, file: usize, access: HandleAccess) -> usize {
        self.n_handles += 1;
        self.files[file].n_handles += 1;
        self.handles.push(Handle {
            number: self.n_handles,
            file,
            access,
            has_written: false,
        });
        self.handles.len() - 1
    }

    fn new_file(&mut self, name: usize, base: Option<Base>) -> usize {
        self.files.push(File {
            name: Some(name),
            manner: self.manners[name],
            base,
            state: OpenState::Clean,
            draft: None,
            was_current: false,
            n_handles: 0,
        });
        let file = self.files.len() - 1;
        self.open[name] = Some(file);
        file
    }

    /// Opens the shown file, and returns the index of the new handle.
    pub(crate) fn open(&mut self, name: usize, access: HandleAccess) -> usize {
        if let Some(open) = self.open[name] {
            let file = &self.files[open];
            if file.name.is_some() && (file.draft.is_some() || self.is_current(file)) {
                return self.new_handle(open, access);
            }
        }
        let file = self.new_file(name, self.base_of(name));
        self.new_handle(file, access)
    }

    /// Makes a file where none is shown.
    pub(crate) fn create(&mut self, name: usize) -> usize {
        let file = self.new_file(name, None);
        if self.manners[name] == Manner::InPlace {
            let object = self.new_object(Vec::new());
            self.store[name] = Some(object);
            self.files[file].base = self.base_of(name);
        }
        let handle = self.new_handle(file, HandleAccess::ReadsAndWrites);
        if self.manners[name] != Manner::InPlace {
            let rewriters = BTreeSet::from([self.handles[handle].number]);
            self.files[file].begin(Draft {
                rewriters,
                ..Draft::of(Vec::new())
            });
        }
        handle
    }

    pub(crate) fn read(&self, handle: usize) -> Readable {
        let file = &self.files[self.handles[handle].file];
        if file.is_lost() {
            return Readable::Lost;
        }
        if let Some(draft) = &file.draft {
            return Readable::Bytes(self.with_base(file, draft));
        }
        let bytes = self.base_bytes(file);
        let is_unchanged = file
            .base
            .is_none_or(|base| self.objects[base.object].version == base.version);
        let is_certain = match file.manner {
            Manner::InPlace => true,
            Manner::Whole => is_unchanged || file.name.is_none(),
            Manner::Chunk => is_unchanged && (self.is_current(file) || file.was_current),
        };
        if is_certain {
            Readable::Bytes(bytes)
        } else {
            Readable::BytesOrStale(bytes)
        }
    }

    fn size(&self, file: usize) -> usize {
        let file = &self.files[file];
        match &file.draft {
            Some(draft) => draft.bytes.len(),
            None => self.base_bytes(file).len(),
        }
    }

    /// How many handles of the file may write.
    fn n_writers(&self, file: usize) -> usize {
        let writes = |handle: &&Handle| handle.file == file && handle.access.writes();
        self.handles.iter().filter(writes).count()
    }

    /// Whether the draft of a file was dropped.
    pub(crate) fn has_lost(&self) -> bool {
        self.files.iter().any(File::is_lost)
    }

    pub(crate) fn outsider_replaces(&mut self, name: usize, bytes: Vec<u8>) {
        let object = self.new_object(bytes);
        self.objects[object].is_foreign = true;
        self.store[name] = Some(object);
        self.shard_is_replaced();
    }

    pub(crate) fn outsider_deletes(&mut self, name: usize) {
        self.store[name] = None;
        self.shard_is_replaced();
    }

    /// Another program has written the shard, so its inner chunks have new versions.
    fn shard_is_replaced(&mut self) {
        for object in self.store.iter().flatten().filter(|_| self.is_sharded) {
            self.objects[*object].version += 1;
        }
    }

    /// Whether the store's object under this name is the base of the file, as far as the mount can find out.
    fn has_same_base(&self, name: usize, base: Option<Base>) -> bool {
        let now = self.base_of(name);
        if now == base {
            return true;
        }
        // Inner chunks are compared by their encoded bytes.
        let (Some(now), Some(base)) = (now, base) else {
            return false;
        };
        let [now, then] = [now, base].map(|base| &self.objects[base.object]);
        let is_encoded_alike = self.is_encoded_alike || now.is_foreign == then.is_foreign;
        self.is_sharded && now.bytes == then.bytes && is_encoded_alike
    }

    /// All bytes that were not committed are gone.
    pub(crate) fn crash(&mut self) {
        self.handles.clear();
        self.files.clear();
        self.open.fill(None);
    }
}
