//! The facts about a dimension.

use super::channel::Channel;

/// A dimension of an array.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// Its name, from the axes of a multiscale or the dimension names.
    pub name: Option<String>,
    /// The quantity along the dimension.
    pub kind: AxisKind,
    /// Distance from one element to the next, in `unit`; finite and greater than 0.
    pub spacing: Option<f64>,
    /// Position of the first element, in `unit`; finite. Never present without `spacing`.
    pub origin: Option<f64>,
    /// A word of UDUNITS, such as `micrometer`, as the metadata spell it.
    pub unit: Option<String>,
    /// The facts about each channel, in the order of the elements. Empty if no channel is described, or if this is not
    /// an axis of channels.
    pub channels: Vec<Channel>,
}

/// The quantity along a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AxisKind {
    /// Space.
    Space,
    /// Time.
    Time,
    /// Channels.
    Channel,
    /// Another quantity, or an unknown one.
    #[default]
    Other,
}
