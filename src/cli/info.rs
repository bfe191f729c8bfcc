//! `--info STORE [PATH]`: describes the hierarchy and each array, without a mount.
//!
//! It prints one line a node for people, or one JSON document for programs (`--json`). `--sizes`
//! walks the stored chunks as well, and shows its progress on standard error.

mod facts;
mod line;
mod omissions;
mod progress;
mod table;

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};

use super::config::InfoConfig;
use super::output::Output;
use crate::budget::Budget;
use crate::dtype::Element;
use crate::error::Error;
use crate::escape::Text;
use crate::fresh::Freshness;
use crate::hierarchy::{ArrayNode, BrokenKind, Hierarchy, Node, TreePlace};
use crate::load::Shards;
use crate::metadata::write::{self, ChunkContent};
use crate::metadata::{ArrayMetadata, Attributes, Target, ZarrFormat, missing};
use crate::store::{
    Cursor, Detail, EntryKind, Key, Prefix, Store, StoreError, WaitingParts, is_named_as_zip,
};
use crate::view::{FileFormat, View, ViewKind, ViewOptions};
use facts::{DimensionNames, FileFacts, facts_of_array, facts_of_group, insert_files};
use line::row;
use omissions::SaidOmissions;
use progress::ProgressLine;
use table::Table;

/// The content of the chunk files in each view.
const CONTENTS: [(&str, ChunkContent); 2] = [
    ("keys", ChunkContent::Encoded(Shards::Expand)),
    ("chunks", ChunkContent::Complete(Shards::Expand)),
];

/// Memory budget for documents.
const BUDGET_BYTES: u64 = 64 << 20;

/// Writes the nodes at and below `start` to `out`. Returns whether there were any.
///
/// # Errors
/// [`io::Error`] of `out`; [`Error`] of the store, wrapped.
pub(super) fn report(
    store: Arc<dyn Store>,
    start: &Prefix,
    config: &InfoConfig,
    out: &mut Output,
) -> io::Result<bool> {
    let budget = Budget::with_patience(BUDGET_BYTES, config.timeout);
    let arrays = config.arrays.clone().map(|arrays| {
        let options = ViewOptions {
            views: vec![ViewKind::Arrays],
            arrays,
            freshness: Freshness::Immutable,
            // Strings of files of groups are read as a mount would read them.
            cache_budget_bytes: config.cache_budget_bytes,
            timeout: config.timeout,
            // The lines of the nodes have the omissions.
            logs_omissions: false,
            ..ViewOptions::default()
        };
        View::new(Arc::clone(&store), options).map_err(io::Error::other)
    });
    let waiting = super::waiting_in(&*store);
    let hierarchy = Hierarchy::new(store, budget, Freshness::Immutable);
    let mut report = InfoReport {
        arrays: arrays.transpose()?,
        store: Arc::clone(hierarchy.store()),
        waiting,
        hierarchy,
        config,
        progress: ProgressLine::new(),
        table: Table::default(),
        said: SaidOmissions::default(),
        found: Vec::new(),
        any: false,
    };
    report.visit(start, out)?;
    report.progress.clear();
    out.print(&report.table.take())?;
    if let Some(view) = &report.arrays {
        super::print_warnings(super::useless_options(view, &config.store));
    }
    if config.json {
        out.print(&Text::new().json(Value::Array(report.found)))?;
    }
    Ok(report.any)
}

struct InfoReport<'c> {
    store: Arc<dyn Store>,
    waiting: WaitingParts,
    /// Makes the files of arrays, if formats were requested.
    arrays: Option<View>,
    hierarchy: Hierarchy,
    config: &'c InfoConfig,
    progress: ProgressLine,
    table: Table,
    said: SaidOmissions,
    found: Vec<Value>,
    any: bool,
}

