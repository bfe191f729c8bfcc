//! Codec chains, valid and invalid.

mod filters;
mod registered;
mod variable;

use super::*;
use crate::codec::{IndexLocation, Transpose};

/// The chain of `codecs` for chunks of 4 x 6 elements.
fn parse(codecs: &str, data_type: &str) -> Result<CodecChain, FormatError> {
    let codecs: Box<RawValue> = serde_json::from_str(codecs).unwrap();
    let data_type: Box<RawValue> = serde_json::from_str(data_type).unwrap();
    chain(&list(&codecs)?, &DataType::parse_v3(&data_type)?, &[4, 6])
}

fn shard(members: &str) -> String {
    format!(
        r#"[{{"name": "sharding_indexed", "configuration": {{"chunk_shape": [2, 3],
            "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}],
            "index_codecs": [{{"name": "bytes", "configuration": {{"endian": "little"}}}}, "crc32c"],
            {members}}}}}]"#
    )
}

const LITTLE: &str = r#"{"name": "bytes", "configuration": {"endian": "little"}}"#;
const PAIR: &str = r#"{"name": "structured", "configuration": {"fields": [["a", "int32"]]}}"#;
const STRUCT: &str =
    r#"{"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int32"}]}}"#;

#[test]
fn byte_order_is_named_where_it_means_something() {
    use ByteOrder::{Big, Little};
    let big = r#"[{"name": "bytes", "configuration": {"endian": "big"}}]"#;
    for (codecs, data_type, endian) in [
        (big, r#""int32""#, Some(Big)),
        (
            r#"[{"name": "endian", "configuration": {"endian": "little"}}]"#,
            r#""int32""#,
            Some(Little),
        ),
        (big, r#""uint8""#, None),
        (r#"["bytes"]"#, r#""uint8""#, None),
        (
            r#"[{"name": "bytes", "configuration": null}]"#,
            r#""bool""#,
            None,
        ),
        (big, PAIR, Some(Big)),
        (r#"["bytes"]"#, PAIR, None),
        (big, STRUCT, Some(Big)),
        (r#"["gzip"]"#, r#""int32""#, Some(Little)),
        ("[]", r#""int32""#, Some(Little)),
        (r#"["gzip"]"#, r#""uint8""#, None),
    ] {
        let chain = parse(codecs, data_type).unwrap();
        assert_eq!(
            chain.array_to_bytes,
            ArrayToBytes::Bytes(BytesCodec { endian }),
            "{codecs}"
        );
    }
    for data_type in [r#""int32""#, STRUCT] {
        let error = parse(r#"["bytes"]"#, data_type).unwrap_err().to_string();
        assert_eq!(
            error,
            "[0].configuration.endian: missing, but required for a data type of several bytes"
        );
    }
}

#[test]
fn chains_keep_their_order() {
    let codecs = format!(
        r#"[{{"name": "transpose", "configuration": {{"order": [1, 0]}}}},
            {{"name": "transpose", "configuration": {{"order": "F"}}}},
            {{"name": "transpose", "configuration": {{"order": "C"}}}}, {LITTLE},
            {{"name": "blosc", "configuration": {{"shuffle": 1}}}}, "zstd", "gzip", "crc32c"]"#
    );
    let chain = parse(&codecs, r#""int16""#).unwrap();
    let transpose = |order: [u64; 2]| ArrayToArray::Transpose(Transpose::new(&order, 2).unwrap());
    assert_eq!(
        chain.array_to_array,
        [[1, 0], [1, 0], [0, 1]].map(transpose)
    );
    assert_eq!(
        chain.bytes_to_bytes,
        [
            BytesToBytes::Blosc(Err("cname")),
            BytesToBytes::ZSTD,
            BytesToBytes::Gzip {
                level: Err("level")
            },
            BytesToBytes::CRC32C
        ]
    );
}

#[test]
fn shards_see_the_axes_that_transposes_leave() {
    let codecs = shard(r#""chunk_shape": [3, 2], "index_location": "start""#);
    let codecs = codecs.replacen(
        '[',
        r#"[{"name": "transpose", "configuration": {"order": [1, 0]}},"#,
        1,
    );
    let chain = parse(&codecs, r#""int32""#).unwrap();
    let sharding = chain.sharding().unwrap();
    assert_eq!(sharding.chunks_per_shard[..], [2, 2]);
    assert_eq!(sharding.location, IndexLocation::Start);
    assert_eq!(sharding.index.n_slots(), 4);
    let end = parse(&shard(r#""index_location": null"#), r#""int32""#).unwrap();
    assert_eq!(end.sharding().unwrap().location, IndexLocation::End);
}

#[test]
fn names_show_what_is_inside_shards() {
    let codecs = shard(&format!(
        r#""codecs": {}"#,
        shard(r#""codecs": ["bytes", "zstd"]"#)
    ));
    let raw: Box<RawValue> = serde_json::from_str(&codecs).unwrap();
    assert_eq!(
        display(&list(&raw).unwrap()),
        ["sharding_indexed(sharding_indexed(bytes, zstd))"]
    );
}

#[test]
fn broken_chains_are_refused_with_their_place() {
    let place = "[0].configuration";
    for (codecs, message) in [
        (
            format!("[{LITTLE}, {LITTLE}]"),
            "[1]: found `bytes` where the chunk is bytes already".to_owned(),
        ),
        (
            format!(r#"["gzip", {LITTLE}]"#),
            "[1]: found `bytes` where".to_owned(),
        ),
        (
            format!(r#"[{LITTLE}, {{"name": "transpose", "configuration": {{"order": [0, 1]}}}}]"#),
            "[1]: found `transpose` where".to_owned(),
        ),
        (
            r#"["nosuch", "bytes"]"#.to_owned(),
            "[0]: unsupported codec `nosuch`".to_owned(),
        ),
        (
            r#"["bytes", "zfpy"]"#.to_owned(),
            "[1]: unsupported codec `zfpy`".to_owned(),
        ),
        (
            r#"[{"name": "bytes", "configuration": {"endian": "native"}}]"#.to_owned(),
            format!("{place}.endian: found \"native\""),
        ),
        (
            shard(r#""chunk_shape": [3, 4]"#),
            format!(
                "{place}.chunk_shape: found [3, 4], expected lengths that divide the shard's [4, 6]"
            ),
        ),
        (
            shard(r#""chunk_shape": [0, 3]"#),
            format!("{place}.chunk_shape: found [0, 3]"),
        ),
        (
            shard(r#""chunk_shape": [2]"#),
            format!("{place}.chunk_shape: found [2]"),
        ),
        (
            shard(r#""chunk_shape": [2, 3, 1]"#),
            format!("{place}.chunk_shape: found [2, 3, 1]"),
        ),
        (
            shard(r#""codecs": ["lz4"]"#),
            format!("{place}.codecs[0]: unsupported codec `lz4`"),
        ),
        (
            shard(r#""codecs": ["bytes"]"#),
            format!("{place}.codecs[0].configuration.endian: missing"),
        ),
        (
            shard(r#""index_codecs": ["bytes"]"#),
            format!("{place}.index_codecs[0].configuration.endian: missing"),
        ),
        (
            shard(&format!(r#""index_codecs": {}"#, shard(r#""x": 1"#))),
            format!("{place}.index_codecs[0].configuration: found shards in a shard index"),
        ),
        (
            shard(r#""index_location": "middle""#),
            format!("{place}.index_location: found \"middle\""),
        ),
    ] {
        let error = parse(&codecs, r#""int32""#).unwrap_err().to_string();
        assert!(error.contains(&message), "{codecs}: {error}");
    }
}

#[test]
fn orders_must_be_permutations() {
    for order in [
        "[0, 0]",
        "[0]",
        "[0, 1, 2]",
        "[1, 2]",
        "[-1, 0]",
        "[0.5, 1]",
        "\"K\"",
        "null",
    ] {
        let codecs = format!(
            r#"[{{"name": "transpose", "configuration": {{"order": {order}}}}}, {LITTLE}]"#
        );
        let error = parse(&codecs, r#""int32""#).unwrap_err().to_string();
        assert!(
            error.starts_with("[0].configuration.order"),
            "{order}: {error}"
        );
    }
}

#[test]
fn codecs_without_number_are_an_error_not_an_overflow() {
    let codecs = format!("[{LITTLE}{}]", r#", "crc32c""#.repeat(20_000));
    let error = parse(&codecs, r#""int32""#).unwrap_err().to_string();
    assert!(error.contains("the number of codecs"), "{error}");
}

#[test]
fn codecs_that_may_make_longer_bytes_are_few() {
    let conditional = |count: usize| {
        let codecs = vec![r#""gzip""#; count].join(", ");
        format!(r#"{{"name": "conditional", "configuration": {{"codecs": [{codecs}]}}}}"#)
    };
    for (codecs, count) in [
        (vec![r#""gzip""#.to_owned(); 8], 8),
        (vec![r#""gzip""#.to_owned(); 9], 9),
        (vec![conditional(4); 2], 8),
        (vec![conditional(4), conditional(5)], 9),
    ] {
        let parsed = parse(&format!("[{LITTLE}, {}]", codecs.join(", ")), r#""int32""#);
        match parsed {
            Ok(_) => assert_eq!(count, 8),
            Err(error) => {
                let problem = error.to_string();
                assert!(count == 9 && problem.contains("to bytes"), "{problem}");
            }
        }
    }
}

#[test]
fn deeply_nested_shards_are_an_error_not_an_overflow() {
    let open = r#"[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,1],"index_codecs":[],"codecs":"#;
    let codecs = format!("{}[]{}", open.repeat(2_000), "}}]".repeat(2_000));
    let error = parse(&codecs, r#""int32""#).unwrap_err().to_string();
    assert!(error.contains("levels deep"), "{error}");
    let raw: Box<RawValue> = serde_json::from_str(&codecs).unwrap();
    assert_eq!(display(&list(&raw).unwrap()).len(), 1);
}
