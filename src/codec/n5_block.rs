//! The `n5_default` codec: a block of N5, whose header says how large the block is.
//!
//! Specs: <https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/n5_default>,
//! <https://github.com/saalfeldlab/n5>. Name: v3 `n5_default`.
//!
//! ```json
//! { "name": "n5_default", "configuration": { "codecs": [
//!   { "name": "transpose", "configuration": { "order": [1, 0] } },
//!   { "name": "bytes", "configuration": { "endian": "big" } },
//!   { "name": "gzip", "configuration": { "level": 5 } } ] } }
//! ```
//!
//! ```text
//! 00 00  00 02  00 00 00 03  00 00 00 02  elements, by the inner codecs
//! mode   rank   lengths, of the axis that varies fastest first
//! ```
//!
//! In a container of N5 the axes are reversed: the first one of the array is the last one of its blocks, whose elements
//! then have the order of Zarr. In such a container, blocks of mode 1 have their number of elements behind the lengths.
//!
//! A block at the edge of an array may be truncated to the array, or have the full shape of a chunk. Here a truncated
//! block is padded with the fill value. A block may be larger than its chunk only in a grid whose chunks differ in
//! length. It must not be larger than the longest chunk, so that the memory for it is known before the header is read.

use smallvec::SmallVec;

use super::{
    BytesToBytes, ChunkSpec, CodecChain, Losses,
    setting::not_for_writing,
    strided::{StridedAxes, StridedAxis, c_strides, walk},
};
use crate::{
    buffers::zeroed,
    error::FormatError,
    grid::{self, Dims},
};

const NAME: &str = "n5_default";

/// The mode of a block of elements of a fixed size.
const DEFAULT: u16 = 0;
/// The mode of a block whose header has the number of elements.
const COUNTED: u16 = 1;

/// The codecs of the elements of a block, and the size that the block can have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct N5Block {
    codecs: CodecChain,
    container: BlockContainer,
    /// The lengths of the longest chunk of the grid.
    longest: Dims,
    /// The decoded length of that chunk, in bytes.
    longest_bytes: u64,
}

/// The kind of array that blocks belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum BlockContainer {
    /// An array of Zarr, whose axes are those of the blocks.
    Zarr,
    /// A dataset of N5, which has the axes reversed.
    N5,
}

impl N5Block {
    /// Blocks of elements of `item_size` bytes that `codecs` encode: transposes, the bytes of numbers, and compressors.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] when no memory has room for the longest chunk.
    pub fn new(codecs: CodecChain, longest: Dims, item_size: u64) -> Result<N5Block, FormatError> {
        let bytes = grid::product(&longest).and_then(|n| n.checked_mul(item_size));
        let too_large = || FormatError::too_large("a block", format!("{longest:?}"), u64::MAX);
        Ok(N5Block {
            longest_bytes: bytes.ok_or_else(too_large)?,
            codecs,
            container: BlockContainer::Zarr,
            longest,
        })
    }

    /// The same blocks in a container of N5, as the chunks of an array that has the axes reversed. Their `compressor`
    /// may be one that Zarr does not have.
    #[must_use]
    pub fn in_container(mut self, compressor: Option<BytesToBytes>) -> N5Block {
        self.container = BlockContainer::N5;
        self.longest.reverse();
        // The elements of a block are in the order of the reversed axes.
        self.codecs.array_to_array.clear();
        self.codecs.bytes_to_bytes.extend(compressor);
        self
    }

    /// The codecs of a block.
    pub(super) fn codecs(&self) -> &CodecChain {
        &self.codecs
    }

    /// The length in bytes of the longest header, which is that of mode 1.
    fn header_len(&self) -> u64 {
        8 + 4 * self.longest.len() as u64
    }

    /// The maximum length of an encoded block.
    pub(super) fn encoded_limit(&self) -> u64 {
        let elements = self.codecs.array_bytes_limit(self.longest_bytes);
        let codecs = self.codecs.bytes_to_bytes.iter();
        let encoded = codecs.fold(elements, |length, codec| codec.encoded_limit(length));
        encoded.saturating_add(self.header_len())
    }

    /// An upper bound of the memory that [`decode`](Self::decode) takes beside its buffers.
    pub(super) fn scratch_bytes(&self) -> u64 {
        let of_codecs = self.codecs.scratch_bytes(self.longest_bytes);
        self.longest_bytes.saturating_add(of_codecs)
    }

