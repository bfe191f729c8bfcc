//! The pages of a column, decompressed within a limit.
//!
//! The crate `parquet` allocates as many bytes as the head of a page says, up to 2 GiB. So this module
//! tells the crate that no column is compressed. It decompresses the pages from the crate itself, and
//! checks their numbers of values.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use snap::raw::{Decoder, decompress_len};

use crate::store::references::text::Decompressed;

/// The pages of a column of a file, as many as memory is left for.
pub(super) struct LimitedPages<P> {
    pub(super) pages: P,
    pub(super) compression: Compression,
    /// Bytes of pages that may still be decompressed, of all columns of the file.
    pub(super) left: Arc<AtomicU64>,
    /// The most values of a dictionary.
    pub(super) most_values: usize,
}

fn refused(problem: impl Into<String>) -> ParquetError {
    ParquetError::General(problem.into())
}

impl<P: PageReader> LimitedPages<P> {
    /// `bytes` decompressed, behind the first `n_plain` of them, which are not compressed.
    fn plain(&self, bytes: &Bytes, n_plain: usize) -> Result<Bytes> {
        let (start, compressed) = bytes
            .split_at_checked(n_plain)
            .ok_or_else(|| refused("a page is shorter than its levels"))?;
        let most = self.left.load(Ordering::Relaxed);
        let too_long = || refused("its pages are too long for --cache-size");
        let mut plain = start.to_vec();
        let source: Box<dyn Read + '_> = match self.compression {
            // A page without values is compressed to nothing by some writers.
            _ if compressed.is_empty() => Box::new(std::io::empty()),
            Compression::UNCOMPRESSED => Box::new(compressed),
            Compression::ZSTD(_) => Box::new(Decompressed::new(compressed)?),
            Compression::GZIP(_) => Box::new(MultiGzDecoder::new(compressed)),
            Compression::SNAPPY => {
                let damaged = |error| refused(format!("snappy: {error}"));
                // The length is at the beginning, so that it is known before there is memory for it.
                let len = decompress_len(compressed).map_err(damaged)?;
                if len as u64 > most {
                    return Err(too_long());
                }
                let decoded = Decoder::new().decompress_vec(compressed);
                Box::new(std::io::Cursor::new(decoded.map_err(damaged)?))
            }
            other => {
                return Err(refused(format!(
                    "the compression {other} is not read; zstd is"
                )));
            }
        };
        source
            .take(most.saturating_add(1))
            .read_to_end(&mut plain)?;
        let len = plain.len() as u64;
        if len > most {
            return Err(too_long());
        }
        self.left.store(most - len, Ordering::Relaxed);
        Ok(plain.into())
    }

    fn check(encoding: Encoding) -> Result<()> {
        match encoding {
            Encoding::PLAIN
            | Encoding::PLAIN_DICTIONARY
            | Encoding::RLE_DICTIONARY
            | Encoding::RLE => Ok(()),
            other => Err(refused(format!("the encoding {other} is not read"))),
        }
    }

    /// The page, decompressed.
    fn limited(&self, page: Page) -> Result<Page> {
        Self::check(page.encoding())?;
        Ok(match page {
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => {
                if def_level_encoding != Encoding::RLE {
                    return Err(refused("the encoding of its levels is not read"));
                }
                Page::DataPage {
                    buf: self.plain(&buf, 0)?,
                    num_values,
                    encoding,
                    def_level_encoding,
                    rep_level_encoding,
                    statistics,
                }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            } => {
                let levels = u64::from(def_levels_byte_len) + u64::from(rep_levels_byte_len);
                let levels = usize::try_from(levels).unwrap_or(usize::MAX);
                let n_plain = if is_compressed { levels } else { buf.len() };
                if levels > buf.len() || num_nulls > num_values {
                    return Err(refused("the head of a page contradicts itself"));
                }
                Page::DataPageV2 {
                    buf: self.plain(&buf, n_plain)?,
                    num_values,
                    encoding,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed: false,
                    statistics,
                }
            }
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                is_sorted,
            } => {
                let buf = self.plain(&buf, 0)?;
                // A value takes 4 bytes or more, and is kept whether it is used or not.
                let n = usize::try_from(num_values).unwrap_or(usize::MAX);
                if n > self.most_values || n > buf.len() / 4 {
                    return Err(refused(
                        "a dictionary has more values than the file can have",
                    ));
                }
                Page::DictionaryPage {
                    buf,
                    num_values,
                    encoding,
                    is_sorted,
                }
            }
        })
    }
}

impl<P: PageReader> Iterator for LimitedPages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl<P: PageReader> PageReader for LimitedPages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| self.limited(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}
