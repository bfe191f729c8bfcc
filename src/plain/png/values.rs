//! The values of elements, and the ranges of values that previews show.

use crate::dtype::{Element, FloatFormat, element_bytes};
use crate::plain::Array;
use crate::plain::packing::{MissingValue, missing};

/// The part of the values below the range of a channel, and the part above it: one in 50.
const OUTSIDE: usize = 50;

/// Reads elements of an array as numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    number: Number,
    missing: Option<MissingValue>,
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Bool,
    Unsigned,
    Signed,
    Float(FloatFormat),
}

/// The values that are shown in the first and in the last colour; equal if all values are.
pub(super) type Range = [f64; 2];

impl Values {
    /// The values of `array`; `None` if its elements are no real numbers.
    pub(super) fn of(array: &Array) -> Option<Values> {
        let number = match &array.data_type.element {
            Element::Bool => Number::Bool,
            Element::Integer(format) if format.signed => Number::Signed,
            Element::Integer(_) => Number::Unsigned,
            Element::Float(format) => Number::Float(*format),
            _ => return None,
        };
        let missing = missing(array).map(|missing| match (missing, number) {
            // A number in JSON stands for the nearest number of the type.
            #[expect(clippy::cast_possible_truncation, reason = "the type is as narrow")]
            (MissingValue::Float(value), Number::Float(format)) if format.bytes == 4 => {
                MissingValue::Float((value as f32).into())
            }
            (missing, _) => missing,
        });
        Some(Values { number, missing })
    }

    /// The value of an element; `None` if it is missing or not a number. Infinities are values.
    #[expect(clippy::cast_precision_loss, reason = "colours are coarser")]
    pub(super) fn value(self, element: &[u8]) -> Option<f64> {
        let integer = |value: i128| {
            let is_missing = self.missing == Some(MissingValue::Integer(value));
            (!is_missing).then_some(value as f64)
        };
        match self.number {
            Number::Bool => Some(f64::from(element_bytes::unsigned(element) != 0)),
            Number::Unsigned => integer(element_bytes::unsigned(element).into()),
            Number::Signed => integer(element_bytes::signed(element).into()),
            Number::Float(format) => {
                let value = format.value(format.bits(element));
                let is_missing = self.missing == Some(MissingValue::Float(value));
                (!is_missing && !value.is_nan()).then_some(value)
            }
        }
    }

    /// Whether they are whole numbers.
    pub(super) fn are_integers(self) -> bool {
        matches!(self.number, Number::Unsigned | Number::Signed)
    }

    /// Whether the elements are truth values.
    pub(super) fn are_truths(self) -> bool {
        matches!(self.number, Number::Bool)
    }
}

/// The range of `values`, which are finite: from the 2nd to the 98th percentile, both of which are among the values. If
/// these are equal, as where few pixels are not empty, from the least to the greatest value.
pub(super) fn percentiles(mut values: Vec<f64>) -> Range {
    let Some(last) = values.len().checked_sub(1) else {
        return [0.0, 1.0];
    };
    let at = last / OUTSIDE;
    let low = *values.select_nth_unstable_by(at, f64::total_cmp).1;
    let high = *values.select_nth_unstable_by(last - at, f64::total_cmp).1;
    if low < high {
        return [low, high];
    }
    let all = || values.iter().copied();
    [all().fold(low, f64::min), all().fold(high, f64::max)]
}

/// Where `value` is in `range`, from 0 to 1; the middle if all values are equal.
pub(super) fn part_of(value: f64, [low, high]: Range) -> f64 {
    if low >= high {
        return 0.5;
    }
    if value.is_infinite() {
        return f64::from(value > 0.0);
    }
    // Halves do not overflow.
    let part = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    part.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::testing::{array, attributes};

    fn values(typestr: &str, json: &str) -> Values {
        let mut array = array("t", &format!("\"{typestr}\""), &[1]);
        array.attributes = attributes(json);
        Values::of(&array).unwrap()
    }

    #[test]
    fn missing_elements_have_no_value() {
        let floats = values("<f4", r#"{"_FillValue": 1e20}"#);
        assert_eq!(floats.value(&1e20_f32.to_le_bytes()), None);
        assert_eq!(floats.value(&f32::NAN.to_le_bytes()), None);
        assert_eq!(
            floats.value(&f32::INFINITY.to_le_bytes()),
            Some(f64::INFINITY)
        );
        let integers = values("<i8", r#"{"_FillValue": -9223372036854775808}"#);
        assert_eq!(integers.value(&i64::MIN.to_le_bytes()), None);
        // A float would hold both numbers as the same value.
        let next = i64::MIN + 1;
        assert!(integers.value(&next.to_le_bytes()).is_some());
        let unsigned = values("<u8", "{}");
        assert_eq!(
            unsigned.value(&u64::MAX.to_le_bytes()),
            Some(18_446_744_073_709_551_615.0)
        );
        assert_eq!(values("<f2", "{}").value(&[0, 0x3e]), Some(1.5));
        assert_eq!(values("|b1", "{}").value(&[7]), Some(1.0));
    }

    #[test]
    fn ranges_leave_out_the_ends() {
        let counting: Vec<f64> = (0..1000).rev().map(f64::from).collect();
        let found = |values| percentiles(values).map(|end| end.to_string());
        assert_eq!(found(counting), ["19", "980"]);
        let mut few = vec![0.0; 1000];
        few[3] = 7.0;
        assert_eq!(found(few), ["0", "7"]);
        assert_eq!(found(vec![4.0; 9]), ["4", "4"]);
        assert_eq!(found(Vec::new()), ["0", "1"]);
    }

    #[test]
    fn parts_are_within_the_range() {
        let most = f64::MAX;
        for (value, range, part) in [
            (5.0, [0.0, 10.0], 0.5),
            (-1.0, [0.0, 10.0], 0.0),
            (11.0, [0.0, 10.0], 1.0),
            (0.0, [-most, most], 0.5),
            (f64::INFINITY, [0.0, 1.0], 1.0),
            (f64::NEG_INFINITY, [0.0, 1.0], 0.0),
            (4.0, [4.0, 4.0], 0.5),
        ] {
            assert!(
                (part_of(value, range) - part).abs() < 1e-12,
                "{value} {range:?}"
            );
        }
    }
}
