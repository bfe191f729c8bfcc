//! A file that holds a group.

use super::array::Omitted;
use super::layout::Layout;

/// A file that holds a group.
#[derive(Debug)]
pub struct GroupFile {
    /// The bytes of the file.
    pub layout: Layout,
    /// The arrays, groups and attributes that the file does not hold.
    pub omitted: Vec<Omitted>,
}
