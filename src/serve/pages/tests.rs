//! Whole pages of small stores in memory.

use std::sync::Arc;

use super::*;
use crate::store::{Key, MemoryStore, Store};
use crate::view::{ArrayOptions, FileFormat, View, ViewKind, ViewOptions};

const GROUP: &[u8] = br#"{"zarr_format": 3, "node_type": "group"}"#;

fn array(shape: &str, chunks: &str, more: &str) -> Vec<u8> {
    let text = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": {shape}, "data_type": "uint8",
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": {chunks}}}}},
            "chunk_key_encoding": {{"name": "default"}}, "fill_value": 7, "codecs": [{{"name": "bytes"}}]{more}}}"#
    );
    text.into_bytes()
}

fn view(kind: ViewKind, objects: &[(&str, &[u8])]) -> Arc<View> {
    let store = MemoryStore::new();
    for (key, bytes) in objects {
        store.insert(Key::parse(key.as_bytes()).unwrap(), bytes.to_vec());
    }
    let options = ViewOptions {
        views: vec![kind],
        arrays: ArrayOptions {
            files: vec![FileFormat::Npy, FileFormat::Png],
            ..ArrayOptions::default()
        },
        ..ViewOptions::default()
    };
    Arc::new(View::new(Arc::new(store) as Arc<dyn Store>, options).unwrap())
}

fn page(view: &Arc<View>, path: &str, query: &str) -> String {
    let vnode = view.find_path(path.as_bytes()).unwrap().unwrap();
    let request = Request {
        store: "s<t>ore",
        path: path.as_bytes(),
        query,
    };
    directory(&vnode, &request).unwrap().unwrap()
}

/// Checks the promises for each page: it has no scripts, it loads nothing from other servers, and each element has its end
/// tag.
fn check(page: &str) {
    assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">"));
    for wrong in [
        "<script",
        "\"javascript:",
        "http:",
        "https:",
        "\u{202e}",
        "\u{1b}",
    ] {
        assert!(!page.contains(wrong), "{wrong}: {page}");
    }
    let mut open = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let runs = |word: &str| {
            word.contains('=') && (word.starts_with("on") || word.starts_with("style"))
        };
        assert!(!tag.split(' ').any(runs), "{tag}");
        let name = tag.split([' ', '\n']).next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{page}"),
            None if ["!doctype", "meta", "link", "img", "input"].contains(&name) => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for needed in [
        "<main id=\"content\"",
        "<h1>",
        "href=\"#content\"",
        "<title>",
    ] {
        assert_eq!(page.matches(needed).count(), 1, "{needed}");
    }
}

#[test]
fn hostile_names_and_attributes_are_text() {
    let name = "<script>alert(1)</script>\"'&\u{202e}\u{1b}[2J";
    let attributes = format!(
        r#", "dimension_names": ["<b>"], "attributes": {}"#,
        serde_json::json!({ name: [name], "x": "</pre><img src=x onerror=alert(1)>" })
    );
    let document = array("[4]", "[2]", &attributes);
    // A slash cannot be part of a name.
    let name = name.replace('/', ":");
    let (key, chunk) = (format!("{name}/zarr.json"), format!("{name}/c/0"));
    let objects: [(&str, &[u8]); 4] = [
        ("zarr.json", GROUP),
        (&key, &document),
        (&chunk, b"ab"),
        ("javascript:alert(1)", b"x"),
    ];
    let view = view(ViewKind::Keys, &objects);
    let root = page(&view, "", "");
    check(&root);
    assert!(
        root.contains(
            "href=\"%3Cscript%3Ealert%281%29%3C%3Ascript%3E%22%27%26%E2%80%AE%1B%5B2J/\""
        ),
        "{root}"
    );
    assert!(root.contains("s&lt;t&gt;ore"));
    let page = page(&view, &name, "");
    check(&page);
    assert!(
        page.contains("&lt;/pre&gt;&lt;img src=x onerror=alert(1)&gt;"),
        "{page}"
    );
    assert!(page.contains("<bdi>&lt;b&gt;</bdi>"), "{page}");
}

