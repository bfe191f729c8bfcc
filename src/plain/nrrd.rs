//! `.nhdr`: a NRRD header beside `NAME.raw`, for ITK-SNAP, Slicer, `ParaView`, teem.
//!
//! ```text
//! NRRD0005
//! type: uint16
//! dimension: 3
//! sizes: 5 4 3                          fastest axis first, as all that follows
//! space dimension: 2                    where all axes are in space, or of channels
//! space units: "um" "um"
//! space directions: (0.5,0.0) (0.0,0.5) none
//! space origin: (0.0,0.0)
//! spacings: 0.5 0.5 30.0                instead, where an axis is of time or of something else
//! axis mins: nan nan 0.0
//! centers: none none node
//! units: "um" "um" "s"
//! kinds: space space list
//! labels: "x" "y" "c"
//! endian: little
//! encoding: raw
//! key:=value                            attributes
//! data file: t.raw
//!                                       (an empty line)
//! ```
//!
//! Complex numbers are an additional fastest axis of length 2 and kind `complex`. Truth values are
//! uint8, and times are int64 with the key/value pair `zarr_units`. An array needs 1 to 16 axes,
//! and none may be empty.
//!
//! Source: "Definition of NRRD File Format", version 5.

use std::fmt::Write;

use super::number::{Scalar, time_units};
use super::{Array, Axis, FileFormat, Layout, raw};
use crate::error::FormatError;
use per_axis::per_axis;

mod attributes;
mod per_axis;
mod space;

/// The most axes.
const MOST_AXES: usize = 16;

pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    Ok(Layout::of_bytes(header(array)?.into_bytes()))
}

fn header(array: &Array) -> Result<String, FormatError> {
    array.n_bytes()?;
    let (number, name) = Scalar::spelled(array, FileFormat::Nhdr, type_name)?;
    let shape: Vec<u64> = array.shape.iter().rev().copied().collect();
    let axes: Vec<&Axis> = array.axes.iter().rev().collect();
    let complex = number.is_complex();
    let rank = shape.len() + usize::from(complex);
    if shape.is_empty() || rank > MOST_AXES || shape.contains(&0) {
        return Err(FileFormat::Nhdr.refused_shape(array));
    }
    let data_file = raw::data_file(&array.name, FileFormat::Nhdr)?;
    let sizes = shape.iter().map(u64::to_string);
    let mut out = String::from("NRRD0005\n");
    let _ = writeln!(out, "type: {name}\ndimension: {rank}");
    per_axis(&mut out, "sizes", complex.then_some("2"), sizes);
    space::fields(&mut out, complex, &axes);
    out.push_str("endian: little\nencoding: raw\n");
    if let Some(units) = time_units(&array.data_type)
        && array.attributes.get("units").is_none()
    {
        attributes::pair(&mut out, "units", &units);
    }
    attributes::pairs(&mut out, &array.attributes);
    let _ = writeln!(out, "data file: {data_file}\n");
    Ok(out)
}

fn type_name(number: Scalar) -> Option<&'static str> {
    Some(match number {
        Scalar::Int8 => "int8",
        Scalar::Bool | Scalar::UInt8 => "uint8",
        Scalar::Int16 => "int16",
        Scalar::UInt16 => "uint16",
        Scalar::Int32 => "int32",
        Scalar::UInt32 => "uint32",
        Scalar::Int64 | Scalar::Time => "int64",
        Scalar::UInt64 => "uint64",
        Scalar::Float32 | Scalar::Complex64 => "float",
        Scalar::Float64 | Scalar::Complex128 => "double",
        Scalar::Float16 => return None,
    })
}

#[cfg(test)]
mod tests;
