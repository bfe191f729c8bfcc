//! Each codec encodes bytes as numcodecs 0.16.6 does, and decodes them to the original bytes.

use proptest::prelude::*;

use super::{
    super::super::{
        BloscCompressor, BloscShuffle,
        lzma::{LzmaEncoderFilter, LzmaParameters},
        unshuffle::tests::noise,
    },
    *,
};
use LzmaEncoderFilter::{Lzma1, Lzma2, Other};

fn encode(codec: &BytesToBytes, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    codec.check_encodes()?;
    let encoded = codec.encode(Cow::Borrowed(bytes))?;
    assert!(encoded.len() as u64 <= codec.encoded_limit(bytes.len() as u64));
    let owned = codec.encode(Cow::Owned(bytes.to_vec()))?;
    assert!(owned == encoded, "owned bytes");
    Ok(encoded)
}

fn assert_round_trip(codec: &BytesToBytes, bytes: &[u8]) {
    let encoded = encode(codec, bytes).unwrap();
    let mut out = vec![0xee; bytes.len()];
    let undone = codec.undo_exactly(&encoded, &mut out);
    assert_eq!(undone, Ok(()), "{codec:?}: {} bytes", bytes.len());
    assert!(out == bytes, "{codec:?}: {} bytes", bytes.len());
}

fn blosc(
    compressor: BloscCompressor,
    level: u8,
    shuffle: BloscShuffle,
    typesize: u8,
) -> BytesToBytes {
    BytesToBytes::Blosc(Ok(BloscSettings {
        compressor,
        level,
        shuffle,
        typesize,
        blocksize: 0,
    }))
}

fn zstd(level: i32, checksum: bool) -> BytesToBytes {
    BytesToBytes::Zstd(Ok(ZstdSettings { level, checksum }))
}

fn lzma(format: Lzma, check: u8, filters: Vec<LzmaEncoderFilter>) -> BytesToBytes {
    BytesToBytes::Lzma(format, Ok(LzmaSettings { check, filters }))
}

fn xz(check: u8, preset: u32) -> BytesToBytes {
    let filter = Lzma2(LzmaParameters::preset(preset));
    lzma(Lzma::Xz, check, vec![filter])
}

const COMPRESSORS: [BloscCompressor; 6] = [
    BloscCompressor::BloscLz,
    BloscCompressor::Lz4,
    BloscCompressor::Lz4Hc,
    BloscCompressor::Snappy,
    BloscCompressor::Zlib,
    BloscCompressor::Zstd,
];
const SHUFFLES: [BloscShuffle; 3] = [BloscShuffle::None, BloscShuffle::Byte, BloscShuffle::Bit];

/// The codecs that encode, with many parameters.
fn encoders() -> Vec<BytesToBytes> {
    let others = every_codec().into_iter().map(|(codec, _)| codec);
    let mut codecs: Vec<_> = others
        .filter(|codec| codec.check_encodes().is_ok())
        .collect();
    for level in 0..=9 {
        codecs.push(BytesToBytes::Gzip { level: Ok(level) });
        codecs.push(BytesToBytes::Zlib { level: Ok(level) });
        codecs.push(BytesToBytes::Bz2 {
            level: Ok(level.max(1)),
        });
    }
    for compressor in COMPRESSORS {
        for shuffle in SHUFFLES {
            codecs.push(blosc(compressor, 5, shuffle, 4));
            codecs.push(blosc(compressor, 9, shuffle, 1));
            codecs.push(blosc(compressor, 0, shuffle, 255));
        }
    }
    codecs.extend([zstd(-100, true), zstd(22, false), zstd(3, true)]);
    for acceleration in [i32::MIN, 0, 7, i32::MAX] {
        let acceleration = Ok(acceleration);
        codecs.push(BytesToBytes::Lz4 { acceleration });
    }
    let raw = Lzma::Raw(vec![LzmaFilter::Delta { dist: 4 }, LzmaFilter::Lzma2]);
    let filters = vec![
        Other(LzmaFilter::Delta { dist: 4 }),
        Lzma2(LzmaParameters::preset(1)),
    ];
    codecs.extend([
        xz(0, 0),
        xz(1, 6),
        xz(4, 1 << 31),
        xz(10, 2),
        lzma(raw, 0, filters),
    ]);
    let alone = vec![Lzma1(LzmaParameters::preset(1))];
    codecs.push(lzma(Lzma::Alone, 0, alone));
    codecs
}

