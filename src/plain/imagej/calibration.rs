//! Voxel sizes in the form of `ImageJ`: x and y as pixels per unit and z as `spacing`, all in one
//! unit; time in seconds; the position of the origin in pixels.

use super::super::axes::{Axis, are_partly_spaced, units::Unit};
use super::super::image::{Image, ImageAxis};
use super::super::rational::rational;

/// The units that `ImageJ` knows, with their powers of ten of a metre.
const UNITS: [(&str, i32); 6] = [
    ("nm", -9),
    ("micron", -6),
    ("mm", -3),
    ("cm", -2),
    ("m", 0),
    ("km", 3),
];

/// The longest name of an unknown unit; longer ones are left out.
const LONGEST_UNIT: usize = 32;

/// The calibration of an image.
#[derive(Debug)]
pub(super) struct Calibration {
    /// Sizes of x and y in `unit`, if both and that of z are known and `ImageJ` can express them.
    pixel: Option<[f64; 2]>,
    /// Size of z in `unit`.
    slice: Option<f64>,
    /// The unit; `None` if there is none that all sizes share.
    unit: Option<String>,
    /// Seconds from one frame to the next.
    frame: Option<f64>,
    /// Pixels from the first element to the origin: x, y, z.
    origin: [Option<f64>; 3],
}

impl Calibration {
    /// The calibration that the axes of `image` describe.
    pub(super) fn of(image: &Image<'_>) -> Calibration {
        let [y, x] = image.plane_axes();
        let z = image.axis(ImageAxis::Z);
        let length = |axis: &Axis| axis.unit.as_deref().and_then(Unit::length);
        // All sizes are given in the unit of x.
        let word = x.and_then(|x| x.unit.as_deref());
        let target = x.and_then(length).map(|unit| {
            let fits = |(_, power): &&(&str, i32)| *power <= unit.magnitude();
            // Units below the smallest that `ImageJ` knows are converted to that one.
            let (name, power) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
            (*name, Unit::power(*power))
        });
        let size = |axis: Option<&Axis>| {
            let axis = axis?;
            let spacing = axis.spacing?;
            match target {
                Some((_, target)) => length(axis)?.convert(spacing, target),
                None => (axis.unit.as_deref() == word).then_some(spacing),
            }
        };
        let pixel = size(x).zip(size(y)).map(|(x, y)| [x, y]);
        let in_space = [x, y, z].into_iter().flatten();
        let pixel = pixel.filter(|_| !are_partly_spaced(in_space));
        let pixel = pixel.filter(|sizes| sizes.iter().all(|size| rational(1.0 / size).is_some()));
        let t = image.axis(ImageAxis::T);
        let frame = t.and_then(|t| {
            let unit = Unit::time(t.unit.as_deref()?)?;
            unit.convert(t.spacing?, Unit::power(0))
        });
        let name = target.map(|(name, _)| name.to_owned());
        // A backslash would escape the character after it.
        let is_plain = |word: &&str| {
            let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
            word.len() <= LONGEST_UNIT && word.bytes().all(is_plain)
        };
        let own = word.filter(is_plain).map(str::to_owned);
        let pixels = |axis: Option<&Axis>| {
            let axis = axis?;
            let pixels = -axis.origin? / axis.spacing?;
            (pixels.is_finite() && pixels != 0.0).then_some(pixels)
        };
        Calibration {
            slice: pixel.and(size(z)),
            unit: pixel.and(name.or(own)),
            frame,
            origin: [x, y, z].map(|axis| pixel.and(pixels(axis))),
            pixel,
        }
    }

    /// Pixels per unit along x and y, as numerators and denominators.
    pub(super) fn resolution(&self) -> Option<[(u32, u32); 2]> {
        let [x, y] = self.pixel?;
        Some([rational(1.0 / x)?, rational(1.0 / y)?])
    }

    /// The lines of the description that express the calibration.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(unit) = &self.unit {
            lines.push(format!("unit={unit}"));
        }
        let [x, y, z] = self.origin;
        let numbers = [
            ("spacing", self.slice),
            ("finterval", self.frame),
            ("xorigin", x),
            ("yorigin", y),
            ("zorigin", z),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                lines.push(format!("{name}={number:?}"));
            }
        }
        lines
    }
}
