//! The `categorize` filter: numbers that stand for strings.
//!
//! Name: `numcodecs.categorize`; in v2 the filter `categorize`.
//!
//! ```json
//! { "name": "numcodecs.categorize",
//!   "configuration": { "labels": ["female", "male"], "dtype": "<U6", "astype": "|u1" } }
//! ```
//!
//! The code of a label is its position in the list, counted from 1. Zero, like any number that is
//! not a code, stands for the empty string.

use std::collections::HashMap;

use super::super::{
    bytes::copy_start,
    number::{Number, Value},
};
use crate::error::FormatError;

pub(super) const NAME: &str = "numcodecs.categorize";

/// The labels, as decoded elements without their padding, and the type of their codes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Categories {
    labels: Vec<Vec<u8>>,
    code: Number,
}

impl Categories {
    /// Each of the `labels` has the bytes at the beginning of a decoded element.
    pub(crate) fn new(labels: Vec<Vec<u8>>, code: Number) -> Categories {
        let labels = labels.into_iter().map(|label| trimmed(&label).to_vec());
        Categories {
            labels: labels.collect(),
            code,
        }
    }

    /// Decodes codes to their labels, in elements of `size` bytes.
    pub(super) fn decode(&self, encoded: &[u8], size: usize, out: &mut [u8]) {
        let codes = encoded.chunks_exact(self.code.size());
        for (code, out) in codes.zip(out.chunks_exact_mut(size.max(1))) {
            let label = match self.code.read(code) {
                Value::Int(code) => usize::try_from(code).ok().and_then(|n| n.checked_sub(1)),
                Value::Float(_) => None,
            };
            let label = label.and_then(|i| self.labels.get(i));
            out.fill(0);
            copy_start(label.map_or(&[], Vec::as_slice), out);
        }
    }

    /// Encodes elements of `size` bytes to their codes.
    ///
    /// # Errors
    /// A code that its type does not have.
    pub(super) fn encode(
        &self,
        decoded: &[u8],
        size: usize,
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        // A label that is listed twice has the code of its last position, as in numcodecs.
        let labels = self.labels.iter().zip(1_i128..);
        let codes: HashMap<&[u8], i128> = labels.map(|(label, code)| (&label[..], code)).collect();
        let elements = decoded.chunks_exact(size.max(1));
        for (element, out) in elements.zip(out.chunks_exact_mut(self.code.size())) {
            let code = codes.get(trimmed(element)).copied().unwrap_or(0);
            let code = Value::Int(code);
            if !self.code.cast(code).is_some_and(|cast| cast.is_same(code)) {
                let problem = format!("{code} is no code of the type that `astype` names");
                return Err(FormatError::encoded(NAME, problem));
            }
            self.code.write(code, out);
        }
        Ok(())
    }
}

/// The element without the zeros at its end.
fn trimmed(element: &[u8]) -> &[u8] {
    let used = element.iter().rposition(|&byte| byte != 0);
    element
        .get(..used.map_or(0, |last| last + 1))
        .unwrap_or(element)
}
