//! Converts the filters and compressors of numcodecs, as Zarr v1, v2 and the drafts configure them,
//! to one codec list of v3.
//!
//! ```text
//! order F, dtype <i4, filters delta(<i4 to >i2), shuffle, compressor zlib
//!
//! transpose [1, 0], numcodecs.delta, bytes big, numcodecs.shuffle, numcodecs.zlib
//! ```
//!
//! The input of the first filter is the elements, and that of each further one the output of the
//! filter before it. Filters of numbers come before the `bytes` codec, which has the byte order of
//! their output. Filters of bytes come after it, and a filter of numbers cannot follow them.
//!
//! Sources: numcodecs 0.16, `codec_id` and `get_config` of each codec; zarr-python 3,
//! `zarr.codecs.numcodecs`.

mod configuration;

use serde_json::value::RawValue;

pub(super) use configuration::{blosc, bytes, codec_text, zstd};
use configuration::{is_at_end, of_numcodecs};

use super::codecs::{self, Numcodec};
use super::document::object_text;
use super::json::{self, Members};
use super::whole_numbers::{numcodecs_parameter, parameter};
use crate::codec::CodecChain;
use crate::dtype::{ByteOrder, DataType};
use crate::error::FormatError;

/// A filter or compressor in a document.
#[derive(Debug)]
pub(super) struct Spec<'a> {
    /// Its place in the document.
    pub(super) place: String,
    /// The name for it in the document: "filter", "compressor", "codec".
    pub(super) what: &'static str,
    /// Its id in numcodecs.
    pub(super) id: String,
    /// Its parameters, which may include its `id`.
    pub(super) config: Members<'a>,
}

impl<'a> Spec<'a> {
    /// Parses `{"id": .., ..}`.
    pub(super) fn of(
        value: &'a RawValue,
        place: String,
        what: &'static str,
    ) -> Result<Spec<'a>, FormatError> {
        Spec::read(place, what, || {
            let config = json::object(value, "an object with an id")?;
            let id = config.read("id", |id| json::string(id, "a name"))?;
            Ok((id, config))
        })
    }

    /// The codec at `place` whose id and parameters `read` returns.
    pub(super) fn read(
        place: String,
        what: &'static str,
        read: impl FnOnce() -> Result<(String, Members<'a>), FormatError>,
    ) -> Result<Spec<'a>, FormatError> {
        let (id, config) = read().map_err(|error| error.within(&place))?;
        Ok(Spec {
            place,
            what,
            id,
            config,
        })
    }

    /// The text of the parameters, in which whole numbers are spelled as such.
    fn plain_config(&self) -> String {
        let members = self.config.iter();
        object_text(members.map(|(name, value)| (name, numcodecs_parameter(name, value))))
    }

    /// The data type that `member` of the configuration spells, and its byte order.
    fn data_type(&self, member: &str) -> Result<Option<(DataType, ByteOrder)>, FormatError> {
        let data_type = self.config.read_some(member, DataType::parse_v2);
        data_type.map_err(|error| error.within(&self.place))
    }

    fn unsupported(&self, name: impl Into<String>) -> FormatError {
        FormatError::unsupported(&self.place, self.what, name)
    }
}

/// Whether the codec `id` turns elements of variable length into bytes, as an array of `|O` needs
/// it.
pub(super) fn is_object_codec(id: &str) -> bool {
    frames_items(id) || nests_items(id) || matches!(id, "vlen-array" | "categorize")
}

/// Whether the codec `id` stores each item after its length, whatever the data type.
pub(super) fn frames_items(id: &str) -> bool {
    matches!(id, "vlen-utf8" | "vlen-bytes")
}

/// Whether the codec `id` stores items in lists nested like the shape of the chunk, so that the
/// order of the array, C or F, does not matter.
pub(super) fn nests_items(id: &str) -> bool {
    matches!(id, "json2" | "json" | "msgpack2" | "msgpack")
}

/// A codec list that is being built.
#[derive(Debug)]
pub(super) struct Pipeline {
    codecs: Vec<PipelineCodec>,
    made: CodecOutput,
}

/// A codec of the list.
#[derive(Debug)]
struct PipelineCodec {
    /// Its JSON text.
    text: String,
    /// The place in the document that it comes from.
    place: String,
    /// The name for it in the document.
    what: &'static str,
}

/// The output of the codecs so far.
#[derive(Debug)]
enum CodecOutput {
    /// Elements, and their byte order, where they have one.
    Array {
        item_size: u64,
        order: Option<ByteOrder>,
    },
    /// Bytes in groups of `item_size`, which the codec `by` has made.
    Bytes { item_size: u64, by: String },
}

