//! Fletcher's checksum as HDF5 computes it, which is not the textbook's.
//!
//! Source: `H5_checksum_fletcher32` of HDF5. There are two sums over big-endian words of 16 bits:
//! one of the words, and one of the values of the first sum. Both are modulo 65535, but computed by
//! folding, so that 0 and 65535 stay different.

/// The number of words that can be added before a sum of 32 bits may overflow.
const WORDS: usize = 360;

/// The checksum of `bytes`.
pub(super) fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut first, mut second) = (0_u32, 0_u32);
    let (words, odd) = bytes.as_chunks();
    for words in words.chunks(WORDS) {
        for word in words {
            first += u32::from(u16::from_be_bytes(*word));
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    if let [byte] = odd {
        first += u32::from(*byte) << 8;
        second += first;
        (first, second) = (fold(first), fold(second));
    }
    fold(second) << 16 | fold(first)
}

fn fold(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::fletcher32;

    #[test]
    fn sums_are_those_of_numcodecs() {
        let counted: Vec<u8> = (0..=255).cycle().take(5120).collect();
        for (bytes, sum) in [
            (&b""[..], 0_u32),
            (b"abcde", 0x4ff0_29c7),
            (b"abcdef", 0x5056_2a2d),
            (&[0xff; 2001], 0xff00_ff00),
            (&counted, 0x5582_04fb),
        ] {
            assert_eq!(fletcher32(bytes), sum, "{} bytes", bytes.len());
        }
        // With this many of the largest words, every sum becomes as large as it can.
        assert_eq!(fletcher32(&vec![0xff; 1 << 20]), 0xffff_ffff);
    }
}
