//! Regular coordinates: the elements of a one-dimensional array that all have the same distance, up to rounding.
//!
//! ```text
//! coordinates     5    15    25  …  95       of the centres of cells: CF conventions 1.11, section 7.1
//! transform    0    10                       first - step / 2, step = (last - first) / (n - 1)
//! ```

use crate::dtype::DataType;
use crate::error::FormatError;
use crate::metadata::Attributes;
use crate::plain::number::Scalar;
use crate::plain::packing::has_other_sign;

/// The greatest difference from a regular coordinate, as a part of the step. Latitudes of a Gaussian grid differ by
/// about eight times as much.
const MOST_DIFFERENCE: f64 = 1e-3;
/// If elements are rounded to more than this part of the step, the step cannot be computed from them.
const LEAST_DIGITS: f64 = 0.25;

/// The numbers that the elements of a coordinate array stand for.
#[derive(Debug, Clone, Copy)]
pub struct CoordinateNumbers {
    scalar: Scalar,
    scale: f64,
    offset: f64,
}

/// The place of the first coordinate, and the distance to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spacing {
    first: f64,
    step: f64,
    tolerance: f64,
}

impl CoordinateNumbers {
    /// The numbers of elements of `data_type`. `attributes` may say that they are packed.
    ///
    /// # Errors
    /// When the elements are no real numbers or have the type float16, when `_Unsigned` says that they stand for numbers of
    /// the other sign, or when `scale_factor` or `add_offset` is no finite number.
    pub fn of(data_type: &DataType, attributes: &Attributes) -> Result<Self, FormatError> {
        let scalar = Scalar::of(data_type).filter(|scalar| {
            let is_real = *scalar != Scalar::Bool && *scalar != Scalar::Float16;
            is_real && *scalar != Scalar::Time && !scalar.is_complex()
        });
        let Some(scalar) = scalar else {
            let problem = format!("coordinates of the type {} are not read", data_type.name);
            return Err(FormatError::document("data type", problem));
        };
        if has_other_sign(data_type, attributes) {
            let problem = "coordinates of the other sign than their elements are not read";
            return Err(FormatError::document("_Unsigned", problem));
        }
        let number = |name, default| match attributes.get(name) {
            None => Ok(default),
            Some(value) => value
                .as_number()
                .filter(|value| value.is_finite())
                .ok_or_else(|| FormatError::document(name, "it is no number")),
        };
        Ok(CoordinateNumbers {
            scalar,
            scale: number("scale_factor", 1.0)?,
            offset: number("add_offset", 0.0)?,
        })
    }

    /// The number of the decoded (little-endian) element `element`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "places are f64, as in GDAL and rioxarray"
    )]
    pub fn value(&self, element: &[u8]) -> Option<f64> {
        let value = match self.scalar {
            Scalar::Int8 => i8::from_le_bytes(element.try_into().ok()?).into(),
            Scalar::UInt8 => u8::from_le_bytes(element.try_into().ok()?).into(),
            Scalar::Int16 => i16::from_le_bytes(element.try_into().ok()?).into(),
            Scalar::UInt16 => u16::from_le_bytes(element.try_into().ok()?).into(),
            Scalar::Int32 => i32::from_le_bytes(element.try_into().ok()?).into(),
            Scalar::UInt32 => u32::from_le_bytes(element.try_into().ok()?).into(),
            Scalar::Int64 => i64::from_le_bytes(element.try_into().ok()?) as f64,
            Scalar::UInt64 => u64::from_le_bytes(element.try_into().ok()?) as f64,
            Scalar::Float32 => f32::from_le_bytes(element.try_into().ok()?).into(),
            Scalar::Float64 => f64::from_le_bytes(element.try_into().ok()?),
            _ => return None,
        };
        Some(value * self.scale + self.offset)
    }

    /// The greatest error by rounding of the numbers between `first` and `last`.
    fn rounding(&self, first: f64, last: f64) -> f64 {
        let digits = match self.scalar {
            Scalar::Float32 => f64::from(f32::EPSILON),
            Scalar::Float64 => f64::EPSILON,
            _ => 0.0,
        };
        2.0 * digits * first.abs().max(last.abs())
    }
}

