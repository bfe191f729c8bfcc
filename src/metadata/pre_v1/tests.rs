//! Documents of zarr-python 0.4, and the pickles of 0.3.

use super::*;

const DOCUMENT: &str = r#"{"chunks": [6, 5], "clevel": 5, "cname": "blosclz", "dtype": "<i4",
    "fill_value": 42, "shape": [20, 13], "shuffle": 1}"#;

#[test]
fn a_document_becomes_an_array() {
    let array = parse_array(DOCUMENT.as_bytes()).unwrap();
    assert_eq!(array.zarr_format, ZarrFormat::PreV1);
    assert_eq!(
        (&array.shape[..], &array.chunks.longest()[..]),
        (&[20, 13][..], &[6, 5][..])
    );
    assert_eq!(array.chunk_keys.encode(&[1, 2]), b"__zdata__/1.2.blosc");
    let decoding = array.decoding.unwrap();
    assert_eq!(decoding.fill_value.bytes(), 42_i32.to_le_bytes());
    assert_eq!(
        decoding.pipeline,
        r#"[{"name":"bytes","configuration":{"endian":"little"}},{"name":"blosc","configuration":{"cname":"blosclz","clevel":5,"shuffle":"shuffle","typesize":4,"blocksize":0}}]"#
    );
}

#[test]
fn a_pickle_is_refused_by_name() {
    for text in [&b"(dp0\nS'shape'"[..], b"\x80\x02}q", b"", b" {}"] {
        let error = parse_array(text).unwrap_err().to_string();
        assert!(error.contains("unsupported document `pickle"), "{error}");
    }
    let error = parse_array(b"{}").unwrap_err().to_string();
    assert_eq!(error, "shape: missing, but required");
}
