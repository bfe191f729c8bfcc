//! Strings of any length in files of groups: which of them are read, and how many.

use super::super::Arrays;
use super::super::facts::ArrayFacts;
use super::super::strings::WantedStrings;
use super::Gathering;
use crate::error::{Error, FormatError};
use crate::grid::product;
use crate::plain::{ELEMENT_BYTES, ElementKind, FileFormat, Selected, Strings, StringsLimit};

/// The most bytes of strings that are read for one file, if the user does not say.
const MOST_STRINGS: u64 = 1 << 20;
/// One of this many parts of the cache is for the strings of an `AnnData` object, whose observations
/// and variables have names.
const ANNDATA_PARTS: u64 = 10;
/// Memory for each string while a file is made, in bytes.
const STRING_MEMORY: u64 = 88;
/// Memory for each byte of a string while a file is made, in bytes.
const STRING_COPIES: u64 = 5;

impl Arrays {
    /// The most bytes of strings that are read for one file of `format`.
    pub(super) fn most_strings(&self, format: FileFormat) -> u64 {
        let budget = self.tree.loader.cache().budget().limit();
        self.tree.options.arrays.strings.unwrap_or(match format {
            FileFormat::H5ad => budget / ANNDATA_PARTS,
            _ => MOST_STRINGS,
        })
    }
}

impl Gathering<'_> {
    /// The strings of an array, or the reason why it is left out.
    pub(super) fn strings(
        &mut self,
        facts: &ArrayFacts,
    ) -> Result<Result<Strings, FormatError>, Error> {
        let shape = &facts.array.node.metadata.shape;
        let n = product(shape).unwrap_or(u64::MAX);
        let limit = self.strings_limit(n);
        // Too many strings are refused before any memory is reserved for them.
        if n.saturating_mul(ELEMENT_BYTES) > limit.bytes {
            return Ok(Err(limit.exceeded()));
        }
        self.account_for(n.saturating_mul(STRING_MEMORY))?;
        let bits = self.inputs.readers.bits_for(self.meta.access());
        let wanted = WantedStrings {
            selected: &Selected::whole(shape),
            kind: ElementKind::Text,
            limit,
            audience: self.arrays.audience(&self.meta, bits),
            deadline: self.deadline,
        };
        self.has_strings = true;
        let observed = &mut self.inputs.observations;
        let read = self.arrays.strings_of(facts, &wanted, observed);
        let strings = match read {
            Ok(strings) => strings,
            Err(Error::Metadata { error, .. } | Error::Chunk { error, .. }) => {
                return Ok(Err(error));
            }
            Err(Error::TooLarge { .. }) => {
                let problem = "a chunk of strings is larger than --max-chunk or the cache";
                return Ok(Err(FormatError::document("elements", problem)));
            }
            Err(error) => return Err(error),
        };
        self.account_for(strings.n_bytes().saturating_mul(STRING_COPIES))?;
        self.strings_left = self.strings_left.saturating_sub(strings.n_bytes());
        Ok(Ok(strings))
    }

    /// The limit of `n` more strings of the file: what is left of the bytes that the user grants, or
    /// of the memory for making the file.
    fn strings_limit(&self, n: u64) -> StringsLimit {
        let room = self.arrays.most_gathered().saturating_sub(self.memory);
        let room = room.saturating_sub(n.saturating_mul(STRING_MEMORY)) / STRING_COPIES;
        if room < self.strings_left {
            return StringsLimit {
                what: "the size of the strings in bytes that there is memory for (see --cache-size)",
                bytes: room,
            };
        }
        StringsLimit {
            what: "the size of the strings in bytes that may be read for this file (see --strings)",
            bytes: self.strings_left,
        }
    }
}
