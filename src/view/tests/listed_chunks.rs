//! Listings of chunks that are stored, damaged or replaced meanwhile.

use super::*;
use crate::store::{DirStore, Symlinks};

/// The codecs of a shard of inner chunks of this shape.
fn sharded_in(inner: &[u64]) -> Value {
    let mut codecs = sharded();
    codecs[0]["configuration"]["chunk_shape"] = json!(inner);
    codecs
}

fn hidden(view: ViewKind) -> ViewOptions {
    ViewOptions {
        views: vec![view],
        missing: AbsentChunks::Hide,
        freshness: Freshness::Checked(Duration::ZERO),
        ..ViewOptions::default()
    }
}

#[test]
fn a_directory_of_chunks_that_cannot_be_examined_is_listed() {
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().to_str().unwrap();
    let document = text(&array(&[4, 4], &[2, 4], &sharded_in(&[1, 4])));
    for view in [ViewKind::Keys, ViewKind::Chunks] {
        for target in [outside, "..", "1", "nowhere"] {
            let folder = tempfile::tempdir().unwrap();
            let chunks = folder.path().join("a/c");
            std::fs::create_dir_all(chunks.join("0")).unwrap();
            std::fs::write(folder.path().join("a/zarr.json"), &document).unwrap();
            std::os::unix::fs::symlink(target, chunks.join("1")).unwrap();
            let store = DirStore::open(folder.path(), Symlinks::Inside).unwrap();
            let fixture = Fixture {
                view: Arc::new(View::new(Arc::new(store), hidden(view)).unwrap()),
                store: Arc::new(MemoryStore::new()),
            };
            let context = format!("{view:?}: {target}");
            assert_eq!(fixture.list("a/c"), ["0", "1", "2", "3"], "{context}");
            for name in ["a/c/2", "a/c/3"] {
                let found = fixture.find(name);
                assert!(found.is_err(), "{context}: {name}: {found:?}");
            }
        }
    }
}
