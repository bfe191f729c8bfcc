//! stub
use crate::dtype::ByteOrder;
/// Elements in C order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BytesCodec { /// Byte order; `None` for single bytes.
 pub endian: Option<ByteOrder> }
