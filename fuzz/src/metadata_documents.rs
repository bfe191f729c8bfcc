//! Documents of every version: parsed, and shown as the views show them.

use zarr_mount::metadata::carry::with_member;
use zarr_mount::metadata::consolidated::{self, Copied, EntryEdit};
use zarr_mount::metadata::render::{self, ArrayForm, Shards};
use zarr_mount::metadata::translate::{self, ShownAs, StoredAs};
use zarr_mount::metadata::write::{self, ChunkContent, StoredDocuments, Target};
use zarr_mount::metadata::{
    ArrayMetadata, DocumentName, NodeMetadata, ZarrFormat, draft, n5, pre_v1, v1, v2, v3,
};

const FORMS: [ArrayForm; 5] = [
    ArrayForm::Stored,
    ArrayForm::Canonical,
    ArrayForm::Expanded,
    ArrayForm::Decoded(Shards::Expand),
    ArrayForm::Decoded(Shards::Keep),
];

const FORMATS: [ZarrFormat; 6] = [
    ZarrFormat::PreV1,
    ZarrFormat::V1,
    ZarrFormat::V2,
    ZarrFormat::Draft,
    ZarrFormat::V3,
    ZarrFormat::N5,
];

/// Takes `data` for a document of every kind in turn.
pub fn run(data: &[u8]) {
    let _ = v2::parse_group(data);
    let _ = n5::parse_group(data);
    for format in FORMATS {
        if let Some(array) = parse(data, format) {
            for shown in FORMS {
                check_shown(&array, data, shown);
            }
            for target in [Target::V2, Target::V3] {
                check_written(&array, data, target);
            }
        }
        for shown in FORMS {
            check_consolidated(data, format, shown);
        }
    }
}

fn parse(text: &[u8], format: ZarrFormat) -> Option<ArrayMetadata> {
    match format {
        ZarrFormat::V2 => v2::parse_array(text).ok(),
        ZarrFormat::V3 => match v3::parse(text).ok()? {
            NodeMetadata::Array(array) => Some(*array),
            NodeMetadata::Group => None,
        },
        ZarrFormat::PreV1 => pre_v1::parse_array(text).ok(),
        ZarrFormat::V1 => v1::parse_array(text).ok(),
        ZarrFormat::N5 => n5::parse_array(text).ok(),
        ZarrFormat::Draft => draft::parse_array(text, draft::Generation::Protocol)
            .or_else(|_| draft::parse_array(text, draft::Generation::Core))
            .ok(),
    }
}

/// An array that can be decoded can be shown; what is shown is the same array, and shown once
/// more it does not change.
fn check_shown(array: &ArrayMetadata, text: &[u8], shown: ArrayForm) {
    let Ok(decoding) = &array.decoding else {
        let _ = render::array(text, array, shown);
        return;
    };
    // Chunks of before v1 are compressed, those of N5 are blocks, and nothing can say otherwise.
    let is_only_stored = matches!(array.zarr_format, ZarrFormat::PreV1 | ZarrFormat::N5);
    if is_only_stored && matches!(shown, ArrayForm::Decoded(_)) {
        return assert!(render::array(text, array, shown).is_err());
    }
    let document = render::array(text, array, shown).expect("it can be decoded");
    let made = parse(&document, array.zarr_format).expect("an array");
    let again = render::array(&document, &made, shown).expect("it was shown");
    assert_eq!(document, again, "{shown:?}");
    let what = made
        .decoding
        .as_ref()
        .expect("an array that can be decoded");
    assert_eq!(made.shape, array.shape);
    assert_eq!(made.dimension_names, array.dimension_names);
    assert_eq!(what.data_type.item_size, decoding.data_type.item_size);
    match shown {
        ArrayForm::Stored => assert_eq!(made, *array),
        ArrayForm::Canonical => {
            assert_eq!(what.codecs, decoding.codecs);
            assert_eq!(what.fill_value.bytes(), decoding.fill_value.bytes());
        }
        ArrayForm::Expanded => assert_eq!(what.codecs.sharding(), None),
        ArrayForm::Decoded(_) if what.data_type.is_variable() => {
            assert_eq!(what.codecs.bytes_to_bytes, []);
        }
        ArrayForm::Decoded(_) => assert!(what.codecs.is_identity(&what.data_type)),
    }
}

