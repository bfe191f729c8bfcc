//! Voxel sizes and origin in the units of `NIfTI`: metres, millimetres or micrometres in space, and
//! seconds, milliseconds or microseconds in time.

use super::super::Array;
use super::super::axes::{Axis, AxisKind, are_partly_spaced, units::Unit};
use super::dims::NiftiDims;

/// The positions of voxels.
#[derive(Debug, Default, PartialEq)]
pub(super) struct VoxelGeometry {
    /// Distance from one element to the next in each of seven dimensions; 1 if it is unknown.
    pub(super) spacings: [f64; 7],
    /// Position of the first element in space.
    pub(super) origin: [f64; 3],
    /// Time of the first element.
    pub(super) start: f64,
    /// The codes of the two units, or 0.
    pub(super) units: i32,
    /// Whether spacings in space are known but do not fit the header, or are not known along each axis.
    is_lost: bool,
}

impl VoxelGeometry {
    /// The geometry that the axes of `array` describe.
    pub(super) fn of(array: &Array, dims: &NiftiDims) -> VoxelGeometry {
        let mut geometry = VoxelGeometry {
            spacings: [1.0; 7],
            ..VoxelGeometry::default()
        };
        geometry.set_space([0, 1, 2].map(|index| dims.axis(array, index)));
        if let Some(time) = dims.axis(array, 3) {
            geometry.set_time(time);
        }
        geometry
    }

    /// A remark about spacings that are left out.
    pub(super) fn remark(&self) -> Option<String> {
        self.is_lost.then(|| "voxel sizes left out".to_owned())
    }

    fn set_space(&mut self, axes: [Option<&Axis>; 3]) {
        if are_partly_spaced(axes.into_iter().flatten()) {
            self.is_lost = true;
            return;
        }
        let is_space = |axis: &&Axis| axis.spacing.is_some() && axis.kind == AxisKind::Space;
        let known: Vec<(usize, &Axis)> = axes
            .into_iter()
            .enumerate()
            .filter_map(|(i, axis)| Some((i, axis.filter(is_space)?)))
            .collect();
        let length = |axis: &Axis| axis.unit.as_deref().and_then(Unit::length);
        let target = known.iter().find_map(|(_, axis)| length(axis));
        let (code, target) = target.map(step).unzip();
        let first = known.first().and_then(|(_, axis)| axis.unit.as_deref());
        let convert = |axis: &Axis, value: f64| match target {
            Some(target) => length(axis)?.convert(value, target),
            // All sizes have the same unknown unit, so at least their ratios are right.
            None => (axis.unit.as_deref() == first).then_some(value),
        };
        let mut spacings = [1.0; 3];
        let mut origin = [0.0; 3];
        for (i, axis) in &known {
            let spacing = axis.spacing.and_then(|spacing| convert(axis, spacing));
            let position = convert(axis, axis.origin.unwrap_or(0.0));
            let spacing = spacing.filter(|value| is_sound(*value));
            let position = position.filter(|position| fits(*position));
            let (Some(spacing), Some(position)) = (spacing, position) else {
                self.is_lost = true;
                return;
            };
            spacings[*i] = spacing;
            origin[*i] = position;
        }
        self.spacings[..3].copy_from_slice(&spacings);
        self.origin = origin;
        self.units |= code.unwrap_or(0);
    }

    fn set_time(&mut self, axis: &Axis) {
        let unit = axis.unit.as_deref().and_then(Unit::time);
        let (Some(unit), Some(spacing), AxisKind::Time) = (unit, axis.spacing, axis.kind) else {
            return;
        };
        let (code, target) = step(unit);
        let spacing = unit
            .convert(spacing, target)
            .filter(|value| is_sound(*value));
        let start = unit.convert(axis.origin.unwrap_or(0.0), target);
        if let (Some(spacing), Some(start)) = (spacing, start.filter(|start| fits(*start))) {
            self.spacings[3] = spacing;
            self.start = start;
            self.units |= code << 3;
        }
    }
}

/// The unit of `NIfTI` for values in `unit`, and its code for lengths; the code for times is 8
/// times as great.
fn step(unit: Unit) -> (i32, Unit) {
    match unit.magnitude() {
        0.. => (1, Unit::power(0)),
        -3..0 => (2, Unit::power(-3)),
        _ => (3, Unit::power(-6)),
    }
}

/// Whether `value` is a valid spacing in single precision, which `NIfTI`-1 uses.
fn is_sound(value: f64) -> bool {
    (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&value)
}

fn fits(value: f64) -> bool {
    value.abs() <= f64::from(f32::MAX)
}
