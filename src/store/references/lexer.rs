//! The words of expressions.

use std::fmt;

/// A word of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    Integer(i64),
    Name(&'t str),
    /// In either kind of quotes, without escapes.
    Text(&'t str),
    /// `//`
    Quotient,
    Sign(char),
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Integer(value) => write!(f, "{value}"),
            Token::Name(name) => write!(f, "`{name}`"),
            Token::Text(text) => write!(f, "'{text}'"),
            Token::Quotient => f.write_str("`//`"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
        }
    }
}

/// Takes words from the front of a text.
pub(super) struct Lexer<'t> {
    rest: &'t str,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Lexer<'t> {
        Lexer { rest: text }
    }

    /// The next word, which stays; `None` at the end.
    ///
    /// # Errors
    /// A message, for what is no word.
    pub(super) fn peek(&self) -> Result<Option<Token<'t>>, String> {
        let mut ahead = Lexer { rest: self.rest };
        ahead.next()
    }

    /// The next word, which is consumed.
    ///
    /// # Errors
    /// Those of [`Lexer::peek`].
    pub(super) fn next(&mut self) -> Result<Option<Token<'t>>, String> {
        let text = self.rest.trim_start();
        let Some(first) = text.chars().next() else {
            return Ok(None);
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let token;
        if first.is_ascii_digit() {
            let digits = self.take(text, |c| c.is_ascii_digit());
            let value = digits.parse();
            token = Token::Integer(value.map_err(|_| format!("{digits} is beyond 64 bits"))?);
        } else if is_word(first) {
            token = Token::Name(self.take(text, is_word));
        } else if let '\'' | '"' = first {
            let inside = text.get(1..).unwrap_or_default();
            let (inside, after) = inside
                .split_once(first)
                .ok_or_else(|| "a text has no end".to_owned())?;
            self.rest = after;
            token = Token::Text(inside);
        } else if let Some(after) = text.strip_prefix("//") {
            self.rest = after;
            token = Token::Quotient;
        } else {
            self.rest = text.get(first.len_utf8()..).unwrap_or_default();
            if !"+-*%(),=".contains(first) {
                return Err(format!("`{first}` is not understood"));
            }
            token = Token::Sign(first);
        }
        Ok(Some(token))
    }

    /// Takes the longest beginning of `text` of characters that are `wanted`.
    fn take(&mut self, text: &'t str, wanted: impl Fn(char) -> bool) -> &'t str {
        let end = text.find(|c: char| !wanted(c)).unwrap_or(text.len());
        let (taken, rest) = text.split_at(end);
        self.rest = rest;
        taken
    }
}
