//! Whole-array files: their names, the files that are left out, and the versions of chunks that
//! they show.

use std::fmt;
use std::sync::Mutex;

use glob::Pattern;

use super::*;
use crate::store::StoreError;
use crate::store::testing::{Call, Layer, Recording, wrap};

pub(super) fn arrays(files: &[FileFormat]) -> ViewOptions {
    ViewOptions {
        views: vec![ViewKind::Arrays],
        arrays: ArrayOptions {
            files: files.to_vec(),
            root_name: "store".to_owned(),
            ..ArrayOptions::default()
        },
        ..ViewOptions::default()
    }
}

pub(super) fn document(data_type: &str, shape: &[u64], chunks: &[u64]) -> Vec<u8> {
    let mut document = array(shape, chunks, &plain());
    document["data_type"] = data_type.into();
    if data_type != "uint8" {
        document["codecs"] = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    }
    text(&document)
}

pub(super) fn group() -> Vec<u8> {
    text(&json!({"zarr_format": 3, "node_type": "group"}))
}

fn at(fixture: &Fixture, path: &str) -> Arc<OpenFile> {
    let found = fixture.find(path).unwrap().unwrap();
    fixture.view.open(found.id).unwrap().unwrap().file
}

#[test]
fn an_array_is_a_file_for_each_format_that_can_hold_it() {
    let objects: [(&str, &[u8]); 6] = [
        ("zarr.json", &group()),
        ("a/zarr.json", &document("uint8", &[2, 3], &[2, 2])),
        ("a/c/0/0", b"abcd"),
        ("h/zarr.json", &document("float16", &[4, 4], &[4, 4])),
        ("g/s/zarr.json", &document("int64", &[], &[])),
        ("notes.txt", b"no node"),
    ];
    let options = arrays(&[FileFormat::Npy, FileFormat::Raw, FileFormat::Tif]);
    let fixture = Fixture::new(options, &objects);
    // A TIFF stack cannot hold float16, and a directory that is not a node has no files.
    let files = [
        "a.json", "a.npy", "a.raw", "a.tif", "g", "h.json", "h.npy", "h.raw",
    ];
    assert_eq!(fixture.list(""), files);
    assert_eq!(fixture.list("g"), ["s.json", "s.npy", "s.raw"]);
    assert_eq!(fixture.read("a.raw").unwrap(), b"ab\x07cd\x07");
    assert!(fixture.read("a.npy").unwrap().ends_with(b"ab\x07cd\x07"));
    let left_out = &fixture.json("h.json")["left_out"];
    let reason = left_out["tif"].as_str().unwrap();
    assert!(reason.contains("float16"), "{reason}");
    for gone in [
        "a",
        "a/zarr.json",
        "h.tif",
        "zarr.json",
        "notes.txt",
        "a.nii",
    ] {
        assert!(fixture.find(gone).unwrap().is_none(), "{gone}");
    }
}

#[test]
fn a_root_array_takes_the_name_of_the_store() {
    let document = document("uint8", &[2], &[2]);
    let fixture = Fixture::new(arrays(&[FileFormat::Raw]), &[("zarr.json", &document)]);
    assert_eq!(fixture.list(""), ["store.json", "store.raw"]);
    assert_eq!(fixture.read("store.raw").unwrap(), b"\x07\x07");
}

#[test]
fn a_file_whose_name_is_taken_gets_a_tilde() {
    let whole = document("uint8", &[2, 2], &[2, 2]);
    let objects: [(&str, &[u8]); 5] = [
        ("x/zarr.json", &whole),
        ("x.ome/zarr.json", &whole),
        ("x.ome/c/0/0", b"abcd"),
        ("x.raw/zarr.json", &group()),
        ("x.raw~/zarr.json", &group()),
    ];
    let formats = [FileFormat::Raw, FileFormat::Tif, FileFormat::OmeTif];
    let fixture = Fixture::new(arrays(&formats), &objects);
    let names = fixture.list("");
    let expected = [
        "x.json",
        "x.ome.json",
        "x.ome.ome.tif",
        "x.ome.raw",
        "x.ome.tif",
        "x.ome.tif~",
        "x.raw",
        "x.raw~",
        "x.raw~~",
        "x.tif",
    ];
    assert_eq!(names, expected);
    assert_eq!(fixture.list("x.raw"), [""; 0]);
    assert_eq!(fixture.read("x.raw~~").unwrap(), [7; 4]);
    // `x.ome.tif` is the array with the longer name, in the format with the shorter extension.
    assert!(fixture.read("x.ome.tif").unwrap().ends_with(b"abcd"));
    assert!(fixture.read("x.ome.tif~").unwrap().ends_with(&[7; 4]));
}

