mod encode;

use std::{io::Write, sync::LazyLock};

use proptest::prelude::*;

use super::{super::lzma::LzmaFilter, *};

const SHUFFLE: BytesToBytes = BytesToBytes::Shuffle { element_size: 4 };

fn lzma(format: Lzma) -> BytesToBytes {
    BytesToBytes::Lzma(format, Err("preset"))
}

fn checksum(kind: ChecksumKind, location: ChecksumLocation) -> BytesToBytes {
    BytesToBytes::Checksum(Checksum { kind, location })
}

fn conditional(codecs: Vec<BytesToBytes>) -> BytesToBytes {
    BytesToBytes::Conditional {
        codecs,
        header_bytes: 1,
    }
}

/// One of each, with the name that messages call it.
fn every_codec() -> Vec<(BytesToBytes, &'static str)> {
    use ChecksumLocation::{End, Start};
    let jenkins = ChecksumKind::JenkinsLookup3 {
        initval: 0,
        prefix: vec![],
    };
    let raw = Lzma::Raw(vec![LzmaFilter::Lzma2]);
    vec![
        (BytesToBytes::GZIP, "gzip"),
        (BytesToBytes::ZLIB, "zlib"),
        (BytesToBytes::GZIP_OR_ZLIB, "gzip"),
        (BytesToBytes::ZSTD, "zstd"),
        (BytesToBytes::BLOSC, "blosc"),
        (BytesToBytes::LZ4, "lz4"),
        (BytesToBytes::BZ2, "bz2"),
        (lzma(Lzma::Xz), "lzma"),
        (lzma(Lzma::Alone), "lzma"),
        (lzma(raw), "lzma"),
        (SHUFFLE, "shuffle"),
        (BytesToBytes::Base64, "base64"),
        (checksum(ChecksumKind::Crc32, Start), "crc32"),
        (checksum(ChecksumKind::Adler32, Start), "adler32"),
        (BytesToBytes::CRC32C, "crc32c"),
        (checksum(ChecksumKind::Fletcher32, End), "fletcher32"),
        (checksum(jenkins, End), "jenkins_lookup3"),
        (
            conditional(vec![SHUFFLE, BytesToBytes::ZSTD]),
            "conditional",
        ),
    ]
}

/// A mebibyte of zeros in a few bytes.
static BOMBS: LazyLock<Vec<(BytesToBytes, Vec<u8>)>> = LazyLock::new(|| {
    let bytes = vec![0; 1 << 20];
    let mut zstd = vec![0; 1 << 12];
    let n = zstd_safe::compress(&mut zstd[..], &bytes, 3).unwrap();
    zstd.truncate(n);
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(&bytes).unwrap();
    let bz2 = bz2.finish().unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
    xz.write_all(&bytes).unwrap();
    let xz = xz.finish().unwrap();
    // A zero, a match of 4 + 15 + 255 * 4112 + 9 bytes at distance 1, and five zeros.
    let mut lz4 = b"\0\0\x10\0\x1f\0\x01\0".to_vec();
    let matched = (1 << 20) - 1 - 4 - 15 - 5;
    lz4.extend(vec![255; matched / 255]);
    lz4.push(u8::try_from(matched % 255).unwrap());
    lz4.extend(b"\x50\0\0\0\0\0");
    let twice = conditional(vec![SHUFFLE, BytesToBytes::ZSTD, BytesToBytes::CRC32C]);
    let sum = crc32c::crc32c(&zstd).to_le_bytes();
    let conditional = [b"\x07", &zstd[..], &sum].concat();
    vec![
        (BytesToBytes::ZSTD, zstd),
        (BytesToBytes::BZ2, bz2),
        (lzma(Lzma::Xz), xz),
        (BytesToBytes::LZ4, lz4),
        (twice, conditional),
    ]
});

#[test]
fn buffers_grow_up_to_the_limit() {
    let bytes = vec![0; 1 << 20];
    for (codec, encoded) in &*BOMBS {
        let name = codec.name();
        for limit in [1 << 20, (1 << 20) + 1, u64::MAX] {
            assert!(
                codec.undo_within(encoded, limit).unwrap() == bytes,
                "{name} in {limit}"
            );
        }
        for limit in [0, 1, (1 << 20) - 1] {
            assert!(
                codec.undo_within(encoded, limit).is_err(),
                "{name}: bomb at {limit}"
            );
        }
        for length in [0, 1, (1 << 20) - 1, (1 << 20) + 1] {
            let mut out = vec![0xa5; length];
            assert!(
                codec.undo_exactly(encoded, &mut out).is_err(),
                "{name} of {length}"
            );
        }
    }
}

#[test]
fn names_and_bounds_of_every_codec() {
    for (codec, name) in every_codec() {
        assert_eq!(codec.name(), name);
        let is_checksum = matches!(codec, BytesToBytes::Checksum(_));
        assert_eq!(codec.is_cut(), is_checksum, "{name}");
        for length in [0, 1, 1000, 1 << 40] {
            assert!(codec.encoded_limit(length) >= length, "{name} of {length}");
        }
        assert_eq!(codec.encoded_limit(u64::MAX), u64::MAX, "{name}");
        assert!(
            codec.state_bytes(u64::MAX) >= codec.state_bytes(1),
            "{name}"
        );
    }
    assert_eq!(BytesToBytes::CRC32C.encoded_limit(10), 14);
    assert_eq!(BytesToBytes::Base64.encoded_limit(10), 16);
    assert_eq!(SHUFFLE.encoded_limit(10), 10);
}

#[test]
fn checksums_are_cut_off_without_a_copy() {
    let encoded = b"123456789\x83\x92\x06\xe3";
    let cut = BytesToBytes::CRC32C.undo_cow(Cow::Borrowed(encoded), 9);
    assert!(matches!(cut, Ok(Cow::Borrowed(b"123456789"))));
    let copied = BytesToBytes::Base64.undo_cow(Cow::Borrowed(b"YWJj"), 3);
    assert!(matches!(copied, Ok(Cow::Owned(bytes)) if bytes == b"abc"));
}

proptest! {
    #[test]
    fn garbage_is_no_more_than_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        header in 0..6_usize,
    ) {
        let headers: [&[u8]; 6] = [
            b"", b"\x20\0\0\0", b"BZh91AY&SY", b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0",
            b"\x1f\x8b\x08\0\0\0\0\0\0\0", b"\xe0\0\x4f\0",
        ];
        let encoded = [headers[header], &bytes].concat();
        for (codec, name) in every_codec() {
            if let Ok(decoded) = codec.undo_within(&encoded, 1000) {
                prop_assert!(decoded.len() <= 1000, "{}", name);
            }
        }
    }

    #[test]
    fn damage_of_one_byte_is_no_more_than_an_error(at in 0..4200_usize, flip in 1..=255_u8) {
        for (codec, encoded) in &*BOMBS {
            let mut encoded = encoded.clone();
            let at = at % encoded.len();
            encoded[at] ^= flip;
            if let Ok(decoded) = codec.undo_within(&encoded, 1 << 20) {
                prop_assert!(decoded.len() <= 1 << 20, "{}", codec.name());
            }
        }
    }
}
