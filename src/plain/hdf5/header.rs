//! Object headers, version 2, and the messages in them.
//!
//! ```text
//! 'OHDR'  2  06  length u32  message …  checksum u32
//! message:  type u8  length u16  flags u8  creation order u16  body
//! ```
//!
//! Bit 2 of the flags 06 says that attributes have a creation order, so every message has a number;
//! bits 0 and 1 say that the length has four bytes. Types and flags are hexadecimal here, and each
//! body but that of a shared datatype begins with its version.
//!
//! | type | message | body |
//! |---|---|---|
//! | 01 | dataspace | 2, rank, 0, kind (0 scalar, 1 simple, 2 null), lengths u64 … |
//! | 02 | links | 0, 1, greatest creation order u64, ~0 u64, ~0 u64 |
//! | 03 | datatype | see `datatype.rs`; shared: 3, 2, address u64 |
//! | 05 | fill value | 3, flags, and if a value is given: length u32, bytes |
//! | 06 | link | 1, flags 15, creation order u64, 1 (UTF-8), length u16, name, address u64 |
//! | 08 | layout | 3, 1 (contiguous), address u64, length u64 |
//! | 0A | group | 0, 0 |
//! | 0C | attribute | 3, flags, u16 lengths of name, type, space, 1 (UTF-8), name and NUL, type, space, value |
//! | 15 | attributes | 0, 1, greatest creation order u16, ~0 u64, ~0 u64 |
//! | 16 | references | 0, count u32 |
//!
//! Source: HDF5 File Format Specification 3.0, sections IV.A.1.b and IV.A.2.

use super::block::{FileBlock, Pointee, UNDEFINED};
use crate::error::FormatError;

/// The most attributes of one object: a creation order has two bytes.
pub(super) const MOST_ATTRIBUTES: u16 = u16::MAX;

const MESSAGE_IS_CONSTANT: u8 = 1;
const MESSAGE_IS_SHARED: u8 = 2;

/// A dataspace: `None` for the null dataspace, no lengths for a scalar.
pub(super) type Dataspace<'a> = Option<&'a [u64]>;

/// The type of a dataset or an attribute.
#[derive(Debug, Clone)]
pub(super) enum Datatype {
    /// The datatype stands in the message itself.
    Inline(Vec<u8>),
    /// A committed (named, shared) datatype, which has a block of its own.
    Committed(usize),
}

impl Datatype {
    fn body(&self) -> FileBlock {
        let mut body = FileBlock::default();
        match self {
            Datatype::Inline(bytes) => body.push(bytes),
            Datatype::Committed(block) => body.push(&[3, 2]).push_address(Pointee::Block(*block)),
        };
        body
    }

    fn flag(&self) -> u8 {
        match self {
            Datatype::Inline(_) => 0,
            Datatype::Committed(_) => MESSAGE_IS_SHARED,
        }
    }
}

/// An object header under construction.
#[derive(Debug)]
pub(super) struct ObjectHeader {
    block: FileBlock,
    attributes: u16,
}

/// Offset of the length of all messages.
const LENGTH_AT: usize = 6;
const PREFIX: usize = 10;

impl ObjectHeader {
    pub(super) fn new() -> ObjectHeader {
        let mut block = FileBlock::default();
        block.push(b"OHDR").push(&[2, 0x06, 0, 0, 0, 0]);
        ObjectHeader {
            block,
            attributes: 0,
        }
    }

    fn message(&mut self, kind: u8, flags: u8, body: &FileBlock) -> Result<&mut Self, FormatError> {
        self.numbered(kind, flags, 0, body)
    }

    fn numbered(
        &mut self,
        kind: u8,
        flags: u8,
        number: u16,
        body: &FileBlock,
    ) -> Result<&mut Self, FormatError> {
        let length = u16::try_from(body.len()).map_err(|_| too_long(body.len()))?;
        self.block.push(&[kind]).push(&length.to_le_bytes());
        self.block.push(&[flags]).push(&number.to_le_bytes());
        self.block.push_block(body);
        Ok(self)
    }

    pub(super) fn datatype(&mut self, datatype: &Datatype) -> Result<&mut Self, FormatError> {
        let flags = MESSAGE_IS_CONSTANT | datatype.flag();
        self.message(0x03, flags, &datatype.body())
    }

    pub(super) fn dataspace(&mut self, space: Dataspace) -> Result<&mut Self, FormatError> {
        self.message(0x01, 0, &dataspace(space))
    }

