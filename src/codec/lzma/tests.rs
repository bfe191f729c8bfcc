use super::{
    super::stream::conformance::{Undo, assert_decodes, assert_whole_only, decoded},
    *,
};

/// int32 0..6 in an XZ file, written by numcodecs: CRC-64, preset 6.
const XZ: &[u8] = b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\0\0\0\x74\x2f\xe5\xa3\
    \xe0\x00\x17\x00\x10\x5d\0\0\x68\x7e\xbf\x0a\x82\xad\x1c\xe6\x5c\x81\x8c\xf6\xaf\x2b\x94\0\
    \xb8\x89\xa0\x0c\x0c\xdd\xef\x8f\0\x01\x2c\x18\xd3\x46\xdb\x0a\x1f\xb6\xf3\x7d\x01\0\0\0\0\
    \x04YZ";
/// The same with CRC-32 and the window of 64 MiB that preset 9 has.
const XZ_PRESET_9: &[u8] = b"\xfd7zXZ\0\0\x01\x69\x22\xde\x36\x02\x00\x21\x01\x1c\0\0\0\x10\xcf\
    \x58\xcc\xe0\x00\x17\x00\x10\x5d\0\0\x68\x7e\xbf\x0a\x82\xad\x1c\xe6\x5c\x81\x8c\xf6\xaf\x2b\
    \x94\0\x3d\xf8\x0c\x85\0\x01\x28\x18\xd7\x83\xb7\x6e\x90\x42\x99\x0d\x01\0\0\0\0\x01YZ";
/// The same in a `.lzma` file.
const ALONE: &[u8] = b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\x68\x7e\xbf\x0a\x82\
    \xad\x1c\xe6\x5c\x81\x8c\xf9\xe5\x9f\xd3\xff\xfe\xba\x78\0";
/// int32 0..20 through delta of 4 bytes and LZMA2.
const RAW_DELTA: &[u8] = b"\xe0\0\x4f\0\x09\x5d\0\0\x68\x7e\xca\xe2\x7c\x6f\x40\0\0";
/// The same through LZMA1 with lc 0, lp 2 and pb 2.
const RAW_LZMA1: &[u8] = b"\0\0\x68\x7e\xbf\x0a\x82\xad\x1c\xe6\x5c\x81\x8c\xf6\xd9\x47\x7b\xcc\
    \xf9\x8d\x5d\x7f\x31\x6f\x34\x78\xc6\xa2\xb1\x1e\x47\x28\x75\x46\xd9\x35\x4e\x44\xb8\xff\xfe\
    \x1a\x30\0";
/// Two call instructions through the x86 filter with a start offset of 256, or of 0, and LZMA2.
const RAW_X86_AT_256: &[u8] = b"\xe0\0\x1b\0\x10\x5d\0\x74\x01\x3c\x1f\0\x04\x2d\x7b\x08\x28\
    \xe0\x6c\x87\x5f\0\0\0";
const RAW_X86: &[u8] = b"\xe0\0\x1b\0\x0f\x5d\0\x74\x01\x3c\x19\x38\xb4\x7c\x87\x3a\x8c\x32\xe9\
    \x11\x58\0\0";

const DELTA: LzmaFilter = LzmaFilter::Delta { dist: 4 };
const LZMA1: LzmaFilter = LzmaFilter::Lzma1 {
    lc: 0,
    lp: 2,
    pb: 2,
};

fn x86(start_offset: u32) -> Lzma {
    let architecture = LzmaArchitecture::X86;
    let branch = LzmaFilter::Branch {
        architecture,
        start_offset,
    };
    Lzma::Raw(vec![branch, LzmaFilter::Lzma2])
}

fn numbers(count: u32) -> Vec<u8> {
    (0..count).flat_map(u32::to_le_bytes).collect()
}

fn code() -> Vec<u8> {
    let mut code = vec![0x90; 28];
    code[..5].copy_from_slice(b"\xe8\0\0\0\0");
    code[7..12].copy_from_slice(b"\xe8\x10\0\0\0");
    code
}

