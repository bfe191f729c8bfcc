//! Classic `NetCDF`: the arrays of one group, with dimensions and attributes, as one file.
//!
//! ```text
//! 0          H            up(H, 4096)                                           end
//! | header   | zeros      | fixed variables, in order  | records 0, 1, 2 …      |
//!
//! header:   'C' 'D' 'F' 2|5, numrecs, dimensions, global attributes, variables
//! record:   one slab of every record variable, each padded to 4 bytes
//! ```
//!
//! * **Version.** The file is CDF-2, which all readers support, if types and sizes fit. For 64-bit
//!   integers and greater sizes it would be CDF-5, which GDAL, scipy, R and Octave do not read, so
//!   a group that does not fit CDF-2 is a file of `NetCDF`-4, see [`super::hdf5`]. It is CDF-5 only
//!   if the user asks for that, or for a record dimension. See [`choice`].
//! * **Offsets.** A variable of 4096 bytes or more begins at a multiple of 4096, and so does the
//!   first variable after it: no page holds elements of a large array and anything else. Smaller
//!   variables are packed at multiples of 8, so that a group of many stays small. See [`offsets`].
//! * **Records.** There is a record dimension only if the user asks for one, if a variable has no
//!   elements along its first axis, or if CDF-2 cannot hold several large variables otherwise. The
//!   reason is that a coordinate spread over records shares each of its pages with large data.
//! * **Text** has the type char and one more dimension, which is as long as the longest string;
//!   complex numbers are pairs along one more dimension, `ri`.
//!
//! The byte order is big-endian throughout. Sources: "The `NetCDF` Classic Format Specification"
//! and "The `NetCDF` 64-bit Data (CDF-5) Format Specification", in the `NetCDF` users' guide.

mod cdf;
mod choice;
mod header;
mod offsets;
mod variable;

use super::cf::{Dimensions, Names, attributes, coordinates_first};
use super::hdf5::{self, Convention};
use super::layout::{Elements, Slabs};
use super::{FileFormat, Group, GroupFile, Layout, Omitted, Options};
use crate::error::FormatError;
pub(super) use cdf::Cdf;
use cdf::MOST_DIMENSIONS;
use choice::{Choice, omission};
use header::NcHeader;
use offsets::{VariableOffsets, VariableSize};
use variable::{DimKey, NcType, NcVariable};

/// The most bytes of all strings of any length in one file, which are kept in memory.
const MOST_TEXT_BYTES: u64 = 4 << 20;

/// A variable with the indices of its dimensions in the file.
struct PlacedVariable<'a> {
    variable: NcVariable<'a>,
    dimensions: Vec<usize>,
    is_record: bool,
}

/// The arrays of a group that a file can hold.
struct Classic<'a> {
    variables: Vec<NcVariable<'a>>,
    choice: Choice<'a>,
    omitted: Vec<Omitted>,
}

/// Lays out the arrays that are directly in `group` as a file of CDF-2 if that can hold all that
/// `NetCDF`-4 can, else of `NetCDF`-4. With the record dimension that the user asks for, the file is CDF-2 or else CDF-5.
///
/// # Errors
///
/// Those of [`classic_file`].
pub(super) fn file(group: &Group, options: &Options) -> Result<GroupFile, FormatError> {
    let found = classic(group, Cdf::Two, options)?;
    let has_records = options.unlimited.as_deref().is_some_and(|name| {
        let record = found.choice.record;
        record.is_some_and(|key| key.name == Some(name))
    });
    let is_lost = |omitted: &Omitted| {
        let mut arrays = group.arrays.iter();
        let array = arrays.find(|array| array.name == omitted.name);
        array.is_some_and(|array| hdf5::can_hold(array, Convention::NetCdf))
    };
    let exceeds = found.choice.cdf == Cdf::Five || found.omitted.iter().any(is_lost);
    if exceeds && !has_records {
        return hdf5::file(group, Convention::NetCdf);
    }
    laid_out(group, found)
}

/// Lays out the arrays that are directly in `group` as a file of version `least` if they fit, else
/// of CDF-5.
///
/// # Errors
///
/// When the header or the file would be too large, or when the file could hold none of the arrays.
pub(super) fn classic_file(
    group: &Group,
    least: Cdf,
    options: &Options,
) -> Result<GroupFile, FormatError> {
    laid_out(group, classic(group, least, options)?)
}

/// The file of these arrays of `group`.
fn laid_out(group: &Group, found: Classic<'_>) -> Result<GroupFile, FormatError> {
    let Classic {
        variables,
        choice,
        mut omitted,
    } = found;
    let (dimensions, placed) = dimensions(variables, &choice, &mut omitted);
    if placed.is_empty() && !group.arrays.is_empty() {
        let reason = omitted.into_iter().next();
        return Err(reason.map_or_else(
            || FileFormat::Nc.refused("", group.name.as_str()),
            |first| first.reason.within(&first.name),
        ));
    }
    omitted.extend(group.omitted.iter().cloned());
    omitted.sort_by(|a, b| a.name.cmp(&b.name));
    let layout = layout(group, &omitted, &choice, &dimensions, &placed)?;
    Ok(GroupFile { layout, omitted })
}

