//! Extended attributes: their names, and the request for either a value or its length.

use fuser::Errno;

use super::reply::{Reply, Xattr};

/// All names of the view have this prefix; the view is not asked for others.
const PREFIX: &[u8] = b"user.zarr.";

/// Names and values, as the view returns them.
pub(super) type ExtendedAttributes = Vec<(&'static str, Vec<u8>)>;

/// Whether `name` can be an attribute of the view. `ls -l` and `cp -a` request `security.*` and
/// `system.*` of each file: those requests are answered at once.
pub(super) fn is_ours(name: &[u8]) -> bool {
    name.starts_with(PREFIX)
}

/// The value of `name`.
pub(super) fn value(attributes: ExtendedAttributes, name: &[u8]) -> Option<Vec<u8>> {
    let mut attributes = attributes.into_iter();
    attributes
        .find(|(known, _)| known.as_bytes() == name)
        .map(|(_, value)| value)
}

/// The names, each terminated by a zero byte, as listxattr(2) returns them.
pub(super) fn names(attributes: &ExtendedAttributes) -> Vec<u8> {
    let mut list = Vec::new();
    for (name, _) in attributes {
        list.extend_from_slice(name.as_bytes());
        list.push(0);
    }
    list
}

/// Replies with `bytes`, or with their length if `size`, the size of the caller's buffer, is 0.
pub(super) fn reply_within(size: u32, bytes: &[u8], reply: Reply<Xattr>) {
    match fit(size, bytes.len()) {
        Ok(XattrReply::Length(length)) => reply.len(length),
        Ok(XattrReply::Bytes) => reply.value(bytes),
        Err(errno) => reply.error(errno),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum XattrReply {
    Length(u32),
    Bytes,
}

fn fit(size: u32, length: usize) -> Result<XattrReply, Errno> {
    match u32::try_from(length) {
        Err(_) => Err(Errno::E2BIG),
        Ok(length) if size == 0 => Ok(XattrReply::Length(length)),
        Ok(length) if length > size => Err(Errno::ERANGE),
        Ok(_) => Ok(XattrReply::Bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_bytes() {
        let cases = [
            (0, 0, Ok(XattrReply::Length(0))),
            (0, 5, Ok(XattrReply::Length(5))),
            (4, 5, Err(Errno::ERANGE)),
            (5, 5, Ok(XattrReply::Bytes)),
            (9, 0, Ok(XattrReply::Bytes)),
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