#[test]
fn no_header_names_the_data_of_another_array() {
    let whole = document("uint8", &[2, 2, 2], &[2, 2, 2]);
    let objects: [(&str, &[u8]); 3] = [
        ("x/zarr.json", &whole),
        ("y/zarr.json", &whole),
        ("y.raw/zarr.json", &group()),
    ];
    let formats = [
        FileFormat::Raw,
        FileFormat::Nhdr,
        FileFormat::Mhd,
        FileFormat::Envi,
    ];
    let fixture = Fixture::new(arrays(&formats), &objects);
    let headers = ["nhdr", "mhd", "raw.hdr"];
    for extension in headers {
        assert!(fixture.find(&format!("x@0.{extension}")).unwrap().is_some());
        assert!(fixture.find(&format!("y.{extension}")).unwrap().is_none());
    }
    assert!(fixture.read("x@0.mhd").unwrap().ends_with(b" x@0.raw\n"));
    assert_eq!(fixture.read("y.raw~").unwrap(), [7; 8]);
    let left_out = &fixture.json("y.json")["left_out"];
    assert_eq!(
        left_out["nhdr"],
        "name: `y.raw` is another file or directory"
    );

    // A directory that takes the name of the elements takes the headers away.
    assert!(fixture.read("x.mhd").unwrap().ends_with(b" x.raw\n"));
    assert_eq!(fixture.json("x.json")["files"]["nhdr"], "x.nhdr");
    fixture.put("x.raw/zarr.json", &group());
    for extension in headers {
        assert!(fixture.find(&format!("x.{extension}")).unwrap().is_none());
    }
    assert!(fixture.json("x.json")["left_out"]["nhdr"].is_string());

    fixture.put("x@0/zarr.json", &whole);
    assert_eq!(fixture.read("x@0.raw").unwrap(), [7; 8]);
    assert_eq!(fixture.read("x@0.raw~").unwrap(), [7; 4]);
    for extension in headers {
        assert!(fixture.find(&format!("x@0.{extension}")).unwrap().is_some());
        assert!(
            fixture
                .find(&format!("x@0.{extension}~"))
                .unwrap()
                .is_none()
        );
    }
}

#[test]
fn a_part_of_an_array_opens_by_name() {
    let mut named = array(&[3, 4], &[2, 3], &plain());
    named["dimension_names"] = json!(["t", "x"]);
    let objects: [(&str, &[u8]); 5] = [
        ("a/zarr.json", &text(&named)),
        ("a/c/0/0", b"abcdef"),
        ("a/c/0/1", b"g__h__"),
        ("a/c/1/0", b"ijk___"),
        ("a/c/1/1", b"l_____"),
    ];
    let fixture = Fixture::new(arrays(&[FileFormat::Raw]), &objects);
    let parts: [(&str, &[u8]); 6] = [
        ("a@0.raw", b"abcg"),
        ("a@-1.raw", b"ijkl"),
        ("a@:,1.raw", b"bej"),
        ("a@1:,2:.raw", b"fhkl"),
        ("a@x=0,t=1.raw", b"d"),
        ("a@:.raw", b"abcgdefhijkl"),
    ];
    for (name, bytes) in parts {
        assert_eq!(fixture.read(name).unwrap(), bytes, "{name}");
    }
    for none in [
        "a@3.raw",
        "a@.raw",
        "a@y=1.raw",
        "b@0.raw",
        "a@0.npy",
        "a@0.json",
    ] {
        assert!(fixture.find(none).unwrap().is_none(), "{none}");
    }
    assert_eq!(fixture.list(""), ["a.json", "a.raw"]);
}

