//! A block of a dataset of N5, of any type and compression.

use serde_json::{Value, json};
use zarr_mount::metadata::n5;

use super::choices::Choices;
use super::decoding;

const TYPES: [&str; 10] = [
    "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64",
];

const COMPRESSIONS: [&str; 8] = ["raw", "gzip", "zlib", "bzip2", "xz", "zstd", "blosc", "lz4"];

/// Makes a dataset of the first bytes, and takes the others for a block: all of it, or what is behind a header that is
/// right, or wrong in its last byte.
pub fn run(data: &[u8]) {
    let mut choices = Choices(data);
    let data_type = choices.one_of(&TYPES);
    let compression = compression(choices.one_of(&COMPRESSIONS));
    let lengths: Vec<u32> = (0..=choices.below(4))
        .map(|_| 1 + u32::try_from(choices.below(9)).expect("a small number"))
        .collect();
    let header = match choices.below(4) {
        0 => Vec::new(),
        1 => header(0, &lengths),
        2 => counted(&lengths, 0),
        _ => counted(&lengths, 1),
    };
    let document = json!({"dimensions": lengths, "blockSize": lengths, "dataType": data_type, "compression": compression});
    let array = n5::parse_array(document.to_string().as_bytes()).expect("it is a dataset");
    assert!(array.decoding.is_ok(), "{document}");
    decoding::check(&array, &[&header, choices.rest()].concat());
}

fn compression(name: &str) -> Value {
    match name {
        "zlib" => json!({"type": "gzip", "useZlib": true}),
        name => json!({"type": name}),
    }
}

fn header(mode: u16, lengths: &[u32]) -> Vec<u8> {
    let rank = u16::try_from(lengths.len()).expect("a small rank");
    let mut header = [mode.to_be_bytes(), rank.to_be_bytes()].concat();
    header.extend(lengths.iter().flat_map(|length| length.to_be_bytes()));
    header
}

/// A header of mode 1, whose number of elements is wrong by `excess`.
fn counted(lengths: &[u32], excess: u32) -> Vec<u8> {
    let count = lengths.iter().product::<u32>() + excess;
    [header(1, lengths), count.to_be_bytes().to_vec()].concat()
}
