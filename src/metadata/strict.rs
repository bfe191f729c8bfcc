//! Documents that every reader of their version opens.
//!
//! The parsers of this crate accept documents of many writers, with missing members, unknown members, and old
//! spellings. A document that is written through a mount must have none of these, because a strict reader, such as
//! tensorstore, refuses them, and another one may read other values.
//!
//! A fault that the writer was shown in the document, and that is still there unchanged, is not judged.
//!
//! Sources: Zarr v2, section "Metadata"; Zarr v3 core, section "Array metadata"; numcodecs 0.16 and
//! zarr-extensions for the members of configurations.

use serde_json::value::RawValue;

use super::carry::{differences, is_same};
use super::codecs::{self, Numcodec, RegisteredCodec, members::check_known};
use super::document::JsonDocument;
use super::json::{self, Extension, Json, Members};
use super::whole_numbers::parameter;
use super::{ArrayMetadata, ZarrFormat};
use crate::dtype::Element;
use crate::error::FormatError;

/// The members that readers of v2 require. Those of v3 are required by its parser, too.
const REQUIRED_V2: [&str; 8] = [
    "zarr_format",
    "shape",
    "chunks",
    "dtype",
    "compressor",
    "fill_value",
    "order",
    "filters",
];

/// Refuses `written`, the document of an array of v2 or v3 that was parsed into `metadata`, where a reader
/// of its version may refuse it or read other values. `shown` is what its writer has changed; `None` for a
/// new document.
///
/// # Errors
/// One that names the member.
pub fn check_array(
    metadata: &ArrayMetadata,
    written: &[u8],
    shown: Option<&[u8]>,
) -> Result<(), FormatError> {
    let changed = shown.map(|shown| differences(shown, written)).transpose()?;
    let is_judged = |name: &str| {
        let changed = changed.as_ref();
        changed.is_none_or(|changed| changed.iter().any(|member| member == name))
    };
    let document = JsonDocument::parse(written)?;
    let root = document.root()?;
    if metadata.zarr_format == ZarrFormat::V2 {
        for name in REQUIRED_V2.into_iter().filter(|name| is_judged(name)) {
            root.require(name)?;
        }
    }
    for (name, value) in root.iter().filter(|(name, _)| is_judged(name)) {
        let checked = match metadata.zarr_format {
            ZarrFormat::V2 => check_member_v2(metadata, name, value),
            _ => check_member_v3(metadata, name, value),
        };
        checked.map_err(|error| error.within(name))?;
    }
    Ok(())
}

/// Refuses `written`, the new document of a node of v3, if it has a list in place of attributes.
///
/// # Errors
/// One that names the member.
pub fn check_attributes_v3(written: &[u8]) -> Result<(), FormatError> {
    let document = JsonDocument::parse(written)?;
    let attributes = document.root()?.read_some("attributes", check_attributes);
    attributes.map(drop)
}

fn check_member_v2(
    metadata: &ArrayMetadata,
    name: &str,
    value: &RawValue,
) -> Result<(), FormatError> {
    match name {
        "zarr_format" => check_whole(value),
        "shape" | "chunks" => check_all_whole(value),
        "order" if value.get() == "null" => Err(json::mismatch(value, "\"C\" or \"F\"")),
        "dtype" => check_typestring(value),
        "fill_value" => check_fill_value(metadata, value),
        "compressor" => check_numcodecs(value),
        "filters" if value.get() != "null" => json::list(value, "a list", check_numcodecs),
        _ => Ok(()),
    }
}

/// Refuses `value`, the member `name` of an array of v3, as [`check_array`] does.
pub(super) fn check_member_v3(
    metadata: &ArrayMetadata,
    name: &str,
    value: &RawValue,
) -> Result<(), FormatError> {
    match name {
        "zarr_format" => check_whole(value),
        "shape" => check_all_whole(value),
        "data_type" if value.get().starts_with('{') => {
            let spec = Extension::of(value, "a data type")?;
            if spec.configuration.iter().next().is_none() {
                return Err(json::mismatch(value, "the name alone"));
            }
            for (name, value) in spec.configuration.iter() {
                check_parameter(name, value).map_err(|error| error.within("configuration"))?;
            }
            check_extension(value, None)
        }
        "chunk_grid" => {
            let grid = Extension::of(value, "a chunk grid")?;
            let known = match grid.name.as_str() {
                "regular" => {
                    let lengths = grid.configuration.require("chunk_shape")?;
                    check_all_whole(lengths)?;
                    Some(&["chunk_shape"][..])
                }
                "rectilinear" => {
                    check_chunk_shapes(grid.configuration.require("chunk_shapes")?)?;
                    Some(&["kind", "chunk_shapes"][..])
                }
                _ => None,
            };
            check_extension(value, known)
        }
        "chunk_key_encoding" => {
            check_extension(value, Some(&["separator"]))?;
            let encoding = Extension::of(value, "a chunk key encoding")?;
            match encoding.configuration.get("separator") {
                Some(separator) if separator.get() == "null" => {
                    Err(json::mismatch(separator, "\".\" or \"/\"")
                        .within("configuration.separator"))
                }
                _ => Ok(()),
            }
        }
        "fill_value" => check_fill_value(metadata, value),
        "attributes" => check_attributes(value),
        "codecs" => check_codecs(metadata, value),
        _ => Ok(()),
    }
}

