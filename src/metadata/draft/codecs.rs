//! The codecs of a draft's array, and its sharding transformers.

use serde_json::value::RawValue;

use super::super::document::{attributes_in, lengths, spelled};
use super::super::numcodecs::{self, Pipeline, Spec};
use super::super::v2::{self, MemoryOrder};
use super::layout::Generation;
use crate::codec::CodecChain;
use crate::dtype::{ByteOrder, DataType};
use crate::error::FormatError;
use crate::grid::Dims;
use crate::metadata::json::{self, Json, Members};

/// The codecs in the order of encoding: until 2022 the filters, which are among the attributes, and
/// the compressor; in the text of December 2022 `codecs`.
pub(super) fn specs<'a>(
    root: &Members<'a>,
    generation: Generation,
) -> Result<Vec<Spec<'a>>, FormatError> {
    if generation == Generation::Core {
        let Some(list) = root.get_some("codecs") else {
            return Ok(Vec::new());
        };
        let codecs =
            json::array(list, "a list of codecs").map_err(|error| error.within("codecs"))?;
        let codecs = codecs.into_iter().enumerate();
        return codecs
            .map(|(i, codec)| spec(codec, format!("codecs[{i}]"), "type", "codec"))
            .collect();
    }
    let mut specs = match hidden_filters(root)?.filter(|list| list.get() != "null") {
        Some(list) => v2::filters(list, "attributes.filters")?,
        None => Vec::new(),
    };
    if let Some(compressor) = root.get_some("compressor") {
        let place = "compressor".to_owned();
        specs.push(spec(compressor, place, "codec", "compressor")?);
    }
    Ok(specs)
}

/// The list of filters that zarr-python 2 puts among the attributes, or the `null` that says that there are none. An
/// attribute of that name whose items have no `id` belongs to the user, and so does every one beside `codecs`, which the
/// text of December 2022 has.
pub(in crate::metadata) fn hidden_filters<'a>(
    root: &Members<'a>,
) -> Result<Option<&'a RawValue>, FormatError> {
    if root.get_some("codecs").is_some() {
        return Ok(None);
    }
    let Some(attributes) = attributes_in(root) else {
        return Ok(None);
    };
    let attributes = json::object(attributes, "an object");
    let attributes = attributes.map_err(|error| error.within("attributes"))?;
    let Some(list) = attributes.get("filters") else {
        return Ok(None);
    };
    let items = match Json::of(list)? {
        Json::Array(items) => items,
        Json::Null => return Ok(Some(list)),
        _ => return Ok(None),
    };
    let are_filters = items.iter().all(|item| {
        json::object(item, "").is_ok_and(|members| {
            let id = members.get("id").map(Json::of);
            matches!(id, Some(Ok(Json::String(_))))
        })
    });
    Ok(are_filters.then_some(list))
}

/// Parses a codec `{"codec": URI, "configuration": {..}}`, whose URI is the member `uri`.
fn spec<'a>(
    value: &'a RawValue,
    place: String,
    uri: &'static str,
    what: &'static str,
) -> Result<Spec<'a>, FormatError> {
    Spec::read(place, what, || {
        let members = json::object(value, "an object")?;
        let text = members.read(uri, |text| json::string(text, "a URI"))?;
        let config =
            members.read_some("configuration", |value| json::object(value, "an object"))?;
        Ok((codec_name(&text).to_owned(), config.unwrap_or_default()))
    })
}

/// The name of the codec: the segment of the URI after `/codec/` or `/codecs/`, which a version may
/// follow, or else the whole URI.
fn codec_name(uri: &str) -> &str {
    ["/codec/", "/codecs/"]
        .iter()
        .find_map(|marker| uri.split_once(marker))
        .and_then(|(_, rest)| rest.split('/').next())
        .filter(|name| !name.is_empty())
        .unwrap_or(uri)
}

