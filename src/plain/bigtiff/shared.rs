//! The values of fields that have no room in their entries and are the same in all planes.

use std::ops::Range;

/// Values one after the other, each at an even offset, as TIFF wants it.
#[derive(Debug, Default)]
pub(super) struct SharedValues {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl SharedValues {
    /// Adds a value, unless an equal one is there, and returns its offset.
    pub(super) fn put(&mut self, value: &[u8]) -> u64 {
        let is_equal = |place: &&Range<usize>| self.bytes.get((*place).clone()) == Some(value);
        if let Some(place) = self.places.iter().find(is_equal) {
            return place.start as u64;
        }
        if self.bytes.len() % 2 == 1 {
            self.bytes.push(0);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.places.push(start..self.bytes.len());
        start as u64
    }

    /// All values, and the zeros between them.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
