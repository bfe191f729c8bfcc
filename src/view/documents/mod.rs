//! Metadata documents as a view shows them: edited if the view's files differ from the stored ones, and otherwise byte
//! for byte as stored.
//!
//! A consolidated document is edited entry by entry. If the view edits documents, an entry shows the node's own
//! document, because the stored copy may be older.
//!
//! | file | contents |
//! |---|---|
//! | this one | documents that are edited, and their consolidated copies |
//! | `foreign` | documents that are made in another version (`--as`) |
//! | `consolidation` | consolidated metadata that is made in another version |
//! | `originals` | the documents that a consolidated document has copies of |
//! | `of_array` | the documents of one array |
//! | `crs` | the coordinate system of an array, for GDAL |

pub(in crate::view) mod consolidation;
mod crs;
pub(in crate::view) mod foreign;
pub(in crate::view) mod of_array;
mod originals;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::View;
use super::arrays::Arrays;
use super::fingerprint::hash;
use super::options::ViewKind;
use super::rights::is_refused;
use super::tree::Tree;
use super::vnode::{CONTROL, Vnode};
use crate::budget::Holding;
use crate::error::Error;
use crate::error::until_current;
use crate::fresh::{LastCheck, Observations};
use crate::hierarchy::{ArrayIdentity, Document, DocumentText, Node};
use crate::load::{Block, BlockKey, BlockPart, Owner};
use crate::metadata::consolidated::{self, Copied, EntryEdit};
use crate::metadata::crs_attribute::with_crs;
use crate::metadata::{
    ArrayMetadata, DocumentName, NodeMetadata, ZarrFormat, carry, render, strict_json, v2, v3,
    write,
};
use crate::store::{Key, ObjectMeta, Prefix, Readers, StoreError, Version};
use crate::view::nodes::node::{FileForm, ShownArray, ShownNode};
use originals::{Making, Originals};

/// Consolidated metadata is made anew no more often than this if none of the documents that it copies has changed. Other
/// changes, such as new nodes, may be late by this time.
const CONSOLIDATED_RECHECK: Duration = Duration::from_secs(10);

/// The documents of a view: edited, written in another version, and consolidated.
#[derive(Debug)]
pub(super) struct Documents {
    pub(super) tree: Arc<Tree>,
    arrays: Arc<Arrays>,
    originals: Originals,
    /// Whether the warning about too many nodes to consolidate has been logged.
    pub(super) gave_up_walking: AtomicBool,
}

impl Documents {
    /// The documents of the nodes of `tree`, whose arrays `arrays` describes.
    pub(super) fn new(tree: Arc<Tree>, arrays: Arc<Arrays>) -> Documents {
        Documents {
            tree,
            arrays,
            originals: Originals::new(),
            gave_up_walking: AtomicBool::new(false),
        }
    }
}

impl View {
    /// The text of `vnode`, a document, with the attributes of the stored document; `None` when it no longer exists, or
    /// `vnode` is not a document.
    pub(super) fn document_of(
        &self,
        vnode: &Vnode,
    ) -> Result<Option<(ObjectMeta, Arc<Block>)>, Error> {
        let look = || match vnode {
            Vnode::Document { view, key } => self.documents.edited_document(*view, key),
            Vnode::Written { view, path, name } => self.documents.written(*view, path, *name),
            Vnode::Plain(name) => self.arrays.long_text(name),
            _ => Ok(None),
        };
        // An array that is found to be rewritten is forgotten, and looked up again.
        until_current(look)
    }
}

