use super::*;
use crate::dtype::v3_name;

fn data_type(name: &str) -> DataType {
    let element = v3_name::without_parameters(name).unwrap();
    DataType::of(name.to_owned(), element).unwrap()
}

fn shape_of(lengths: &[&str]) -> Vec<u64> {
    lengths
        .iter()
        .map(|length| length.parse().unwrap())
        .collect()
}

fn mode_of(words: &[&str]) -> ZfpMode {
    match words {
        ["Rate", rate] => ZfpMode::Rate(rate.parse().unwrap()),
        ["Precision", planes] => ZfpMode::Precision(planes.parse().unwrap()),
        ["Accuracy", tolerance] => ZfpMode::Accuracy(tolerance.parse().unwrap()),
        ["Expert", min_bits, max_bits, max_precision, min_exponent] => ZfpMode::Expert {
            min_bits: min_bits.parse().unwrap(),
            max_bits: max_bits.parse().unwrap(),
            max_precision: max_precision.parse().unwrap(),
            min_exponent: min_exponent.parse().unwrap(),
        },
        _ => ZfpMode::Reversible,
    }
}

/// The numbers of a kind that `tests/streams.py` has.
fn values(data_type: &str, kind: &str, count: u64) -> Vec<u8> {
    let mut state: u64 = 7;
    let mut bytes = Vec::new();
    for i in 0..i64::try_from(count).unwrap() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let random = state ^ (state >> 32);
        let whole = match kind {
            "smooth" => i * i % 97 - 40,
            _ => (random >> 44).cast_signed() - (1 << 19),
        };
        let whole = i32::try_from(whole).unwrap();
        let scale = 2_f32.powi(i32::try_from(i % 5).unwrap() * 3 - 10);
        #[expect(clippy::cast_precision_loss, reason = "it has at most 20 bits")]
        let float = whole as f32 * scale;
        match (kind, data_type) {
            ("any", "int32" | "float32") => bytes.extend_from_slice(&random.to_le_bytes()[4..]),
            ("any", _) => bytes.extend_from_slice(&random.to_le_bytes()),
            (_, "int32") => bytes.extend_from_slice(&whole.to_le_bytes()),
            (_, "int64") => bytes.extend_from_slice(&i64::from(whole).to_le_bytes()),
            (_, "float32") => bytes.extend_from_slice(&float.to_le_bytes()),
            _ => bytes.extend_from_slice(&f64::from(float).to_le_bytes()),
        }
    }
    bytes
}

fn decode(codec: &Zfp, encoded: &[u8], length: usize) -> Result<Vec<u8>, FormatError> {
    let mut out = vec![0xee; length];
    codec.decode(encoded, &mut out)?;
    Ok(out)
}

/// A line of `tests/streams.txt`.
struct Stream {
    line: &'static str,
    data_type: DataType,
    shape: Vec<u64>,
    mode: ZfpMode,
    numbers: Vec<u8>,
    length: usize,
    checksums: [String; 2],
}

fn streams() -> impl Iterator<Item = Stream> {
    include_str!("tests/streams.txt").lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, kind, parameters @ .., length, encoded, decoded] = &words[..] else {
            panic!("{line}");
        };
        let mode = parameters
            .iter()
            .position(|word| word.starts_with(char::is_alphabetic));
        let (lengths, mode) = parameters.split_at(mode.unwrap());
        let shape = shape_of(lengths);
        Stream {
            line,
            data_type: data_type(name),
            mode: mode_of(mode),
            numbers: values(name, kind, shape.iter().product()),
            shape,
            length: length.parse().unwrap(),
            checksums: [encoded, decoded].map(ToString::to_string),
        }
    })
}

#[test]
fn streams_are_bit_for_bit_those_of_zfp() {
    let mut count = 0;
    for stream in streams() {
        let line = stream.line;
        let codec = Zfp::with_header(&stream.data_type, &stream.shape, Ok(stream.mode)).unwrap();
        let encoded = codec.encode(&stream.numbers).unwrap();
        let checksum = |bytes| format!("{:08x}", crc32fast::hash(bytes));
        assert_eq!(
            (encoded.len(), checksum(&encoded)),
            (stream.length, stream.checksums[0].clone()),
            "{line}"
        );
        assert!(encoded.len() as u64 <= codec.encoded_limit(), "{line}");
        let decoded = decode(&codec, &encoded, stream.numbers.len()).unwrap();
        assert_eq!(checksum(&decoded), stream.checksums[1], "{line}");
        assert!(decoded == stream.numbers || codec.can_lose(), "{line}");
        // Without a header, blocks are the same bits.
        let bare = Zfp::bare(&stream.data_type, &stream.shape, stream.mode).unwrap();
        if bare.check_encodes().is_ok() {
            let encoded = bare.encode(&stream.numbers).unwrap();
            assert!(encoded.len() as u64 <= bare.encoded_limit(), "{line}");
            assert_eq!(
                decode(&bare, &encoded, stream.numbers.len()).unwrap(),
                decoded,
                "{line}"
            );
        }
        count += 1;
    }
    assert_eq!(count, 736);
}

