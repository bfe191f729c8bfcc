//! The kind, spacing, origin and unit of dimensions, from OME-NGFF multiscales and CF attributes.
//!
//! ```text
//! OME-NGFF  a group above says `multiscales`    names, kinds, units, voxel sizes, origin, channels
//! CF        dimension names, coordinate arrays  names, kinds, units
//! N5        attributes of array and groups      names, kinds, units, voxel sizes, origin
//! ```
//!
//! In CF a spacing is the difference of two coordinates. Coordinates are elements, so spacings are
//! unknown here. Attributes of the array itself describe its values, so they are not used, except in N5.

mod axis;
mod cf;
mod channel;
mod coarser;
mod multiscale;
mod n5;
mod ngff;
pub(super) mod units;

pub use axis::{Axis, AxisKind};
pub use channel::Channel;
pub use coarser::coarser_levels;
pub use multiscale::multiscale;
pub use n5::axes_of_n5;

use crate::error::FormatError;
use crate::metadata::Attributes;

impl Axis {
    /// The axis of `length` elements of the same array that begin with element `start`.
    #[must_use]
    pub fn part(&self, start: u64, length: u64) -> Axis {
        let mut part = self.clone();
        if let Some(spacing) = self.spacing.filter(|_| start > 0) {
            #[expect(clippy::cast_precision_loss, reason = "a place in space")]
            let by = spacing * start as f64;
            part.origin = Some(self.origin.unwrap_or(0.0) + by).filter(|at| at.is_finite());
        }
        let [start, length] = [start, length].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let channels = self.channels.iter().skip(start).take(length);
        part.channels = channels.cloned().collect();
        part
    }
}

/// Whether some of these axes in space have a spacing and others have none. A format that needs a number for each of
/// them would have a false one.
pub(super) fn are_partly_spaced<'a>(axes: impl IntoIterator<Item = &'a Axis>) -> bool {
    let in_space = |axis: &&Axis| axis.kind == AxisKind::Space;
    let mut spaced = axes.into_iter().filter(in_space);
    let Some(first) = spaced.next() else {
        return false;
    };
    spaced.any(|axis| axis.spacing.is_some() != first.spacing.is_some())
}

/// The facts about an array in the documents around it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Surroundings {
    /// Its axes, one for each dimension.
    pub axes: Vec<Axis>,
    /// The name of the image of which the array is a level.
    pub image: Option<String>,
    /// The reason why spacings and units are left out, although the documents say where the elements are.
    pub left_out: Option<FormatError>,
}

/// A group around an array.
#[derive(Debug, Clone, Copy)]
pub struct Ancestor<'a> {
    /// The path of the array, relative to the group.
    pub path: &'a str,
    /// The last segment of the group's own path; for the root, the name of the store.
    pub name: &'a str,
    /// The group's attributes.
    pub attributes: &'a Attributes,
}

/// The facts about the axes of an array of this shape. `dimension_names` has as many items as `shape`.
///
/// `ancestors` are the groups around the array, the nearest first. `coordinates` are the one-dimensional arrays in
/// the same group that are named after their dimension: names and attributes.
pub fn axes(
    shape: &[u64],
    dimension_names: &[Option<String>],
    ancestors: &[Ancestor<'_>],
    coordinates: &[(&str, &Attributes)],
) -> Surroundings {
    (0..ancestors.len())
        .find_map(|nearest| ngff::axes(ancestors.get(nearest..)?, shape))
        .unwrap_or_else(|| Surroundings {
            axes: cf::axes(dimension_names, coordinates),
            ..Surroundings::default()
        })
}

#[cfg(test)]
mod tests;
