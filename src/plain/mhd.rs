//! `.mhd`: a `MetaImage` header beside `NAME.raw`, for programs that use ITK, elastix, `ParaView`.
//!
//! ```text
//! ObjectType = Image
//! NDims = 3
//! BinaryData = True
//! BinaryDataByteOrderMSB = False
//! CompressedData = False
//! Offset = 0.0 0.0 0.0                 where an axis has an origin
//! ElementSpacing = 0.5 0.5 2.0         where an axis has a spacing
//! DimSize = 5 4 3                      fastest axis first, as the two above
//! ElementNumberOfChannels = 2          complex numbers, and a last axis of channels
//! ElementType = MET_USHORT
//! ElementDataFile = t.raw              the last line
//! ```
//!
//! Spacings and origins with a unit of length are converted to millimetres; other units are
//! dropped, and the numbers stay. If some axes in space have a spacing and others have none, no
//! spacings and origins are written. Truth values are `MET_UCHAR`, times are `MET_LONG_LONG`. An array
//! needs 1 to 10 axes, and none may be empty. The format cannot hold attributes.
//!
//! Source: the `MetaIO` documentation of ITK.

use std::fmt::Write;

use super::axes::{are_partly_spaced, units::Unit};
use super::number::Scalar;
use super::{Array, Axis, AxisKind, FileFormat, Layout, raw};
use crate::error::FormatError;

/// The most axes.
const MOST_AXES: usize = 10;

pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    Ok(Layout::of_bytes(header(array)?.into_bytes()))
}

fn header(array: &Array) -> Result<String, FormatError> {
    array.n_bytes()?;
    let (number, name) = Scalar::spelled(array, FileFormat::Mhd, type_name)?;
    let channels = channels(array, number);
    let rank = array.rank() - usize::from(channels.is_some() && !number.is_complex());
    let shape = array.shape.get(..rank).unwrap_or_default();
    let axes = array.axes.get(..rank).unwrap_or_default();
    // MetaIO uses 32-bit integers for lengths and channels.
    let fits = |&length: &u64| length > 0 && i32::try_from(length).is_ok();
    if !(1..=MOST_AXES).contains(&rank) || !array.shape.iter().all(fits) {
        return Err(FileFormat::Mhd.refused_shape(array));
    }
    let data_file = raw::data_file(&array.name, FileFormat::Mhd)?;
    let mut out = format!(
        "ObjectType = Image\nNDims = {rank}\nBinaryData = True\n\
         BinaryDataByteOrderMSB = False\nCompressedData = False\n"
    );
    if !are_partly_spaced(axes) {
        measures(&mut out, "Offset", 0.0, axes, |axis| axis.origin);
        measures(&mut out, "ElementSpacing", 1.0, axes, |axis| axis.spacing);
    }
    let sizes: Vec<String> = shape.iter().rev().map(u64::to_string).collect();
    let _ = writeln!(out, "DimSize = {}", sizes.join(" "));
    if let Some(channels) = channels {
        let _ = writeln!(out, "ElementNumberOfChannels = {channels}");
    }
    let _ = writeln!(out, "ElementType = {name}\nElementDataFile = {data_file}");
    Ok(out)
}

/// The number of channels of one pixel, if there are several.
fn channels(array: &Array, number: Scalar) -> Option<u64> {
    if number.is_complex() {
        return Some(2);
    }
    let is_last = array
        .axes
        .last()
        .is_some_and(|axis| axis.kind == AxisKind::Channel);
    let channels = array.shape.last().copied();
    channels.filter(|_| is_last && array.rank() > 1)
}

/// Writes a number for each axis, in millimetres if it is a length; writes nothing if all are
/// unknown.
fn measures(
    out: &mut String,
    field: &str,
    unknown: f64,
    axes: &[Axis],
    of: impl Fn(&Axis) -> Option<f64>,
) {
    let measure = |axis: &Axis| {
        let value = of(axis)?;
        match axis.unit.as_deref().and_then(Unit::length) {
            Some(unit) => unit.convert(value, Unit::power(-3)),
            None => Some(value),
        }
    };
    let values: Vec<Option<f64>> = axes.iter().rev().map(measure).collect();
    if values.iter().any(Option::is_some) {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("{:?}", value.unwrap_or(unknown)))
            .collect();
        let _ = writeln!(out, "{field} = {}", values.join(" "));
    }
}