impl Spacing {
    /// The spacing of `count` coordinates from `first` to `last`, if they are regular.
    ///
    /// # Errors
    /// When they cannot be regular.
    #[expect(
        clippy::cast_precision_loss,
        reason = "arrays of coordinates are short"
    )]
    pub fn of(
        numbers: &CoordinateNumbers,
        (first, last): (f64, f64),
        count: u64,
    ) -> Result<Spacing, FormatError> {
        if count < 2 {
            return Err(FormatError::document(
                "coordinates",
                "a single one has no step",
            ));
        }
        let step = (last - first) / (count - 1) as f64;
        let rounding = numbers.rounding(first, last);
        if !(step.is_finite() && first.is_finite() && last.is_finite()) {
            return Err(FormatError::document("coordinates", "they are not finite"));
        }
        if step == 0.0 || rounding > step.abs() * LEAST_DIGITS {
            return Err(FormatError::document("coordinates", "they do not differ"));
        }
        Ok(Spacing {
            first,
            step,
            tolerance: rounding.max(step.abs() * MOST_DIFFERENCE),
        })
    }

    /// Checks that the coordinate `index` is at `place`.
    ///
    /// # Errors
    /// When it is not, and so the coordinates are irregular.
    #[expect(
        clippy::cast_precision_loss,
        reason = "arrays of coordinates are short"
    )]
    pub fn check(&self, index: u64, place: f64) -> Result<(), FormatError> {
        let expected = self.first + self.step * index as f64;
        if (place - expected).abs() <= self.tolerance {
            return Ok(());
        }
        let problem = format!(
            "they are not regular: number {index} is {place}, not {expected}, as follows from the first and the last"
        );
        Err(FormatError::document("coordinates", problem))
    }

    /// The outer edge of the first cell, and the width of a cell.
    pub(super) fn edge_and_width(&self) -> (f64, f64) {
        (self.first - self.step / 2.0, self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{array, attributes};
    use super::*;

    fn spacing(typestr: &str, json: &str, places: &[f64]) -> Result<(f64, f64), String> {
        let array = array("x", &format!("\"{typestr}\""), &[places.len() as u64]);
        let numbers = CoordinateNumbers::of(&array.data_type, &attributes(json));
        let numbers = numbers.map_err(|error| error.to_string())?;
        let ends = (places[0], places[places.len() - 1]);
        let spacing = Spacing::of(&numbers, ends, places.len() as u64);
        let spacing = spacing.map_err(|error| error.to_string())?;
        for (index, &place) in (0..).zip(places) {
            let checked = spacing.check(index, place);
            checked.map_err(|error| error.to_string())?;
        }
        Ok(spacing.edge_and_width())
    }

    #[test]
    fn regular_coordinates_are_the_centres_of_cells() {
        assert_eq!(spacing("<i8", "{}", &[5.0, 15.0, 25.0]), Ok((0.0, 10.0)));
        assert_eq!(spacing("<f8", "{}", &[90.0, 88.0]), Ok((91.0, -2.0)));
        let rounded: Vec<f64> = (0..3600_u16)
            .map(|i| f64::from(f32::from(i) * 0.1))
            .collect();
        let (edge, width) = spacing("<f4", "{}", &rounded).unwrap();
        assert!((width - 0.1).abs() < 1e-8 && (edge + 0.05).abs() < 1e-6);
    }

    #[test]
    fn irregular_coordinates_are_refused_with_the_reason() {
        for (typestr, places, reason) in [
            ("<f8", &[1.0, 2.0, 4.0][..], "number 1 is 2, not 2.5"),
            ("<f8", &[0.0, 1.0, 2.004, 3.0], "not regular"),
            ("<f8", &[0.0, f64::NAN, 2.0], "not regular"),
            ("<f8", &[0.0, f64::INFINITY], "not finite"),
            ("<f8", &[-1e308, 1e308], "not finite"),
            ("<f8", &[7.0, 7.0], "do not differ"),
            ("<f8", &[7.0], "a single one"),
            ("<f4", &[1e7, 1e7 + 1.0, 1e7 + 2.0], "do not differ"),
            ("|S2", &[1.0, 2.0], "the type |S2"),
            ("<m8[s]", &[1.0, 2.0], "the type <m8[s]"),
        ] {
            let error = spacing(typestr, "{}", places).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        // The latitudes of a Gaussian grid of 64 rows begin with these.
        let gaussian = [87.8638, 85.0965, 82.3129, 79.5256];
        assert!(
            spacing("<f8", "{}", &gaussian)
                .unwrap_err()
                .contains("not regular")
        );
        let error = spacing("<i2", r#"{"scale_factor": "x"}"#, &[1.0, 2.0]).unwrap_err();
        assert!(error.contains("scale_factor"), "{error}");
    }

    #[test]
    fn elements_are_numbers_of_their_type() {
        let value = |typestr: &str, json: &str, bytes: &[u8]| {
            let array = array("x", &format!("\"{typestr}\""), &[1]);
            let numbers = CoordinateNumbers::of(&array.data_type, &attributes(json));
            numbers.unwrap().value(bytes)
        };
        let packed = r#"{"scale_factor": 0.5, "add_offset": 100}"#;
        assert_eq!(value("<i2", packed, &[0xfe, 0xff]), Some(99.0));
        assert_eq!(value("<u4", "{}", &[0, 0, 0, 0x80]), Some(2_147_483_648.0));
        assert_eq!(value("<f4", "{}", &1.5_f32.to_le_bytes()), Some(1.5));
        assert_eq!(value("<i8", "{}", &(-7_i64).to_le_bytes()), Some(-7.0));
        assert_eq!(value("<f8", "{}", &[0; 4]), None);
    }
}
