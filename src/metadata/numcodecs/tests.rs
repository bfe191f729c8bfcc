//! Filters and compressors of v2, and their v3 codec lists.

use super::super::v2::{self, MemoryOrder};
use super::*;

/// The codec list of an array of rank 2.
fn pipeline(dtype: &str, codecs: &str, order: MemoryOrder) -> Result<String, FormatError> {
    let dtype: Box<RawValue> = serde_json::from_str(&format!("\"{dtype}\"")).unwrap();
    let codecs: Box<RawValue> = serde_json::from_str(codecs).unwrap();
    let specs = v2::filters(&codecs, "filters")?;
    let (data_type, byte_order) = v2::data_type(&dtype, &specs)?;
    v2::pipeline(&data_type, byte_order, &specs, order, 2).map(|mut pipeline| pipeline.text())
}

const LITTLE: &str = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
const BIG: &str = r#"{"name":"bytes","configuration":{"endian":"big"}}"#;
const PLAIN: &str = r#"{"name":"bytes"}"#;

#[test]
fn every_codec_has_its_name_and_place() {
    for (dtype, codecs, expected) in [
        ("<i4", "[]", LITTLE.to_owned()),
        (">f8", "[]", BIG.to_owned()),
        ("|u1", "[]", PLAIN.to_owned()),
        (
            "<i4",
            r#"[{"id":"delta","dtype":"<i4","astype":">i2"}]"#,
            r#"{"name":"numcodecs.delta","configuration":{"dtype":"<i4","astype":">i2"}},"#.to_owned()
                + BIG,
        ),
        (
            ">i4",
            r#"[{"id":"delta","dtype":">i4"},{"id":"zlib","level":1}]"#,
            r#"{"name":"numcodecs.delta","configuration":{"dtype":">i4"}},"#.to_owned()
                + BIG
                + r#",{"name":"numcodecs.zlib","configuration":{"level":1}}"#,
        ),
        (
            "<f4",
            r#"[{"id":"astype","encode_dtype":"|i1","decode_dtype":"<f4"}]"#,
            r#"{"name":"numcodecs.astype","configuration":{"encode_dtype":"|i1","decode_dtype":"<f4"}},"#
                .to_owned()
                + PLAIN,
        ),
        (
            ">f4",
            r#"[{"id":"bitround","keepbits":10}]"#,
            r#"{"name":"numcodecs.bitround","configuration":{"keepbits":10}},"#.to_owned() + BIG,
        ),
        (
            "|b1",
            r#"[{"id":"packbits"}]"#,
            r#"{"name":"numcodecs.packbits","configuration":{}},"#.to_owned() + PLAIN,
        ),
        (
            "<U2",
            r#"[{"id":"categorize","labels":["a"],"dtype":"<U2","astype":"|u1"}]"#,
            r#"{"name":"numcodecs.categorize","configuration":{"labels":["a"],"dtype":"<U2","astype":"|u1"}},"#
                .to_owned()
                + PLAIN,
        ),
        (
            "<i4",
            r#"[{"id":"shuffle"},{"id":"shuffle","elementsize":8},{"id":"gzip","level":9}]"#,
            LITTLE.to_owned()
                + r#",{"name":"numcodecs.shuffle","configuration":{"elementsize":4}}"#
                + r#",{"name":"numcodecs.shuffle","configuration":{"elementsize":8}}"#
                + r#",{"name":"numcodecs.gzip","configuration":{"level":9}}"#,
        ),
        // NetCDF-C writes the numbers as text.
        (
            "<i4",
            r#"[{"id":"shuffle","elementsize":"8"},{"id":"zstd","level":"5"},{"id":"zlib","level":"5"}]"#,
            LITTLE.to_owned()
                + r#",{"name":"numcodecs.shuffle","configuration":{"elementsize":8}}"#
                + r#",{"name":"zstd","configuration":{"level":5,"checksum":false}}"#
                + r#",{"name":"numcodecs.zlib","configuration":{"level":5}}"#,
        ),
        (
            "<i4",
            r#"[{"id":"crc32c"},{"id":"crc32c","location":"start"},{"id":"zstd","level":-3,"checksum":true}]"#,
            LITTLE.to_owned()
                + r#",{"name":"crc32c"}"#
                + r#",{"name":"numcodecs.crc32c","configuration":{"location":"start"}}"#
                + r#",{"name":"zstd","configuration":{"level":-3,"checksum":true}}"#,
        ),
        (
            "<f4",
            r#"[{"id":"zfpy","mode":4,"tolerance":0.01},{"id":"zlib"}]"#,
            r#"{"name":"numcodecs.zfpy","configuration":{"mode":4,"tolerance":0.01}}"#.to_owned()
                + r#",{"name":"numcodecs.zlib","configuration":{"level":1}}"#,
        ),
        (
            "|O",
            r#"[{"id":"vlen-utf8"},{"id":"zlib"}]"#,
            r#"{"name":"vlen-utf8"},{"name":"numcodecs.zlib","configuration":{"level":1}}"#.to_owned(),
        ),
        (
            "|O",
            r#"[{"id":"vlen-array","dtype":"<i4"}]"#,
            r#"{"name":"numcodecs.vlen-array","configuration":{"dtype":"<i4"}}"#.to_owned(),
        ),
        ("|S3", r#"[{"id":"vlen-bytes"}]"#, r#"{"name":"vlen-bytes"}"#.to_owned()),
        ("|S0", r#"[{"id":"vlen-bytes"}]"#, r#"{"name":"vlen-bytes"}"#.to_owned()),
    ] {
        let found = pipeline(dtype, codecs, MemoryOrder::C).unwrap();
        assert_eq!(found, format!("[{expected}]"), "{dtype} {codecs}");
    }
}

#[test]
fn blosc_is_spelled_as_in_v3() {
    for (dtype, config, shuffle, type_size) in [
        ("<i4", r#""shuffle":1"#, "shuffle", 4),
        ("<i4", r#""shuffle":0"#, "noshuffle", 4),
        ("<i4", r#""shuffle":2"#, "bitshuffle", 4),
        ("<i4", r#""shuffle":-1"#, "shuffle", 4),
        ("|u1", r#""shuffle":-1"#, "bitshuffle", 1),
        ("|S300", r#""cname":"lz4""#, "shuffle", 1),
        (
            "<i4",
            r#""shuffle":"2","clevel":"5","blocksize":"0""#,
            "bitshuffle",
            4,
        ),
        // The words of GDAL.
        ("<i4", r#""shuffle":"NONE""#, "noshuffle", 4),
        ("<i4", r#""shuffle":"BYTE""#, "shuffle", 4),
        ("<i4", r#""shuffle":"BIT""#, "bitshuffle", 4),
    ] {
        let codecs = format!(r#"[{{"id":"blosc",{config}}}]"#);
        let found = pipeline(dtype, &codecs, MemoryOrder::C).unwrap();
        let expected = format!(
            r#"{{"name":"blosc","configuration":{{"cname":"lz4","clevel":5,"shuffle":"{shuffle}","typesize":{type_size},"blocksize":0}}}}]"#
        );
        assert!(found.ends_with(&expected), "{dtype} {config}: {found}");
    }
    // The output of a filter of bytes, and of an object codec, is single bytes.
    for (dtype, first) in [
        ("<i4", r#"{"id":"crc32"}"#),
        ("|O", r#"{"id":"vlen-utf8"}"#),
    ] {
        let found = pipeline(
            dtype,
            &format!(r#"[{first},{{"id":"blosc"}}]"#),
            MemoryOrder::C,
        );
        assert!(found.unwrap().contains("\"typesize\":1"), "{first}");
    }
}

#[test]
fn order_f_is_a_transpose_in_front() {
    let transpose = r#"[{"name":"transpose","configuration":{"order":[1,0]}},"#;
    for (dtype, codecs, is_transposed) in [
        ("<i4", "[]", true),
        ("<i4", r#"[{"id":"delta","dtype":"<i4"}]"#, true),
        ("|O", r#"[{"id":"vlen-utf8"}]"#, true),
        ("|O", r#"[{"id":"json2"}]"#, false),
        ("|O", r#"[{"id":"msgpack2"}]"#, false),
    ] {
        let found = pipeline(dtype, codecs, MemoryOrder::F).unwrap();
        assert_eq!(found.starts_with(transpose), is_transposed, "{found}");
        let found = pipeline(dtype, codecs, MemoryOrder::C).unwrap();
        assert!(!found.contains("transpose"), "{found}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    for (dtype, codecs, message) in [
        (
            "<i4",
            r#"[{"id":"n5_wrapper"}]"#,
            "filters[0]: unsupported filter `n5_wrapper`",
        ),
        (
            ">i4",
            r#"[{"id":"delta","dtype":"<i4"}]"#,
            "filters[0]: unsupported filter `delta of <i4 on elements of the other byte order`",
        ),
        (
            "<i4",
            r#"[{"id":"zlib"},{"id":"delta","dtype":"<i4"}]"#,
            "filters[1]: unsupported filter `delta after zlib`",
        ),
        (
            "<i4",
            r#"[{"id":"zlib"},{"id":"zfpy"}]"#,
            "filters[1]: unsupported filter `zfpy after zlib`",
        ),
        (
            "<i4",
            r#"[{"id":"delta","astype":"<q9"}]"#,
            "filters[0].astype: unsupported data type `<q9`",
        ),
        (
            "<i4",
            r#"[{"id":"blosc","shuffle":7}]"#,
            "filters[0].shuffle: found 7",
        ),
        (
            "<i4",
            r#"[{"id":"crc32c","location":"middle"}]"#,
            "filters[0].location: found",
        ),
        (
            "<i4",
            r#"[{"id":"json2"}]"#,
            "filters[0]: unsupported filter `json2`",
        ),
        ("|O", r#"[{"id":"zlib"}]"#, "`|O without an object codec`"),
        ("|O", r#"[{"id":"pickle"}]"#, "`|O of pickle"),
        ("|S0", r#"[{"id":"zlib"}]"#, "at least one byte"),
        ("<i4", r#"[{"level":1}]"#, "filters[0].id: missing"),
    ] {
        let error = pipeline(dtype, codecs, MemoryOrder::C)
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{dtype} {codecs}: {error}");
    }
}

#[test]
fn an_error_of_the_chain_is_put_where_the_document_has_it() {
    let codecs = vec![PipelineCodec {
        text: String::new(),
        place: "filters[3]".to_owned(),
        what: "filter",
    }];
    for (error, message) in [
        (
            FormatError::unsupported("[0]", "codec", "numcodecs.delta"),
            "filters[3]: unsupported filter `delta`",
        ),
        (
            FormatError::unsupported("[0]", "data type before this codec", "complex64"),
            "filters[3]: unsupported data type before this codec `complex64`",
        ),
        (
            FormatError::document("[0].configuration.astype", "wrong"),
            "filters[3].astype: wrong",
        ),
        (FormatError::document("[9]", "wrong"), "[9]: wrong"),
        (FormatError::document("", "wrong"), ": wrong"),
    ] {
        let found = at_its_source(error, &codecs).to_string();
        assert!(found.contains(message), "{found}");
    }
}
