//! The conventions of `anndata`: attributes as h5py writes them, in which the library stores what an
//! object is (`encoding-type`), the order of columns, shapes and more.
//!
//! | JSON | becomes |
//! |---|---|
//! | `true`, `false` | an enum of `FALSE` and `TRUE` |
//! | string | a string of any length |
//! | integer, float | a scalar of 64 bits |
//! | list of one of these | a list; of integers and floats, of floats |
//! | `[]` | a list of no floats |
//! | object, other list | text: compact JSON |
//! | `null` | nothing |
//!
//! Elements of the encoding `null` have no value: their dataspace is null.
//!
//! Source: "On-disk format", in the documentation of `anndata`.

use std::collections::HashSet;

use super::block::{FileBlock, FileBlocks};
use super::datatype;
use super::header::{Datatype, ObjectHeader};
use super::heap::Heap;
use crate::dtype::ByteOrder;
use crate::error::FormatError;
use crate::metadata::{Attributes, JsonTree};
use crate::plain::cf::attributes::{OMITTED, exact};
use crate::plain::{Array, FileFormat, Group, Omitted};

/// The attribute that says what an element is.
const ENCODING: &str = "encoding-type";

/// Whether a group with these attributes holds an `AnnData` object.
pub(in crate::plain) fn is_anndata(attributes: &Attributes) -> bool {
    attributes.text(ENCODING) == Some("anndata")
}

/// Whether `array` stands for "no value", for which HDF5 has the null dataspace and Zarr has
/// nothing.
pub(super) fn is_null(array: &Array) -> bool {
    array.attributes.text(ENCODING) == Some("null")
}

/// Whether `array` in `group` stands for missing raw data. The library writes no object for these
/// into HDF5, and a file that has one cannot be opened in parts (`backed`).
pub(super) fn is_no_raw(group: &Group, array: &Array) -> bool {
    array.name == "raw" && is_null(array) && is_anndata(&group.attributes)
}

/// Checks that the library can open `group` with these `members` and without `omitted`: an element
/// of several parts, such as a sparse matrix, needs all of them, and a table all of its columns.
///
/// # Errors
///
/// The reason why a part is not in the file.
pub(super) fn check_parts(
    group: &Group,
    members: &HashSet<&str>,
    omitted: Option<&Omitted>,
) -> Result<(), FormatError> {
    let encoding = group.attributes.text(ENCODING);
    // Any members are complete here: only the user knows which ones there should be.
    if matches!(encoding, None | Some("anndata" | "dict")) {
        return Ok(());
    }
    if let Some(omitted) = omitted {
        return Err(omitted.reason.clone());
    }
    if encoding == Some("dataframe") {
        let index = group.attributes.get("_index").into_iter();
        let columns = group.attributes.get("column-order");
        let columns = columns.and_then(JsonTree::as_list).unwrap_or_default();
        for column in index.chain(columns).filter_map(JsonTree::as_text) {
            if !members.contains(column) {
                return Err(FormatError::document(column, "this column is not shown"));
            }
        }
    }
    Ok(())
}

/// The items of a value, in one type.
enum Items {
    /// Elements of `datatype`, one after the other.
    Fixed { datatype: Vec<u8>, bytes: Vec<u8> },
    /// Strings, without NUL.
    Texts(Vec<String>),
}

/// `error` with the `place` of the object or attribute because of which there is no file.
pub(super) fn at(place: &str, error: &FormatError) -> FormatError {
    FormatError::document(place.trim_end_matches('/'), error.to_string())
}

/// Adds `attributes`.
///
/// # Errors
///
/// When an attribute cannot be added, because the library does not open a file without it, or when
/// the headers of the file become too large.
pub(super) fn add_all(
    header: &mut ObjectHeader,
    attributes: &Attributes,
    heap: &mut Heap,
    blocks: &mut FileBlocks,
) -> Result<(), FormatError> {
    for (name, json) in attributes.iter() {
        if *json == JsonTree::Null || name == OMITTED {
            continue;
        }
        if name.is_empty() || name.contains('\0') {
            return Err(FileFormat::H5ad.refused("attribute", name));
        }
        add(header, name, json, heap, blocks).map_err(|error| at(name, &error))?;
    }
    Ok(())
}

fn add(
    header: &mut ObjectHeader,
    name: &str,
    json: &JsonTree,
    heap: &mut Heap,
    blocks: &mut FileBlocks,
) -> Result<(), FormatError> {
    let items = match json {
        JsonTree::List(list) => items_of(list)?,
        one => items_of(std::slice::from_ref(one))?,
    };
    let length = json.as_list().map(|list| list.len() as u64);
    // An object, or a list without a common type, becomes one text.
    let (items, length) = match items {
        Some(items) => (items, length),
        None => (Items::Texts(vec![json.to_string()]), None),
    };
    let (datatype, value) = match items {
        Items::Fixed { datatype, bytes } => (datatype, FileBlock::of(&bytes)),
        Items::Texts(texts) => {
            let mut value = FileBlock::default();
            for text in &texts {
                heap.push_string(&mut value, text.as_bytes(), blocks)?;
            }
            (datatype::any_text()?, value)
        }
    };
    let shape = length.as_slice();
    header.attribute(name, &Datatype::Inline(datatype), Some(shape), &value)
}

/// The items of a list, if they are of one type; an empty list is one of floats.
fn items_of(list: &[JsonTree]) -> Result<Option<Items>, FormatError> {
    let text = |item: &JsonTree| {
        let text = item.as_text().filter(|text| !text.contains('\0'));
        text.map(str::to_owned)
    };
    let truth = |item: &JsonTree| match item {
        JsonTree::Bool(truth) => Some(u8::from(*truth)),
        _ => None,
    };
    let integer = |item: &JsonTree| match item {
        JsonTree::Integer(value) => Some(*value),
        _ => None,
    };
    let float = |item: &JsonTree| match *item {
        JsonTree::Float(value) => Some(value),
        JsonTree::Integer(value) => exact(value),
        _ => None,
    };
    let signed = |item: &JsonTree| integer(item).and_then(|value| i64::try_from(value).ok());
    let unsigned = |item: &JsonTree| integer(item).and_then(|value| u64::try_from(value).ok());

    let fixed = |datatype, bytes| Ok(Some(Items::Fixed { datatype, bytes }));
    let order = ByteOrder::Little;
    if list.is_empty() {
        return fixed(datatype::ieee(8, order)?, Vec::new());
    }
    if let Some(bytes) = each(list, |item| truth(item).map(|truth| [truth])) {
        return fixed(datatype::bool_enum()?, bytes);
    }
    if let Some(bytes) = each(list, |item| signed(item).map(i64::to_le_bytes)) {
        return fixed(datatype::integer(8, true, order)?, bytes);
    }
    if let Some(bytes) = each(list, |item| unsigned(item).map(u64::to_le_bytes)) {
        return fixed(datatype::integer(8, false, order)?, bytes);
    }
    if let Some(bytes) = each(list, |item| float(item).map(f64::to_le_bytes)) {
        return fixed(datatype::ieee(8, order)?, bytes);
    }
    let texts = list.iter().map(text).collect::<Option<Vec<_>>>();
    Ok(texts.map(Items::Texts))
}

/// The bytes of all items, if all of them have some.
fn each<const N: usize>(
    list: &[JsonTree],
    of_one: impl Fn(&JsonTree) -> Option<[u8; N]>,
) -> Option<Vec<u8>> {
    let all: Option<Vec<[u8; N]>> = list.iter().map(of_one).collect();
    all.map(|all| all.concat())
}
