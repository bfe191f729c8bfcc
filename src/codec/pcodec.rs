//! The `pcodec` codec: numbers in a standalone file of pco.
//!
//! Spec: <https://github.com/pcodec/pcodec/blob/main/docs/format.md>. Names:
//! `numcodecs.pcodec`; in v2 the compressor `pcodec`.
//!
//! ```json
//! { "name": "numcodecs.pcodec", "configuration": { "level": 8, "mode_spec": "auto" } }
//! ```
//!
//! The file stores the type of its numbers, which must be that of the array. Files are written as
//! numcodecs writes them, by all of its settings. numcodecs calls pco, too.

use pco::standalone::{simple_compress, simple_decompress_into};
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};

use super::number::Number;
use super::setting::{Setting, known, not_for_writing};
use crate::buffers::NoMemory;
use crate::dtype::{DataType, FLOAT16, FLOAT32, FLOAT64};
use crate::error::FormatError;

const NAME: &str = "numcodecs.pcodec";

/// The memory for the tables of one chunk of a file, and for the numbers that it refers back to.
const STATE_BYTES: u64 = 4 << 20;

/// The most bytes that encoding takes for each byte of a page; up to 12 were measured.
const STATE_OF_A_PAGE: u64 = 16;

/// The parameters of numcodecs, by which files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PcodecSettings {
    /// 0 to 12.
    pub level: usize,
    /// Whether a common factor or a few different values are looked for.
    pub finds_mode: bool,
    /// The number that is subtracted from each number.
    pub delta: PcodecDelta,
    /// The most numbers that are compressed together.
    pub page: usize,
}

/// The number that is subtracted from each number of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PcodecDelta {
    /// Whichever pco finds best.
    Auto,
    /// Nothing.
    None,
    /// The number before it, so many times.
    Consecutive(usize),
    /// An earlier number.
    Lookback,
}

/// The codec, by the type of the numbers in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pcodec {
    number: Number,
    settings: Setting<PcodecSettings>,
}

/// Runs `numbers!` for the Rust type of the numbers.
macro_rules! by_number {
    ($number:expr, $numbers:ident) => {
        match $number {
            Number::Float(format) => match format.bytes {
                2 => $numbers!(half::f16),
                4 => $numbers!(f32),
                _ => $numbers!(f64),
            },
            Number::Integer(format) => match (format.bytes, format.signed) {
                (1, false) => $numbers!(u8),
                (2, false) => $numbers!(u16),
                (4, false) => $numbers!(u32),
                (_, false) => $numbers!(u64),
                (1, true) => $numbers!(i8),
                (2, true) => $numbers!(i16),
                (4, true) => $numbers!(i32),
                (_, true) => $numbers!(i64),
            },
            Number::Bool => return Err(FormatError::encoded(NAME, "no numbers")),
        }
    };
}

impl Pcodec {
    /// The codec for elements of `data_type`. `settings` are for writing.
    ///
    /// # Errors
    /// pco has no such type.
    pub fn new(
        data_type: &DataType,
        settings: Setting<PcodecSettings>,
    ) -> Result<Pcodec, FormatError> {
        let number = Number::of(data_type).filter(|&number| match number {
            Number::Bool => false,
            Number::Integer(format) => format.bits as usize == 8 * format.bytes,
            Number::Float(format) => [FLOAT16, FLOAT32, FLOAT64].contains(&format),
        });
        let number = number
            .ok_or_else(|| FormatError::unsupported("", "data type of pcodec", &data_type.name))?;
        Ok(Pcodec { number, settings })
    }

    /// The maximum encoded length of `length` bytes that is accepted.
    pub(super) fn encoded_limit(length: u64) -> u64 {
        const HEADERS: u64 = 64 << 10;
        length.saturating_add(length / 8).saturating_add(HEADERS)
    }

