//! Whether damage of a chunk is certainly noticed.

use super::CodecChain;
use crate::codec::{ArrayToBytes, BytesToBytes, Lzma};

impl CodecChain {
    /// Whether a checksum in each chunk covers all its bytes, so that decoding a damaged one fails. Without one, other
    /// elements may come out. A shard has one if its inner chunks have. Zstandard and XZ have one only if the writer asks for it.
    pub fn has_checksum(&self) -> bool {
        let of_elements = match &self.array_to_bytes {
            ArrayToBytes::Sharding(sharding) => sharding.codecs.has_checksum(),
            ArrayToBytes::N5Block(block) => block.codecs().has_checksum(),
            _ => false,
        };
        of_elements || self.bytes_to_bytes.iter().any(has_checksum)
    }
}

fn has_checksum(codec: &BytesToBytes) -> bool {
    match codec {
        BytesToBytes::Gzip { .. }
        | BytesToBytes::Zlib { .. }
        | BytesToBytes::GzipOrZlib { .. }
        | BytesToBytes::Bz2 { .. }
        | BytesToBytes::Checksum(_) => true,
        BytesToBytes::Lzma(Lzma::Xz, settings) => {
            settings.as_ref().is_ok_and(|settings| settings.check != 0)
        }
        BytesToBytes::Zstd(settings) => settings.as_ref().is_ok_and(|settings| settings.checksum),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::LzmaSettings;

    #[test]
    fn compressors_have_the_checksum_that_the_document_asks_for() {
        let xz = |settings| BytesToBytes::Lzma(Lzma::Xz, settings);
        let check = |check| {
            let filters = vec![];
            xz(Ok(LzmaSettings { check, filters }))
        };
        for (codec, expected) in [
            (check(4), true),
            (check(0), false),
            (xz(Err("check")), false),
            (BytesToBytes::CRC32C, true),
            (BytesToBytes::GZIP, true),
            (BytesToBytes::ZSTD, false),
            (BytesToBytes::BLOSC, false),
        ] {
            assert_eq!(has_checksum(&codec), expected, "{codec:?}");
        }
    }
}
