//! Documents in another version than the one in which they are stored.

use std::collections::BTreeSet;
use std::time::UNIX_EPOCH;

use super::*;
use crate::load::Shards;
use crate::metadata::v2;
use crate::metadata::write::{self, ChunkContent};
use crate::store::Version;
use crate::translate::testing::{key, presentation};

const ZARRAY: &[u8] = br#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4",
    "compressor": {"id": "zlib", "level": 1}, "fill_value": 0, "order": "C", "filters": null}"#;

const VERSION: Version = Version {
    size: 1,
    mtime: UNIX_EPOCH,
    inode: 1,
    tag: 1,
};

fn text(name: &str, bytes: Option<&[u8]>) -> Text {
    Text {
        key: key(&format!("a/{name}")),
        bytes: bytes.map(<[u8]>::to_vec),
        replaces: bytes.map_or(Replaces::Nothing, |_| Replaces::Version(VERSION)),
    }
}

/// The changes of an array of v2 that the chunks view shows as v3, after `change` in its document.
fn written(
    attributes: Option<&[u8]>,
    change: impl Fn(&str) -> String,
) -> Result<Vec<ObjectChange>, Error> {
    let texts = NodeTexts {
        own: text(".zarray", Some(ZARRAY)),
        attributes: Some(text(".zattrs", attributes)),
    };
    let metadata = v2::parse_array(ZARRAY).unwrap();
    let content = ChunkContent::Decoded(Shards::Expand);
    let shown = write::array(&metadata, &texts.stored(b""), content, Target::V3).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    let shown_as = ShownAs {
        target: Target::V3,
        content,
    };
    let array = StoredArray {
        metadata: &metadata,
        shown_as,
    };
    let document = ForeignDocument {
        key: key("a/zarr.json"),
        name: DocumentName::ZarrJson,
        presentation: presentation(true),
    };
    document.of_array(array, &texts, change(&shown).as_bytes(), v2::parse_array)
}

#[test]
fn a_shown_document_is_carried_to_its_objects_with_the_attributes_first() {
    let edit = |shown: &str| {
        let new = shown.replacen("\"shape\": [4]", "\"shape\": [6]", 1);
        new.replacen("\"attributes\": {", "\"attributes\": {\"b\": 2", 1)
    };
    let changes = written(None, edit).unwrap();
    let names: Vec<_> = changes
        .iter()
        .map(|change| change.key.to_string())
        .collect();
    assert_eq!(names, ["a/.zattrs", "a/.zarray"]);
    let [attributes, own] = &changes[..] else {
        unreachable!();
    };
    assert_eq!(attributes.replaces, Replaces::Nothing);
    assert_eq!(own.replaces, Replaces::Version(VERSION));
    let own = String::from_utf8(own.bytes.clone().unwrap()).unwrap();
    assert!(own.contains("[6]") && own.contains("zlib"), "{own}");
    assert!(written(None, str::to_owned).unwrap().is_empty());
}

#[test]
fn a_change_that_the_stored_version_cannot_have_is_refused() {
    let error = written(None, |shown| shown.replace("int32", "int16"));
    let Err(Error::Unacceptable { reason, key }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(key, "a/zarr.json");
    assert!(reason.contains("data_type"), "{reason}");
}

#[test]
fn consolidated_metadata_is_made_from_the_stored_documents() {
    let document = ForeignDocument {
        key: key("a/zarr.json"),
        name: DocumentName::ZarrJson,
        presentation: presentation(true),
    };
    let group = br#"{"zarr_format": 3, "node_type": "group", "attributes": {"b": 2}}"#;
    let texts = NodeTexts {
        own: text(".zgroup", Some(br#"{"zarr_format": 2}"#)),
        attributes: Some(text(".zattrs", None)),
    };
    let wish = Wish::Have(BTreeSet::from(["x".to_owned()]));
    assert_eq!(
        wish.names(ZarrFormat::V2),
        ["x/.zarray", "x/.zattrs", "x/.zgroup"]
    );
    let copies = || vec![("x/.zarray".to_owned(), ZARRAY.to_vec())];
    let of = |format, wish: &Wish, holder: Option<&Text>| {
        document.of_group_with_copies((format, &texts), group, (wish, copies()), holder)
    };
    let changes = of(ZarrFormat::V2, &wish, Some(&text(".zmetadata", None))).unwrap();
    let names: Vec<_> = changes
        .iter()
        .map(|change| change.key.to_string())
        .collect();
    assert_eq!(names, ["a/.zattrs", "a/.zmetadata"]);
    let consolidated: serde_json::Value =
        serde_json::from_slice(changes[1].bytes.as_deref().unwrap()).unwrap();
    assert_eq!(consolidated["metadata"]["x/.zarray"]["shape"][0], 4);
    assert_eq!(consolidated["metadata"][".zattrs"]["b"], 2);

    let holder = text(".zmetadata", Some(b"{}"));
    let changes = of(ZarrFormat::V2, &Wish::Drop, Some(&holder)).unwrap();
    assert_eq!(changes.last().map(|change| &change.bytes), Some(&None));
    assert!(of(ZarrFormat::Draft, &wish, None).is_err());
}

#[test]
fn removed_attributes_leave_the_array() {
    let texts = NodeTexts {
        own: text(".zarray", Some(ZARRAY)),
        attributes: Some(text(".zattrs", Some(br#"{"b": 2}"#))),
    };
    let metadata = v2::parse_array(ZARRAY).unwrap();
    let array = StoredArray {
        metadata: &metadata,
        shown_as: ShownAs {
            target: Target::V2,
            content: ChunkContent::Decoded(Shards::Expand),
        },
    };
    let document = ForeignDocument {
        key: key("a/.zattrs"),
        name: DocumentName::ZAttrs,
        presentation: presentation(true),
    };
    let changes = document.without_attributes(array, &texts, v2::parse_array);
    let changes = changes.unwrap();
    let [change] = &changes[..] else {
        panic!("{changes:?}");
    };
    assert_eq!(change.key, key("a/.zattrs"));
    assert_eq!(change.bytes, None);
}

#[test]
fn a_document_of_a_removed_array_is_made_from_the_old_one() {
    let texts = NodeTexts {
        own: text(".zarray", None),
        attributes: None,
    };
    let metadata = v2::parse_array(ZARRAY).unwrap();
    let content = ChunkContent::Decoded(Shards::Expand);
    let array = StoredArray {
        metadata: &metadata,
        shown_as: ShownAs {
            target: Target::V3,
            content,
        },
    };
    let stored = StoredDocuments {
        document: ZARRAY,
        attributes: None,
    };
    let shown = write::array(&metadata, &stored, content, Target::V3).unwrap();
    let document = ForeignDocument {
        key: key("a/zarr.json"),
        name: DocumentName::ZarrJson,
        presentation: presentation(true),
    };
    let changes = document.of_ended(array, (ZARRAY, &texts), &shown, v2::parse_array);
    let changes = changes.unwrap();
    assert_eq!(changes[0].bytes.as_deref(), Some(ZARRAY));
}
