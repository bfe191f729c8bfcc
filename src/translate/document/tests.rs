//! Documents in the version in which they are stored.

use super::*;
use crate::translate::testing::{BYTES, GZIP, document, key, parse, presentation};

/// The reason of an error that refuses the written bytes.
fn reason<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Unacceptable { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// The stored document of an array with compressed chunks after `change` to the text that the chunks view shows.
fn written(change: impl Fn(&str) -> String) -> Result<String, Error> {
    written_over(
        &crate::translate::testing::document("int32", "0", &[BYTES, GZIP]),
        change,
    )
}

/// The document `stored` of an array after `change` to the text that the chunks view shows.
fn written_over(stored: &str, change: impl Fn(&str) -> String) -> Result<String, Error> {
    let key = key("a/zarr.json");
    let document = Document {
        key: &key,
        presentation: presentation(true),
    };
    let metadata = parse(stored.as_bytes());
    let shown = document.shown(stored.as_bytes(), &metadata)?;
    let array = DescribedArray {
        metadata: &metadata,
        stored: stored.as_bytes(),
        shown: &shown,
    };
    let shown = String::from_utf8(shown.clone()).unwrap();
    assert!(!shown.contains("gzip"), "{shown}");
    let new = document.of_array(array, change(&shown).as_bytes(), |text| Ok(parse(text)))?;
    Ok(String::from_utf8(new).unwrap())
}

#[test]
fn changes_are_carried_to_the_stored_document() {
    let new = written(|shown| shown.replace("[4]", "[6]")).unwrap();
    assert!(new.contains("[6]") && new.contains("gzip"), "{new}");
    let new = written(|shown| shown.replace("\"attributes\": {}", "\"attributes\": {\"a\": 1}"));
    let new = new.unwrap();
    assert!(new.contains("\"a\": 1") && new.contains("gzip"), "{new}");
}

/// The stored document of an array of four elements in chunks of these lengths.
fn rectilinear(lengths: &str) -> String {
    let grid = format!(
        r#"{{"name": "rectilinear", "configuration": {{"kind": "inline", "chunk_shapes": {lengths}}}}}"#
    );
    let regular = r#"{"name": "regular", "configuration": {"chunk_shape": [2]}}"#;
    let document = crate::translate::testing::document("int32", "0", &[BYTES, GZIP]);
    assert!(document.contains(regular), "{document}");
    document.replace(regular, &grid)
}

#[test]
fn lists_of_equal_lengths_grow_with_an_array_that_is_shown_with_a_regular_grid() {
    let new = written_over(&rectilinear("[[2, 2]]"), |shown| {
        assert!(shown.contains("regular"), "{shown}");
        shown.replace("\"shape\": [4]", "\"shape\": [7]")
    });
    let new = new.unwrap();
    assert!(
        new.contains("[[2, 2, [2, 2]]]") && new.contains("[7]"),
        "{new}"
    );
}

#[test]
fn a_list_may_grow_by_chunks_that_are_longer() {
    for (before, after, grows) in [
        ("[[1, 3]]", "[[1, 3, 9]]", true),
        ("[[1, 3]]", "[[1, 4, 9]]", false),
        ("[[1, 3]]", "[[1, 3]]", false),
    ] {
        let new = written_over(&rectilinear(before), |shown| {
            let longer = shown.replace("\"shape\": [4]", "\"shape\": [12]");
            longer.replace(before, after)
        });
        assert_eq!(new.is_ok(), grows, "{before} {after}: {new:?}");
    }
}

#[test]
fn members_that_would_be_shown_differently_are_refused_by_name() {
    let cases = [
        ("int32", "int16", "\"data_type\" cannot be changed"),
        ("\"fill_value\": 0", "\"fill_value\": 1", "\"fill_value\""),
        (
            "\"codecs\": [",
            "\"codecs\": [{\"name\": \"transpose\", \"configuration\": {\"order\": [0]}}, ",
            "in this view chunks are not encoded",
        ),
    ];
    for (from, to, expected) in cases {
        let found = reason(written(|shown| {
            assert!(shown.contains(from), "{shown}");
            shown.replace(from, to)
        }));
        assert!(found.contains(expected), "{from}: {found}");
    }
}

#[test]
fn a_new_array_must_be_shown_as_it_was_written() {
    let key = key("a/zarr.json");
    let plain = document("int32", "0", &[BYTES]);
    let zipped = document("int32", "0", &[BYTES, GZIP]);
    let check = |is_decoded, max_chunk_bytes, text: &str| {
        let document = Document {
            key: &key,
            presentation: Presentation {
                max_chunk_bytes,
                ..presentation(is_decoded)
            },
        };
        document.check_new_array(&parse(text.as_bytes()), text.as_bytes())
    };
    check(true, 8, &plain).unwrap();
    check(false, 8, &zipped).unwrap();
    let found = reason(check(true, 8, &zipped));
    assert!(
        found.contains("\"codecs\" is not what this view shows"),
        "{found}"
    );
    assert!(reason(check(true, 7, &plain)).contains("--max-chunk"));
    check(false, 7, &plain).unwrap();
}

#[test]
fn a_missing_separator_is_refused_if_chunk_keys_have_a_slash() {
    let key = key("a/.zarray");
    let text = br#"{"zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "<i4",
        "compressor": null, "fill_value": 0, "order": "C", "filters": null}"#;
    let mut metadata = v2::parse_array(text).unwrap();
    let document = Document {
        key: &key,
        presentation: presentation(false),
    };
    document.check_new_array(&metadata, text).unwrap();
    // The store has such chunks.
    metadata.chunk_keys.separator = b'/';
    let found = reason(document.check_new_array(&metadata, text));
    assert!(
        found.contains("\"dimension_separator\" is missing"),
        "{found}"
    );
}

#[test]
fn attributes_that_no_reader_can_parse_are_written_anew() {
    let key = key("a/.zattrs");
    let document = Document {
        key: &key,
        presentation: presentation(true),
    };
    let written = br#"{"b": 2}"#.to_vec();
    let of = |stored: &[u8]| {
        document
            .of_other((stored, b"{\"a\": 1}"), written.clone())
            .unwrap()
    };
    assert_eq!(of(b"no json"), written);
    let new = of(br#"{"a": 1, "kept": 3}"#);
    assert_eq!(parsed(&new), parsed(br#"{"kept": 3, "b": 2}"#));
    reason(document.check_object(b""));
    reason(document.check_object(b"[]"));
    document.check_object(b"{}").unwrap();
}

fn parsed(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).unwrap()
}
