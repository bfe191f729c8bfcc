//! Filters and compressors, both ways.

use std::io::{Read, Write};

use super::kind::Kind;

/// The type of the numbers that a filter takes or returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    pub kind: Kind,
    pub big: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Codec {
    // Filters of numbers, which are small integers in these tests.
    Delta {
        from: Number,
        to: Number,
    },
    Scale {
        offset: i64,
        scale: i64,
        from: Number,
        to: Number,
    },
    AsType {
        from: Number,
        to: Number,
    },
    /// A filter of booleans.
    PackBits,
    // Filters and compressors of bytes.
    Shuffle(usize),
    Crc32,
    Adler32,
    Crc32c,
    Zlib,
    Gzip,
    Zstd,
    Bz2,
    Lz4,
    Blosc(usize),
}

impl Number {
    /// Little-endian; integers wrap.
    pub fn put(&self, value: i64) -> Vec<u8> {
        match self.kind {
            Kind::Float(4) => (value as f32).to_le_bytes().to_vec(),
            Kind::Float(8) => (value as f64).to_le_bytes().to_vec(),
            Kind::Int(size) | Kind::Unsigned(size) => value.to_le_bytes()[..size].to_vec(),
            _ => panic!("no number: {self:?}"),
        }
    }

    pub fn get(&self, bytes: &[u8]) -> i64 {
        match self.kind {
            Kind::Float(4) => f32::from_le_bytes(bytes.try_into().unwrap()) as i64,
            Kind::Float(8) => f64::from_le_bytes(bytes.try_into().unwrap()) as i64,
            _ => {
                let signed = matches!(self.kind, Kind::Int(_));
                let negative = signed && bytes.last().unwrap() & 0x80 != 0;
                let mut wide = [if negative { 0xff } else { 0 }; 8];
                wide[..bytes.len()].copy_from_slice(bytes);
                i64::from_le_bytes(wide)
            }
        }
    }
}

impl Codec {
    pub fn is_on_bytes(&self) -> bool {
        !matches!(
            self,
            Codec::Delta { .. } | Codec::Scale { .. } | Codec::AsType { .. } | Codec::PackBits
        )
    }

    /// The type of the numbers that the filter returns.
    pub fn to(&self) -> Option<&Number> {
        match self {
            Codec::Delta { to, .. } | Codec::Scale { to, .. } | Codec::AsType { to, .. } => {
                Some(to)
            }
            _ => None,
        }
    }

    pub fn to_mut(&mut self) -> Option<&mut Number> {
        match self {
            Codec::Delta { to, .. } | Codec::Scale { to, .. } | Codec::AsType { to, .. } => {
                Some(to)
            }
            _ => None,
        }
    }

    /// The numbers that the filter makes of `numbers`.
    pub fn encode_numbers(&self, numbers: &[i64]) -> Vec<i64> {
        match self {
            Codec::Delta { from, .. } => {
                let mut last = 0;
                let differences = numbers.iter().map(|&number| {
                    let difference = number - last;
                    last = number;
                    from.get(&from.put(difference))
                });
                differences.collect()
            }
            Codec::Scale { offset, scale, .. } => numbers
                .iter()
                .map(|number| (number - offset) * scale)
                .collect(),
            _ => numbers.to_vec(),
        }
    }

    pub fn decode_numbers(&self, numbers: &[i64]) -> Vec<i64> {
        match self {
            Codec::Delta { from, .. } => {
                let mut sum = 0;
                let sums = numbers.iter().map(|&number| {
                    sum = from.get(&from.put(sum + number));
                    sum
                });
                sums.collect()
            }
            Codec::Scale { offset, scale, .. } => numbers
                .iter()
                .map(|number| number / scale + offset)
                .collect(),
            _ => numbers.to_vec(),
        }
    }

