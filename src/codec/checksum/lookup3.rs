//! Bob Jenkins' hash `lookup3`, function `hashlittle`.
//!
//! Source: <https://burtleburtle.net/bob/c/lookup3.c>. 12 bytes at a time are added to three words
//! of state; [`mix`] follows each block but the last one, and [`finish`] the last one.

use crate::codec::bytes::copy_start;

const BLOCK: usize = 12;

/// The hash of `prefix` and `bytes`, starting from `initval`.
pub(crate) fn lookup3(initval: u32, prefix: &[u8], bytes: &[u8]) -> u32 {
    // The hash is that of `prefix` followed by `bytes`, block by block. To copy little, only the blocks with
    // the prefix are put together, the last of them filled up from `bytes`.
    let borrowed = prefix.len().next_multiple_of(BLOCK) - prefix.len();
    let (borrowed, bytes) = bytes.split_at_checked(borrowed).unwrap_or((bytes, &[]));
    let head = [prefix, borrowed].concat();
    let mut blocks = head.chunks(BLOCK).chain(bytes.chunks(BLOCK)).peekable();

    let length = u32::try_from((head.len() + bytes.len()) & 0xffff_ffff);
    let length = length.expect("no more than 32 bits are left");
    let start = 0xdead_beef_u32.wrapping_add(length).wrapping_add(initval);
    let mut state = [start; 3];
    while let Some(block) = blocks.next() {
        for (word, bytes) in state.iter_mut().zip(block.chunks(4)) {
            let mut padded = [0; 4];
            copy_start(bytes, &mut padded);
            *word = word.wrapping_add(u32::from_le_bytes(padded));
        }
        state = if blocks.peek().is_some() {
            mix(state)
        } else {
            finish(state)
        };
    }
    let [_, _, hash] = state;
    hash
}

/// Six steps that are equal but for their distance: each rotates the roles of the words.
fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for distance in [4, 6, 8, 16, 19, 4] {
        a = a.wrapping_sub(c) ^ c.rotate_left(distance);
        c = c.wrapping_add(b);
        (a, b, c) = (b, c, a);
    }
    [a, b, c]
}

/// Seven steps that are equal but for their distance: each rotates the roles of the words. The last
/// one leaves the hash in `b`.
fn finish([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for distance in [14, 11, 25, 16, 4, 14, 24] {
        c = (c ^ b).wrapping_sub(b.rotate_left(distance));
        (a, b, c) = (b, c, a);
    }
    [c, a, b]
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    #[test]
    fn hashes_are_those_of_the_source_and_of_numcodecs() {
        let gettysburg = b"Four score and seven years ago";
        let counted: Vec<u8> = (0..24).collect();
        let prefix = b"hello, prefix of more than twelve";
        for (initval, prefix, bytes, hash) in [
            (0, &b""[..], &b""[..], 0xdead_beef_u32),
            (0xdead_beef, b"", b"", 0xbd5b_7dde),
            (0, b"", gettysburg, 0x1777_0551),
            (1, b"", gettysburg, 0xcd62_8161),
            (0, b"", b"123456789", 0x845d_9a96),
            (0, b"", &counted, 0x9c0a_dd53),
            (7, prefix, b"123456789", 0xc861_176d),
            (7, prefix, gettysburg, 0x9174_f0c4),
            (7, prefix, &counted, 0x3ed8_b7ff),
        ] {
            assert_eq!(lookup3(initval, prefix, bytes), hash, "{bytes:?}");
            for at in 0..bytes.len() {
                let (front, back) = bytes.split_at(at);
                let front = [prefix, front].concat();
                assert_eq!(lookup3(initval, &front, back), hash, "{bytes:?} at {at}");
            }
        }
    }
}
