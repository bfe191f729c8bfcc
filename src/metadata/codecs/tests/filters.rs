//! Filters against what numcodecs decodes, and the rules of those that it lacks.

use serde_json::Value;

use super::*;
use crate::codec::ChunkSpec;
use crate::dtype::FillValue;

/// The chain of `codecs` for one dimension of `length` elements, and the type.
fn chain_of(
    codecs: &str,
    data_type: &str,
    length: u64,
) -> Result<(CodecChain, DataType), FormatError> {
    let codecs: Box<RawValue> = serde_json::from_str(codecs).unwrap();
    let data_type: Box<RawValue> = serde_json::from_str(data_type).unwrap();
    let data_type = DataType::parse_v3(&data_type)?;
    Ok((chain(&list(&codecs)?, &data_type, &[length])?, data_type))
}

fn decode(
    (chain, data_type): &(CodecChain, DataType),
    length: u64,
    encoded: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let fill = FillValue::zeros(data_type.item_size);
    let spec = ChunkSpec {
        shape: &[length],
        dtype: data_type,
        fill: &fill,
    };
    let mut out = vec![0xee; usize::try_from(spec.decoded_len().unwrap()).unwrap()];
    chain.decode(&spec, encoded, &mut out)?;
    Ok(out)
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn chunks_decode_as_numcodecs_decodes_them() {
    let chunks: Vec<Value> = serde_json::from_str(include_str!("filters.json")).unwrap();
    let mut refused = 0;
    for chunk in &chunks {
        let data_type = chunk["data_type"].to_string();
        let codecs = format!("[{}, {LITTLE}]", chunk["codec"]);
        let encoded = unhex(chunk["encoded"].as_str().unwrap());
        let found = decode(&chain_of(&codecs, &data_type, 11).unwrap(), 11, &encoded);
        match chunk["decoded"].as_str() {
            Some(decoded) => assert_eq!(found.unwrap(), unhex(decoded), "{chunk}"),
            None => {
                assert!(found.is_err(), "{chunk}");
                refused += 1;
            }
        }
    }
    assert!(chunks.len() > 50 && refused > 0);
}

#[test]
fn fill_values_are_encoded_as_numcodecs_encodes_them() {
    let chunks: Vec<Value> = serde_json::from_str(include_str!("filters.json")).unwrap();
    let mut compared = 0;
    for chunk in &chunks {
        let (Some(source), Some(made)) = (chunk["source"].as_str(), chunk["made"].as_str()) else {
            continue;
        };
        let codecs = format!("[{}, {LITTLE}]", chunk["codec"]);
        let (chain, data_type) = chain_of(&codecs, &chunk["data_type"].to_string(), 11).unwrap();
        let ArrayToArray::Filter(filter) = &chain.array_to_array[0] else {
            panic!("{chunk}");
        };
        let size = |data_type: &DataType| usize::try_from(data_type.item_size).unwrap();
        let (source, made) = (unhex(source), unhex(made));
        let elements = source.chunks(size(&data_type));
        for (element, made) in elements.zip(made.chunks(size(filter.encoded_type()))) {
            assert_eq!(
                filter.encode_element(element).unwrap(),
                made,
                "{chunk}: {element:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 200);
}