impl Documents {
    /// The document at `key` as `view` shows it, with the attributes of the stored one.
    fn edited_document(
        &self,
        view: ViewKind,
        key: &Key,
    ) -> Result<Option<(ObjectMeta, Arc<Block>)>, Error> {
        let Some(meta) = self.tree.loader.sources().stat_settled(key)? else {
            return Ok(None);
        };
        let place = hash(&(view, key));
        // The edit also depends on the parsed array, which must be of the same version as the text.
        let (identity, making, epoch) = if let Some(array) = self.array_of_document(view, key)? {
            if array.node.document.key == *key {
                self.tree
                    .check_version(&array.node, &array.path, Some(meta.version))?;
            }
            (array.node.identity, None, 0)
        } else {
            let name = DocumentName::of(key.name());
            let making = name.and_then(|name| self.begin_copies(name, place));
            (0, making, self.epoch(meta.size()))
        };
        // The readers of the document decide which copies may be in it, so they are part of the
        // key.
        // The coordinate system of an array may be in documents of other nodes.
        let crs = match DocumentName::of(key.name()) {
            Some(name) => self.crs_to_add(&key.parent(), name)?,
            None => None,
        };
        let originals = making.as_ref().map(|making| making.state);
        let identity = hash(&(place, identity, originals, meta.access(), crs));
        let text = self
            .tree
            .document_block(identity, meta.version, epoch, || {
                self.with_copies(making.as_ref(), |observed| {
                    let text = self
                        .tree
                        .hierarchy
                        .read_as(key, Holding::NOTHING.to_hold("a document"), edited_bytes)?
                        .filter(|text| text.document.meta.version == meta.version);
                    let text = text.ok_or_else(|| StoreError::Changed {
                        key: key.to_string(),
                    })?;
                    let edited = self.edited(view, &text, observed)?;
                    // Documents that the keys view shows as they are stored stay unchanged.
                    Ok(if self.tree.shows_own_bytes(view) && edited == text.bytes {
                        edited
                    } else {
                        strict_json(edited)
                    })
                })
            })?;
        Ok(Some((meta, text)))
    }

    /// The array whose own document is at `key`.
    fn array_of_document(
        &self,
        view: ViewKind,
        key: &Key,
    ) -> Result<Option<Arc<ShownArray>>, Error> {
        let Some(prefix) = self.tree.hierarchy.described_by(key)? else {
            return Ok(None);
        };
        let array = self.tree.shown(view, &prefix)?.into_array();
        Ok(array.filter(|array| array.node.document.key == *key))
    }

    /// The number of the current recheck period of a consolidated document. The periods of long
    /// documents are longer, because checking them takes longer.
    pub(super) fn epoch(&self, size: u64) -> u64 {
        let longer = 1 + size / (1 << 20);
        self.tree
            .options
            .freshness
            .period(CONSOLIDATED_RECHECK, longer)
    }