    /// Adds the fill value as it is in the file; without a value it is zero.
    pub(super) fn fill_value(&mut self, value: Option<&[u8]>) -> Result<&mut Self, FormatError> {
        // Space is allocated early, and the fill value is written if it is set.
        const FLAGS: u8 = 0x09;
        const IS_GIVEN: u8 = 0x20;
        let Some(value) = value else {
            return self.message(0x05, 0, FileBlock::default().push(&[3, FLAGS]));
        };
        let length = u32::try_from(value.len()).map_err(|_| too_long(value.len()))?;
        let mut body = FileBlock::default();
        body.push(&[3, FLAGS | IS_GIVEN]);
        self.message(0x05, 0, body.push(&length.to_le_bytes()).push(value))
    }

    /// Adds the address and the length of the elements; `at` is `None` if there are no elements.
    pub(super) fn layout(
        &mut self,
        at: Option<Pointee>,
        len: u64,
    ) -> Result<&mut Self, FormatError> {
        let mut body = FileBlock::default();
        body.push(&[3, 1]);
        match at {
            Some(target) => body.push_address(target),
            None => body.push_u64(UNDEFINED),
        };
        self.message(0x08, 0, body.push_u64(len))
    }

    /// Makes the object a group with this number of links.
    pub(super) fn group(&mut self, n_links: usize) -> Result<&mut Self, FormatError> {
        let mut body = FileBlock::default();
        body.push(&[0, 1]).push_u64(n_links as u64);
        self.message(0x02, 0, body.push_u64(UNDEFINED).push_u64(UNDEFINED))?;
        self.message(0x0a, 0, FileBlock::default().push(&[0, 0]))
    }

    /// Adds the link with the creation order `number` to a group.
    pub(super) fn link(
        &mut self,
        number: usize,
        name: &str,
        block: usize,
    ) -> Result<&mut Self, FormatError> {
        let length = u16::try_from(name.len()).map_err(|_| too_long(name.len()))?;
        let mut body = FileBlock::default();
        body.push(&[1, 0x15]).push_u64(number as u64);
        body.push(&[1]).push(&length.to_le_bytes());
        body.push(name.as_bytes());
        self.message(0x06, 0, body.push_address(Pointee::Block(block)))
    }

    /// Adds the number of links and messages that refer to the object, which is 1 without this
    /// message.
    pub(super) fn references(&mut self, count: u32) -> Result<&mut Self, FormatError> {
        let mut body = FileBlock::default();
        self.message(0x16, 0, body.push(&[0]).push(&count.to_le_bytes()))
    }

    /// Adds an attribute.
    ///
    /// # Errors
    ///
    /// When a part of it is too long for a message, or the object has too many attributes.
    pub(super) fn attribute(
        &mut self,
        name: &str,
        datatype: &Datatype,
        space: Dataspace,
        value: &FileBlock,
    ) -> Result<(), FormatError> {
        if self.attributes == MOST_ATTRIBUTES {
            let what = "the number of attributes";
            return Err(FormatError::too_large(what, "more", MOST_ATTRIBUTES));
        }
        let type_body = datatype.body();
        let space = dataspace(space);
        let mut body = FileBlock::default();
        body.push(&[3, u8::from(datatype.flag() != 0)]);
        for length in [name.len() + 1, type_body.len(), space.len()] {
            let length = u16::try_from(length).map_err(|_| too_long(length))?;
            body.push(&length.to_le_bytes());
        }
        body.push(&[1]).push(name.as_bytes()).push(&[0]);
        body.push_block(&type_body).push_block(&space);
        body.push_block(value);
        self.numbered(0x0c, 0, self.attributes, &body)?;
        self.attributes += 1;
        Ok(())
    }

    /// The finished header, with its length and room for its checksum.
    ///
    /// # Errors
    ///
    /// When the header is too long.
    pub(super) fn finish(mut self) -> Result<FileBlock, FormatError> {
        if self.attributes > 0 {
            let mut body = FileBlock::default();
            body.push(&[0, 1]).push(&self.attributes.to_le_bytes());
            self.message(0x15, 0, body.push_u64(UNDEFINED).push_u64(UNDEFINED))?;
        }
        let length = self.block.len() - PREFIX;
        let length = u32::try_from(length).map_err(|_| too_long(length))?;
        self.block.overwrite(LENGTH_AT, &length.to_le_bytes());
        self.block.push_checksum();
        Ok(self.block)
    }
}

fn dataspace(space: Dataspace) -> FileBlock {
    let mut body = FileBlock::default();
    let lengths = space.unwrap_or_default();
    let kind = match space {
        None => 2,
        Some([]) => 0,
        Some(_) => 1,
    };
    // Ranks are 32 at most.
    let rank = u8::try_from(lengths.len()).unwrap_or(u8::MAX);
    body.push(&[2, rank, 0, kind]);
    for &length in lengths {
        body.push_u64(length);
    }
    body
}

fn too_long(len: usize) -> FormatError {
    let what = "the size of an HDF5 header message in bytes";
    FormatError::too_large(what, len, u16::MAX)
}
