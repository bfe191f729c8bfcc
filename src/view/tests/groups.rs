//! Files of groups within groups.

use std::time::Duration;

use super::arrays::{arrays, document, group};
use super::*;
use crate::plain::FileFormat;
use crate::store::testing::{Call, CallKind, Recording, wrap};

/// The number of reads of the document that is read most often, when the files of `depth` groups within each other are
/// examined. Each file holds all groups below its group.
fn most_reads_of_a_document(depth: usize) -> usize {
    let mut keys = Vec::new();
    for path in (0..=depth).map(|depth| "g/".repeat(depth)) {
        keys.push((format!("{path}zarr.json"), group()));
        keys.push((format!("{path}a/zarr.json"), document("uint8", &[2], &[2])));
    }
    let recording = Arc::new(Recording::default());
    let options = arrays(&[FileFormat::H5]);
    let fixture = Fixture::layered(options, &[], |store| wrap(store, &recording));
    for (path, text) in &keys {
        fixture.put_old(path, text);
    }
    for path in (0..=depth).map(|depth| "g/".repeat(depth)) {
        let name = if path.is_empty() { "store.h5" } else { "g.h5" };
        assert!(fixture.list(&path).contains(&name.to_owned()), "{path}");
        let found = fixture.find(&format!("{path}{name}")).unwrap().unwrap();
        assert!(found.attributes.size > 0, "{path}");
    }
    let calls = recording.calls();
    let reads = keys.iter().map(|(key, _)| {
        let is_read = |call: &&Call| {
            matches!(call.kind, CallKind::Fetch | CallKind::Open)
                && call.path.as_bytes() == key.as_bytes()
        };
        calls.iter().filter(is_read).count()
    });
    reads.max().unwrap_or_default()
}

#[test]
fn a_document_is_read_as_often_below_many_groups_as_below_few() {
    // It is read once for the node, and once for its attributes.
    let most = 2;
    for depth in [4, 16] {
        let reads = most_reads_of_a_document(depth);
        assert!(reads <= most, "{depth} groups: {reads} reads");
    }
}

/// A view of groups within each other, each of which has `arrays_each` arrays, and whose documents are old enough to
/// be trusted.
fn nested(
    depth: usize,
    arrays_each: usize,
    freshness: Freshness,
    recording: &Arc<Recording>,
) -> Fixture {
    let options = ViewOptions {
        freshness,
        ..arrays(&[FileFormat::H5])
    };
    let fixture = Fixture::trusting(options, &[], |store| wrap(store, recording));
    for path in paths(depth) {
        fixture.put_old(&format!("{path}zarr.json"), &group());
        let array = document("uint8", &[2], &[2]);
        for name in 0..arrays_each {
            fixture.put_old(&format!("{path}a{name}/zarr.json"), &array);
        }
    }
    fixture
}

fn paths(depth: usize) -> impl Iterator<Item = String> {
    (0..=depth).map(|depth| "g/".repeat(depth))
}

fn file_of_group(path: &str) -> String {
    let name = if path.is_empty() { "store.h5" } else { "g.h5" };
    format!("{path}{name}")
}

/// The number of calls of the store when all groups within each other are listed.
fn calls_of_listings(depth: usize) -> usize {
    let recording = Arc::default();
    let fixture = nested(depth, 1, Freshness::Immutable, &recording);
    recording.clear();
    let mut id = VnodeId::ROOT;
    for _ in 0..depth {
        let mut directory = fixture.view.open_directory(id).unwrap().unwrap();
        let mut has_file = false;
        while let Some(entry) = directory.next_entry(Detail::Attributes).unwrap() {
            has_file |= entry.name.ends_with(b".h5");
        }
        assert!(has_file);
        id = fixture.view.lookup(id, b"g").unwrap().unwrap().id;
    }
    recording.calls().len()
}

#[test]
fn the_calls_for_each_file_do_not_grow_with_the_depth_of_groups() {
    let [few, many] = [10, 40].map(calls_of_listings);
    assert!(many <= 4 * few, "{few} calls for 10 groups, {many} for 40");
}

#[test]
fn documents_are_read_once_for_the_files_of_all_groups_above_many_arrays() {
    // The members of all files take more memory than is kept without reservations from the budget.
    let (depth, arrays_each) = (10, 300);
    let recording = Arc::default();
    let fixture = nested(depth, arrays_each, Freshness::Immutable, &recording);
    recording.clear();
    for path in paths(depth) {
        let name = file_of_group(&path);
        assert!(fixture.find(&name).unwrap().is_some(), "{name}");
    }
    let calls = recording.calls();
    let is_read = |call: &&Call| matches!(call.kind, CallKind::Fetch | CallKind::Open);
    let (reads, documents) = (
        calls.iter().filter(is_read).count(),
        (depth + 1) * (arrays_each + 1),
    );
    assert!(
        reads <= 2 * documents,
        "{reads} reads of {documents} documents"
    );
}

#[test]
fn the_size_of_a_groups_file_is_that_of_its_bytes_after_each_change_below_it() {
    type Change = (&'static str, fn(&Fixture));
    let changes: [Change; 6] = [
        ("nothing", |_| {}),
        ("attributes of a group", |fixture| {
            let attributes = json!({"title": "a title that makes the header longer"});
            let group = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
            fixture.put_old("g/g/g/zarr.json", &text(&group));
        }),
        ("a new array", |fixture| {
            fixture.put_old("g/g/b/zarr.json", &document("int16", &[9], &[9]));
        }),
        ("a larger array", |fixture| {
            fixture.put_old("g/g/g/g/a0/zarr.json", &document("uint8", &[5000], &[50]));
        }),
        ("a new group", |fixture| {
            fixture.put_old("g/g/h/zarr.json", &group());
            fixture.put_old("g/g/h/c/zarr.json", &document("uint8", &[3], &[3]));
        }),
        ("an array less", |fixture| {
            let key = Key::parse(b"g/g/g/g/a0/zarr.json").unwrap();
            assert!(fixture.store.remove(&key));
        }),
    ];
    let fixture = nested(4, 1, Freshness::Checked(Duration::ZERO), &Arc::default());
    let mut seen = Vec::new();
    for (change, make) in changes {
        make(&fixture);
        let mut all = Vec::new();
        for path in paths(2) {
            let name = file_of_group(&path);
            let size = fixture.find(&name).unwrap().unwrap().attributes.size;
            let bytes = fixture.read(&name).unwrap();
            assert_eq!(size, bytes.len() as u64, "{change}: {name}");
            // A new view of the same store, which remembers nothing, shows the same bytes.
            let options = arrays(&[FileFormat::H5]);
            let store = Arc::clone(&fixture.store);
            let view = View::new(Arc::clone(&store) as Arc<dyn Store>, options);
            let view = Arc::new(view.unwrap());
            let anew = Fixture { store, view };
            assert!(anew.read(&name).unwrap() == bytes, "{change}: {name}");
            all.push(bytes);
        }
        assert!(!seen.contains(&all), "{change}: all files are as they were");
        seen.push(all);
    }
}
