//! Mounts Zarr stores as files. This crate is the implementation of the `zarr-mount` command.
//!
//! # Layers
//!
//! A module uses the modules in the rows above its own and none below. `tests/layers.rs` checks
//! this.
//!
//! | module | knows | must not know |
//! |---|---|---|
//! | [`counters`], [`escape`], [`mount_table`], [`notice`] | counters; text for people, without terminal control sequences; the kernel's mounts; what the user is to see at once | anything else |
//! | [`store`] | bytes by key: directory, zip file, memory, servers; changes to a directory | Zarr |
//! | [`sync`] | locks and threads, of the system or of a model checker | anything else |
//! | [`fresh`] | results of reading the store, and when the store is asked for them again | Zarr |
//! | [`budget`], [`buffers`], [`recent_lines`], [`threads`] | the memory budget; buffers; the last lines of the log; the thread pool | anything else |
//! | [`grid`], [`dtype`] | index arithmetic; data types and fill values | I/O, JSON |
//! | [`codec`] | encoded bytes to decoded bytes, shard index layout | keys, I/O |
//! | [`metadata`] | documents of every Zarr version: one array model, edits, and documents of another version | I/O |
//! | [`error`] | the crate's errors | |
//! | [`plain`] | whole arrays as files of other formats: which byte is which | I/O, chunks |
//! | [`hierarchy`] | the node at a prefix, or at a path of the tree (reads documents and caches them) | chunks |
//! | [`load`] | one chunk by its indices: locate, fetch, decode, cache | file names |
//! | [`shards`] | inner chunks of shards that are written: journal, pack, recovery | names of a view |
//! | [`translate`] | the bytes that files show of stored bytes, and the bytes to store for written ones | requests to a store, locks |
//! | [`read`] | a byte range of an array out of its chunks; readahead | file names |
//! | [`files`] | open files that are written: drafts, commits, conflicts | vnodes, FUSE |
//! | [`view`] | names to vnodes and their numbers; attributes and bytes of a vnode | FUSE |
//! | [`verify`] | whether documents and chunks are sound | views, FUSE |
//! | [`export`] | what a view shows, written to disk | FUSE, the command |
//! | [`serve`] | the same over HTTP; tokens, connections | Zarr, stores, FUSE |
//! | [`fuse`] | inode numbers, handles, replies, errno | Zarr, stores |
//! | [`cli`] | flags to a checked configuration to a stack of the above | |
//!
//! # One model for every version
//!
//! A document of any version becomes a [`metadata::ArrayMetadata`]. Each version has a reader of
//! its own (`metadata::{pre_v1, v1, v2, draft, v3}`). The codecs of the model are a list as in v3:
//! the filters of numcodecs, the order F and the byte orders of v2, and the sharding of the drafts
//! all become codecs. So there is one parser of codec lists and one decoder.
//!
//! Documents are written in two ways. The document of a node that is shown in its own version is
//! edited ([`metadata::render`]), so that everything that needs no change stays the same byte for
//! byte. The documents of a node that is shown in another version (`--as`) are made from the model
//! ([`mod@metadata::write`]); where that version cannot express the node, it is shown as a node
//! that cannot be converted. [`hierarchy`] knows where the keys of a node are: a node of the drafts
//! has its document below `meta` and its chunks below `data`, so only a path in the tree of nodes
//! names a node in every version.
//!
//! # Requests and answers
//!
//! A caller asks the [`load::Loader`] for a chunk. It gets the answer at once from memory, or later
//! from the thread that has loaded the chunk. Code is synchronous: a load is a closure that runs in
//! an elastic pool of [`threads`]. A load needs a permit for each request to the store, which takes
//! a limited number at once ([`store::Profile`]), and another permit for decoding, of which there
//! are as many as cores. It never holds both.
//!
//! Requests come through the device `/dev/fuse` (`fuse::device`), or through rings of `io_uring` (`fuse::ring`), and
//! meet the same operations (`fuse::operations`). The event threads of fuser never wait for a remote store: a request
//! that needs it becomes a job, which holds the reply. A local store answers faster than a job can be handed over, so
//! all event threads but one may wait for it (`fuse::events`), and so may the threads of direct rings. The reply of a
//! job is shared with a thread that sends it when the caller was killed (`fuse::callers`).
//!
//! # One read(2), from the kernel to the bytes
//!
//! The lists below have the functions of this crate, each of which is called by the one before it,
//! with their files. Calls that return before the next function is called are left out, and so are functions that only
//! run a closure, such as [`threads::confine`]. The lists begin at the operation, which both transports call, and end
//! where bytes are decoded, or where memory or the store takes them. A chunk of the chunks view:
//!
//! ```text
//! in memory                                  5 functions in 5 files
//!   fuse/operations  read -> fuse/read  read_file -> view/open_file  read -> view/chunks/file  cached
//!     -> load/cache  get
//! not in memory                              9 functions in 7 files
//!   fuse/operations  read -> fuse/read  read_file -> view/open_file  read -> view/chunks/file  load
//!     -> load/loader  ask -> load/cache  run, land -> load/loader  load_of_object
//!     -> load/decode  decode
//! ```
//!
//! A file of the arrays view is a [`plain::Layout`], which consists of bytes made from metadata and
//! of runs of elements. A read is planned once ([`plain::Plan`]), and walks the chunks of each run
//! once ([`read::ReadOperation`]). It copies the chunks that are in memory and requests the others.
//! Each of these is copied by the thread that has loaded it, and the thread that copies the last
//! one replies.
//!
//! ```text
//! not in memory                              12 functions in 8 files
//!   fuse/operations  read -> fuse/read  read_file -> view/open_file  read -> view/arrays/reading  read
//!     -> read/operation  go_on, ask -> load/loader  ask -> load/cache  run, land, load_as, land
//!     -> load/decode  decode
//! ```
//!
//! Where several chunks are missing, `ask` lets this thread and others take them in turn
//! (`load/steps`), and each thread goes on with `run`.
//!
//! # One name, from the kernel to its attributes
//!
//! The chunks view shows a shard as its inner chunks. This list has the functions for one entry of such
//! a listing, and for the lookup of one such chunk until its place in the shard is known.
//!
//! ```text
//! entry of a listing                         8 functions in 6 files
//!   fuse/operations  readdirplus -> fuse/listing  list_attributes -> fuse/directory  read
//!     -> view/listing  next_entry -> view/listing/stored_chunks  next, find
//!     -> load/locate  locate, descend
//! lookup                                     8 functions in 6 files
//!   fuse/operations  lookup -> fuse  find -> view  lookup -> view/lookup  find, find_chunk
//!     -> view/attributes  chunk -> load/locate  locate, descend
//! ```
//!
//! # Sequential readers
//!
//! One rule detects sequential readers ([`read`]). Chunks are prefetched for such a reader in
//! proportion to the bytes that it has read in order, for files of chunks (`read::files`) and for
//! whole arrays (`read::readahead`), and chunks that it has passed are marked "evict first" in the
//! cache. The constants are in `load::tuning`.
//!
//! # Identity and freshness
//!
//! * The result of reading the store remembers all objects and listings that it was made from, and
//!   one rule says when the store is asked for them again ([`fresh`]).
//! * A *vnode* is a path of the view. The vnode numbers of an array are computed: they are a
//!   contiguous range, which has the directories of partial indices first and then the chunks, so
//!   that ten million files take no memory. Other paths are interned until the kernel forgets them,
//!   and for a while after that, for file handles.
//! * An *inode number* stands for one version of a vnode. The first version has the number of the
//!   vnode. A later version gets a fresh number while the old one is remembered. A file handle has
//!   the number and the *generation*, which is a hash of the version. `open`
//!   compares the version that the kernel knows with the one in the store. If they are the same,
//!   the kernel keeps its pages; otherwise the answer is `ESTALE`, and the kernel looks the name up
//!   again. A bounded table remembers what the kernel knows. Where an entry was dropped, the pages
//!   and attributes are dropped too, which is always correct.
//! * A handle pins one [`store::Object`], so that a shard index and its chunks come from one
//!   version. A version that is younger than the grain of the clock is not trusted before it is
//!   older than that.
//! * No remembered document decides whether an object is a plain file or a part of an array: the
//!   documents above the object are checked after it was found, and again before it is written
//!   (`view::nodes::meaning`).
//! * A whole array has too many objects to pin. Its handles share a snapshot (`view::arrays`),
//!   which remembers the versions of the objects that were read, and detects when the same state of
//!   the array can no longer be read.
//!
//! # Writing
//!
//! `view::changes` and `view::names` turn a request of the kernel into calls of [`files`], which has one open file for
//! each key of a view that is open. A change of a name is made in the store first, and then in all that knows the
//! name. [`store::DirWriter`] makes the changes in the store. Chunks and documents are written to a nameless file of
//! the store's file system, which takes their name when it is committed (`store::dir::writer`); all other files are
//! written in place. An open file is in one of nine states, and one table has all transitions between them
//! ([`files::OpenState`]).
//!
//! A file that shows something other than the bytes of its object has a *form* (`view::forms`). A form reads the object
//! when a part of the file is written, and again when the draft is committed. [`translate`] computes the bytes that the
//! file shows and the bytes that the store gets, from bytes alone; it has one table of both, and of the rules that hold
//! for a file however often its object changes. A document is also decoded again before it is saved, and compared with
//! the bytes that were written. Where a document is shown in another Zarr version, [`metadata::translate`] carries the
//! written changes back to the stored documents. The keys view with `--shards keep` has no forms: its files are the
//! objects, whatever nodes are there. A file keeps its fingerprint, and so its inode number, through its own commits; a
//! renamed file or directory keeps its vnode number (`view::numbers`). A request for a name that was changed since the
//! kernel looked it up gets `ESTALE`, so that the kernel looks the name up again.
//!
//! An open file is written to a *target* (`files::target`), and `view` examines and removes chunks by their *objects*
//! (`shards::ChunkObject`). Each target or object is an object of the store or an inner chunk of a shard, and both have
//! the same verbs. The encoded bytes of an inner chunk go to a journal in the store, where all views find them at once.
//! The shard is written anew later, once for many inner chunks ([`shards`], `load::pack`). A lookup of an inner chunk
//! by its name finds it in the journal; the shard is written before it is read as one object. The other inner chunks
//! of a shard that was written anew keep their fingerprints.
//!
//! The lists below are in the style of those above. A chunk that is encoded, and fits into memory:
//!
//! ```text
//! write(2)                                   5 functions in 5 files
//!   fuse/operations  write -> fuse/changes  write_file -> files/handle  change -> files/state  change
//!     -> files/draft_file  change
//! close(2), until the object is in the store 8 functions in 5 files
//!   fuse/operations  flush -> fuse/changes  flush -> files/commit  flush, commit, commits, try_commit
//!     -> files/target  put -> store/dir/writer/draft  commit
//! close(2), until an inner chunk is in the journal of its shard   9 functions in 6 files
//!   as for an object up to `put`, and then
//!     shards/put  put -> store/dir/writer/journal  append
//! pack of a shard                            7 functions in 4 files
//!   shards/packer  run -> shards/pack  pack, pack_until, try_pack, write -> load/pack  pack,
//!     and then -> store/dir/writer/draft  commit
//! rename(2) of a directory with open files   7 functions in 5 files
//!   fuse/operations  rename -> fuse/changes  rename -> view/names/rename  rename, rename_directory
//!     -> files/names  rename, move_entry -> files/key_file  rename
//! ```
//!
//! # Rights
//!
//! The kernel checks callers against the modes that the mount shows, so a mode must grant no more
//! than the store does. An object that is shown at its own path has its own mode, and so have the
//! directories above it. A file that is made from several objects, or that is shown outside the
//! directories that it is stored in, is readable by those users who may read all of its objects and
//! search all directories above them ([`store::Readers`], `view::rights`). Nodes that fewer users
//! may read than the document of their group are left out of the group's file. Users share the
//! pages of the kernel, so a chunk that fewer users may reach than the file that it is part of is
//! not read for any user (`view::arrays::audience`).
//!
//! The daemon makes changes with its own rights, which may be those of root. So a written file loses its set-user-ID
//! bit (`store::dir::writer::attributes`), and a file that replaces an object has its owner, mode and access list, or
//! grants less (`store::dir::writer::owners`). If the mount shows other owners or modes than the store has, no user
//! gets the rights of the true owner (`view::changes::mapped_owners`).
//!
//! # Memory
//!
//! One budget ([`budget::Budget`]) limits the memory of decoded chunks, pages of shard indices,
//! documents and all temporary buffers. A load reserves all its memory at once, before it allocates
//! and while it holds none, so that loads cannot wait for each other in a cycle. Loads that are
//! larger than the whole budget are let through one at a time. A load waits for memory of other
//! loads, which end, and never for memory that open files keep, which no wait would free.
//!
//! A document takes more memory than its length: a tree of JSON is thirty times as large as its
//! text. So attributes are trees only where they are short, and text otherwise
//! ([`metadata::attributes`]); long documents are read in outline ([`metadata::outline`]); and the
//! cache of nodes counts the memory that they take.

pub mod budget;
pub mod buffers;
pub mod cli;
pub mod codec;
pub mod counters;
pub mod dtype;
pub mod error;
pub mod escape;
pub mod export;
pub mod files;
pub mod fresh;
pub mod fuse;
pub mod grid;
pub mod hierarchy;
pub mod load;
pub mod metadata;
pub mod mount_table;
pub mod notice;
pub mod plain;
pub mod read;
pub mod recent_lines;
#[cfg(feature = "serve")]
pub mod serve;
pub mod shards;
pub mod store;
pub mod sync;
pub mod threads;
pub mod translate;
pub mod verify;
pub mod view;
