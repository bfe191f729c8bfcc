//! Cards: 80 columns of ASCII each.

use std::fmt::Display;

/// Columns of a card.
const CARD: usize = 80;
/// The longest text between quotes.
const MOST_TEXT: usize = 68;

/// A header that is being written.
#[derive(Debug, Default)]
pub(super) struct Cards {
    out: Vec<u8>,
}

impl Cards {
    /// A card with a value that ends in column 30, where the mandatory ones must.
    pub(super) fn fixed(&mut self, key: &str, value: impl Display) {
        self.card(&format!("{key:<8}= {value:>20}"));
    }

    /// A card with a number, which is finite.
    pub(super) fn float(&mut self, key: &str, value: f64) {
        self.fixed(key, format!("{value:?}").to_uppercase());
    }

    /// A card with text, if that has one: printable ASCII of 68 characters at most.
    pub(super) fn text(&mut self, key: &str, text: &str) -> bool {
        let quoted = text.replace('\'', "''");
        let is_ascii = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let fits = is_ascii && quoted.len() <= MOST_TEXT;
        if fits {
            self.card(&format!("{key:<8}= '{quoted:<8}'"));
        }
        fits
    }

    /// A card of text without a value, 72 characters at most.
    pub(super) fn comment(&mut self, key: &str, text: &str) {
        self.card(&format!("{key:<8}{text}"));
    }

    /// The header, with its end and blanks.
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
