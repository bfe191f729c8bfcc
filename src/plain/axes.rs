//! The kind, spacing, origin and unit of dimensions, from OME-NGFF multiscales and CF attributes.
//!
//! ```text
//! OME-NGFF  a group above says `multiscales`    names, kinds, units, voxel sizes, origin
//! CF        dimension names, coordinate arrays  names, kinds, units
//! N5        attributes of array and groups      names, kinds, units, voxel sizes, origin
//! ```
//!
//! In CF a spacing is the difference of two coordinates. Coordinates are elements, so spacings are
//! unknown here. Attributes of the array itself describe its values, so they are not used, except in N5.

mod axis;
mod cf;
mod n5;
mod ngff;
pub(super) mod units;

pub use axis::{Axis, AxisKind};
pub use n5::axes_of_n5;

use crate::metadata::Attributes;

impl Axis {
    /// The axis of the same array without its first `start` elements.
    #[must_use]
    pub fn shifted(&self, start: u64) -> Axis {
        let mut shifted = self.clone();
        if let Some(spacing) = self.spacing.filter(|_| start > 0) {
            #[expect(clippy::cast_precision_loss, reason = "a place in space")]
            let by = spacing * start as f64;
            shifted.origin = Some(self.origin.unwrap_or(0.0) + by).filter(|at| at.is_finite());
        }
        shifted
    }
}

/// The axes of an array, one for each of `dimension_names`.
///
/// `ancestors` are the groups around the array, the nearest first: the path of the array relative
/// to the group, and the attributes of the group. `coordinates` are the one-dimensional arrays in
/// the same group that are named after their dimension: names and attributes.
pub fn axes(
    dimension_names: &[Option<String>],
    ancestors: &[(&str, &Attributes)],
    coordinates: &[(&str, &Attributes)],
) -> Vec<Axis> {
    ancestors
        .iter()
        .find_map(|(path, group)| ngff::axes(path, group, dimension_names.len()))
        .unwrap_or_else(|| cf::axes(dimension_names, coordinates))
}

#[cfg(test)]
mod tests;
