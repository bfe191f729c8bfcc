//! `--info STORE [PATH]`: the hierarchy and what each array is, without a mount.
//!
//! One line a node for people, one JSON document for programs (`--json`). `--sizes` walks the
//! stored chunks as well, and says on standard error how far it got.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::budget::Budget;
use crate::chunk::{ChunkLayout, Shards};
use crate::error::Error;
use crate::grid::product;
use crate::hierarchy::{ArrayNode, Hierarchy, Node, Recheck, TreePlace};
use crate::metadata::write::{self, Content};
use crate::metadata::{Target, ZarrFormat};
use crate::store::{Cursor, Detail, EntryKind, Prefix, Store};

/// Memory for documents; nothing is cached.
const BUDGET_BYTES: u64 = 64 << 20;
/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_millis(500);

/// What to tell, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InfoOptions {
    /// Say which arrays this version cannot express.
    pub(super) shown_as: Option<Target>,
    /// Add up what is stored.
    pub(super) sizes: bool,
    /// JSON instead of lines.
    pub(super) json: bool,
}

/// Writes what is at and below `start` to `out`. `true` when there was a node.
///
/// # Errors
/// [`io::Error`] of `out`; [`Error`] of the store, wrapped.
pub(super) fn report(
    store: Arc<dyn Store>,
    start: &Prefix,
    options: InfoOptions,
    out: &mut impl Write,
) -> io::Result<bool> {
    let hierarchy = Hierarchy::new(
        Arc::clone(&store),
        Budget::new(BUDGET_BYTES),
        Recheck::Never,
    );
    let mut report = Report {
        store,
        hierarchy,
        options,
        progress: Progress::new(),
        found: Vec::new(),
        any: false,
    };
    report.visit(start, out)?;
    report.progress.clear();
    if options.json {
        serde_json::to_writer_pretty(&mut *out, &Value::Array(report.found))?;
        writeln!(out)?;
    }
    Ok(report.any)
}

struct Report {
    store: Arc<dyn Store>,
    hierarchy: Hierarchy,
    options: InfoOptions,
    progress: Progress,
    found: Vec<Value>,
    any: bool,
}

impl Report {
    fn visit(&mut self, start: &Prefix, out: &mut impl Write) -> io::Result<()> {
        // Depth first, names sorted within one prefix; deep trees cost no stack.
        let mut pending = vec![start.clone()];
        while let Some(prefix) = pending.pop() {
            let found = match self.hierarchy.tree_node(&prefix) {
                Ok(found) => found,
                // The others are still to be told of.
                Err(error) => {
                    self.tell_error(&prefix, &error, out)?;
                    continue;
                }
            };
            self.tell(&prefix, &found.node, out)?;
            if matches!(found.node, Node::Array(_)) {
                continue;
            }
            match self.children(&prefix, &found.place) {
                Ok(children) => pending.extend(children.into_iter().rev()),
                Err(error) => self.tell_error(&prefix, &error, out)?,
            }
        }
        Ok(())
    }

    /// A node that cannot be read.
    fn tell_error(
        &mut self,
        prefix: &Prefix,
        error: &Error,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let facts = json!({ "node_type": "unknown", "error": error.to_string() });
        self.any = true;
        self.write(prefix, facts, out)
    }

