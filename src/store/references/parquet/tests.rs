//! A set that fsspec wrote, with references of all kinds, and damaged and hostile files.

use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;
use crate::store::MemoryStore;
use crate::store::testing::{CallKind, Recording, wrap};

const METADATA: &[u8] = include_bytes!("../../../../tests/support/references/lazy/.zmetadata");
const FIRST: &[u8] = include_bytes!("../../../../tests/support/references/lazy/x/refs.0.parq");
const SECOND: &[u8] = include_bytes!("../../../../tests/support/references/lazy/x/refs.1.parq");
const SCALAR: &[u8] = include_bytes!("../../../../tests/support/references/lazy/s/refs.0.parq");

fn key(text: &str) -> Key {
    Key::parse(text.as_bytes()).unwrap()
}

fn store() -> Arc<MemoryStore> {
    let store = MemoryStore::new();
    for (name, bytes) in [
        ("set/.zmetadata", METADATA),
        ("set/x/refs.0.parq", FIRST),
        ("set/x/refs.1.parq", SECOND),
        ("set/s/refs.0.parq", SCALAR),
    ] {
        store.insert(key(name), bytes);
    }
    Arc::new(store)
}

fn set(store: Arc<MemoryStore>, most_bytes: u64) -> Result<ParquetSet, String> {
    let store: Arc<dyn Store> = store;
    set_in(&store, most_bytes)
}

fn set_in(store: &Arc<dyn Store>, most_bytes: u64) -> Result<ParquetSet, String> {
    let root = Prefix::parse(b"set").unwrap();
    let object = store.open(&key("set/.zmetadata")).unwrap().unwrap();
    ParquetSet::read(store, &root, (&object, &Progress::default()), most_bytes)
}

fn found(set: &ParquetSet, name: &str) -> Result<Option<Found>, StoreError> {
    let meta = set.store.stat_root().unwrap();
    Ok(set.get(&key(name), &meta)?.map(|(found, ..)| found))
}

fn names(set: &ParquetSet, prefix: &str) -> Vec<String> {
    let prefix = Prefix::parse(prefix.as_bytes()).unwrap();
    let (mut names, mut after, mut examined) = (Vec::new(), Cursor::START, None);
    while let Some(name) = set.next(&prefix, &after, &mut examined).unwrap() {
        names.push(String::from_utf8(name.bytes).unwrap());
        after = name.cursor;
    }
    names
}

#[test]
fn references_of_all_kinds_are_found() {
    let set = set(store(), 8 << 20).unwrap();
    for (name, expected) in [
        ("x/0.0", Some(Found::At("data/a".into(), Some((10, 4))))),
        ("x/0.1", Some(Found::Inline(Bytes::from_static(b"abcd")))),
        ("x/0.2", None),
        ("x/1.0", Some(Found::At("data/b".into(), None))),
        ("x/1.2", Some(Found::At("data/a".into(), Some((0, 4))))),
        ("x/2.0", None),
        ("x/0/0", None),
        ("x/0", None),
        ("y/0.0", None),
        ("s/0", Some(Found::At("data/c".into(), Some((3, 1))))),
    ] {
        assert_eq!(found(&set, name).unwrap(), expected, "{name}");
    }
    let document = found(&set, ".zgroup").unwrap();
    let expected = Bytes::from_static(br#"{"zarr_format":2}"#);
    assert_eq!(document, Some(Found::Inline(expected)));
    assert_eq!(found(&set, ".zmetadata").unwrap(), None);
    assert_eq!(names(&set, ""), [".zgroup", "s", "x"]);
    assert_eq!(names(&set, "x"), [".zarray", "0.0", "0.1", "1.0", "1.2"]);
    assert_eq!(names(&set, "s"), [".zarray", "0"]);
    assert_eq!(names(&set, "y"), [""; 0]);
    let kept = set.kept.lock();
    let bytes: u64 = kept
        .by_key
        .iter()
        .map(|(_, (_, it))| it.memory_bytes())
        .sum();
    assert!(kept.bytes == bytes && kept.by_key.len() == 3);
}

#[test]
fn names_of_arrays_may_be_numbers_and_indices_take_any_value() {
    let metadata = r#"{"record_size": 4, "metadata": {
        "0/.zarray": {"shape": [4], "chunks": [1]},
        "g/0/1/.zarray": {"shape": [], "chunks": []},
        "8/.zarray": {"shape": [1, 1, 1, 1, 1, 1, 1, 70000], "chunks": [1, 1, 1, 1, 1, 1, 1, 1]},
        "17/.zarray": {"shape": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
                       "chunks": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}}}"#;
    let store = MemoryStore::new();
    for (name, bytes) in [
        ("set/.zmetadata", metadata.as_bytes()),
        ("set/0/refs.0.parq", FIRST),
        ("set/g/0/1/refs.0.parq", FIRST),
        ("set/8/refs.17499.parq", FIRST),
        ("set/17/refs.0.parq", FIRST),
    ] {
        store.insert(key(name), bytes);
    }
    let set = set(Arc::new(store), 8 << 20).unwrap();
    let first = Found::At("data/a".into(), Some((10, 4)));
    for (name, expected) in [
        ("0/0", Some(&first)),
        ("0/2", None),
        ("g/0/1/0", Some(&first)),
        ("8/0.0.0.0.0.0.0.69996", Some(&first)),
        ("17/0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0", Some(&first)),
        ("0/0/0", None),
        ("0/00", None),
        ("0", None),
    ] {
        assert_eq!(found(&set, name).unwrap().as_ref(), expected, "{name}");
    }
}

