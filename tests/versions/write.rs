//! The documents of every version, as JSON text, and the stores that hold them.

use serde_json::{Value, json};
use zarr_mount::store::{Key, MemoryStore};

use super::codecs::Codec;
use super::kind::Kind;
use super::model::{Model, Version};
use super::types::Type;

const PROTOCOL: &str = "https://purl.org/zarr/spec/protocol/core/3.0";
const CORE: &str = "https://purl.org/zarr/spec/core/3.0";

/// Joins the parts that are not empty with `/`.
pub fn join(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .copied()
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("/")
}

impl Model {
    /// The array's path in the tree of the store's nodes.
    pub fn node(&self) -> String {
        join(&[self.base, self.path])
    }

    /// The prefix of its chunk keys.
    pub fn data(&self) -> String {
        match self.version {
            Version::Protocol => join(&[self.base, "data/root", self.path]),
            Version::Core => join(&[self.base, "data", self.path]),
            _ => self.node(),
        }
    }

    /// The key of its document.
    pub fn document_key(&self) -> String {
        let name = match self.version {
            Version::V1 => "meta",
            Version::PreV1 => "__zmeta__",
            Version::V2 => ".zarray",
            Version::V3 => "zarr.json",
            Version::Protocol => {
                return format!("{}.array.json", join(&[self.base, "meta/root", self.path]));
            }
            Version::Core if self.path.is_empty() => return join(&[self.base, "meta/array.json"]),
            Version::Core => {
                return format!("{}.array.json", join(&[self.base, "meta", self.path]));
            }
        };
        join(&[&self.node(), name])
    }

    /// All documents: keys of the store, and texts.
    pub fn documents(&self) -> Vec<(String, String)> {
        let mut found = vec![(self.document_key(), self.text())];
        let mut add = |key: &[&str], value: Value| found.push((join(key), value.to_string()));
        let node = self.node();
        let groups: &[&str] = if self.path.is_empty() {
            &[]
        } else {
            &["", "g"]
        };
        match self.version {
            Version::V1 => add(&[&node, "attrs"], self.attributes()),
            Version::PreV1 => add(&[&node, "__zattr__"], self.attributes()),
            Version::V2 => {
                add(&[&node, ".zattrs"], self.attributes());
                for group in groups {
                    add(&[self.base, group, ".zgroup"], json!({"zarr_format": 2}));
                }
            }
            Version::V3 => {
                for group in groups {
                    let document = json!({
                        "zarr_format": 3, "node_type": "group", "attributes": {"group": group},
                    });
                    add(&[self.base, group, "zarr.json"], document);
                }
            }
            Version::Protocol => {
                let entry = json!({
                    "zarr_format": PROTOCOL, "metadata_encoding": PROTOCOL,
                    "metadata_key_suffix": ".json", "extensions": [],
                });
                add(&[self.base, "zarr.json"], entry);
                for group in groups.iter().filter(|_| !self.older) {
                    let document = format!("{}.group.json", join(&["meta/root", group]));
                    add(&[self.base, &document], json!({"attributes": {}}));
                }
            }
            Version::Core => {
                let entry = json!({
                    "zarr_format": CORE, "extensions": [],
                    "metadata_encoding": {"type": "json", "metadata_key_suffix": ".json"},
                });
                add(&[self.base, "zarr.json"], entry);
                for group in groups.iter().filter(|_| !self.older) {
                    let document = match *group {
                        "" => "meta/group.json".to_owned(),
                        _ => format!("meta/{group}.group.json"),
                    };
                    add(&[self.base, &document], json!({"attributes": {}}));
                }
            }
        }
        found
    }

    /// Everything that is stored.
    pub fn objects(&self) -> Vec<(String, Vec<u8>)> {
        let data = self.data();
        let chunks = self.stored().into_iter();
        let chunks = chunks.map(|(key, bytes)| (join(&[&data, &key]), bytes));
        let left_over = self.left_over();
        let left_over = left_over.map(|key| (join(&[&data, &key]), b"left over".to_vec()));
        let documents = self.documents().into_iter();
        documents
            .map(|(key, text)| (key, text.into_bytes()))
            .chain(chunks)
            .chain(left_over)
            .collect()
    }

