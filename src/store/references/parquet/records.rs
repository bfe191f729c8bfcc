//! A file of references in Parquet.
//!
//! ```text
//! path     text, or null       address of the target; null: the chunk is absent
//! offset   integer             both 0: the whole target
//! size     integer
//! raw      bytes, or null      the chunk itself, whatever the other columns say
//! ```
//!
//! A file has one row for each chunk, and may lack `raw`, or have nothing else.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{SerializedFileReader, SerializedPageReader};

use super::pages::LimitedPages;
use crate::store::references::row::Found;
use crate::store::references::row::{ABSENT_ROW, Row, RowBytes};

/// Rows that are read at once.
const BATCH: usize = 4096;

/// The longest footer, which describes a few columns.
const MOST_FOOTER_BYTES: usize = 1 << 20;

/// References of one file.
#[derive(Debug, Default)]
pub(super) struct Records {
    rows: Vec<RowBytes>,
    addresses: Vec<Arc<str>>,
    inline: Bytes,
}

/// A row, of which some columns are not read yet.
#[derive(Debug, Clone, Copy, Default)]
struct PartialRow {
    /// The number of an address plus 1; 0 without an address.
    address: u32,
    offset: i64,
    size: i64,
    /// The place of the chunk itself.
    raw: Option<(usize, usize)>,
}

#[derive(Default)]
struct Reading {
    rows: Vec<PartialRow>,
    addresses: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    inline: Vec<u8>,
    /// The most bytes of `inline`. One value of a dictionary may be that of many rows.
    most_inline: u64,
}

/// Reads at most `n` rows of the file `bytes`, whose pages may take `most_bytes`.
///
/// # Errors
/// A message.
pub(super) fn read(
    bytes: &Bytes,
    n: usize,
    most_bytes: u64,
) -> std::result::Result<Records, String> {
    let row_bytes = size_of::<PartialRow>() as u64;
    check_footer(bytes)?;
    let read = catch_unwind(AssertUnwindSafe(|| {
        let file = SerializedFileReader::new(bytes.clone())?;
        let n_rows = file.metadata().file_metadata().num_rows();
        let n_rows = usize::try_from(n_rows).unwrap_or(0).min(n);
        let mut reading = Reading {
            most_inline: most_bytes,
            ..Reading::default()
        };
        if row_bytes.saturating_mul(n_rows as u64) > most_bytes {
            return Err(damaged("its rows are too many for --cache-size"));
        }
        reading.rows.resize(n_rows, PartialRow::default());
        let left = Arc::new(AtomicU64::new(most_bytes));
        let mut start = 0_usize;
        for group in file.metadata().row_groups() {
            reading.read_group(bytes, group, start, &left)?;
            start = start.saturating_add(usize::try_from(group.num_rows()).unwrap_or(0));
            if start >= n_rows {
                return Ok(reading);
            }
        }
        if start < n_rows {
            return Err(damaged("its row groups have fewer rows than the file"));
        }
        Ok(reading)
    }));
    // The crate has many `assert`s, for damages that it does not expect.
    let reading = read.map_err(|_| "it is damaged".to_owned())?;
    reading.map_err(|error| error.to_string())?.finish()
}

fn damaged(problem: impl Into<String>) -> ParquetError {
    ParquetError::General(problem.into())
}

/// The last bytes say how long the footer is.
fn check_footer(bytes: &[u8]) -> std::result::Result<(), String> {
    let end = bytes.last_chunk::<8>().ok_or("it is too short")?;
    let (len, magic) = end.split_first_chunk::<4>().ok_or("it is too short")?;
    let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
    if magic != b"PAR1" {
        return Err("this is no Parquet".to_owned());
    }
    if len > MOST_FOOTER_BYTES {
        return Err(format!("its footer has {len} bytes"));
    }
    Ok(())
}