#[test]
fn a_missing_file_means_absent_chunks_and_a_damaged_one_is_an_error() {
    let store = store();
    store.remove(&key("set/x/refs.0.parq"));
    store.insert(key("set/x/refs.1.parq"), &FIRST[..FIRST.len() - 9]);
    let set = set(store, 8 << 20).unwrap();
    assert_eq!(found(&set, "x/0.0").unwrap(), None);
    let error = found(&set, "x/1.2").unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    let prefix = Prefix::parse(b"x").unwrap();
    let first = set.next(&prefix, &Cursor::START, &mut None);
    let first = first.unwrap().unwrap();
    assert!(set.next(&prefix, &first.cursor, &mut None).is_err());
}

#[test]
fn a_listing_examines_each_file_once() {
    let recording = Arc::default();
    let store = wrap::<Recording>(store(), &recording);
    let set = set_in(&store, 8 << 20).unwrap();
    for n_opened in [2, 0] {
        recording.clear();
        assert_eq!(names(&set, "x"), [".zarray", "0.0", "0.1", "1.0", "1.2"]);
        assert_eq!(recording.count(CallKind::Stat), 2);
        assert_eq!(recording.count(CallKind::Open), n_opened);
    }
}

#[test]
fn what_takes_too_much_memory_is_refused() {
    let set = set(store(), 64).unwrap_err();
    assert!(set.contains("too l"), "{set}");
    let read = records::read(&Bytes::from_static(FIRST), 4, 40).unwrap_err();
    assert!(read.contains("--cache-size"), "{read}");
    let read = records::read(&Bytes::from_static(FIRST), 1, 60).unwrap_err();
    assert!(read.contains("--cache-size"), "{read}");
    // Fewer rows are read than the file has, and no others are made up.
    let records = records::read(&Bytes::from_static(FIRST), 1, 1 << 20).unwrap();
    assert!(records.get(0).is_some() && records.get(1).is_none());
}

#[test]
fn damaged_files_give_errors_and_not_much_memory() {
    let is_bounded = |bytes: Vec<u8>| {
        let read = records::read(&Bytes::from(bytes), 4, 1 << 20);
        read.is_ok_and(|records| records.memory_bytes() < 2 << 20)
    };
    for len in 0..FIRST.len() {
        assert!(!is_bounded(FIRST[..len].to_vec()), "{len} bytes");
    }
    for at in 0..FIRST.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bytes = FIRST.to_vec();
            bytes[at] ^= flip;
            is_bounded(bytes);
        }
    }
}

/// The first file, with a footer by which its only row group has `n` rows.
fn with_rows(n: i64) -> Vec<u8> {
    let file = SerializedFileReader::new(Bytes::from_static(FIRST)).unwrap();
    let group = file.metadata().row_group(0).clone().into_builder();
    let group = group.set_num_rows(n).build().unwrap();
    let about = file.metadata().file_metadata().clone();
    let metadata = ParquetMetaData::new(about, vec![group]);
    let mut bytes = FIRST.to_vec();
    let footer = ParquetMetaDataWriter::new(&mut bytes, &metadata);
    footer.finish().unwrap();
    bytes
}

