//! Extended attributes: the two questions that the kernel asks in one, and the names of ours.

use fuser::{Errno, ReplyXattr};

/// Every name of ours begins so; any other is not asked of the view.
const PREFIX: &[u8] = b"user.zarr.";

/// Names and values, as the view gives them.
pub(super) type Attributes = Vec<(&'static str, Vec<u8>)>;

/// Whether `name` can be one of ours. `ls -l` and `cp -a` ask for `security.*` and `system.*`
/// of each file: those are answered at once.
pub(super) fn is_ours(name: &[u8]) -> bool {
    name.starts_with(PREFIX)
}

/// The value of `name`.
pub(super) fn value(attributes: Attributes, name: &[u8]) -> Option<Vec<u8>> {
    let mut attributes = attributes.into_iter();
    attributes
        .find(|(known, _)| known.as_bytes() == name)
        .map(|(_, value)| value)
}

/// The names, each ended by a zero byte, as listxattr(2) wants them.
pub(super) fn names(attributes: &Attributes) -> Vec<u8> {
    let mut list = Vec::new();
    for (name, _) in attributes {
        list.extend_from_slice(name.as_bytes());
        list.push(0);
    }
    list
}

/// Replies with `bytes`, or with their length when the caller asks with no room for it first.
pub(super) fn reply_within(size: u32, bytes: &[u8], reply: ReplyXattr) {
    match fit(size, bytes.len()) {
        Ok(Answer::Length(length)) => reply.size(length),
        Ok(Answer::Bytes) => reply.data(bytes),
        Err(errno) => reply.error(errno),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Length(u32),
    Bytes,
}

fn fit(size: u32, length: usize) -> Result<Answer, Errno> {
    match u32::try_from(length) {
        Err(_) => Err(Errno::E2BIG),
        Ok(length) if size == 0 => Ok(Answer::Length(length)),
        Ok(length) if length > size => Err(Errno::ERANGE),
        Ok(_) => Ok(Answer::Bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_bytes() {
        let cases = [
            (0, 0, Ok(Answer::Length(0))),
            (0, 5, Ok(Answer::Length(5))),
            (4, 5, Err(Errno::ERANGE)),
            (5, 5, Ok(Answer::Bytes)),
            (9, 0, Ok(Answer::Bytes)),
        ];
        for (size, length, answer) in cases {
            assert_eq!(fit(size, length), answer, "{length} bytes, room for {size}");
        }
    }

    #[test]
    fn names_and_values() {
        let all = || vec![("user.zarr.a", vec![1]), ("user.zarr.b", vec![2, 3])];
        assert_eq!(names(&all()), b"user.zarr.a\0user.zarr.b\0");
        assert_eq!(value(all(), b"user.zarr.b"), Some(vec![2, 3]));
        assert_eq!(value(all(), b"user.zarr"), None);
        assert!(is_ours(b"user.zarr.x") && !is_ours(b"security.capability"));
    }
}
