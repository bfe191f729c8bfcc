//! The attributes that `stat` shows of a vnode. Sizes and times come from the attributes in the store and from shard
//! indices, so that no chunk has to be read for them (except chunks of variable-length types).

use std::sync::Arc;

use super::View;
use super::fingerprint::hash;
use super::options::ViewKind;
use super::tree::Tree;
use super::vnode::{Vnode, VnodeAttributes, VnodeKind};
use crate::error::Error;
use crate::files::{ShownFile, Writing};
use crate::load::Block;
use crate::shards::ChunkObject;
use crate::store::{Key, NewFile, ObjectMeta, Prefix, Stat, may_be_store_file};
use crate::view::control::statistics;
use crate::view::nodes::meaning::may_describe_array;
use crate::view::nodes::node::{FileForm, ShownArray, ShownNode};

impl View {
    /// The attributes of `vnode`; `None` when it no longer exists.
    pub(super) fn attributes_of(&self, vnode: &Vnode) -> Result<Option<VnodeAttributes>, Error> {
        match vnode {
            Vnode::Views | Vnode::Control => Ok(Some(self.tree.directory(&self.tree.root_meta()))),
            Vnode::Statistics => Ok(Some(self.tree.file(
                &self.tree.root_meta(),
                statistics::SIZE,
                0,
            ))),
            Vnode::Metrics => {
                let len = self.metrics().len() as u64;
                Ok(Some(self.tree.file(&self.tree.root_meta(), len, 0)))
            }
            Vnode::Snapshot => Ok(self.tree.snapshot_text().map(|text| {
                let len = text.len() as u64;
                self.tree.file(&self.tree.root_meta(), len, 0)
            })),
            // A program may still have it as its working directory, so it keeps attributes.
            Vnode::Gone(VnodeKind::Directory) => {
                Ok(Some(self.tree.directory(&self.tree.root_meta())))
            }
            Vnode::Gone(VnodeKind::File) => Ok(None),
            Vnode::Sync => Ok(Some(self.tree.file(&self.tree.root_meta(), 0, 0))),
            Vnode::Log | Vnode::Refused => {
                let lines = self.log_lines(vnode);
                Ok(Some(self.log.attributes(lines, &self.tree.root_meta())))
            }
            Vnode::Prefix { view, path } => {
                let meta = match self.tree.directory_meta(*view, path) {
                    // If the store is gone, the root stays, because the mount's own files in it say so.
                    Err(_) | Ok(None) if path.is_root() => Some(self.tree.root_meta()),
                    found => found?,
                };
                if let Some(meta) = meta {
                    return Ok(Some(self.tree.directory(&meta)));
                }
                let now = self.tree.directory_without_prefix(*view, path)?;
                now.map_or(Ok(None), |now| self.attributes_of(&now))
            }
            Vnode::Object { view, key } => {
                let attributes = if let Some(writing) = self.tree.writing(*view) {
                    let stored = self.tree.object_meta(key)?;
                    let shown = writing.shown(key, stored)?;
                    let is_new = stored.is_none() && shown.is_draft && may_describe_array(key);
                    let attributes = self.tree.written_file(shown);
                    if is_new {
                        // The store says nothing of a document that was made and is not saved yet. Chunks
                        // of an array whose document was removed may still be shown beside it.
                        return Ok(attributes);
                    }
                    attributes
                } else {
                    let meta = self.tree.sources_of(*view).stat(key)?;
                    meta.map(|meta| self.tree.object(&meta))
                };
                self.tree.check_plain(*view, key)?;
                Ok(attributes)
            }
            Vnode::Unsupported { key, .. } => {
                let Some(meta) = self.tree.loader.sources().stat(key)? else {
                    return Ok(None);
                };
                let shown = self.tree.shown_apart(&meta, &key.parent())?;
                Ok(Some(self.tree.object(&shown)))
            }
            Vnode::Document { view, key } if let Some(writing) = self.tree.writing(*view) => {
                let document = self.document_of(vnode)?;
                let stored = document.as_ref().map(|(meta, _)| *meta);
                let shown = writing.shown(key, stored)?;
                Ok(self.document_attributes(writing, document, (&shown, stored)))
            }
            Vnode::Written { view, path, name } if let Some(writing) = self.tree.writing(*view) => {
                let key = path.key(name.as_str().as_bytes())?;
                let now = || self.tree.documents_now(*view, path);
                // The text belongs to this version if the objects have not changed afterwards.
                let stored = now()?;
                let document = self.document_of(vnode)?;
                let shown = writing.shown_by(&key, stored, now)?;
                Ok(self.document_attributes(writing, document, (&shown, stored)))
            }
            Vnode::Document { .. } | Vnode::Written { .. } => {
                let document = self.document_of(vnode)?;
                Ok(document.map(|(meta, text)| self.tree.document(&meta, &text)))
            }
            Vnode::Plain(name) => self.arrays.plain_attributes(name),
            Vnode::ErrorNote { view, path } => {
                let note = self.note(*view, path)?;
                Ok(note.map(|(attributes, _)| attributes))
            }
            Vnode::ChunkDirectory(place) => {
                let array = self.tree.array_of(place)?;
                self.tree.chunk_directory(&array, &place.indices)
            }
            Vnode::Chunk(place) => {
                let array = self.tree.array_of(place)?;
                self.tree.chunk(&array, &place.indices)
            }
        }
    }