#[test]
fn references_of_nczarr_name_dimensions() {
    let document = |more: serde_json::Value| {
        let mut document = json!({
            "zarr_format": 2, "shape": [2, 3], "chunks": [2, 3], "dtype": "|u1", "compressor": null,
            "fill_value": 0, "order": "C", "filters": null,
        });
        document["_NCZARR_ARRAY"] = more;
        text(&document)
    };
    let new =
        br#"{"_nczarr_array": {"dimension_references": ["/t", "/g/x"], "storage": "chunked"}}"#;
    let objects: [(&str, &[u8]); 5] = [
        ("a/.zarray", &document(json!({"dimrefs": ["/t", "/g/x"]}))),
        ("a/0.0", b"abcdef"),
        ("b/.zarray", &document(json!({}))),
        ("b/.zattrs", new),
        ("b/0.0", b"abcdef"),
    ];
    let fixture = Fixture::new(arrays(&[FileFormat::Raw]), &objects);
    for name in ["a@x=1.raw", "b@x=1.raw"] {
        assert_eq!(fixture.read(name).unwrap(), b"be", "{name}");
    }
}

#[test]
fn only_chosen_arrays_are_shown() {
    let whole = document("uint8", &[1], &[1]);
    let objects: [(&str, &[u8]); 4] = [
        ("a/zarr.json", &whole),
        ("g/a/zarr.json", &whole),
        ("g/b/zarr.json", &whole),
        ("g/h/b/zarr.json", &whole),
    ];
    let listed = |patterns: &[&str]| {
        let mut options = arrays(&[FileFormat::Raw]);
        let patterns = patterns.iter().map(|text| Pattern::new(text).unwrap());
        options.arrays.only = patterns.collect();
        let fixture = Fixture::new(options, &objects);
        let raw = |path: &str| {
            let names = fixture.list(path).into_iter();
            names
                .filter(|name| name.ends_with("raw"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        [raw(""), raw("g"), raw("g/h")]
    };
    assert_eq!(listed(&[]), ["a.raw", "a.raw b.raw", "b.raw"]);
    assert_eq!(listed(&["b"]), ["", "b.raw", "b.raw"]);
    assert_eq!(listed(&["g/*"]), ["", "a.raw b.raw", ""]);
    assert_eq!(
        listed(&["g/**/b", "[a]"]),
        ["a.raw", "a.raw b.raw", "b.raw"]
    );
}

#[test]
fn an_array_that_cannot_be_decoded_has_a_note_and_no_file() {
    let mut odd = array(&[2], &[2], &plain());
    odd["codecs"] = json!([{"name": "nonesuch"}]);
    let objects: [(&str, &[u8]); 2] = [("a/zarr.json", &text(&odd)), ("b/.zarray", b"{")];
    let fixture = Fixture::new(arrays(&[FileFormat::Raw]), &objects);
    assert_eq!(fixture.list(""), ["a.ERROR.txt", "b.ERROR.txt"]);
    let note = String::from_utf8(fixture.read("a.ERROR.txt").unwrap()).unwrap();
    assert!(note.contains("nonesuch"), "{note}");
    assert!(fixture.find("a.raw").unwrap().is_none());
}

#[test]
fn strings_are_lines() {
    let mut strings = array(&[3], &[2], &json!([{"name": "vlen-utf8"}]));
    strings["data_type"] = "string".into();
    strings["fill_value"] = "none".into();
    let chunk = b"\x02\0\0\0\x02\0\0\0\"a\x02\0\0\0\xc3\xa9";
    let objects: [(&str, &[u8]); 2] = [("s/zarr.json", &text(&strings)), ("s/c/0", chunk)];
    let fixture = Fixture::new(arrays(&[FileFormat::Raw, FileFormat::Jsonl]), &objects);
    assert_eq!(fixture.list(""), ["s.json", "s.jsonl"]);
    let lines = "\"\\\"a\"\n\"é\"\n\"none\"\n";
    assert_eq!(fixture.read("s.jsonl").unwrap(), lines.as_bytes());
    fixture.put("s/c/1", b"\x02\0\0\0\x01\0\0\0x\0\0\0\0");
    assert_eq!(
        fixture.read("s.jsonl").unwrap(),
        "\"\\\"a\"\n\"é\"\n\"x\"\n".as_bytes()
    );
    assert_eq!(
        fixture.json("s.json")["left_out"]["raw"]
            .as_str()
            .map(str::is_empty),
        Some(false)
    );
}

#[test]
fn lines_that_were_too_long_are_listed_once_they_are_short() {
    let strings = |n: u64| {
        let mut strings = array(&[n], &[n], &json!([{"name": "vlen-utf8"}]));
        strings["data_type"] = "string".into();
        strings["fill_value"] = "none".into();
        text(&strings)
    };
    let objects: [(&str, &[u8]); 2] = [
        ("long/zarr.json", &strings(1 << 25)),
        ("number/zarr.json", &document("uint8", &[3], &[3])),
    ];
    let fixture = Fixture::new(arrays(&[FileFormat::Jsonl]), &objects);
    for name in ["long", "number"] {
        assert!(fixture.find(&format!("{name}.jsonl")).unwrap().is_none());
    }
    assert_eq!(fixture.list(""), ["long.json", "number.json"]);
    for name in ["long", "number"] {
        fixture.put(&format!("{name}/zarr.json"), &strings(3));
    }
    let names = ["long.json", "long.jsonl", "number.json", "number.jsonl"];
    assert_eq!(fixture.list(""), names);
}

#[test]
fn a_handle_shows_one_version_or_is_stale() {
    let objects: [(&str, &[u8]); 4] = [
        ("a/zarr.json", &document("uint8", &[6], &[2])),
        ("a/c/0", b"ab"),
        ("a/c/1", b"cd"),
        ("a/c/2", b"ef"),
    ];
    let fixture = Fixture::new(arrays(&[FileFormat::Raw]), &objects);
    let put_now = |key: &str, bytes: &[u8]| {
        let key = Key::parse(key.as_bytes()).unwrap();
        fixture
            .store
            .insert_at(key, bytes.to_vec(), SystemTime::now());
    };
    let first = at(&fixture, "a.raw");
    assert_eq!(read_at(&first, 0, 2).unwrap(), b"ab");
    // The object that was read is unchanged, so the handle goes on with the current file.
    put_now("a/c/1", b"CD");
    assert_eq!(read_at(&first, 0, 4).unwrap(), b"abCD");
    // An object that was read has changed, so this handle can show no newer bytes.
    put_now("a/c/0", b"AB");
    put_now("a/c/2", b"EF");
    assert!(matches!(read_at(&first, 4, 2), Err(Error::Stale)));
    assert!(matches!(read_at(&first, 2, 4), Err(Error::Stale)));
    let second = at(&fixture, "a.raw");
    assert_eq!(read_at(&second, 0, 6).unwrap(), b"ABCDEF");
    // The removal of a chunk is another version, too.
    let third = at(&fixture, "a.raw");
    assert_eq!(read_at(&third, 0, 2).unwrap(), b"AB");
    fixture.store.remove(&Key::parse(b"a/c/0").unwrap());
    let fourth = at(&fixture, "a.raw");
    assert_eq!(read_at(&fourth, 0, 6).unwrap(), b"\x07\x07CDEF");
}

#[test]
fn a_handle_mixes_no_versions_if_the_clock_of_the_store_is_ahead() {
    let objects: [(&str, &[u8]); 4] = [
        ("a/zarr.json", &document("uint8", &[6], &[2])),
        ("a/c/0", b"ab"),
        ("a/c/1", b"cd"),
        ("a/c/2", b"ef"),
    ];
    let fixture = Fixture::new(arrays(&[FileFormat::Raw]), &objects);
    let put_ahead = |key: &str, bytes: &[u8]| {
        let (key, now) = (Key::parse(key.as_bytes()).unwrap(), SystemTime::now());
        let ahead = now + Duration::from_secs(60);
        fixture.store.insert_at(key, bytes.to_vec(), ahead);
    };
    let file = at(&fixture, "a.raw");
    assert_eq!(read_at(&file, 0, 2).unwrap(), b"ab");
    put_ahead("a/c/1", b"CD");
    assert_eq!(read_at(&file, 2, 2).unwrap(), b"CD");
    assert_eq!(read_at(&file, 0, 4).unwrap(), b"abCD");
    put_ahead("a/c/0", b"AB");
    put_ahead("a/c/2", b"EF");
    assert!(matches!(read_at(&file, 4, 2), Err(Error::Stale)));
    assert_eq!(read_at(&at(&fixture, "a.raw"), 0, 6).unwrap(), b"ABCDEF");
}

/// Calls a function once, as soon as the first chunk was examined.
#[derive(Default)]
struct Meanwhile(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Layer for Meanwhile {
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = ask();
        if call.to_string() == "stat a/c/0"
            && let Some(act) = self.0.lock().unwrap().take()
        {
            act();
        }
        answer
    }
}

#[test]
fn handles_that_read_while_a_file_is_opened_may_show_an_older_version() {
    let objects: [(&str, &[u8]); 3] = [
        ("a/zarr.json", &document("uint8", &[4], &[2])),
        ("a/c/0", b"ab"),
        ("a/c/1", b"cd"),
    ];
    let meanwhile = Arc::new(Meanwhile::default());
    let options = arrays(&[FileFormat::Raw]);
    let fixture = Fixture::layered(options, &objects, |store| wrap(store, &meanwhile));
    let first = at(&fixture, "a.raw");
    assert_eq!(read_at(&first, 0, 2).unwrap(), b"ab");
    let (reader, store) = (Arc::clone(&first), Arc::clone(&fixture.store));
    let act = move || {
        assert_eq!(read_at(&reader, 2, 2).unwrap(), b"cd");
        store.insert(Key::parse(b"a/c/1").unwrap(), b"CD".to_vec());
    };
    *meanwhile.0.lock().unwrap() = Some(Box::new(act));
    let second = at(&fixture, "a.raw");
    assert!(meanwhile.0.lock().unwrap().is_none());
    assert_eq!(read_at(&second, 0, 4).unwrap(), b"abCD");
    drop(first);
}

#[test]
fn a_new_version_has_another_inode_while_handles_read_the_old_one() {
    let objects: [(&str, &[u8]); 2] = [
        ("a/zarr.json", &document("uint8", &[2], &[2])),
        ("a/c/0", b"ab"),
    ];
    let fixture = Fixture::new(arrays(&[FileFormat::Raw]), &objects);
    let open = || {
        let found = fixture.find("a.raw").unwrap().unwrap();
        let opened = fixture.view.open(found.id).unwrap().unwrap();
        let keeps_pages = opened.file.keeps_pages();
        opened.file.pages_dropped();
        read_at(&opened.file, 0, 2).unwrap();
        (opened, keeps_pages)
    };
    let (first, keeps_pages) = open();
    assert!(!keeps_pages, "the kernel may hold pages of any version");
    let number = first.attributes.fingerprint;
    let (second, keeps_pages) = open();
    assert_eq!((second.attributes.fingerprint, keeps_pages), (number, true));
    drop(second);
    // The first handle goes on with its snapshot.
    fixture.put("a/c/0", b"AB");
    let (third, keeps_pages) = open();
    assert!(third.attributes.fingerprint != number && !keeps_pages);
    let number = third.attributes.fingerprint;
    // No other snapshot is open: the file keeps its inode number, and the kernel drops its pages.
    drop((first, third));
    fixture.put("a/c/0", b"Ab");
    let (fourth, keeps_pages) = open();
    assert_eq!(
        (fourth.attributes.fingerprint, keeps_pages),
        (number, false)
    );
    fixture.put("a/zarr.json", &document("uint8", &[3], &[2]));
    let (fifth, _) = open();
    assert_eq!(fifth.attributes.size, 3);
    assert_ne!(fifth.attributes.fingerprint, number);
}

#[test]
fn sidecars_can_be_left_out() {
    let array = document("uint8", &[1], &[1]);
    let objects: [(&str, &[u8]); 4] = [
        ("zarr.json", &group()),
        ("t/zarr.json", &array),
        // A directory may have the name that a sidecar would have.
        ("u/zarr.json", &array),
        ("u.json/zarr.json", &group()),
    ];
    let mut options = arrays(&[FileFormat::Npy]);
    options.arrays.sidecars = false;
    let fixture = Fixture::new(options, &objects);
    assert_eq!(fixture.list(""), ["t.npy", "u.json", "u.npy"]);
    assert!(fixture.find("t.json").unwrap().is_none());
    assert!(fixture.find("u.json~").unwrap().is_none());
}

#[test]
fn a_listing_goes_on_with_all_files_of_the_next_array_when_one_was_removed() {
    let parts = ["zarr.json", "a/zarr.json", "b/zarr.json", "c/zarr.json"];
    let array = document("uint8", &[1], &[1]);
    let texts = [group(), array.clone(), array.clone(), array];
    let objects: Vec<(&str, &[u8])> = parts
        .into_iter()
        .zip(texts.iter().map(Vec::as_slice))
        .collect();
    let options = arrays(&[FileFormat::Npy, FileFormat::Raw]);
    let fixture = Fixture::new(options, &objects);
    let root = fixture.find("").unwrap().unwrap();
    let mut directory = fixture.view.open_directory(root.id).unwrap().unwrap();
    let mut names = |count: usize| -> Vec<String> {
        let mut next = || directory.next_entry(Detail::Names).unwrap();
        let names = std::iter::from_fn(|| next().map(|entry| entry.name));
        let names = names
            .take(count)
            .map(|name| String::from_utf8(name).unwrap());
        names.collect()
    };
    assert_eq!(names(4), ["a.npy", "a.raw", "a.json", "b.npy"]);
    let position = directory.position();
    for (is_removed, expected) in [
        (false, ["b.raw", "b.json"].as_slice()),
        (true, ["c.npy", "c.raw", "c.json"].as_slice()),
    ] {
        if is_removed {
            let document = Key::parse(b"b/zarr.json").unwrap();
            assert!(fixture.store.remove(&document));
        }
        directory.seek(position.clone()).unwrap();
        let entry = || directory.next_entry(Detail::Names).unwrap();
        let rest = std::iter::from_fn(entry).map(|entry| String::from_utf8(entry.name).unwrap());
        let rest: Vec<String> = rest.take(expected.len()).collect();
        assert_eq!(rest, expected);
    }
}

#[test]
fn a_long_listing_requests_no_name_that_the_store_did_not_list() {
    let recording = Arc::new(Recording::default());
    let options = ViewOptions {
        freshness: Freshness::Immutable,
        ..arrays(&[FileFormat::Npy, FileFormat::Nhdr])
    };
    let fixture = Fixture::trusting(options, &[], |store| wrap(store, &recording));
    let mut named = array(&[4], &[4], &plain());
    named["dimension_names"] = json!(["time"]);
    let arrays = 0..600;
    fixture.put_old("zarr.json", &group());
    for number in arrays.clone() {
        fixture.put_old(&format!("a{number}/zarr.json"), &text(&named));
    }
    recording.clear();
    let listed = fixture.list("");
    assert_eq!(listed.len(), 3 * arrays.len());
    let documents: Vec<String> = arrays
        .map(|number| format!("a{number}/zarr.json"))
        .collect();
    let is_listed = |call: &Call| {
        let path = String::from_utf8_lossy(call.path.as_bytes()).into_owned();
        ["", "zarr.json", ".zattrs"].contains(&path.as_str()) || documents.contains(&path)
    };
    let calls = recording.calls();
    let others: Vec<_> = calls.iter().filter(|call| !is_listed(call)).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn a_coordinate_that_comes_after_a_listing_is_in_the_files_that_are_opened() {
    let options = ViewOptions {
        freshness: Freshness::Checked(Duration::from_secs(3600)),
        ..arrays(&[FileFormat::Nhdr])
    };
    let fixture = Fixture::trusting(options, &[], |store| store);
    let mut named = array(&[4], &[4], &plain());
    named["dimension_names"] = json!(["x"]);
    fixture.put_old("zarr.json", &group());
    fixture.put_old("a/zarr.json", &text(&named));
    fixture.put_old("a/c/0", &[1, 2, 3, 4]);
    let header =
        |fixture: &Fixture| String::from_utf8_lossy(&fixture.read("a.nhdr").unwrap()).into_owned();
    assert!(fixture.list("").contains(&"a.nhdr".to_owned()));
    assert!(
        !header(&fixture).contains("units: \"um\""),
        "{}",
        header(&fixture)
    );
    let mut coordinate = array(&[4], &[4], &plain());
    coordinate["dimension_names"] = json!(["x"]);
    coordinate["attributes"] = json!({"units": "micrometer", "axis": "X"});
    fixture.list("");
    fixture.put_old("x/zarr.json", &text(&coordinate));
    assert!(
        header(&fixture).contains("units: \"um\""),
        "{}",
        header(&fixture)
    );
}

#[test]
fn a_coordinate_whose_absence_is_trusted_is_found_by_its_document() {
    let options = ViewOptions {
        freshness: Freshness::Checked(Duration::from_secs(3600)),
        ..arrays(&[FileFormat::Nhdr])
    };
    let fixture = Fixture::trusting(options, &[], |store| store);
    let named = |attributes: serde_json::Value| {
        let mut named = array(&[4], &[4], &plain());
        named["dimension_names"] = json!(["x"]);
        named["attributes"] = attributes;
        text(&named)
    };
    fixture.put_old("zarr.json", &group());
    fixture.put_old("a/zarr.json", &named(json!({})));
    assert!(fixture.find("x.nhdr").unwrap().is_none());
    let unit = json!({"units": "micrometer", "axis": "X"});
    fixture.put_old("x/zarr.json", &named(unit));
    // The first reader finds the document, and the next one the array.
    let has_unit = || {
        let header = fixture.read("a.nhdr").unwrap();
        String::from_utf8_lossy(&header).contains("units: \"um\"")
    };
    has_unit();
    assert!(has_unit());
}

#[test]
fn a_coordinate_that_comes_to_a_draft_is_in_the_files_that_are_opened() {
    let array = |attributes: serde_json::Value| {
        text(&json!({
            "shape": [4], "data_type": "|u1", "fill_value": 7, "chunk_memory_layout": "C", "extensions": [],
            "chunk_grid": {"type": "regular", "chunk_shape": [4], "separator": "/"}, "attributes": attributes,
        }))
    };
    let uri = "https://purl.org/zarr/spec/protocol/core/3.0";
    let root = json!({
        "zarr_format": uri, "metadata_encoding": uri, "metadata_key_suffix": ".json", "extensions": [],
    });
    let fixture = Fixture::new(arrays(&[FileFormat::Nhdr]), &[]);
    fixture.put_old("zarr.json", &text(&root));
    let dimensions = json!({"_ARRAY_DIMENSIONS": ["x"]});
    fixture.put_old("meta/root/a.array.json", &array(dimensions));
    let has_unit = || {
        let header = fixture.read("a.nhdr").unwrap();
        String::from_utf8_lossy(&header).contains("units: \"um\"")
    };
    assert!(!has_unit());
    let unit = json!({"_ARRAY_DIMENSIONS": ["x"], "units": "micrometer", "axis": "X"});
    fixture.put_old("meta/root/x.array.json", &array(unit));
    assert!(has_unit());
}
