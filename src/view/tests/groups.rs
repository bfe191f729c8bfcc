//! Files of groups within groups.

use std::time::{Duration, SystemTime};

use super::arrays::{arrays, document, group};
use super::*;
use crate::plain::FileFormat;
use crate::store::testing::{Call, CallKind, Recording, wrap};

/// How often the document is read that is read most often, when the files of `depth` groups within each
/// other are looked at, each of which holds all groups below it.
fn most_reads_of_a_document(depth: usize) -> usize {
    let mut keys = Vec::new();
    for path in (0..=depth).map(|depth| "g/".repeat(depth)) {
        keys.push((format!("{path}zarr.json"), group()));
        keys.push((format!("{path}a/zarr.json"), document("uint8", &[2], &[2])));
    }
    let recording = Arc::new(Recording::default());
    let options = arrays(&[FileFormat::H5]);
    let fixture = Fixture::layered(options, &[], |store| wrap(store, &recording));
    // What was written just now would be read again, because it could change within the grain of the clock.
    let written = SystemTime::now() - Duration::from_secs(3600);
    for (path, text) in &keys {
        let key = Key::parse(path.as_bytes()).unwrap();
        fixture.store.insert_at(key, text.clone(), written);
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
    // For the node, and for its attributes.
    let most = 2;
    for depth in [4, 16] {
        let reads = most_reads_of_a_document(depth);
        assert!(reads <= most, "{depth} groups: {reads} reads");
    }
}
