//! Sizes in options.

/// The number of bytes of a size such as `1048576`, `64M` or `64MiB` (powers of 1024), or `64MB` (of 1000), as the
/// core utilities spell it.
pub(super) fn size_bytes(text: &str) -> Result<u64, String> {
    let problem = || "expected a size such as 64M, 1GiB or 1000000".to_owned();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text[digits.len()..].to_ascii_uppercase();
    let (prefix, base) = match (unit.strip_suffix("IB"), unit.strip_suffix('B')) {
        (None, Some(prefix)) => (prefix, 1000),
        (prefix, _) => (prefix.unwrap_or(&unit), 1024),
    };
    let mut powers = (0..).zip(["", "K", "M", "G", "T"]);
    let (power, _) = powers
        .find(|(_, known)| *known == prefix)
        .ok_or_else(problem)?;
    let number: u64 = digits.parse().map_err(|_| problem())?;
    let bytes = number.checked_mul(u64::pow(base, power));
    bytes.ok_or_else(|| "more than 64 bits hold".to_owned())
}