    /// The attributes of a document that may be written; `None` if it does not exist. `shown` is what its open file
    /// shows, with the attributes that the stored document had when the text was read. The result has the fingerprint
    /// of the open file, or of the one that was closed last, if that file shows this text.
    fn document_attributes(
        &self,
        writing: &Writing,
        document: Option<(ObjectMeta, Arc<Block>)>,
        (shown, stored): (&ShownFile, Option<ObjectMeta>),
    ) -> Option<VnodeAttributes> {
        if let Some(meta) = shown.meta.filter(|_| shown.is_draft) {
            return Some(self.tree.draft_file(&meta, shown));
        }
        let (meta, text) = document?;
        let version = stored.map(|stored| stored.version);
        let is_same = shown.meta.map(|now| now.version) == version;
        let own = shown
            .fingerprint
            .filter(|&own| is_same && writing.is_text_of((own, version), text.stamp()));
        Some(self.tree.document(&meta, &text).with_fingerprint(own))
    }

    /// Attributes and text of the `ERROR.txt` of the node at `path`; `None` when the node can be
    /// shown.
    pub(super) fn note(
        &self,
        view: ViewKind,
        path: &Prefix,
    ) -> Result<Option<(VnodeAttributes, Vec<u8>)>, Error> {
        let ShownNode::Unusable(unusable) = self.tree.shown(view, path)? else {
            return Ok(None);
        };
        let note = unusable.note(view);
        let document = &unusable.document;
        let meta = self
            .tree
            .shown_apart(&document.meta, &document.key.parent())?;
        Ok(Some((self.tree.text(&meta, &note), note)))
    }
}

impl Tree {
    /// The attributes of the store's root: the current ones, or, where the store is gone, those from the start of the
    /// mount, because the mount's own directories remain.
    pub(super) fn root_meta(&self) -> ObjectMeta {
        let now = self.loader.sources().store().stat_root();
        now.unwrap_or(self.root)
    }