    pub fn encode(&self, bytes: &[u8]) -> Vec<u8> {
        let finished = |result: std::io::Result<Vec<u8>>| result.unwrap();
        match self {
            Codec::PackBits => {
                let pad = bytes.len().next_multiple_of(8) - bytes.len();
                let packed = bytes.chunks(8).map(|bits| {
                    let bits = bits.iter().enumerate();
                    bits.fold(0, |byte, (i, &bit)| byte | bit << (7 - i))
                });
                std::iter::once(pad as u8).chain(packed).collect()
            }
            Codec::Shuffle(size) => {
                let count = bytes.len() / size;
                (0..bytes.len())
                    .map(|at| bytes[at % count * size + at / count])
                    .collect()
            }
            Codec::Crc32 => [&crc32fast::hash(bytes).to_le_bytes(), bytes].concat(),
            Codec::Adler32 => [&adler32(bytes).to_le_bytes(), bytes].concat(),
            Codec::Crc32c => [bytes, &crc32c::crc32c(bytes).to_le_bytes()].concat(),
            Codec::Zlib => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                finished(encoder.finish())
            }
            Codec::Gzip => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                finished(encoder.finish())
            }
            Codec::Zstd => {
                let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
                let len = zstd_safe::compress(&mut out[..], bytes, 1).unwrap();
                out.truncate(len);
                out
            }
            Codec::Bz2 => {
                let level = bzip2::Compression::fast();
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes).unwrap();
                finished(encoder.finish())
            }
            Codec::Lz4 => {
                let len = u32::try_from(bytes.len()).unwrap();
                [&len.to_le_bytes(), &lz4_flex::block::compress(bytes)[..]].concat()
            }
            // Flag 2 means that the bytes are copied. The number of lz4 and the flag of shuffle
            // have no effect.
            Codec::Blosc(typesize) => {
                let len = u32::try_from(bytes.len()).unwrap();
                let mut out = vec![2, 1, 0x23, u8::try_from(*typesize).unwrap()];
                for field in [len, len.max(1), len + 16] {
                    out.extend(field.to_le_bytes());
                }
                [&out, bytes].concat()
            }
            _ => bytes.to_vec(),
        }
    }

    pub fn decode(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Codec::PackBits => {
                let count = (bytes.len() - 1) * 8 - usize::from(bytes[0]);
                out.extend((0..count).map(|i| bytes[1 + i / 8] >> (7 - i % 8) & 1));
            }
            Codec::Shuffle(size) => {
                let count = bytes.len() / size;
                out.extend((0..bytes.len()).map(|at| bytes[at % size * count + at / size]));
            }
            Codec::Crc32 | Codec::Adler32 => out = bytes[4..].to_vec(),
            Codec::Crc32c => out = bytes[..bytes.len() - 4].to_vec(),
            Codec::Zlib => {
                flate2::read::ZlibDecoder::new(bytes)
                    .read_to_end(&mut out)
                    .unwrap();
            }
            Codec::Gzip => {
                flate2::read::GzDecoder::new(bytes)
                    .read_to_end(&mut out)
                    .unwrap();
            }
            Codec::Zstd => {
                let len = zstd_safe::get_frame_content_size(bytes).unwrap().unwrap();
                out = vec![0; usize::try_from(len).unwrap()];
                zstd_safe::decompress(&mut out[..], bytes).unwrap();
            }
            Codec::Bz2 => {
                bzip2::read::BzDecoder::new(bytes)
                    .read_to_end(&mut out)
                    .unwrap();
            }
            Codec::Lz4 => out = lz4_flex::block::decompress_size_prepended(bytes).unwrap(),
            Codec::Blosc(_) => out = bytes[16..].to_vec(),
            _ => out = bytes.to_vec(),
        }
        out
    }
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), &byte| {
        let a = (a + u32::from(byte)) % 65521;
        (a, (b + a) % 65521)
    });
    b << 16 | a
}

/// Items of any length as `vlen-utf8` and `vlen-bytes` have them.
pub fn frame(items: &[Vec<u8>]) -> Vec<u8> {
    let len = |len: usize| u32::try_from(len).unwrap().to_le_bytes();
    let mut out = len(items.len()).to_vec();
    for item in items {
        out.extend(len(item.len()));
        out.extend(item);
    }
    out
}

pub fn unframe(bytes: &[u8]) -> Vec<Vec<u8>> {
    let number = |at: usize| {
        let bytes = bytes[at..][..4].try_into().unwrap();
        u32::from_le_bytes(bytes) as usize
    };
    let mut at = 4;
    let mut items = Vec::new();
    for _ in 0..number(0) {
        let len = number(at);
        items.push(bytes[at + 4..][..len].to_vec());
        at += 4 + len;
    }
    assert_eq!(at, bytes.len());
    items
}