    /// Begins to look for the document `name` of a group, where `place` stands for that document. `None` if it has no copies.
    fn begin_copies(&self, name: DocumentName, place: u64) -> Option<Making<'_>> {
        let has_copies = matches!(name, DocumentName::ZMetadata | DocumentName::ZarrJson);
        let (freshness, sources) = (self.tree.options.freshness, self.tree.loader.sources());
        has_copies.then(|| self.originals.begin(place, freshness, sources))
    }

    /// Calls `make`, and notes the originals that the text was made of, if it has copies. In a local store, the originals
    /// are examined before and after.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Stale`] when a document has changed meanwhile.
    fn with_copies(
        &self,
        making: Option<&Making<'_>>,
        make: impl FnOnce(&mut Observations) -> Result<Vec<u8>, Error>,
    ) -> Result<Vec<u8>, Error> {
        let mut observed = Observations::default();
        let Some(making) = making else {
            return make(&mut observed);
        };
        let begun = LastCheck::now();
        let text = self.tree.looking_now(|| make(&mut observed))?;
        let sources = self.tree.loader.sources();
        let is_checked = self.tree.loader.is_local() && !self.tree.options.freshness.is_immutable();
        if is_checked && !observed.are_unchanged(|subjects| sources.observe(subjects))? {
            return Err(Error::Stale);
        }
        self.originals.put(making, observed, begun);
        Ok(text)
    }

    fn edited(
        &self,
        view: ViewKind,
        text: &DocumentText,
        observed: &mut Observations,
    ) -> Result<Vec<u8>, Error> {
        let key = &text.document.key;
        if is_zmetadata(key) {
            return self.edit_copies(view, text, ZarrFormat::V2, observed);
        }
        match DocumentName::of(key.name()) {
            Some(DocumentName::ZGroup) => return Ok(write::group_v2().to_vec()),
            Some(name @ DocumentName::ZAttrs) => {
                let own = Some(text.bytes.clone());
                let shown = self.with_crs(&key.parent(), name, own)?;
                return Ok(shown.unwrap_or_default());
            }
            _ => {}
        }
        if let Some(array) = self.array_of_document(view, key)? {
            let shown = self.tree.translated(&array, &text.bytes)?;
            return self.shown_with_crs(&array, shown);
        }
        let edited = self.edit_copies(view, text, ZarrFormat::V3, observed)?;
        if self.tree.shows_own_bytes(view) {
            return Ok(edited);
        }
        render::group_v3(&edited).map_err(|error| Error::in_document(key, error))
    }

    /// `shown`, the own document of an array, with its coordinate system if the document has attributes.
    fn shown_with_crs(&self, array: &ShownArray, shown: Vec<u8>) -> Result<Vec<u8>, Error> {
        let Some(name) = DocumentName::of(array.node.document.key.name()) else {
            return Ok(shown);
        };
        let shown = self.with_crs(&array.path, name, Some(shown))?;
        Ok(shown.unwrap_or_default())
    }

    /// The text of a consolidated document, in which each copy is edited as the view shows its
    /// array. The documents of the arrays are added to `observed`.
    fn edit_copies(
        &self,
        view: ViewKind,
        text: &DocumentText,
        format: ZarrFormat,
        observed: &mut Observations,
    ) -> Result<Vec<u8>, Error> {
        let (document, text) = (&text.document, text.bytes.as_slice());
        let group = document.key.parent();
        let mut failed = None;
        let mut edit = |copied: Copied, path: &str, entry: &[u8]| {
            let edited = match copied {
                Copied::Attributes => self.edit_attributes(view, document, (path, entry), observed),
                Copied::Array => self.edit_entry(view, document, (path, entry), format, observed),
                Copied::Group => self.edit_group(view, document, (path, entry), format, observed),
            };
            match edited {
                Ok(edit) => return edit,
                // Readers report an array without an entry as missing, but a wrong entry would make them read wrong
                // values.
                Err(Error::Metadata { key, error }) => {
                    log::debug!("{group}: the copy of {key} is left out: {error}");
                }
                Err(Error::Store(error)) if is_refused(&error) => {
                    self.tree.warn_once(&(&group, path, "copy"), || {
                        format!("{}: the copy of {path} is left out: {error}", document.key)
                    });
                }
                Err(error) => failed = failed.take().or(Some(error)),
            }
            EntryEdit::Remove
        };
        let edited = match format {
            ZarrFormat::V2 => consolidated::edit_v2(text, &mut edit),
            _ => consolidated::edit_v3(text, &mut edit),
        };
        // A passing error fails the request: the text is cached for a while, and would lack the entry for that time.
        match (failed, edited) {
            (Some(error), _) => Err(error),
            (None, Ok(edited)) => Ok(edited),
            (None, Err(error)) => {
                // A document that is not valid consolidated metadata is shown as stored.
                log::debug!("{}: not edited: {error}", document.key);
                Ok(text.to_vec())
            }
        }
    }

    /// How to edit `entry`, the copy of the document of the array at `path` below the group of the
    /// consolidated `document`.
    fn edit_entry(
        &self,
        view: ViewKind,
        document: &Document,
        (path, entry): (&str, &[u8]),
        format: ZarrFormat,
        observed: &mut Observations,
    ) -> Result<EntryEdit, Error> {
        let Some(prefix) = prefix_of(document, path) else {
            return Ok(EntryEdit::Remove);
        };
        self.observe_own(&prefix, format, observed)?;
        let array = match self.tree.shown(view, &prefix)? {
            ShownNode::Array(array) => array,
            // The keys view shows these keys as stored, so the copy stays as it is.
            ShownNode::Plain if self.tree.shows_own_bytes(view) => return Ok(EntryEdit::Keep),
            ShownNode::Plain | ShownNode::Unusable(_) => return Ok(EntryEdit::Remove),
        };
        if array.form == FileForm::Stored && self.tree.shows_own_bytes(view) {
            return Ok(EntryEdit::Keep);
        }
        if array.node.metadata.zarr_format != format {
            return Ok(EntryEdit::Remove);
        }
        let Err(refused) = self.check_may_copy(&array.node.document, document) else {
            // The copy may be older than the array's own document, which decides how the files are shown.
            let key = &array.node.document.key;
            let own = self.tree.hierarchy.read(key, Holding::SOURCE)?;
            return Ok(match own {
                Some(own) => {
                    let shown = self.tree.translated(&array, &own.bytes)?;
                    EntryEdit::Replace(self.shown_with_crs(&array, shown)?)
                }
                None => EntryEdit::Remove,
            });
        };
        let agrees = parse_array(entry, format)
            .is_some_and(|copy| ArrayIdentity::of(&prefix, &copy).array == array.node.identity);
        if !agrees {
            return Err(refused);
        }
        Ok(EntryEdit::Replace(self.tree.translated(&array, entry)?))
    }

    /// Adds the document that an array or a group at `prefix` has in this format, which may be absent, to `observed`.
    fn observe_own(
        &self,
        prefix: &Prefix,
        format: ZarrFormat,
        observed: &mut Observations,
    ) -> Result<(), Error> {
        let names: &[&[u8]] = match format {
            ZarrFormat::V2 => &[b".zarray", b".zgroup"],
            _ => &[b"zarr.json"],
        };
        for name in names {
            let key = prefix.key(name)?;
            match self.tree.object_meta(&key) {
                Ok(meta) => observed.add_object(&key, meta.as_ref()),
                Err(_) => observed.add_unobserved(),
            }
        }
        Ok(())
    }

    /// How to edit `entry`, the copy of the document of the group at `path`.
    fn edit_group(
        &self,
        view: ViewKind,
        document: &Document,
        (path, entry): (&str, &[u8]),
        format: ZarrFormat,
        observed: &mut Observations,
    ) -> Result<EntryEdit, Error> {
        let is_canonical = || format == ZarrFormat::V2 && v2::is_canonical_group(entry);
        if self.tree.shows_own_bytes(view) || is_canonical() {
            return Ok(EntryEdit::Keep);
        }
        let Some(prefix) = prefix_of(document, path) else {
            return Ok(EntryEdit::Remove);
        };
        self.observe_own(&prefix, format, observed)?;
        let own = match self.tree.resolve(view, &prefix)?.node {
            Node::Group(group) if group.format == format => group.document,
            Node::Implicit | Node::Group(_) => return Ok(EntryEdit::Keep),
            // Readers of v2 know an array only by its own document.
            Node::Array(_) if format == ZarrFormat::V2 => return Ok(EntryEdit::Keep),
            Node::Array(_) | Node::Broken(_) => return Ok(EntryEdit::Remove),
        };
        if format == ZarrFormat::V2 {
            return Ok(EntryEdit::Replace(write::group_v2().to_vec()));
        }
        let Some(own) = own.filter(|own| self.check_may_copy(own, document).is_ok()) else {
            return Ok(EntryEdit::Keep);
        };
        let Some(text) = self.tree.hierarchy.read(&own.key, Holding::SOURCE)? else {
            return Ok(EntryEdit::Remove);
        };
        let text = render::group_v3(&text.bytes);
        let text = text.map_err(|error| Error::in_document(&own.key, error))?;
        Ok(EntryEdit::Replace(text))
    }

    /// How to edit `entry`, the copy of the attributes of v2 of the node at `path`.
    fn edit_attributes(
        &self,
        view: ViewKind,
        document: &Document,
        (path, entry): (&str, &[u8]),
        observed: &mut Observations,
    ) -> Result<EntryEdit, Error> {
        if self.tree.shows_own_bytes(view) {
            return Ok(EntryEdit::Keep);
        }
        let Some(prefix) = prefix_of(document, path) else {
            return Ok(EntryEdit::Remove);
        };
        let key = prefix.key(DocumentName::ZAttrs.as_str().as_bytes())?;
        let own = self.tree.hierarchy.read(&key, Holding::SOURCE)?;
        observed.add_object(&key, own.as_ref().map(|own| &own.document.meta));
        let Some(own) = own else {
            return Ok(EntryEdit::Remove);
        };
        let may_copy = self.check_may_copy(&own.document, document).is_ok();
        let crs = self.crs_to_add(&prefix, DocumentName::ZAttrs)?;
        if let Some(crs) = crs.filter(|_| may_copy) {
            let shown = with_crs(DocumentName::ZAttrs, &own.bytes, &crs);
            return Ok(shown.map_or(EntryEdit::Remove, EntryEdit::Replace));
        }
        if own.bytes == entry || !may_copy {
            return Ok(EntryEdit::Keep);
        }
        // A value that is not a JSON object would make the whole document invalid.
        match carry::differences_in(carry::ObjectKind::Attributes, &own.bytes, entry) {
            Ok(changed) if changed.is_empty() => Ok(EntryEdit::Keep),
            Ok(_) => Ok(EntryEdit::Replace(own.bytes)),
            Err(_) => Ok(EntryEdit::Remove),
        }
    }
}