/// If another version can express the array, it is the same array there.
fn check_written(array: &ArrayMetadata, text: &[u8], target: Target) {
    let source = StoredDocuments {
        document: text,
        attributes: None,
    };
    for shards in [Shards::Expand, Shards::Keep] {
        for content in [ChunkContent::Encoded(shards), ChunkContent::Decoded(shards)] {
            let Ok(document) = write::array(array, &source, content, target) else {
                continue;
            };
            let made = parse(&document, target.zarr_format()).expect("an array");
            assert_eq!(made.shape, array.shape);
            let (there, here) = (made.decoding.expect("decodable"), array.decoding.as_ref());
            let here = here.expect("what is written can be decoded");
            assert_eq!(there.data_type.item_size, here.data_type.item_size);
            if here.fill_value.is_defined() {
                assert_eq!(there.fill_value.bytes(), here.fill_value.bytes());
            }
            if array.zarr_format != target.zarr_format() {
                let shown_as = ShownAs { target, content };
                check_carried(array, &source, shown_as, &document);
            }
        }
    }
}

/// A document that is shown in another version and written back unchanged changes nothing. A resize
/// changes the shape alone.
fn check_carried(
    array: &ArrayMetadata,
    source: &StoredDocuments<'_>,
    shown_as: ShownAs,
    document: &[u8],
) {
    let name = match shown_as.target {
        Target::V2 => DocumentName::ZArray,
        Target::V3 => DocumentName::ZarrJson,
    };
    let write = |written: &[u8]| {
        let parse = |text: &[u8]| Ok(parse(text, array.zarr_format).expect("an array"));
        translate::array(array, source, shown_as, (name, written), parse)
    };
    // Attributes may have a member twice, and names of dimensions may be ambiguous.
    if let Ok(same) = write(document) {
        assert_eq!(same.document, source.document);
    }
    let shape: Vec<String> = array
        .shape
        .iter()
        .map(|length| (length / 2 + 1).to_string())
        .collect();
    let resized = with_member(
        document,
        "shape",
        Some(format!("[{}]", shape.join(",")).as_bytes()),
    );
    if let Ok(new) = write(&resized.expect("an object")) {
        let found = parse(&new.document, array.zarr_format).expect("an array");
        assert!(found.has_same_chunks(array));
        let expected: Vec<u64> = array.shape.iter().map(|length| length / 2 + 1).collect();
        assert_eq!(found.shape.as_slice(), expected);
    }
    for to in [
        StoredAs::V2,
        StoredAs::V3,
        StoredAs::Draft(draft::Generation::Protocol),
        StoredAs::Draft(draft::Generation::Core),
    ] {
        if let Ok(new) = translate::new_node((name, document), None, shown_as, to) {
            assert!(new.is_array);
        }
    }
}

/// Copies of documents in a group's own are shown as the documents are.
fn check_consolidated(text: &[u8], format: ZarrFormat, shown: ArrayForm) {
    let mut edit = |copied: Copied, _: &str, copy: &[u8]| {
        if copied != Copied::Array {
            return EntryEdit::Keep;
        }
        let shown = parse(copy, format).and_then(|array| render::array(copy, &array, shown).ok());
        shown.map_or(EntryEdit::Remove, EntryEdit::Replace)
    };
    let edited = match format {
        ZarrFormat::V2 => consolidated::edit_v2,
        _ => consolidated::edit_v3,
    };
    if let Ok(document) = edited(text, &mut edit) {
        let again = edited(&document, &mut edit).expect("it was edited");
        assert_eq!(document, again, "{shown:?}");
    }
}
