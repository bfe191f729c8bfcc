//! Documents of the drafts as their writers write them, and invalid ones.

use super::*;

const BYTES: &str = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;

/// A document as zarr-python 2.18 writes it, with `members` added.
fn protocol(members: &str) -> Result<ArrayMetadata, FormatError> {
    let text = format!(
        r#"{{"attributes": {{}}, "chunk_grid": {{"chunk_shape": [4, 3], "separator": "/", "type": "regular"}},
            "chunk_memory_layout": "C", "data_type": "<i4", "dimension_separator": "/",
            "extensions": [], "fill_value": 0, "shape": [7, 5]{members}}}"#
    );
    parse_array(text.as_bytes(), Generation::Protocol)
}

/// A document that follows the text of December 2022, with `members` added.
fn core(members: &str) -> Result<ArrayMetadata, FormatError> {
    let text = format!(
        r#"{{"attributes": {{}}, "chunk_grid": {{"type": "regular", "chunk_shape": [4, 3]}},
            "chunk_memory_layout": "C", "data_type": "int32", "extensions": [],
            "fill_value": 0, "shape": [7, 5]{members}}}"#
    );
    parse_array(text.as_bytes(), Generation::Core)
}

fn pipeline(array: Result<ArrayMetadata, FormatError>) -> String {
    array.unwrap().decoding.unwrap().pipeline
}

#[test]
fn a_document_of_the_protocol_becomes_an_array() {
    let array = protocol(
        r#", "compressor": {"codec": "https:\/\/purl.org/zarr/spec/codec/gzip/1.0",
             "configuration": {"level": 1}}, "data_type": ">i2", "chunk_memory_layout": "F""#,
    )
    .unwrap();
    assert_eq!(array.zarr_format, ZarrFormat::Draft);
    assert_eq!(
        (&array.shape[..], &array.chunks.longest()[..]),
        (&[7, 5][..], &[4, 3][..])
    );
    assert_eq!(
        (array.data_type.as_str(), &array.codecs[..]),
        (">i2", &["gzip".to_owned()][..])
    );
    assert_eq!(array.chunk_keys.encode(&[1, 0]), b"c1/0");
    assert_eq!(
        array.decoding.unwrap().pipeline,
        r#"[{"name":"transpose","configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}},{"name":"numcodecs.gzip","configuration":{"level":1}}]"#
    );
}

