//! NamedTypes with names. The `NetCDF` library skips datasets of compound types unless these are objects
//! of their own, so the root group has one of each that all readers know; HDF5 needs none of them.
//! Truth values and opaque bytes have none: with a named type of either, h5netcdf or xarray above
//! it cannot open the file. The library reads the former as bytes since 4.10; others are skipped.
//!
//! | elements | name |
//! |---|---|
//! | complex numbers | `_PFNC_FLOAT_COMPLEX_TYPE`, `_PFNC_DOUBLE_COMPLEX_TYPE`, as nc-complex has them |
//! | records | `record`, `record_2` … |
//!
//! Each says how many refer to it, so that it stays when one of these is deleted from a copy of
//! the file.

use std::collections::HashMap;

use super::block::{FileBlocks, Pointee};
use super::datatype;
use super::header::{Datatype, ObjectHeader};
use crate::dtype::Element;
use crate::error::FormatError;
use crate::plain::cf::Names;

/// The types that have names.
#[derive(Debug, Default)]
pub(super) struct NamedTypes {
    found: HashMap<Vec<u8>, usize>,
    /// Those that others are made of first.
    list: Vec<NamedType>,
}

#[derive(Debug)]
struct NamedType {
    wanted_name: String,
    spelled: Vec<u8>,
    block: usize,
}

impl NamedTypes {
    /// The type of `element`, which is spelled `spelled`.
    ///
    /// # Errors
    ///
    /// When the file's headers become too large.
    pub(super) fn get(
        &mut self,
        element: &Element,
        spelled: Vec<u8>,
        blocks: &mut FileBlocks,
    ) -> Result<Datatype, FormatError> {
        if has_name(element) && is_readable(element) {
            let block = self.commit(element, spelled, blocks)?;
            return Ok(Datatype::Committed(block));
        }
        Ok(Datatype::Inline(spelled))
    }

    /// The links to all of them, by free `names`.
    pub(super) fn links(&self, names: &mut Names) -> Vec<(String, usize)> {
        let link = |of: &NamedType| (names.take(&of.wanted_name), of.block);
        self.list.iter().map(link).collect()
    }

    /// Writes their headers, once all else is written.
    ///
    /// # Errors
    ///
    /// As [`NamedTypes::get`].
    pub(super) fn finish(&mut self, blocks: &mut FileBlocks) -> Result<(), FormatError> {
        let uses = blocks.uses();
        for of in std::mem::take(&mut self.list) {
            let mut header = ObjectHeader::new();
            header.datatype(&Datatype::Inline(of.spelled))?;
            let count = uses.get(&Pointee::Block(of.block)).copied().unwrap_or(0);
            if count > 1 {
                header.references(count)?;
            }
            blocks.put(of.block, header.finish()?)?;
        }
        Ok(())
    }

    fn commit(
        &mut self,
        element: &Element,
        spelled: Vec<u8>,
        blocks: &mut FileBlocks,
    ) -> Result<usize, FormatError> {
        if let Some(&block) = self.found.get(&spelled) {
            return Ok(block);
        }
        if let Element::Record(fields) = element {
            for field in fields.iter().filter(|field| !field.name.is_empty()) {
                if has_name(&field.element) {
                    let part = datatype::of(&field.element, field.order)?;
                    self.commit(&field.element, part, blocks)?;
                }
            }
        }
        // Kept twice until it is written.
        blocks.count(2 * spelled.len() as u64)?;
        let block = blocks.reserve();
        self.found.insert(spelled.clone(), block);
        self.list.push(NamedType {
            wanted_name: name_of(element),
            spelled,
            block,
        });
        Ok(block)
    }
}

fn name_of(element: &Element) -> String {
    match element {
        Element::Complex(format) if format.bytes == 4 => "_PFNC_FLOAT_COMPLEX_TYPE".to_owned(),
        Element::Complex(_) => "_PFNC_DOUBLE_COMPLEX_TYPE".to_owned(),
        _ => "record".to_owned(),
    }
}

/// Whether the library wants a name for it.
fn has_name(element: &Element) -> bool {
    matches!(element, Element::Complex(_) | Element::Record(_))
}

/// Whether readers know it. A named type that they do not know would make the file unreadable.
fn is_readable(element: &Element) -> bool {
    match element {
        Element::Integer(_) | Element::Time(_) => true,
        Element::Float(format) | Element::Complex(format) => format.bytes > 2,
        Element::Record(fields) => fields
            .iter()
            .all(|field| field.name.is_empty() || is_readable(&field.element)),
        Element::Bool
        | Element::Bytes { .. }
        | Element::Raw { .. }
        | Element::Text { .. }
        | Element::Variable(_) => false,
    }
}
