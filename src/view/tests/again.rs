//! Vnodes by number alone, and the directories that directories are in.

use super::*;

fn fixture(views: Vec<ViewKind>) -> Fixture {
    let options = ViewOptions {
        views,
        ..ViewOptions::default()
    };
    let document = text(&array(&[4, 4], &[2, 2], &plain()));
    let objects: [(&str, &[u8]); 4] = [
        ("g/a/zarr.json", &document),
        ("g/a/c/0/1", b"abcd"),
        ("g/a/c/0/extra/x", b"x"),
        ("x", b"y"),
    ];
    Fixture::new(options, &objects)
}

#[test]
fn forgotten_vnodes_are_found_again() {
    let fixture = fixture(vec![ViewKind::Keys, ViewKind::Chunks]);
    for path in ["", "keys", "keys/x", "keys/g/a/zarr.json", "chunks/g/a/c/0"] {
        let found = fixture.find(path).unwrap().unwrap();
        fixture.view.forget(found.id, 1);
        assert_eq!(
            fixture.view.recall(found.id).unwrap(),
            Some(found),
            "{path}"
        );
    }
    let gone = fixture.find("keys/x").unwrap().unwrap().id;
    fixture.view.forget(gone, 2);
    fixture.store.remove(&Key::parse(b"x").unwrap());
    assert_eq!(fixture.view.recall(gone).unwrap(), None);
    let never = VnodeId(gone.0 ^ 1);
    assert!(matches!(fixture.view.recall(never), Err(Error::Stale)));
}

#[test]
fn the_parent_of_a_vnode_is_the_directory_that_it_was_found_in() {
    let below = ["g", "g/a", "g/a/c", "g/a/c/0"];
    let views = vec![ViewKind::Keys, ViewKind::Chunks];
    let several = fixture(views.clone());
    for view in &views {
        let one = fixture(vec![*view]);
        for path in below {
            assert_parent(&one, path);
            assert_parent(&several, &format!("{}/{path}", view.name()));
        }
        assert_parent(&several, view.name());
    }
    assert_parent(&several, ".zarr-mount");
    assert_parent(&fixture(vec![ViewKind::Keys]), "g/a/c/0/extra");
}

fn assert_parent(fixture: &Fixture, path: &str) {
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    let expected = fixture.find(above).unwrap().unwrap();
    let found = fixture.find(path).unwrap().unwrap();
    let parent = fixture.view.parent(found.id).unwrap();
    assert_eq!(parent, Some(expected), "{path}");
}
