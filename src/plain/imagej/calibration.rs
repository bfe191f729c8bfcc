//! Voxel sizes in the form of `ImageJ`: x and y as pixels per unit and z as `spacing`, all in one
//! unit; time in seconds; the position of the origin in pixels.

use super::super::axes::{Axis, units::Unit};
use super::super::image::{Image, ImageAxis};

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
    /// Sizes of x and y in `unit`, if both are known and `ImageJ` can express them.
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

/// The simplest fraction that equals `value` to 15 digits, or else the best one with 31-bit terms,
/// by continued fractions. `None` if no fraction is near.
fn rational(value: f64) -> Option<(u32, u32)> {
    const MOST: f64 = i32::MAX as f64;
    let (mut before, mut now) = ((0.0, 1.0), (1.0, 0.0));
    let mut rest = value;
    for _ in 0..64 {
        let whole = rest.floor();
        let next: (f64, f64) = (whole * now.0 + before.0, whole * now.1 + before.1);
        if !(0.0..=MOST).contains(&next.0) || !(0.0..=MOST).contains(&next.1) {
            break;
        }
        (before, now) = (now, next);
        if (now.0 / now.1 / value - 1.0).abs() < 1e-15 || rest <= whole {
            break;
        }
        rest = 1.0 / (rest - whole);
    }
    let is_near = now.0 > 0.0 && now.1 > 0.0 && (now.0 / now.1 / value - 1.0).abs() < 1e-9;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole numbers of 31 bits"
    )]
    let fraction = (now.0 as u32, now.1 as u32);
    is_near.then_some(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_the_simplest() {
        assert_eq!(rational(1.0 / 0.36), Some((25, 9)));
        assert_eq!(rational(1.0 / 0.1625), Some((80, 13)));
        assert_eq!(rational(2.0), Some((2, 1)));
        let (numerator, denominator) = rational(std::f64::consts::PI).unwrap();
        let value = f64::from(numerator) / f64::from(denominator);
        assert!((value - std::f64::consts::PI).abs() < 1e-15);
        for impossible in [0.0, 1e10, 1e-10, f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(rational(impossible), None, "{impossible}");
        }
    }
}
