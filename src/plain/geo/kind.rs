//! The kinds of coordinate reference systems.

/// What the coordinates of a CRS are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrsKind {
    /// Longitude and latitude.
    Geographic,
    /// Lengths on a map.
    Projected,
    /// Anything else: heights besides, positions in space, positions in a building.
    Other,
}
