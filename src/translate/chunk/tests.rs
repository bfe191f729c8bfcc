//! The stored form of chunks, and the chunks that are refused.

use super::*;
use crate::translate::testing::{BYTES, GZIP, array, key};

fn decoded<'a>(array: &Arc<ChunkedArray>, key: &'a Key) -> DecodedChunk<'a> {
    DecodedChunk {
        key,
        array: Arc::clone(array),
        indices: &[1],
        has_ended: false,
        writes: WriteOptions::default(),
        max_bytes: 1 << 20,
    }
}

/// The reason of an error that refuses the written bytes.
fn reason<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Unacceptable { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn elements_are_encoded_for_the_store() {
    let key = key("a/c/1");
    let two = [7, 0, 0, 0, 0, 0, 0, 0];
    let plain = array("int32", "0", &[BYTES]);
    let chunk = decoded(&plain, &key);
    assert_eq!(chunk.encode(&two).unwrap(), Encoded::AsShown);
    assert_eq!(chunk.encode(&[0; 8]).unwrap(), Encoded::Erased);
    assert_eq!(chunk.decode(None).unwrap(), [0; 8]);
    let stores_empty = DecodedChunk {
        writes: WriteOptions {
            empty_chunks: true,
            ..WriteOptions::default()
        },
        ..chunk.clone()
    };
    assert_eq!(stores_empty.encode(&[0; 8]).unwrap(), Encoded::AsShown);

    let zipped = array("int32", "7", &[BYTES, GZIP]);
    let chunk = decoded(&zipped, &key);
    let Encoded::Bytes(stored) = chunk.encode(&two).unwrap() else {
        panic!("it is not encoded");
    };
    assert_ne!(stored, two);
    assert_eq!(chunk.decode(Some(&stored)).unwrap(), two);
    assert_eq!(chunk.decode(None).unwrap(), [7, 0, 0, 0, 7, 0, 0, 0]);
    assert!(matches!(chunk.decode(Some(&two)), Err(Error::Chunk { .. })));
}

#[test]
fn the_first_bytes_decide_whether_a_chunk_is_stored_as_it_is() {
    let key = key("a/c/1");
    let cases = [
        ("int32", "0", &[BYTES][..], &[1, 0][..], true),
        // All of it may be fill values.
        ("int32", "0", &[BYTES], &[0, 0], false),
        ("int32", "0", &[BYTES, GZIP], &[1, 0], false),
        // Each byte is checked.
        ("bool", "false", &[r#"{"name": "bytes"}"#], &[1], false),
    ];
    for (data_type, fill_value, codecs, head, expected) in cases {
        let array = array(data_type, fill_value, codecs);
        let found = decoded(&array, &key).is_shown_as_is(head).unwrap();
        assert_eq!(found, expected, "{data_type} {codecs:?} {head:?}");
    }
}

#[test]
fn elements_that_no_chunk_may_have_are_refused() {
    let key = key("a/c/1");
    let bools = array("bool", "false", &[r#"{"name": "bytes"}"#]);
    let chunk = decoded(&bools, &key);
    assert_eq!(chunk.encode(&[1, 0]).unwrap(), Encoded::AsShown);
    let found = reason(chunk.encode(&[1, 2]));
    assert_eq!(found, "byte 1 is neither 0 nor 1, so it is no boolean");

    let plain = array("int32", "0", &[BYTES]);
    let chunk = decoded(&plain, &key);
    let outside = DecodedChunk {
        indices: &[2],
        ..chunk.clone()
    };
    let ended = DecodedChunk {
        has_ended: true,
        ..chunk.clone()
    };
    for (chunk, expected) in [
        (outside, "has become smaller"),
        (ended, "no longer has a document"),
    ] {
        assert!(reason(chunk.encode(&[1; 8])).contains(expected));
        assert!(reason(chunk.is_shown_as_is(&[1; 8])).contains(expected));
    }
}

#[test]
fn values_that_a_codec_changes_are_stored_only_if_allowed() {
    let key = key("a/c/1");
    let rounds = r#"{"name": "numcodecs.bitround", "configuration": {"keepbits": 4}}"#;
    let array = array("float32", "0.0", &[rounds, BYTES]);
    let chunk = decoded(&array, &key);
    let exact: Vec<u8> = [0.5_f32, 2.0]
        .into_iter()
        .flat_map(f32::to_le_bytes)
        .collect();
    let inexact: Vec<u8> = [0.1_f32, 2.0]
        .into_iter()
        .flat_map(f32::to_le_bytes)
        .collect();
    assert_eq!(chunk.encode(&exact).unwrap(), Encoded::Bytes(exact));
    reason(chunk.encode(&inexact));
    let lossy = DecodedChunk {
        writes: WriteOptions {
            is_lossy: true,
            ..WriteOptions::default()
        },
        ..chunk.clone()
    };
    let Encoded::Rounded(stored) = lossy.encode(&inexact).unwrap() else {
        panic!("it is not rounded");
    };
    assert_ne!(stored, inexact);
    assert_eq!(stored[4..], inexact[4..]);
}

#[test]
fn encoded_bytes_are_decoded_before_they_are_saved_with_check() {
    let key = key("a/c/1");
    let zipped = array("int32", "0", &[BYTES, GZIP]);
    let Encoded::Bytes(stored) = decoded(&zipped, &key).encode(&[1; 8]).unwrap() else {
        panic!("it is not encoded");
    };
    let of = |is_of_array, is_checked, max_bytes, has_ended| {
        ChunkFile::Encoded(EncodedChunk {
            key: &key,
            is_of_array,
            has_ended,
            array: Some((Arc::clone(&zipped), [0].into_iter().collect())),
            is_checked,
            max_bytes,
        })
    };
    let plain = of(true, false, 1 << 20, false);
    let checked = of(true, true, 1 << 20, false);
    let by_name = of(false, false, 1 << 20, false);
    assert_eq!(checked.encode(&stored).unwrap(), Encoded::AsShown);
    assert_eq!(plain.encode(b"junk").unwrap(), Encoded::AsShown);
    assert_eq!(by_name.encode(b"").unwrap(), Encoded::AsShown);
    reason(checked.encode(b"junk"));
    let short = of(true, true, 7, false);
    assert!(reason(short.encode(&stored)).contains("--max-chunk"));
    assert!(reason(plain.encode(b"")).contains("is not empty"));
    let ended = of(true, false, 1 << 20, true);
    assert!(reason(ended.encode(b"junk")).contains("no longer has a document"));

    assert!(plain.is_shown_as_is(b"j").unwrap());
    assert!(!checked.is_shown_as_is(b"j").unwrap());
    assert!(!plain.is_shown_as_is(b"").unwrap(), "it is refused");
    assert!(by_name.is_shown_as_is(b"").unwrap());
    assert_eq!(plain.memory(10), 10);
    assert!(checked.memory(10) > 10 + 8);
    assert_eq!(plain.decode(Some(stored.clone())).unwrap(), stored);
}

fn earlier<'a>(
    (document, key): (&'a Key, &'a Key),
    array: &'a ChunkedArray,
    is_decoded: bool,
) -> EarlierChunk<'a> {
    EarlierChunk {
        document,
        key,
        indices: &[0],
        array,
        is_decoded,
        max_bytes: 1 << 20,
    }
}

#[test]
fn files_that_were_made_before_the_document_must_be_chunks() {
    let (document, key) = (key("a/zarr.json"), key("a/c/1"));
    let of = |array, is_decoded| earlier((&document, &key), array, is_decoded);
    let plain = array("int32", "0", &[BYTES]);
    assert!(of(&plain, true).is_chunk_by_len(8).unwrap());
    let found = reason(of(&plain, true).is_chunk_by_len(7));
    assert!(
        found.contains("a/c/1") && found.contains("it has 7 bytes, not 8"),
        "{found}"
    );
    // The keys view decodes the chunks that it checks.
    assert!(!of(&plain, false).is_chunk_by_len(8).unwrap());
    of(&plain, false).check(Ok(vec![1; 8])).unwrap();
    reason(of(&plain, false).check(Ok(vec![1; 7])));

    let bools = array("bool", "false", &[r#"{"name": "bytes"}"#]);
    assert!(!of(&bools, true).is_chunk_by_len(2).unwrap());
    of(&bools, true).check(Ok(vec![0, 1])).unwrap();
    assert!(reason(of(&bools, true).check(Ok(vec![0, 2]))).contains("no booleans"));
    let stale = of(&bools, true).check(Err(Error::Stale));
    assert!(
        matches!(stale, Err(Error::Stale)),
        "it says nothing of the file"
    );
}
