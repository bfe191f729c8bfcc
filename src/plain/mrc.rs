//! MRC2014: images, image stacks and volumes of electron microscopy.
//!
//! ```text
//! 0     nx, ny, nz, mode       i32
//! 28    mx, my, mz             i32   cells; mz is 1 for a stack
//! 40    cell                   3 f32, angstrom; 0 where voxel sizes are not known
//! 52    angles                 3 f32 = 90
//! 64    axes                   1, 2, 3
//! 76    least, most, mean      0, -1, -2: not known; rms at 216: -1
//! 88    space group            1 volume, 0 image or stack of images
//! 108   version                20140
//! 196   origin                 3 f32, angstrom
//! 208   "MAP ", 44 44 00 00    little-endian
//! 220   labels, 224 the first of them
//! 1024  elements, x fastest
//! ```
//!
//! <https://www.ccpem.ac.uk/mrc_format/mrc2014.php>

use super::axes::{Axis, AxisKind, units::Unit};
use super::number::Scalar;
use super::{Array, Elements, FileFormat, Layout};
use crate::error::FormatError;

/// Size of the header in bytes.
const HEADER: usize = 1024;

/// Lays out `array` as a file.
pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let (number, mode) = Scalar::spelled(array, FileFormat::Mrc, mode)?;
    let axes = axes_of(array).ok_or_else(|| FileFormat::Mrc.refused_shape(array))?;
    let header = header(array, mode, &axes)?;
    Layout::of_header(header, 1, Elements::all(array, number.transform())?)
}

/// The mode (code) of a type. Bytes are signed in MRC, so `uint8` has none.
fn mode(number: Scalar) -> Option<i32> {
    Some(match number {
        Scalar::Int8 => 0,
        Scalar::Int16 => 1,
        Scalar::UInt16 => 6,
        Scalar::Float16 => 12,
        Scalar::Float32 => 2,
        Scalar::Complex64 => 4,
        _ => return None,
    })
}

/// The axes x, y and, if there are three, z. Surplus axes of length 1 are left out; `None` if there
/// are too many others, or no elements.
fn axes_of(array: &Array) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = (0..array.rank()).collect();
    while axes.len() > 3 {
        let outer = axes.iter().take(axes.len() - 2);
        let extra = outer
            .map(|&axis| array.shape.get(axis))
            .position(|n| n == Some(&1));
        axes.remove(extra?);
    }
    axes.reverse();
    let is_image = (2..=3).contains(&axes.len()) && !array.shape.contains(&0);
    is_image.then_some(axes)
}

fn header(array: &Array, mode: i32, axes: &[usize]) -> Result<Vec<u8>, FormatError> {
    let mut bytes = vec![0; HEADER];
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    let described = |i: usize| axes.get(i).and_then(|&axis| array.axes.get(axis));
    let is_volume = axes.len() == 3
        && !described(2).is_some_and(|z| matches!(z.kind, AxisKind::Time | AxisKind::Channel));
    for i in 0..3 {
        let length = axes.get(i).and_then(|&axis| array.shape.get(axis).copied());
        let n = i32::try_from(length.unwrap_or(1)).map_err(|_| {
            let found = format!("{:?}", array.shape);
            let most = i32::MAX.unsigned_abs();
            FormatError::too_large("the length of a dimension", found, most)
        })?;
        let cells = if i < 2 || is_volume { n } else { 1 };
        let [spacing, origin] = described(i).map_or([0.0; 2], angstroms);
        put(4 * i, &n.to_le_bytes());
        put(28 + 4 * i, &cells.to_le_bytes());
        put(40 + 4 * i, &short(spacing * f64::from(cells)).to_le_bytes());
        put(52 + 4 * i, &90_f32.to_le_bytes());
        put(64 + 4 * i, &[1, 2, 3][i..=i]);
        put(196 + 4 * i, &short(origin).to_le_bytes());
    }
    put(12, &mode.to_le_bytes());
    put(76, &0_f32.to_le_bytes());
    put(80, &(-1_f32).to_le_bytes());
    put(84, &(-2_f32).to_le_bytes());
    put(88, &[u8::from(is_volume)]);
    put(108, &20140_i32.to_le_bytes());
    put(208, b"MAP ");
    put(212, &[0x44, 0x44, 0, 0]);
    put(216, &(-1_f32).to_le_bytes());
    put(220, &[1]);
    put(224, &[b' '; 80]);
    let label = format!("zarr-mount: {}", array.name);
    let printable = |character: char| match character {
        ' '..='~' => u8::try_from(character).unwrap_or(b'?'),
        _ => b'?',
    };
    let label: Vec<u8> = label.chars().take(80).map(printable).collect();
    put(224, &label);
    Ok(bytes)
}

/// Voxel size and origin in angstrom; 0 if they are unknown.
fn angstroms(axis: &Axis) -> [f64; 2] {
    let angstrom = Unit::power(-10);
    let unit = axis.unit.as_deref().and_then(Unit::length);
    let in_angstrom = |value: Option<f64>| unit?.convert(value?, angstrom);
    match in_angstrom(axis.spacing) {
        Some(spacing) => [spacing, in_angstrom(axis.origin).unwrap_or(0.0)],
        None => [0.0; 2],
    }
}

/// `value` in single precision; 0 if it does not fit.
#[expect(clippy::cast_possible_truncation, reason = "MRC has no others")]
fn short(value: f64) -> f32 {
    let value = value as f32;
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests;
