//! Attribute values in the type of their variable, for `_FillValue`, `valid_range` and others,
//! which readers ignore or refuse in any other type.

use crate::dtype::{Element, FloatFormat};
use crate::metadata::{JsonTree, base64};

/// Encodes `value` as one element of the type `element`, decoded (little-endian); `None` if it
/// cannot be one without loss.
pub(super) fn element_of(element: &Element, value: &JsonTree) -> Option<Vec<u8>> {
    match element {
        Element::Bool => match value {
            JsonTree::Bool(value) => Some(vec![u8::from(*value)]),
            JsonTree::Integer(value @ (0 | 1)) => u8::try_from(*value).ok().map(|byte| vec![byte]),
            _ => None,
        },
        Element::Integer(format) => {
            let value = integer(value).filter(|&value| format.holds(value))?;
            low_bytes(&value.to_le_bytes(), format.bytes)
        }
        Element::Time(_) => match value {
            JsonTree::Text(text) if text == "NaT" => Some(not_a_time()),
            value => Some(i64::try_from(integer(value)?).ok()?.to_le_bytes().to_vec()),
        },
        Element::Float(format) => {
            let bits = float_bits(*format, value)?;
            low_bytes(&bits.to_le_bytes(), format.bytes)
        }
        _ => None,
    }
}

/// The element that means "not a time".
pub(super) fn not_a_time() -> Vec<u8> {
    i64::MIN.to_le_bytes().to_vec()
}

fn low_bytes(bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    bytes.get(..len).map(<[u8]>::to_vec)
}

/// An integer, which may be spelled with a decimal point.
#[expect(
    clippy::cast_possible_truncation,
    reason = "whole numbers below 2^64 are exact in 128 bits"
)]
fn integer(value: &JsonTree) -> Option<i128> {
    match *value {
        JsonTree::Integer(value) => Some(value),
        JsonTree::Float(value) if value.fract() == 0.0 && value.abs() <= 2_f64.powi(64) => {
            Some(value as i128)
        }
        _ => None,
    }
}

fn float_bits(format: FloatFormat, value: &JsonTree) -> Option<u64> {
    match value {
        JsonTree::Integer(value) => {
            // The bits are read back, because only an exact conversion counts.
            let bits = format.of_decimal(&value.to_string())?;
            let back = format.value(bits);
            (back.is_finite() && format!("{back:.0}") == value.to_string()).then_some(bits)
        }
        JsonTree::Float(value) => nearest(format, *value),
        JsonTree::Text(text) => match text.as_str() {
            "NaN" => format.nan(),
            "Infinity" => format.infinity(false),
            "-Infinity" => format.infinity(true),
            // xarray writes `_FillValue` in Zarr v3 as the eight bytes of a double in base64,
            // whatever the type of the variable is.
            text => {
                let double = <[u8; 8]>::try_from(base64::decode(text)?).ok()?;
                nearest(format, f64::from_le_bytes(double))
            }
        },
        _ => None,
    }
}

/// The bits of `value`, or of the number with the same shortest decimal spelling: in a document for
/// float32 elements, 1e20 means the float32 nearest to it.
fn nearest(format: FloatFormat, value: f64) -> Option<u64> {
    if value.is_nan() {
        return format.nan();
    }
    if value.is_infinite() {
        return format.infinity(value < 0.0);
    }
    let decimal = format!("{value:?}");
    let bits = format.of_decimal(&decimal)?;
    let exact = format.value(bits).to_bits() == value.to_bits();
    let same_decimal = format.bytes == 4
        && u32::try_from(bits).is_ok_and(|bits| format!("{:?}", f32::from_bits(bits)) == decimal);
    (exact || same_decimal).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{FLOAT32, FLOAT64, IntegerFormat};

    fn of(element: &Element, json: &str) -> Option<Vec<u8>> {
        let attributes = crate::plain::testing::attributes(&format!("{{\"a\": {json}}}"));
        element_of(element, attributes.get("a").unwrap())
    }

    #[test]
    fn integers_fit_or_are_none() {
        let short = Element::Integer(IntegerFormat::whole(2, true));
        assert_eq!(of(&short, "-32767"), Some(vec![1, 0x80]));
        assert_eq!(of(&short, "-32767.0"), Some(vec![1, 0x80]));
        for json in [
            "32768", "0.5", "1e30", "NaN", "\"1\"", "null", "[1]", "true",
        ] {
            assert_eq!(of(&short, json), None, "{json}");
        }
        let unsigned = Element::Integer(IntegerFormat::whole(8, false));
        assert_eq!(of(&unsigned, "18446744073709551615"), Some(vec![255; 8]));
        assert_eq!(of(&unsigned, "-1"), None);
        assert_eq!(of(&Element::Bool, "true"), Some(vec![1]));
        assert_eq!(of(&Element::Bool, "2"), None);
    }

    #[test]
    fn floats_are_exact_or_spelled_alike() {
        let float = |json: &str| of(&Element::Float(FLOAT32), json);
        let bytes = |value: f32| Some(value.to_le_bytes().to_vec());
        assert_eq!(float("1e20"), bytes(1e20));
        assert_eq!(float("1.0000000200408773e+20"), bytes(1e20));
        assert_eq!(float("-999.9"), bytes(-999.9));
        assert_eq!(float("-9999"), bytes(-9999.0));
        assert_eq!(float("\"NaN\""), bytes(f32::NAN));
        assert_eq!(float("NaN"), bytes(f32::NAN));
        assert_eq!(float("\"-Infinity\""), bytes(f32::NEG_INFINITY));
        assert_eq!(float("\"AAAAAAAA+H8=\""), bytes(f32::NAN));
        // 9.969209968386869e+36, the default of NetCDF, as xarray spells it in v3.
        let default = base64::encode(&9.969_209_968_386_869e36_f64.to_le_bytes());
        assert_eq!(float(&format!("\"{default}\"")), bytes(9.969_21e36));
        for json in ["16777217", "0.1234567890123", "1e39", "\"none\"", "\"\""] {
            assert_eq!(float(json), None, "{json}");
        }
        let double = of(&Element::Float(FLOAT64), "0.1234567890123");
        assert_eq!(double, Some(0.123_456_789_012_3_f64.to_le_bytes().to_vec()));
    }
}
