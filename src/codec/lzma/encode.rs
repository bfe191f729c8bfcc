//! Encodes LZMA as Python's module `lzma` does, whose parameters the configuration has.

use liblzma::stream::{
    Action, Check, Error, Filters, LzmaOptions, MatchFinder, Mode, Status, Stream,
};

use super::{Lzma, LzmaFilter, NAME, add_filter, refused};
use crate::{
    codec::{
        setting::{Setting, known, not_for_writing},
        stream::{self, StreamEncoder},
    },
    error::FormatError,
};

/// The parameters of an encoder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LzmaSettings {
    /// The check of an XZ file, by its number: 0, 1, 4 or 10.
    pub check: u8,
    /// The filters in order. A file of the older format (`.lzma`) has one, of LZMA.
    pub filters: Vec<LzmaEncoderFilter>,
}

/// A filter with all parameters of its encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LzmaEncoderFilter {
    /// `FILTER_LZMA1`.
    Lzma1(LzmaParameters),
    /// `FILTER_LZMA2`.
    Lzma2(LzmaParameters),
    /// A filter whose decoder has the same parameters as its encoder.
    Other(LzmaFilter),
}

/// The parameters of LZMA: a preset, and the parameters that differ from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LzmaParameters {
    /// From 0 to 9, and the bit 2^31 for the slower variant.
    pub preset: u32,
    /// Bytes of the dictionary.
    pub dict_size: Option<u32>,
    /// Number of literal context bits.
    pub lc: Option<u32>,
    /// Number of literal position bits.
    pub lp: Option<u32>,
    /// Number of position bits.
    pub pb: Option<u32>,
    /// 1 is fast, 2 is normal.
    pub mode: Option<u32>,
    /// Length of a match that ends the search.
    pub nice_len: Option<u32>,
    /// The match finder, by its number: 3, 4, 18, 19 or 20.
    pub mf: Option<u32>,
    /// Depth of the search; 0 is automatic.
    pub depth: Option<u32>,
}

impl LzmaParameters {
    /// A preset as it is.
    pub fn preset(preset: u32) -> LzmaParameters {
        LzmaParameters {
            preset,
            dict_size: None,
            lc: None,
            lp: None,
            pb: None,
            mode: None,
            nice_len: None,
            mf: None,
            depth: None,
        }
    }

    fn options(&self) -> Result<LzmaOptions, Error> {
        let mut options = LzmaOptions::new_preset(self.preset)?;
        self.dict_size.map(|size| options.dict_size(size));
        self.lc.map(|bits| options.literal_context_bits(bits));
        self.lp.map(|bits| options.literal_position_bits(bits));
        self.pb.map(|bits| options.position_bits(bits));
        self.nice_len.map(|length| options.nice_len(length));
        self.depth.map(|depth| options.depth(depth));
        match self.mode {
            None => {}
            Some(1) => drop(options.mode(Mode::Fast)),
            Some(2) => drop(options.mode(Mode::Normal)),
            Some(_) => return Err(Error::Options),
        }
        let finder = match self.mf {
            None => return Ok(options),
            Some(0x03) => MatchFinder::HashChain3,
            Some(0x04) => MatchFinder::HashChain4,
            Some(0x12) => MatchFinder::BinaryTree2,
            Some(0x13) => MatchFinder::BinaryTree3,
            Some(0x14) => MatchFinder::BinaryTree4,
            Some(_) => return Err(Error::Options),
        };
        options.match_finder(finder);
        Ok(options)
    }

    /// The length of the dictionary.
    fn dictionary(&self) -> u64 {
        let by_preset = match self.preset & 0x1f {
            0 => 18,
            1 => 20,
            2 => 21,
            3 | 4 => 22,
            5 | 6 => 23,
            7 => 24,
            8 => 25,
            _ => 26,
        };
        self.dict_size.map_or(1 << by_preset, u64::from)
    }
}

impl StreamEncoder for Stream {
    fn finish(&mut self, input: &[u8], out: &mut [u8]) -> Result<bool, String> {
        let status = self.process(input, out, Action::Finish);
        Ok(status.map_err(super::message)? == Status::StreamEnd)
    }

