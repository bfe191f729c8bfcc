//! Shown documents of v2 and v3, read as plain JSON, and chunks decoded only by such a document.

use serde_json::{Value, json};

use super::codecs::{Codec, Number, unframe};
use super::kind::Kind;
use super::model::{Version, permuted, rank_of};
use super::types::Type;

#[derive(Debug)]
pub struct Shown {
    pub shape: Vec<usize>,
    pub chunk_shape: Vec<usize>,
    /// With the byte order that chunks have, where no filter says another.
    pub item: Type,
    pub fill: Vec<u8>,
    /// Like [`super::model::Model::axes`].
    pub axes: Vec<usize>,
    pub codecs: Vec<Codec>,
    /// Encoding and separator of chunk keys.
    pub keys: (String, char),
}

fn lengths(value: &Value) -> Vec<usize> {
    let items = value.as_array().unwrap().iter();
    items
        .map(|item| usize::try_from(item.as_u64().unwrap()).unwrap())
        .collect()
}

fn separator(value: &Value, default: char) -> char {
    value
        .as_str()
        .map_or(default, |text| text.chars().next().unwrap())
}

impl Shown {
    fn of_v2(document: &Value) -> Shown {
        assert_eq!(document["zarr_format"], 2);
        let filters = document["filters"].as_array().cloned().unwrap_or_default();
        let compressor = Some(&document["compressor"]).filter(|value| !value.is_null());
        let mut configurations: Vec<&Value> = filters.iter().chain(compressor).collect();
        let mut object = None;
        if document["dtype"] == "|O" {
            object = configurations.remove(0)["id"].as_str();
        }
        let item = Type::of_v2(&document["dtype"], object);
        let codecs = configurations.into_iter();
        let codecs = codecs
            .map(|it| Codec::parse(it["id"].as_str().unwrap(), it, 4))
            .collect();
        let shape = lengths(&document["shape"]);
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        match document["order"].as_str().unwrap() {
            "C" => {}
            "F" => axes.reverse(),
            other => panic!("order {other}"),
        }
        Shown {
            chunk_shape: lengths(&document["chunks"]),
            fill: item.of_fill_v2(&document["fill_value"]),
            keys: (
                "v2".to_owned(),
                separator(&document["dimension_separator"], '.'),
            ),
            shape,
            item,
            axes,
            codecs,
        }
    }

    /// The document of any version, at least of those that these tests write.
    pub fn of(version: Version, text: &[u8]) -> Shown {
        let text = std::str::from_utf8(text).unwrap();
        let parse = |text: &str| serde_json::from_str(text).unwrap();
        match version {
            Version::V2 => Shown::of_v2(&parse(text)),
            Version::V3 => Shown::of_v3(&parse(text)),
            Version::V1 | Version::PreV1 => {
                // As Python prints numbers that JSON has not.
                let quoted =
                    ["NaN", "-Infinity", "Infinity"]
                        .iter()
                        .fold(text.to_owned(), |text, name| {
                            let text = text.replace(&format!(":{name}"), &format!(":\"{name}\""));
                            text.replace(&format!("[{name}"), &format!("[\"{name}\""))
                                .replace(&format!(",{name}"), &format!(",\"{name}\""))
                        });
                Shown::of_v2(&v2_of_v1(&parse(&quoted)))
            }
            Version::Protocol | Version::Core => Shown::of_v2(&v2_of_draft(&parse(text))),
        }
    }

    fn of_v3(document: &Value) -> Shown {
        assert_eq!(document["zarr_format"], 3);
        assert_eq!(document["node_type"], "array");
        let shape = lengths(&document["shape"]);
        let mut item = Type::of_v3(&document["data_type"]);
        let fill = match document["fill_value"].as_str() {
            // 2023.
            Some("+Infinity") => item.of_fill_v3(&Value::from("Infinity")),
            _ => item.of_fill_v3(&document["fill_value"]),
        };
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        let mut codecs: Vec<Codec> = Vec::new();
        let mut big = false;
        for spec in document["codecs"].as_array().unwrap() {
            let name = spec
                .as_str()
                .unwrap_or_else(|| spec["name"].as_str().unwrap());
            let configuration = &spec["configuration"];
            match name {
                "transpose" if configuration["order"] == "F" => axes.reverse(),
                "transpose" => {
                    axes = lengths(&configuration["order"])
                        .iter()
                        .map(|&i| axes[i])
                        .collect();
                }
                "bytes" | "endian" => big = configuration["endian"] == "big",
                "vlen-utf8" => assert_eq!(item, Type::Strings),
                "vlen-bytes" => assert_eq!(item, Type::ByteStrings),
                _ => {
                    let id = name.strip_prefix("numcodecs.").unwrap_or(name);
                    codecs.push(Codec::parse(id, configuration, item.size()));
                }
            }
        }
        item = item.with_order(big);
        if let Some(to) = codecs.iter_mut().rev().find_map(Codec::to_mut) {
            to.big = big;
        }
        let keys = &document["chunk_key_encoding"];
        let encoding = keys
            .as_str()
            .unwrap_or_else(|| keys["name"].as_str().unwrap());
        let default = if encoding == "v2" { '.' } else { '/' };
        Shown {
            chunk_shape: lengths(&document["chunk_grid"]["configuration"]["chunk_shape"]),
            keys: (
                encoding.to_owned(),
                separator(&keys["configuration"]["separator"], default),
            ),
            shape,
            item,
            fill,
            axes,
            codecs,
        }
    }

