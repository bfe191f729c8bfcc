//! Writes cards of 80 columns of ASCII.

use std::fmt::Display;

/// Columns of a card.
const CARD: usize = 80;
/// The longest text between quotes.
const MOST_TEXT: usize = 68;

/// A header under construction.
#[derive(Debug, Default)]
pub(super) struct Cards {
    out: Vec<u8>,
}

impl Cards {
    /// Adds a card with a value that ends in column 30, as the mandatory cards require.
    pub(super) fn fixed(&mut self, key: &str, value: impl Display) {
        self.card(&format!("{key:<8}= {value:>20}"));
    }

    /// Adds a card with a finite number.
    pub(super) fn float(&mut self, key: &str, value: f64) {
        self.fixed(key, format!("{value:?}").to_uppercase());
    }

    /// Adds a card with text, if a card can hold it: printable ASCII of at most 68 characters.
    /// Returns whether it was added.
    pub(super) fn text(&mut self, key: &str, text: &str) -> bool {
        let quoted = text.replace('\'', "''");
        let is_ascii = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let fits = is_ascii && quoted.len() <= MOST_TEXT;
        if fits {
            self.card(&format!("{key:<8}= '{quoted:<8}'"));
        }
        fits
    }

    /// Adds a card of text without a value, at most 72 characters.
    pub(super) fn comment(&mut self, key: &str, text: &str) {
        self.card(&format!("{key:<8}{text}"));
    }

    /// The finished header, with its END card and padding.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.card("END");
        let len = self.out.len().next_multiple_of(2880);
        self.out.resize(len, b' ');
        self.out
    }

    fn card(&mut self, text: &str) {
        let end = self.out.len() + CARD;
        self.out.extend(text.bytes().take(CARD));
        self.out.resize(end, b' ');
    }
}
