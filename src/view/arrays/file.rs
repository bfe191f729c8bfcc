//! Whole-array files, which are made from the facts of arrays and kept until one of their inputs changes.

use std::sync::Arc;

use super::super::fingerprint::hash;
use super::super::vnode::{PlainKind, PlainName, VnodeAttributes, VnodeKind};
use super::Arrays;
use super::facts::ArrayFacts;
use super::inputs::Inputs;
use super::lock;
use super::preview_samples::SampledPreview;
use crate::budget::{Holding, Reservation};
use crate::error::{Error, FormatError};
use crate::fresh::LastCheck;
use crate::load::Region;
use crate::plain::{
    Array, AxisOrder, ElementBox, FileFormat, Layout, Omitted, PartContent, Selected, Selection,
    array_file, crs_beside, geo_tiff,
};
use crate::store::{ObjectMeta, Prefix};
use crate::view::nodes::node::ShownArray;

/// Layouts that take at most this much memory are kept without a reservation.
pub(super) const SMALL_BYTES: u64 = 64 << 10;

/// Memory for each array in a file: its node, its layout, and its selection.
pub(super) const SOURCE_BYTES: u64 = 4 << 10;

/// How often a file is made again because its elements have changed meanwhile.
const MOST_TRIES: usize = 3;

/// The number of copies of an array's model that a format makes, as texts and trees.
const MODEL_COPIES: u64 = 4;

/// One version of a whole-array file, without the bytes of its elements.
#[derive(Debug)]
pub(in crate::view) struct PlainFile {
    pub(super) name: PlainName,
    /// A hash of everything but the bytes of elements.
    pub(super) identity: u64,
    pub(super) layout: Layout,
    pub(super) sources: Vec<ElementSource>,
    /// Attributes of the document that gives the file its times.
    pub(super) meta: ObjectMeta,
    /// Read bits of the users who may read everything that the file is made from.
    pub(super) mode: u32,
    /// The arrays and groups that a file of a group leaves out.
    pub(super) omitted: Vec<Omitted>,
    pub(super) inputs: Arc<Inputs>,
    /// The length of a long text, which is in the cache and not in `layout`.
    pub(super) text_len: Option<u64>,
    /// The picture whose bytes are the file; `layout` is empty then.
    pub(super) preview: Option<Arc<SampledPreview>>,
    /// When `inputs` were last seen unchanged.
    last_check: LastCheck,
    _reservation: Option<Reservation>,
}

/// An array that is in a file, and the selection of its elements.
#[derive(Debug, Clone)]
pub(super) struct ElementSource {
    pub(super) array: Arc<ShownArray>,
    pub(super) selected: Selected,
}

/// The parts that make a file.
pub(super) struct FileParts {
    pub(super) layout: Layout,
    pub(super) sources: Vec<ElementSource>,
    pub(super) meta: ObjectMeta,
    pub(super) omitted: Vec<Omitted>,
    pub(super) inputs: Inputs,
    /// A time since which none of `inputs` was seen to change.
    pub(super) checked: LastCheck,
    /// Whether the bytes of the layout depend on elements, which several chunks hold: strings, or coordinates.
    pub(super) has_elements: bool,
    /// The picture whose bytes are the file; `layout` is empty then.
    pub(super) preview: Option<Arc<SampledPreview>>,
}

impl ElementSource {
    pub(super) fn whole(array: &Arc<ShownArray>) -> ElementSource {
        ElementSource {
            selected: Selected::whole(&array.node.metadata.shape),
            array: Arc::clone(array),
        }
    }

    /// The elements of a layout in the axis order `order`, all of them or those in `bounds`. Axes that
    /// the selection removed come first; each has one index.
    pub(super) fn region(&self, order: &AxisOrder, bounds: Option<&ElementBox>) -> Option<Region> {
        let kept = &self.selected.kept;
        let gone = self.removed().map(Some);
        let order = order.iter().map(|&axis| kept.get(axis).copied());
        let mut region = Region {
            start: self.selected.start.clone(),
            shape: self.selected.shape.clone(),
            order: gone.chain(order).collect::<Option<_>>()?,
        };
        if let Some(bounds) = bounds {
            for ((&axis, start), length) in kept.iter().zip(&bounds.start).zip(&bounds.shape) {
                let first = region.start.get_mut(axis)?;
                *first = first.checked_add(*start)?;
                *region.shape.get_mut(axis)? = *length;
            }
        }
        Some(region)
    }

