//! The common parts of `NetCDF` and HDF5 files of a group: typed attributes, dimensions and names,
//! as the CF conventions and their readers expect them. Each format encodes them in its own way.
//!
//! ```text
//! attributes::of_array(array)     Vec<Attribute>: name, and text | integers | floats | own type
//! Dimensions::new(coordinates)    (name, length) -> index of a dimension with a unique name
//! Names::take(wanted)             a name that the NetCDF library can read, copy and distinguish
//! with_grid_mappings(group)    the group with variables for coordinate systems that it describes in another way
//! time::units(format)             "seconds since 1970-01-01"
//! ```
//!
//! Sources: CF conventions 1.11, sections 2.5 (missing data), 3.5 (flags), 4.4 (time) and 8.1
//! (packed data); the `NetCDF` users' guide, appendix "Attribute conventions".

pub(in crate::plain) mod attributes;
pub(in crate::plain) mod dimensions;
mod grid_mappings;
pub(in crate::plain) mod names;
mod own;
pub(in crate::plain) mod time;

pub(in crate::plain) use attributes::{Attribute, CfValue};
pub(in crate::plain) use dimensions::{
    COMPLEX, Dimension, Dimensions, MOST_TEXT, coordinates_first, is_coordinate, text_dimension,
};
pub(in crate::plain) use grid_mappings::with_grid_mappings;
pub(in crate::plain) use names::Names;
