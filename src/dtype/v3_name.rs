//! Names of the data types of Zarr v3 that need no configuration, and of the units of times.
//!
//! Sources: Zarr v3 core, section "Data types"; zarr-extensions, `data-types`.

use super::element::{Element, IntegerFormat};
use super::float::{FLOAT32, FLOAT64, FloatFormat};

/// The type that a name without a configuration names.
pub(crate) fn without_parameters(name: &str) -> Option<Element> {
    if let Some(format) = FloatFormat::of_name(name) {
        return Some(Element::Float(format));
    }
    let integer = |digits: &str, signed| {
        let bits: u32 = digits.parse().ok()?;
        let bytes = usize::try_from(bits.div_ceil(8)).ok()?;
        Some(Element::Integer(IntegerFormat {
            bytes,
            bits,
            signed,
        }))
    };
    match name {
        "bool" => Some(Element::Bool),
        "int2" | "int4" | "int8" | "int16" | "int32" | "int64" => {
            integer(name.strip_prefix("int")?, true)
        }
        "uint2" | "uint4" | "uint8" | "uint16" | "uint32" | "uint64" => {
            integer(name.strip_prefix("uint")?, false)
        }
        "complex64" => Some(Element::Complex(FLOAT32)),
        "complex128" => Some(Element::Complex(FLOAT64)),
        _ => {
            if let Some(part) = name.strip_prefix("complex_") {
                return FloatFormat::of_name(part).map(Element::Complex);
            }
            let digits = name.strip_prefix('r')?;
            if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let bits: u64 = digits.parse().ok()?;
            bits.is_multiple_of(8)
                .then_some(Element::Raw { len: bits / 8 })
        }
    }
}

/// The ASCII spelling of a time unit of `NumPy`; `None` when it is not one.
pub(crate) fn time_unit(unit: &str) -> Option<&str> {
    match unit {
        // The Greek letter mu and the micro sign look the same.
        "\u{3bc}s" | "\u{b5}s" => Some("us"),
        "Y" | "M" | "W" | "D" | "h" | "m" | "s" | "ms" | "us" | "ns" | "ps" | "fs" | "as"
        | "generic" => Some(unit),
        _ => None,
    }
}
