//! An array as an image of VTK.

use crate::plain::Axis;
use crate::plain::number::Scalar;

/// The interpretation of an array as image data of VTK.
pub(super) struct VtkImage<'a> {
    pub(super) number: Scalar,
    pub(super) type_name: &'static str,
    /// The lengths of z, y, x, or of the last ones of these.
    pub(super) shape: &'a [u64],
    /// The axes that belong to `shape`.
    pub(super) axes: &'a [Axis],
    /// The number of components of one point in one data array.
    pub(super) components: u64,
    /// Names of the data arrays.
    pub(super) names: Vec<String>,
}