/// Refuses a list in place of attributes.
fn check_attributes(value: &RawValue) -> Result<(), FormatError> {
    if value.get().starts_with('[') {
        return Err(json::mismatch(value, "an object"));
    }
    Ok(())
}

/// Refuses a number that is spelled as a float.
fn check_whole(value: &RawValue) -> Result<(), FormatError> {
    match value.get().parse::<i128>() {
        Ok(_) => Ok(()),
        Err(_) => Err(json::mismatch(
            value,
            "a number that is spelled as an integer",
        )),
    }
}

/// Refuses a list that has numbers which are spelled as floats.
fn check_all_whole(value: &RawValue) -> Result<(), FormatError> {
    json::list(value, "a list", check_whole)
}

/// Refuses lengths of chunks, and runs of them, that are not spelled as whole numbers.
fn check_chunk_shapes(value: &RawValue) -> Result<(), FormatError> {
    json::list(value, "a list", |axis| match Json::of(axis)? {
        Json::Array(items) => json::each(items, |item| match Json::of(item)? {
            Json::Array(run) => json::each(run, check_whole),
            _ => check_whole(item),
        }),
        _ => check_whole(axis),
    })
}

/// Refuses the text of a number.
fn check_fill_value(metadata: &ArrayMetadata, value: &RawValue) -> Result<(), FormatError> {
    let element = metadata
        .decoding
        .as_ref()
        .map(|known| &known.data_type.element);
    let is_plain = matches!(element, Ok(Element::Integer(_) | Element::Bool));
    if is_plain && value.get().starts_with('"') {
        return Err(json::mismatch(value, "a value that is no string"));
    }
    Ok(())
}

