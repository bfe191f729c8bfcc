use super::*;
use crate::metadata::draft::{self, Generation};
use crate::metadata::render::Shards;
use crate::metadata::write::StoredDocuments;
use crate::metadata::{ArrayMetadata, NodeMetadata};
use crate::metadata::{DocumentName, ZarrFormat, v1, v2, v3};

const ENCODED: ChunkContent = ChunkContent::Encoded(Shards::Keep);
const V3: ShownAs = ShownAs {
    target: Target::V3,
    content: ENCODED,
};
const V2: ShownAs = ShownAs {
    target: Target::V2,
    content: ENCODED,
};

const ZARRAY: &str = r#"{"zarr_format":2, "shape":[9],"chunks":[3],"dtype":"<i4",
 "compressor":{"id":"zstd","level":3},"fill_value":0,"order":"C","filters":null, "mine": 1.50}"#;
const ZARR_JSON: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [9],
 "data_type": "int32", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
 "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}, "fill_value": 0,
 "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
 "dimension_names": ["x"], "attributes": {"a": 1.50}}"#;

fn array_v3(text: &[u8]) -> Result<ArrayMetadata, crate::error::FormatError> {
    match v3::parse(text)? {
        NodeMetadata::Array(array) => Ok(*array),
        NodeMetadata::Group => panic!("a group"),
    }
}

/// The v3 document of a v2 array, with changes.
fn shown_as_v3(attributes: Option<&str>, change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    let source = StoredDocuments {
        document: ZARRAY.as_bytes(),
        attributes: attributes.map(str::as_bytes),
    };
    let metadata = v2::parse_array(ZARRAY.as_bytes()).unwrap();
    let shown = crate::metadata::write::array(&metadata, &source, ENCODED, Target::V3).unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    change(&mut value);
    value.to_string().into_bytes()
}

fn written_v2(attributes: Option<&str>, written: &[u8]) -> Result<NodeDocuments, String> {
    let source = StoredDocuments {
        document: ZARRAY.as_bytes(),
        attributes: attributes.map(str::as_bytes),
    };
    let metadata = v2::parse_array(ZARRAY.as_bytes()).unwrap();
    let written = (DocumentName::ZarrJson, written);
    array(&metadata, &source, V3, written, v2::parse_array).map_err(|error| error.to_string())
}

