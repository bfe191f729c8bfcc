//! The directories of one plane: its image and the levels of the image.

use super::shared::SharedValues;
use super::{Linking, copy};
use crate::plain::tiff::{Field, FieldType, FieldValues, IfdEntry, Pieces};

/// Size of an entry in bytes.
const ENTRY: u64 = 20;
/// The most bytes of values that have room in an entry.
const INLINE: u64 = 8;

/// The directories of one plane, with the arrays that differ from plane to plane. Offsets are counted
/// from the beginning of the block.
#[derive(Debug, Hash)]
pub(super) struct Block {
    directories: Vec<Directory>,
    bytes: u64,
}

#[derive(Debug, Hash)]
struct Directory {
    place: u64,
    entries: Vec<Entry>,
}

#[derive(Debug, Hash)]
struct Entry {
    tag: u16,
    kind: FieldType,
    count: u64,
    values: Values,
    /// Offset of the values in the block, if they have no room in the entry.
    place: u64,
}

#[derive(Debug, Hash)]
enum Values {
    /// The bytes of all values.
    Inline(u64),
    /// The offset among the values that all planes share.
    Shared(u64),
    Repeated(u64),
    Pieces(Pieces),
    /// The offsets of the directories after the first one.
    Levels,
}

/// A plane of the file.
pub(super) struct Plane {
    pub(super) index: u64,
    /// Offset of its block in the file.
    pub(super) place: u64,
    /// Offset of the block of the next plane; 0 for the last plane.
    pub(super) next: u64,
    /// Offset of the values that all planes share.
    pub(super) shared: u64,
    /// Offset of the elements.
    pub(super) payload: u64,
}

impl Block {
    /// The directories with these fields. Their long values are added to `shared`. `None` when the block
    /// does not fit 64 bits.
    pub(super) fn new(directories: &[Vec<Field>], shared: &mut SharedValues) -> Option<Block> {
        let n_levels = directories.len().saturating_sub(1) as u64;
        let mut at = 0_u64;
        let mut block = Vec::new();
        for fields in directories {
            let mut fields: Vec<&Field> = fields.iter().collect();
            fields.sort_by_key(|field| field.tag);
            let place = at;
            at = at.checked_add(8 + ENTRY * fields.len() as u64 + 8)?;
            let mut entries = Vec::new();
            for field in fields {
                let entry = Entry::new(field, n_levels, at, shared);
                at = at.checked_add(entry.own_bytes()?)?;
                entries.push(entry);
            }
            block.push(Directory { place, entries });
        }
        Some(Block {
            directories: block,
            bytes: at,
        })
    }

    /// Size of the block in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Estimate of the memory that the block takes, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let entries = self.directories.iter().map(|it| it.entries.len());
        (entries.sum::<usize>() * size_of::<Entry>()) as u64
    }

    /// Fills `out`, which has the offset `offset` in the file, with the block of `plane`.
    pub(super) fn fill(&self, plane: &Plane, linking: Linking, offset: u64, out: &mut [u8]) {
        let end = offset.saturating_add(out.len() as u64);
        for (number, directory) in self.directories.iter().enumerate() {
            let next = self.directories.get(number + 1);
            let next_level = next.map(|next| plane.place + next.place);
            let after = next_level.unwrap_or(plane.place + self.bytes);
            let start = plane.place + directory.place;
            if after <= offset || start >= end {
                continue;
            }
            let next = match (linking, number) {
                (Linking::InChain, _) => next_level.unwrap_or(plane.next),
                (Linking::ByField, 0) => plane.next,
                (Linking::ByField, _) => 0,
            };
            copy(&directory.bytes(self, plane, next), start, offset, out);
            for entry in directory.entries.iter().filter(|entry| entry.is_array()) {
                entry.fill(self, plane, offset, out);
            }
        }
    }
}