    /// The axes that the selection removed.
    pub(super) fn removed(&self) -> impl Iterator<Item = usize> {
        let axes = 0..self.selected.shape.len();
        axes.filter(|axis| !self.selected.kept.contains(axis))
    }
}

impl FileParts {
    /// An estimate of the memory of the file.
    fn memory_bytes(&self) -> u64 {
        let models = self.sources.iter();
        let models: u64 = models.map(|source| source.array.node.model_bytes).sum();
        let sources = models.saturating_add(self.sources.len() as u64 * SOURCE_BYTES);
        self.layout.memory_bytes() + sources + self.inputs.observations.memory_bytes()
    }

    /// A hash of everything but the bytes of elements.
    pub(super) fn identity(&self, name: &PlainName) -> u64 {
        let sources = self.sources.iter();
        let sources: Vec<u64> = sources.map(|source| source.array.node.identity).collect();
        let bytes = self.layout.parts().iter().map(|part| match &part.content {
            PartContent::Bytes(bytes) => hash(bytes),
            PartContent::Computed(computed) => hash(&**computed),
            PartContent::Elements(_) | PartContent::Tiles(_) => 0,
        });
        let bytes: Vec<u64> = bytes.collect();
        hash(&(
            name,
            self.inputs.observations.fingerprint(),
            self.layout.len(),
            sources,
            bytes,
        ))
    }
}

impl Arrays {
    /// The current version of the file called `name`; `None` when there is no such file.
    ///
    /// # Errors
    /// [`Error::Metadata`] with the reason, when the format cannot express the file.
    pub(super) fn plain_file(&self, name: &PlainName) -> Result<Option<Arc<PlainFile>>, Error> {
        let known = lock(&self.files)
            .get(name)
            .and_then(|(file, _)| file.upgrade());
        if let Some(file) = known
            && self.is_current(&file)?
        {
            return Ok(Some(file));
        }
        let Some(mut parts) = self.make_plain(name)? else {
            return Ok(None);
        };
        let identity = parts.identity(name);
        let text = parts.take_long_text(name);
        let text_len = text.as_ref().map(|text| text.len() as u64);
        if let Some(text) = text {
            self.tree
                .document_block(identity, parts.meta.version, 0, || Ok(text.to_vec()))?;
        }
        let memory = parts.memory_bytes();
        let is_small = memory <= SMALL_BYTES;
        let holding = Holding::NOTHING.to_hold("the header of a file");
        let reservation = (!is_small)
            .then(|| self.tree.loader.cache().reserve_kept(memory, holding))
            .transpose()?;
        let file = Arc::new(PlainFile {
            identity,
            text_len,
            preview: parts.preview,
            name: name.clone(),
            layout: parts.layout,
            sources: parts.sources,
            meta: parts.meta,
            mode: parts.inputs.readers.bits_for(parts.meta.access()),
            omitted: parts.omitted,
            // Inputs that may still change without a trace are not trusted at all.
            last_check: if parts.inputs.observations.are_settled() {
                parts.checked
            } else {
                LastCheck::never()
            },
            inputs: Arc::new(parts.inputs),
            _reservation: reservation,
        });
        // A few large files are kept too, if the cache can spare the memory.
        if !is_small && memory <= self.tree.loader.cache().budget().limit() / 2 {
            let replaced = lock(&self.idle.files).put(name.clone(), Arc::clone(&file));
            drop(replaced);
        }
        let kept = is_small.then(|| Arc::clone(&file));
        let removed = lock(&self.files).push(name.clone(), (Arc::downgrade(&file), kept));
        drop(removed);
        Ok(Some(file))
    }

    /// Forgets `file`, which has changed, and the nodes that it was made from.
    pub(super) fn forget_plain(&self, file: &PlainFile) -> Result<(), Error> {
        lock(&self.files).pop(&file.name);
        lock(&self.idle.files).pop(&file.name);
        self.forget_facts(file.inputs.observations.prefixes());
        for source in &file.sources {
            self.forget_node(&source.array.path)?;
        }
        self.forget_node(&file.name.path)
    }

