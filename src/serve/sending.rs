//! A file whose bytes are being sent.

use std::ops::Range;
use std::sync::Arc;

use super::opened::ServedFile;
use super::pieces::FilePieces;
use super::served::Served;
use crate::error::Error;

/// A file whose bytes are being sent.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) served: Arc<Served>,
    pub(super) file: Arc<ServedFile>,
}

impl Sending {
    /// The bytes of the file in `range`, as by [`FilePieces::begin`].
    pub(super) async fn pieces(&self, range: Range<u64>) -> Result<FilePieces, Error> {
        let (memory, counters) = (&self.served.memory, &self.served.counters);
        FilePieces::begin(&self.file.opened.file, range, memory, counters).await
    }

    /// Reports an error of the file, which no status can tell the client any more. The next request opens the file anew,
    /// because it may have changed.
    pub(super) fn failed(&self, error: &Error) {
        self.served.report(error);
        self.served.opened.forget(&self.file.path);
    }
}
