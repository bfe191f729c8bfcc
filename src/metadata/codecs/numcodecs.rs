//! Configurations of the filters and object codecs of numcodecs.
//!
//! Members that are left out mean what numcodecs means by that, but types: zarr-python takes
//! those from the array. Members that are not known are ignored.

use super::{Parser, Seen, Stage, members, registered};
#[cfg(feature = "pcodec")]
use crate::codec::Pcodec;
use crate::codec::{ArrayToBytes, Categories, Elementwise, FilterKind, Number, VariableLength};
use crate::dtype::json::{self, Object};
use crate::dtype::{DataType, Element, utf32};
use crate::error::FormatError;

/// What reads the configuration of the codec `numcodecs.ID`.
pub(super) fn parser(id: &str) -> Option<Parser> {
    Some(match id {
        "delta" => delta,
        "fixedscaleoffset" => fixed_scale_offset,
        "quantize" => quantize,
        "bitround" => registered::bitround,
        "astype" => astype,
        "packbits" => packbits,
        "categorize" => categorize,
        "vlen-array" => vlen_array,
        "json" => |seen, _| object_codec(seen, "numcodecs.json"),
        "json2" => |seen, _| object_codec(seen, "numcodecs.json2"),
        "msgpack" => |seen, _| object_codec(seen, "numcodecs.msgpack"),
        "msgpack2" => |seen, _| object_codec(seen, "numcodecs.msgpack2"),
        #[cfg(feature = "pcodec")]
        "pcodec" => |seen, _| {
            let codec = Pcodec::new(&seen.data_type)?;
            Ok(Stage::ArrayToBytes(ArrayToBytes::Pcodec(codec)))
        },
        _ => return None,
    })
}

/// The types that a filter is between: its own, then that of `astype`.
fn types(seen: &Seen, configuration: &Object<'_>) -> Result<(DataType, DataType), FormatError> {
    let own = members::own_type(seen, configuration, "dtype")?;
    let encoded = members::data_type(configuration, "astype")?;
    let encoded = encoded.unwrap_or_else(|| own.clone());
    Ok((own, encoded))
}

fn delta(seen: &Seen, configuration: &Object<'_>) -> Result<Stage, FormatError> {
    let (own, encoded) = types(seen, configuration)?;
    let numbers = (members::arithmetic(&own)?, members::arithmetic(&encoded)?);
    if let (Number::Integer(_), Number::Float(_)) = numbers {
        // What becomes of fractions on the way is nowhere said.
        let name = format!("{} for differences of {}", encoded.name, own.name);
        return Err(FormatError::unsupported("astype", "data type", name));
    }
    let kind = FilterKind::Delta {
        decoded: numbers.0,
        encoded: numbers.1,
    };
    Ok(members::filter(seen, kind, encoded))
}

fn fixed_scale_offset(seen: &Seen, configuration: &Object<'_>) -> Result<Stage, FormatError> {
    let (own, encoded) = types(seen, configuration)?;
    let operation = Elementwise::FixedScaleOffset {
        offset: members::value(configuration, "offset")?,
        scale: members::value(configuration, "scale")?,
    };
    members::elementwise(seen, operation, members::arithmetic(&own)?, encoded)
}

fn quantize(seen: &Seen, configuration: &Object<'_>) -> Result<Stage, FormatError> {
    let (own, encoded) = types(seen, configuration)?;
    for data_type in [&own, &encoded] {
        if !matches!(members::number(data_type)?, Number::Float(_)) {
            let name = format!("{} with quantize", data_type.name);
            return Err(FormatError::unsupported("", "data type", name));
        }
    }
    let digits = members::integer(configuration, "digits", (-400, 400))?
        .ok_or_else(|| json::missing("digits"))?;
    let operation = Elementwise::Quantize { digits };
    members::elementwise(seen, operation, members::number(&own)?, encoded)
}

fn astype(seen: &Seen, configuration: &Object<'_>) -> Result<Stage, FormatError> {
    let own = members::own_type(seen, configuration, "decode_dtype")?;
    let encoded = members::data_type(configuration, "encode_dtype")?
        .ok_or_else(|| json::missing("encode_dtype"))?;
    members::elementwise(seen, Elementwise::AsType, members::number(&own)?, encoded)
}

fn packbits(seen: &Seen, _: &Object<'_>) -> Result<Stage, FormatError> {
    if seen.data_type.item_size != 1 {
        let name = format!("{} with packbits", seen.data_type.name);
        return Err(FormatError::unsupported("", "data type", name));
    }
    Ok(members::filter(
        seen,
        FilterKind::Mask,
        DataType::unsigned(1),
    ))
}

/// A filter of strings of a fixed length, or the codec of objects.
fn categorize(seen: &Seen, configuration: &Object<'_>) -> Result<Stage, FormatError> {
    let code = members::data_type(configuration, "astype")?;
    let code = code.unwrap_or_else(|| DataType::unsigned(1));
    let Ok(number @ Number::Integer(_)) = members::number(&code) else {
        let name = code.name;
        return Err(FormatError::unsupported("astype", "type of codes", name));
    };
    if seen.data_type.is_variable() {
        let code_size = number.size();
        return kept(seen, VariableLength::Categories { code_size });
    }
    let label = |raw| {
        let label = json::string(raw, "a label")?;
        Ok(match seen.data_type.element {
            Element::Text { .. } => utf32(&label),
            _ => label.into_bytes(),
        })
    };
    let labels = configuration.require("labels")?;
    let labels = json::array(labels, "a list of labels")
        .and_then(|labels| labels.into_iter().map(label).collect::<Result<Vec<_>, _>>())
        .map_err(|error| error.within("labels"))?;
    if !matches!(
        seen.data_type.element,
        Element::Text { .. } | Element::Bytes { .. }
    ) {
        let name = format!("{} with categorize", seen.data_type.name);
        return Err(FormatError::unsupported("", "data type", name));
    }
    members::own_type(seen, configuration, "dtype")?;
    let kind = FilterKind::Categories(Categories::new(labels, number));
    Ok(members::filter(seen, kind, code))
}

fn vlen_array(seen: &Seen, configuration: &Object<'_>) -> Result<Stage, FormatError> {
    let item = members::data_type(configuration, "dtype")?.ok_or_else(|| json::missing("dtype"))?;
    let item_size = item.item_size;
    kept(seen, VariableLength::Array { item_size })
}

fn object_codec(seen: &Seen, name: &'static str) -> Result<Stage, FormatError> {
    kept(seen, VariableLength::Object(name))
}

/// A codec whose bytes are those of the decoded chunk. Bytes that are not item after item
/// cannot be put together to the bytes of a shard.
fn kept(seen: &Seen, codec: VariableLength) -> Result<Stage, FormatError> {
    if !seen.data_type.is_variable() {
        let name = format!("{} with {}", seen.data_type.name, codec.name());
        return Err(FormatError::unsupported("", "data type", name));
    }
    if seen.depth > 0 && !codec.has_items() {
        let name = format!("{} inside shards", codec.name());
        return Err(FormatError::unsupported("", "codec", name));
    }
    Ok(Stage::ArrayToBytes(ArrayToBytes::VariableLength(codec)))
}
