//! The versions of the format, and their common parts.

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plain) enum Cdf {
    /// CDF-2, "64-bit offset".
    Two,
    /// CDF-5, "64-bit data".
    Five,
}

/// The most dimensions of a file, and of one variable.
pub(super) const MOST_DIMENSIONS: usize = 1024;
