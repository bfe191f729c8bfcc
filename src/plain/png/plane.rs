//! The plane of an array that its preview shows.

use super::colours::MOST_CHANNELS;
use crate::error::FormatError;
use crate::plain::image::samples_of;
use crate::plain::{Array, AxisKind, FileFormat};

/// The names of vertical and of horizontal axes, in lower case.
const VERTICAL: [&str; 3] = ["y", "lat", "latitude"];
const HORIZONTAL: [&str; 3] = ["x", "lon", "longitude"];

/// The axes of an array that a preview shows. Of each other axis, the preview shows the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plane {
    pub(super) y: usize,
    pub(super) x: usize,
    /// The axis of channels that are shown together, and what they are.
    pub(super) channels: Option<(usize, Channels)>,
    /// The axis of channels of which the middle one is shown.
    pub(super) middle_channel: Option<usize>,
}

/// The meaning of the elements along an axis of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channels {
    /// The samples of coloured pixels: red, green, blue, and perhaps opacity.
    Samples,
    /// Pictures of one colour each.
    Pictures,
}

impl Plane {
    /// The plane of `array`: the axes that are called y and x, or latitude and longitude; else the last two axes that
    /// are no axes of channels.
    ///
    /// # Errors
    /// When the array has no planes, or no elements.
    pub(super) fn of(array: &Array) -> Result<Plane, FormatError> {
        let refused = |name: &str| Err(FileFormat::Png.refused("shape", name));
        let rank = array.rank();
        if rank < 2 {
            return refused(&format!("{rank} dimensions"));
        }
        if array.shape.contains(&0) {
            return refused("an axis of length 0");
        }
        if samples_of(array) > 1 {
            return Ok(Plane {
                y: rank - 3,
                x: rank - 2,
                channels: Some((rank - 1, Channels::Samples)),
                middle_channel: None,
            });
        }
        let channel = only(array, |axis| array.kind(axis) == AxisKind::Channel);
        let channel = channel.filter(|_| rank > 2);
        let [y, x] = plane_of(array, channel);
        let is_blended = |&axis: &usize| (2..=MOST_CHANNELS).contains(&array.shape[axis]);
        let blended = channel.filter(is_blended);
        Ok(Plane {
            y,
            x,
            channels: blended.map(|axis| (axis, Channels::Pictures)),
            middle_channel: channel.filter(|axis| Some(*axis) != blended),
        })
    }
}

/// The axes y and x.
fn plane_of(array: &Array, channel: Option<usize>) -> [usize; 2] {
    let named = |names: &[&str]| {
        only(array, |axis| {
            let own = array.dimension_names.get(axis).and_then(Option::as_deref);
            let name = own.or_else(|| array.axes.get(axis)?.name.as_deref());
            name.is_some_and(|name| names.contains(&&*name.to_lowercase()))
        })
        .filter(|axis| Some(*axis) != channel)
    };
    if let (Some(y), Some(x)) = (named(&VERTICAL), named(&HORIZONTAL)) {
        return [y, x];
    }
    let mut last = (0..array.rank())
        .rev()
        .filter(|axis| Some(*axis) != channel);
    let x = last.next().unwrap_or_default();
    [last.next().unwrap_or_default(), x]
}

/// The axis for which `is_so` holds, if it is the only one.
fn only(array: &Array, is_so: impl Fn(usize) -> bool) -> Option<usize> {
    let mut found = (0..array.rank()).filter(|&axis| is_so(axis));
    let first = found.next();
    first.filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::testing::array;

    #[test]
    fn planes_are_found_by_names_and_kinds() {
        type Case<'c> = (&'c [&'c str], &'c [u64], [usize; 2], Option<usize>);
        let cases: [Case<'_>; 9] = [
            (&["", ""], &[2, 3], [0, 1], None),
            (&["", "", ""], &[2, 3, 4], [1, 2], None),
            (&["c", "y", "x"], &[2, 3, 4], [1, 2], Some(0)),
            (&["c", "y", "x"], &[1, 3, 4], [1, 2], None),
            (&["c", "y", "x"], &[8, 3, 4], [1, 2], None),
            (&["y", "x", "c"], &[3, 4, 2], [0, 1], Some(2)),
            (&["time", "lon", "lat"], &[3, 4, 2], [2, 1], None),
            (&["x", "y", "t"], &[3, 4, 2], [1, 0], None),
            (&["c", "x"], &[3, 4], [0, 1], None),
        ];
        for (names, shape, [y, x], channels) in cases {
            let mut array = array("a", r#""<i2""#, shape);
            for (axis, name) in names.iter().enumerate() {
                array.dimension_names[axis] = Some((*name).to_owned());
                let is_channel = *name == "c";
                if is_channel {
                    array.axes[axis].kind = AxisKind::Channel;
                }
            }
            let plane = Plane::of(&array).unwrap();
            let found = plane.channels.map(|(axis, _)| axis);
            assert_eq!((plane.y, plane.x, found), (y, x, channels), "{names:?}");
        }
    }

    #[test]
    fn samples_of_a_pixel_are_colours() {
        let mut array = array("a", r#""|u1""#, &[2, 4, 5, 3]);
        array.dimension_names[3] = Some("rgb".to_owned());
        let plane = Plane::of(&array).unwrap();
        assert_eq!(plane.channels, Some((3, Channels::Samples)));
        assert_eq!((plane.y, plane.x), (1, 2));
    }

    #[test]
    fn arrays_without_planes_are_refused() {
        for shape in [&[][..], &[5], &[3, 0]] {
            assert!(Plane::of(&array("a", r#""|u1""#, shape)).is_err());
        }
    }
}
