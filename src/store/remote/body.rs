//! The body of an answer.

use bytes::Bytes;

/// A shorter answer is copied to memory of its own while it arrives. A part that is not copied keeps the whole
/// buffer of its connection in memory, up to 400 KiB, and the connection allocates another buffer for the next
/// part. With hundreds of connections, these buffers would take more memory than the answers.
const SHORT_BYTES: u64 = 512 << 10;

/// The body of an answer: its parts, in order. The body of a short answer is one part, which has memory of its
/// own.
pub(super) type Body = Vec<Bytes>;

/// The bytes of an answer that have arrived so far.
pub(super) enum Gathered {
    /// A short answer.
    Copied(Vec<u8>),
    /// A long answer, in the memory in which it was received.
    Shared(Body),
}

impl Gathered {
    /// The state before any byte of an answer of `len` bytes has arrived. The caller has reserved memory for
    /// the answer.
    pub(super) fn of_len(len: u64) -> Gathered {
        match usize::try_from(len) {
            Ok(short) if len < SHORT_BYTES => Gathered::Copied(Vec::with_capacity(short)),
            _ => Gathered::Shared(Vec::new()),
        }
    }

    pub(super) fn push(&mut self, part: Bytes) {
        match self {
            Gathered::Copied(bytes) => bytes.extend_from_slice(&part),
            Gathered::Shared(parts) => parts.push(part),
        }
    }

    pub(super) fn into_body(self) -> Body {
        match self {
            Gathered::Copied(bytes) => vec![bytes.into()],
            Gathered::Shared(parts) => parts,
        }
    }
}

/// All bytes of `body`.
pub(super) fn joined(body: &[Bytes]) -> Bytes {
    match body {
        [only] => only.clone(),
        parts => parts.concat().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_of(buffer: &Bytes, len: usize) -> Body {
        let mut gathered = Gathered::of_len(len as u64);
        let (first, second) = (buffer.slice(..len / 2), buffer.slice(len / 2..len));
        gathered.push(first);
        gathered.push(second);
        gathered.into_body()
    }

    #[test]
    fn a_short_answer_leaves_the_buffer_of_its_connection_and_a_long_one_shares_it() {
        let long = usize::try_from(SHORT_BYTES).unwrap();
        let buffer: Bytes = (0..long).map(|n| n.to_le_bytes()[0]).collect();
        let short = body_of(&buffer, long - 1);
        let lens: Vec<usize> = short.iter().map(Bytes::len).collect();
        assert_eq!(lens, [long - 1]);
        assert!(joined(&short) == buffer.slice(..long - 1));
        let shared = body_of(&buffer, long);
        assert!(joined(&shared) == buffer);
        drop(short);
        assert!(!buffer.is_unique(), "the long answer has it");
        drop(shared);
        assert!(buffer.is_unique());
    }

    #[test]
    fn an_empty_answer_has_no_bytes() {
        assert!(joined(&Gathered::of_len(0).into_body()).is_empty());
        assert!(joined(&[]).is_empty());
    }
}
