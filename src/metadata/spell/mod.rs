//! How documents spell data types and fill values: read into the types of [`dtype`](crate::dtype),
//! and written from them.

mod dialect;
mod float_json;
mod read_fill;
mod read_type_v2;
mod read_type_v3;
mod write_fill;
mod write_type;

pub(super) use dialect::Dialect;
