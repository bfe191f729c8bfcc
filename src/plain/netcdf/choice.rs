//! Chooses the version of a file and its record dimension.
//!
//! In CDF-2 a variable has at most 2^32 - 4 bytes, with one exception:
//!
//! ```text
//! fixed variables only           the last one may be larger
//! fixed and record variables     one record of the last record variable may be larger
//! ```
//!
//! So if one variable is too large, it is put last. Several large variables are possible if they
//! share their first dimension, which then becomes the record dimension. Otherwise CDF-2 cannot hold
//! them, as it cannot hold 64-bit integers. Only the record dimension can have the length 0.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::cdf::Cdf;
use super::variable::{DimKey, NcType, NcVariable};
use crate::error::FormatError;
use crate::plain::cf::is_coordinate;
use crate::plain::{FileFormat, Omitted, Options};

/// The most bytes of a variable in CDF-2, or of one record of it.
const MOST_CDF2_BYTES: u64 = (1 << 32) - 4;
/// The greatest length of a dimension in CDF-2.
const MOST_CDF2_LEN: u64 = (1 << 31) - 1;

/// The choice for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice<'a> {
    pub(super) cdf: Cdf,
    /// The key of the record dimension, if there is one.
    pub(super) record: Option<DimKey<'a>>,
}

/// Chooses for `variables`. Removes those that the file cannot hold, and sorts the others.
pub(super) fn choose<'a>(
    variables: &mut Vec<NcVariable<'a>>,
    least: Cdf,
    options: &Options,
    omitted: &mut Vec<Omitted>,
) -> Result<Choice<'a>, FormatError> {
    let asked = options.unlimited.as_deref();
    let asked = asked.and_then(|name| asked_for(name, variables));
    let record = asked.or_else(|| without_length(variables));
    variables.retain(|variable| match misfit(variable, record) {
        Some(reason) => {
            omitted.push(omission(&variable.array.name, reason));
            false
        }
        None => true,
    });
    let mut choice = Choice {
        cdf: Cdf::Two,
        record,
    };
    if least == Cdf::Five || !variables.iter().all(fits_cdf2) {
        choice.cdf = Cdf::Five;
    } else if !arrange(variables, record)? {
        let shared = match record {
            None => shared_by_large(variables)?,
            Some(_) => None,
        };
        let splits = |variable: &NcVariable<'_>| variable.is_text_along(shared);
        match shared {
            _ if variables.iter().any(splits) => choice.cdf = Cdf::Five,
            Some(_) if arrange(variables, shared)? => choice.record = shared,
            _ => choice.cdf = Cdf::Five,
        }
    }
    Ok(choice)
}

/// The key of the dimension `name`: that of its coordinate variable if there is one, else of the
/// first variable whose first dimension it is. `None` if there is no such variable, as in other
/// groups of the hierarchy.
fn asked_for<'a>(name: &str, variables: &[NcVariable<'a>]) -> Option<DimKey<'a>> {
    let named = |variable: &&NcVariable<'a>| {
        let key = variable.first_key();
        key.is_some_and(|key| key.name == Some(name))
    };
    let mut coordinates = variables.iter().filter(|v| is_coordinate(v.array));
    coordinates
        .find(named)
        .or_else(|| variables.iter().find(named))?
        .first_key()
}

/// The key of length 0 that allows the most variables without elements.
fn without_length<'a>(variables: &[NcVariable<'a>]) -> Option<DimKey<'a>> {
    let mut counts: HashMap<DimKey<'a>, (usize, Reverse<usize>)> = HashMap::new();
    for (i, variable) in variables.iter().enumerate() {
        let key = variable.first_key().filter(|key| key.len == 0);
        if let Some(key) = key.filter(|&key| misfit(variable, Some(key)).is_none()) {
            counts.entry(key).or_insert((0, Reverse(i))).0 += 1;
        }
    }
    // If several keys allow the same number of variables, the first one is taken.
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(key, _)| key)
}

/// The reason why the variable cannot be in a file with that record dimension.
fn misfit(variable: &NcVariable<'_>, record: Option<DimKey<'_>>) -> Option<FormatError> {
    let is_record = variable.is_along(record);
    if variable.is_text_along(record) {
        let what = "strings of any length along the record dimension";
        return Some(FileFormat::Nc.refused("data type", what));
    }
    let mut fixed = variable.keys().skip(usize::from(is_record));
    if fixed.any(|key| key.len == 0) {
        return Some(variable.refused_shape());
    }
    variable.slab(is_record).err()
}

/// Whether the type and the lengths of the dimensions fit CDF-2; its size in bytes is checked
/// elsewhere.
fn fits_cdf2(variable: &NcVariable<'_>) -> bool {
    !matches!(variable.kind, NcType::Int64 | NcType::UInt64)
        && variable.keys().all(|key| key.len <= MOST_CDF2_LEN)
}

/// Puts a variable that is too large last. Returns whether CDF-2 can then hold all variables.
fn arrange<'a>(
    variables: &mut Vec<NcVariable<'a>>,
    record: Option<DimKey<'a>>,
) -> Result<bool, FormatError> {
    let is_record = |variable: &NcVariable<'_>| variable.is_along(record);
    let mut large = Vec::new();
    for (i, variable) in variables.iter().enumerate() {
        if variable.slab(is_record(variable))? > MOST_CDF2_BYTES {
            large.push(i);
        }
    }
    let any_record = variables.iter().any(is_record);
    match large.as_slice() {
        [] => Ok(true),
        [one] if variables.get(*one).is_some_and(is_record) == any_record => {
            let last = variables.remove(*one);
            variables.push(last);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The key of the first dimension of all variables that are too large, if they share it.
fn shared_by_large<'a>(variables: &[NcVariable<'a>]) -> Result<Option<DimKey<'a>>, FormatError> {
    let mut shared = None;
    for variable in variables {
        if variable.slab(false)? > MOST_CDF2_BYTES {
            let key = variable.first_key();
            if key.is_none() || (shared.is_some() && shared != key) {
                return Ok(None);
            }
            shared = key;
        }
    }
    Ok(shared)
}

/// An array that the file lacks.
pub(super) fn omission(name: &str, reason: FormatError) -> Omitted {
    Omitted {
        name: name.to_owned(),
        reason,
    }
}
