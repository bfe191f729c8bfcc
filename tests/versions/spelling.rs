//! Codecs as v2 and v3 spell them.

use serde_json::{Value, json};

use super::codecs::{Codec, Number};
use super::kind::Kind;

impl Number {
    fn name(&self) -> String {
        self.kind.typestr(self.big)
    }

    fn parse(value: &Value) -> Number {
        let (kind, big) = Kind::of_typestr(value.as_str().unwrap());
        Number { kind, big }
    }
}

impl Codec {
    /// Name and configuration, of numcodecs.
    pub fn v2(&self) -> (&'static str, Value) {
        match self {
            Codec::Delta { from, to } => {
                ("delta", json!({"dtype": from.name(), "astype": to.name()}))
            }
            Codec::Scale {
                offset,
                scale,
                from,
                to,
            } => (
                "fixedscaleoffset",
                json!({"offset": offset, "scale": scale, "dtype": from.name(), "astype": to.name()}),
            ),
            Codec::AsType { from, to } => {
                let configuration = json!({"encode_dtype": to.name(), "decode_dtype": from.name()});
                ("astype", configuration)
            }
            Codec::PackBits => ("packbits", json!({})),
            // The default is left out.
            Codec::Shuffle(4) => ("shuffle", json!({})),
            Codec::Shuffle(size) => ("shuffle", json!({"elementsize": size})),
            Codec::Crc32 => ("crc32", json!({})),
            Codec::Adler32 => ("adler32", json!({})),
            Codec::Crc32c => ("crc32c", json!({})),
            Codec::Zlib => ("zlib", json!({"level": 1})),
            Codec::Gzip => ("gzip", json!({"level": 1})),
            Codec::Zstd => ("zstd", json!({"level": 1})),
            Codec::Bz2 => ("bz2", json!({"level": 1})),
            Codec::Lz4 => ("lz4", json!({"acceleration": 1})),
            Codec::Blosc(_) => (
                "blosc",
                json!({"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
            ),
        }
    }

    /// The configuration of numcodecs, which has the `id` as a member.
    pub fn numcodecs(&self) -> Value {
        let (id, mut configuration) = self.v2();
        configuration["id"] = json!(id);
        configuration
    }

    /// The codec in the spelling of v3, or in that of the documents of 2023 if it is `older`.
    pub fn v3(&self, older: bool) -> Value {
        let (id, configuration) = self.v2();
        match self {
            Codec::Gzip | Codec::Zstd => json!({"name": id, "configuration": configuration}),
            Codec::Crc32c if older => json!("crc32c"),
            Codec::Crc32c => json!({"name": "crc32c"}),
            Codec::Blosc(_) if older => json!({"name": id, "configuration": configuration}),
            Codec::Blosc(typesize) => {
                let mut configuration = configuration;
                configuration["shuffle"] = json!("shuffle");
                configuration["typesize"] = json!(typesize);
                json!({"name": "blosc", "configuration": configuration})
            }
            Codec::Shuffle(size) => {
                let configuration = json!({"elementsize": size});
                json!({"name": "numcodecs.shuffle", "configuration": configuration})
            }
            _ => json!({"name": format!("numcodecs.{id}"), "configuration": configuration}),
        }
    }

    /// Parses a codec. A shuffle without an element size has that of `item_size`.
    pub fn parse(id: &str, configuration: &Value, item_size: usize) -> Codec {
        let number = |name: &str| Number::parse(&configuration[name]);
        let location = configuration
            .get("location")
            .map(|value| value.as_str().unwrap());
        match id {
            "delta" => Codec::Delta {
                from: number("dtype"),
                to: number("astype"),
            },
            "fixedscaleoffset" => Codec::Scale {
                offset: configuration["offset"].as_f64().unwrap() as i64,
                scale: configuration["scale"].as_f64().unwrap() as i64,
                from: number("dtype"),
                to: number("astype"),
            },
            "astype" => Codec::AsType {
                from: number("decode_dtype"),
                to: number("encode_dtype"),
            },
            "packbits" => Codec::PackBits,
            "shuffle" => Codec::Shuffle(
                configuration["elementsize"]
                    .as_u64()
                    .map_or(item_size, |size| usize::try_from(size).unwrap()),
            ),
            "crc32" if location.is_none_or(|at| at == "start") => Codec::Crc32,
            "adler32" if location.is_none_or(|at| at == "start") => Codec::Adler32,
            "crc32c" if location.is_none_or(|at| at == "end") => Codec::Crc32c,
            "zlib" => Codec::Zlib,
            "gzip" => Codec::Gzip,
            "zstd" => Codec::Zstd,
            "bz2" => Codec::Bz2,
            "lz4" => Codec::Lz4,
            "blosc" => Codec::Blosc(1),
            _ => panic!("codec {id} {configuration}"),
        }
    }
}
