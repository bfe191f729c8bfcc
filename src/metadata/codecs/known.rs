//! The filters and compressors of numcodecs, a row for each, with the parsers of their configurations, which are in
//! other modules. Object codecs, which encode elements of any length, are not here.

#[cfg(feature = "pcodec")]
use super::pcodec;
use super::{CodecParser, bitround, bytes_to_bytes, numcodecs, zfp};

/// The role of a codec in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::metadata) enum CodecRole {
    /// It turns elements into elements.
    ArrayToArray,
    /// It turns elements into bytes.
    ArrayToBytes,
    /// It turns bytes into bytes.
    BytesToBytes,
}

/// A codec of numcodecs.
#[derive(Debug)]
pub(in crate::metadata) struct Numcodec {
    id: &'static str,
    pub(in crate::metadata) role: CodecRole,
    /// The members that its configuration may have; `None` if they are not checked.
    pub(in crate::metadata) members: Option<&'static [&'static str]>,
    pub(in crate::metadata) in_v3: InV3,
    /// The parser of its configuration; `None` if this build lacks the codec.
    pub(super) parser: Option<CodecParser>,
}

/// Whether zarr-python knows a codec of numcodecs in v3, as `numcodecs.ID`. `gzip` counts as unknown, because
/// documents are written with the name `gzip` of v3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::metadata) enum InV3 {
    Known,
    Unknown,
}

use CodecRole::{ArrayToArray, ArrayToBytes, BytesToBytes};
use InV3::{Known, Unknown};

#[cfg(feature = "pcodec")]
const PCODEC: Option<CodecParser> = Some(pcodec::pcodec);
#[cfg(not(feature = "pcodec"))]
const PCODEC: Option<CodecParser> = None;

#[rustfmt::skip]
const CODECS: &[Numcodec] = &[
    codec("delta", ArrayToArray, Some(&["dtype", "astype"]), Known, Some(numcodecs::delta)),
    codec("fixedscaleoffset", ArrayToArray, Some(&["offset", "scale", "dtype", "astype"]), Known, Some(numcodecs::fixed_scale_offset)),
    codec("quantize", ArrayToArray, Some(&["digits", "dtype", "astype"]), Known, Some(numcodecs::quantize)),
    codec("bitround", ArrayToArray, Some(&["keepbits"]), Known, Some(bitround::bitround)),
    codec("astype", ArrayToArray, Some(&["encode_dtype", "decode_dtype"]), Known, Some(numcodecs::astype)),
    codec("packbits", ArrayToArray, Some(&[]), Known, Some(numcodecs::packbits)),
    codec("categorize", ArrayToArray, Some(&["labels", "dtype", "astype"]), Unknown, Some(numcodecs::categorize)),
    codec("zfpy", ArrayToBytes, None, Known, Some(zfp::zfpy)),
    codec("pcodec", ArrayToBytes, None, Known, PCODEC),
    codec("blosc", BytesToBytes, Some(&["cname", "clevel", "shuffle", "blocksize", "typesize"]), Known, Some(bytes_to_bytes::NUMCODECS_BLOSC)),
    codec("zstd", BytesToBytes, Some(&["level", "checksum"]), Known, Some(bytes_to_bytes::ZSTD)),
    codec("lz4", BytesToBytes, Some(&["acceleration"]), Known, Some(bytes_to_bytes::LZ4)),
    codec("zlib", BytesToBytes, Some(&["level"]), Known, Some(bytes_to_bytes::ZLIB)),
    codec("gzip", BytesToBytes, Some(&["level"]), Unknown, Some(bytes_to_bytes::NUMCODECS_GZIP)),
    codec("bz2", BytesToBytes, Some(&["level"]), Known, Some(bytes_to_bytes::BZ2)),
    codec("lzma", BytesToBytes, Some(&["format", "check", "preset", "filters"]), Known, Some(bytes_to_bytes::LZMA)),
    codec("shuffle", BytesToBytes, Some(&["elementsize"]), Known, Some(bytes_to_bytes::shuffle)),
    codec("crc32", BytesToBytes, Some(&["location"]), Known, Some(bytes_to_bytes::CRC32)),
    codec("crc32c", BytesToBytes, Some(&["location"]), Known, Some(bytes_to_bytes::NUMCODECS_CRC32C)),
    codec("adler32", BytesToBytes, Some(&["location"]), Known, Some(bytes_to_bytes::ADLER32)),
    codec("fletcher32", BytesToBytes, Some(&[]), Known, Some(bytes_to_bytes::FLETCHER32)),
    codec("jenkins_lookup3", BytesToBytes, Some(&["initval", "prefix"]), Known, Some(bytes_to_bytes::jenkins_lookup3)),
    codec("base64", BytesToBytes, Some(&[]), Unknown, Some(bytes_to_bytes::BASE64)),
];

const fn codec(
    id: &'static str,
    role: CodecRole,
    members: Option<&'static [&'static str]>,
    in_v3: InV3,
    parser: Option<CodecParser>,
) -> Numcodec {
    Numcodec {
        id,
        role,
        members,
        in_v3,
        parser,
    }
}

impl Numcodec {
    /// The codec `id`; `None` for one that is not known, and for an object codec.
    pub(in crate::metadata) fn of_id(id: &str) -> Option<&'static Numcodec> {
        CODECS.iter().find(|codec| codec.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_codec_has_one_row() {
        let mut ids: Vec<_> = CODECS.iter().map(|codec| codec.id).collect();
        ids.sort_unstable();
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    }
}
