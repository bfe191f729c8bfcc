//! Strings of any length in files of groups: which of them are read, and how many.

use super::super::Arrays;
use super::super::facts::ArrayFacts;
use super::{Gathering, more_than};
use crate::error::{Error, FormatError};
use crate::grid::product;
use crate::plain::{ELEMENT_BYTES, ElementKind, FileFormat, Selected, Strings, StringsLimit};

/// The most bytes of strings that are read for one file, if the user does not say.
const MOST_STRINGS: u64 = 1 << 20;
/// For an `AnnData` object, whose observations and variables have names, this part of the cache.
const ANNDATA_PARTS: u64 = 10;
/// Memory for each string and for each of its bytes, while a file is made.
const STRING_MEMORY: u64 = 88;
const STRING_COPIES: u64 = 3;

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
    /// The strings of an array, or the reason to leave it out.
    pub(super) fn strings(
        &mut self,
        facts: &ArrayFacts,
    ) -> Result<Result<Strings, FormatError>, Error> {
        let shape = &facts.array.node.metadata.shape;
        let n = product(shape).unwrap_or(u64::MAX);
        // Found before any memory is asked for.
        let least = n.saturating_mul(ELEMENT_BYTES);
        if let Err(reason) = self.check_strings(least, n) {
            return Ok(Err(reason));
        }
        self.account_for(n.saturating_mul(STRING_MEMORY))?;
        let bits = self.inputs.readers.bits_for(self.meta.access());
        let audience = self.arrays.audience(&self.meta, bits);
        let whole = Selected::whole(shape);
        let limit = StringsLimit {
            bytes: self.strings_left,
            ..self.strings_limit()
        };
        let observed = &mut self.inputs.observations;
        let kind = ElementKind::Text;
        let read = (self.arrays).strings_of(facts, &whole, kind, limit, audience, observed);
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

    /// Checks that strings of `bytes` bytes, `n` of them, may be read.
    fn check_strings(&self, bytes: u64, n: u64) -> Result<(), FormatError> {
        if bytes > self.strings_left {
            return Err(self.strings_limit().exceeded());
        }
        let most = self.arrays.most_gathered();
        let memory = n.saturating_mul(STRING_MEMORY);
        if self.memory.saturating_add(memory) > most {
            let what = "the memory of the strings in one file (see --cache-size)";
            return Err(more_than(what, most));
        }
        Ok(())
    }

    /// What the strings of one file may take.
    fn strings_limit(&self) -> StringsLimit {
        StringsLimit {
            what: "the size of the strings in one file in bytes (see --strings)",
            bytes: self.arrays.most_strings(self.format),
        }
    }
}