    fn totals(&self) -> [u64; 2] {
        [self.total_in(), self.total_out()]
    }
}

impl Lzma {
    /// An upper bound of the memory that encoding takes beside input and output: the documentation
    /// of the library says 11.5 times the dictionary.
    pub(in crate::codec) fn encoder_state_bytes(settings: &Setting<LzmaSettings>) -> u64 {
        const STATE: u64 = 16 << 20;
        let filters = settings.as_ref().map_or(&[][..], |known| &known.filters);
        let dictionaries = filters.iter().map(|filter| match filter {
            LzmaEncoderFilter::Lzma1(parameters) | LzmaEncoderFilter::Lzma2(parameters) => {
                14 * parameters.dictionary()
            }
            LzmaEncoderFilter::Other(_) => 0,
        });
        STATE + dictionaries.sum::<u64>()
    }

    /// Encodes `bytes` to at most `limit` bytes.
    ///
    /// # Errors
    /// Unknown settings, settings that the library refuses, or no memory.
    pub(in crate::codec) fn encode(
        &self,
        settings: &Setting<LzmaSettings>,
        bytes: &[u8],
        limit: u64,
    ) -> Result<Vec<u8>, FormatError> {
        let settings = known(NAME, settings)?;
        let mut encoder = self.encoder(settings).map_err(refused)?;
        stream::encode(NAME, &mut encoder, bytes, limit)
    }

    fn encoder(&self, settings: &LzmaSettings) -> Result<Stream, Error> {
        match (self, &settings.filters[..]) {
            (Lzma::Alone, [LzmaEncoderFilter::Lzma1(parameters)]) => {
                Stream::new_lzma_encoder(&parameters.options()?)
            }
            (Lzma::Alone, _) => Err(Error::Options),
            (Lzma::Xz, filters) => {
                let check = match settings.check {
                    0 => Check::None,
                    1 => Check::Crc32,
                    4 => Check::Crc64,
                    10 => Check::Sha256,
                    _ => return Err(Error::UnsupportedCheck),
                };
                Stream::new_stream_encoder(&chain(filters)?, check)
            }
            (Lzma::Raw(_), filters) => Stream::new_raw_encoder(&chain(filters)?),
        }
    }

    /// Checks that the library takes the settings.
    ///
    /// # Errors
    /// Settings that are unknown, or that it refuses.
    pub(in crate::codec) fn check_encodes(
        &self,
        settings: &Setting<LzmaSettings>,
    ) -> Result<(), FormatError> {
        let settings = known(NAME, settings)?;
        let is_large = |parameters: &LzmaParameters| parameters.dictionary() > LARGEST;
        let mut small = settings.clone();
        // An encoder allocates its tables; those of the smallest dictionary are small.
        for filter in &mut small.filters {
            if let LzmaEncoderFilter::Lzma1(parameters) | LzmaEncoderFilter::Lzma2(parameters) =
                filter
            {
                if is_large(parameters) {
                    return Err(not_for_writing(
                        "lzma with a dictionary of more than 64 MiB",
                    ));
                }
                parameters.dict_size = Some(
                    parameters
                        .dict_size
                        .map_or(SMALLEST, |size| size.min(SMALLEST)),
                );
            }
        }
        let refused = |_| not_for_writing("lzma with such filters");
        self.encoder(&small).map(drop).map_err(refused)
    }
}

/// The largest dictionary, which is that of the highest preset; decoders refuse larger ones.
const LARGEST: u64 = 64 << 20;

/// The smallest dictionary.
const SMALLEST: u32 = 4096;

fn chain(filters: &[LzmaEncoderFilter]) -> Result<Filters, Error> {
    let mut chain = Filters::new();
    for filter in filters {
        match filter {
            LzmaEncoderFilter::Lzma1(parameters) => {
                chain.lzma1(&parameters.options()?);
            }
            LzmaEncoderFilter::Lzma2(parameters) => {
                chain.lzma2(&parameters.options()?);
            }
            LzmaEncoderFilter::Other(filter) => add_filter(&mut chain, *filter, SMALLEST)?,
        }
    }
    Ok(chain)
}