/// `bytes` through an encoder, with a window of `dictionary_size`.
fn encode(format: &Lzma, dictionary_size: u32, bytes: &[u8]) -> Vec<u8> {
    let mut options = LzmaOptions::new_preset(0).unwrap();
    options.dict_size(dictionary_size);
    let mut filters = Filters::new();
    let mut encoder = match format {
        Lzma::Xz => {
            filters.lzma2(&options);
            Stream::new_stream_encoder(&filters, liblzma::stream::Check::Sha256).unwrap()
        }
        Lzma::Alone => Stream::new_lzma_encoder(&options).unwrap(),
        Lzma::Raw(_) => {
            filters.lzma2(&options);
            Stream::new_raw_encoder(&filters).unwrap()
        }
    };
    let mut out = Vec::with_capacity(bytes.len() + 10_000);
    let status = encoder.process_vec(bytes, &mut out, Action::Finish);
    assert_eq!(status, Ok(Status::StreamEnd));
    out
}

#[test]
fn every_wrapping_is_decoded() {
    for (format, encoded, expected, why) in [
        (Lzma::Xz, XZ, numbers(6), "xz"),
        (Lzma::Xz, XZ_PRESET_9, numbers(6), "xz of preset 9"),
        (Lzma::Alone, ALONE, numbers(6), "alone"),
        (
            Lzma::Raw(vec![DELTA, LzmaFilter::Lzma2]),
            RAW_DELTA,
            numbers(20),
            "raw LZMA2 and delta",
        ),
        (Lzma::Raw(vec![LZMA1]), RAW_LZMA1, numbers(20), "raw LZMA1"),
        (x86(256), RAW_X86_AT_256, code(), "raw x86 at 256"),
        (x86(0), RAW_X86, code(), "raw x86 at 0"),
    ] {
        let undo = |encoded: &[u8], out: &mut [u8]| format.undo(encoded, out);
        assert_decodes(&undo, encoded, &expected, why);
        assert_whole_only(&undo, encoded, why);
    }
}

#[test]
fn branches_of_every_architecture_are_turned_back() {
    use LzmaArchitecture::{Arm, ArmThumb, Ia64, PowerPc, Sparc, X86};
    for (architecture, filtered, expected) in [
        (
            X86,
            b"\xe8\0\x01\0\0\x90\x90\xe8\x10\x01\0\0\x90\x90\x90\x90",
            b"\xe8\xfb\xff\xff\xff\x90\x90\xe8\x04\0\0\0\x90\x90\x90\x90",
        ),
        (
            PowerPc,
            b"\x48\0\x01\x01\x48\0\x01\x05\x48\0\x01\x09\x48\0\x01\x11",
            b"\x48\0\0\x01\x48\0\0\x01\x48\0\0\x01\x48\0\0\x05",
        ),
        (
            Ia64,
            b"\x1d\0\0\0\0\x01\0\0\0\0\0\0\xf0\xff\0\x50",
            b"\x1d\0\0\0\0\x01\0\0\0\0\0\0\xf0\xfe\0\x50",
        ),
        (
            Arm,
            b"\0\x01\0\xeb\x10\x01\0\xeb\x20\x01\0\xeb\x30\x01\0\xeb",
            b"\xbe\0\0\xeb\xcd\0\0\xeb\xdc\0\0\xeb\xeb\0\0\xeb",
        ),
        (
            ArmThumb,
            b"\0\xf0\0\xf8\0\xf0\x01\xf8\0\xf0\x02\xf8\0\xf0\x03\xf8",
            b"\xff\xf7\x7e\xff\xff\xf7\x7d\xff\xff\xf7\x7c\xff\xff\xf7\x7b\xff",
        ),
        (
            Sparc,
            b"\x40\0\0\x01\x40\0\0\x02\x40\0\0\x03\x40\0\0\x04",
            b"\x7f\xff\xff\xc1\x7f\xff\xff\xc1\x7f\xff\xff\xc1\x7f\xff\xff\xc1",
        ),
    ] {
        // LZMA2 with one chunk of 16 bytes as they are.
        let encoded = [&b"\x01\0\x0f"[..], filtered, b"\0"].concat();
        let branch = LzmaFilter::Branch {
            architecture,
            start_offset: 256,
        };
        let format = Lzma::Raw(vec![branch, LzmaFilter::Lzma2]);
        let undo = |encoded: &[u8], out: &mut [u8]| format.undo(encoded, out);
        let bytes = decoded(&undo, &encoded, 16);
        assert_eq!(bytes, Ok(Some(expected.to_vec())), "{architecture:?}");
    }
}

