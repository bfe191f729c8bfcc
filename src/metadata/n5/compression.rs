//! The compression of the blocks of a dataset of N5.
//!
//! | N5 | v3 |
//! |---|---|
//! | `raw` | – |
//! | `gzip`, with `useZlib` | `gzip`, `numcodecs.zlib` |
//! | `bzip2` | `numcodecs.bz2` |
//! | `xz` | `numcodecs.lzma` |
//! | `zstd`, `blosc` | `zstd`, `blosc` |
//! | `lz4` | none: its blocks are those of lz4-java |

use crate::error::FormatError;
use crate::metadata::document::{object_text, quoted};
use crate::metadata::json::{self, Json, Members};

/// The name by which a codec list has the blocks of lz4-java. No document of Zarr has it.
const LZ4_BLOCKS: &str = "lz4 of N5";

/// A compression, with the parameters of its encoder as v3 spells them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Compression {
    Raw,
    Gzip {
        level: i128,
        is_zlib: bool,
    },
    Bzip2 {
        level: i128,
    },
    Xz {
        preset: i128,
    },
    Zstd {
        level: i128,
    },
    Blosc {
        compressor: String,
        level: i128,
        shuffle: &'static str,
        block_bytes: i128,
    },
    Lz4,
    /// A compression that this build does not know.
    Other(String),
}

impl Compression {
    /// The member `compression`, or the name in `compressionType` of versions before 1.
    pub(super) fn of(root: &Members<'_>) -> Result<Compression, FormatError> {
        let name = |value| json::string(value, "a name");
        let Some(value) = root.get_some("compression") else {
            let name = root.read("compressionType", name);
            let missing = |_| FormatError::document("compression", "missing");
            let name = if root.get_some("compressionType").is_some() {
                name?
            } else {
                name.map_err(missing)?
            };
            return Ok(Compression::named(name, &Members::default()));
        };
        let within = |error: FormatError| error.within("compression");
        let members = json::object(value, "an object with a type").map_err(within)?;
        let name = members.read("type", name).map_err(within)?;
        Ok(Compression::named(name, &members))
    }

    /// The compression `name`. Decoding needs no parameters, so a missing or wrong one has its default.
    fn named(name: String, members: &Members<'_>) -> Compression {
        let number = |member: &str, least: i128, most: i128, default: i128| {
            let value = members.get(member).and_then(|value| Json::of(value).ok());
            let number = value.and_then(|value| value.integer());
            number
                .filter(|n| (least..=most).contains(n))
                .unwrap_or(default)
        };
        match name.as_str() {
            "raw" => Compression::Raw,
            "gzip" => Compression::Gzip {
                level: number("level", 0, 9, 6),
                is_zlib: members
                    .get("useZlib")
                    .is_some_and(|value| value.get() == "true"),
            },
            "bzip2" => Compression::Bzip2 {
                level: number("blockSize", 1, 9, 9),
            },
            "xz" => Compression::Xz {
                preset: number("preset", 0, 9, 6),
            },
            "zstd" => Compression::Zstd {
                level: number("level", -131_072, 22, 3),
            },
            "blosc" => {
                let compressor = members
                    .get("cname")
                    .map(|value| json::string(value, "a name"));
                Compression::Blosc {
                    compressor: compressor
                        .and_then(Result::ok)
                        .unwrap_or_else(|| "lz4".to_owned()),
                    level: number("clevel", 0, 9, 5),
                    shuffle: match number("shuffle", 0, 2, 0) {
                        1 => "shuffle",
                        2 => "bitshuffle",
                        _ => "noshuffle",
                    },
                    block_bytes: number("blocksize", 0, 0x7fff_ffff, 0),
                }
            }
            "lz4" => Compression::Lz4,
            _ => Compression::Other(name),
        }
    }

    /// Its name in N5.
    pub(super) fn name(&self) -> &str {
        match self {
            Compression::Raw => "raw",
            Compression::Gzip { .. } => "gzip",
            Compression::Bzip2 { .. } => "bzip2",
            Compression::Xz { .. } => "xz",
            Compression::Zstd { .. } => "zstd",
            Compression::Blosc { .. } => "blosc",
            Compression::Lz4 => "lz4",
            Compression::Other(name) => name,
        }
    }

    /// The codec in the spelling of v3, for elements of `item_size` bytes; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`FormatError::Unsupported`] with the name of an unknown compression.
    pub(super) fn spell_v3(&self, item_size: u64) -> Result<Option<String>, FormatError> {
        let (name, configuration) = match self {
            Compression::Raw => return Ok(None),
            Compression::Gzip { level, is_zlib } => {
                let name = if *is_zlib { "numcodecs.zlib" } else { "gzip" };
                (name, object_text([("level", level)]))
            }
            Compression::Bzip2 { level } => ("numcodecs.bz2", object_text([("level", level)])),
            Compression::Xz { preset } => {
                let members = [("format", 1), ("check", -1), ("preset", *preset)];
                ("numcodecs.lzma", object_text(members))
            }
            Compression::Zstd { level } => {
                let members = [
                    ("level", level.to_string()),
                    ("checksum", "false".to_owned()),
                ];
                ("zstd", object_text(members))
            }
            Compression::Blosc {
                compressor,
                level,
                shuffle,
                block_bytes,
            } => {
                let members = [
                    ("cname", quoted(compressor)),
                    ("clevel", level.to_string()),
                    ("shuffle", quoted(shuffle)),
                    ("typesize", item_size.to_string()),
                    ("blocksize", block_bytes.to_string()),
                ];
                ("blosc", object_text(members))
            }
            Compression::Lz4 => (LZ4_BLOCKS, "{}".to_owned()),
            Compression::Other(name) => {
                return Err(FormatError::unsupported(
                    "compression.type",
                    "compression of N5",
                    name,
                ));
            }
        };
        let name = quoted(name);
        Ok(Some(format!(
            r#"{{"name": {name}, "configuration": {configuration}}}"#
        )))
    }
}
