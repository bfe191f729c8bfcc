//! The kinds of coordinate reference systems.

/// The meaning of the coordinates of a CRS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrsKind {
    /// Longitude and latitude.
    Geographic,
    /// Lengths on a map.
    Projected,
    /// Anything else: places with heights, positions in space, positions in a building.
    Other,
}