fn type_name(number: Scalar) -> Option<&'static str> {
    Some(match number {
        Scalar::Int8 => "MET_CHAR",
        Scalar::Bool | Scalar::UInt8 => "MET_UCHAR",
        Scalar::Int16 => "MET_SHORT",
        Scalar::UInt16 => "MET_USHORT",
        Scalar::Int32 => "MET_INT",
        Scalar::UInt32 => "MET_UINT",
        Scalar::Int64 | Scalar::Time => "MET_LONG_LONG",
        Scalar::UInt64 => "MET_ULONG_LONG",
        Scalar::Float32 | Scalar::Complex64 => "MET_FLOAT",
        Scalar::Float64 | Scalar::Complex128 => "MET_DOUBLE",
        Scalar::Float16 => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::array;
    use super::*;

    #[test]
    fn lengths_are_millimetres() {
        let mut array = array("t", r#""<u2""#, &[7, 3, 4, 5]);
        let units = ["second", "micrometer", "micrometer", "nanometer"];
        for ((axis, unit), spacing) in array.axes.iter_mut().zip(units).zip([3.0, 0.65, 2.0, 5.0]) {
            axis.unit = Some(unit.to_owned());
            axis.spacing = Some(spacing);
        }
        array.axes[1].origin = Some(-500.0);
        let expected = "ObjectType = Image\nNDims = 4\nBinaryData = True\n\
                        BinaryDataByteOrderMSB = False\nCompressedData = False\n\
                        Offset = 0.0 0.0 -0.5 0.0\nElementSpacing = 5e-6 0.002 0.00065 3.0\n\
                        DimSize = 5 4 3 7\nElementType = MET_USHORT\nElementDataFile = t.raw\n";
        assert_eq!(header(&array).unwrap(), expected);
        for axis in &mut array.axes[1..] {
            axis.kind = AxisKind::Space;
        }
        assert_eq!(header(&array).unwrap(), expected);
        array.axes[2].spacing = None;
        let told = header(&array).unwrap();
        assert!(
            !told.contains("Offset") && !told.contains("Spacing"),
            "{told}"
        );
    }

    #[test]
    fn channels_and_complex_parts_are_of_one_element() {
        let mut rgb = array("rgb", r#""|u1""#, &[4, 5, 3]);
        rgb.axes[2].kind = AxisKind::Channel;
        let complex = array("z", r#""<c16""#, &[4, 5]);
        for (array, name, channels) in [(rgb, "UCHAR", 3), (complex, "DOUBLE", 2)] {
            let end = format!(
                "DimSize = 5 4\nElementNumberOfChannels = {channels}\n\
                 ElementType = MET_{name}\nElementDataFile = {}.raw\n",
                array.name
            );
            assert!(header(&array).unwrap().ends_with(&end));
        }
    }

    #[test]
    fn what_metaimage_lacks_is_refused_by_name() {
        for (name, typestr, shape, found) in [
            ("t", r#""<f2""#, &[1][..], "data type: `<f2`"),
            ("t", r#""bfloat16""#, &[1], "data type: `bfloat16`"),
            ("t", r#""<u2""#, &[], "shape: `[]`"),
            ("t", r#""<u2""#, &[3, 0], "shape: `[3, 0]`"),
            ("t", r#""<u2""#, &[1; 11], "shape: `[1, 1"),
            ("t", r#""|u1""#, &[1 << 31], "shape: `[2147483648]`"),
            ("a\nb", r#""<u2""#, &[1], "name: `a\\nb`"),
        ] {
            let error = layout(&array(name, typestr, shape))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(found), "{error}");
        }
    }
}
