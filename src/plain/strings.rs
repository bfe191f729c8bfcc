//! The elements of an array of strings (or bytes) of any length, decoded and in memory.
//!
//! Formats whose sizes depend on the strings can only be laid out when all of them are known. The
//! caller gathers them from the chunks of the array, in any order.

use crate::error::FormatError;

/// The type of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementKind {
    /// Strings, in UTF-8.
    Text,
    /// Bytes.
    Bytes,
}

/// Strings or bytes of any length, by their rank in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    kind: ElementKind,
    /// The elements in the order in which they were put.
    bytes: Vec<u8>,
    /// Start and end of each element in `bytes`, by rank.
    places: Vec<(u32, u32)>,
    limit: StringsLimit,
    /// The most bytes of `bytes`.
    most: u64,
}

/// The limit of the memory of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringsLimit {
    /// The quantity that is limited, and the option that limits it, for the error message.
    pub what: &'static str,
    /// The most bytes of all elements, with [`ELEMENT_BYTES`] for each; at most 4 GiB count.
    pub bytes: u64,
}

impl StringsLimit {
    /// The error of strings that exceed the limit.
    pub fn exceeded(self) -> FormatError {
        FormatError::above_limit(self.what, self.bytes)
    }
}

/// The bytes that each element counts in the limit beside its text: as many as its length takes in a
/// decoded chunk.
pub const ELEMENT_BYTES: u64 = 4;

impl Strings {
    /// `n` strings, all of which are `fill`.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`] when they exceed the limit, and [`FormatError::Encoded`] when
    /// `fill` is not valid UTF-8.
    pub fn filled(
        n: u64,
        fill: &[u8],
        kind: ElementKind,
        limit: StringsLimit,
    ) -> Result<Strings, FormatError> {
        let lengths = n.saturating_mul(ELEMENT_BYTES);
        let most = limit.bytes.min(u32::MAX.into()).checked_sub(lengths);
        let most = most.ok_or_else(|| limit.exceeded())?;
        let n = usize::try_from(n).map_err(|_| limit.exceeded())?;
        let mut strings = Strings {
            kind,
            bytes: Vec::new(),
            places: Vec::new(),
            limit,
            most,
        };
        let place = strings.push(fill)?;
        strings.places = vec![place; n];
        Ok(strings)
    }

    /// Sets the element of `rank`, if the array has one.
    ///
    /// # Errors
    ///
    /// Those of [`Strings::filled`].
    pub fn put(&mut self, rank: u64, element: &[u8]) -> Result<(), FormatError> {
        let place = self.push(element)?;
        let rank = usize::try_from(rank).ok();
        if let Some(to) = rank.and_then(|rank| self.places.get_mut(rank)) {
            *to = place;
        }
        Ok(())
    }

    fn push(&mut self, element: &[u8]) -> Result<(u32, u32), FormatError> {
        if self.kind == ElementKind::Text {
            str::from_utf8(element).map_err(|error| {
                let problem = format!("a string is no UTF-8 from byte {} on", error.valid_up_to());
                FormatError::encoded("strings", problem)
            })?;
        }
        let start = self.bytes.len();
        if (start + element.len()) as u64 > self.most {
            return Err(self.limit.exceeded());
        }
        self.bytes.extend_from_slice(element);
        // The limit is less than 4 GiB.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Ok((offset(start), offset(self.bytes.len())))
    }

    /// The type of the elements.
    pub fn kind(&self) -> ElementKind {
        self.kind
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The elements in C order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|&(start, end)| {
            let element = self.bytes.get(start as usize..end as usize);
            element.unwrap_or_default()
        })
    }

    /// The length of the longest element in bytes; 0 where there are no elements.
    pub fn longest(&self) -> u64 {
        let lengths = self.iter().map(|element| element.len() as u64);
        lengths.max().unwrap_or(0)
    }

    /// The bytes that the elements take of a limit.
    pub fn n_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.places.len() as u64 * ELEMENT_BYTES
    }

    /// Whether an element has a NUL in it, which ends a string in C.
    pub fn have_nul(&self) -> bool {
        self.iter().any(|element| element.contains(&0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(bytes: u64) -> StringsLimit {
        StringsLimit {
            what: "the size",
            bytes,
        }
    }

    fn three(bytes: u64) -> Result<Strings, FormatError> {
        Strings::filled(3, b"ab", ElementKind::Text, limit(bytes))
    }

    #[test]
    fn strings_come_in_any_order_and_stay_within_the_limit() {
        let mut strings = three(12 + 8).unwrap();
        strings.put(2, "zoë".as_bytes()).unwrap();
        strings.put(0, b"").unwrap();
        strings.put(7, b"xy").unwrap();
        let all: Vec<&[u8]> = strings.iter().collect();
        assert_eq!(all, [&b""[..], b"ab", "zoë".as_bytes()]);
        assert_eq!((strings.longest(), strings.n_bytes()), (4, 20));
        assert!(matches!(
            strings.put(1, b"x"),
            Err(FormatError::TooLarge { .. })
        ));
        assert!(three(13).is_err());
        assert!(three(11).is_err());
        assert!(three(u64::MAX).unwrap().put(0, b"\xff").is_err());
        assert!(!strings.have_nul());
        let nul = Strings::filled(1, b"\0", ElementKind::Bytes, limit(9)).unwrap();
        assert!(nul.have_nul() && nul.len() == 1 && !nul.is_empty());
    }
}
