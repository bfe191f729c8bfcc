//! Dimensions in space and time: names, voxel sizes and units, out of OME-NGFF multiscales and CF
//! attributes.
//!
//! ```text
//! OME-NGFF  a group above says `multiscales`    names, kinds, units, voxel sizes, origin
//! CF        dimension names, coordinate arrays  names, kinds, units
//! ```
//!
//! Where CF has spacings, they are differences of coordinates, which are elements: no header knows
//! them. Attributes of the array itself are about its values, and none of them is looked at.

mod cf;
mod ngff;
pub(super) mod units;

use crate::metadata::Attributes;

/// One dimension of an array.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// Its name, from the axes of a multiscale or the dimension names.
    pub name: Option<String>,
    /// What it goes along.
    pub kind: AxisKind,
    /// From one element to the next, in `unit`; finite and more than 0.
    pub spacing: Option<f64>,
    /// Of the first element, in `unit`; finite. Never without `spacing`.
    pub origin: Option<f64>,
    /// A word of UDUNITS, such as `micrometer`, as the metadata spell it.
    pub unit: Option<String>,
}

/// What a dimension goes along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AxisKind {
    /// Space.
    Space,
    /// Time.
    Time,
    /// Channels.
    Channel,
    /// Something else, or it is not said.
    #[default]
    Other,
}

impl Axis {
    /// The same without its first `start` elements.
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

/// The dimensions of an array, as many as it has names.
///
/// `ancestors` are the groups that it is in, the nearest first: the path of the array relative to
/// each, and the attributes of the group. `coordinates` are the arrays of one dimension beside it
/// that are named as a dimension: names and attributes.
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