#[test]
fn a_page_of_an_array_has_its_dimensions_and_stored_chunks() {
    let document = array(
        "[3, 6]",
        "[2, 2]",
        r#", "dimension_names": ["y", "x"], "attributes": {"units": "K"}"#,
    );
    let objects: [(&str, &[u8]); 3] = [
        ("zarr.json", GROUP),
        ("g/a/zarr.json", &document),
        ("g/a/c/1/2", b"abcd"),
    ];
    let view = view(ViewKind::Chunks, &objects);
    let page = page(&view, "g/a", "");
    check(&page);
    for part in [
        "<a href=\"../../\"><bdi>s&lt;t&gt;ore</bdi></a>",
        "<a href=\"../\"><bdi>g</bdi></a>",
        "<th scope=\"row\"><bdi>y</bdi></th><td class=\"number\">3</td><td class=\"number\">2</td><td class=\"number\">2</td>",
        "1 of 6 are stored, and 5 are absent",
        "<td class=\"stored\"><a href=\"c/1/2\" aria-label=\"chunk 1, 2, 4 B\">4 B</a></td>",
        "<th scope=\"row\"><bdi>units</bdi></th><td><code>&quot;K&quot;</code></td>",
        "<dt>Codecs</dt><dd><bdi>bytes</bdi></dd>",
        "<bdi>g/a/zarr.json</bdi>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    assert!(!page.contains("<form"), "all chunks are in the table");
}

#[test]
fn the_chunk_of_an_array_without_dimensions_has_a_name() {
    let document = array("[]", "[]", "");
    let objects: [(&str, &[u8]); 2] = [("a/zarr.json", &document), ("a/c", b"x")];
    let page = page(&view(ViewKind::Chunks, &objects), "a", "");
    check(&page);
    assert!(page.contains("aria-label=\"chunk, 1 B\""), "{page}");
}

#[test]
fn a_page_of_a_huge_grid_is_bounded() {
    let document = array("[20000000, 20000000]", "[2, 2]", "");
    let view = view(ViewKind::Keys, &[("zarr.json", &document)]);
    let page = page(&view, "", "i0=5&i1=9999990");
    check(&page);
    assert!(page.len() < 64 << 10, "{}", page.len());
    assert_eq!(page.matches("<td class=\"absent\">").count(), 16 * 10);
    assert!(
        page.contains("<a href=\"?i0=21&amp;i1=9999990#chunks\">Next rows</a>"),
        "{page}"
    );
    assert!(
        page.contains("max=\"9999999\" name=\"i1\" value=\"9999990\""),
        "{page}"
    );
}

#[test]
fn long_lists_of_names_are_pages_of_a_list() {
    let keys: Vec<String> = (0..1100).map(|number| format!("n{number:04}")).collect();
    let objects: Vec<(&str, &[u8])> = keys
        .iter()
        .map(|key| (key.as_str(), b"x".as_slice()))
        .collect();
    let view = view(ViewKind::Keys, &objects);
    for (query, n, links) in [
        ("", 500, ["", "?from=500#names"]),
        ("from=500", 500, ["?from=0#names", "?from=1000#names"]),
        ("from=1000", 100, ["?from=500#names", ""]),
        ("from=99999999999", 0, ["?from=99500#names", ""]),
    ] {
        let page = page(&view, "", query);
        check(&page);
        assert_eq!(
            page.matches("<tr><th scope=\"row\"><a").count(),
            n,
            "{query}"
        );
        assert!(links.iter().all(|link| page.contains(link)), "{query}");
        assert_eq!(
            page.matches("?from=").count(),
            links.iter().filter(|link| !link.is_empty()).count()
        );
    }
}

#[test]
fn the_arrays_view_has_previews_and_pages_about_files() {
    let document = array("[8, 8]", "[4, 4]", "");
    let objects: [(&str, &[u8]); 2] = [("zarr.json", GROUP), ("g/a b/zarr.json", &document)];
    let view = view(ViewKind::Arrays, &objects);
    let group = page(&view, "g", "");
    check(&group);
    assert!(
        group
            .contains("<img loading=\"lazy\" src=\"a%20b.png\" alt=\"Preview of a b.png, array of"),
        "{group}"
    );
    let about = page(&view, "g", "about=a%2520b.npy");
    check(&about);
    assert!(about.contains("<h1><bdi>a b.npy</bdi></h1>"), "{about}");
    assert!(about.contains("src=\"../g/a%20b.png\""), "{about}");
    assert!(about.contains("0 of 4 are stored"), "{about}");
    for wrong in [
        "about=..",
        "about=g%252Fa",
        "about=",
        "about=none",
        "about=%2500",
    ] {
        assert!(
            page(&view, "g", wrong).contains("<h1><bdi>g</bdi></h1>"),
            "{wrong}"
        );
    }
}

#[test]
fn a_node_that_cannot_be_shown_says_why() {
    let view = view(
        ViewKind::Chunks,
        &[(
            "a/zarr.json",
            br#"{"zarr_format": 3, "node_type": "array"}"#,
        )],
    );
    let page = page(&view, "a", "");
    check(&page);
    assert!(
        page.contains("<p class=\"problem\">This node cannot be shown: a/zarr.json: "),
        "{page}"
    );
}

#[test]
fn an_error_page_is_whole() {
    let page = error(404, "Not found", "No <file> is here.");
    check(&page);
    assert!(page.contains("No &lt;file&gt; is here."));
    assert!(page.contains(STYLE.path) && page.contains(ICON.path));
    assert!(STYLE.text.contains("prefers-color-scheme: dark") && !STYLE.text.contains("url("));
    assert!(POLICY.contains("default-src 'none'") && !POLICY.contains("unsafe"));
}
