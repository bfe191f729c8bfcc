//! The `lzma` codec: LZMA in an XZ file, in the older `.lzma` file, or bare.
//!
//! Formats: <https://tukaani.org/xz/xz-file-format.txt>,
//! <https://tukaani.org/xz/lzma-file-format.txt>. Names: v2 and v1 `lzma`, v3 `numcodecs.lzma`;
//! numbers of formats and filters are those of Python's module `lzma`.
//!
//! ```json
//! { "id": "lzma", "format": 1, "check": -1, "preset": null, "filters": null }
//! ```
//!
//! XZ streams may follow each other, with padding between them; their checks are verified. The two
//! other formats are a single stream without a check.
//!
//! The stored header asks for a window of up to 4 GiB. A window longer than the decoded bytes is of
//! no use, so the older format and bare LZMA get one of the length that may be decoded. The size in
//! an XZ file cannot be changed: one over [`MEMORY_LIMIT`] is refused, and of a smaller window no
//! more pages are touched than bytes are decoded.

mod encode;

use liblzma::stream::{Action, CONCATENATED, Error, Filters, LzmaOptions, Status, Stream};

pub use encode::{LzmaEncoderFilter, LzmaParameters, LzmaSettings};

use super::{
    decoded::Decoded,
    stream::{self, StreamDecoder},
};
use crate::error::FormatError;

const NAME: &str = "lzma";

/// The memory that an XZ file may ask for: the window of 64 MiB of the highest preset, and some
/// more.
const MEMORY_LIMIT: u64 = 66 << 20;

/// The container of LZMA, by its number in Python.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Lzma {
    /// An XZ file (format 1), which holds all parameters.
    Xz,
    /// The older `.lzma` file (format 2), which holds all parameters.
    Alone,
    /// The bare stream (format 3), made by these filters in order.
    Raw(Vec<LzmaFilter>),
}

/// A filter of bare LZMA, with the options that a decoder needs. Sizes of dictionaries and presets
/// are not among them; all presets have the same `lc`, `lp` and `pb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LzmaFilter {
    /// `FILTER_LZMA1` (0x4000000000000001).
    Lzma1 {
        /// Number of literal context bits; 3 by default.
        lc: u32,
        /// Number of literal position bits; 0 by default.
        lp: u32,
        /// Number of position bits; 2 by default.
        pb: u32,
    },
    /// `FILTER_LZMA2` (0x21).
    Lzma2,
    /// `FILTER_DELTA` (0x03).
    Delta {
        /// Distance in bytes, 1 to 256; 1 by default.
        dist: u16,
    },
    /// Converts relative addresses of branches and calls to absolute ones.
    Branch {
        /// The architecture of the machine code.
        architecture: LzmaArchitecture,
        /// Address of the first byte; 0 by default.
        start_offset: u32,
    },
}

/// The architectures of machine code that [`LzmaFilter::Branch`] knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LzmaArchitecture {
    /// `FILTER_X86` (0x04).
    X86,
    /// `FILTER_POWERPC` (0x05).
    PowerPc,
    /// `FILTER_IA64` (0x06).
    Ia64,
    /// `FILTER_ARM` (0x07).
    Arm,
    /// `FILTER_ARMTHUMB` (0x08).
    ArmThumb,
    /// `FILTER_SPARC` (0x09).
    Sparc,
}

impl StreamDecoder for Stream {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String> {
        let status = self.process(input, out, Action::Finish).map_err(message)?;
        Ok(status == Status::StreamEnd)
    }

    fn totals(&self) -> [u64; 2] {
        [self.total_in(), self.total_out()]
    }
}

impl Lzma {
    /// An upper bound of the memory that decoding to `length` bytes takes: the window and the
    /// state.
    pub(super) fn state_bytes(length: u64) -> u64 {
        const STATE: u64 = 256 << 10;
        length.saturating_add(STATE)
    }

