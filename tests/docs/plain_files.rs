//! Whole-array files of small arrays, and what they say of their types.

use std::sync::Arc;

use serde_json::{Value, json};
use zarr_mount::error::FormatError;
use zarr_mount::metadata::Attributes;
use zarr_mount::plain::{
    Array, Axis, ElementKind, FileFormat, Group, Layout, Options, PartContent, Preview, Scope,
    Selected, Strings, StringsLimit, array_file, group_file,
};
use zarr_mount::store::{Key, MemoryStore, Prefix, Store};
use zarr_mount::view::{ArrayOptions, FormatOutcome, View, ViewKind, ViewOptions};

use super::documents::{self, Parsed};
use super::types::{codecs_v3, type_v3};

/// Length of the array that types are tried with, in each dimension.
const SHAPE: [u64; 2] = [32, 64];

/// An array of a type: a name of v3, or a typestr of v2.
pub(crate) fn with_type(name: &str) -> Parsed {
    if name.contains(['<', '>', '|']) {
        let dtype = serde_json::from_str(name).unwrap_or_else(|_| json!(name));
        return documents::v2(&dtype, &[], &Value::Null);
    }
    let (data_type, fill_value) = type_v3(name);
    documents::v3(&data_type, &fill_value, &codecs_v3(name))
}

/// The type as a file describes it, or `no`.
pub(crate) fn found(format: FileFormat, parsed: &Parsed) -> String {
    if format == FileFormat::Jsonl {
        return if is_text(parsed) { "yes" } else { "no" }.to_owned();
    }
    match file_of(format, parsed) {
        Ok(layout) => word(format, &layout),
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("data type"), "{error}");
            "no".to_owned()
        }
    }
}

pub(crate) fn file_of(format: FileFormat, parsed: &Parsed) -> Result<Layout, FormatError> {
    shaped(format, parsed, &SHAPE)
}

pub(crate) fn shaped(
    format: FileFormat,
    parsed: &Parsed,
    shape: &[u64],
) -> Result<Layout, FormatError> {
    let decoding = parsed.array.decoding.as_ref().unwrap();
    // The view reads strings for files of groups only.
    let strings = is_strings(parsed) && !format.has(Scope::Array);
    if decoding.data_type.is_variable() && !strings {
        let name = decoding.data_type.name.as_str();
        return Err(FormatError::inexpressible("data type", name, "any"));
    }
    let words = || {
        let n = shape.iter().product();
        let limit = StringsLimit {
            what: "",
            bytes: 1 << 20,
        };
        Strings::filled(n, b"ab", ElementKind::Text, limit).map(Arc::new)
    };
    let array = Array {
        id: 0,
        name: "a".to_owned(),
        image: None,
        shape: shape.into(),
        data_type: decoding.data_type.clone(),
        strings: strings.then(words).transpose()?,
        fill_value: decoding.fill_value.clone(),
        dimension_names: vec![None; shape.len()],
        attributes: Attributes::default(),
        axes: vec![Axis::default(); shape.len()],
        geo: None,
        fill_is_missing: false,
        chunk: None,
    };
    if format == FileFormat::Png {
        // A PNG is made of decoded elements, and has no layout.
        let preview = Preview::of(&array, &Selected::whole(shape), None);
        return preview.map(|_| Layout::of_bytes(Vec::new()));
    }
    if format.has(Scope::Array) {
        return array_file(format, &array, None);
    }
    let group = Group {
        name: "g".to_owned(),
        arrays: vec![array],
        ..Group::default()
    };
    let file = group_file(format, &group, &Options::default())?;
    match file.omitted.into_iter().next() {
        Some(omitted) => Err(omitted.reason),
        None => Ok(file.layout),
    }
}

/// Whether the elements are strings of any length, and no bytes.
fn is_strings(parsed: &Parsed) -> bool {
    let decoding = parsed.array.decoding.as_ref().unwrap();
    decoding.data_type.name.as_str() == "string"
}

/// Whether the view has a file of JSON lines of the array.
fn is_text(parsed: &Parsed) -> bool {
    let store = MemoryStore::new();
    let key = if parsed.text().contains("node_type") {
        "zarr.json"
    } else {
        ".zarray"
    };
    store.insert(
        Key::parse(key.as_bytes()).unwrap(),
        parsed.text().as_bytes().to_vec(),
    );
    let options = ViewOptions {
        views: vec![ViewKind::Arrays],
        arrays: ArrayOptions {
            files: vec![FileFormat::Jsonl],
            ..ArrayOptions::default()
        },
        ..ViewOptions::default()
    };
    let view = View::new(Arc::new(store) as Arc<dyn Store>, options).unwrap();
    let outcomes = view.arrays().outcomes(&Prefix::root()).unwrap().unwrap();
    matches!(outcomes.as_slice(), [(_, FormatOutcome::File(_))])
}