    /// The attributes of the directory of the chunks whose indices begin with `first`; `None` when no stored chunk can
    /// be in it.
    pub(super) fn chunk_directory(
        &self,
        array: &ShownArray,
        first: &[u64],
    ) -> Result<Option<VnodeAttributes>, Error> {
        // A program that makes an array smaller can remove the stored chunks outside of the grid after it has changed
        // the document, as zarr-python 2 does: they are found by their names, and not listed.
        if !array.has_directory(first) && !self.writes_chunks(array) {
            return Ok(None);
        }
        let stored = array.stored_directory(first)?;
        let meta = match self.loader.sources().stat_prefix(&stored)? {
            // An array of a draft that has no chunks has no directory of its own, but its document always lies in one.
            // An array whose first inner chunks are staged has no directory either.
            None if array.has_directory(first)
                && (array.shows_absent || self.has_staged_below(&stored)) =>
            {
                self.stat_prefix(&array.node.document.key.parent())?
            }
            found => found,
        };
        let Some(meta) = meta else { return Ok(None) };
        if array.is_at_stored_path() {
            return Ok(Some(self.directory(&meta)));
        }
        let meta = self.directory_shown_apart(&meta, &stored)?;
        Ok(Some(self.directory(&meta)))
    }

    /// The attributes of a chunk; `None` when it is outside of the grid, or is not stored and not shown as fill value.
    /// A chunk of a variable-length type is decoded, because its size is stored nowhere.
    pub(super) fn chunk(
        &self,
        array: &ShownArray,
        indices: &[u64],
    ) -> Result<Option<VnodeAttributes>, Error> {
        if !array.grid().contains(indices) {
            return self.leftover(array, indices);
        }
        let chunked = &array.chunked;
        let is_sharded = chunked.layout().is_sharded();
        let writing = self.writing(array.view);
        if let Some(writing) = writing.filter(|_| array.unwritable.is_none())
            && let Some(object) = self.chunk_object(array, indices)?
        {
            return self.written_chunk(writing, (array, indices), &object);
        }
        let found = if is_sharded || array.form == FileForm::Decoded {
            self.loader.stat_for_reading(chunked, indices)?
        } else {
            self.loader.stat_stored(chunked, indices)?
        };
        let Some(meta) = found else {
            return self.absent_chunk(array, indices);
        };
        let shown = self.chunk_meta(array, indices, &meta)?;
        if !is_sharded && array.form != FileForm::Decoded {
            return Ok(Some(self.object(&shown)));
        }
        if !is_sharded && let Some(len) = array.decoded_len(indices) {
            return Ok(Some(self.part(&shown, len)));
        }
        // The index and the attributes must belong to one version, the one of the object that is opened here.
        let Some(object) = self.loader.open_stored(chunked, indices, Some(meta))? else {
            return self.absent_chunk(array, indices);
        };
        let shown = self.chunk_meta(array, indices, object.meta())?;
        let mut locator = self.loader.locator(chunked, &object, indices)?;
        if array.shows_absent
            && let Some(len) = array.decoded_len(indices)
        {
            locator.verify()?;
            return Ok(Some(self.part(&shown, len)));
        }
        let len = match locator.locate(indices)? {
            None => array.absent_len(indices),
            Some(chunk) if array.form != FileForm::Decoded => Some(chunk.encoded.len()),
            Some(_) => Some(array.decoded_len_of(&self.loader, &object, indices)?),
        };
        Ok(len.map(|len| self.part(&shown, len)))
    }

    /// The attributes of a stored chunk outside of the grid, which is not opened and not listed.
    fn leftover(
        &self,
        array: &ShownArray,
        indices: &[u64],
    ) -> Result<Option<VnodeAttributes>, Error> {
        if !self.writes_chunks(array) {
            return Ok(None);
        }
        let object = self.chunk_object(array, indices)?;
        let found = object.map_or(Ok(None), |object| object.find())?;
        Ok(found.map(|found| {
            let decoded = array
                .decoded_len(indices)
                .filter(|_| array.form == FileForm::Decoded);
            self.part(&found.meta, decoded.unwrap_or(found.len))
        }))
    }