#[test]
fn what_is_encoded_decodes() {
    let numbers: Vec<u8> = (0..3000_u32).flat_map(u32::to_le_bytes).collect();
    let cases = [
        vec![],
        vec![1, 2, 3, 4],
        vec![0xff; 300_000],
        noise(20_000),
        numbers,
    ];
    for codec in encoders() {
        for bytes in &cases {
            assert_round_trip(&codec, bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_bytes_come_back(
        words in prop::collection::vec(prop_oneof![0..4_u32, any::<u32>()], 0..200),
    ) {
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        for codec in encoders() {
            if !matches!(codec, BytesToBytes::Lzma(..)) {
                assert_round_trip(&codec, &bytes);
            }
        }
    }
}

/// Bytes that a few lines of Python make, too: numbers that rise now and then.
fn sample() -> Vec<u8> {
    const LENGTH: usize = 40_000;
    let (mut state, mut value) = (1_u32, 0_u32);
    let mut out = Vec::new();
    while out.len() < LENGTH {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 24 < 20 {
            value = value.wrapping_add((state >> 16) % 256);
        }
        out.extend(value.to_le_bytes());
    }
    assert_eq!(crc32fast::hash(&out), 2_548_779_892);
    out
}

fn assert_encodes(codec: &BytesToBytes, length: usize, crc: u32) {
    let encoded = encode(codec, &sample()).unwrap();
    let found = (encoded.len(), crc32fast::hash(&encoded));
    assert_eq!(found, (length, crc), "{codec:?}");
}

/// Compressor, level, shuffle, and the length and CRC-32 of what numcodecs makes of the sample as
/// elements of four bytes. It has no snappy.
const BLOSC: [(BloscCompressor, u8, u8, usize, u32); 45] = [
    (BloscCompressor::BloscLz, 1, 0, 5492, 0xe242_f382),
    (BloscCompressor::BloscLz, 5, 0, 5490, 0xf9f8_63c1),
    (BloscCompressor::BloscLz, 9, 0, 5490, 0xf9f8_63c1),
    (BloscCompressor::BloscLz, 1, 1, 5345, 0x4dda_f92a),
    (BloscCompressor::BloscLz, 5, 1, 5342, 0xef22_e444),
    (BloscCompressor::BloscLz, 9, 1, 5350, 0x28c1_489b),
    (BloscCompressor::BloscLz, 1, 2, 12843, 0x3078_14a4),
    (BloscCompressor::BloscLz, 5, 2, 8649, 0x61e1_d710),
    (BloscCompressor::BloscLz, 9, 2, 8739, 0x94d4_3cf3),
    (BloscCompressor::Lz4, 1, 0, 6822, 0x9e74_8d77),
    (BloscCompressor::Lz4, 5, 0, 5353, 0xb832_4e34),
    (BloscCompressor::Lz4, 9, 0, 4260, 0xbbb7_f532),
    (BloscCompressor::Lz4, 1, 1, 6510, 0x7347_fc54),
    (BloscCompressor::Lz4, 5, 1, 5795, 0xcca0_0b29),
    (BloscCompressor::Lz4, 9, 1, 5211, 0x4738_29c3),
    (BloscCompressor::Lz4, 1, 2, 9875, 0xb267_d9d1),
    (BloscCompressor::Lz4, 5, 2, 9295, 0x09e0_0bce),
    (BloscCompressor::Lz4, 9, 2, 9035, 0xb606_2c32),
    (BloscCompressor::Lz4Hc, 1, 0, 4260, 0xbbb7_f532),
    (BloscCompressor::Lz4Hc, 5, 0, 4260, 0xbbb7_f532),
    (BloscCompressor::Lz4Hc, 9, 0, 4260, 0xbbb7_f532),
    (BloscCompressor::Lz4Hc, 1, 1, 5091, 0xe23c_acac),
    (BloscCompressor::Lz4Hc, 5, 1, 4619, 0x55b2_f0ab),
    (BloscCompressor::Lz4Hc, 9, 1, 4586, 0xfb10_aaa8),
    (BloscCompressor::Lz4Hc, 1, 2, 7635, 0xa1e0_b711),
    (BloscCompressor::Lz4Hc, 5, 2, 6718, 0x888d_8d1c),
    (BloscCompressor::Lz4Hc, 9, 2, 6506, 0x7456_2ec9),
    (BloscCompressor::Zlib, 1, 0, 3606, 0x11f4_b701),
    (BloscCompressor::Zlib, 5, 0, 2643, 0x1938_661b),
    (BloscCompressor::Zlib, 9, 0, 2643, 0x580f_2106),
    (BloscCompressor::Zlib, 1, 1, 3489, 0x423d_9c37),
    (BloscCompressor::Zlib, 5, 1, 2926, 0xb594_137c),
    (BloscCompressor::Zlib, 9, 1, 2829, 0x08f0_3477),
    (BloscCompressor::Zlib, 1, 2, 5775, 0x2e7f_3307),
    (BloscCompressor::Zlib, 5, 2, 4974, 0xca00_78ec),
    (BloscCompressor::Zlib, 9, 2, 4672, 0x6a95_bc11),
    (BloscCompressor::Zstd, 1, 0, 2282, 0x93fb_a033),
    (BloscCompressor::Zstd, 5, 0, 2236, 0x9b1d_1129),
    (BloscCompressor::Zstd, 9, 0, 2320, 0x27aa_23c6),
    (BloscCompressor::Zstd, 1, 1, 2886, 0xe66d_8d9a),
    (BloscCompressor::Zstd, 5, 1, 2580, 0xab1f_6189),
    (BloscCompressor::Zstd, 9, 1, 2386, 0xe488_0f42),
    (BloscCompressor::Zstd, 1, 2, 5083, 0x009d_f900),
    (BloscCompressor::Zstd, 5, 2, 4648, 0xbcc9_4d5f),
    (BloscCompressor::Zstd, 9, 2, 4320, 0x6484_b18d),
];

#[test]
fn blosc_buffers_are_those_of_numcodecs() {
    for (compressor, level, shuffle, length, crc) in BLOSC {
        let shuffle = SHUFFLES[usize::from(shuffle)];
        assert_encodes(&blosc(compressor, level, shuffle, 4), length, crc);
    }
}

#[test]
fn others_are_those_of_numcodecs() {
    for (acceleration, length, crc) in [
        (1, 4190, 0x7d1e_9725),
        (10, 5336, 0xbd79_239d),
        (-3, 4190, 0x7d1e_9725),
    ] {
        let acceleration = Ok(acceleration);
        assert_encodes(&BytesToBytes::Lz4 { acceleration }, length, crc);
    }
    for (level, crc) in [(1, 0x0b74_023d), (5, 0xb240_59d0), (9, 0xa26d_b3a6)] {
        assert_encodes(&BytesToBytes::Bz2 { level: Ok(level) }, 4813, crc);
    }
    for (level, checksum, length, crc) in [
        (0, false, 2198, 0x92f3_d0ab),
        (3, true, 2202, 0xa6a3_edb2),
        (1, false, 2198, 0x92f3_d0ab),
        (19, false, 2298, 0x898b_fb14),
        (-5, true, 5543, 0xca09_9051),
        (22, false, 2296, 0xb018_ea3a),
    ] {
        assert_encodes(&zstd(level, checksum), length, crc);
    }
}

#[test]
fn lzma_is_that_of_python() {
    let preset = LzmaParameters::preset;
    let delta = LzmaFilter::Delta { dist: 4 };
    let x86 = LzmaFilter::Branch {
        architecture: super::super::super::LzmaArchitecture::X86,
        start_offset: 0,
    };
    let lzma1 = LzmaFilter::Lzma1 {
        lc: 3,
        lp: 0,
        pb: 2,
    };
    let all = LzmaParameters {
        dict_size: Some(4096),
        lc: Some(0),
        lp: Some(2),
        pb: Some(2),
        mode: Some(1),
        nice_len: Some(32),
        mf: Some(3),
        depth: Some(4),
        ..preset(6)
    };
    let by_tree = LzmaParameters {
        mf: Some(0x14),
        ..preset(6)
    };
    let short = LzmaParameters {
        dict_size: Some(65_536),
        ..preset(6)
    };
    let raw = Lzma::Raw;
    for (codec, length, crc) in [
        (xz(4, 6), 2120, 0x47a8_7d67),
        (xz(4, 0), 2120, 0x13af_a26b),
        (xz(1, 9), 2116, 0xd3a7_677d),
        (xz(0, 1), 2112, 0x8517_2c42),
        (xz(10, 6), 2144, 0x056a_19b6),
        (xz(4, 6 | 1 << 31), 2124, 0xc612_4bb4),
        (
            lzma(Lzma::Alone, 0, vec![Lzma1(preset(6))]),
            2074,
            0x197d_1b65,
        ),
        (
            lzma(Lzma::Alone, 0, vec![Lzma1(preset(1))]),
            2075,
            0x9067_71ba,
        ),
        (lzma(Lzma::Alone, 0, vec![Lzma1(short)]), 2074, 0x1685_561f),
        (
            lzma(Lzma::Xz, 4, vec![Other(delta), Lzma2(preset(1))]),
            2384,
            0x280a_e669,
        ),
        (
            lzma(raw(vec![LzmaFilter::Lzma2]), 0, vec![Lzma2(all)]),
            2026,
            0x15b7_fa02,
        ),
        (
            lzma(raw(vec![lzma1]), 0, vec![Lzma1(by_tree)]),
            2061,
            0x83a8_83be,
        ),
        (
            lzma(
                raw(vec![x86, LzmaFilter::Lzma2]),
                0,
                vec![Other(x86), Lzma2(preset(6))],
            ),
            2062,
            0x8a1b_27b5,
        ),
    ] {
        assert_encodes(&codec, length, crc);
        assert_round_trip(&codec, &sample());
    }
}

#[test]
fn small_codecs_are_those_of_numcodecs() {
    use ChecksumLocation::{End, Start};
    let jenkins = ChecksumKind::JenkinsLookup3 {
        initval: 0,
        prefix: vec![],
    };
    for (codec, bytes, expected) in [
        (
            checksum(ChecksumKind::Crc32, Start),
            "123456789",
            &b"\x26\x39\xf4\xcb123456789"[..],
        ),
        (
            checksum(ChecksumKind::Crc32, End),
            "123456789",
            b"123456789\x26\x39\xf4\xcb",
        ),
        (
            checksum(ChecksumKind::Adler32, Start),
            "123456789",
            b"\xde\x01\x1e\x09123456789",
        ),
        (
            checksum(jenkins, End),
            "123456789",
            b"123456789\x96\x9a\x5d\x84",
        ),
        (
            checksum(ChecksumKind::Fletcher32, End),
            "123456789",
            b"123456789\xd5\x09\xdf\x09",
        ),
        (
            BytesToBytes::CRC32C,
            "123456789",
            b"123456789\x83\x92\x06\xe3",
        ),
        (BytesToBytes::Base64, "abcd", b"YWJjZA=="),
        (SHUFFLE, "abcdefgh", b"aebfcgdh"),
        (SHUFFLE, "abcdefghij", b"aebfcgdhij"),
        (BytesToBytes::Shuffle { element_size: 1 }, "abc", b"abc"),
    ] {
        assert_eq!(
            encode(&codec, bytes.as_bytes()).unwrap(),
            expected,
            "{codec:?}"
        );
    }
}

/// The library of numcodecs finds other matches, so these bytes are not compared with those of numcodecs.
#[test]
fn gzip_members_have_no_time() {
    let encoded = encode(&BytesToBytes::GZIP, b"abc").unwrap();
    assert_eq!(encoded[..8], *b"\x1f\x8b\x08\0\0\0\0\0");
    let either = encode(&BytesToBytes::GZIP_OR_ZLIB, b"abc").unwrap();
    assert_eq!(either, encoded, "gzip in v2");
    let mut decoded = Vec::new();
    let mut gzip = flate2::write::GzDecoder::new(&mut decoded);
    gzip.write_all(&encoded).unwrap();
    gzip.finish().unwrap();
    assert_eq!(decoded, b"abc", "by another library");
}

/// The zeros are never read, so they take no memory.
#[test]
fn chunks_over_the_limit_of_a_codec_are_refused() {
    for (codec, length) in [
        (BytesToBytes::LZ4, 0x7E00_0001),
        (BytesToBytes::BLOSC, (1 << 31) - 16),
    ] {
        let Ok(bytes) = zeroed(length) else {
            continue;
        };
        let error = codec.encode(Cow::Borrowed(&bytes)).unwrap_err();
        let expected = format!("a chunk for {} is {length}", codec.name());
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[test]
fn codecs_that_cannot_be_encoded_are_named() {
    let large = LzmaParameters {
        dict_size: Some((64 << 20) + 1),
        ..LzmaParameters::preset(6)
    };
    let odd = LzmaParameters {
        mf: Some(5),
        ..LzmaParameters::preset(6)
    };
    for (codec, name) in [
        (
            BytesToBytes::Gzip {
                level: Err("level"),
            },
            "gzip, whose `level` is missing or wrong",
        ),
        (
            BytesToBytes::Zstd(Err("checksum")),
            "zstd, whose `checksum`",
        ),
        (BytesToBytes::Blosc(Err("cname")), "blosc, whose `cname`"),
        (
            BytesToBytes::Lz4 {
                acceleration: Err("acceleration"),
            },
            "lz4, whose `acceleration`",
        ),
        (
            BytesToBytes::Bz2 {
                level: Err("level"),
            },
            "bz2, whose `level`",
        ),
        (
            BytesToBytes::Lzma(Lzma::Xz, Err("check")),
            "lzma, whose `check`",
        ),
        (
            lzma(Lzma::Xz, 4, vec![Lzma2(large)]),
            "lzma with a dictionary of more than 64 MiB",
        ),
        (
            lzma(Lzma::Xz, 4, vec![Lzma2(odd)]),
            "lzma with such filters",
        ),
        (lzma(Lzma::Alone, 0, vec![]), "lzma with such filters"),
        (conditional(vec![SHUFFLE]), "conditional"),
    ] {
        let error = codec.check_encodes().unwrap_err().to_string();
        let expected = format!("unsupported codec for writing `{name}");
        assert!(error.contains(&expected), "{error}");
    }
}