    /// Decodes into the beginning of `out`.
    ///
    /// # Errors
    /// The stream is cut short or damaged, or the filters cannot be combined.
    pub(super) fn undo(&self, encoded: &[u8], out: &mut [u8]) -> Result<Decoded, FormatError> {
        let window = window(out.len());
        let mut rest = encoded;
        let mut decoder = match self {
            Lzma::Xz => Stream::new_stream_decoder(MEMORY_LIMIT, CONCATENATED).map_err(refused)?,
            Lzma::Alone => alone_decoder(window, &mut rest)?,
            Lzma::Raw(filters) => raw_decoder(window, filters).map_err(refused)?,
        };
        let undone = stream::undo(NAME, &mut decoder, &mut rest, out)?;
        stream::expect_end(NAME, undone, rest)
    }
}

/// The size of a window that reaches back over all of `length` bytes, and over the few bytes that
/// filters buffer.
fn window(length: usize) -> u32 {
    const HELD_BACK: u32 = 4096;
    u32::try_from(length)
        .unwrap_or(u32::MAX)
        .saturating_add(HELD_BACK)
}

/// A decoder that has read the header of the `.lzma` file in `rest`, with `window` in place of its
/// dictionary size. The header is removed from `rest`.
///
/// ```text
/// 0            1                 5                13
/// | properties | dictionary size | decoded length | stream ...
/// ```
fn alone_decoder(window: u32, rest: &mut &[u8]) -> Result<Stream, FormatError> {
    let (&[properties, s0, s1, s2, s3, ref length @ ..], stream) =
        rest.split_first_chunk::<13>()
            .ok_or_else(|| FormatError::encoded(NAME, "cut short"))?;
    *rest = stream;
    let window = window.min(u32::from_le_bytes([s0, s1, s2, s3]));
    let header = [&[properties], &window.to_le_bytes()[..], length].concat();
    let mut decoder = Stream::new_lzma_decoder(u64::MAX).map_err(refused)?;
    // Without room for output the decoder would not read; the header produces none.
    decoder
        .process(&header, &mut [0], Action::Run)
        .map_err(refused)?;
    Ok(decoder)
}

fn raw_decoder(window: u32, filters: &[LzmaFilter]) -> Result<Stream, Error> {
    let mut chain = Filters::new();
    for filter in filters {
        add_filter(&mut chain, *filter, window)?;
    }
    Stream::new_raw_decoder(&chain)
}

/// Adds a filter with the parameters of its decoder and a `window`.
fn add_filter(chain: &mut Filters, filter: LzmaFilter, window: u32) -> Result<(), Error> {
    match filter {
        LzmaFilter::Lzma1 { lc, lp, pb } => {
            let mut options = LzmaOptions::new();
            options
                .dict_size(window)
                .literal_context_bits(lc)
                .literal_position_bits(lp)
                .position_bits(pb);
            chain.lzma1(&options);
        }
        LzmaFilter::Lzma2 => {
            chain.lzma2(LzmaOptions::new().dict_size(window));
        }
        LzmaFilter::Delta { dist } => {
            let less_one = dist.checked_sub(1).and_then(|n| u8::try_from(n).ok());
            chain.delta_properties(&[less_one.ok_or(Error::Options)?])?;
        }
        LzmaFilter::Branch {
            architecture,
            start_offset,
        } => {
            let properties = start_offset.to_le_bytes();
            match architecture {
                LzmaArchitecture::X86 => chain.x86_properties(&properties)?,
                LzmaArchitecture::PowerPc => chain.powerpc_properties(&properties)?,
                LzmaArchitecture::Ia64 => chain.ia64_properties(&properties)?,
                LzmaArchitecture::Arm => chain.arm_properties(&properties)?,
                LzmaArchitecture::ArmThumb => chain.arm_thumb_properties(&properties)?,
                LzmaArchitecture::Sparc => chain.sparc_properties(&properties)?,
            };
        }
    }
    Ok(())
}

fn refused(error: Error) -> FormatError {
    FormatError::encoded(NAME, message(error))
}

fn message(error: Error) -> String {
    match error {
        Error::Data => "damaged".to_owned(),
        Error::Format => "not of the format that the metadata names".to_owned(),
        Error::MemLimit => format!("a window of more than {} MiB", MEMORY_LIMIT >> 20),
        Error::Mem => "out of memory".to_owned(),
        Error::Options | Error::Program => "unsupported options or chain of filters".to_owned(),
        Error::NoCheck | Error::UnsupportedCheck => "unsupported check".to_owned(),
    }
}

#[cfg(test)]
mod tests;
