//! Data types: the size of an element, and the numbers or fields that its bytes are made of.
//!
//! A [`DataType`] is version-neutral: the v2 typestring `>i4` and the v3 name `int32` give the same
//! type, and the byte order of the stored bytes is not part of it, but of the codec chain. Decoded
//! bytes are little-endian, except that each field of a structured type keeps its stored order.
//!
//! The names of types that are mere strings (`typestr`, `v3_name`) are read here. The JSON of types
//! and fill values is read and written by `metadata::spell`.
//!
//! Sources: Zarr v2, section "Data type encoding"; Zarr v3 core, section "Data types".

mod element;
pub(crate) mod element_bytes;
mod element_text;
mod fill_value;
mod float;
mod short_name;
pub(crate) mod typestr;
pub(crate) mod v3_name;

pub(crate) use element::{Element, Field, IntegerFormat, MAX_NESTING, TimeFormat, Variable};
pub use element_text::element_text;
pub use fill_value::FillValue;
pub(crate) use float::{FLOAT16, FLOAT32, FLOAT64, FloatFormat};
pub use short_name::short_name;

use crate::error::FormatError;

/// Order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant first.
    Little,
    /// Most significant first.
    Big,
}

impl ByteOrder {
    /// The orders by the names that they have in v3.
    pub(crate) const NAMES: [(&'static str, ByteOrder); 2] =
        [("little", ByteOrder::Little), ("big", ByteOrder::Big)];

    /// The name of this byte order in v3.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ByteOrder::Little => "little",
            ByteOrder::Big => "big",
        }
    }
}

/// The type of an element of an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DataType {
    /// The name as the document spells it, for messages and `--info`.
    pub name: String,
    /// Bytes of one element: at least 1, or 0 when they vary.
    pub item_size: u64,
    /// The numbers or fields that the bytes are made of.
    pub layout: ItemLayout,
    /// The full type, from which documents of other versions are written.
    pub(crate) element: Element,
}

/// The structure of the bytes of an element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ItemLayout {
    /// Numbers of `unit` bytes each (1, 2, 4 or 8), `item_size / unit` of them: `complex128`
    /// is two of 8, `<U5` five of 4. A unit of 1 has no byte order.
    Numbers {
        /// Bytes of one number.
        unit: usize,
    },
    /// Fields that each have a byte order and are never swapped. `multi_byte` says whether any leaf
    /// has more than one byte, so that a document must name an order.
    Structured {
        /// Whether any leaf has more than one byte.
        multi_byte: bool,
    },
    /// Strings and other elements whose length varies.
    Variable,
}

/// The largest number of fields of a record, nested records included. A field takes 150 bytes for
/// as long as the array is in use, and several times that in each header of a plain file, so that a
/// record in one short document could take more memory than a small cache has.
pub const MOST_FIELDS: u64 = 8192;

impl DataType {
    /// The type of `element`, which the document calls `name`.
    ///
    /// # Errors
    ///
    /// When its size is too large for a number, or it is a record of too many fields.
    pub(crate) fn of(name: String, element: Element) -> Result<DataType, FormatError> {
        let fields = element.count_fields();
        FormatError::check_limit("the number of fields of a record", fields, MOST_FIELDS)?;
        Ok(DataType {
            name,
            item_size: element.size()?,
            layout: element.layout(),
            element,
        })
    }

    /// The type of unsigned integers of `bytes` bytes: 1, 2, 4 or 8.
    pub(crate) fn unsigned(bytes: usize) -> DataType {
        DataType {
            name: format!("uint{}", 8 * bytes),
            item_size: bytes as u64,
            layout: ItemLayout::Numbers { unit: bytes },
            element: Element::Integer(IntegerFormat::whole(bytes, false)),
        }
    }

    /// The type of the elements of a v2 array of `|O` whose object codec is `codec`.
    pub(crate) fn objects(codec: &str) -> DataType {
        let kind = match codec {
            "vlen-utf8" => Variable::Text,
            "vlen-bytes" => Variable::Bytes,
            _ => Variable::Object,
        };
        DataType {
            name: format!("|O of {codec}"),
            item_size: 0,
            layout: ItemLayout::Variable,
            element: Element::Variable(kind),
        }
    }

    /// Whether the length of elements varies.
    pub fn is_variable(&self) -> bool {
        self.layout == ItemLayout::Variable
    }

    /// The same type with all fields of a record stored in `order`. A v3 document names one order
    /// for all fields, in its codecs.
    #[must_use]
    pub(crate) fn with_field_order(mut self, order: ByteOrder) -> DataType {
        self.element.set_field_order(order);
        self
    }

    /// The byte order that a document names for elements stored in `order`: `None` if no number
    /// has several bytes, and for a record whose fields do not share one order.
    pub(crate) fn stored_order(&self, order: ByteOrder) -> Option<ByteOrder> {
        match (&self.layout, &self.element) {
            (ItemLayout::Numbers { unit: 1 } | ItemLayout::Variable, _) => None,
            (ItemLayout::Numbers { .. }, _) => Some(order),
            (ItemLayout::Structured { .. }, element) => element.common_order(),
        }
    }

    /// The number of bytes that are reversed together between big- and little-endian; 1 when none
    /// are.
    pub fn swap_unit(&self) -> usize {
        match self.layout {
            ItemLayout::Numbers { unit } => unit,
            ItemLayout::Structured { .. } | ItemLayout::Variable => 1,
        }
    }
}