    pub fn store(&self) -> MemoryStore {
        let store = MemoryStore::new();
        for (key, bytes) in self.objects() {
            store.insert(Key::parse(key.as_bytes()).unwrap(), bytes);
        }
        store
    }

    /// The user's attributes.
    pub fn attributes(&self) -> Value {
        let mut attributes = json!({"units": "K", "é": [1, {"two": null}]});
        if let Some(names) = &self.dimension_names
            && self.version != Version::V3
        {
            attributes["_ARRAY_DIMENSIONS"] = json!(names);
        }
        attributes
    }

    fn text(&self) -> String {
        let document = match self.version {
            Version::V1 => self.v1(),
            Version::PreV1 => self.pre_v1(),
            Version::V2 => self.v2(),
            Version::V3 => self.v3(),
            Version::Protocol => self.protocol(),
            Version::Core => self.core(),
        };
        let text = document.to_string();
        match self.version {
            // Python prints these numbers without quotes.
            Version::V1 | Version::PreV1 => text
                .replace("\"NaN\"", "NaN")
                .replace("Infinity\"", "Infinity")
                .replace("\"-Inf", "-Inf")
                .replace("\"Inf", "Inf"),
            _ => text,
        }
    }

    fn fill_v2(&self) -> Value {
        self.fill
            .as_ref()
            .map_or(Value::Null, |fill| self.item.fill_v2(fill))
    }

