//! Whether damage of a chunk is certainly noticed.

use super::CodecChain;
use crate::codec::{ArrayToBytes, BytesToBytes, Lzma};

impl CodecChain {
    /// Whether a checksum in each chunk covers all its bytes, so that decoding a damaged one fails. Without one, other
    /// elements may come out. A shard has one if its inner chunks have. Zstandard has one only if the writer asks for it.
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
        | BytesToBytes::Checksum(_)
        | BytesToBytes::Lzma(Lzma::Xz, _) => true,
        BytesToBytes::Zstd(settings) => settings.as_ref().is_ok_and(|settings| settings.checksum),
        _ => false,
    }
}