/// Refuses a type of `NumPy` that names no byte order.
fn check_typestring(value: &RawValue) -> Result<(), FormatError> {
    // A stack, because types may nest.
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match Json::of(value)? {
            Json::Array(fields) => {
                for field in fields {
                    left.extend(json::array(field, "a field")?.get(1));
                }
            }
            // tensorstore writes the names of types that NumPy lacks, which are words.
            Json::String(name)
                if name.starts_with('=')
                    || name.as_bytes().get(1).is_some_and(u8::is_ascii_digit) =>
            {
                let expected = "a type that begins with its byte order: <, > or |";
                return Err(json::mismatch(value, expected));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses an extension that is a name alone, and members that readers do not know. Those of its
/// configuration are `known`, or are not judged.
fn check_extension(value: &RawValue, known: Option<&[&str]>) -> Result<(), FormatError> {
    let members = json::object(value, "an object of name and configuration")?;
    check_known(&members, &["name", "configuration"])?;
    if let Some(value) = members
        .get("configuration")
        .filter(|value| value.get() == "null")
    {
        return Err(json::mismatch(value, "an object").within("configuration"));
    }
    let configuration = Extension::of(value, "an extension")?.configuration;
    known.map_or(Ok(()), |known| {
        check_known(&configuration, known).map_err(|error| error.within("configuration"))
    })
}

/// Refuses codecs that have unknown members, or are not in the spelling of the final specification.
fn check_codecs(metadata: &ArrayMetadata, value: &RawValue) -> Result<(), FormatError> {
    let codecs = every_codec(value)?;
    for (i, codec) in &codecs {
        let checked = known_members(&codec.name)
            .map_or(Ok(()), |known| check_known(&codec.configuration, known));
        checked.map_err(|error| error.within("configuration").within(&format!("[{i}]")))?;
    }
    if let Ok(decoding) = &metadata.decoding
        && !say(&codecs, &every_codec(codecs::parse(&decoding.pipeline)?)?)?
    {
        let expected = format!("the spelling of v3: {}", decoding.pipeline);
        return Err(json::mismatch(value, &expected));
    }
    for (i, codec) in &codecs {
        let checked = check_extension(codec.text, None);
        checked.map_err(|error| error.within(&format!("[{i}]")))?;
    }
    Ok(())
}

/// The codecs of a list, those inside of others included, with their places in their lists.
fn every_codec(value: &RawValue) -> Result<Vec<(usize, Extension<'_>)>, FormatError> {
    let mut found = Vec::new();
    // A stack, because shards may nest.
    let mut left = vec![value];
    while let Some(list) = left.pop() {
        for (i, codec) in codecs::list(list)?.into_iter().enumerate() {
            if codecs::has_inner_codecs(&codec) {
                let inner = INNER.iter();
                left.extend(inner.filter_map(|name| codec.configuration.get(name)));
            }
            found.push((i, codec));
        }
    }
    Ok(found)
}

/// The members of codecs that are lists of codecs.
const INNER: [&str; 2] = ["codecs", "index_codecs"];

/// Whether the codecs `written` are the `canonical` ones. Parameters may be missing: their writers leave some out, and most
/// readers have defaults for these.
fn say(
    written: &[(usize, Extension<'_>)],
    canonical: &[(usize, Extension<'_>)],
) -> Result<bool, FormatError> {
    let mut are_same = written.len() == canonical.len();
    for ((_, written), (_, canonical)) in written.iter().zip(canonical) {
        are_same &= written.name == canonical.name;
        for (name, _) in written.configuration.iter() {
            if codecs::has_inner_codecs(written) && INNER.contains(&name) {
                continue;
            }
            let [value, canonical] =
                [written, canonical].map(|codec| codec.configuration.get(name));
            are_same &= match value.zip(canonical) {
                Some(values) => is_same("codecs", values)?,
                None => false,
            };
        }
    }
    Ok(are_same)
}

/// Refuses a parameter that has whole numbers which are spelled as floats.
fn check_parameter(name: &str, value: &RawValue) -> Result<(), FormatError> {
    let spelled = parameter(name, value);
    if spelled == value.get() {
        return Ok(());
    }
    Err(json::mismatch(value, &spelled).within(name))
}

/// Refuses a filter or a compressor of v2 that has unknown members.
pub(super) fn check_numcodecs(value: &RawValue) -> Result<(), FormatError> {
    if value.get() == "null" {
        return Ok(());
    }
    let members = json::object(value, "an object with an id")?;
    let id = members.read("id", |id| json::string(id, "a name"))?;
    members_of_numcodecs(&id).map_or(Ok(()), |known| check_but_for_id(&members, known))
}

fn check_but_for_id(members: &Members<'_>, known: &[&str]) -> Result<(), FormatError> {
    check_known(members, &[&["id"], known].concat())
}

/// The members of the configuration of the codec `name` of v3; `None` if they are not judged.
pub(super) fn known_members(name: &str) -> Option<&'static [&'static str]> {
    match name.strip_prefix("numcodecs.") {
        Some(id) => members_of_numcodecs(id),
        None => RegisteredCodec::of_name(name)?.members,
    }
}

/// The parameters of the codec `id` of numcodecs; `None` if they are not judged.
pub(super) fn members_of_numcodecs(id: &str) -> Option<&'static [&'static str]> {
    match id {
        "vlen-array" => Some(&["dtype"]),
        "vlen-utf8" | "vlen-bytes" => Some(&[]),
        _ => Numcodec::of_id(id)?.members,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{NodeMetadata, v2, v3};

    const V2: &str = r#"{"zarr_format": 2, "shape": [8, 8], "chunks": [4, 4], "dtype": "<i4",
        "compressor": {"id": "zstd", "level": 1}, "fill_value": 0, "order": "C", "filters": null, "mine": 1}"#;
    const V3: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}]}"#;

    fn check(text: &str, shown: Option<&str>) -> Result<(), String> {
        let metadata = match v3::parse(text.as_bytes()) {
            Ok(NodeMetadata::Array(metadata)) => *metadata,
            _ => v2::parse_array(text.as_bytes()).unwrap(),
        };
        let checked = check_array(&metadata, text.as_bytes(), shown.map(str::as_bytes));
        checked.map_err(|error| error.to_string())
    }

    #[test]
    fn what_strict_readers_do_not_take_is_refused_by_its_member() {
        assert_eq!((check(V2, None), check(V3, None)), (Ok(()), Ok(())));
        for (text, from, to, member) in [
            (V2, r#""order": "C", "#, "", "order"),
            (V2, r#""C""#, "null", "order"),
            (V2, r#", "filters": null"#, "", "filters"),
            (
                V2,
                r#""compressor": {"id": "zstd", "level": 1},"#,
                "",
                "compressor",
            ),
            (
                V2,
                r#""level": 1"#,
                r#""level": 1, "more": 2"#,
                "compressor.more",
            ),
            (
                V2,
                r#""filters": null"#,
                r#""filters": [{"id": "delta", "dtype": "<i4", "x": 1}]"#,
                "filters[0].x",
            ),
            (V2, "<i4", "i4", "dtype"),
            (V2, "<i4", "=i4", "dtype"),
            (V2, "[4, 4]", "[4.0, 4]", "chunks[0]"),
            (
                V2,
                r#""zarr_format": 2"#,
                r#""zarr_format": 2.0"#,
                "zarr_format",
            ),
            (
                V2,
                r#""fill_value": 0"#,
                r#""fill_value": "0""#,
                "fill_value",
            ),
            (V3, "[8]", "[8.0]", "shape[0]"),
            (
                V3,
                r#""shape""#,
                r#""attributes": [], "shape""#,
                "attributes",
            ),
            (
                V3,
                r#""chunk_shape": [4]"#,
                r#""chunk_shape": [4], "more": 1"#,
                "chunk_grid.configuration.more",
            ),
            (
                V3,
                r#""name": "regular""#,
                r#""name": "regular", "more": 1"#,
                "chunk_grid.more",
            ),
            (
                V3,
                r#""separator": "/""#,
                r#""separator": "/", "more": 1"#,
                "chunk_key_encoding.configuration.more",
            ),
            (
                V3,
                r#"{"name": "default", "configuration": {"separator": "/"}}"#,
                r#""default""#,
                "chunk_key_encoding",
            ),
            (
                V3,
                r#""level": 1"#,
                r#""level": 1, "more": 2"#,
                "codecs[1].configuration.more",
            ),
            (
                V3,
                r#"{"name": "gzip""#,
                r#"{"must_understand": true, "name": "gzip""#,
                "codecs[1].must_understand",
            ),
            (V3, r#""name": "bytes""#, r#""name": "endian""#, "codecs"),
            (
                V3,
                r#"{"name": "bytes", "configuration": {"endian": "little"}}, "#,
                "",
                "codecs",
            ),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let error = check(&changed, None).unwrap_err();
            assert!(error.starts_with(&format!("{member}: ")), "{from}: {error}");
            // A fault that the writer was shown is not judged; a fault that the writer makes is.
            assert_eq!(check(&changed, Some(&changed)), Ok(()), "{from}");
            assert_eq!(check(&changed, Some(text)), Err(error), "{from}");
        }
    }

    #[test]
    fn members_that_are_null_and_floats_are_refused() {
        for (from, to, member) in [
            (
                r#""configuration": {"separator": "/"}"#,
                r#""configuration": null"#,
                "chunk_key_encoding.configuration: found null",
            ),
            (
                r#""separator": "/""#,
                r#""separator": null"#,
                "chunk_key_encoding.configuration.separator: found null",
            ),
            (r#""level": 1"#, r#""level": 1.0"#, "codecs: found"),
        ] {
            let error = check(&V3.replacen(from, to, 1), None).unwrap_err();
            assert!(error.starts_with(member), "{error}");
        }
    }

    #[test]
    fn parameters_that_most_readers_need_not_have_may_be_missing() {
        let codec = r#"{"name": "gzip", "configuration": {"level": 1}}"#;
        for other in [
            r#"{"name": "zstd", "configuration": {"level": 1}}"#,
            r#"{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}}"#,
        ] {
            assert_eq!(check(&V3.replace(codec, other), None), Ok(()));
        }
    }

    #[test]
    fn codecs_in_shards_are_judged() {
        let shards = |inner: &str, index: &str| {
            let from = r#"{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}"#;
            V3.replace(from, &format!(r#"{{"name": "sharding_indexed", "configuration": {{"chunk_shape": [2],
                "codecs": [{{"name": "bytes", "configuration": {{"endian": "little"{inner}}}}}],
                "index_codecs": [{{"name": "bytes", "configuration": {{"endian": "little"{index}}}}}]}}}}"#))
        };
        assert_eq!(check(&shards("", ""), None), Ok(()));
        for text in [shards(r#", "more": 1"#, ""), shards("", r#", "more": 1"#)] {
            assert!(
                check(&text, None)
                    .unwrap_err()
                    .contains("configuration.more")
            );
        }
    }
}