    /// Whether the file called `name` is no header, or the file that the header names is still the right one. An array that
    /// is stored later takes the name of a part, and a group takes that of a whole array. Neither changes an input of the
    /// header. The name of a whole array is not examined while the header is trusted.
    fn keeps_raw(&self, name: &PlainName, is_trusted: bool) -> Result<bool, Error> {
        match &name.kind {
            PlainKind::Array(format, selection)
                if format.points_to_raw() && (selection.is_some() || !is_trusted) =>
            {
                self.has_own_raw(&name.path, selection.as_ref())
            }
            _ => Ok(true),
        }
    }

    fn is_current(&self, file: &PlainFile) -> Result<bool, Error> {
        let (freshness, sources) = (self.tree.options.freshness, self.tree.loader.sources());
        let is_trusted = freshness.trusts(&file.last_check);
        if !file.inputs.hold(freshness, &file.last_check, sources) {
            return Ok(false);
        }
        let keeps_raw = self.keeps_raw(&file.name, is_trusted)?;
        if !keeps_raw {
            file.last_check.set(&LastCheck::never());
        }
        Ok(keeps_raw)
    }

    /// Makes the file called `name`. All elements in it were in the store at one moment: their objects are checked again
    /// afterwards.
    ///
    /// # Errors
    /// [`Error::Stale`] when the store changes again and again meanwhile.
    pub(super) fn make_plain(&self, name: &PlainName) -> Result<Option<FileParts>, Error> {
        for _ in 0..MOST_TRIES {
            let parts = self.make_once(name)?;
            let is_whole = |parts: &FileParts| {
                !parts.has_elements || parts.inputs.are_unchanged(self.tree.loader.sources())
            };
            match parts {
                Some(parts) if !is_whole(&parts) => {
                    self.forget_facts(parts.inputs.observations.prefixes());
                }
                parts => return Ok(parts),
            }
        }
        Err(Error::Stale)
    }

    fn make_once(&self, name: &PlainName) -> Result<Option<FileParts>, Error> {
        match &name.kind {
            PlainKind::Array(format, selection) => {
                self.make_array_file(&name.path, *format, selection.as_ref())
            }
            PlainKind::Sidecar => self.make_sidecar(&name.path),
            PlainKind::GroupSidecar => self.make_group_sidecar(&name.path),
            PlainKind::Group(format) => self.make_group_file(&name.path, *format),
            PlainKind::Crs(selection) => self.make_crs(&name.path, selection.as_ref()),
        }
    }

    /// The file beside the GeoTIFF of an array or of a part of it; `None` if the GeoTIFF holds its CRS itself, or has none.
    fn make_crs(
        &self,
        path: &Prefix,
        selection: Option<&Selection>,
    ) -> Result<Option<FileParts>, Error> {
        let Some(facts) = self.array_facts(path)? else {
            return Ok(None);
        };
        let refused = |error| Error::in_document(&facts.array.node.document.key, error);
        let _working = self.working_memory(facts.model_memory())?;
        let whole = facts.array(0, "", FileFormat::GeoTif, None);
        let (whole, selected) = (whole.map_err(refused)?, facts.selected(selection));
        let Some(array) = selected.map(|selected| selected.apply(&whole)) else {
            return Ok(None);
        };
        let text = crs_beside(&array).map_err(refused)?;
        Ok(text.map(|text| facts.parts(Layout::of_bytes(text.into_bytes()))))
    }

    fn make_array_file(
        &self,
        path: &Prefix,
        format: FileFormat,
        selection: Option<&Selection>,
    ) -> Result<Option<FileParts>, Error> {
        let Some(facts) = self.array_facts(path)? else {
            return Ok(None);
        };
        if format == FileFormat::Jsonl {
            return self.make_jsonl(&facts, selection);
        }
        let _working = self.working_memory(facts.model_memory())?;
        let refused = |error| Error::in_document(&facts.array.node.document.key, error);
        let stem = self.stem_of(path, selection);
        if format.points_to_raw() && str::from_utf8(&stem).is_err() {
            let name = String::from_utf8_lossy(&stem);
            let error = FormatError::inexpressible("name", name, format.title());
            return Err(refused(error));
        }
        if format.points_to_raw() && !self.has_own_raw(path, selection)? {
            let name = String::from_utf8_lossy(&stem);
            let problem = format!("`{name}.raw` is another file or directory");
            return Err(refused(FormatError::document("name", problem)));
        }
        if format == FileFormat::Png {
            return self.make_preview(&facts, &String::from_utf8_lossy(&stem), selection);
        }
        let whole = facts
            .array(0, &String::from_utf8_lossy(&stem), format, None)
            .map_err(refused)?;
        let Some(selected) = facts.selected(selection) else {
            return Ok(None);
        };
        let mut inputs = facts.inputs.clone();
        let geo = self.geo_of_coordinates(&facts, format, &mut inputs)?;
        let has_elements = geo.is_some();
        let whole = Array {
            geo: geo.or(whole.geo),
            ..whole
        };
        let array = selected.apply(&whole);
        let (layout, levels) = if format == FileFormat::GeoTif {
            let overviews = self.overviews(&facts, &selected, &mut inputs)?;
            let file = geo_tiff(&array, &overviews.arrays).map_err(refused)?;
            for (source, reason) in overviews.sources.iter().zip(&file.left_out) {
                if let Some(reason) = reason {
                    self.leave_overview_out(path, &source.array.path, reason);
                }
            }
            (file.layout, overviews.sources)
        } else {
            let integers = self.tree.options.arrays.integers;
            let layout = array_file(format, &array, integers).map_err(refused)?;
            (layout, Vec::new())
        };
        let array = Arc::clone(&facts.array);
        let mut sources = vec![ElementSource { array, selected }];
        sources.extend(levels);
        Ok(Some(FileParts {
            sources,
            inputs,
            has_elements,
            ..facts.parts(layout)
        }))
    }

