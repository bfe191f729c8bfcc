//! The names in a directory as text that is made while it is sent, so that a directory may have any number of them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::body::Body;
use super::pool::on_pool;
use super::served::Served;
use crate::error::Error;
use crate::store::Detail;
use crate::view::{Directory, DirectoryEntry, EntrySource, HeldVnode};

/// The most entries that are listed before the client gets them.
const AT_ONCE: usize = 256;
/// The client gets fewer entries at once if their text is as long as this.
const BLOCK_BYTES: usize = 256 << 10;

/// A text of the entries of a directory.
pub(super) trait Writing: Send + 'static {
    /// Whether the entries need their sizes and times.
    const DETAIL: Detail;

    /// Adds what comes before the first entry.
    fn begin(&mut self, text: &mut Vec<u8>, directory: &HeldVnode);
    /// Adds an entry of `directory`.
    fn entry(&mut self, text: &mut Vec<u8>, directory: &HeldVnode, entry: &DirectoryEntry);
    /// Adds what comes after the last entry.
    fn end(&mut self, text: &mut Vec<u8>);
}

/// A listing that has not ended.
struct Listing<W> {
    directory: Arc<HeldVnode>,
    entries: Directory,
    writing: W,
}

/// The text of the entries of `directory`; `None` if it is gone. The first of them were listed when this returns.
pub(super) async fn begin<W: Writing>(
    served: &Arc<Served>,
    directory: Arc<HeldVnode>,
    mut writing: W,
) -> Result<Option<Body>, Error> {
    let first = on_pool(&served.view, move || {
        let Some(entries) = directory.list()? else {
            return Ok(None);
        };
        let mut text = Vec::new();
        writing.begin(&mut text, &directory);
        let listing = Listing {
            directory,
            entries,
            writing,
        };
        listing.go_on(text).map(Some)
    });
    let Some((text, left)) = first.await? else {
        return Ok(None);
    };
    let Some(listing) = left else {
        return Ok(Some(Body::Whole(text.into())));
    };
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(send(Arc::clone(served), listing, text, sender));
    Ok(Some(Body::Parts(receiver)))
}

/// Sends `text`, and the rest of `listing`.
async fn send<W: Writing>(
    served: Arc<Served>,
    listing: Listing<W>,
    text: Vec<u8>,
    sender: mpsc::Sender<Result<Bytes, Error>>,
) {
    let (mut text, mut left) = (text, Some(listing));
    loop {
        // The client may have gone.
        if sender.send(Ok(text.into())).await.is_err() {
            return;
        }
        let Some(listing) = left else { return };
        match on_pool(&served.view, move || listing.go_on(Vec::new())).await {
            Ok(next) => (text, left) = next,
            Err(error) => {
                served.report(&error);
                // The connection breaks, so that the client knows that names are missing.
                drop(sender.send(Err(error)).await);
                return;
            }
        }
    }
}

impl<W: Writing> Listing<W> {
    /// Adds some entries to `text`, and returns what is left.
    fn go_on(mut self, mut text: Vec<u8>) -> Result<(Vec<u8>, Option<Self>), Error> {
        for _ in 0..AT_ONCE {
            let Some(entry) = self.entries.next_entry(W::DETAIL)? else {
                self.writing.end(&mut text);
                return Ok((text, None));
            };
            self.writing.entry(&mut text, &self.directory, &entry);
            if text.len() >= BLOCK_BYTES {
                break;
            }
        }
        self.entries.release();
        Ok((text, Some(self)))
    }
}
