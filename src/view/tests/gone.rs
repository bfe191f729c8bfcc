//! Arrays whose documents are removed while a reader has the arrays open.

use super::arrays::{document, group};
use super::*;

#[test]
fn an_array_is_stale_before_it_is_absent_when_a_directory_above_it_is_removed() {
    for view in [ViewKind::Keys, ViewKind::Chunks] {
        let options = ViewOptions {
            views: vec![view],
            freshness: Freshness::Checked(Duration::from_secs(3600)),
            ..ViewOptions::default()
        };
        let keys = [
            "g/zarr.json",
            "g/h/zarr.json",
            "g/h/a/zarr.json",
            "g/h/a/c/0",
        ];
        let objects: [(&str, &[u8]); 4] = [
            (keys[0], &group()),
            (keys[1], &group()),
            (keys[2], &document("uint8", &[4], &[2])),
            (keys[3], b"ab"),
        ];
        let fixture = Fixture::trusting(options, &objects, |store| store);
        assert_eq!(fixture.read("g/h/a/c/0").unwrap(), b"ab");
        for key in keys {
            assert!(fixture.store.remove(&Key::parse(key.as_bytes()).unwrap()));
        }
        for path in ["g", "g/h/a/c/0"] {
            assert_eq!(
                refusal(&fixture, path),
                ErrorKind::Stale,
                "{view:?}: {path}"
            );
        }
        assert!(fixture.find("other").unwrap().is_none());
    }
}
