//! Two `attributes.json`, of a group and of an array in it: what they are, and the axes that they give the array.

use std::sync::Arc;
use std::time::Duration;

use zarr_mount::budget::Budget;
use zarr_mount::fresh::Freshness;
use zarr_mount::hierarchy::{Hierarchy, Node};
use zarr_mount::metadata::write::StoredDocuments;
use zarr_mount::metadata::{Attributes, ZarrFormat, n5};
use zarr_mount::plain::{Ancestor, axes_of_n5};
use zarr_mount::store::{Key, MemoryStore, Prefix};

/// The memory budget for documents.
const BUDGET_BYTES: u64 = 1 << 20;

/// Takes what is before a NUL for the document of the group, and what is behind it for that of the array.
pub fn run(data: &[u8]) {
    let end = data
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(data.len());
    let (group, array) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    for format in [None, Some(ZarrFormat::N5)] {
        check_nodes(group, array, format);
    }
    check_axes(group, array);
}

/// The nodes of a container are those that their documents say, and every prefix in one of N5 is a group.
fn check_nodes(group: &[u8], array: &[u8], format: Option<ZarrFormat>) {
    let store = MemoryStore::new();
    for (key, text) in [
        ("attributes.json", group),
        ("s0/attributes.json", array),
        ("s0/0", b""),
    ] {
        store.insert(Key::parse(key.as_bytes()).expect("a key"), text.to_vec());
    }
    let freshness = Freshness::Checked(Duration::ZERO);
    let hierarchy = Hierarchy::of_format(
        Arc::new(store),
        Budget::new(BUDGET_BYTES),
        freshness,
        format,
    );
    let root = hierarchy.node(&Prefix::root()).expect("memory can be read");
    let child = Prefix::parse(b"s0").expect("a prefix");
    let node = hierarchy.node(&child).expect("memory can be read");
    let is_container = format.is_some() || n5::node(group) == Some(n5::N5Node::Root);
    match n5::node(array) {
        Some(n5::N5Node::Dataset) => assert!(matches!(node, Node::Array(_) | Node::Broken(_))),
        Some(n5::N5Node::Root) => assert!(matches!(node, Node::Group(_) | Node::Broken(_))),
        Some(n5::N5Node::Group) => assert_eq!(is_container, matches!(node, Node::Group(_))),
        None => assert!(matches!(node, Node::Implicit)),
    }
    let empty = Prefix::parse(b"g").expect("a prefix");
    let is_group = hierarchy
        .is_group_of_n5(&empty)
        .expect("memory can be read");
    assert_eq!(
        is_group,
        matches!(root, Node::Group(_)) || format.is_some() && matches!(root, Node::Implicit)
    );
}

/// There is an axis for each dimension, and its numbers are those of an axis.
fn check_axes(group: &[u8], text: &[u8]) {
    let source = StoredDocuments {
        document: text,
        attributes: None,
    };
    let Ok(array) = n5::parse_array(text) else {
        return;
    };
    let own = Attributes::text_of_array(ZarrFormat::N5, &source).expect("it is an object");
    let own = Attributes::parse(&own.unwrap_or_else(|| b"{}".to_vec()));
    let (Ok(own), Ok(group)) = (own, Attributes::parse(group)) else {
        return;
    };
    assert!(own.get("dimensions").is_none());
    let rank = array.shape.len();
    let names = array.dimension_names.unwrap_or_else(|| vec![None; rank]);
    for path in ["s0", "s1", "s18446744073709551616"] {
        let above = Ancestor {
            path,
            name: "a.n5",
            attributes: &group,
        };
        let axes = axes_of_n5(&names, &own, &[above]);
        assert_eq!(axes.len(), rank);
        for axis in axes {
            assert!(
                axis.spacing
                    .is_none_or(|spacing| spacing.is_finite() && spacing > 0.0)
            );
            assert!(
                axis.origin
                    .is_none_or(|origin| origin.is_finite() && axis.spacing.is_some())
            );
        }
    }
}