    /// An upper bound of the memory that [`encode`](Self::encode) takes beside its buffers.
    pub(super) fn encode_scratch_bytes(&self, decoded_len: u64) -> u64 {
        self.codecs.encode_scratch_bytes(decoded_len)
    }

    /// Checks that chunks can be encoded.
    ///
    /// # Errors
    /// A codec that cannot be encoded, a container of N5, or a chunk whose lengths the header has no room for.
    pub(super) fn check_encodes(&self) -> Result<(), FormatError> {
        if self.container == BlockContainer::N5 {
            return Err(not_for_writing("blocks in a container of N5"));
        }
        header(self.longest.iter())?;
        self.codecs.check_encodes()
    }

    /// Decodes a block to all of `out`, a chunk of `spec`.
    ///
    /// # Errors
    /// A header that is not that of such a block, or elements that the inner codecs refuse.
    pub(super) fn decode(
        &self,
        spec: &ChunkSpec<'_>,
        encoded: &[u8],
        out: &mut [u8],
    ) -> Result<(), FormatError> {
        let (block, elements) = self.split(encoded)?;
        if block[..] == *spec.shape {
            return self.codecs.decode(spec, elements, out);
        }
        let of_block = ChunkSpec {
            shape: &block,
            ..*spec
        };
        let length = of_block.decoded_len().and_then(|n| usize::try_from(n).ok());
        let mut decoded = zeroed(length.ok_or_else(|| refused("too large"))?)?;
        self.codecs.decode(&of_block, elements, &mut decoded)?;
        spec.fill.fill(0, out);
        let item = usize::try_from(spec.dtype.item_size).unwrap_or(0);
        copy_corner(item, [&block, spec.shape], &decoded, out).ok_or_else(|| refused("too large"))
    }

    /// The lengths of a block, in the axes of the chunk, and its encoded elements.
    fn split<'a>(&self, encoded: &'a [u8]) -> Result<(Dims, &'a [u8]), FormatError> {
        let cut_off = || refused("no whole header");
        let (mode, rest) = encoded.split_first_chunk().ok_or_else(cut_off)?;
        let (rank, rest) = rest.split_first_chunk().ok_or_else(cut_off)?;
        let (mode, rank) = (u16::from_be_bytes(*mode), u16::from_be_bytes(*rank));
        let is_counted = mode == COUNTED && self.container == BlockContainer::N5;
        if mode != DEFAULT && !is_counted {
            return Err(refused(format!("mode {mode}, expected 0")));
        }
        if usize::from(rank) != self.longest.len() {
            let expected = self.longest.len();
            return Err(refused(format!("{rank} axes, expected {expected}")));
        }
        let (lengths, elements) = rest
            .split_at_checked(4 * self.longest.len())
            .ok_or_else(cut_off)?;
        let (lengths, _) = lengths.as_chunks();
        let mut lengths: Dims = lengths
            .iter()
            .map(|length| u64::from(u32::from_be_bytes(*length)))
            .collect();
        if self.container == BlockContainer::N5 {
            lengths.reverse();
        }
        let mut pairs = lengths.iter().zip(&self.longest);
        if pairs.any(|(length, longest)| !(1..=*longest).contains(length)) {
            let longest = &self.longest[..];
            let problem = format!("lengths {lengths:?}, expected from 1 to {longest:?}");
            return Err(refused(problem));
        }
        if !is_counted {
            return Ok((lengths, elements));
        }
        let (count, elements) = elements.split_first_chunk().ok_or_else(cut_off)?;
        let count = u64::from(u32::from_be_bytes(*count));
        if grid::product(&lengths) != Some(count) {
            let problem = format!("{count} elements in a block of {lengths:?}");
            return Err(refused(problem));
        }
        Ok((lengths, elements))
    }

    /// Encodes `elements`, those of a whole chunk of `spec`, as a block of the full shape.
    ///
    /// # Errors
    /// Those of [`check_encodes`](Self::check_encodes), or no memory.
    pub(super) fn encode(
        &self,
        spec: &ChunkSpec<'_>,
        elements: &[u8],
    ) -> Result<Vec<u8>, FormatError> {
        let mut block = header(spec.shape.iter())?;
        let encoded = self.codecs.encode(spec, elements, Losses::Refused)?;
        block
            .try_reserve_exact(encoded.len())
            .map_err(|_| refused("no memory for the block"))?;
        block.extend_from_slice(&encoded);
        Ok(block)
    }
}

