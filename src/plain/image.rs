//! Interprets arrays as images with the axes time, channel, z, y and x.
//!
//! The last two axes are y and x of the planes, whatever their names are. Where the last axis is one of 3 or 4
//! channels, y and x are the two before it, and a pixel has that many samples ([`samples_of`]). The role of an axis
//! in front of y and x comes from its kind; axes without a kind take the roles that are left, as in the table. If the
//! kinds make no image (the last axis is a channel axis, or two axes are times), all of them are ignored.
//!
//! | axes without a kind | become |
//! |---|---|
//! | 1 | z, as `ImageJ` has it for a stack |
//! | 2 | t, z, as CF has it |
//! | 3 | t, c, z, as OME-NGFF has it |
//!
//! The axes of an OME image have the names and kinds that their writer gave them. If the planes are others than those of y and x, or
//! lie along times or channels, no file could call them y and x, and there is none.
//!
//! If there are too many axes, those of length 1 are left out, the ones without a kind first.

use super::FileFormat;
use super::array::Array;
use super::axes::{Axis, AxisKind};
use super::format::shortened;
use super::layout::AxisOrder;
use super::number::Scalar;
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
    /// The samples of a pixel: 1, 3 or 4.
    samples: u16,
    /// The axes in front of the planes that are kept, slowest first, with their roles.
    outer: Vec<(usize, ImageAxis)>,
}