#[test]
fn a_v2_array_is_resized_as_v3_and_the_rest_stays_as_it_was() {
    let written = shown_as_v3(Some(r#"{"b": 1.50}"#), |document| {
        document["shape"] = 12.into();
        document["shape"] = serde_json::json!([12]);
        document["storage_transformers"] = serde_json::json!([]);
    });
    let new = written_v2(Some(r#"{"b": 1.50}"#), &written).unwrap();
    let expected = ZARRAY.replace("[9]", "[12]");
    assert_eq!(String::from_utf8(new.document).unwrap(), expected);
    assert_eq!(new.attributes.as_deref(), Some(&br#"{"b": 1.50}"#[..]));
}

#[test]
fn attributes_and_names_of_a_v2_array_are_written_as_v3() {
    for (attributes, after, expected) in [
        (None, r#"{"b": 2}"#, Some(r#"{"b": 2}"#)),
        (None, "{}", None),
        (
            Some(r#"{ "b":1.50 }"#),
            r#"{"b": 1.5, "c": []}"#,
            Some(r#"{ "b":1.50, "c": [] }"#),
        ),
        (Some(r#"{"b": 1}"#), "{}", Some("{}")),
        // The names of the dimensions stay while `dimension_names` has them.
        (
            Some(r#"{"_ARRAY_DIMENSIONS": ["x"], "b": 1}"#),
            "{}",
            Some(r#"{"_ARRAY_DIMENSIONS": ["x"]}"#),
        ),
    ] {
        let written = shown_as_v3(attributes, |document| {
            document["attributes"] = serde_json::from_str(after).unwrap();
        });
        let new = written_v2(attributes, &written).unwrap();
        assert_eq!(new.document, ZARRAY.as_bytes());
        let found = new.attributes.map(|text| String::from_utf8(text).unwrap());
        // A space is left where a member was added or removed.
        let compact = |text: &str| text.replace(' ', "");
        assert_eq!(
            found.as_deref().map(compact),
            expected.map(compact),
            "{after}"
        );
    }
    for (names, expected) in [
        (
            serde_json::json!(["t"]),
            Some(r#"{"_ARRAY_DIMENSIONS": ["t"]}"#),
        ),
        (serde_json::Value::Null, None),
    ] {
        let written = shown_as_v3(None, |document| document["dimension_names"] = names.clone());
        let new = written_v2(None, &written).unwrap();
        let found = new.attributes.map(|text| String::from_utf8(text).unwrap());
        assert_eq!(found.as_deref(), expected);
    }
}

#[test]
fn names_of_nczarr_stay_where_the_store_has_them() {
    let nczarr = r#""_NCZARR_ARRAY": {"dimrefs": ["/x"]}, "mine""#;
    let document = ZARRAY.replace("\"mine\"", nczarr);
    let source = StoredDocuments {
        document: document.as_bytes(),
        attributes: None,
    };
    let metadata = v2::parse_array(document.as_bytes()).unwrap();
    let shown = crate::metadata::write::array(&metadata, &source, ENCODED, Target::V3).unwrap();
    let mut shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown["dimension_names"], serde_json::json!(["x"]));
    assert_eq!(shown["attributes"], serde_json::json!({"_FillValue": 0}));
    shown["attributes"]["a"] = 1.into();
    for (name, expected) in [
        ("x", serde_json::json!({"a": 1})),
        ("t", serde_json::json!({"_ARRAY_DIMENSIONS": ["t"], "a": 1})),
    ] {
        shown["dimension_names"] = serde_json::json!([name]);
        let text = shown.to_string();
        let written = (DocumentName::ZarrJson, text.as_bytes());
        let new = array(&metadata, &source, V3, written, v2::parse_array).unwrap();
        assert_eq!(new.document, document.as_bytes());
        let found: serde_json::Value = serde_json::from_slice(&new.attributes.unwrap()).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn what_a_v2_array_cannot_become_is_refused_by_name() {
    let refused = |attributes, change: &dyn Fn(&mut serde_json::Value)| {
        written_v2(attributes, &shown_as_v3(attributes, change)).unwrap_err()
    };
    for (member, value) in [
        ("data_type", serde_json::json!("int64")),
        ("fill_value", serde_json::json!(7)),
        ("shape", serde_json::json!([9, 1])),
        (
            "codecs",
            serde_json::json!([{"name": "bytes", "configuration": {"endian": "little"}}]),
        ),
        ("chunk_key_encoding", serde_json::json!({"name": "default"})),
        ("shape", serde_json::json!([12.0])),
        ("node_type", serde_json::json!("group")),
        ("mine", serde_json::json!({"must_understand": false})),
        ("dimension_names", serde_json::json!([null])),
    ] {
        let found = refused(None, &|document| document[member] = value.clone());
        assert!(
            found.contains(member) || member == "node_type",
            "{member}: {found}"
        );
    }
    let two = Some(r#"{"_ARRAY_DIMENSIONS": ["x"]}"#);
    let found = refused(two, &|document| {
        document["attributes"]["_ARRAY_DIMENSIONS"] = serde_json::json!(["y"]);
    });
    assert!(found.contains("dimension_names"), "{found}");
}

#[test]
fn a_v3_array_is_written_as_v2() {
    let source = StoredDocuments {
        document: ZARR_JSON.as_bytes(),
        attributes: None,
    };
    let metadata = array_v3(ZARR_JSON.as_bytes()).unwrap();
    let write = |name, text: &[u8]| array(&metadata, &source, V2, (name, text), array_v3);
    let zarray = crate::metadata::write::array(&metadata, &source, ENCODED, Target::V2).unwrap();
    let resized = String::from_utf8(zarray).unwrap().replace("[9]", "[4]");
    let new = write(DocumentName::ZArray, resized.as_bytes()).unwrap();
    let expected = ZARR_JSON.replace("[9]", "[4]");
    assert_eq!(String::from_utf8(new.document).unwrap(), expected);
    for (attributes, expected) in [
        (
            r#"{"_ARRAY_DIMENSIONS": ["x"], "a": 1.5, "b": []}"#,
            ZARR_JSON.replace("1.50", "1.50, \"b\": []"),
        ),
        (
            r#"{"_ARRAY_DIMENSIONS": ["y"], "a": 1.5}"#,
            ZARR_JSON.replace(r#"["x"]"#, r#"["y"]"#),
        ),
        (
            r#"{"a": 1.5}"#,
            ZARR_JSON.replace(r#""dimension_names": ["x"], "#, ""),
        ),
    ] {
        let new = write(DocumentName::ZAttrs, attributes.as_bytes()).unwrap();
        let found = String::from_utf8(new.document).unwrap();
        let compact = |text: &str| text.replace([' ', '\n'], "");
        assert_eq!(compact(&found), compact(&expected), "{attributes}");
    }
    for wrong in ["[]", "{", r#"{"_ARRAY_DIMENSIONS": ["x"], "a": }"#] {
        assert!(
            write(DocumentName::ZAttrs, wrong.as_bytes()).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn a_v1_array_is_written_as_v3() {
    let meta = r#"{"zarr_format": 1, "shape": [9], "chunks": [3], "dtype": "<i4",
 "compression": "zlib", "compression_opts": 1, "fill_value": 0, "order": "C"}"#;
    let source = StoredDocuments {
        document: meta.as_bytes(),
        attributes: Some(b"{}"),
    };
    let metadata = v1::parse_array(meta.as_bytes()).unwrap();
    let shown = crate::metadata::write::array(&metadata, &source, ENCODED, Target::V3).unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    value["shape"] = serde_json::json!([10]);
    value["attributes"] = serde_json::json!({"a": 1});
    let written = value.to_string();
    let written = (DocumentName::ZarrJson, written.as_bytes());
    let new = array(&metadata, &source, V3, written, v1::parse_array).unwrap();
    assert_eq!(new.document, meta.replace("[9]", "[10]").as_bytes());
    assert_eq!(new.attributes.as_deref(), Some(&br#"{"a": 1}"#[..]));
}

#[test]
fn groups_have_attributes_only() {
    let stored = StoredDocuments {
        document: br#"{"zarr_format": 2}"#,
        attributes: None,
    };
    let write = |text: &str| {
        let written = (DocumentName::ZarrJson, text.as_bytes());
        group(ZarrFormat::V2, &stored, written).map(|new| new.attributes)
    };
    let with = |attributes: &str| {
        format!(r#"{{"zarr_format": 3, "node_type": "group", "attributes": {attributes}}}"#)
    };
    let new = write(&with(r#"{"a": 1}"#)).unwrap();
    assert_eq!(new.as_deref(), Some(&br#"{"a": 1}"#[..]));
    assert_eq!(write(&with("{}")).unwrap(), None);
    assert!(write(&with("[]")).is_err());
    assert!(write(ZARR_JSON).is_err());
    for nothing in ["", " \n", "null", "[]"] {
        let stored = StoredDocuments {
            attributes: Some(nothing.as_bytes()),
            ..stored
        };
        let text = with(r#"{"a": 1}"#);
        let written = (DocumentName::ZarrJson, text.as_bytes());
        let new = group(ZarrFormat::V2, &stored, written).unwrap();
        assert_eq!(new.attributes.as_deref(), Some(&br#"{"a": 1}"#[..]));
    }
    let stored = StoredDocuments {
        document: br#"{"zarr_format":3, "node_type": "group", "attributes": []}"#,
        attributes: None,
    };
    let written = (DocumentName::ZAttrs, &br#"{"a": 1}"#[..]);
    let new = group(ZarrFormat::V3, &stored, written).unwrap();
    assert!(new.document.ends_with(br#""attributes": {"a": 1}}"#));
    let stored = StoredDocuments {
        document: br#"{"zarr_format":3, "node_type": "group", "mine": {"must_understand": false}}"#,
        attributes: None,
    };
    let written = (DocumentName::ZAttrs, &br#"{"a": 1}"#[..]);
    let new = group(ZarrFormat::V3, &stored, written).unwrap();
    assert!(
        new.document
            .starts_with(&stored.document[..stored.document.len() - 1])
    );
    assert!(new.document.ends_with(br#""attributes": {"a": 1}}"#));
}

#[test]
fn a_new_node_is_stored_in_the_version_of_its_group() {
    let new = |name, text: &str, shown_as, to| {
        new_node((name, text.as_bytes()), None, shown_as, to).map_err(|error| error.to_string())
    };
    let stored = new(DocumentName::ZarrJson, ZARR_JSON, V3, StoredAs::V2).unwrap();
    let metadata = v2::parse_array(&stored.document).unwrap();
    assert_eq!(metadata.shape.as_slice(), [9]);
    let attributes = String::from_utf8(stored.attributes.unwrap()).unwrap();
    assert_eq!(attributes, r#"{"_ARRAY_DIMENSIONS": ["x"], "a": 1.50}"#);
    // xarray opens a variable of v2 without dimensions only if it has the empty list.
    let scalar = ZARR_JSON.replace("[9]", "[]").replace("[3]", "[]");
    let scalar = scalar.replace(r#"["x"]"#, "[]");
    let stored = new(DocumentName::ZarrJson, &scalar, V3, StoredAs::V2).unwrap();
    let attributes = String::from_utf8(stored.attributes.unwrap()).unwrap();
    assert_eq!(attributes, r#"{"_ARRAY_DIMENSIONS": [], "a": 1.50}"#);
    let default = ZARR_JSON.replace(r#""v2""#, r#""default""#);
    let found = new(DocumentName::ZarrJson, &default, V3, StoredAs::V2).unwrap_err();
    assert!(found.contains("chunk_key_encoding"), "{found}");

    let zarray = ZARRAY.replace(", \"mine\": 1.50", "");
    let found = new(DocumentName::ZArray, ZARRAY, V2, StoredAs::V3).unwrap_err();
    assert!(found.contains("mine"), "{found}");
    let stored = new(DocumentName::ZArray, &zarray, V2, StoredAs::V3).unwrap();
    assert_eq!(array_v3(&stored.document).unwrap().shape.as_slice(), [9]);
    let attributes = Some(&br#"{"kept": 1}"#[..]);
    let written = (DocumentName::ZArray, zarray.as_bytes());
    let stored = new_node(written, attributes, V2, StoredAs::V3).unwrap();
    assert!(
        stored
            .document
            .windows(9)
            .any(|part| part == b"\"kept\": 1")
    );

    let group = new(DocumentName::ZAttrs, r#"{"a": 1}"#, V2, StoredAs::V3).unwrap();
    assert!(!group.is_array);
    assert_eq!(v3::parse(&group.document).unwrap(), NodeMetadata::Group);
    assert!(group.document.windows(6).any(|part| part == b"\"a\": 1"));
    let group = new(
        DocumentName::ZGroup,
        r#"{"zarr_format": 2}"#,
        V2,
        StoredAs::V3,
    )
    .unwrap();
    assert_eq!(v3::parse(&group.document).unwrap(), NodeMetadata::Group);
}

#[test]
fn a_new_node_is_stored_in_a_draft() {
    let text = ZARR_JSON.replace(
        r#"{"name": "v2", "configuration": {"separator": "."}}"#,
        r#"{"name": "default", "configuration": {"separator": "/"}}"#,
    );
    let gzip = text.replace(
        r#"{"endian": "little"}}]"#,
        r#"{"endian": "little"}}, {"name": "gzip", "configuration": {"level": 5}}]"#,
    );
    let new = |text: &str, generation| {
        let written = (DocumentName::ZarrJson, text.as_bytes());
        new_node(written, None, V3, StoredAs::Draft(generation))
    };
    for generation in [Generation::Protocol, Generation::Core] {
        for text in [&text, &gzip] {
            let stored = new(text, generation).unwrap();
            let metadata = draft::parse_array(&stored.document, generation).unwrap();
            assert_eq!(metadata.shape.as_slice(), [9]);
            let found = String::from_utf8(stored.document).unwrap();
            assert!(
                found.contains(r#""_ARRAY_DIMENSIONS": ["x"], "a": 1.50"#),
                "{found}"
            );
            assert_eq!(found.contains("gzip/1.0"), *text == gzip, "{found}");
        }
    }
    assert!(new(&text, Generation::Early).is_err());
    let zstd = gzip.replace(
        r#""gzip", "configuration": {"level": 5}"#,
        r#""zstd", "configuration": {"level": 5, "checksum": false}"#,
    );
    assert!(new(&zstd, Generation::Protocol).is_ok());
    assert!(new(&zstd, Generation::Core).is_err());
    let keys = ZARR_JSON;
    let found = new(keys, Generation::Protocol).unwrap_err().to_string();
    assert!(found.contains("chunk_key_encoding"), "{found}");
    let group = br#"{"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}}"#;
    let to = StoredAs::Draft(Generation::Protocol);
    let stored = new_node((DocumentName::ZarrJson, group), None, V3, to).unwrap();
    draft::parse_group(&stored.document).unwrap();
}

/// The fill value, names and attributes that a new array of v2 has in a store of v3, when `.zarray` and `.zattrs` are
/// written in this order.
fn stored_of_new(
    shown_as: ShownAs,
    [zarray, zattrs]: [&str; 2],
    is_array_first: bool,
) -> Result<serde_json::Value, String> {
    let new = |attributes: Option<&str>| {
        let written = (DocumentName::ZArray, zarray.as_bytes());
        let attributes = attributes.map(str::as_bytes);
        new_node(written, attributes, shown_as, StoredAs::V3).map_err(|error| error.to_string())
    };
    let stored = if is_array_first {
        let first = new(None)?;
        let source = StoredDocuments {
            document: &first.document,
            attributes: None,
        };
        let metadata = array_v3(&first.document).unwrap();
        let written = (DocumentName::ZAttrs, zattrs.as_bytes());
        array(&metadata, &source, shown_as, written, array_v3).unwrap()
    } else {
        new(Some(zattrs))?
    };
    let stored: serde_json::Value = serde_json::from_slice(&stored.document).unwrap();
    let names = stored["dimension_names"]
        .as_array()
        .filter(|names| !names.is_empty());
    Ok(serde_json::json!([
        stored["fill_value"],
        names,
        stored["attributes"]
    ]))
}

#[test]
fn the_order_in_which_documents_are_written_does_not_matter() {
    let complete = ShownAs {
        content: ChunkContent::Complete(Shards::Expand),
        target: Target::V2,
    };
    // Shape, type and fill value in v2; fill value, names and attributes in v3.
    let cases = serde_json::json!([
        [[9], "<i4", 0, 0, ["x"], {"n": 1, "_FillValue": 0}],
        [[9], "<i4", -9, -9, ["x"], {"n": 1, "_FillValue": -9}],
        [[9], "<f4", 1.5, 1.5, ["x"], {"n": 1, "_FillValue": "AAAAAAAA+D8="}],
        [[], "<i4", 0, 0, null, {"n": 1, "_FillValue": 0}],
        // If 0 took the place of `null`, xarray would take zeros for missing.
        [[9], "<i4", null],
        [[], "<i4", null],
    ]);
    for case in cases.as_array().unwrap() {
        let zarray = serde_json::json!({
            "zarr_format": 2, "shape": case[0], "chunks": case[0], "dtype": case[1], "compressor": null,
            "fill_value": case[2], "order": "C", "filters": null,
        });
        let names: &[&str] = if case[4].is_null() { &[] } else { &["x"] };
        let zattrs = serde_json::json!({"_ARRAY_DIMENSIONS": names, "n": 1});
        let [zarray, zattrs] = [zarray, zattrs].map(|document| document.to_string());
        for (shown_as, is_array_first) in
            [(V2, false), (V2, true), (complete, false), (complete, true)]
        {
            let found = stored_of_new(shown_as, [&zarray, &zattrs], is_array_first);
            if case[2].is_null() {
                assert!(found.unwrap_err().contains("fill_value"), "{case}");
            } else {
                assert_eq!(
                    found.unwrap(),
                    serde_json::json!(case.as_array().unwrap()[3..]),
                    "{case} {shown_as:?}"
                );
            }
        }
    }
}
