//! Symbols of the units that OME-NGFF and CF spell as words of UDUNITS.

/// The symbol of `unit`, or `unit` itself if it has no well-known symbol.
pub(super) fn symbol(unit: &str) -> &str {
    match unit {
        "meter" | "metre" | "meters" | "metres" => "m",
        "kilometer" | "kilometre" | "kilometers" | "kilometres" => "km",
        "centimeter" | "centimetre" | "centimeters" | "centimetres" => "cm",
        "millimeter" | "millimetre" | "millimeters" | "millimetres" => "mm",
        "micrometer" | "micrometre" | "micrometers" | "micrometres" | "micron" | "microns"
        | "µm" | "μm" => "um",
        "nanometer" | "nanometre" | "nanometers" | "nanometres" => "nm",
        "picometer" | "picometre" | "picometers" | "picometres" => "pm",
        "second" | "seconds" | "sec" => "s",
        "millisecond" | "milliseconds" => "ms",
        "microsecond" | "microseconds" | "µs" | "μs" => "us",
        "nanosecond" | "nanoseconds" => "ns",
        "minute" | "minutes" => "min",
        "hour" | "hours" => "h",
        "day" | "days" => "d",
        "hertz" => "Hz",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::symbol;

    #[test]
    fn units_without_a_symbol_stay() {
        for (unit, expected) in [
            ("micrometer", "um"),
            ("µm", "um"),
            ("metre", "m"),
            ("nm", "nm"),
            ("seconds", "s"),
            ("degrees_north", "degrees_north"),
            ("days since 1970-01-01", "days since 1970-01-01"),
        ] {
            assert_eq!(symbol(unit), expected);
        }
    }
}