impl CodecOutput {
    /// Elements of `data_type`, which are stored in `order` if they have a byte order.
    fn array(data_type: &DataType, order: ByteOrder) -> CodecOutput {
        CodecOutput::Array {
            item_size: data_type.item_size,
            order: data_type.stored_order(order),
        }
    }
}

impl Pipeline {
    /// An empty list, whose input is elements of `data_type` stored in `order`.
    pub(super) fn new(data_type: &DataType, order: ByteOrder) -> Pipeline {
        Pipeline {
            codecs: Vec::new(),
            made: CodecOutput::array(data_type, order),
        }
    }

    /// Adds the transpose of order F, which reverses the axes. Fewer than two axes need none.
    pub(super) fn reverse_axes(&mut self, rank: usize) {
        if rank >= 2 {
            let order: Vec<String> = (0..rank).rev().map(|axis| axis.to_string()).collect();
            let configuration = object_text([("order", format!("[{}]", order.join(",")))]);
            self.add("transpose", &configuration, "order", "codec");
        }
    }

    /// Adds the `bytes` codec, unless the output is bytes already. `order` overrides the stored
    /// byte order.
    pub(super) fn serialize(&mut self, order: Option<ByteOrder>) {
        let CodecOutput::Array {
            item_size,
            order: own,
        } = self.made
        else {
            return;
        };
        let configuration = bytes(own.map(|own| order.unwrap_or(own)));
        self.add("bytes", &configuration, "dtype", "codec");
        self.made = CodecOutput::Bytes {
            item_size,
            by: "bytes".to_owned(),
        };
    }

    /// Adds an object codec, or one that stores each item after its length.
    pub(super) fn add_object_codec(&mut self, spec: &Spec<'_>) {
        if frames_items(&spec.id) {
            self.add(&spec.id, "", &spec.place, spec.what);
        } else {
            self.add_numcodecs(spec);
        }
        self.now_bytes(spec);
    }

    /// Adds any other codec of numcodecs.
    pub(super) fn add_spec(&mut self, spec: &Spec<'_>) -> Result<(), FormatError> {
        let config = spec.plain_config();
        let spec = &Spec {
            place: spec.place.clone(),
            what: spec.what,
            id: spec.id.clone(),
            config: json::object(codecs::parse(&config)?, "an object")?,
        };
        match spec.id.as_str() {
            "delta" | "fixedscaleoffset" | "quantize" => {
                self.array_filter(spec, &["astype", "dtype"])
            }
            "astype" => self.array_filter(spec, &["encode_dtype"]),
            "bitround" => self.array_filter(spec, &[]),
            "packbits" => self.byte_filter(spec, &[]),
            "categorize" => self.byte_filter(spec, &["astype"]),
            "zfpy" | "pcodec" => {
                self.check_is_array(spec)?;
                self.now_bytes(spec);
                self.add_numcodecs(spec);
                Ok(())
            }
            _ => self.bytes_to_bytes(spec),
        }
    }

    /// Adds a codec from bytes to bytes of the v3 core.
    pub(super) fn add_core(&mut self, name: &str, spec: &Spec<'_>) {
        self.serialize(None);
        let members = spec.config.iter();
        let members = members.map(|(name, value)| (name, parameter(name, value)));
        let configuration = object_text(members);
        self.add(name, &configuration, &spec.place, spec.what);
        self.now_bytes(spec);
    }

    /// Adds a filter of numbers, whose output has the type that one of `members` spells.
    fn array_filter(&mut self, spec: &Spec<'_>, members: &[&str]) -> Result<(), FormatError> {
        self.check_is_array(spec)?;
        self.check_order(spec)?;
        for member in members {
            if let Some((data_type, order)) = spec.data_type(member)? {
                self.made = CodecOutput::array(&data_type, order);
                break;
            }
        }
        self.add_numcodecs(spec);
        Ok(())
    }

    /// Adds a filter whose output is single bytes, or has the type that one of `members` spells.
    fn byte_filter(&mut self, spec: &Spec<'_>, members: &[&str]) -> Result<(), FormatError> {
        self.check_is_array(spec)?;
        self.made = CodecOutput::Array {
            item_size: 1,
            order: None,
        };
        self.array_filter(spec, members)
    }