#[test]
fn missing_rows_are_no_absent_chunks() {
    let rows = |bytes: Vec<u8>| records::read(&bytes.into(), 6, 1 << 20);
    let records = rows(with_rows(4)).unwrap();
    assert!(records.get(3).is_some() && records.get(4).is_none());
    let error = rows(with_rows(6)).unwrap_err();
    assert!(error.contains("fewer values"), "{error}");
    // The number of rows of the file, as a field of Thrift before the list of row groups.
    let mut bytes = FIRST.to_vec();
    let at = bytes
        .windows(3)
        .rposition(|field| field == [0x16, 2 * 4, 0x19]);
    bytes[at.unwrap() + 1] = 2 * 6;
    let error = rows(bytes).unwrap_err();
    assert!(error.contains("fewer rows"), "{error}");
}

#[test]
fn copies_of_one_value_take_memory_for_each() {
    let schema = "message m { optional binary raw; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values = vec![ByteArray::from(vec![0; 100_000]); 20];
    let values = column
        .typed::<ByteArrayType>()
        .write_batch(&values, Some(&[1; 20]), None);
    assert_eq!(values.unwrap(), 20);
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    assert!(bytes.len() < 200_000, "{} bytes", bytes.len());
    let bytes = Bytes::from(bytes);
    assert!(records::read(&bytes, 20, 2 << 20).is_ok());
    let error = records::read(&bytes, 20, 1 << 20).unwrap_err();
    assert!(error.contains("--cache-size"), "{error}");
}

#[test]
fn grids_take_a_part_of_the_memory() {
    let array = |n: usize| {
        let list = vec!["1"; n].join(",");
        format!(r#"{{"shape": [{list}], "chunks": [{list}], "attributes": {{"a": [1, {{}}]}}}}"#)
    };
    let array = |n| RecordedArray::parse(&array(n));
    assert_eq!(array(64).unwrap().n_chunks, 1);
    assert!(array(65).unwrap_err().contains("64"));
    let arrays: Vec<_> = (0..2000)
        .map(|at| format!(r#""{at}/.zarray": "{{}}""#))
        .collect();
    let metadata = format!(
        r#"{{"record_size": 4, "metadata": {{{}}}}}"#,
        arrays.join(",")
    );
    let store = store();
    store.insert(key("set/.zmetadata"), metadata);
    let set = set(store, 8 << 20).unwrap();
    let taken = set.memory_bytes() - 3 * set.most_bytes;
    let documents = set.metadata.documents.memory_bytes();
    assert!(taken > documents + 2000 * 100, "{taken} {documents}");
}

#[test]
fn grids_that_are_not_understood_are_errors_of_their_arrays() {
    for (array, expected) in [
        (r#"{"shape": [4, 5], "chunks": [2, 0]}"#, "does not fit"),
        (r#"{"shape": [4, 5], "chunks": [2]}"#, "does not fit"),
        (r#"{"shape": [-4], "chunks": [2]}"#, "`shape`"),
        (
            r#"{"shape": [9223372036854775807, 9], "chunks": [1, 1]}"#,
            "too many chunks",
        ),
        (
            r#"{"shape": [4, 5], "chunks": [2, 2], "dimension_separator": "/"}"#,
            "dimension_separator",
        ),
    ] {
        let store = store();
        let metadata =
            format!(r#"{{"record_size": 4, "metadata": {{"x/.zarray": {array}, "n": NaN}}}}"#);
        store.insert(key("set/.zmetadata"), metadata);
        let set = set(store, 8 << 20).unwrap();
        let error = found(&set, "x/0.0").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let text = Bytes::from_static(b"NaN");
        assert_eq!(found(&set, "n").unwrap(), Some(Found::Inline(text)));
    }
    for metadata in [
        "{}",
        r#"{"record_size": 0, "metadata": {}}"#,
        r#"{"record_size": 1e3}"#,
    ] {
        let store = store();
        store.insert(key("set/.zmetadata"), metadata);
        assert!(set(store, 8 << 20).is_err(), "{metadata}");
    }
}