/// The pipeline of a codec list of December 2022. Its first codec may be `endian`, which turns
/// elements into bytes; without it the bytes are little-endian.
pub(super) fn core_pipeline(
    data_type: &DataType,
    byte_order: ByteOrder,
    specs: &[Spec<'_>],
    order: MemoryOrder,
    rank: usize,
) -> Result<Pipeline, FormatError> {
    if data_type.is_variable() {
        return v2::pipeline(data_type, byte_order, specs, order, rank);
    }
    let mut pipeline = Pipeline::new(data_type, byte_order);
    if order == MemoryOrder::F {
        pipeline.reverse_axes(rank);
    }
    for (i, spec) in specs.iter().enumerate() {
        match spec.id.as_str() {
            "endian" if i == 0 => {
                let order = |value| json::word(value, &ByteOrder::NAMES);
                let order = spec.config.read("endian", order);
                pipeline.serialize(Some(order.map_err(|error| error.within(&spec.place))?));
            }
            "endian" => {
                let problem = "found `endian` where the chunk is bytes already";
                return Err(FormatError::document(&spec.place, problem));
            }
            // This text has no codecs of numcodecs, whose `gzip` may be a zlib stream.
            "gzip" => pipeline.add_core("gzip", spec),
            _ => pipeline.add_spec(spec)?,
        }
    }
    Ok(pipeline)
}

/// The number of chunks along each axis of a shard, for each sharding transformer, the innermost
/// first.
pub(super) fn chunks_per_shard(root: &Members<'_>, rank: usize) -> Result<Vec<Dims>, FormatError> {
    const NAME: &str = "storage_transformers";
    let list = |list| json::list(list, "a list", |transformer| sharding(transformer, rank));
    Ok(root.read_some(NAME, list)?.unwrap_or_default())
}

fn sharding(transformer: &RawValue, rank: usize) -> Result<Dims, FormatError> {
    let members = json::object(transformer, "an object")?;
    let uri = spelled(members.require("extension")?);
    if !uri.replace('-', "_").ends_with("/sharding/1.0") {
        return Err(FormatError::unsupported("", "storage transformer", uri));
    }
    let kind = spelled(members.require("type")?);
    if kind != "indexed" {
        let name = format!("sharding of type {kind}");
        return Err(FormatError::unsupported(
            "type",
            "storage transformer",
            name,
        ));
    }
    let counts = |value| {
        let mut counts = lengths(value)?;
        // zarr-python leaves out the axes of sub-arrays, and has one axis of one chunk at rank 0.
        let surplus_is_one = counts.iter().skip(rank).all(|&count| count == 1);
        if counts.contains(&0) || !surplus_is_one {
            return Err(json::mismatch(
                value,
                &format!("{rank} counts of 1 or more"),
            ));
        }
        counts.resize(rank, 1);
        Ok(counts)
    };
    members.read("configuration", |value| {
        json::object(value, "an object")?.read("chunks_per_shard", counts)
    })
}

/// The chain, its text and the chunk shape, with a sharding codec around them for each sharding
/// transformer. The index of a draft's shard is little-endian, at the end, without a checksum.
pub(super) fn sharded(
    chain: CodecChain,
    text: String,
    data_type: &DataType,
    inner_shape: &[u64],
    per_shard: &[Dims],
) -> Result<(CodecChain, String, Dims), FormatError> {
    let mut shape: Dims = inner_shape.into();
    let (mut outer, mut text) = (chain, text);
    for (i, counts) in per_shard.iter().enumerate() {
        let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
        text = format!(
            "[{{\"name\":\"sharding_indexed\",\"configuration\":{{\"chunk_shape\":[{}],\
             \"codecs\":{text},\"index_codecs\":[{{\"name\":\"bytes\",\"configuration\":\
             {{\"endian\":\"little\"}}}}],\"index_location\":\"end\"}}}}]",
            lengths.join(",")
        );
        shape = shard_shape(&shape, std::slice::from_ref(counts))?;
        outer = numcodecs::chain(&text, data_type, &shape).map_err(|error| match error {
            FormatError::Document { problem, .. } => {
                FormatError::document(format!("storage_transformers[{i}]"), problem)
            }
            other => other,
        })?;
    }
    Ok((outer, text, shape))
}

/// The shape of the outermost shards, from that of the inner chunks.
pub(super) fn shard_shape(inner_shape: &[u64], per_shard: &[Dims]) -> Result<Dims, FormatError> {
    let mut shape: Dims = inner_shape.into();
    for counts in per_shard {
        shape = shape
            .iter()
            .zip(counts)
            .map(|(&length, &count)| length.checked_mul(count))
            .collect::<Option<_>>()
            .ok_or_else(|| {
                let found = format!("{:?} times {:?}", &shape[..], &counts[..]);
                FormatError::too_large("the length of a shard", found, u64::MAX)
            })?;
    }
    Ok(shape)
}
