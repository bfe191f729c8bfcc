//! The names below a prefix of a table, one after the other.
//!
//! First come names of documents and of prefixes, in the order of keys, then the indices of the
//! grids. A cursor says which name was the last, so that it is valid in another version of the set.

use super::grid::Grid;
use super::grid_key::{Indices, pack, unpack};
use super::table::{Name, Table};
use crate::store::{Cursor, Key, ObjectMeta, Prefix};

/// A name, and the position after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListedName {
    pub(super) bytes: Vec<u8>,
    pub(super) is_prefix: bool,
    pub(super) cursor: Cursor,
}

/// A file of references that a listing has examined, and its attributes then. It has thousands of names, for which it
/// need not be examined again.
pub(super) type ExaminedFile = Option<(Key, ObjectMeta)>;

/// Cursors begin with one of these.
pub(super) const AFTER_NAME: u8 = 0;
pub(super) const AFTER_INDEX: u8 = 1;

/// The last index that was listed: the number of its grid, and its packed indices.
struct IndexPosition {
    grid: u32,
    packed: u128,
}

impl Table {
    /// The first name below `prefix` after `after`.
    pub(super) fn next(&self, prefix: &Prefix, after: &Cursor) -> Option<ListedName> {
        let position = match after.as_bytes() {
            [AFTER_INDEX, rest @ ..] => IndexPosition::parse(rest),
            [AFTER_NAME, name @ ..] => {
                let bytes = name.strip_suffix(b"/").unwrap_or(name).to_vec();
                let is_prefix = bytes.len() < name.len();
                let next = self.next_name(prefix, Some(&Name { bytes, is_prefix }));
                if let Some(name) = next {
                    return Some(listed(name));
                }
                None
            }
            _ => {
                if let Some(name) = self.next_name(prefix, None) {
                    return Some(listed(name));
                }
                None
            }
        };
        self.next_index(prefix, position.as_ref())
    }

    fn next_index(&self, prefix: &Prefix, after: Option<&IndexPosition>) -> Option<ListedName> {
        let first = after.map_or(0, |position| position.grid);
        for ((_, (by, grid, fixed)), number) in (0..).zip(self.grids_in(prefix)).zip(0_u32..) {
            if number < first {
                continue;
            }
            let mut last = after.filter(|_| number == first).map(|it| it.packed);
            while let Some((indices, is_prefix)) = next_in(grid, by, &fixed, last) {
                let packed = pack(&indices);
                last = Some(packed);
                let bytes = spelled(&indices);
                // Prefixes that several grids or documents have are listed once.
                if is_prefix && self.is_listed_before(prefix, (&bytes, &indices), number) {
                    continue;
                }
                let cursor = IndexPosition {
                    grid: number,
                    packed,
                };
                return Some(ListedName {
                    bytes,
                    is_prefix,
                    cursor: cursor.cursor(),
                });
            }
        }
        None
    }

    fn is_listed_before(
        &self,
        prefix: &Prefix,
        (name, indices): (&[u8], &[u32]),
        number: u32,
    ) -> bool {
        let Ok(below) = prefix.key(name) else {
            return false;
        };
        let below = below.to_prefix();
        let index = indices.first().copied().unwrap_or_default();
        let mut earlier = (0..number).zip(self.grids_in(prefix));
        self.next_name(&below, None).is_some()
            || earlier.any(|(_, (by, grid, fixed))| {
                let is_prefix = by == b'/' && fixed.len() + 1 < grid.n_indices();
                is_prefix && grid.next_value(&fixed, index) == Some(index)
            })
    }
}

/// The indices of the next name of `grid` after `last`, and whether it is a prefix. If indices are separated by `.`,
/// these are all indices of a key; otherwise there is only the index after `fixed`.
fn next_in(grid: &Grid, by: u8, fixed: &[u32], last: Option<u128>) -> Option<(Indices, bool)> {
    let n = grid.n_indices();
    if by == b'.' && n > 1 {
        let from = match last {
            Some(last) => last.checked_add(1)?,
            None => 0,
        };
        return Some((grid.first_from(&unpack(from, n))?, false));
    }
    let from = match last {
        Some(last) => u32::try_from(last).ok()?.checked_add(1)?,
        None => 0,
    };
    let value = grid.next_value(fixed, from)?;
    Some((Indices::from_slice(&[value]), fixed.len() + 1 < n))
}

fn listed(name: Name) -> ListedName {
    let slash: &[u8] = if name.is_prefix { b"/" } else { b"" };
    let cursor = Cursor::new(&[&[AFTER_NAME], name.bytes.as_slice(), slash].concat());
    ListedName {
        bytes: name.bytes,
        is_prefix: name.is_prefix,
        cursor,
    }
}

/// Indices as the last segment of a key has them.
pub(super) fn spelled(indices: &[u32]) -> Vec<u8> {
    let each: Vec<String> = indices.iter().map(u32::to_string).collect();
    each.join(".").into_bytes()
}

impl IndexPosition {
    fn parse(bytes: &[u8]) -> Option<IndexPosition> {
        let (grid, packed) = bytes.split_first_chunk()?;
        Some(IndexPosition {
            grid: u32::from_be_bytes(*grid),
            packed: u128::from_be_bytes(packed.try_into().ok()?),
        })
    }

    fn cursor(&self) -> Cursor {
        let (grid, packed) = (self.grid.to_be_bytes(), self.packed.to_be_bytes());
        Cursor::new(&[&[AFTER_INDEX], grid.as_slice(), &packed].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::references::row::ReferenceValue;
    use crate::store::references::table::TableBuilder;

    #[test]
    fn each_name_is_listed_once() {
        let mut builder = TableBuilder::new(1 << 20);
        let keys = [
            "x/.zarray",
            "x/0.1",
            "x/1.0",
            "x/3.2",
            "y/c/0/1/2",
            "y/c/4/0/0",
            "y/c/.z",
            "0/.z",
            "0/0/1",
            "0/0",
            "7",
            "y/c/4/0",
        ];
        for key in keys {
            let value = ReferenceValue::Inline(Vec::new());
            builder.add(key.as_bytes(), value).unwrap();
        }
        let table = builder.finish();
        let names = |prefix: &str| {
            let prefix = Prefix::parse(prefix.as_bytes()).unwrap();
            let mut names = Vec::new();
            let mut after = Cursor::START;
            while let Some(found) = table.next(&prefix, &after) {
                let slash = if found.is_prefix { "/" } else { "" };
                names.push(String::from_utf8(found.bytes).unwrap() + slash);
                after = found.cursor;
            }
            names.join(" ")
        };
        for (prefix, expected) in [
            ("", "0/ x/ y/ 7"),
            ("x", ".zarray 0.1 1.0 3.2"),
            ("y", "c/"),
            ("y/c", ".z 4/ 0/"),
            ("y/c/4", "0 0/"),
            ("y/c/4/0", "0"),
            ("y/c/0", "1/"),
            ("0", ".z 0 0/"),
            ("0/0", "1"),
            ("none", ""),
        ] {
            assert_eq!(names(prefix), expected, "{prefix}");
        }
    }
}