    /// Like [`Tree::chunk`], for a chunk that may be written and that lies in `object`.
    fn written_chunk(
        &self,
        writing: &Writing,
        (array, indices): (&ShownArray, &[u64]),
        object: &ChunkObject,
    ) -> Result<Option<VnodeAttributes>, Error> {
        let mut found = object.find()?;
        let stored = found.as_ref().map(|found| found.meta);
        let key = array.file_key(indices)?;
        let shown = writing.shown_by(&key, stored, || object.now())?;
        let Some(meta) = shown.meta else {
            let absent = self.absent_chunk(array, indices)?;
            return Ok(absent.map(|found| found.with_fingerprint(shown.fingerprint)));
        };
        if shown.is_draft {
            let meta = self.with_shown_mode(array, indices, meta)?;
            return Ok(Some(self.draft_file(&meta, &shown)));
        }
        if stored.is_none_or(|stored| stored.version != meta.version) {
            // Another thread has committed it meanwhile.
            found = object.find()?;
        }
        let found = found.ok_or(Error::Stale)?;
        let len = match (array.form, array.decoded_len(indices)) {
            (FileForm::Decoded, Some(len)) => len,
            (FileForm::Decoded, None) => {
                let open = || (self.loader).open_stored(&array.chunked, indices, Some(found.meta));
                let Some(opened) = found.object.map_or_else(open, |object| Ok(Some(object)))?
                else {
                    return Ok(None);
                };
                array.decoded_len_of(&self.loader, &opened, indices)?
            }
            (FileForm::Encoded | FileForm::Stored, _) => found.len,
        };
        let own = found.meta.version.fingerprint();
        let fingerprint = shown.fingerprint.unwrap_or(own);
        let meta = self.with_shown_mode(array, indices, found.meta)?;
        Ok(Some(self.writable(&meta, len, fingerprint)))
    }

    /// The attributes of a file that has a draft.
    fn draft_file(&self, meta: &ObjectMeta, shown: &ShownFile) -> VnodeAttributes {
        self.writable(meta, meta.size(), shown.fingerprint.unwrap_or_default())
    }

    /// The attributes of `len` bytes that are part of, or decoded from, a stored object with the attributes `meta`.
    pub(super) fn part(&self, meta: &ObjectMeta, len: u64) -> VnodeAttributes {
        self.file(meta, len, meta.version.fingerprint())
    }

    /// The attributes of a chunk that is not stored. `None` unless it is shown as a file of the fill value. A chunk of a
    /// stored shard has the mode and the owner of the shard. Otherwise, a write to the chunk makes a new object. Then the
    /// chunk has the attributes of the document, and the users who may make files in the directory may also write to it.
    pub(super) fn absent_chunk(
        &self,
        array: &ShownArray,
        indices: &[u64],
    ) -> Result<Option<VnodeAttributes>, Error> {
        let fingerprint = hash(&("absent", array.node.chunk_identity));
        let Some(len) = array.absent_len(indices) else {
            return Ok(None);
        };
        let document = &array.node.document;
        let mut meta = document.meta;
        let object = self.chunk_object(array, indices)?;
        let shard = object.map_or(Ok(None), |object| object.access())?;
        if let Some(NewFile { mode, uid, gid, .. }) = shard {
            meta = ObjectMeta {
                mode,
                uid,
                gid,
                ..meta
            };
        } else if array.unwritable.is_none() && self.is_writable() {
            meta.mode &= self.mode_of_new(&meta, &array.chunked.stored_key(indices)?)?;
        }
        if !array.is_at_stored_path() {
            meta = self.shown_apart(&meta, &document.key.parent())?;
        }
        if array.unwritable.is_none() {
            return Ok(Some(self.writable(&meta, len, fingerprint)));
        }
        Ok(Some(self.file(&meta, len, fingerprint)))
    }

    /// The bits of a mode without the write bits of those users of `shown` who may not make an object at `key`.
    fn mode_of_new(&self, shown: &ObjectMeta, key: &Key) -> Result<u32, Error> {
        let sources = self.loader.sources();
        let is_for_others = sources.object_right(shown).is_some();
        let mut directory = Some(key.parent()).filter(|_| is_for_others);
        while let Some(prefix) = directory {
            if let Some(access) = sources.directory_access(&prefix)? {
                return Ok(!0o222 | shown.access().makers_in(access));
            }
            directory = prefix.to_key().map(|key| key.parent());
        }
        Ok(!0)
    }

