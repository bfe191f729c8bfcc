//! Zarr stores as files: the house behind the `zarr-mount` command.
//!
//! # Layers
//!
//! A module knows the rows above its own and nothing below (`tests/layers.rs` checks it).
//!
//! | module | knows | must not know |
//! |---|---|---|
//! | [`escape`] | text for people, without what a terminal would obey | anything else |
//! | [`store`] | bytes by key: directory, zip file, memory | Zarr |
//! | [`sync`] | locks and threads, of the system or of a model checker | anything else |
//! | [`budget`], [`buffers`], [`threads`] | bytes of memory; where they are; threads and what they do next | anything else |
//! | [`grid`], [`dtype`] | index arithmetic; data types and fill values | I/O, JSON |
//! | [`codec`] | encoded bytes to decoded bytes, shard index layout | keys, I/O |
//! | [`metadata`] | documents of every Zarr version: one array model, edits, and documents of another version | I/O |
//! | [`error`] | the crate's errors | |
//! | [`plain`] | whole arrays as files of other formats: which byte is which | I/O, chunks |
//! | [`hierarchy`] | which node lives at a prefix, or at a path of the tree (reads documents, remembers them) | chunks |
//! | [`load`] | one chunk by its indices: locate, fetch, decode, keep | file names |
//! | [`read`] | a byte range of an array out of its chunks; who reads in order | file names |
//! | [`view`] | names to vnodes and their numbers; attributes and bytes of a vnode | FUSE |
//! | [`fuse`] | inode numbers, handles, replies, errno | Zarr, stores |
//! | [`cli`] | flags to a checked configuration to a stack of the above | |
//!
//! # One model for every version
//!
//! A document of any version (`metadata::{pre_v1, v1, v2, draft, v3}`, one reader each) becomes a
//! [`metadata::ArrayMetadata`], whose codecs are spelled as one list of v3: filters of numcodecs,
//! order F and byte orders of v2, and the sharding of the drafts are codecs like any other. So
//! there is one parser of codec lists and one decoder.
//!
//! On the way back there are two. A node that is shown in its own version has its document edited
//! ([`metadata::render`]): what needs no change stays byte for byte. A node that is shown in
//! another (`--as`) has its documents made out of the model ([`mod@metadata::write`]), or is shown
//! as one that cannot be, when the version has no words for it. Where its keys lie is the business
//! of [`hierarchy`]: a node of the drafts has its document below `meta` and its chunks below
//! `data`, and only a path in the tree of nodes names it in every version.
//!
//! # Ask, and be answered
//!
//! A caller asks the [`load::Loader`] for a chunk; it is answered at once from memory, or later, by
//! whoever finished the load. Code is synchronous: a load is a closure on one of an elastic set of
//! [`threads`]. It is inside a gate while it is in the store, as many as the store takes at once
//! ([`store::Profile`]), and inside another one while it decodes, as many as there are cores; never
//! in both.
//!
//! fuser's event threads never wait for a store that is far away: what is not in memory becomes a
//! job with its reply. Before a store that answers as fast as the system does, where handing a
//! request over costs more than asking, they may wait, all but one (`fuse::events`).
//!
//! # One read(2), from the kernel to the bytes
//!
//! Functions of this crate, each called by the one before it, with their files; what they call on
//! the way and return from is left out. A chunk of the chunks view:
//!
//! ```text
//! in memory                                  5 functions in 5 files
//!   fuse/filesystem  read -> fuse/read  read_file -> view/file  read -> view/chunk_file  cached
//!     -> load/cache  get
//! not in memory                              9 functions in 7 files
//!   fuse/filesystem  read -> fuse/read  read_file -> view/file  read -> view/chunk_file  load
//!     -> load/loader  ask -> load/cache  run, land -> load/loader  load_of_object
//!     -> load/decode  decode
//! ```
//!
//! A file of the arrays view is a [`plain::Layout`]: bytes made from metadata, and runs of
//! elements. A read plans it once ([`plain::Plan`]), and walks the chunks of each run once
//! ([`read::ReadOperation`]): it copies those that are in memory, and asks for the others; each is
//! copied by the thread that brings it, and the thread that brings the last one replies.
//!
//! ```text
//! not in memory                              12 functions in 8 files
//!   fuse/filesystem  read -> fuse/read  read_file -> view/file  read -> view/arrays/reading  read
//!     -> read/operation  go_on, ask -> load/loader  ask -> load/cache  run, land, load_as, land
//!     -> load/decode  decode
//! ```
//!
//! One rule tells which readers read in order ([`read`]): chunks are loaded as far ahead of such a
//! reader as it has read in order, for files of chunks (`read::files`) and for whole arrays
//! (`read::readahead`), and the cache is told what will not be asked for again. Every constant of
//! this is in `load::tuning`.
//!
//! # Identity and freshness
//!
//! * A *vnode* is a path of the view. Its number is arithmetic where there are many of them: an
//!   array takes a contiguous range, directories of partial indices first, then chunks, so that
//!   ten million files cost no memory. Other paths are interned until the kernel forgets them.
//! * An *inode number* stands for one version of a vnode. The first version is shown under the
//!   vnode's own number; a later one, while the kernel still holds the old one, under a fresh
//!   number. `open` compares the version that the kernel knows with the one in the store: the
//!   same keeps the kernel's pages, another answers `ESTALE`, and the kernel looks the name up
//!   again. What the kernel knows is remembered in a bounded table; where it was forgotten, the
//!   pages and attributes are dropped, which is always right.
//! * A handle pins one [`store::Object`]: index and chunk come from one version. A version
//!   younger than the clock's grain is waited for before it is trusted.
//! * A whole array has too many objects to pin. Its handles share a snapshot (`view::arrays`),
//!   which remembers the versions of what was read and tells whether more of the same state can be.
//!
//! # Rights
//!
//! The kernel checks callers against the modes that the mount shows, so a mode grants no more than
//! the store does. What is shown where it is stored has its own mode, as have the directories above
//! it. What is made of several objects, or is shown apart from directories that it is stored in,
//! has the bits of those who may read all of it and go all the way ([`store::Readers`],
//! `view::rights`); what fewer may read than a group's own document is left out of the group's
//! file. Pages are shared among users: a chunk that fewer may reach than its file is read for
//! nobody (`view::arrays::audience`).
//!
//! # Memory
//!
//! One budget ([`budget::Budget`]) holds decoded chunks, pages of shard indices, documents and
//! every buffer on the way. A load reserves all it needs at once, before it allocates and while
//! it holds nothing, so that loads cannot wait for each other; what does not fit the budget at
//! all is let through one at a time. A load waits for the work of others, which ends, and never for
//! what is kept by open files, which no wait frees.
//!
//! A document is not what it takes: a tree of JSON is thirty times its text. So attributes are
//! trees only where they are short, and text otherwise ([`metadata::attributes`]), long documents
//! are read in outline ([`metadata::outline`]), and nodes are remembered by the memory that
//! they take.

pub mod budget;
pub mod buffers;
pub mod cli;
pub mod codec;
pub mod dtype;
pub mod error;
pub mod escape;
pub mod fuse;
pub mod grid;
pub mod hierarchy;
pub mod load;
pub mod metadata;
pub mod plain;
pub mod read;
pub mod store;
pub mod sync;
pub mod threads;
pub mod view;