    /// The paths below `path` that may be nodes, each once and sorted.
    fn children(&self, path: &Prefix, place: &TreePlace) -> Result<Vec<Prefix>, Error> {
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
            let name = match place {
                TreePlace::Draft(node) => node.child(&entry.name, entry.kind),
                _ => (entry.kind == EntryKind::Prefix).then_some(entry.name.as_slice()),
            };
            if let Some(name) = name {
                children.push(path.key(name)?.to_prefix());
            }
        }
        children.sort_unstable();
        children.dedup();
        Ok(children)
    }

    fn tell(&mut self, prefix: &Prefix, node: &Node, out: &mut impl Write) -> io::Result<()> {
        let mut facts = match node {
            Node::Implicit => return Ok(()),
            Node::Group(group) => facts_of_group(group.format),
            Node::Broken(broken) => json!({
                "node_type": "unknown",
                "document": broken.document.key.to_string(),
                "error": broken.error.to_string(),
            }),
            Node::Array(array) => facts_of_array(array),
        };
        self.any = true;
        if let (Node::Array(array), Some(target)) = (node, self.options.shown_as)
            && array.metadata.zarr_format != target.zarr_format()
        {
            let inexpressible = self.inexpressible(array, target);
            let inexpressible = inexpressible.map_err(io::Error::other)?;
            insert(&mut facts, "inexpressible", inexpressible);
        }
        if let (Node::Array(array), true) = (node, self.options.sizes) {
            let (objects, bytes) = self.stored(array).map_err(io::Error::other)?;
            insert(&mut facts, "stored_objects", objects.into());
            insert(&mut facts, "stored_bytes", bytes.into());
        }
        self.write(prefix, facts, out)
    }

    fn write(&mut self, prefix: &Prefix, mut facts: Value, out: &mut impl Write) -> io::Result<()> {
        if self.options.json {
            insert(&mut facts, "path", prefix.to_string().into());
            self.found.push(facts);
            return Ok(());
        }
        self.progress.clear();
        writeln!(out, "{}", line(prefix, &facts))
    }

    /// By view, why `target` cannot express an array.
    fn inexpressible(&self, array: &ArrayNode, target: Target) -> Result<Value, Error> {
        let documents = self.hierarchy.documents(array)?.ok_or(Error::Stale)?;
        let source = documents.source();
        let mut reasons = Map::new();
        for (view, content) in [
            ("keys", Content::Encoded(Shards::Expand)),
            ("chunks", Content::Decoded(Shards::Expand)),
        ] {
            if let Err(error) = write::array(&array.metadata, &source, content, target) {
                reasons.insert(view.to_owned(), error.to_string().into());
            }
        }
        Ok(Value::Object(reasons))
    }

    /// Objects below an array that are chunks or shards of its grid, and their bytes.
    fn stored(&mut self, array: &ArrayNode) -> Result<(u64, u64), Error> {
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
        }
        Ok((objects, bytes))
    }
}

fn insert(facts: &mut Value, name: &str, value: Value) {
    facts
        .as_object_mut()
        .unwrap_or(&mut Map::new())
        .insert(name.to_owned(), value);
}

/// The number of a version, or its name where it never had one of its own.
fn version(format: ZarrFormat) -> Value {
    match format {
        ZarrFormat::PreV1 => "pre-v1".into(),
        ZarrFormat::V1 => 1.into(),
        ZarrFormat::V2 => 2.into(),
        ZarrFormat::Draft => "v3-draft".into(),
        ZarrFormat::V3 => 3.into(),
    }
}

fn facts_of_group(format: ZarrFormat) -> Value {
    json!({ "node_type": "group", "zarr_format": version(format) })
}

fn facts_of_array(array: &ArrayNode) -> Value {
    let metadata = &array.metadata;
    let mut facts = json!({
        "node_type": "array",
        "zarr_format": version(metadata.zarr_format),
        "shape": metadata.shape.as_slice(),
        "data_type": metadata.data_type,
        "chunk_shape": metadata.chunk_shape.as_slice(),
        "codecs": metadata.codecs,
        "dimension_names": metadata.dimension_names,
    });
    match ChunkLayout::new(metadata, Shards::Expand) {
        Ok(layout) => {
            if layout.is_sharded() {
                insert(
                    &mut facts,
                    "shard_shape",
                    metadata.chunk_shape.as_slice().into(),
                );
                let inner = layout.shown_grid().chunk_shape();
                insert(&mut facts, "chunk_shape", inner.into());
            }
            insert(&mut facts, "chunks", layout.shown_grid().n_chunks().into());
            insert(
                &mut facts,
                "decoded_chunk_bytes",
                layout.decoded_len().into(),
            );
            let decoded = metadata.decoding.as_ref().ok().and_then(|decoding| {
                let elements = product(&metadata.shape)?;
                let size = Some(decoding.data_type.item_size).filter(|&size| size > 0);
                elements.checked_mul(size?)
            });
            insert(&mut facts, "decoded_bytes", decoded.into());
        }
        Err(error) => insert(&mut facts, "error", error.to_string().into()),
    }
    facts
}

