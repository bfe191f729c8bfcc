//! `zarr.json` of an array, of 2023 to now.

use serde_json::{Value, json};

use super::codecs::Codec;
use super::model::Model;
use super::types::Type;

impl Model {
    /// The document.
    pub fn v3(&self) -> Value {
        let encoding = if self.v2_keys { "v2" } else { "default" };
        let default = if self.v2_keys { '.' } else { '/' };
        let keys = if self.older && self.separator == default {
            json!(encoding)
        } else {
            json!({"name": encoding, "configuration": {"separator": self.separator.to_string()}})
        };
        let mut document = json!({
            "zarr_format": 3, "node_type": "array", "shape": self.shape,
            "data_type": self.item.v3(), "fill_value": self.item.fill_v3(&self.fill()),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.outer()}},
            "chunk_key_encoding": keys, "codecs": self.chain(), "attributes": self.attributes(),
        });
        if let Some(names) = &self.dimension_names {
            document["dimension_names"] = json!(names);
        }
        if self.older && document["fill_value"] == "Infinity" {
            document["fill_value"] = json!("+Infinity");
        }
        document
    }

    fn chain(&self) -> Vec<Value> {
        let transpose = (!self.axes.is_sorted()).then(|| {
            let mut order = json!(self.axes);
            if self.older && self.order() == "F" && !self.has_odd_axes() {
                order = json!("F");
            }
            json!({"name": "transpose", "configuration": {"order": order}})
        });
        let on_bytes = self.codecs.iter().position(Codec::is_on_bytes);
        let (filters, compressors) = self.codecs.split_at(on_bytes.unwrap_or(self.codecs.len()));
        let numbers = filters.last().and_then(Codec::to);
        let name = if self.older { "endian" } else { "bytes" };
        let big = match (numbers, &self.item) {
            (Some(to), _) => (to.kind.unit() > 1).then_some(to.big),
            (None, item) => item.order().unwrap(),
        };
        let serialization = match (&self.item, filters.last(), big) {
            (Type::Strings, ..) => Some(json!({"name": "vlen-utf8"})),
            (Type::ByteStrings, ..) => Some(json!({"name": "vlen-bytes", "configuration": {}})),
            // Until July 2023 the codec from array to bytes could be left out.
            (_, None, Some(false)) if self.older && !compressors.is_empty() => None,
            (_, Some(Codec::PackBits), _) | (_, _, None) => Some(json!({"name": "bytes"})),
            (_, _, Some(big)) => {
                let endian = if big { "big" } else { "little" };
                Some(json!({"name": name, "configuration": {"endian": endian}}))
            }
        };
        let (outside, inside) = if self.transposed_outside {
            (transpose, None)
        } else {
            (None, transpose)
        };
        let mut codecs: Vec<Value> = inside.into_iter().collect();
        codecs.extend(filters.iter().map(|codec| codec.v3(self.older)));
        codecs.extend(serialization);
        codecs.extend(compressors.iter().map(|codec| codec.v3(self.older)));
        let moved = |counts: Vec<usize>| {
            if self.transposed_outside {
                self.axes.iter().map(|&axis| counts[axis]).collect()
            } else {
                counts
            }
        };
        if self.nested.is_some() {
            codecs = self.sharding(&moved(self.inner.clone()), &codecs, self.gzip_inner_shards);
        }
        if self.per_shard.is_some() {
            codecs = self.sharding(&moved(self.middle()), &codecs, self.gzip_shards);
        }
        outside.into_iter().chain(codecs).collect()
    }

    fn sharding(&self, chunk_shape: &[usize], codecs: &[Value], gzip: bool) -> Vec<Value> {
        let mut index = vec![json!({"name": "bytes", "configuration": {"endian": "little"}})];
        if self.index_checksum {
            index.push(Codec::Crc32c.v3(self.older));
        }
        let mut configuration = json!({
            "chunk_shape": chunk_shape, "codecs": codecs, "index_codecs": index,
            "index_location": if self.index_at_start { "start" } else { "end" },
        });
        if self.older && !self.index_at_start {
            configuration
                .as_object_mut()
                .unwrap()
                .remove("index_location");
            configuration
                .as_object_mut()
                .unwrap()
                .remove("index_codecs");
        }
        let sharding = json!({"name": "sharding_indexed", "configuration": configuration});
        let gzip = gzip.then(|| Codec::Gzip.v3(false));
        std::iter::once(sharding).chain(gzip).collect()
    }
}
