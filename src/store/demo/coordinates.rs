//! The coordinates of the demo store: the types that real stores have, each in one chunk.

use super::insert;
use crate::store::MemoryStore;

/// An array of one dimension, in one uncompressed chunk.
pub(super) struct Coordinate {
    name: &'static str,
    dimension: &'static str,
    len: u16,
    /// Data type, fill value and codec, in JSON.
    data_type: &'static str,
    fill_value: &'static str,
    codec: &'static str,
    /// Members of the attributes, in JSON.
    attributes: &'static str,
    /// The encoded chunk.
    chunk: Vec<u8>,
}

const BYTES: &str = r#"{"name": "bytes", "configuration": {"endian": "little"}}"#;

/// The length of the dimension `time`: four steps on each of two days.
const TIMES: u16 = 8;

/// The arrays along `time`, `lat` and `lon` in the group `air`.
pub(super) fn coordinates() -> [Coordinate; 5] {
    let degrees = |len: u16, value: fn(f64) -> f64| -> Vec<u8> {
        let values = (0..len).map(|index| value(f64::from(index)));
        values.flat_map(f64::to_le_bytes).collect()
    };
    let hours = (0..TIMES).map(|step| 6 * i64::from(step));
    let parts = ["night", "morning", "afternoon", "evening"].iter().cycle();
    let daylight = [false, true, true, false].into_iter().cycle();
    [
        Coordinate {
            name: "time",
            dimension: "time",
            len: TIMES,
            data_type: "int64",
            fill_value: "0",
            codec: BYTES,
            attributes: r#""standard_name": "time", "units": "hours since 2026-01-01", "calendar": "proleptic_gregorian""#,
            chunk: hours.flat_map(i64::to_le_bytes).collect(),
        },
        Coordinate {
            name: "lat",
            dimension: "lat",
            len: 48,
            data_type: "float64",
            fill_value: "0.0",
            codec: BYTES,
            attributes: r#""standard_name": "latitude", "units": "degrees_north""#,
            chunk: degrees(48, |i| 70.5 - i),
        },
        Coordinate {
            name: "lon",
            dimension: "lon",
            len: 96,
            data_type: "float64",
            fill_value: "0.0",
            codec: BYTES,
            attributes: r#""standard_name": "longitude", "units": "degrees_east""#,
            chunk: degrees(96, |i| i - 24.0),
        },
        Coordinate {
            name: "part_of_day",
            dimension: "time",
            len: TIMES,
            data_type: "string",
            fill_value: r#""""#,
            codec: r#"{"name": "vlen-utf8"}"#,
            attributes: r#""long_name": "part of the day""#,
            chunk: encode_strings(parts.take(TIMES.into()).copied().collect()),
        },
        Coordinate {
            name: "daylight",
            dimension: "time",
            len: TIMES,
            data_type: "bool",
            fill_value: "false",
            codec: r#"{"name": "bytes"}"#,
            attributes: r#""long_name": "whether the sun is up""#,
            chunk: daylight.take(TIMES.into()).map(u8::from).collect(),
        },
    ]
}

/// `vlen-utf8`: the number of strings, then each after its length, in bytes.
fn encode_strings(strings: Vec<&str>) -> Vec<u8> {
    let number = |len: usize| {
        u32::try_from(len)
            .expect("the store is small")
            .to_le_bytes()
    };
    let mut bytes = number(strings.len()).to_vec();
    for text in strings {
        bytes.extend_from_slice(&number(text.len()));
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

impl Coordinate {
    pub(super) fn insert(self, store: &MemoryStore) {
        let Coordinate {
            name,
            dimension,
            len,
            data_type,
            fill_value,
            codec,
            attributes,
            chunk,
        } = self;
        let document = format!(
            r#"{{
  "zarr_format": 3,
  "node_type": "array",
  "shape": [{len}],
  "data_type": "{data_type}",
  "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [{len}]}}}},
  "chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "/"}}}},
  "fill_value": {fill_value},
  "codecs": [{codec}],
  "dimension_names": ["{dimension}"],
  "attributes": {{{attributes}}}
}}
"#
        );
        insert(store, &format!("air/{name}/zarr.json"), document);
        insert(store, &format!("air/{name}/c/0"), chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_stored_after_their_lengths() {
        let expected = b"\x02\0\0\0\x02\0\0\0ab\0\0\0\0";
        assert_eq!(encode_strings(vec!["ab", ""]), expected);
        let all = coordinates();
        let chunk = |name: &str| &all.iter().find(|c| c.name == name).unwrap().chunk;
        assert_eq!(chunk("time").len(), 8 * usize::from(TIMES));
        assert_eq!(chunk("daylight").len(), usize::from(TIMES));
        assert!(chunk("part_of_day").ends_with(b"evening"));
    }
}