/// The header of a block of `lengths`.
fn header<'a>(lengths: impl ExactSizeIterator<Item = &'a u64>) -> Result<Vec<u8>, FormatError> {
    let rank = u16::try_from(lengths.len())
        .map_err(|_| refused(format!("{} axes, at most {}", lengths.len(), u16::MAX)))?;
    let mut header = DEFAULT.to_be_bytes().to_vec();
    header.extend_from_slice(&rank.to_be_bytes());
    for &length in lengths {
        let length = u32::try_from(length)
            .map_err(|_| refused(format!("a length of {length}, at most {}", u32::MAX)))?;
        header.extend_from_slice(&length.to_be_bytes());
    }
    Ok(header)
}

/// Copies the low corner that two arrays of these `shapes` share, with elements of `item` bytes in C order, from one to
/// the other. `None` when they are larger than memory.
fn copy_corner(item: usize, shapes: [&[u64]; 2], from: &[u8], to: &mut [u8]) -> Option<()> {
    let lengths = |shape: &[u64]| -> Option<SmallVec<[usize; 6]>> {
        shape.iter().map(|&n| usize::try_from(n).ok()).collect()
    };
    let [from_shape, to_shape] = shapes.map(lengths);
    let (from_shape, to_shape) = (from_shape?, to_shape?);
    let strides = c_strides(&from_shape, item)?.into_iter();
    let strides = strides.zip(c_strides(&to_shape, item)?);
    let axes = from_shape.iter().zip(&to_shape).zip(strides);
    let mut axes: StridedAxes = axes
        .map(|((&one, &other), (from, to))| StridedAxis {
            length: one.min(other),
            from,
            to,
        })
        .collect();
    let run = item * axes.pop().map_or(1, |axis| axis.length);
    for (start_from, start_to) in walk(&axes, (0, 0)) {
        let from = from.get(start_from..start_from + run)?;
        to.get_mut(start_to..start_to + run)?.copy_from_slice(from);
    }
    Some(())
}

