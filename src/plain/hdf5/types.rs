//! Named (committed) datatypes. HDF5 itself does not need them, but the `NetCDF` library skips
//! datasets of compound types that have no name. So the root group links one of each compound type
//! that all readers understand. Truth values and opaque bytes stay unnamed: h5netcdf, and xarray
//! with it, cannot open a file with a named type of either. The `NetCDF` library reads truth values
//! as bytes since version 4.10, and skips opaque bytes.
//!
//! | elements | name |
//! |---|---|
//! | complex numbers | `_PFNC_FLOAT_COMPLEX_TYPE`, `_PFNC_DOUBLE_COMPLEX_TYPE`, as nc-complex has them |
//! | records | `record`, `record_2` … |
//!
//! Each named type has a reference count, so that it stays when a program deletes one of the
//! objects that use it from a copy of the file.

use std::collections::HashMap;

use super::block::{FileBlocks, Pointee};
use super::datatype;
use super::header::{Datatype, ObjectHeader};
use super::spelling::is_readable;
use crate::dtype::Element;
use crate::error::FormatError;
use crate::plain::cf::Names;

/// The committed datatypes of a file.
#[derive(Debug, Default)]
pub(super) struct CommittedTypes {
    found: HashMap<Vec<u8>, usize>,
    /// Types that are part of other types come first.
    list: Vec<CommittedType>,
}

#[derive(Debug)]
struct CommittedType {
    wanted_name: &'static str,
    spelled: Vec<u8>,
    block: usize,
}

impl CommittedTypes {
    /// The datatype of `element`, whose message is `spelled`: a named type if it needs a name.
    ///
    /// # Errors
    ///
    /// When the headers of the file become too large.
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

    /// The links to all named types; each takes a free name from `names`.
    pub(super) fn links(&self, names: &mut Names) -> Vec<(String, usize)> {
        let link = |of: &CommittedType| (names.take(of.wanted_name), of.block);
        self.list.iter().map(link).collect()
    }

    /// Writes the headers of the types, after all objects that refer to them.
    ///
    /// # Errors
    ///
    /// Those of [`CommittedTypes::get`].
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
        // The message is in memory twice until it is written.
        blocks.count(2 * spelled.len() as u64)?;
        let block = blocks.reserve();
        self.found.insert(spelled.clone(), block);
        self.list.push(CommittedType {
            wanted_name: name_of(element),
            spelled,
            block,
        });
        Ok(block)
    }
}

fn name_of(element: &Element) -> &'static str {
    match element {
        Element::Complex(format) if format.bytes == 4 => "_PFNC_FLOAT_COMPLEX_TYPE",
        Element::Complex(_) => "_PFNC_DOUBLE_COMPLEX_TYPE",
        _ => "record",
    }
}

/// Whether the `NetCDF` library needs a name for the type.
fn has_name(element: &Element) -> bool {
    matches!(element, Element::Complex(_) | Element::Record(_))
}