/// Chooses the version and the record dimension.
fn classic<'a>(
    group: &'a Group,
    least: Cdf,
    options: &Options,
) -> Result<Classic<'a>, FormatError> {
    let mut omitted = Vec::new();
    let mut variables = Vec::new();
    let mut text_bytes = 0_u64;
    for array in coordinates_first(group) {
        let variable = NcVariable::of(array).and_then(|variable| {
            let bytes = text_bytes + variable.text_bytes();
            let what = "the size of the strings, each padded to the longest of its array, in bytes";
            FormatError::check_limit(what, bytes, MOST_TEXT_BYTES)?;
            text_bytes = bytes;
            Ok(variable)
        });
        match variable {
            Ok(variable) => variables.push(variable),
            Err(reason) => omitted.push(omission(&array.name, reason)),
        }
    }
    let choice = choice::choose(&mut variables, least, options, &mut omitted)?;
    Ok(Classic {
        variables,
        choice,
        omitted,
    })
}

/// The dimensions of the file, and the variables, each with the indices of its dimensions. Variables that
/// would exceed the greatest number of dimensions are omitted.
fn dimensions<'a>(
    variables: Vec<NcVariable<'a>>,
    choice: &Choice<'a>,
    omitted: &mut Vec<Omitted>,
) -> (Dimensions, Vec<PlacedVariable<'a>>) {
    let mut dimensions = Dimensions::new(variables.iter().map(|variable| variable.array));
    let mut placed = Vec::new();
    for variable in variables {
        // Only the first axis can have the record dimension: another axis of the same key gets a
        // dimension of its own.
        let mut keys: Vec<(Option<String>, u64)> = Vec::new();
        for (axis, key) in variable.keys().enumerate() {
            let name = key.name.map(str::to_owned);
            keys.push(if axis > 0 && choice.record == Some(key) {
                let stem = name.as_deref().unwrap_or("dim");
                (Some(format!("{stem}_{}", key.len)), key.len)
            } else {
                (name, key.len)
            });
        }
        let mut added: Vec<_> = keys
            .iter()
            .filter(|(name, len)| dimensions.find(name.as_deref(), *len).is_none())
            .collect();
        added.sort();
        added.dedup();
        if dimensions.list().len() + added.len() > MOST_DIMENSIONS {
            let what = format!("more than {MOST_DIMENSIONS} in one file");
            omitted.push(omission(
                &variable.array.name,
                FileFormat::Nc.refused("dimensions", what),
            ));
            continue;
        }
        let of_axes = keys.iter();
        placed.push(PlacedVariable {
            dimensions: of_axes
                .map(|(name, len)| dimensions.take(name.as_deref(), *len))
                .collect(),
            is_record: choice.record.is_some() && variable.keys().next() == choice.record,
            variable,
        });
    }
    (dimensions, placed)
}

fn layout(
    group: &Group,
    omitted: &[Omitted],
    choice: &Choice<'_>,
    dimensions: &Dimensions,
    placed: &[PlacedVariable<'_>],
) -> Result<Layout, FormatError> {
    let slots = placed.iter().map(|placed| {
        let is_record = placed.is_record;
        let slab = placed.variable.slab(is_record)?;
        Ok(VariableSize { slab, is_record })
    });
    let slots: Vec<VariableSize> = slots.collect::<Result<_, FormatError>>()?;

    let mut header = NcHeader::new(choice.cdf);
    let find = |key: DimKey<'_>| Some((dimensions.find(key.name, key.len)?, key.len));
    let record = choice.record.and_then(find);
    let n_records = record.map_or(0, |(_, len)| len);
    header.number(n_records)?;
    header.dimensions(dimensions.list(), record.map(|(index, _)| index))?;
    // Attributes of a group never have the type of a variable.
    header.attributes(&attributes::of_group(group, omitted), NcType::Char)?;
    header.list(header::VARIABLE, placed.len())?;
    let mut names = Names::default();
    for (placed, slot) in placed.iter().zip(&slots) {
        let name = names.take(&placed.variable.array.name);
        header.variable(&name, &placed.variable, &placed.dimensions, slot.slab)?;
    }
    let whole = VariableOffsets::of(header.len(), &slots, n_records)?;
    let bytes = header.finish(&whole.begins);

    let mut builder = Layout::builder();
    builder.bytes(bytes);
    // In the order of their offsets: fixed variables before records.
    for is_record in [false, true] {
        for ((placed, slot), begin) in placed.iter().zip(&slots).zip(&whole.begins) {
            if slot.is_record != is_record {
                continue;
            }
            let variable = &placed.variable;
            if let Some(text) = variable.text() {
                builder.seek(*begin).bytes(text);
                continue;
            }
            let mut elements = Elements::all(variable.array, variable.transform.clone())?;
            if is_record && slot.slab != whole.record_len {
                elements.slabs = Some(Slabs {
                    len: slot.slab,
                    stride: whole.record_len,
                });
            }
            builder.seek(*begin).elements(elements);
        }
    }
    if whole.end > builder.len() {
        builder.seek(whole.end);
    }
    builder.finish()
}

#[cfg(test)]
mod tests;