fn refused(problem: impl Into<String>) -> FormatError {
    FormatError::encoded(NAME, problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{ArrayToArray, ArrayToBytes, BytesCodec, Transpose};
    use crate::dtype::{ByteOrder, DataType, FillValue};

    /// A block of 3 columns and 2 rows, whose elements count by columns as N5 stores them, as in the drawing above.
    const BLOCK: &str = "0000 0002 00000003 00000002  0001 0002 0003 0004 0005 0006";

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    /// The codec for 16-bit numbers in chunks of at most `longest`.
    fn chain(longest: &[u64], compressors: &[BytesToBytes]) -> CodecChain {
        let of_block = CodecChain {
            array_to_array: vec![ArrayToArray::Transpose(Transpose::reversal(longest.len()))],
            array_to_bytes: ArrayToBytes::Bytes(BytesCodec {
                endian: Some(ByteOrder::Big),
            }),
            bytes_to_bytes: compressors.to_vec(),
        };
        let block = N5Block::new(of_block, longest.into(), 2).unwrap();
        CodecChain {
            array_to_array: Vec::new(),
            array_to_bytes: ArrayToBytes::N5Block(Box::new(block)),
            bytes_to_bytes: Vec::new(),
        }
    }

    fn decode(chain: &CodecChain, shape: &[u64], encoded: &[u8]) -> Result<Vec<u16>, FormatError> {
        let dtype = DataType::unsigned(2);
        let fill = FillValue::new(vec![7, 0], true);
        let spec = ChunkSpec {
            shape,
            dtype: &dtype,
            fill: &fill,
        };
        let mut out = vec![0xee; usize::try_from(spec.decoded_len().unwrap()).unwrap()];
        chain.decode(&spec, encoded, &mut out)?;
        let (numbers, _) = out.as_chunks();
        Ok(numbers
            .iter()
            .map(|bytes| u16::from_le_bytes(*bytes))
            .collect())
    }

    #[test]
    fn blocks_are_padded_and_cut_to_their_chunk() {
        let block = unhex(BLOCK);
        for (longest, shape, elements) in [
            ([3, 2], [3, 2], &[1, 4, 2, 5, 3, 6][..]),
            ([3, 4], [3, 4], &[1, 4, 7, 7, 2, 5, 7, 7, 3, 6, 7, 7]),
            ([4, 2], [4, 2], &[1, 4, 2, 5, 3, 6, 7, 7]),
            // The last chunk of a grid of chunks of different lengths.
            ([3, 2], [2, 1], &[1, 2]),
            ([4, 2], [4, 1], &[1, 2, 3, 7]),
        ] {
            let found = decode(&chain(&longest, &[]), &shape, &block).unwrap();
            assert_eq!(found, elements, "{shape:?}");
        }
        let scalar = decode(&chain(&[], &[]), &[], &unhex("0000 0000 0102")).unwrap();
        assert_eq!(scalar, [0x102]);
    }

    #[test]
    fn hostile_headers_are_refused() {
        let chain = chain(&[3, 4], &[]);
        for (block, problem) in [
            ("", "no whole header"),
            ("0000 0002 00000003 000000", "no whole header"),
            ("0001 0002 00000003 00000002 00000006", "mode 1"),
            ("0002 00000006", "mode 2"),
            ("0000 0003 00000003 00000002 00000001", "3 axes, expected 2"),
            ("0000 ffff 00000003 00000002", "65535 axes"),
            ("0000 0002 00000000 00000002", "from 1 to [3, 4]"),
            ("0000 0002 00000004 00000002", "from 1 to [3, 4]"),
            ("0000 0002 ffffffff ffffffff", "from 1 to [3, 4]"),
            ("0000 0002 00000003 00000002 0001", "2 bytes, expected 12"),
            (&format!("{BLOCK} 0007"), "14 bytes"),
        ] {
            let error = decode(&chain, &[3, 4], &unhex(block)).unwrap_err();
            assert!(error.to_string().contains(problem), "{block}: {error}");
        }
    }

    #[test]
    fn containers_have_the_axes_reversed() {
        let mut chain = chain(&[4, 2], &[]);
        if let ArrayToBytes::N5Block(block) = &mut chain.array_to_bytes {
            **block = block.as_ref().clone().in_container(None);
        }
        let found = decode(&chain, &[2, 4], &unhex(BLOCK)).unwrap();
        assert_eq!(found, [1, 2, 3, 7, 4, 5, 6, 7]);
        let counted = |count: &str| {
            let header = "0001 0002 00000003 00000002";
            unhex(&format!("{header} {count} {}", BLOCK.split_at(28).1))
        };
        assert_eq!(
            decode(&chain, &[2, 4], &counted("00000006")).unwrap(),
            found
        );
        for (block, problem) in [
            (counted("00000007"), "7 elements in a block"),
            (unhex("0001 0002 00000003 00000002 0000"), "no whole header"),
            (unhex("0002 00000006"), "mode 2"),
            (unhex("0000 0002 00000002 00000003"), "from 1 to [2, 4]"),
        ] {
            let error = decode(&chain, &[2, 4], &block).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
        assert!(chain.check_encodes().is_err());
    }

    #[test]
    fn chunks_are_encoded_to_blocks_of_their_full_shape() {
        let dtype = DataType::unsigned(2);
        let fill = FillValue::new(vec![0, 0], true);
        let elements = [1_u16, 4, 2, 5, 3, 6];
        let decoded: Vec<u8> = elements.iter().flat_map(|n| n.to_le_bytes()).collect();
        let spec = ChunkSpec {
            shape: &[3, 2],
            dtype: &dtype,
            fill: &fill,
        };
        let encode = |chain: &CodecChain| chain.encode(&spec, &decoded, Losses::Refused);
        assert_eq!(encode(&chain(&[3, 2], &[])).unwrap(), unhex(BLOCK));
        for codec in [BytesToBytes::GZIP, BytesToBytes::ZSTD, BytesToBytes::CRC32C] {
            let chain = chain(&[3, 2], &[codec]);
            let block = encode(&chain).unwrap();
            assert_eq!(block[..12], unhex(BLOCK)[..12]);
            assert_eq!(decode(&chain, &[3, 2], &block).unwrap(), elements);
        }
        let too_long = chain(&[1 << 32, 1], &[]).check_encodes().unwrap_err();
        assert!(
            too_long.to_string().contains("at most 4294967295"),
            "{too_long}"
        );
    }

    #[test]
    fn memory_is_known_before_the_header_is_read() {
        let chain = chain(&[300, 400], &[BytesToBytes::ZSTD]);
        assert!(chain.scratch_bytes(2) >= 2 * 300 * 400 * 2);
        assert!(chain.encode_scratch_bytes(240_000) >= 240_000);
        let of_block = CodecChain {
            array_to_bytes: ArrayToBytes::Bytes(BytesCodec { endian: None }),
            array_to_array: Vec::new(),
            bytes_to_bytes: Vec::new(),
        };
        assert!(N5Block::new(of_block, [1 << 40, 1 << 40].as_slice().into(), 2).is_err());
    }
}