    /// Memory for the copies that a format makes of a large model or of long attributes; `None` if that is little.
    pub(super) fn working_memory(&self, memory: u64) -> Result<Option<Reservation>, Error> {
        if memory <= SMALL_BYTES {
            return Ok(None);
        }
        let holding = Holding::NOTHING.to_hold("the header of a file");
        self.tree.loader.cache().reserve(memory, holding).map(Some)
    }

    /// The attributes that `stat` shows of the file called `name`; `None` when it does not exist, or the format cannot
    /// express it.
    pub(in crate::view) fn plain_attributes(
        &self,
        name: &PlainName,
    ) -> Result<Option<VnodeAttributes>, Error> {
        let file = self.file_or_none(name)?;
        let generation = lock(&self.snapshots).generation(name);
        Ok(file.map(|file| self.attributes_of_plain(&file, generation)))
    }

    /// Like [`Arrays::plain_file`], but `None` when the format cannot express the array. The reason is
    /// logged.
    pub(super) fn file_or_none(&self, name: &PlainName) -> Result<Option<Arc<PlainFile>>, Error> {
        match self.plain_file(name) {
            Err(Error::Metadata { key, error }) if is_refusal(&error) => {
                let what = match &name.kind {
                    PlainKind::Array(format, _) | PlainKind::Group(format) => format.title(),
                    PlainKind::Sidecar | PlainKind::GroupSidecar => "JSON",
                    PlainKind::Crs(_) => FileFormat::GeoTif.title(),
                };
                self.tree
                    .warn_once(name, || format!("{key}: no {what} file: {error}"));
                Ok(None)
            }
            found => found,
        }
    }

    pub(super) fn attributes_of_plain(&self, file: &PlainFile, generation: u64) -> VnodeAttributes {
        let fingerprint = hash(&(file.identity, generation));
        let of_preview = file.preview.as_ref().map(|shown| shown.preview.len());
        let len = file.text_len.or(of_preview);
        let len = len.unwrap_or(file.layout.len());
        let shown = self.tree.part(&file.meta, len);
        VnodeAttributes {
            kind: VnodeKind::File,
            mode: shown.mode & file.mode,
            fingerprint,
            ..shown
        }
    }
}

impl ArrayFacts {
    /// Memory for the copies that a format makes of the model, which is large for a record of very
    /// many fields.
    pub(super) fn model_memory(&self) -> u64 {
        let model = self.array.node.model_bytes;
        model.saturating_mul(MODEL_COPIES)
    }

    /// The parts of a file that describes only this array, and has no elements.
    pub(super) fn parts(&self, layout: Layout) -> FileParts {
        let meta = self.array.node.document.meta;
        FileParts {
            layout,
            sources: Vec::new(),
            meta,
            omitted: Vec::new(),
            inputs: self.inputs.clone(),
            // The facts may have been trusted for a while.
            checked: self.last_checked(),
            has_elements: false,
            preview: None,
        }
    }
}

/// Whether the error says that the format cannot express the array, and not that stored bytes are
/// wrong.
pub(super) fn is_refusal(error: &FormatError) -> bool {
    !matches!(error, FormatError::Encoded { .. })
}
