//! Decoded chunks in memory, which the programs of the benchmark encode or write.

use std::io;

/// The chunks of a file, one after the other, all of one length.
pub struct Source {
    content: Vec<u8>,
    chunk_bytes: usize,
}

impl Source {
    /// Reads a file of chunks of `chunk_bytes`.
    ///
    /// # Errors
    /// Those of reading, and when the file has no chunks or a part of one.
    pub fn read(path: &str, chunk_bytes: usize) -> io::Result<Source> {
        let content = std::fs::read(path)?;
        if chunk_bytes == 0 || content.is_empty() || content.len() % chunk_bytes != 0 {
            return Err(io::Error::other("the source has no whole chunks"));
        }
        Ok(Source {
            content,
            chunk_bytes,
        })
    }

    /// Chunk `number`; `None` after the last.
    pub fn chunk(&self, number: usize) -> Option<&[u8]> {
        let start = number.checked_mul(self.chunk_bytes)?;
        self.content.get(start..start + self.chunk_bytes)
    }

    /// Bytes of all chunks.
    pub fn bytes(&self) -> u64 {
        self.content.len() as u64
    }
}
