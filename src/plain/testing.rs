//! Helpers for the tests of the formats: arrays of any type, and whole files.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{Array, Axis, ElementKind, Elements, Layout, Strings, StringsLimit};
use crate::dtype::{DataType, Element, FillValue, Variable};
use crate::error::FormatError;
use crate::grid::indices_of;
use crate::metadata::Attributes;

/// An array of the `NumPy` type `typestr` (JSON: `"<i4"` in quotes, or a list of fields).
pub(super) fn array(name: &str, typestr: &str, shape: &[u64]) -> Array {
    let typestr = RawValue::from_string(typestr.to_owned()).unwrap();
    let (data_type, _) = DataType::parse_v2(&typestr).unwrap();
    Array {
        id: 0,
        name: name.to_owned(),
        image: None,
        shape: shape.into(),
        fill_value: FillValue::undefined(&data_type),
        data_type,
        strings: None,
        dimension_names: vec![None; shape.len()],
        attributes: Attributes::default(),
        axes: vec![Axis::default(); shape.len()],
        geo: None,
        fill_is_missing: false,
        chunk: None,
    }
}

/// An array of strings of any length, along a dimension of its own name; `id` is its index in the
/// list of all arrays.
pub(super) fn strings(id: usize, name: &str, all: &[&str]) -> Array {
    let mut array = array(name, "\"|u1\"", &[all.len() as u64]);
    array.id = id;
    array.dimension_names = vec![Some(name.to_owned())];
    let limit = StringsLimit {
        what: "",
        bytes: 1 << 24,
    };
    let n = all.len() as u64;
    let mut strings = Strings::filled(n, b"", ElementKind::Text, limit).unwrap();
    for (rank, text) in (0..).zip(all) {
        strings.put(rank, text.as_bytes()).unwrap();
    }
    array.data_type.element = Element::Variable(Variable::Text);
    array.strings = Some(Arc::new(strings));
    array
}

/// Attributes from JSON.
pub(super) fn attributes(json: &str) -> Attributes {
    Attributes::parse(json.as_bytes()).unwrap()
}

/// Decoded elements of `array` in C order: bytes that count up, and differ for each `seed`.
pub(super) fn counting(array: &Array, seed: u8) -> Vec<u8> {
    let n = usize::try_from(array.n_bytes().unwrap()).unwrap();
    (0..n)
        .map(|i| u8::try_from(i % 251).unwrap() ^ seed.wrapping_mul(37))
        .collect()
}

/// Reads the bytes `offset..offset + len` of the file; `arrays` are the arrays, by `id`, with their
/// decoded elements.
pub(super) fn read(
    layout: &Layout,
    arrays: &[(&Array, &[u8])],
    offset: u64,
    len: usize,
) -> Vec<u8> {
    let mut out = vec![0xee; len];
    layout
        .read(offset, &mut out, |elements, from, to| {
            let (array, bytes) = arrays[elements.array];
            fetch(array, bytes, elements, from, to);
            Ok::<(), FormatError>(())
        })
        .unwrap();
    out
}

/// Reads the whole file.
pub(super) fn whole(layout: &Layout, arrays: &[(&Array, &[u8])]) -> Vec<u8> {
    let len = usize::try_from(layout.len()).unwrap();
    read(layout, arrays, 0, len)
}

/// Compares reads of many ranges with the file as a whole.
pub(super) fn check_slices(layout: &Layout, arrays: &[(&Array, &[u8])]) {
    let all = whole(layout, arrays);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..300 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let start = (state >> 33) as usize % (all.len() + 1);
        let len = (state >> 17) as usize % 97 % (all.len() - start + 1);
        let part = read(layout, arrays, start as u64, len);
        assert_eq!(part, all[start..start + len], "{len} bytes at {start}");
    }
}

/// The reference implementation, which copies one byte at a time.
fn fetch(array: &Array, bytes: &[u8], elements: &Elements, from: u64, to: &mut [u8]) {
    let size = array.data_type.item_size;
    let (start, shape) = match &elements.bounds {
        Some(bounds) => (bounds.start.to_vec(), &bounds.shape),
        None => (vec![0; array.rank()], &array.shape),
    };
    let file_shape: Vec<u64> = elements.order.iter().map(|&axis| shape[axis]).collect();
    for (i, byte) in to.iter_mut().enumerate() {
        let at = from + i as u64;
        let in_file = indices_of(at / size, &file_shape).unwrap();
        let mut indices = vec![0; array.rank()];
        for (&axis, &index) in elements.order.iter().zip(&in_file) {
            indices[axis] = start[axis] + index;
        }
        let rank = indices
            .iter()
            .zip(&array.shape)
            .fold(0, |rank, (&index, &length)| rank * length + index);
        *byte = bytes[usize::try_from(rank * size + at % size).unwrap()];
    }
}
