//! Values that have no room in an entry of a TIFF directory, and stand behind the directory.

/// Values one after the other, each at an even offset, as TIFF wants it.
pub(super) struct Outside {
    /// The offset of the first value in the file.
    start: u64,
    bytes: Vec<u8>,
}

impl Outside {
    /// No values yet; the first one will be at the offset `start`, which is even.
    pub(super) fn after(start: u64) -> Outside {
        Outside {
            start,
            bytes: Vec::new(),
        }
    }

    /// Adds a value, and returns its offset in the file.
    pub(super) fn put(&mut self, value: &[u8]) -> u64 {
        if self.bytes.len() % 2 == 1 {
            self.bytes.push(0);
        }
        let at = self.end();
        self.bytes.extend(value);
        at
    }

    /// The offset of the end of the last value in the file.
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// All values, and the zeros between them.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