#[test]
fn a_document_of_the_core_text_becomes_an_array() {
    let endian = |order| {
        format!(
            r#"{{"type": "https://purl.org/zarr/spec/codecs/endian/1.0", "configuration": {{"endian": "{order}"}}}}"#
        )
    };
    let gzip =
        r#"{"type": "https://purl.org/zarr/spec/codec/gzip", "configuration": {"level": 2}}"#;
    let blosc = r#"{"type": "https://purl.org/zarr/spec/codecs/blosc/1.0", "configuration": {"cname": "lz4", "clevel": 1, "shuffle": 1, "blocksize": 0}}"#;
    let gzipped = r#"{"name":"gzip","configuration":{"level":2}}"#;
    for (members, expected) in [
        (String::new(), BYTES.to_owned()),
        (
            format!(r#", "codecs": [{gzip}]"#),
            format!("{BYTES},{gzipped}"),
        ),
        (
            format!(r#", "codecs": [{}, {gzip}]"#, endian("big")),
            format!(r#"{{"name":"bytes","configuration":{{"endian":"big"}}}},{gzipped}"#),
        ),
        (
            format!(r#", "codecs": [{blosc}], "chunk_memory_layout": "F""#),
            format!(
                r#"{{"name":"transpose","configuration":{{"order":[1,0]}}}},{BYTES},{{"name":"blosc","configuration":{{"cname":"lz4","clevel":1,"shuffle":"shuffle","typesize":4,"blocksize":0}}}}"#
            ),
        ),
        (
            r#", "data_type": "bool", "fill_value": false"#.to_owned(),
            r#"{"name":"bytes"}"#.to_owned(),
        ),
        (
            format!(r#", "data_type": ">f8", "codecs": [{}]"#, endian("little")),
            BYTES.to_owned(),
        ),
    ] {
        assert_eq!(
            pipeline(core(&members)),
            format!("[{expected}]"),
            "{members}"
        );
    }
}

#[test]
fn early_documents_have_keys_of_their_own() {
    let text = r#"{"shape": [4], "data_type": "<f8", "fill_value": null,
        "chunk_grid": {"type": "regular", "chunk_shape": [2]}}"#;
    let array = parse_array(text.as_bytes(), Generation::Early).unwrap();
    assert_eq!(array.chunk_keys.encode(&[1]), b"1");
    assert_eq!(array.chunk_keys.separator, b'.');
    assert!(!array.decoding.unwrap().fill_value.is_defined());
}

#[test]
fn data_types_are_spelled_in_three_ways() {
    for (data_type, size) in [
        (r#""i1""#, 1),
        (r#""bool""#, 1),
        (r#""<u8""#, 8),
        (r#""int64""#, 8),
        (r#""r24""#, 3),
        (
            r#"{"extension": "https://example.org/complex", "type": "<c8", "fallback": null}"#,
            8,
        ),
        (
            r#"{"extension": "TODO: unicode array protocol URL", "type": "<U3", "fallback": null}"#,
            12,
        ),
        (
            r#"{"extension": "x", "type": [["a", "<i2"], ["b", "|u1"]], "fallback": null}"#,
            3,
        ),
    ] {
        let members = format!(r#", "data_type": {data_type}, "fill_value": null"#);
        for array in [protocol(&members), core(&members)] {
            let decoding = array.unwrap().decoding.unwrap();
            assert_eq!(decoding.data_type.item_size, size, "{data_type}");
        }
    }
}

#[test]
fn fill_values_may_be_bits() {
    for (data_type, fill_value, bytes) in [
        ("float32", r#""0x7fc00001""#, &[1, 0, 0xc0, 0x7f][..]),
        ("float32", r#""+Infinity""#, &[0, 0, 0x80, 0x7f]),
        ("float32", r#""-Infinity""#, &[0, 0, 0x80, 0xff]),
        ("float32", r#""NaN""#, &[0, 0, 0xc0, 0x7f]),
        ("uint16", r#""0b0000000111111111""#, &[0xff, 1]),
        ("int16", "-2", &[0xfe, 0xff]),
        ("r24", r#""0x010203""#, &[1, 2, 3]),
        ("<c8", "[0.0, 0.0]", &[0; 8]),
        ("|S4", r#""YWI=""#, b"ab\0\0"),
        ("<M8[ns]", "0", &[0; 8]),
        ("int8", "null", &[0]),
    ] {
        let members = format!(r#", "data_type": "{data_type}", "fill_value": {fill_value}"#);
        let decoding = core(&members).unwrap().decoding.unwrap();
        assert_eq!(decoding.fill_value.bytes(), bytes, "{members}");
        assert_eq!(decoding.fill_value.is_defined(), fill_value != "null");
    }
}

#[test]
fn filters_hide_in_the_attributes() {
    let array = protocol(r#", "attributes": {"filters": [{"id": "shuffle"}, {"id": "nosuch"}]}"#);
    let array = array.unwrap();
    assert_eq!(array.codecs, ["shuffle", "nosuch"]);
    let error = array.decoding.unwrap_err().to_string();
    assert!(
        error.contains("attributes.filters[1]: unsupported filter `nosuch`"),
        "{error}"
    );
    let objects = r#", "attributes": {"filters": [{"id": "pickle"}]}, "fill_value": null,
        "data_type": {"extension": "TODO: object array protocol URL", "type": "|O"}"#;
    let error = protocol(objects).unwrap().decoding.unwrap_err().to_string();
    assert!(error.contains("`|O of pickle"), "{error}");
    for attributes in [
        r#"{"filters": ["U", "B"]}"#,
        r#"{"filters": 3}"#,
        r#"{"filters": null}"#,
    ] {
        let members = format!(r#", "attributes": {attributes}"#);
        assert_eq!(
            pipeline(protocol(&members)),
            format!("[{BYTES}]"),
            "{attributes}"
        );
    }
    let members = r#", "attributes": {"filters": [{"id": "delta"}]}"#;
    assert_eq!(
        pipeline(core(members)),
        format!("[{BYTES}]"),
        "an attribute like any other"
    );
}

#[test]
fn a_sharding_transformer_is_the_outermost_codec() {
    let transformer = |uri: &str, counts: &str| {
        format!(
            r#"{{"extension": "https://purl.org/zarr/spec/{uri}", "type": "indexed",
                 "configuration": {{"chunks_per_shard": {counts}}}}}"#
        )
    };
    for uri in [
        "storage_transformers/sharding/1.0",
        "extensions/storage_transformers/sharding/1.0",
        "extensions/storage-transformers/sharding/1.0",
    ] {
        for (counts, shape) in [("[2, 3]", [8, 9]), ("[2]", [8, 3]), ("[2, 1, 1]", [8, 3])] {
            let members = format!(
                r#", "chunk_memory_layout": "F", "storage_transformers": [{}]"#,
                transformer(uri, counts)
            );
            let array = core(&members).unwrap();
            assert_eq!(array.chunks.longest()[..], shape);
            assert_eq!(array.inner_chunk_shape().unwrap()[..], [4, 3]);
            assert_eq!(
                pipeline(Ok(array)),
                format!(
                    r#"[{{"name":"sharding_indexed","configuration":{{"chunk_shape":[4,3],"codecs":[{{"name":"transpose","configuration":{{"order":[1,0]}}}},{BYTES}],"index_codecs":[{BYTES}],"index_location":"end"}}}}]"#
                )
            );
        }
    }
    let scalar = r#"{"shape": [], "data_type": "|u1", "fill_value": 0,
        "chunk_grid": {"type": "regular", "chunk_shape": []}, "storage_transformers": ["#
        .to_owned()
        + &transformer("storage_transformers/sharding/1.0", "[1]")
        + "]}";
    let array = parse_array(scalar.as_bytes(), Generation::Protocol).unwrap();
    assert!(array.decoding.is_ok(), "{:?}", array.decoding);
    let sharding = transformer("storage_transformers/sharding/1.0", "[2, 2]");
    let twice = core(&format!(
        r#", "storage_transformers": [{sharding}, {sharding}]"#
    ))
    .unwrap();
    assert_eq!(twice.chunks.longest()[..], [16, 12]);
    assert_eq!(twice.codecs, ["sharding_indexed(sharding_indexed())"]);
    for (transformer, message) in [
        (
            transformer("storage_transformers/other/1.0", "[1]"),
            "unsupported storage transformer",
        ),
        (
            transformer("storage_transformers/sharding/1.0", "[0, 1]"),
            "storage_transformers[0].configuration.chunks_per_shard: found [0, 1]",
        ),
        (
            transformer("storage_transformers/sharding/1.0", "[1, 1, 2]"),
            "expected 2 counts",
        ),
        (
            transformer(
                "storage_transformers/sharding/1.0",
                "[9223372036854775808, 1]",
            ),
            "the length of a shard",
        ),
        (
            sharding.replace("indexed", "listed"),
            "`sharding of type listed`",
        ),
    ] {
        let members = format!(r#", "storage_transformers": [{transformer}]"#);
        let error = core(&members).unwrap_err().to_string();
        assert!(error.contains(message), "{members}: {error}");
    }
}

#[test]
fn what_cannot_be_decoded_is_still_listed() {
    for (array, message) in [
        (
            protocol(r#", "chunk_grid": {"type": "hexagonal"}"#),
            "chunk_grid: unsupported chunk grid `hexagonal`",
        ),
        (
            protocol(r#", "chunk_memory_layout": {"type": "curve"}"#),
            "chunk_memory_layout: unsupported memory layout",
        ),
        (
            protocol(r#", "chunk_memory_layout": "X""#),
            "chunk_memory_layout: found \"X\"",
        ),
        (
            protocol(r#", "compressor": {"codec": "https://example.org/none"}"#),
            "compressor: unsupported compressor `https://example.org/none`",
        ),
        (
            core(r#", "codecs": [{"type": "x/codecs/gzip/1.0"}, {"type": "x/codecs/endian/1.0"}]"#),
            "codecs[1]: found `endian` where the chunk is bytes already",
        ),
        (
            core(r#", "data_type": "int33""#),
            "data_type: unsupported data type `int33`",
        ),
        (
            core(r#", "fill_value": "0x00""#),
            "fill_value: found \"0x00\"",
        ),
    ] {
        let error = array.unwrap().decoding.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn what_must_be_understood_and_is_not_is_refused() {
    for (array, message) in [
        (
            protocol(r#", "codecs": []"#),
            "codecs: unsupported extension `codecs`",
        ),
        (
            core(r#", "compressor": {}"#),
            "unsupported extension `compressor`",
        ),
        (
            core(r#", "dimension_separator": "/""#),
            "unsupported extension",
        ),
        (
            core(r#", "extensions": [{"extension": "https://example.org/x"}]"#),
            "extensions[0]: unsupported extension `https://example.org/x`",
        ),
        (
            core(r#", "shape": [7]"#),
            "chunk_grid.chunk_shape: found 2 chunk lengths",
        ),
        (core(r#", "chunk_grid": 5"#), "chunk_grid: found 5"),
        (
            core(r#", "data_type": {"extension": "x"}"#),
            "data_type.type: missing",
        ),
        (core(r#", "codecs": [{}]"#), "codecs[0].type: missing"),
        (core(r#", "attributes": 3"#), "attributes: found 3"),
    ] {
        let error = array.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let ignored = r#", "extensions": [{"extension": "x", "must_understand": false}]"#;
    assert!(core(ignored).is_ok());
    assert!(parse_group(br#"{"attributes": {"a": 1}, "extensions": []}"#).is_ok());
    assert!(parse_group(br#"{"attributes": {}, "shape": [1]}"#).is_err());
}

#[test]
fn entry_documents_tell_the_layout() {
    let entry = |text: &str| parse_entry(text.as_bytes());
    for (text, is_flat, array) in [
        (
            r#"{"extensions": [], "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0",
                "metadata_key_suffix": ".json", "zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0"}"#,
            false,
            "meta/root/a.array.json",
        ),
        (
            r#"{"zarr_format": "https://purl.org/zarr/spec/core/3.0", "extensions": [],
                "metadata_encoding": {"type": "json", "metadata_key_suffix": ".json"}}"#,
            true,
            "meta/a.array.json",
        ),
        (
            r#"{"zarr_format": "http://purl.org/zarr/spec/protocol/core/3.0"}"#,
            false,
            "meta/root/a.array",
        ),
    ] {
        let layout = entry(text).unwrap().unwrap();
        assert_eq!(layout.is_flat(), is_flat);
        assert_eq!(layout.array_document(b"a"), array.as_bytes());
    }
    assert_eq!(entry(r#"{"zarr_format": 3}"#), Ok(None));
    assert_eq!(entry("{}"), Ok(None));
    let version = r#""zarr_format": "https://purl.org/zarr/spec/core/3.0""#;
    for (text, message) in [
        (
            r#"{"zarr_format": "https://purl.org/zarr/spec/core/4.0"}"#.to_owned(),
            "zarr_format: found",
        ),
        (
            r#"{"zarr_format": "3"}"#.to_owned(),
            "zarr_format: found \"3\"",
        ),
        (
            format!(r#"{{{version}, "metadata_encoding": {{"type": "cbor"}}}}"#),
            "metadata_encoding: unsupported metadata encoding `cbor`",
        ),
        (
            format!(
                r#"{{{version}, "extensions": [{{"extension": "x", "must_understand": true}}]}}"#
            ),
            "extensions[0]: unsupported extension `x`",
        ),
        (
            format!(r#"{{{version}, "metadata_key_suffix": "/../x"}}"#),
            "metadata_key_suffix: found",
        ),
    ] {
        let error = entry(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}
