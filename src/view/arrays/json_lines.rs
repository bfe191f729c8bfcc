//! `.jsonl` files, the only format of one array whose size is known only after everything is
//! decoded.

use std::num::NonZeroUsize;

use super::Arrays;
use super::facts::ArrayFacts;
use super::file::{FileParts, is_refusal};
use super::lock;
use super::strings::{self, WantedStrings};
use crate::budget::Holding;
use crate::error::{Error, FormatError};
use crate::grid::product;
use crate::plain::{ELEMENT_BYTES, FileFormat, Layout, Selection, StringsLimit, jsonl};

/// The most bytes of one file.
const MOST_BYTES: u64 = 64 << 20;
/// A file may take this fraction of the cache. With its strings, their positions and its lines, it
/// needs less than half of the cache, so that chunks can be decoded meanwhile.
const LIMIT_PARTS: u64 = 10;
/// The shortest line is `""` and a newline.
const LEAST_LINE: u64 = 3;

/// The most files of which it is noted that they are too long.
pub(super) const MOST_NOTED: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not 0");

impl Arrays {
    pub(super) fn make_jsonl(
        &self,
        facts: &ArrayFacts,
        selection: Option<&Selection>,
    ) -> Result<Option<FileParts>, Error> {
        let made = self.lines_of(facts, selection);
        if selection.is_none() && strings::kind_of(facts).is_some() {
            let (path, document) = (&facts.array.path, &facts.array.node.document);
            match &made {
                Err(Error::Metadata { error, .. }) if is_refusal(error) => {
                    self.too_long.put(path.clone(), document.meta.version);
                }
                Ok(_) => self.too_long.forget(path),
                Err(_) => {}
            }
        }
        made
    }

    fn lines_of(
        &self,
        facts: &ArrayFacts,
        selection: Option<&Selection>,
    ) -> Result<Option<FileParts>, Error> {
        let document = &facts.array.node.document.key;
        let refused = |error| Error::in_document(document, error);
        let Some(kind) = strings::kind_of(facts) else {
            let name = &facts.array.chunked.layout().data_type().name;
            let title = FileFormat::Jsonl.title();
            let error = FormatError::inexpressible("data type", name.as_str(), title);
            return Err(refused(error));
        };
        let Some(selected) = facts.selected(selection) else {
            return Ok(None);
        };
        let limit = MOST_BYTES.min(self.tree.loader.cache().budget().limit() / LIMIT_PARTS);
        let mut most = StringsLimit {
            what: "the size of the JSON lines file in bytes (see --cache-size)",
            bytes: limit,
        };
        let n_elements = product(&selected.shape).unwrap_or(u64::MAX);
        if n_elements.saturating_mul(LEAST_LINE) > limit {
            return Err(refused(most.exceeded()));
        }
        let place = size_of::<(u32, u32)>() as u64;
        let memory = limit.saturating_mul(2) + n_elements * place;
        let holding = Holding::NOTHING.to_hold("the lines of a file");
        // Only one file is made at a time: each decodes chunks while it holds a part of the budget,
        // and must not wait for another file.
        let _alone = lock(&self.writing);
        let mut reservation = self.tree.loader.cache().reserve(memory, holding)?;
        reservation.keep();
        let mut parts = facts.parts(Layout::of_bytes(Vec::new()));
        let bits = parts.inputs.readers.bits_for(parts.meta.access());
        let audience = self.audience(&parts.meta, bits);
        let observed = &mut parts.inputs.observations;
        // Lines of at most `limit` bytes are made of fewer bytes than this.
        most.bytes = limit + n_elements * (ELEMENT_BYTES - LEAST_LINE);
        let wanted = WantedStrings {
            selected: &selected,
            kind,
            limit: most,
            audience,
            deadline: self.tree.loader.deadline(),
        };
        let strings = self.strings_of(facts, &wanted, observed)?;
        let lines = jsonl::lines(&strings, limit).map_err(refused)?;
        parts.layout = Layout::of_bytes(lines);
        parts.has_elements = true;
        Ok(Some(parts))
    }

    /// Whether the strings of the array were found to be too long for a file, since its document was last changed.
    pub(super) fn is_too_long(&self, facts: &ArrayFacts) -> bool {
        let noted = self.too_long.get(&facts.array.path);
        noted == Some(facts.array.node.document.meta.version)
    }
}