pub(crate) fn offset_of_elements(layout: &Layout) -> Option<u64> {
    let mut parts = layout.parts().iter();
    let part = parts.find(|part| {
        matches!(
            part.content,
            PartContent::Elements(_) | PartContent::Tiles(_)
        )
    });
    part.map(|part| part.offset)
}

/// The type as the header describes it.
fn word(format: FileFormat, layout: &Layout) -> String {
    // A file without elements is nothing but a header.
    let len = offset_of_elements(layout).unwrap_or(layout.len());
    let mut head = vec![0; usize::try_from(len).unwrap()];
    layout.plan(0, head.len()).fill(layout, &mut head);
    let text = String::from_utf8_lossy(&head);
    let between = |text: &str, start: &str, end: &str| {
        let from = text.find(start).expect(start) + start.len();
        let to = text[from..].find(end).expect(end);
        text[from..from + to].to_owned()
    };
    let number = |at: usize, n: usize| {
        let mut bytes = [0; 8];
        bytes[..n].copy_from_slice(&head[at..at + n]);
        u64::from_le_bytes(bytes)
    };
    match format {
        FileFormat::Raw
        | FileFormat::Nc4
        | FileFormat::H5
        | FileFormat::H5ad
        | FileFormat::Png
        | FileFormat::Jsonl => "yes".to_owned(),
        FileFormat::Npy => between(&text, "'descr': ", ", 'fortran_order'").replace('\'', ""),
        FileFormat::Nhdr => {
            let is_complex = text.contains("kinds: complex");
            times_two(between(&text, "type: ", "\n"), is_complex)
        }
        FileFormat::Mhd => {
            let is_complex = text.contains("ElementNumberOfChannels = 2");
            let name = between(&text, "ElementType = MET_", "\n");
            times_two(name, is_complex)
        }
        FileFormat::Envi => between(&text, "data type = ", "\n"),
        FileFormat::Nc | FileFormat::Nc5 => netcdf(layout),
        FileFormat::Tif => tiff(head[10..].chunks_exact(12).take(head[8].into()), 8),
        FileFormat::OmeTif => between(&text, " Type=\"", "\""),
        FileFormat::GeoTif => {
            let at = usize::try_from(number(8, 8)).unwrap();
            tiff(head[at + 8..].chunks_exact(20).take(head[at].into()), 12)
        }
        FileFormat::Nii => number(70, 2).to_string(),
        FileFormat::Vti => {
            let is_complex = text.contains("NumberOfComponents=\"2\"");
            times_two(between(&text, "<DataArray type=\"", "\""), is_complex)
        }
        FileFormat::Mrc => number(12, 4).to_string(),
        FileFormat::Fits => {
            let bits = between(&text, "BITPIX  =", "NAXIS ").trim().to_owned();
            let zero = if text.contains("BZERO") {
                " + BZERO"
            } else {
                ""
            };
            format!("{bits}{zero}")
        }
    }
}

fn times_two(name: String, is_complex: bool) -> String {
    if is_complex {
        format!("2 {name}")
    } else {
        name
    }
}

/// `16/2`: bits and sample format out of the entries of a directory, which have a value at `value`.
fn tiff<'a>(entries: impl Iterator<Item = &'a [u8]>, value: usize) -> String {
    let values = entries.filter(|entry| {
        [258_u16, 339]
            .iter()
            .any(|tag| entry[..2] == tag.to_le_bytes())
    });
    let values = values.map(|entry| u16::from_le_bytes([entry[value], entry[value + 1]]));
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    values.join("/")
}

/// `NetCDF-4`, or `CDF-2 short`: the last variable of the header ends with type, size and place.
fn netcdf(layout: &Layout) -> String {
    let PartContent::Bytes(header) = &layout.parts()[0].content else {
        panic!("no header");
    };
    if header.starts_with(b"\x89HDF") {
        return "NetCDF-4".to_owned();
    }
    let version = header[3];
    let from_end = match version {
        2 => 16,
        5 => 20,
        other => panic!("CDF-{other}"),
    };
    let names = [
        "byte", "char", "short", "int", "float", "double", "ubyte", "ushort", "uint", "int64",
        "uint64",
    ];
    let code = usize::from(header[header.len() - from_end + 3]);
    let says = |name: &[u8]| header.windows(name.len()).any(|part| part == name);
    let unsigned = if says(b"_Unsigned") {
        ", _Unsigned"
    } else {
        ""
    };
    format!("CDF-{version} {}{unsigned}", names[code - 1])
}
