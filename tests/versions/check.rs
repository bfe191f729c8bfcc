//! Checks of the files that views show of an array.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use zarr_mount::metadata::Target;
use zarr_mount::view::{View, ViewKind};

use super::codecs::frame;
use super::common;
use super::fill::base64;
use super::kind::Kind;
use super::model::{Model, Version, indices};
use super::shown::Shown;
use super::types::Type;
use super::write::join;

/// The names of documents of v2 and v3.
const DOCUMENTS: [&str; 5] = ["zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"];

fn read(view: &Arc<View>, path: &str) -> Vec<u8> {
    let found = common::read(view, path).unwrap_or_else(|error| panic!("{path}: {error}"));
    found.unwrap_or_else(|| panic!("no {path}"))
}

fn read_json(view: &Arc<View>, path: &str) -> Value {
    let text = read(view, path);
    serde_json::from_slice(&text)
        .unwrap_or_else(|error| panic!("{path}: {error}: {}", String::from_utf8_lossy(&text)))
}

impl Model {
    fn is_native(&self, target: Target) -> bool {
        match target {
            Target::V2 => self.version == Version::V2,
            Target::V3 => self.version == Version::V3,
        }
    }

    /// Why the array cannot be said in a version.
    fn inexpressible(&self, kind: ViewKind, target: Option<Target>) -> Option<&'static str> {
        let Some(target) = target else {
            let compressed = self.version == Version::PreV1 && kind == ViewKind::Chunks;
            return compressed.then_some("there is always a compressor");
        };
        if self.is_native(target) {
            return None;
        }
        let reasons: &[(bool, &str)] = match target {
            Target::V3 => &[(self.item.order().is_err(), "two byte orders")],
            Target::V2 => &[
                (self.item.is_brain_float(), "data type"),
                (
                    kind == ViewKind::Keys && self.item.has_odd_nan(&self.fill()),
                    "fill value",
                ),
                (kind == ViewKind::Keys && self.has_odd_axes(), "order"),
            ],
        };
        let found = reasons.iter().find(|(holds, _)| *holds);
        found.map(|(_, reason)| *reason)
    }

    /// Whether there is no directory that could show absent chunks: a draft keeps chunks apart
    /// from documents.
    fn has_no_directory(&self) -> bool {
        matches!(self.version, Version::Protocol | Version::Core)
            && self.stored().is_empty()
            && self.left_over().is_none()
    }

    /// The fill value that a document in another version says. Where all chunks are files, v2 says the missing value.
    fn fill_as(&self, kind: ViewKind, target: Target) -> Vec<u8> {
        let fill = self.fill();
        if kind != ViewKind::Chunks || target != Target::V2 || self.is_native(target) {
            return fill;
        }
        let names = self.dimension_names.iter().flatten();
        let is_named = names.filter(|name| name.is_some()).count() == self.shape.len();
        let is_odd = self.item.has_odd_nan(&fill);
        let is_nan = || matches!(self.item, Type::Plain(_)) && self.item.fill_v2(&fill) == "NaN";
        if is_odd || self.version == Version::V3 && is_named && !is_nan() {
            return self.item.no_fill();
        }
        fill
    }

    /// The attribute `_FillValue` of a document of v3 for an array of v2 that xarray opens.
    fn missing_in_v3(&self) -> Option<Value> {
        let (fill, Type::Plain(field)) = (self.fill.as_ref()?, &self.item) else {
            return None;
        };
        self.dimension_names.as_ref()?;
        let spelled = field.kind.fill_v2(fill);
        let encoded = |value: &Value| {
            let value = match value.as_str() {
                Some("NaN") => f64::NAN,
                Some("Infinity") => f64::INFINITY,
                Some("-Infinity") => f64::NEG_INFINITY,
                _ => value.as_f64().unwrap(),
            };
            json!(base64(&value.to_le_bytes()))
        };
        match field.kind {
            Kind::Bool | Kind::Int(_) | Kind::Unsigned(_) => Some(spelled),
            Kind::Float(_) => Some(encoded(&spelled)),
            Kind::Complex(_) => Some(spelled.as_array().unwrap().iter().map(encoded).collect()),
            _ => None,
        }
    }

    /// The attribute `missing_value` of such a document, which says it for text.
    fn missing_text_in_v3(&self) -> Option<Value> {
        let fill = self.fill.as_ref()?;
        self.dimension_names.as_ref()?;
        let is_text = match &self.item {
            Type::Plain(field) => matches!(field.kind, Kind::Text(_)),
            Type::Strings => true,
            _ => false,
        };
        is_text.then(|| self.item.fill_v2(fill))
    }

    /// Checks the members that a document must have in any version and spelling, and that the chunks in `kind` agree with
    /// them.
    fn check_shown(
        &self,
        view: &Arc<View>,
        kind: ViewKind,
        (document, fill): (&Shown, &[u8]),
        data: &str,
        key: impl Fn(&[usize]) -> String,
    ) {
        assert_eq!(document.shape, self.shape, "shape");
        assert_eq!(document.chunk_shape, self.inner, "chunk shape");
        assert_eq!(document.item.plain(), self.item.plain(), "data type");
        // No fill value may become that of no time.
        let no_time = self.fill.is_none() && self.item.is_time();
        if !no_time || document.fill != i64::MIN.to_le_bytes() {
            assert_eq!(document.fill, fill, "fill value");
        }
        if kind == ViewKind::Chunks {
            assert!(document.axes.is_sorted(), "order {:?}", document.axes);
            assert_eq!(document.codecs, [], "codecs");
            if let Type::Plain(field) = &document.item {
                assert!(!field.big || field.kind.unit() == 1, "big-endian");
            }
        }
        for chunk in self.chunks() {
            let path = join(&[data, &key(&chunk)]);
            let items = self.items(&chunk);
            let bytes = match (kind, self.encoded(&chunk)) {
                (ViewKind::Keys, None) => {
                    assert!(
                        common::walk(view, &path).unwrap().is_none(),
                        "{path} is there"
                    );
                    continue;
                }
                (ViewKind::Keys, Some(encoded)) => {
                    let bytes = read(view, &path);
                    assert_eq!(bytes, encoded, "{path}");
                    bytes
                }
                (ViewKind::Chunks, _) => {
                    let bytes = read(view, &path);
                    match self.item {
                        Type::Plain(_) => assert_eq!(bytes, items.concat(), "{path}"),
                        Type::Strings | Type::ByteStrings => {
                            assert_eq!(bytes, frame(&items), "{path}");
                        }
                        Type::Record(_) => {}
                    }
                    bytes
                }
                (ViewKind::Arrays, _) => unreachable!("files, not chunks: see `arrays`"),
            };
            assert_eq!(document.decode(&bytes), items, "{path}, decoded");
        }
    }

    /// Paths of the chunk files, and no others.
    fn check_chunk_files(
        &self,
        view: &Arc<View>,
        kind: ViewKind,
        data: &str,
        key: impl Fn(&[usize]) -> String,
        others: &[String],
    ) {
        let shown = |chunk: &Vec<usize>| kind == ViewKind::Chunks || !self.is_absent(chunk);
        let chunks = self.chunks().into_iter().filter(shown);
        let expected = chunks.map(|chunk| join(&[data, &key(&chunk)]));
        let expected: BTreeSet<String> = expected.chain(others.iter().cloned()).collect();
        let is_generated = |path: &String| {
            let name = path.rsplit('/').next().unwrap();
            DOCUMENTS.contains(&name) && !others.contains(path)
        };
        let files = common::files(view, self.base).into_iter();
        let found: BTreeSet<String> = files.filter(|path| !is_generated(path)).collect();
        assert_eq!(found, expected, "files");
    }

    fn check_refused(&self, view: &Arc<View>, document: &str, data: &str) {
        let node = self.node();
        for name in ["zarr.json", ".zarray", document] {
            let path = join(&[data, name]);
            assert!(
                common::walk(view, &path).unwrap().is_none(),
                "{path} is there"
            );
        }
        let text = String::from_utf8(read(view, &join(&[data, "ERROR.txt"]))).unwrap();
        assert!(!text.trim().is_empty(), "ERROR.txt of {node} says nothing");
        read(view, &join(&[data, &format!("{document}.unsupported")]));
        // A reader takes an absent chunk for fill values, so that its name is an error.
        for chunk in self.chunks() {
            let path = join(&[data, &self.key(&chunk)]);
            let found = common::walk(view, &path);
            assert!(found.is_err(), "{path} is {found:?}");
            for target in [Target::V2, Target::V3] {
                let path = join(&[data, &self.key_as(target, &chunk)]);
                let found = common::walk(view, &path);
                assert!(!matches!(found, Ok(Some(_))), "{path} is {found:?}");
            }
        }
    }

    /// The array in a view of its own version.
    pub fn check_native(&self, view: &Arc<View>, kind: ViewKind) {
        let key = self.document_key();
        if self.inexpressible(kind, None).is_some() {
            return self.check_refused(view, key.rsplit('/').next().unwrap(), &self.data());
        }
        if kind == ViewKind::Chunks && self.has_no_directory() {
            return;
        }
        let document = Shown::of(self.version, &read(view, &key));
        let shown = (&document, &self.fill()[..]);
        self.check_shown(view, kind, shown, &self.data(), |chunk| self.key(chunk));
        let mut others: Vec<String> = self.documents().into_iter().map(|(key, _)| key).collect();
        others.extend(self.shown_left_over(kind));
        self.check_chunk_files(view, kind, &self.data(), |chunk| self.key(chunk), &others);
        for (name, text) in self.documents() {
            let shown = read(view, &name);
            // A document other than the one that was edited is shown as it is stored.
            if name != key || (kind == ViewKind::Keys && self.per_shard.is_none()) {
                assert_eq!(String::from_utf8_lossy(&shown), text, "{name}");
            }
        }
    }

    /// The array in a view that shows another version.
    pub fn check_as(&self, view: &Arc<View>, kind: ViewKind, target: Target) {
        let node = self.node();
        if let Some(reason) = self.inexpressible(kind, Some(target)) {
            let key = self.document_key();
            let name = key.rsplit('/').next().unwrap();
            assert!(
                common::walk(view, &join(&[&node, "ERROR.txt"]))
                    .unwrap()
                    .is_some(),
                "not refused: {reason}"
            );
            return self.check_refused(view, name, &node);
        }
        let key = |chunk: &[usize]| self.key_as(target, chunk);
        let error = common::read(view, &join(&[&node, "ERROR.txt"])).unwrap();
        assert_eq!(
            error.map(|text| String::from_utf8(text).unwrap()),
            None,
            "refused"
        );
        let (version, name) = match target {
            Target::V2 => (Version::V2, ".zarray"),
            Target::V3 => (Version::V3, "zarr.json"),
        };
        let path = join(&[&node, name]);
        let text = read(view, &path);
        let document = Shown::of(version, &text);
        let fill = self.fill_as(kind, target);
        self.check_shown(view, kind, (&document, &fill), &node, key);
        for chunk in self.chunks() {
            assert_eq!(document.key(&chunk), key(&chunk));
        }
        let left_over = self.shown_left_over(kind);
        let others = left_over.filter(|_| self.is_native(target));
        self.check_chunk_files(view, kind, &node, key, others.as_slice());
        self.check_attributes(view, target);
        for group in self.groups() {
            match target {
                Target::V2 => {
                    assert_eq!(
                        read_json(view, &join(&[&group, ".zgroup"])),
                        json!({"zarr_format": 2})
                    );
                }
                Target::V3 => {
                    let document = read_json(view, &join(&[&group, "zarr.json"]));
                    assert_eq!(document["node_type"], "group", "{group}");
                }
            }
        }
    }

    /// Decoded shards, which are kept.
    pub fn check_kept(&self, view: &Arc<View>, target: Option<Target>) {
        let unseen = target.is_none() && self.has_no_directory();
        if unseen || self.inexpressible(ViewKind::Chunks, target).is_some() {
            return;
        }
        let (version, document, data) = match target {
            None => (self.version, self.document_key(), self.data()),
            Some(Target::V2) => (Version::V2, join(&[&self.node(), ".zarray"]), self.node()),
            Some(Target::V3) => (Version::V3, join(&[&self.node(), "zarr.json"]), self.node()),
        };
        let document = Shown::of(version, &read(view, &document));
        let outer = self.outer();
        assert_eq!(document.chunk_shape, outer, "chunk shape");
        for shard in indices(&self.grid(&outer)) {
            let key = target.map_or_else(|| self.key(&shard), |target| self.key_as(target, &shard));
            let path = join(&[&data, &key]);
            let items = document.decode(&read(view, &path));
            assert_eq!(items, self.outer_items(&shard), "{path}");
        }
    }

    /// The shown path of a chunk outside the grid of an array that is shown as it is stored.
    fn shown_left_over(&self, kind: ViewKind) -> Option<String> {
        let stored = kind == ViewKind::Keys && self.per_shard.is_none();
        let key = self.left_over().filter(|_| stored)?;
        Some(join(&[&self.data(), &key]))
    }

    /// The groups above the array.
    fn groups(&self) -> Vec<String> {
        match self.path {
            "" => Vec::new(),
            _ => vec![self.base.to_owned(), join(&[self.base, "g"])],
        }
    }

    fn check_attributes(&self, view: &Arc<View>, target: Target) {
        let node = self.node();
        let mut expected = self.attributes();
        let names = self.dimension_names.as_ref();
        match target {
            Target::V2 => {
                // v2 has names for all or none.
                if let Some(names) = names
                    && names.iter().all(Option::is_some)
                {
                    expected["_ARRAY_DIMENSIONS"] = json!(names);
                }
                // xarray opens no variable of v2 without a list.
                if self.version == Version::V3 && self.axes.is_empty() {
                    expected["_ARRAY_DIMENSIONS"] = json!([]);
                }
                assert_eq!(
                    read_json(view, &join(&[&node, ".zattrs"])),
                    expected,
                    "attributes"
                );
            }
            Target::V3 => {
                let document = read_json(view, &join(&[&node, "zarr.json"]));
                // The document has a member for the names.
                let attributes = expected.as_object_mut().unwrap();
                attributes.remove("_ARRAY_DIMENSIONS");
                if self.version == Version::V2
                    && let Some(missing) = self.missing_in_v3()
                {
                    expected["_FillValue"] = missing;
                }
                if self.version == Version::V2
                    && let Some(missing) = self.missing_text_in_v3()
                {
                    expected["missing_value"] = missing;
                }
                assert_eq!(document["attributes"], expected, "attributes");
                let found = document
                    .get("dimension_names")
                    .filter(|value| !value.is_null());
                assert_eq!(found, names.map(|names| json!(names)).as_ref(), "names");
            }
        }
    }
}
