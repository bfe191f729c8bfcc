//! The strings or bytes of any length in a decoded chunk.
//!
//! ```text
//! 03000000 | 01000000 61 | 00000000 | 02000000 0a22     "a", "" and "\n\""
//! count      length, bytes …                            numbers u32, little-endian
//! ```

use crate::error::FormatError;

/// An iterator over the elements of a decoded chunk, in C order.
#[derive(Debug, Clone)]
pub struct ChunkElements<'a> {
    rest: &'a [u8],
    left: u32,
}

/// The elements of `block`, which is a count followed by the elements, each with its length in
/// front. The iterator ends after an error; bytes after the last element are an error.
///
/// # Errors
///
/// When the count is missing.
pub fn chunk_strings(block: &[u8]) -> Result<ChunkElements<'_>, FormatError> {
    let (left, rest) = word(block).ok_or_else(|| wrong("no count of elements"))?;
    Ok(ChunkElements { rest, left })
}

impl<'a> Iterator for ChunkElements<'a> {
    type Item = Result<&'a [u8], FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = std::mem::take(&mut self.left);
        let rest = std::mem::take(&mut self.rest);
        if left == 0 {
            let extra = rest.len();
            return (extra > 0)
                .then(|| Err(wrong(format!("{extra} bytes behind the last element"))));
        }
        let found = word(rest).and_then(|(length, rest)| {
            let length = usize::try_from(length).ok()?;
            rest.split_at_checked(length)
        });
        let Some((element, rest)) = found else {
            let problem = format!("cut off {left} elements before the end");
            return Some(Err(wrong(problem)));
        };
        (self.left, self.rest) = (left - 1, rest);
        Some(Ok(element))
    }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*word), rest))
}

fn wrong(problem: impl Into<String>) -> FormatError {
    FormatError::encoded("strings", problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(block: &[u8]) -> Result<Vec<&[u8]>, FormatError> {
        chunk_strings(block)?.collect()
    }

    #[test]
    fn elements_come_in_order() {
        let block = b"\x03\0\0\0\x01\0\0\0a\0\0\0\0\x02\0\0\0\n\"";
        assert_eq!(all(block).unwrap(), [&b"a"[..], b"", b"\n\""]);
        assert_eq!(all(&[0; 4]).unwrap(), [b""; 0]);
    }

    #[test]
    fn every_length_is_checked() {
        for (block, problem) in [
            (&b""[..], "no count"),
            (b"\x01\0\0", "no count"),
            (b"\x01\0\0\0", "cut off 1"),
            (b"\xff\xff\xff\xff\0\0\0\0\x01\0\0\0", "cut off 4294967294"),
            (b"\x01\0\0\0\xff\xff\xff\xffa", "cut off 1"),
            (b"\0\0\0\0a", "1 bytes behind"),
        ] {
            let error = all(block).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