/// Streams that end early, that have bytes behind their end, or whose bits are any, are errors or an array, and no read is
/// outside of them.
#[test]
fn hostile_streams_are_errors() {
    for stream in streams().step_by(7) {
        let line = stream.line;
        let codec = Zfp::with_header(&stream.data_type, &stream.shape, Ok(stream.mode)).unwrap();
        let encoded = codec.encode(&stream.numbers).unwrap();
        // The last word may be all padding but for a byte.
        for length in (0..=encoded.len() - 8).step_by(5) {
            assert!(
                decode(&codec, &encoded[..length], stream.numbers.len()).is_err(),
                "{line}: {length}"
            );
        }
        let longer = [&encoded[..], &[0; 8]].concat();
        assert!(
            decode(&codec, &longer, stream.numbers.len()).is_err(),
            "{line}"
        );
        let mut state: u32 = 1;
        for _ in 0..20 {
            let mut damaged = encoded.clone();
            for byte in damaged.iter_mut().skip(4) {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if state >> 28 == 0 {
                    *byte = state.to_le_bytes()[2];
                }
            }
            let _ = decode(&codec, &damaged, stream.numbers.len());
        }
        let noise: Vec<u8> = values("int64", "any", 200);
        if let Ok(bare) = Zfp::bare(&stream.data_type, &stream.shape, stream.mode) {
            let _ = decode(&bare, &noise, stream.numbers.len());
        }
    }
}