impl<'a> Image<'a> {
    /// Interprets `array` as an image.
    ///
    /// # Errors
    ///
    /// When the array has no planes, no elements, or too many axes longer than 1, or when the array is of an OME image and
    /// its last axes are not y and x. The error names `format`.
    pub(super) fn of(array: &'a Array, format: FileFormat) -> Result<Image<'a>, FormatError> {
        let refused = |name: String| Err(format.refused("shape", name));
        if array.rank() < 2 {
            return refused(format!("{} dimensions", array.rank()));
        }
        if array.shape.contains(&0) {
            return refused("an axis of length 0".to_owned());
        }
        let samples = samples_of(array);
        let last = array.rank() - usize::from(samples > 1);
        check_planes(array, [last - 2, last - 1], format)?;
        let mut outer: Vec<usize> = (0..last - 2).collect();
        while outer.len() > 3 {
            let is_one = |&axis: &usize| array.shape.get(axis) == Some(&1);
            let is_unknown = |axis: &usize| array.kind(*axis) == AxisKind::Other;
            let extra = outer
                .iter()
                .position(|axis| is_one(axis) && is_unknown(axis));
            match extra.or_else(|| outer.iter().position(is_one)) {
                Some(extra) => outer.remove(extra),
                None => return Err(format.too_many_dimensions(array)),
            };
        }
        let known = known_roles(array, last, &outer).unwrap_or_else(|| vec![None; outer.len()]);
        let roles = all_roles(&known);
        Ok(Image {
            array,
            samples,
            outer: outer.into_iter().zip(roles).collect(),
        })
    }

    /// The samples of a pixel: 1, or the 3 or 4 channels of the last axis.
    pub(super) fn samples(&self) -> u16 {
        self.samples
    }

    /// The axes y and x of the array.
    pub(super) fn plane_indices(&self) -> [usize; 2] {
        let last = self.array.rank() - usize::from(self.samples > 1);
        [last - 2, last - 1]
    }

    /// The lengths of y and x.
    pub(super) fn plane(&self) -> [u64; 2] {
        let length = |axis| self.array.shape.get(axis).copied().unwrap_or(1);
        self.plane_indices().map(length)
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
        self.plane_indices().map(|axis| self.array.axes.get(axis))
    }

    /// The roles of the axes in front of the planes, slowest first.
    pub(super) fn roles(&self) -> impl DoubleEndedIterator<Item = ImageAxis> {
        self.outer.iter().map(|(_, role)| *role)
    }

    /// The order of the array's axes in a file that has the planes by time, then slice, then channel.
    /// Axes that are left out (of length 1) come first.
    pub(super) fn order_tzc(&self) -> AxisOrder {
        let [y, _] = self.plane_indices();
        let roles = [ImageAxis::T, ImageAxis::Z, ImageAxis::C];
        let kept: Vec<usize> = roles.iter().filter_map(|role| self.index(*role)).collect();
        let left_out = (0..y).filter(|axis| !kept.contains(axis));
        let planes = y..self.array.rank();
        left_out.chain(kept.iter().copied()).chain(planes).collect()
    }

    fn index(&self, role: ImageAxis) -> Option<usize> {
        let mut outer = self.outer.iter();
        outer.find(|(_, is)| *is == role).map(|(axis, _)| *axis)
    }
}

/// The names of a dimension of channels, in lower case.
const CHANNELS: [&str; 9] = [
    "c", "channel", "channels", "rgb", "rgba", "band", "bands", "sample", "samples",
];

/// The samples of a pixel: 3 or 4, or else 1. There are several samples if the last axis has a length of 3 or 4, is an
/// axis of channels by its kind (OME) or by its name, and comes after two axes that may be y and x, and if the numbers
/// are of a type that viewers take for colours (uint8, uint16, float32).
pub(super) fn samples_of(array: &Array) -> u16 {
    let number = Scalar::of(&array.data_type);
    let is_colour = matches!(
        number,
        Some(Scalar::UInt8 | Scalar::UInt16 | Scalar::Float32)
    );
    let Some(last) = array
        .rank()
        .checked_sub(1)
        .filter(|&last| last >= 2 && is_colour)
    else {
        return 1;
    };
    let name = array.dimension_names.get(last).and_then(Option::as_deref);
    let is_named = || name.is_some_and(|name| CHANNELS.contains(&&*name.to_lowercase()));
    let may_be_plane = |axis| matches!(array.kind(axis), AxisKind::Space | AxisKind::Other);
    let is_channels = match array.kind(last) {
        AxisKind::Channel => true,
        AxisKind::Other => is_named(),
        AxisKind::Space | AxisKind::Time => false,
    };
    match array.shape.get(last) {
        Some(3) if is_channels && (last - 2..last).all(may_be_plane) => 3,
        Some(4) if is_channels && (last - 2..last).all(may_be_plane) => 4,
        _ => 1,
    }
}

/// Checks that the axes `plane` of an OME image may be called y and x. Other arrays have kinds by custom alone.
fn check_planes(array: &Array, plane: [usize; 2], format: FileFormat) -> Result<(), FormatError> {
    if array.image.is_none() {
        return Ok(());
    }
    let name = |axis: usize| array.axes.get(axis).and_then(|axis| axis.name.as_deref());
    let is_called = |axis: usize, letter: &str| {
        name(axis).is_some_and(|name| name.eq_ignore_ascii_case(letter))
    };
    let position = |letter| (0..array.rank()).find(|&axis| is_called(axis, letter));
    let are_elsewhere = match (position("y"), position("x")) {
        (Some(y), Some(x)) => [y, x] != plane,
        _ => false,
    };
    let is_no_space = |axis| matches!(array.kind(axis), AxisKind::Time | AxisKind::Channel);
    if are_elsewhere || plane.into_iter().any(is_no_space) {
        let [slow, fast] = plane.map(|axis| shortened(name(axis).unwrap_or("?")));
        let planes = format!("planes of {slow} and {fast} in place of y and x");
        return Err(format.refused("axes", planes));
    }
    Ok(())
}

/// The roles of the axes `outer` according to their kinds; `None` if the kinds make no image. Axis
/// `last` is the first one after x.
fn known_roles(array: &Array, last: usize, outer: &[usize]) -> Option<Vec<Option<ImageAxis>>> {
    let in_plane = [AxisKind::Space, AxisKind::Other];
    if !(last - 2..last).all(|axis| in_plane.contains(&array.kind(axis))) {
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
        let cases: [(&[u64], &str, &[ImageAxis]); 16] = [
            (&[2, 3], "??", &[]),
            (&[2, 3, 4], "???", &[Z]),
            (&[2, 3, 4], "css", &[C]),
            (&[2, 3, 4], "ssc", &[]),  // four samples a pixel
            (&[2, 3, 5], "ssc", &[Z]), // channels last, but too many for a pixel
            (&[7, 2, 3, 3], "tssc", &[T]),
            (&[2, 3, 3], "stc", &[Z]), // no plane before the channels
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
    fn planes_of_an_ome_image_are_those_of_y_and_x() {
        let cases: [(&[u64], &str, bool); 12] = [
            (&[2, 3, 4], "cyx", true),
            (&[2, 3, 4], "zyx", true),
            (&[2, 3, 4], "yxc", true), // four samples a pixel
            (&[2, 3, 4], "xyc", false),
            (&[2, 3, 5], "yxc", false),
            (&[2, 3, 5], "yxt", false),
            (&[2, 3], "yx", true),
            (&[2, 3], "xy", false),
            (&[2, 3, 4, 5], "cxyz", false),
            (&[2, 3, 4, 5], "cbaX", true), // nothing is called y
            (&[2, 3], "ba", true),
            (&[2, 3], "bc", false),
        ];
        for (shape, names, is_image) in cases {
            let mut array = array("a", r#""|u1""#, shape);
            for (axis, name) in array.axes.iter_mut().zip(names.chars()) {
                axis.name = Some(name.to_string());
                axis.kind = match name {
                    't' => AxisKind::Time,
                    'c' => AxisKind::Channel,
                    _ => AxisKind::Space,
                };
            }
            let of_image = Array {
                image: Some("cells".to_owned()),
                ..array.clone()
            };
            for format in [FileFormat::Tif, FileFormat::OmeTif] {
                let image = Image::of(&of_image, format);
                assert_eq!(image.is_ok(), is_image, "{names}");
                if let Err(error) = image {
                    let error = error.to_string();
                    assert!(error.starts_with("axes: `planes of "), "{error}");
                }
                // Names and kinds of other arrays are a guess.
                assert!(Image::of(&array, format).is_ok(), "{names}");
            }
        }
    }

    #[test]
    fn a_pixel_has_the_channels_of_the_last_axis() {
        let cases = [
            (r#""|u1""#, [4, 5, 3], "c", 3),
            (r#""<u2""#, [4, 5, 4], "RGBA", 4),
            (r#""<f4""#, [4, 5, 3], "band", 3),
            (r#""<f8""#, [4, 5, 3], "c", 1),
            (r#""<i2""#, [4, 5, 3], "c", 1),
            (r#""|u1""#, [4, 5, 2], "c", 1),
            (r#""|u1""#, [4, 5, 3], "x", 1),
        ];
        for (typestr, shape, name, expected) in cases {
            let mut array = array("a", typestr, &shape);
            array.dimension_names[2] = Some(name.to_owned());
            let image = Image::of(&array, FileFormat::Tif).unwrap();
            assert_eq!(image.samples(), expected, "{typestr} {shape:?} {name}");
            let plane = if expected == 1 { [5, shape[2]] } else { [4, 5] };
            assert_eq!(image.plane(), plane);
        }
    }

    #[test]
    fn arrays_without_planes_are_refused() {
        let shapes: [&[u64]; 4] = [&[], &[5], &[3, 0], &[2, 2, 2, 2, 3, 4]];
        for shape in shapes {
            let array = array("a", r#""|u1""#, shape);
            assert!(Image::of(&array, FileFormat::Tif).is_err(), "{shape:?}");
        }
    }
}