impl Directory {
    fn bytes(&self, block: &Block, plane: &Plane, next: u64) -> Vec<u8> {
        let mut bytes = (self.entries.len() as u64).to_le_bytes().to_vec();
        for entry in &self.entries {
            let entry = IfdEntry {
                tag: entry.tag,
                kind: entry.kind,
                count: entry.count,
                value: entry.value(block, plane),
            };
            bytes.extend(entry.big());
        }
        bytes.extend(next.to_le_bytes());
        bytes
    }
}

impl Entry {
    /// The entry of `field`; its array, if it has one, is at `place` of the block.
    fn new(field: &Field, n_levels: u64, place: u64, shared: &mut SharedValues) -> Entry {
        let (count, values) = match &field.values {
            FieldValues::Same(bytes) => {
                let count = (bytes.len() / field.kind.bytes()) as u64;
                let values = match field.entry() {
                    Some(entry) => Values::Inline(entry.value),
                    None => Values::Shared(shared.put(bytes)),
                };
                (count, values)
            }
            FieldValues::Repeated { value, count } => (*count, Values::Repeated(*value)),
            FieldValues::Pieces(pieces) => (pieces.count, Values::Pieces(*pieces)),
            FieldValues::Levels => (n_levels, Values::Levels),
        };
        Entry {
            tag: field.tag,
            kind: field.kind,
            count,
            values,
            place,
        }
    }

    /// The size of all values in bytes.
    fn value_bytes(&self) -> Option<u64> {
        self.count.checked_mul(self.kind.bytes() as u64)
    }

    /// Whether the values are an array in the block.
    fn is_array(&self) -> bool {
        let is_computed = !matches!(self.values, Values::Inline(_) | Values::Shared(_));
        is_computed && self.value_bytes().is_none_or(|bytes| bytes > INLINE)
    }

    /// The size of the array in the block in bytes; `None` when it does not fit 64 bits.
    fn own_bytes(&self) -> Option<u64> {
        if self.is_array() {
            self.value_bytes()
        } else {
            Some(0)
        }
    }

    /// The values that have room in the entry, else their offset in the file.
    fn value(&self, block: &Block, plane: &Plane) -> u64 {
        match self.values {
            Values::Inline(value) => value,
            Values::Shared(skip) => plane.shared + skip,
            _ if self.is_array() => plane.place + self.place,
            _ => {
                let mut value = [0; 8];
                for (n, to) in (0..self.count).zip(value.chunks_exact_mut(self.kind.bytes())) {
                    to.copy_from_slice(&self.number(n, block, plane).to_le_bytes()[..to.len()]);
                }
                u64::from_le_bytes(value)
            }
        }
    }

    /// Value `n` of those that are computed.
    fn number(&self, n: u64, block: &Block, plane: &Plane) -> u64 {
        match self.values {
            Values::Inline(value) | Values::Shared(value) | Values::Repeated(value) => value,
            Values::Pieces(pieces) => {
                // `LayoutBuilder::finish` refuses a file in which this does not fit.
                let before = plane.index.wrapping_mul(pieces.count).wrapping_add(n);
                let start = plane.payload.wrapping_add(pieces.start);
                start.wrapping_add(before.wrapping_mul(pieces.bytes))
            }
            Values::Levels => {
                let level = usize::try_from(n + 1).unwrap_or(usize::MAX);
                let level = block.directories.get(level);
                level.map_or(0, |level| plane.place + level.place)
            }
        }
    }

    /// Fills `out`, which has the offset `offset` in the file, with the numbers of the array.
    fn fill(&self, block: &Block, plane: &Plane, offset: u64, out: &mut [u8]) {
        let start = plane.place + self.place;
        let width = self.kind.bytes();
        let end = offset.saturating_add(out.len() as u64);
        let mut n = offset.saturating_sub(start) / width as u64;
        while n < self.count && start + n * (width as u64) < end {
            let number = self.number(n, block, plane).to_le_bytes();
            copy(&number[..width], start + n * width as u64, offset, out);
            n += 1;
        }
    }
}
