//! Interprets arrays as images with the axes time, channel, z, y and x.
//!
//! The last two axes are y and x of the planes, whatever their names are. The role of an axis in
//! front of them comes from its kind; axes without a kind take the roles that are left, as in the
//! table. If the kinds make no image (the last axis is a channel axis, or two axes are times), all
//! of them are ignored.
//!
//! | axes without a kind | become |
//! |---|---|
//! | 1 | z, as `ImageJ` has it for a stack |
//! | 2 | t, z, as CF has it |
//! | 3 | t, c, z, as OME-NGFF has it |
//!
//! If there are too many axes, those of length 1 are left out, the ones without a kind first.

use super::FileFormat;
use super::array::Array;
use super::axes::{Axis, AxisKind};
use super::layout::AxisOrder;
use crate::error::FormatError;
use crate::grid::product;

/// The role of an axis in front of the planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageAxis {
    /// Time.
    T,
    /// Channel.
    C,
    /// Slice.
    Z,
}

/// The assignment of the axes of an array to the axes of an image.
#[derive(Debug)]
pub(super) struct Image<'a> {
    array: &'a Array,
    /// The axes in front of the planes that are kept, slowest first, with their roles.
    outer: Vec<(usize, ImageAxis)>,
}

impl<'a> Image<'a> {
    /// Interprets `array` as an image.
    ///
    /// # Errors
    ///
    /// When the array has no planes, no elements, or too many axes longer than 1. The error names
    /// `format`.
    pub(super) fn of(array: &'a Array, format: FileFormat) -> Result<Image<'a>, FormatError> {
        let refused = |name: String| Err(format.refused("shape", name));
        if array.rank() < 2 {
            return refused(format!("{} dimensions", array.rank()));
        }
        if array.shape.contains(&0) {
            return refused("an axis of length 0".to_owned());
        }
        let mut outer: Vec<usize> = (0..array.rank() - 2).collect();
        while outer.len() > 3 {
            let is_one = |&axis: &usize| array.shape.get(axis) == Some(&1);
            let is_unknown = |axis: &usize| array.kind(*axis) == AxisKind::Other;
            let extra = outer
                .iter()
                .position(|axis| is_one(axis) && is_unknown(axis));
            match extra.or_else(|| outer.iter().position(is_one)) {
                Some(extra) => outer.remove(extra),
                None => return refused(format!("{} dimensions longer than 1", array.rank())),
            };
        }
        let known = known_roles(array, &outer).unwrap_or_else(|| vec![None; outer.len()]);
        let roles = all_roles(&known);
        Ok(Image {
            array,
            outer: outer.into_iter().zip(roles).collect(),
        })
    }

    /// The lengths of y and x.
    pub(super) fn plane(&self) -> [u64; 2] {
        let at = |from_end: usize| {
            let axis = self.array.rank() - from_end;
            self.array.shape.get(axis).copied().unwrap_or(1)
        };
        [at(2), at(1)]
    }

    /// The length of the axis with this role; 1 if there is none.
    pub(super) fn len(&self, role: ImageAxis) -> u64 {
        let axis = self.index(role).and_then(|axis| self.array.shape.get(axis));
        axis.copied().unwrap_or(1)
    }

    /// The number of planes.
    pub(super) fn n_planes(&self) -> Option<u64> {
        let lengths = [ImageAxis::T, ImageAxis::C, ImageAxis::Z].map(|role| self.len(role));
        product(&lengths)
    }

    /// The axis with this role.
    pub(super) fn axis(&self, role: ImageAxis) -> Option<&'a Axis> {
        self.array.axes.get(self.index(role)?)
    }

    /// The axes y and x.
    pub(super) fn plane_axes(&self) -> [Option<&'a Axis>; 2] {
        [2, 1].map(|from_end| self.array.axes.get(self.array.rank() - from_end))
    }

    /// The roles of the axes in front of the planes, slowest first.
    pub(super) fn roles(&self) -> impl DoubleEndedIterator<Item = ImageAxis> {
        self.outer.iter().map(|(_, role)| *role)
    }

    /// The order of the array's axes in a file that has the planes by time, then slice, then channel.
    /// Axes that are left out (of length 1) come first.
    pub(super) fn order_tzc(&self) -> AxisOrder {
        let rank = self.array.rank();
        let roles = [ImageAxis::T, ImageAxis::Z, ImageAxis::C];
        let kept: Vec<usize> = roles.iter().filter_map(|role| self.index(*role)).collect();
        let left_out = (0..rank - 2).filter(|axis| !kept.contains(axis));
        let planes = [rank - 2, rank - 1];
        left_out.chain(kept.iter().copied()).chain(planes).collect()
    }