    /// The attributes of a stored object that is shown unchanged.
    pub(super) fn object(&self, meta: &ObjectMeta) -> VnodeAttributes {
        self.file(meta, meta.size(), meta.version.fingerprint())
    }

    /// An edited or written document; the fingerprint is a hash of its text.
    pub(super) fn document(&self, meta: &ObjectMeta, text: &Block) -> VnodeAttributes {
        self.writable(meta, text.len() as u64, text.stamp())
    }

    /// Generated text; the fingerprint is a hash of it.
    pub(super) fn text(&self, meta: &ObjectMeta, text: &[u8]) -> VnodeAttributes {
        self.file(meta, text.len() as u64, hash(&text))
    }

    pub(super) fn directory(&self, meta: &ObjectMeta) -> VnodeAttributes {
        VnodeAttributes {
            kind: VnodeKind::Directory,
            mode: meta.mode & self.bits(0o555) & !self.options.umask.unwrap_or(0),
            // The size of the store's directory, so that `du -b` agrees with the store.
            ..self.file(meta, meta.size(), 0)
        }
    }

    /// The permission bits that a file or directory shows if it may be written: all of them where the mount is
    /// writable, otherwise `bits`.
    fn bits(&self, bits: u32) -> u32 {
        if self.is_writable() { 0o7777 } else { bits }
    }

    /// The attributes of a file that may be written, if the mount is writable.
    pub(super) fn writable(
        &self,
        meta: &ObjectMeta,
        size: u64,
        fingerprint: u64,
    ) -> VnodeAttributes {
        VnodeAttributes {
            mode: meta.mode & self.bits(0o444) & !self.options.umask.unwrap_or(0),
            ..self.file(meta, size, fingerprint)
        }
    }

    pub(super) fn file(&self, meta: &ObjectMeta, size: u64, fingerprint: u64) -> VnodeAttributes {
        VnodeAttributes {
            kind: VnodeKind::File,
            size,
            times: meta.times,
            // Never more than the store grants: a daemon that runs as root must not publish files.
            mode: meta.mode & 0o444 & !self.options.umask.unwrap_or(0),
            uid: self.options.uid.unwrap_or(meta.uid),
            gid: self.options.gid.unwrap_or(meta.gid),
            fingerprint,
        }
    }

    pub(super) fn stat(&self, key: &Key) -> Result<Option<Stat>, Error> {
        Ok(self.loader.sources().store().stat(key)?)
    }

    /// The attributes of a prefix; `None` when it does not exist. In a store without directories, a prefix exists if a
    /// node is there, or if names can be listed and at least one begins with the prefix.
    pub(super) fn stat_prefix(&self, prefix: &Prefix) -> Result<Option<ObjectMeta>, Error> {
        let sources = self.loader.sources();
        let Some(key) = prefix.to_key() else {
            return Ok(sources.stat_prefix(prefix)?);
        };
        if sources.store().profile().has_directories {
            return Ok(sources.stat_prefix(prefix)?);
        }
        if may_be_store_file(prefix.as_bytes())
            && let Some(below) = self.stat(&key)?.and_then(|stat| stat.below)
        {
            return Ok(Some(below));
        }
        if self.hierarchy.finds_node_from(prefix)? {
            return self.stat_prefix(&Prefix::root());
        }
        Ok(self.stat(&key)?.and_then(|stat| stat.prefix_meta()))
    }

    /// Like [`Tree::stat_prefix`], but only for a store whose names cannot be listed. Such a store cannot say whether a
    /// prefix exists. `None` for other stores.
    pub(super) fn stat_untold(&self, prefix: &Prefix) -> Result<Option<ObjectMeta>, Error> {
        if !self.hierarchy.is_unlisted() || !self.hierarchy.finds_node_from(prefix)? {
            return Ok(None);
        }
        self.stat_prefix(&Prefix::root())
    }
}