    /// An upper bound of the memory that decoding to `length` bytes takes: the numbers, before they
    /// are bytes.
    pub(super) fn state_bytes(length: u64) -> u64 {
        length.saturating_add(STATE_BYTES)
    }

    /// Decodes `encoded` to all of `out`.
    ///
    /// # Errors
    /// It is not a whole file of as many numbers of this type.
    pub(super) fn decode(&self, encoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        macro_rules! numbers {
            ($number:ty) => {{
                let count = out.len() / size_of::<$number>();
                let mut numbers: Vec<$number> = Vec::new();
                let reserved = numbers.try_reserve_exact(count);
                reserved.map_err(|_| NoMemory { needed: out.len() })?;
                numbers.resize(count, <$number>::default());
                let progress = simple_decompress_into(encoded, &mut numbers)
                    .map_err(|error| FormatError::encoded(NAME, error.to_string()))?;
                if progress.n_processed != numbers.len() || !progress.finished {
                    let problem = format!("not a file of {} numbers", numbers.len());
                    return Err(FormatError::encoded(NAME, problem));
                }
                let places = out.chunks_exact_mut(size_of::<$number>());
                for (to, number) in places.zip(numbers) {
                    to.copy_from_slice(&number.to_le_bytes());
                }
            }};
        }
        by_number!(self.number, numbers);
        Ok(())
    }

    /// Checks that chunks can be encoded.
    ///
    /// # Errors
    /// The document does not give the settings, or numcodecs has no such type.
    pub(super) fn check_encodes(&self) -> Result<(), FormatError> {
        self.encoder().map(|_| ())
    }

    fn encoder(&self) -> Result<&PcodecSettings, FormatError> {
        if self.number.size() == 1 {
            let name = "pcodec of 8-bit integers, which numcodecs does not read";
            return Err(not_for_writing(name));
        }
        known(NAME, &self.settings)
    }

    /// An upper bound of the memory that encoding `length` bytes takes beside input and output.
    pub(super) fn encode_state_bytes(&self, length: u64) -> u64 {
        let page = self.settings.map_or(0, |settings| settings.page as u64);
        let page = page.saturating_mul(self.number.size() as u64).min(length);
        // The numbers, and the tables of a page.
        length
            .saturating_add(page.saturating_mul(STATE_OF_A_PAGE))
            .saturating_add(STATE_BYTES)
    }

    /// Encodes all of `elements`.
    ///
    /// # Errors
    /// Settings that are not known, or no memory.
    pub(super) fn encode(&self, elements: &[u8]) -> Result<Vec<u8>, FormatError> {
        let config = self.encoder()?.config();
        macro_rules! numbers {
            ($number:ty) => {{
                let mut numbers: Vec<$number> = Vec::new();
                let items = elements.as_chunks().0;
                let reserved = numbers.try_reserve_exact(items.len());
                reserved.map_err(|_| NoMemory {
                    needed: elements.len(),
                })?;
                numbers.extend(items.iter().map(|item| <$number>::from_le_bytes(*item)));
                simple_compress(&numbers, &config)
            }};
        }
        let encoded = by_number!(self.number, numbers);
        encoded.map_err(|error| FormatError::encoded(NAME, error.to_string()))
    }
}

impl PcodecSettings {
    fn config(&self) -> ChunkConfig {
        let mode = if self.finds_mode {
            ModeSpec::Auto
        } else {
            ModeSpec::Classic
        };
        let delta = match self.delta {
            PcodecDelta::Auto => DeltaSpec::Auto,
            PcodecDelta::None => DeltaSpec::NoOp,
            PcodecDelta::Consecutive(order) => DeltaSpec::TryConsecutive(order),
            PcodecDelta::Lookback => DeltaSpec::TryLookback,
        };
        ChunkConfig::default()
            .with_compression_level(self.level)
            .with_mode_spec(mode)
            .with_delta_spec(delta)
            .with_paging_spec(PagingSpec::EqualPagesUpTo(self.page))
    }
}