impl Tree {
    /// The text of a document from the cache. `text` makes it again after an eviction. `identity`, `version` and
    /// `epoch` together identify the text.
    pub(in crate::view) fn document_block(
        &self,
        identity: u64,
        version: Version,
        epoch: u64,
        text: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<Arc<Block>, Error> {
        let key = BlockKey {
            owner: Owner::Object(identity),
            version,
            part: BlockPart::Document { epoch },
        };
        let cache = self.loader.cache();
        cache.load(key, || {
            let mut text = text()?;
            text.shrink_to_fit();
            let reservation = cache.reserve(text.len() as u64, Holding::SOURCE)?;
            // The stamp is a hash of the text, computed once, because consolidated documents may be
            // long.
            let stamp = hash(&text);
            Ok(Block::stamped(text, reservation, stamp))
        })
    }
}

impl Documents {
    /// Refuses to copy `original` into the consolidated document `copy` when fewer users may read
    /// `original`.
    fn check_may_copy(&self, original: &Document, copy: &Document) -> Result<(), Error> {
        let (mut of_original, mut of_copy) = (Readers::default(), Readers::default());
        self.tree
            .add_object(&original.key, &original.meta, &mut of_original)?;
        self.tree.add_object(&copy.key, &copy.meta, &mut of_copy)?;
        if of_original.include(copy.meta.access(), &of_copy) {
            return Ok(());
        }
        Err(Error::Store(StoreError::Denied {
            key: original.key.to_string(),
            reason: format!("fewer users may read it than {}", copy.key),
        }))
    }
}

/// The prefix of the node at `path` below the group of the consolidated `document`; `None` if the path cannot be that
/// of a node.
fn prefix_of(document: &Document, path: &str) -> Option<Prefix> {
    let group = document.key.parent();
    if path.is_empty() {
        return Some(group);
    }
    if path.split('/').any(|name| name.as_bytes() == CONTROL) {
        return None;
    }
    Some(group.key(path.as_bytes()).ok()?.to_prefix())
}

/// Memory for editing a document of `bytes`: the text, a masked copy, the positions of its members,
/// and the result.
fn edited_bytes(bytes: u64) -> u64 {
    bytes.saturating_mul(4)
}

fn is_zmetadata(key: &Key) -> bool {
    DocumentName::of(key.name()) == Some(DocumentName::ZMetadata)
}

fn parse_array(text: &[u8], format: ZarrFormat) -> Option<ArrayMetadata> {
    match format {
        ZarrFormat::V2 => v2::parse_array(text).ok(),
        _ => match v3::parse(text).ok()? {
            NodeMetadata::Array(array) => Some(*array),
            NodeMetadata::Group => None,
        },
    }
}
