//! The codecs of numcodecs that have a place in documents, a row for each. What their configurations mean is in
//! `metadata::codecs`. Object codecs, which encode elements of any length, are not here.

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
    /// The members of its configuration; `None` where they are not judged.
    pub(in crate::metadata) members: Option<&'static [&'static str]>,
    pub(in crate::metadata) in_v3: InV3,
}

/// Whether zarr-python knows a codec of numcodecs in v3, as `numcodecs.ID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::metadata) enum InV3 {
    Known,
    Unknown,
}

use CodecRole::{ArrayToArray, ArrayToBytes, BytesToBytes};
use InV3::{Known, Unknown};

#[rustfmt::skip]
const CODECS: &[Numcodec] = &[
    codec("delta", ArrayToArray, Some(&["dtype", "astype"]), Known),
    codec("fixedscaleoffset", ArrayToArray, Some(&["offset", "scale", "dtype", "astype"]), Known),
    codec("quantize", ArrayToArray, Some(&["digits", "dtype", "astype"]), Known),
    codec("bitround", ArrayToArray, Some(&["keepbits"]), Known),
    codec("astype", ArrayToArray, Some(&["encode_dtype", "decode_dtype"]), Known),
    codec("packbits", ArrayToArray, Some(&[]), Known),
    codec("categorize", ArrayToArray, Some(&["labels", "dtype", "astype"]), Unknown),
    codec("zfpy", ArrayToBytes, None, Known),
    codec("pcodec", ArrayToBytes, None, Known),
    codec("blosc", BytesToBytes, Some(&["cname", "clevel", "shuffle", "blocksize", "typesize"]), Known),
    codec("zstd", BytesToBytes, Some(&["level", "checksum"]), Known),
    codec("lz4", BytesToBytes, Some(&["acceleration"]), Known),
    codec("zlib", BytesToBytes, Some(&["level"]), Known),
    codec("gzip", BytesToBytes, Some(&["level"]), Unknown),
    codec("bz2", BytesToBytes, Some(&["level"]), Known),
    codec("lzma", BytesToBytes, Some(&["format", "check", "preset", "filters"]), Known),
    codec("shuffle", BytesToBytes, Some(&["elementsize"]), Known),
    codec("crc32", BytesToBytes, Some(&["location"]), Known),
    codec("crc32c", BytesToBytes, Some(&["location"]), Known),
    codec("adler32", BytesToBytes, Some(&["location"]), Known),
    codec("fletcher32", BytesToBytes, Some(&[]), Known),
    codec("jenkins_lookup3", BytesToBytes, Some(&["initval", "prefix"]), Known),
    codec("base64", BytesToBytes, Some(&[]), Unknown),
];

const fn codec(
    id: &'static str,
    role: CodecRole,
    members: Option<&'static [&'static str]>,
    in_v3: InV3,
) -> Numcodec {
    Numcodec {
        id,
        role,
        members,
        in_v3,
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