#[test]
fn xz_streams_follow_each_other() {
    let undo = |encoded: &[u8], out: &mut [u8]| Lzma::Xz.undo(encoded, out);
    let streams = [XZ, &[0; 8], XZ_PRESET_9, &[0; 4]].concat();
    assert_decodes(&undo, &streams, &numbers(6).repeat(2), "two streams");
    let padding = [XZ, &[0; 3]].concat();
    assert!(decoded(&undo, &padding, 100).is_err(), "padding of 3 bytes");
}

#[test]
fn windows_are_no_larger_than_what_is_decoded() {
    // The bytes are longer than the first window, which therefore moves. The second one reaches their repetition.
    let noise: Vec<u8> = (0..50_000_u32)
        .flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_be_bytes())
        .collect();
    let bytes = noise.repeat(2);
    for format in [Lzma::Xz, Lzma::Alone, Lzma::Raw(vec![LzmaFilter::Lzma2])] {
        let undo: Undo<'_> = &|encoded, out| format.undo(encoded, out);
        for dictionary_size in [4096, 1 << 20] {
            let encoded = encode(&format, dictionary_size, &bytes);
            assert_decodes(undo, &encoded, &bytes, "long");
        }
    }
    // The header of the `.lzma` file gets a window of 4 GiB - 1.
    let mut greedy = ALONE.to_vec();
    greedy[1..5].fill(0xff);
    let undo = |encoded: &[u8], out: &mut [u8]| Lzma::Alone.undo(encoded, out);
    assert_decodes(&undo, &greedy, &numbers(6), "greedy");
    assert_eq!(window(usize::MAX), u32::MAX);
}

#[test]
fn xz_windows_over_the_limit_are_refused() {
    // The dictionary size 0x1f is 192 MiB; CRC-32 of the block header follows.
    let mut greedy = XZ.to_vec();
    greedy[16] = 0x1f;
    let sum = crc32fast::hash(&greedy[12..20]).to_le_bytes();
    greedy[20..24].copy_from_slice(&sum);
    let error = Lzma::Xz.undo(&greedy, &mut [0; 24]).unwrap_err();
    assert!(error.to_string().contains("66 MiB"), "{error}");
}

#[test]
fn damage_is_an_error() {
    let undo = |encoded: &[u8], out: &mut [u8]| Lzma::Xz.undo(encoded, out);
    for at in 0..XZ.len() {
        let mut damaged = XZ.to_vec();
        damaged[at] ^= 1;
        // Not every bit matters.
        if let Ok(bytes) = decoded(&undo, &damaged, 100) {
            assert_eq!(bytes, Some(numbers(6)), "bit flipped in byte {at}");
        }
    }
    for (format, encoded) in [
        (Lzma::Xz, ALONE),
        (Lzma::Alone, XZ),
        (Lzma::Raw(vec![LzmaFilter::Lzma2]), XZ),
        (Lzma::Raw(vec![LzmaFilter::Lzma2]), RAW_LZMA1),
    ] {
        let undo = |encoded: &[u8], out: &mut [u8]| format.undo(encoded, out);
        assert!(decoded(&undo, encoded, 100).is_err(), "{format:?}");
    }
}

#[test]
fn chains_that_do_not_exist_are_refused() {
    let lzma1 = |lc, lp, pb| LzmaFilter::Lzma1 { lc, lp, pb };
    for filters in [
        vec![],
        vec![DELTA],
        vec![LzmaFilter::Lzma2, DELTA],
        vec![LzmaFilter::Lzma2, LzmaFilter::Lzma2],
        vec![DELTA, DELTA, DELTA, DELTA, LzmaFilter::Lzma2],
        vec![LzmaFilter::Delta { dist: 0 }, LzmaFilter::Lzma2],
        vec![LzmaFilter::Delta { dist: 257 }, LzmaFilter::Lzma2],
        vec![lzma1(3, 2, 2)],
        vec![lzma1(0, 0, 5)],
        vec![lzma1(u32::MAX, 2, 2)],
    ] {
        let format = Lzma::Raw(filters);
        let undone = format.undo(RAW_DELTA, &mut [0; 100]);
        assert!(undone.is_err(), "{format:?}");
    }
}
