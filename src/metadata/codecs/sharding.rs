//! Parses the configuration of `sharding_indexed`.

use serde_json::value::RawValue;

use super::{Codec, Input, MAX_NESTING, check_some, list, members};
use crate::codec::{ArrayToArray, ArrayToBytes, IndexLayout, IndexLocation, ShardingCodec};
use crate::dtype::DataType;
use crate::error::FormatError;
use crate::grid::Dims;
use crate::metadata::document::lengths_or_one;
use crate::metadata::json::{self, Members};

/// Refuses codecs before `sharding_indexed` that mix the elements of different inner chunks.
pub(super) fn check_before(array_to_array: &[ArrayToArray]) -> Result<(), FormatError> {
    let mut codecs = array_to_array.iter().enumerate();
    let Some((i, mixing)) = codecs.find(|(_, codec)| !codec.can_be_split()) else {
        return Ok(());
    };
    let name = format!("{} before sharding_indexed", mixing.name());
    Err(FormatError::unsupported(format!("[{i}]"), "codec", name))
}

pub(super) fn sharding(input: &Input, configuration: &Members<'_>) -> Result<Codec, FormatError> {
    if input.depth == MAX_NESTING {
        let problem =
            format!("found shards in a shard index, or nested more than {MAX_NESTING} levels deep");
        return Err(FormatError::document("", problem));
    }
    let (chunk_shape, chunks_per_shard) = configuration.read("chunk_shape", |value| {
        let chunk_shape = lengths_or_one(value)?;
        let counts = chunks_per_shard(input, value, &chunk_shape)?;
        Ok((chunk_shape, counts))
    })?;
    let inner = input.inside(chunk_shape.clone());
    let codecs = configuration.read("codecs", |value| inner.chain(&list(value)?))?;
    let words = Input {
        shape: chunks_per_shard.iter().copied().chain([2]).collect(),
        data_type: DataType::unsigned(8),
        // The depth is the maximum, so that an index cannot be sharded itself.
        depth: MAX_NESTING,
    };
    let index = match configuration.get("index_codecs") {
        Some(value) => list(value)
            .and_then(|specs| check_some(&specs).and_then(|()| words.chain(&specs)))
            .and_then(|chain| IndexLayout::new(&chunks_per_shard, &chain)),
        // Documents of early 2023 do not say whether the index has a checksum; only its length
        // does.
        None => IndexLayout::undocumented(&chunks_per_shard),
    };
    let locations = [("start", IndexLocation::Start), ("end", IndexLocation::End)];
    let location = members::word(configuration, "index_location", &locations)?;
    Ok(Codec::ArrayToBytes(ArrayToBytes::Sharding(Box::new(
        ShardingCodec {
            chunk_shape,
            codecs,
            index: index.map_err(|error| error.within("index_codecs"))?,
            location: location.unwrap_or(IndexLocation::End),
            chunks_per_shard,
        },
    ))))
}

/// The number of inner chunks along each axis of the codec's input.
fn chunks_per_shard(
    input: &Input,
    value: &RawValue,
    chunk_shape: &[u64],
) -> Result<Dims, FormatError> {
    let divides = |(&shard, &chunk): (&u64, &u64)| match shard.checked_rem(chunk) {
        Some(0) => Some(shard / chunk),
        _ => None,
    };
    let counts: Option<Dims> = input.shape.iter().zip(chunk_shape).map(divides).collect();
    counts
        .filter(|counts| counts.len() == chunk_shape.len() && counts.len() == input.shape.len())
        .ok_or_else(|| {
            let expected = format!("lengths that divide the shard's {:?}", &input.shape[..]);
            json::mismatch(value, &expected)
        })
}