/// One node for people.
fn line(prefix: &Prefix, facts: &Value) -> String {
    let text = |name: &str| facts.get(name).and_then(Value::as_str).unwrap_or_default();
    let list = |name: &str| {
        let items = facts.get(name).and_then(Value::as_array);
        let items: Vec<String> = items.into_iter().flatten().map(Value::to_string).collect();
        format!("({})", items.join(", "))
    };
    let mut words = vec![prefix.to_string()];
    if let Some(format) = facts.get("zarr_format") {
        let version = match format {
            Value::String(name) => name.clone(),
            number => format!("v{number}"),
        };
        words.push(format!("{version} {}", text("node_type")));
    }
    if facts.get("shape").is_some() {
        words.push(format!("{} {}", text("data_type"), list("shape")));
        words.push(match facts.get("shard_shape") {
            Some(_) => format!(
                "chunks {} in shards {}",
                list("chunk_shape"),
                list("shard_shape")
            ),
            None => format!("chunks {}", list("chunk_shape")),
        });
        words.push(list("codecs").replace('"', ""));
    }
    if let Some(bytes) = facts.get("decoded_bytes").and_then(Value::as_u64) {
        words.push(format!("{} decoded", human(bytes)));
    }
    if let Some(bytes) = facts.get("stored_bytes").and_then(Value::as_u64) {
        let objects = facts.get("stored_objects").and_then(Value::as_u64);
        let objects = match objects.unwrap_or(0) {
            1 => "1 object".to_owned(),
            n => format!("{n} objects"),
        };
        words.push(format!("{} stored in {objects}", human(bytes)));
    }
    let inexpressible = facts.get("inexpressible").and_then(Value::as_object);
    // What cannot be decoded cannot be shown otherwise; that is said once.
    if let (Some(reasons), None) = (inexpressible, facts.get("error")) {
        let reason = |view| reasons.get(view).and_then(Value::as_str);
        match (reason("keys"), reason("chunks")) {
            (Some(keys), Some(chunks)) if keys == chunks => words.push(keys.to_owned()),
            (keys, chunks) => {
                let of_view = [("keys", keys), ("chunks", chunks)];
                for (view, reason) in of_view {
                    words.extend(reason.map(|reason| format!("not in the {view} view: {reason}")));
                }
            }
        }
    }
    if facts.get("error").is_some() {
        words.push(format!("cannot be decoded: {}", text("error")));
    }
    words.join("  ")
}

/// A size in binary units with one digit after the point.
fn human(bytes: u64) -> String {
    let mut rest = bytes;
    let mut below = 0;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if rest < 1024 {
            break;
        }
        below = rest % 1024;
        rest /= 1024;
        unit = larger;
    }
    if unit == "B" {
        return format!("{rest} B");
    }
    format!("{rest}.{} {unit}", below * 10 / 1024)
}

/// A line on standard error that is written over, when someone is there to see it.
struct Progress {
    shown: Option<Instant>,
    wanted: bool,
}

impl Progress {
    fn new() -> Progress {
        Progress {
            shown: None,
            wanted: io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, text: impl FnOnce() -> String) {
        if self.wanted && self.shown.is_none_or(|last| last.elapsed() > PROGRESS) {
            let mut stderr = io::stderr().lock();
            // Progress that cannot be shown is not worth an error.
            let _ = write!(stderr, "\r\x1b[K{}", text());
            self.shown = Some(Instant::now());
        }
    }

    fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_binary_units() {
        for (bytes, told) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(human(bytes), told);
        }
    }
}
