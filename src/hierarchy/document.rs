//! Names of documents, and the memory that reading them takes.

use crate::store::{Key, StoreError};

/// The most memory, in bytes, that each byte of a document takes while it is parsed, for its text, its values and its
/// model: three bytes may be an empty list and a comma.
const MOST_PARSED_PER_BYTE: u64 = 36;
/// Memory, in bytes, that each value takes beside its text: in the list of values, and in the model.
const VALUE_BYTES: u64 = 34;
/// Memory, in bytes, that each list or object takes beside that.
const LIST_BYTES: u64 = 64;
/// Memory, in bytes, that each byte of a document with copies of others takes: the copies stay as text, beside an index
/// of their names.
const COPIED_PER_BYTE: u64 = 9;
/// The longest outline has one byte for this many bytes of the memory that a document may take.
const OUTLINED_PER_BYTE: u64 = 8;
/// Up to this length, in bytes, the memory budget counts only the text of a document and one copy
/// of it, not the parsed values.
const SHORT_BYTES: u64 = 64 << 10;

/// The parts that an outline leaves out of its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OmittedParts {
    /// It leaves nothing out.
    Nothing,
    /// It leaves attributes out, where there are any, but no copies of other documents.
    Attributes,
    /// It leaves copies of other documents out, and perhaps attributes.
    Copies,
}

/// The most memory, in bytes, that a document of `size` bytes may take while it is parsed. [`parsed_bytes`] is more
/// exact.
pub(super) fn most_parsed_bytes(size: u64) -> u64 {
    let per_byte = if size > SHORT_BYTES {
        MOST_PARSED_PER_BYTE
    } else {
        2
    };
    size.saturating_mul(per_byte)
}

/// Memory, in bytes, that the document `text` takes while it is parsed. A list of one-digit numbers takes ten times as much
/// memory for each byte as a long string. So the values are counted, by the characters that separate them.
pub(super) fn parsed_bytes(text: &[u8]) -> u64 {
    let copies = 2 * text.len() as u64;
    if text.len() as u64 <= SHORT_BYTES {
        return copies;
    }
    let separated = text.iter().fold(0, |sum, byte| {
        sum + match byte {
            b',' => VALUE_BYTES,
            b'[' | b'{' => LIST_BYTES,
            _ => 0,
        }
    });
    copies + separated
}

/// Memory, in bytes, that a document of `size` bytes takes whose copies of other documents are kept.
pub(super) fn copied_bytes(size: u64) -> u64 {
    let per_byte = if size > SHORT_BYTES {
        COPIED_PER_BYTE
    } else {
        3
    };
    size.saturating_mul(per_byte)
}

/// The longest outline, in bytes, when a document may take `memory` bytes.
pub(super) fn most_outlined(memory: u64) -> u64 {
    memory / OUTLINED_PER_BYTE
}

/// Whether a file of this name need not be a document. Then its content decides whether it is one.
pub(super) fn is_common_name(name: &[u8]) -> bool {
    matches!(name, b"meta" | b"attributes.json")
}

/// Whether `error` at `key` counts as absence. The error of a file that is probably no document must not end
/// the search for others, except that of a medium that cannot be read, or of a server that gives no usable answer.
pub(super) fn counts_as_absent(key: &Key, error: &StoreError) -> bool {
    is_common_name(key.name()) && !error.is_of_medium()
}

/// Whether a document of this name may describe an array that lives beside it.
pub(super) fn is_array_document(name: &[u8]) -> bool {
    matches!(name, b"zarr.json" | b".zarray" | b"meta" | b"__zmeta__")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document of `count` times `value`, with the text that stands around it.
    fn list(value: &str, count: usize) -> Vec<u8> {
        format!("[{}0]", value.repeat(count)).into_bytes()
    }

    #[test]
    fn only_an_answer_about_the_object_counts_as_absence() {
        let io = |errno| StoreError::Io {
            key: String::new(),
            message: String::new(),
            errno,
        };
        let counts = |name: &str, error| {
            let key = Key::parse(name.as_bytes()).unwrap();
            counts_as_absent(&key, &error)
        };
        for error in [
            StoreError::denied("k", "no permission"),
            StoreError::not_an_object("k", "a directory"),
            io(Some(libc::ENAMETOOLONG)),
        ] {
            assert!(counts("a/attributes.json", error.clone()), "{error:?}");
            assert!(!counts("a/zarr.json", error.clone()), "{error:?}");
        }
        for errno in [Some(libc::EIO), Some(libc::ETIMEDOUT), None] {
            assert!(!counts("a/attributes.json", io(errno)), "{errno:?}");
            assert!(!counts("a/meta", io(errno)), "{errno:?}");
        }
    }

    #[test]
    fn values_count_and_text_counts_little() {
        let digits = parsed_bytes(&list("1,", 1 << 19));
        assert!((19 << 20) / 2 < digits * 2 && digits < 20 << 20, "{digits}");
        let text = parsed_bytes(&list(&format!("\"{}\",", "a".repeat(1020)), 1 << 10));
        assert!(text < 9 << 18, "{text}");
    }

    #[test]
    fn no_text_takes_more_than_the_most() {
        for value in [
            "1,",
            "[],",
            "{},",
            "[[[[[[[[]]]]]]]],",
            "\"\",",
            "{\"\":[]},",
        ] {
            let text = list(value, 1 << 16);
            let most = most_parsed_bytes(text.len() as u64);
            assert!(parsed_bytes(&text) <= most, "{value}");
        }
    }
}