    fn bytes_to_bytes(&mut self, spec: &Spec<'_>) -> Result<(), FormatError> {
        self.serialize(None);
        let item_size = match &self.made {
            CodecOutput::Array { item_size, .. } | CodecOutput::Bytes { item_size, .. } => {
                *item_size
            }
        };
        let within = |error: FormatError| error.within(&spec.place);
        match spec.id.as_str() {
            "blosc" => {
                let configuration = blosc(&spec.config, item_size).map_err(within)?;
                self.add("blosc", &configuration, &spec.place, spec.what);
            }
            "zstd" => {
                let configuration = zstd(&spec.config);
                self.add("zstd", &configuration, &spec.place, spec.what);
            }
            "crc32c" if is_at_end(&spec.config).map_err(within)? => {
                self.add("crc32c", "", &spec.place, spec.what);
            }
            "pickle" => return Err(spec.unsupported("pickle (which could run any program)")),
            id if Numcodec::of_id(id).is_none() => return Err(spec.unsupported(id)),
            _ => self.add_numcodecs(spec),
        }
        self.now_bytes(spec);
        Ok(())
    }

    fn check_is_array(&self, spec: &Spec<'_>) -> Result<(), FormatError> {
        match &self.made {
            CodecOutput::Array { .. } => Ok(()),
            CodecOutput::Bytes { by, .. } => {
                Err(spec.unsupported(format!("{} after {by}", spec.id)))
            }
        }
    }

    /// Fails when a filter reads elements in another byte order than they are stored in: numcodecs
    /// would calculate with the swapped numbers.
    fn check_order(&self, spec: &Spec<'_>) -> Result<(), FormatError> {
        let member = match spec.id.as_str() {
            "astype" => "decode_dtype",
            _ => "dtype",
        };
        let (CodecOutput::Array { order: own, .. }, Some((taken, order))) =
            (&self.made, spec.data_type(member)?)
        else {
            return Ok(());
        };
        match (own, taken.stored_order(order)) {
            (Some(own), Some(order)) if *own != order => Err(spec.unsupported(format!(
                "{} of {} on elements of the other byte order",
                spec.id, taken.name
            ))),
            _ => Ok(()),
        }
    }

    fn now_bytes(&mut self, spec: &Spec<'_>) {
        self.made = CodecOutput::Bytes {
            item_size: 1,
            by: spec.id.clone(),
        };
    }

    /// Adds a codec under its v3 name `numcodecs.ID`.
    fn add_numcodecs(&mut self, spec: &Spec<'_>) {
        let configuration = of_numcodecs(&spec.id, &spec.config);
        let name = format!("numcodecs.{}", spec.id);
        self.add(&name, &configuration, &spec.place, spec.what);
    }

    /// Adds a codec; an empty `configuration` means that it has none.
    fn add(&mut self, name: &str, configuration: &str, place: &str, what: &'static str) {
        self.codecs.push(PipelineCodec {
            text: codec_text(name, configuration),
            place: place.to_owned(),
            what,
        });
    }

    /// The JSON of the list.
    fn text(&mut self) -> String {
        self.serialize(None);
        let texts = self.codecs.iter().map(|codec| codec.text.as_str());
        let texts: Vec<&str> = texts.collect();
        format!("[{}]", texts.join(","))
    }

    /// The chain of the list, and its JSON.
    pub(super) fn finish(
        mut self,
        data_type: &DataType,
        chunk_shape: &[u64],
    ) -> Result<(CodecChain, String), FormatError> {
        let text = self.text();
        let chain = chain(&text, data_type, chunk_shape)
            .map_err(|error| at_its_source(error, &self.codecs))?;
        Ok((chain, text))
    }
}

/// Parses the JSON of a codec list.
pub(super) fn chain(
    text: &str,
    data_type: &DataType,
    chunk_shape: &[u64],
) -> Result<CodecChain, FormatError> {
    codecs::chain(&codecs::list(codecs::parse(text)?)?, data_type, chunk_shape)
}

/// Moves an error of the codec `[i]` to the place in the document that the codec comes from.
fn at_its_source(error: FormatError, codecs: &[PipelineCodec]) -> FormatError {
    let (FormatError::Document { place, .. } | FormatError::Unsupported { place, .. }) = &error
    else {
        return error;
    };
    let found = place.strip_prefix('[').and_then(|rest| {
        let (index, rest) = rest.split_once(']')?;
        let codec = codecs.get(index.parse::<usize>().ok()?)?;
        let rest = rest.strip_prefix(".configuration").unwrap_or(rest);
        Some((codec, format!("{}{rest}", codec.place)))
    });
    match (error, found) {
        (FormatError::Document { problem, .. }, Some((_, place))) => {
            FormatError::Document { place, problem }
        }
        (FormatError::Unsupported { name, what, .. }, Some((codec, place))) => {
            let id = name.strip_prefix("numcodecs.").unwrap_or(&name);
            let what = if what == "codec" { codec.what } else { what };
            FormatError::unsupported(place, what, id)
        }
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests;