    pub fn order(&self) -> &'static str {
        // zarr-python 1 wrote C under the name F, except with blosc.
        let blosc = matches!(self.codecs[..], [Codec::Blosc(_)]);
        let said = self.version == Version::V1 && !blosc && self.older;
        if self.axes.is_sorted() && !said {
            "C"
        } else {
            "F"
        }
    }

    fn v1(&self) -> Value {
        let (name, options) = match self.codecs.first() {
            None if self.older => (Value::Null, Value::Null),
            None => (json!("none"), Value::Null),
            Some(Codec::Zlib) if self.older => (json!("gzip"), json!(1)),
            Some(Codec::Blosc(_)) => (
                json!("blosc"),
                json!({"cname": "lz4", "clevel": 5, "shuffle": 1}),
            ),
            Some(codec) => (json!(codec.v2().0), json!(1)),
        };
        json!({
            "zarr_format": 1, "shape": self.shape, "chunks": self.inner, "order": self.order(),
            "dtype": self.item.v2(), "fill_value": self.fill_v2(),
            "compression": name, "compression_opts": options,
        })
    }

    fn pre_v1(&self) -> Value {
        json!({
            "shape": self.shape, "chunks": self.inner, "dtype": self.item.v2(),
            "fill_value": self.fill_v2(), "cname": "lz4", "clevel": 5, "shuffle": 1,
        })
    }

    /// The configurations of the filters, and of the compressor, the object codec first.
    fn numcodecs(&self, compresses: bool) -> (Vec<Value>, Option<&Codec>) {
        let (filters, compressor) = match self.codecs.split_last() {
            Some((last, first)) if compresses && last.is_on_bytes() => (first, Some(last)),
            _ => (&self.codecs[..], None),
        };
        let object = match self.item {
            Type::Strings => Some(json!({"id": "vlen-utf8"})),
            Type::ByteStrings => Some(json!({"id": "vlen-bytes"})),
            _ => None,
        };
        let filters = filters.iter().map(Codec::numcodecs);
        (object.into_iter().chain(filters).collect(), compressor)
    }

    fn v2(&self) -> Value {
        let (filters, compressor) = self.numcodecs(self.last_compresses);
        let mut document = json!({
            "zarr_format": 2, "shape": self.shape, "chunks": self.inner, "order": self.order(),
            "dtype": self.item.v2(), "compressor": compressor.map(Codec::numcodecs),
            "filters": filters, "fill_value": self.fill_v2(),
            "dimension_separator": self.separator.to_string(),
        });
        let members = document.as_object_mut().unwrap();
        if self.older && self.fill.is_none() && self.item.is_variable() {
            members["fill_value"] = json!(0);
        }
        if filters.is_empty() && !self.older {
            members["filters"] = Value::Null;
        }
        if self.older && self.separator == '.' {
            members.remove("dimension_separator");
        }
        document
    }

    fn draft(&self, data_type: &Value) -> Value {
        let mut document = json!({
            "shape": self.shape, "data_type": data_type, "fill_value": self.fill_v2(),
            "chunk_grid": {
                "type": "regular", "chunk_shape": self.inner, "separator": self.separator.to_string(),
            },
            "chunk_memory_layout": self.order(), "extensions": [], "attributes": self.attributes(),
        });
        if let Some(per_shard) = &self.per_shard {
            let uri = "https://purl.org/zarr/spec/storage_transformers/sharding/1.0";
            document["storage_transformers"] = json!([{
                "extension": uri, "type": "indexed",
                "configuration": {
                    "chunks_per_shard": if per_shard.is_empty() { &[1][..] } else { per_shard },
                },
            }]);
        }
        document
    }

    fn protocol(&self) -> Value {
        let compresses = !matches!(
            self.codecs.last(),
            Some(Codec::Shuffle(_) | Codec::Crc32 | Codec::Adler32 | Codec::Crc32c)
        );
        let (filters, compressor) = self.numcodecs(compresses);
        let spelled = self.item.v2();
        let data_type = match &self.item {
            Type::Plain(field) => match field.kind {
                Kind::Bool => json!("bool"),
                Kind::Int(1) => json!("i1"),
                Kind::Unsigned(1) => json!("u1"),
                Kind::Int(_) | Kind::Unsigned(_) | Kind::Float(_) => spelled,
                _ => extension(&spelled),
            },
            _ => extension(&spelled),
        };
        let mut document = self.draft(&data_type);
        if !filters.is_empty() {
            document["attributes"]["filters"] = json!(filters);
        }
        if let Some(compressor) = compressor {
            let (name, configuration) = compressor.v2();
            let uri = format!("https://purl.org/zarr/spec/codec/{name}/1.0");
            document["compressor"] = json!({"codec": uri, "configuration": configuration});
        }
        document
    }

    fn core(&self) -> Value {
        let mut codecs = Vec::new();
        let data_type = match &self.item {
            Type::Plain(field)
                if matches!(
                    field.kind,
                    Kind::Bool
                        | Kind::Int(_)
                        | Kind::Unsigned(_)
                        | Kind::Float(_)
                        | Kind::Complex(_)
                ) =>
            {
                if field.big && field.kind.unit() > 1 {
                    codecs.push(("endian", json!({"endian": "big"})));
                }
                field.kind.v3()
            }
            item => extension(&item.v2()),
        };
        codecs.extend(self.codecs.iter().map(Codec::v2));
        let mut document = self.draft(&data_type);
        let uri = |name| match (name, self.older) {
            ("gzip", true) => "https://purl.org/zarr/spec/codec/gzip".to_owned(),
            _ => format!("https://purl.org/zarr/spec/codecs/{name}/1.0"),
        };
        let codecs: Vec<Value> = codecs
            .into_iter()
            .map(|(name, configuration)| json!({"type": uri(name), "configuration": configuration}))
            .collect();
        if !(codecs.is_empty() && self.older) {
            document["codecs"] = json!(codecs);
        }
        let is_float =
            matches!(&self.item, Type::Plain(field) if matches!(field.kind, Kind::Float(_)));
        if document["fill_value"] == "Infinity" {
            document["fill_value"] = json!("+Infinity");
        } else if self.older && is_float {
            let bits = self.fill();
            let digits: Vec<String> = bits
                .iter()
                .rev()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            document["fill_value"] = json!(format!("0x{}", digits.concat()));
        }
        document
    }
}

fn extension(spelled: &Value) -> Value {
    json!({"extension": "TODO datatype extension", "type": spelled, "fallback": null})
}