impl Reading {
    fn read_group(
        &mut self,
        bytes: &Bytes,
        group: &RowGroupMetaData,
        start: usize,
        left: &Arc<AtomicU64>,
    ) -> Result<()> {
        let n = usize::try_from(group.num_rows()).unwrap_or(0);
        let rows = start..start.saturating_add(n).min(self.rows.len());
        for column in group.columns() {
            let [name] = column.column_path().parts() else {
                continue;
            };
            match (name.as_str(), reader(bytes, column, group, left)?) {
                ("path", Some(ColumnReader::ByteArrayColumnReader(pages))) => {
                    each(pages, column, rows.clone(), |row, value| {
                        let text = value.as_utf8()?;
                        let number = self.number(text);
                        if let Some(row) = self.rows.get_mut(row) {
                            row.address = number;
                        }
                        Ok(())
                    })?;
                }
                ("raw", Some(ColumnReader::ByteArrayColumnReader(pages))) => {
                    each(pages, column, rows.clone(), |row, value| {
                        let place = (self.inline.len(), value.len());
                        if (place.0 + place.1) as u64 > self.most_inline {
                            return Err(damaged("its chunks are too long for --cache-size"));
                        }
                        self.inline.extend_from_slice(value.data());
                        if let Some(row) = self.rows.get_mut(row) {
                            row.raw = Some(place);
                        }
                        Ok(())
                    })?;
                }
                (name @ ("offset" | "size"), Some(ColumnReader::Int64ColumnReader(pages))) => {
                    let is_offset = name == "offset";
                    each(pages, column, rows.clone(), |row, value| {
                        if let Some(row) = self.rows.get_mut(row) {
                            let place = if is_offset {
                                &mut row.offset
                            } else {
                                &mut row.size
                            };
                            *place = *value;
                        }
                        Ok(())
                    })?;
                }
                ("path" | "raw" | "offset" | "size", _) => {
                    let problem = format!("the column `{name}` has another type than it should");
                    return Err(damaged(problem));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The number of an address plus 1.
    fn number(&mut self, address: &str) -> u32 {
        if let Some(number) = self.numbers.get(address) {
            return *number;
        }
        let address: Arc<str> = address.into();
        self.addresses.push(Arc::clone(&address));
        // There are fewer addresses than rows.
        let number = u32::try_from(self.addresses.len()).unwrap_or(0);
        self.numbers.insert(address, number);
        number
    }

    fn finish(self) -> std::result::Result<Records, String> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            rows.push(match (row.raw, row.address.checked_sub(1)) {
                (Some((offset, len)), _) => {
                    let (offset, len) = (offset as u64, len as u64);
                    Row::Inline { offset, len }.to_bytes()
                }
                (None, None) => ABSENT_ROW,
                (None, Some(address)) if row.offset == 0 && row.size == 0 => {
                    Row::Whole { address }.to_bytes()
                }
                (None, Some(address)) => {
                    let offset = u64::try_from(row.offset);
                    let len = u64::try_from(row.size);
                    let (Ok(offset), Ok(len)) = (offset, len) else {
                        return Err("an offset or a size is negative".to_owned());
                    };
                    Row::Range {
                        address,
                        offset,
                        len,
                    }
                    .to_bytes()
                }
            });
        }
        Ok(Records {
            rows,
            addresses: self.addresses,
            inline: self.inline.into(),
        })
    }
}

/// A reader of `column`; `None` if it is repeated.
fn reader(
    bytes: &Bytes,
    column: &ColumnChunkMetaData,
    group: &RowGroupMetaData,
    left: &Arc<AtomicU64>,
) -> Result<Option<ColumnReader>> {
    if column.column_descr().max_rep_level() > 0 {
        return Ok(None);
    }
    let n_rows = usize::try_from(group.num_rows()).unwrap_or(0);
    let plain = column.clone().into_builder();
    let plain = plain.set_compression(Compression::UNCOMPRESSED).build()?;
    let pages = SerializedPageReader::new(Arc::new(bytes.clone()), &plain, n_rows, None)?;
    let pages = LimitedPages {
        pages,
        compression: column.compression(),
        left: Arc::clone(left),
        most_values: n_rows,
    };
    let reader = get_column_reader(column.column_descr_ptr(), Box::new(pages));
    Ok(Some(reader))
}

/// Calls `take` with each value of a column that is not null, and its row, which is one of `rows`.
fn each<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    column: &ColumnChunkMetaData,
    rows: std::ops::Range<usize>,
    mut take: impl FnMut(usize, &T::T) -> Result<()>,
) -> Result<()> {
    let max_level = column.column_descr().max_def_level();
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut row = rows.start;
    while row < rows.end {
        levels.clear();
        values.clear();
        let n = BATCH.min(rows.end - row);
        let (n, _, _) = reader.read_records(n, Some(&mut levels), None, &mut values)?;
        // A value that is missing must not be taken for null, which would mean an absent chunk.
        let short = || damaged("a column has fewer values than its row group has rows");
        if n == 0 {
            return Err(short());
        }
        let mut found = values.iter();
        for at in 0..n {
            if max_level == 0 || levels.get(at) == Some(&max_level) {
                take(row + at, found.next().ok_or_else(short)?)?;
            }
        }
        row += n;
    }
    Ok(())
}

impl Records {
    pub(super) fn memory_bytes(&self) -> u64 {
        let addresses = self.addresses.iter().map(|it| 64 + it.len() as u64);
        (20 * self.rows.len() + self.inline.len()) as u64 + addresses.sum::<u64>()
    }

    /// The addresses of all targets.
    pub(super) fn addresses(&self) -> impl Iterator<Item = String> {
        self.addresses.iter().map(ToString::to_string)
    }

    /// The reference at a row; `None` for an absent chunk.
    pub(super) fn get(&self, at: usize) -> Option<Found> {
        let row = Row::of_bytes(self.rows.get(at)?)?;
        row.found(&self.addresses, &self.inline)
    }

    /// The first row from `at` on that is not absent.
    pub(super) fn first_from(&self, at: usize) -> Option<usize> {
        let mut rows = self.rows.iter().enumerate().skip(at);
        rows.find_map(|(at, row)| (*row != ABSENT_ROW).then_some(at))
    }
}