#[test]
fn headers_of_other_arrays_are_named() {
    let codec = |name, shape: &[u64]| {
        Zfp::with_header(&data_type(name), shape, Ok(ZfpMode::Reversible)).unwrap()
    };
    let own = codec("float32", &[5, 6]);
    let numbers = values("float32", "smooth", 30);
    let encoded = own.encode(&numbers).unwrap();
    // numcodecs flattens the output of filters.
    let flat = codec("float32", &[30]).encode(&numbers).unwrap();
    assert_eq!(decode(&own, &flat, 120).unwrap(), numbers);
    for (other, problem) in [
        (
            codec("float32", &[6, 5]),
            "its header says shape [5, 6], expected shape [6, 5]",
        ),
        (
            codec("float32", &[30]),
            "its header says shape [5, 6], expected shape [30]",
        ),
        (
            codec("int32", &[5, 6]),
            "its header says float32, expected int32",
        ),
    ] {
        let error = decode(&other, &encoded, 120).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    for (at, byte, problem) in [
        (0, b'x', "found no header of zfp"),
        (3, 4, "found version 4 of the format, expected 5"),
    ] {
        let mut encoded = encoded.clone();
        encoded[at] = byte;
        let error = decode(&own, &encoded, 120).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    // More bits than a block may be filled up to: 64 bits of mode, all of them ones.
    let mut encoded = encoded;
    encoded[10] |= 0xf0;
    encoded[11..20].fill(0xff);
    let error = decode(&own, &encoded, 120).unwrap_err().to_string();
    assert!(error.contains("128 bit planes"), "{error}");
}

#[test]
fn narrow_and_unsigned_integers_are_promoted_as_by_zarrs() {
    for (name, elements) in [
        ("int8", vec![0x80_u8, 0xff, 0, 1, 0x7f]),
        ("uint8", vec![0, 1, 0x7f, 0x80, 0xff]),
        ("int4", vec![0xf8, 0xff, 0, 1, 7]),
        ("uint2", vec![0, 1, 2, 3]),
        (
            "int16",
            [-32768_i16, -1, 0, 32767].map(i16::to_le_bytes).concat(),
        ),
        (
            "uint16",
            [0_u16, 1, 32768, 65535].map(u16::to_le_bytes).concat(),
        ),
        (
            "uint32",
            [0, 1, i32::MAX.cast_unsigned()]
                .map(u32::to_le_bytes)
                .concat(),
        ),
        (
            "uint64",
            [0, 1, i64::MAX.cast_unsigned()]
                .map(u64::to_le_bytes)
                .concat(),
        ),
    ] {
        let data_type = data_type(name);
        let count = elements.len() as u64 / data_type.item_size;
        let codec = Zfp::bare(&data_type, &[count], ZfpMode::Reversible).unwrap();
        let encoded = codec.encode(&elements).unwrap();
        assert_eq!(
            decode(&codec, &encoded, elements.len()).unwrap(),
            elements,
            "{name}"
        );
    }
    // zfp has no number for these, and the nearest one is stored.
    let codec = Zfp::bare(&data_type("uint32"), &[1], ZfpMode::Reversible).unwrap();
    assert!(codec.can_lose());
    let encoded = codec.encode(&u32::MAX.to_le_bytes()).unwrap();
    assert_eq!(decode(&codec, &encoded, 4).unwrap(), i32::MAX.to_le_bytes());
    // 1 << 23 in the blocks of int8, and 1 << 15 in those of int16, are one.
    let as_int32 = Zfp::bare(&data_type("int32"), &[1], ZfpMode::Reversible).unwrap();
    for (name, shift) in [("int8", 23), ("int16", 15)] {
        let codec = Zfp::bare(&data_type(name), &[1], ZfpMode::Reversible).unwrap();
        let element = &[1, 0][..usize::try_from(data_type(name).item_size).unwrap()];
        let number = (1_i32 << shift).to_le_bytes();
        assert_eq!(
            codec.encode(element).unwrap(),
            as_int32.encode(&number).unwrap()
        );
    }
    for name in ["float16", "bool", "complex64"] {
        assert!(
            Zfp::bare(&data_type(name), &[1], ZfpMode::Reversible).is_err(),
            "{name}"
        );
    }
}

/// zarrs counts the bits of a fixed rate as in three dimensions: 64 times the rate for a block.
#[test]
fn a_fixed_rate_is_read_as_the_specification_and_as_zarrs_count_it() {
    let float = data_type("float32");
    let numbers = values("float32", "smooth", 64);
    let codec = Zfp::bare(&float, &[8, 8], ZfpMode::Rate(8.0)).unwrap();
    assert!(codec.check_encodes().is_err());
    for (bits, length) in [(16 * 8, 4 * 16), (64 * 8, 4 * 64)] {
        let mode = ZfpMode::Expert {
            min_bits: bits,
            max_bits: bits,
            max_precision: 64,
            min_exponent: -1074,
        };
        let written = Zfp::bare(&float, &[8, 8], mode).unwrap();
        let encoded = written.encode(&numbers).unwrap();
        assert_eq!(encoded.len(), length);
        let expected = decode(&written, &encoded, 256).unwrap();
        assert_eq!(decode(&codec, &encoded, 256).unwrap(), expected, "{bits}");
        assert!(encoded.len() as u64 <= codec.encoded_limit());
    }
    assert!(
        Zfp::bare(&float, &[4, 4, 4], ZfpMode::Rate(8.0))
            .unwrap()
            .check_encodes()
            .is_ok()
    );
}

#[test]
fn parameters_of_no_block_are_refused() {
    let float = data_type("float32");
    let expert = |min_bits, max_bits, max_precision| ZfpMode::Expert {
        min_bits,
        max_bits,
        max_precision,
        min_exponent: -1074,
    };
    for (mode, is_possible) in [
        (expert(1, 9, 64), true),
        (expert(1, 8, 64), false),
        (expert(2, 1, 64), false),
        (expert(1, 100, 0), false),
        (expert(1, 100, 65), false),
        (expert(1 << 15, 1 << 15, 64), true),
        (expert(32_769, 32_769, 64), false),
        (ZfpMode::Rate(f64::NAN), false),
        (ZfpMode::Rate(0.01), false),
        (ZfpMode::Rate(1e9), false),
        (ZfpMode::Accuracy(f64::INFINITY), false),
        (ZfpMode::Accuracy(5e-324), true),
        (ZfpMode::Precision(u32::MAX), true),
    ] {
        assert_eq!(
            Zfp::bare(&float, &[4, 4], mode).is_ok(),
            is_possible,
            "{mode:?}"
        );
    }
    let error = Zfp::bare(&float, &[1; 5], ZfpMode::Reversible).unwrap_err();
    assert!(error.to_string().contains("zfp of 5 dimensions"), "{error}");
    // One number of no dimension.
    let codec = Zfp::bare(&float, &[], ZfpMode::Reversible).unwrap();
    let encoded = codec.encode(&1.5_f32.to_le_bytes()).unwrap();
    assert_eq!(decode(&codec, &encoded, 4).unwrap(), 1.5_f32.to_le_bytes());
    // Infinities and NaN, in a mode that scales.
    let codec = Zfp::bare(&float, &[1], ZfpMode::Precision(0)).unwrap();
    assert!(codec.encode(&f32::NAN.to_le_bytes()).is_err());
    let long = Zfp::with_header(&float, &[1, 1, 1, 5000], Ok(ZfpMode::Reversible)).unwrap();
    assert!(
        long.encode(&vec![0; 20_000]).is_err(),
        "a header has 12 bits for a length in four dimensions"
    );
}

#[test]
fn a_codec_for_other_chunks_is_the_one_of_their_shape() {
    for Stream {
        line,
        data_type,
        shape,
        mode,
        ..
    } in streams()
    {
        let longer: Vec<u64> = shape.iter().map(|length| length + 5).collect();
        let [codec, own] = [&longer, &shape].map(|shape| Zfp::bare(&data_type, shape, mode));
        assert_eq!(codec.unwrap().for_shape(&shape), own, "{line}");
    }
}