    fn index(&self, role: ImageAxis) -> Option<usize> {
        let mut outer = self.outer.iter();
        outer.find(|(_, is)| *is == role).map(|(axis, _)| *axis)
    }
}

/// The roles of the axes `outer` according to their kinds; `None` if the kinds make no image.
fn known_roles(array: &Array, outer: &[usize]) -> Option<Vec<Option<ImageAxis>>> {
    let rank = array.rank();
    let in_plane = [AxisKind::Space, AxisKind::Other];
    if !(rank - 2..rank).all(|axis| in_plane.contains(&array.kind(axis))) {
        return None;
    }
    let roles = outer.iter().map(|&axis| match array.kind(axis) {
        AxisKind::Time => Some(ImageAxis::T),
        AxisKind::Channel => Some(ImageAxis::C),
        AxisKind::Space => Some(ImageAxis::Z),
        AxisKind::Other => None,
    });
    let roles: Vec<Option<ImageAxis>> = roles.collect();
    let once = |role| roles.iter().filter(|&&is| is == Some(role)).count() <= 1;
    [ImageAxis::T, ImageAxis::C, ImageAxis::Z]
        .into_iter()
        .all(once)
        .then_some(roles)
}

/// Gives the roles that are left to the axes without one.
fn all_roles(known: &[Option<ImageAxis>]) -> Vec<ImageAxis> {
    let n_unknown = known.iter().filter(|role| role.is_none()).count();
    let mut left: Vec<ImageAxis> = [ImageAxis::Z, ImageAxis::T, ImageAxis::C]
        .into_iter()
        .filter(|role| !known.contains(&Some(*role)))
        .take(n_unknown)
        .collect();
    left.sort_by_key(|role| *role as u8);
    let mut left = left.into_iter();
    let role = |known: &Option<_>| known.or_else(|| left.next()).unwrap_or(ImageAxis::Z);
    known.iter().map(role).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::array;
    use super::*;

    fn image_roles(shape: &[u64], kinds: &str) -> Vec<ImageAxis> {
        let mut array = array("a", r#""|u1""#, shape);
        for (axis, kind) in array.axes.iter_mut().zip(kinds.chars()) {
            axis.kind = match kind {
                's' => AxisKind::Space,
                't' => AxisKind::Time,
                'c' => AxisKind::Channel,
                _ => AxisKind::Other,
            };
        }
        Image::of(&array, FileFormat::Tif)
            .unwrap()
            .roles()
            .collect()
    }

    #[test]
    fn kinds_count_where_they_make_an_image() {
        use ImageAxis::{C, T, Z};
        let cases: [(&[u64], &str, &[ImageAxis]); 13] = [
            (&[2, 3], "??", &[]),
            (&[2, 3, 4], "???", &[Z]),
            (&[2, 3, 4], "css", &[C]),
            (&[2, 3, 4], "ssc", &[Z]), // channels last: no image of several channels
            (&[2, 3, 4, 5], "????", &[T, Z]),
            (&[2, 3, 4, 5], "csss", &[C, Z]),
            (&[2, 3, 4, 5], "c?ss", &[C, Z]),
            (&[2, 3, 4, 5], "?sss", &[T, Z]),
            (&[2, 3, 4, 5], "ttss", &[T, Z]), // no two times
            (&[2, 3, 4, 5, 6], "?????", &[T, C, Z]),
            (&[2, 3, 4, 5, 6], "ctsss", &[C, T, Z]),
            (&[2, 3, 4, 5, 6], "?tsss", &[C, T, Z]),
            (&[1, 2, 3, 1, 4, 5, 6], "?tc?sss", &[T, C, Z]),
        ];
        for (shape, kinds, expected) in cases {
            assert_eq!(image_roles(shape, kinds), expected, "{shape:?} {kinds}");
        }
    }

    #[test]
    fn what_has_no_planes_is_refused() {
        let shapes: [&[u64]; 4] = [&[], &[5], &[3, 0], &[2, 2, 2, 2, 3, 4]];
        for shape in shapes {
            let array = array("a", r#""|u1""#, shape);
            assert!(Image::of(&array, FileFormat::Tif).is_err(), "{shape:?}");
        }
    }
}