    /// The key of a chunk.
    pub fn key(&self, chunk: &[usize]) -> String {
        let (encoding, separator) = &self.keys;
        let mut parts: Vec<String> = chunk.iter().map(ToString::to_string).collect();
        match encoding.as_str() {
            "default" => parts.insert(0, "c".to_owned()),
            _ if parts.is_empty() => parts.push("0".to_owned()),
            _ => {}
        }
        parts.join(&separator.to_string())
    }

    /// The items of a chunk, in C order.
    pub fn decode(&self, encoded: &[u8]) -> Vec<Vec<u8>> {
        let undone = self.codecs.iter().rev();
        let bytes = undone.fold(encoded.to_vec(), |bytes, codec| codec.decode(&bytes));
        let stored: Vec<Vec<u8>> = match (self.codecs.iter().rev().find_map(Codec::to), &self.item)
        {
            (Some(last), Type::Plain(field)) => {
                let numbers = bytes.chunks_exact(last.kind.size()).map(|bytes| {
                    let mut bytes = bytes.to_vec();
                    if last.big {
                        bytes.reverse();
                    }
                    last.get(&bytes)
                });
                let undone = self.codecs.iter().rev();
                let numbers = undone.fold(numbers.collect(), |numbers: Vec<i64>, codec| {
                    codec.decode_numbers(&numbers)
                });
                let first = Number {
                    kind: field.kind.clone(),
                    big: false,
                };
                numbers.iter().map(|&number| first.put(number)).collect()
            }
            _ if self.item.is_variable() => unframe(&bytes),
            _ => {
                let items = bytes.chunks_exact(self.item.size()).map(|item| {
                    let mut item = item.to_vec();
                    self.item.swap(&mut item);
                    item
                });
                items.collect()
            }
        };
        let order = permuted(&self.chunk_shape, &self.axes);
        assert_eq!(stored.len(), order.len(), "items in a chunk");
        let mut items = vec![Vec::new(); stored.len()];
        for (at, item) in order.iter().zip(stored) {
            items[rank_of(at, &self.chunk_shape)] = item;
        }
        items
    }
}

fn v2_of_v1(document: &Value) -> Value {
    let compression = document["compression"].as_str();
    let compressor = match compression {
        None if document.get("cname").is_some() => json!({"id": "blosc"}),
        None | Some("none") => Value::Null,
        Some("gzip") => json!({"id": "zlib"}),
        Some(id) => json!({"id": id}),
    };
    // zarr-python 1 said F and wrote C, but for blosc.
    let order = match document["order"].as_str() {
        Some("F") if compression == Some("blosc") => "F",
        _ => "C",
    };
    json!({
        "zarr_format": 2, "shape": document["shape"], "chunks": document["chunks"],
        "dtype": document["dtype"], "fill_value": document["fill_value"], "order": order,
        "compressor": compressor, "filters": null,
    })
}

fn v2_of_draft(document: &Value) -> Value {
    let configured = |codec: &Value, uri: &str| {
        let uri = codec[uri].as_str().unwrap();
        let name = uri
            .split("/codec")
            .nth(1)
            .unwrap()
            .split('/')
            .nth(1)
            .unwrap();
        let mut configuration = codec["configuration"].clone();
        configuration["id"] = json!(name);
        configuration
    };
    let mut filters = document["attributes"]["filters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    filters.extend(
        document
            .get("compressor")
            .map(|codec| configured(codec, "codec")),
    );
    let codecs = document["codecs"].as_array().into_iter().flatten();
    filters.extend(codecs.map(|codec| configured(codec, "type")));
    let mut big = false;
    if filters.first().is_some_and(|codec| codec["id"] == "endian") {
        big = filters.remove(0)["endian"] == "big";
    }
    let data_type = match &document["data_type"] {
        Value::Object(extension) => extension["type"].clone(),
        Value::String(name) => match name.as_str() {
            "bool" => json!("|b1"),
            "i1" => json!("|i1"),
            "u1" => json!("|u1"),
            text if text.starts_with(['<', '>', '|']) => json!(text),
            _ => json!(Kind::of_v3(&document["data_type"]).typestr(big)),
        },
        other => panic!("data type {other}"),
    };
    let fill = match document["fill_value"].as_str() {
        Some("+Infinity") => json!("Infinity"),
        _ => document["fill_value"].clone(),
    };
    let grid = &document["chunk_grid"];
    assert_eq!(document.get("storage_transformers"), None, "still sharded");
    json!({
        "zarr_format": 2, "shape": document["shape"], "chunks": grid["chunk_shape"],
        "dtype": data_type, "fill_value": fill, "order": document["chunk_memory_layout"],
        "compressor": null, "filters": filters, "dimension_separator": grid["separator"],
    })
}