impl InfoReport<'_> {
    fn visit(&mut self, start: &Prefix, out: &mut Output) -> io::Result<()> {
        // Depth first, names sorted within one prefix; deep trees cost no stack.
        let mut pending = vec![start.clone()];
        while let Some(prefix) = pending.pop() {
            let found = match self.hierarchy.tree_node(&prefix) {
                Ok(found) => found,
                // The other nodes are still reported.
                Err(error) => {
                    self.write_error(&prefix, &error, out)?;
                    continue;
                }
            };
            self.write_node(&prefix, &found.node, out)?;
            if matches!(found.node, Node::Array(_)) {
                continue;
            }
            let has_zips = matches!(found.node, Node::Implicit) && self.is_below_no_node(&prefix);
            match self.children(&prefix, &found.place, has_zips) {
                Ok(children) => pending.extend(children.into_iter().rev()),
                Err(error) => self.write_error(&prefix, &error, out)?,
            }
        }
        Ok(())
    }

    /// Writes a node that cannot be read.
    fn write_error(&mut self, prefix: &Prefix, error: &Error, out: &mut Output) -> io::Result<()> {
        let facts = json!({ "node_type": "unknown", "error": error.to_string() });
        self.any = true;
        self.write(prefix, facts, Vec::new(), out)
    }

    /// Whether no node is above `path`. Zip stores are nodes only there.
    fn is_below_no_node(&self, path: &Prefix) -> bool {
        let is_none = |path| matches!(self.hierarchy.node(&path), Ok(Node::Implicit));
        path.with_ancestors().all(is_none)
    }

    /// The paths below `path` that may be nodes, each once and sorted. Zip stores are among them
    /// if it `has_zips`.
    fn children(
        &self,
        path: &Prefix,
        place: &TreePlace,
        has_zips: bool,
    ) -> Result<Vec<Prefix>, Error> {
        let mut children = Vec::new();
        let listed = match place {
            TreePlace::Store => path.clone(),
            TreePlace::Draft(node) => node.children()?,
            TreePlace::BelowArray => return Ok(children),
        };
        let Some(mut listing) = self.store.list(&listed, Cursor::START, Detail::Names)? else {
            return Ok(children);
        };
        while let Some(entry) = listing.next_entry()? {
            let name = if let TreePlace::Draft(node) = place {
                node.child(&entry.name, entry.kind)
            } else {
                let is_zip = || has_zips && is_named_as_zip(&entry.name);
                (entry.kind == EntryKind::Prefix || is_zip()).then_some(entry.name.as_slice())
            };
            if let Some(name) = name {
                children.push(path.key(name)?.to_prefix());
            }
        }
        children.sort_unstable();
        children.dedup();
        Ok(children)
    }

    fn write_node(&mut self, prefix: &Prefix, node: &Node, out: &mut Output) -> io::Result<()> {
        let mut facts = match node {
            Node::Implicit => return Ok(()),
            Node::Group(group) => facts_of_group(group.format),
            Node::Broken(broken) => json!({
                "node_type": if broken.kind == BrokenKind::Group { "group" } else { "unknown" },
                "document": broken.document.key.to_text(),
                "error": broken.error.to_string(),
            }),
            Node::Array(array) => facts_of_array(array, &self.dimension_names(array)),
        };
        self.any = true;
        if let (Node::Array(array), Some(target)) = (node, self.config.shown_as) {
            if array.metadata.zarr_format != target.zarr_format() {
                let inexpressible = self.inexpressible(array, target);
                facts["inexpressible"] = inexpressible.map_err(io::Error::other)?;
                facts["absent_chunks"] = absent_chunks(&array.metadata, target);
            }
            let unlike = self.missing_values(array, target);
            facts["missing_values"] = unlike.map_err(io::Error::other)?;
        }
        let mut remarks = Vec::new();
        if let Node::Array(array) = node {
            let of_array = |(key, _): &&(Key, u64)| array.prefix.strip(key.as_bytes()).is_some();
            let n = self.waiting.iter().filter(of_array).count();
            if let Some(waiting) = super::waiting_in_words(n) {
                remarks.push(waiting);
                facts["chunks_in_journal"] = n.into();
            }
        }
        if let Node::Group(_) = node {
            // Warnings of the mount report metadata that is invalid.
            let copied = self.hierarchy.only_copied(prefix).unwrap_or_default();
            if !copied.is_empty() && !self.config.json {
                let names: Vec<String> = copied.iter().map(ToString::to_string).collect();
                let names = names.join(", ");
                remarks.push(format!(
                    "only in consolidated metadata, so not shown: {names}"
                ));
            }
            if !copied.is_empty() {
                let paths = copied.iter().map(|path| Value::from(path.to_text()));
                facts["only_in_consolidated_metadata"] = paths.collect();
            }
        }
        match self.files(prefix, node) {
            Some(Ok(files)) if self.config.json => insert_files(&mut facts, &files),
            Some(Ok(files)) => {
                remarks.extend(self.remarks(prefix, &facts, &files)?);
                remarks.extend(self.wide_integers(node, &files));
            }
            Some(Err(error)) => facts["error"] = error.to_string().into(),
            None => {}
        }
        if let (Node::Array(array), true) = (node, self.config.sizes) {
            match self.stored(array).map_err(io::Error::other)? {
                Ok((objects, bytes)) => {
                    facts["stored_objects"] = objects.into();
                    facts["stored_bytes"] = bytes.into();
                }
                Err(unlisted) => remarks.push(format!("the stored size is unknown: {unlisted}")),
            }
        }
        self.write(prefix, facts, remarks, out)
    }

    /// Remarks for people about the files of a node.
    fn remarks(
        &mut self,
        prefix: &Prefix,
        facts: &Value,
        files: &[FileFacts],
    ) -> io::Result<Vec<String>> {
        let cache_bytes = facts["whole_array_cache_bytes"].as_u64();
        let beyond = cache_bytes.filter(|&bytes| bytes > self.config.cache_budget_bytes);
        let mut remarks: Vec<String> = beyond
            .map(|bytes| bytes.div_ceil(1 << 20))
            .map(|mebibytes| format!("read whole with --cache-size {mebibytes}MiB or more"))
            .into_iter()
            .collect();
        if let Some(view) = &self.arrays {
            remarks.extend(self.said.sentences(prefix, files, view)?);
        }
        Ok(remarks)
    }

    /// A remark on the TIFF files of an array whose integers many programs do not open.
    fn wide_integers(&self, node: &Node, files: &[FileFacts]) -> Option<String> {
        let options = self.config.arrays.as_ref()?;
        let Node::Array(array) = node else {
            return None;
        };
        let data_type = &array.metadata.decoding.as_ref().ok()?.data_type;
        let is_wide =
            matches!(&data_type.element, Element::Integer(integers) if integers.bytes == 8);
        let is_image = files.iter().any(|file| match file.format {
            FileFormat::Tif => file.is_there(),
            // The file is left out for these integers. Narrower ones would fit, unless the array has no
            // planes.
            FileFormat::OmeTif => array.metadata.shape.len() >= 2,
            _ => false,
        });
        (is_wide && is_image && options.integers.is_none()).then(|| {
            "ImageJ, Pillow and OME-TIFF have no integers of 64 bits (see --integers)".to_owned()
        })
    }

    /// The names of the dimensions of an array, which versions before v3 have among the attributes.
    fn dimension_names(&self, array: &ArrayNode) -> DimensionNames {
        let metadata = &array.metadata;
        if metadata.dimension_names.is_some() || metadata.zarr_format == ZarrFormat::V3 {
            return metadata.dimension_names.clone();
        }
        // Where the attributes cannot be read, the array is described without them.
        let documents = self.hierarchy.documents(array).ok().flatten()?;
        let text = Attributes::text_of_array(metadata.zarr_format, &documents.source());
        write::dimension_names(metadata, text.ok()?.as_deref()).ok()?
    }

    /// The files of a node in the requested formats, if there are any.
    fn files(&self, prefix: &Prefix, node: &Node) -> Option<Result<Vec<FileFacts>, Error>> {
        let view = self.arrays.as_ref()?;
        match node {
            Node::Array(_) => Some(view.outcomes(prefix).map(|outcomes| {
                let outcomes = outcomes.unwrap_or_default().into_iter();
                outcomes.map(FileFacts::of_array).collect()
            })),
            Node::Group(_) => Some(view.group_outcomes(prefix).map(|outcomes| {
                let outcomes = outcomes.into_iter();
                outcomes.map(FileFacts::of_group).collect()
            })),
            Node::Implicit | Node::Broken(_) => None,
        }
    }

    fn write(
        &mut self,
        prefix: &Prefix,
        mut facts: Value,
        remarks: Vec<String>,
        out: &mut Output,
    ) -> io::Result<()> {
        if self.config.json {
            facts["path"] = prefix.to_text().into();
            self.found.push(facts);
            return Ok(());
        }
        self.progress.clear();
        match self.table.push(row(prefix, &facts, remarks)) {
            Some(text) => out.print(&text),
            None => Ok(()),
        }
    }

    /// The reasons why `target` cannot express an array, by view.
    fn inexpressible(&self, array: &ArrayNode, target: Target) -> Result<Value, Error> {
        let documents = self.hierarchy.documents(array)?.ok_or(Error::Stale)?;
        let source = documents.source();
        let mut reasons = json!({});
        for (view, content) in CONTENTS {
            if let Err(error) = write::array(&array.metadata, &source, content, target) {
                reasons[view] = error.to_string().into();
            }
        }
        Ok(reasons)
    }

    /// By view, how missing values that xarray reads from `target` differ from those of the store.
    fn missing_values(&self, array: &ArrayNode, target: Target) -> Result<Value, Error> {
        let documents = self.hierarchy.documents(array)?.ok_or(Error::Stale)?;
        let metadata = &array.metadata;
        let text = Attributes::text_of_array(metadata.zarr_format, &documents.source());
        let mut unlike = json!({});
        // Where the attributes cannot be read, the array cannot be shown, for another reason.
        let Ok(text) = text else { return Ok(unlike) };
        for (view, content) in CONTENTS {
            let place = (content, target.zarr_format());
            if let Ok(Some(reason)) = missing::lost(metadata, text.as_deref(), place) {
                unlike[view] = reason.into();
            }
        }
        Ok(unlike)
    }

    /// The number of objects below an array that are chunks or shards of its grid, and their total size in bytes; or
    /// the reason why the store does not list them.
    fn stored(&mut self, array: &ArrayNode) -> Result<Result<(u64, u64), StoreError>, Error> {
        let rank = array.metadata.shape.len();
        let (mut objects, mut bytes) = (0_u64, 0_u64);
        let mut pending = vec![array.prefix.clone()];
        while let Some(prefix) = pending.pop() {
            let Some(mut listing) = self
                .store
                .list(&prefix, Cursor::START, Detail::Attributes)?
            else {
                continue;
            };
            while let Some(entry) = listing.next_entry()? {
                let key = prefix.key(&entry.name)?;
                if entry.kind == EntryKind::Prefix {
                    pending.push(key.to_prefix());
                    continue;
                }
                let relative = array.prefix.strip(key.as_bytes()).unwrap_or_default();
                if array.metadata.chunk_keys.decode(relative, rank).is_some() {
                    objects += 1;
                    bytes = bytes.saturating_add(entry.meta.map_or(0, |meta| meta.size()));
                    self.progress
                        .show(|| format!("{}: {objects} objects", array.prefix));
                }
            }
            if let Some(unlisted) = listing.left_out() {
                return Ok(Err(unlisted));
            }
        }
        Ok(Ok((objects, bytes)))
    }
}

/// By view, the wrong fill value that some readers of `target` use for an array, if they do.
fn absent_chunks(array: &ArrayMetadata, target: Target) -> Value {
    let mut unlike = json!({});
    if target != Target::V2 {
        return unlike;
    }
    for (view, content) in CONTENTS {
        if let Some(reason) = write::misread_fill_value(array, content) {
            unlike[view] = reason.into();
        }
    }
    unlike
}
