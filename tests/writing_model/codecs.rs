//! Chunks, encoded and decoded without the crate's own codecs.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Elements of one byte in a chunk.
pub(crate) const LEN: usize = 16;

/// The fill value.
pub(crate) const FILL: u8 = 7;

/// How the chunks of the array are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkCodec {
    Plain,
    Zstd,
    Blosc,
    GzipCrc,
    /// All encoded chunks have the same length, and the same CRC-32C, because they end with their own checksum.
    Crc,
}

impl ChunkCodec {
    /// The codecs that sequences choose from.
    pub(crate) const ALL: [ChunkCodec; 5] = [
        ChunkCodec::Plain,
        ChunkCodec::Zstd,
        ChunkCodec::Blosc,
        ChunkCodec::GzipCrc,
        ChunkCodec::Crc,
    ];

    /// The members of the document after the codec `bytes`.
    fn members(self) -> &'static str {
        match self {
            ChunkCodec::Plain => "",
            ChunkCodec::Crc => r#",{"name":"crc32c"}"#,
            ChunkCodec::Zstd => r#",{"name":"zstd","configuration":{"level":1,"checksum":true}}"#,
            ChunkCodec::Blosc => {
                r#",{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"noshuffle","typesize":1,"blocksize":0}}"#
            }
            ChunkCodec::GzipCrc => {
                r#",{"name":"gzip","configuration":{"level":1}},{"name":"crc32c"}"#
            }
        }
    }

    /// The document of an array with two by two chunks, the last of which reach beyond its edge. They may be in one
    /// shard.
    pub(crate) fn document(self, is_sharded: bool) -> String {
        let codecs = format!(r#"[{{"name":"bytes"}}{}]"#, self.members());
        let (side, codecs) = if is_sharded {
            let codecs = format!(
                r#"[{{"name":"sharding_indexed","configuration":{{"chunk_shape":[4,4],"codecs":{codecs},"index_codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}},{{"name":"crc32c"}}]}}}}]"#
            );
            (8, codecs)
        } else {
            (4, codecs)
        };
        format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":[7,7],"data_type":"uint8","chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":[{side},{side}]}}}},"chunk_key_encoding":{{"name":"default","configuration":{{"separator":"/"}}}},"fill_value":{FILL},"codecs":{codecs},"attributes":{{"n":0}}}}"#
        )
    }

    /// Whether the crate makes the same bytes of equal elements as [`ChunkCodec::encode`].
    pub(crate) fn is_encoded_alike(self) -> bool {
        matches!(self, ChunkCodec::Plain | ChunkCodec::Crc)
    }

    /// The bytes that another program stores for these elements.
    pub(crate) fn encode(self, decoded: &[u8]) -> Vec<u8> {
        match self {
            ChunkCodec::Plain => decoded.to_vec(),
            ChunkCodec::Zstd => {
                let mut encoded = vec![0; zstd_safe::compress_bound(decoded.len())];
                let len = zstd_safe::compress(encoded.as_mut_slice(), decoded, 3).unwrap();
                encoded.truncate(len);
                encoded
            }
            ChunkCodec::Blosc => {
                // A frame that says that its bytes are only copied: version, version of LZ4, flags, size of an element,
                // then three lengths.
                let len = u32::try_from(decoded.len()).unwrap();
                let lengths = [len, len, len + 16].map(u32::to_le_bytes).concat();
                [&[2, 1, 0b10, 1], lengths.as_slice(), decoded].concat()
            }
            ChunkCodec::GzipCrc => {
                let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
                gzip.write_all(decoded).unwrap();
                with_checksum(gzip.finish().unwrap())
            }
            ChunkCodec::Crc => with_checksum(decoded.to_vec()),
        }
    }

    /// The elements in stored bytes; `None` if only the crate itself can decode them.
    pub(crate) fn decode(self, encoded: &[u8]) -> Option<Vec<u8>> {
        match self {
            ChunkCodec::Plain => Some(encoded.to_vec()),
            ChunkCodec::Zstd => {
                let mut decoded = vec![0; 2 * LEN];
                let len = zstd_safe::decompress(decoded.as_mut_slice(), encoded).unwrap();
                decoded.truncate(len);
                Some(decoded)
            }
            ChunkCodec::Blosc => None,
            ChunkCodec::GzipCrc => {
                let mut decoded = Vec::new();
                GzDecoder::new(without_checksum(encoded))
                    .read_to_end(&mut decoded)
                    .unwrap();
                Some(decoded)
            }
            ChunkCodec::Crc => Some(without_checksum(encoded).to_vec()),
        }
    }
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn without_checksum(encoded: &[u8]) -> &[u8] {
    let (bytes, checksum) = encoded.split_at(encoded.len() - 4);
    assert_eq!(
        crc32c::crc32c(bytes).to_le_bytes(),
        checksum,
        "the checksum"
    );
    bytes
}
