//! Several ranges of a file as one body, `multipart/byteranges` (RFC 9110, section 14.6).
//!
//! ```text
//! --BOUNDARY
//! Content-Type: TYPE
//! Content-Range: bytes 0-1/10
//!
//! two bytes
//! --BOUNDARY--
//! ```

use std::fmt::Write;
use std::future::poll_fn;
use std::ops::Range;

use bytes::Bytes;
use tokio::sync::mpsc::{self, Sender};

use super::body::Body;
use super::pieces::FilePieces;
use super::sending::Sending;
use crate::error::Error;

/// The ranges of a file, and the text between them.
#[derive(Debug)]
pub(super) struct FileParts {
    /// Each range, with the text before it.
    parts: Vec<(String, Range<u64>)>,
    end: String,
    boundary: String,
}

impl FileParts {
    /// The `ranges` of a file of `len` bytes and the type `kind`. `number` is a part of the boundary. It is different
    /// each time that the program runs, so that a file cannot be made with the boundary in its bytes.
    pub(super) fn new(ranges: Vec<Range<u64>>, len: u64, kind: &str, number: u64) -> FileParts {
        let boundary = format!("zarr-mount-{number:016x}");
        let parts = ranges.into_iter().enumerate().map(|(at, range)| {
            let mut head = String::new();
            let newline = if at == 0 { "" } else { "\r\n" };
            // Writing to a string never fails.
            let _ = write!(
                head,
                "{newline}--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: bytes {}-{}/{len}\r\n\r\n",
                range.start,
                range.end - 1
            );
            (head, range)
        });
        FileParts {
            parts: parts.collect(),
            end: format!("\r\n--{boundary}--\r\n"),
            boundary,
        }
    }

    /// The type of the body.
    pub(super) fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// The bytes of the body.
    pub(super) fn len(&self) -> u64 {
        let parts = self.parts.iter();
        let parts = parts.map(|(head, range)| head.len() as u64 + range.end - range.start);
        parts.sum::<u64>() + self.end.len() as u64
    }

    /// The body for the file of `sending`. The first bytes of the first range are read before this returns, so that an error of this
    /// read still decides the status of the answer.
    pub(super) async fn begin(self, sending: Sending) -> Result<Body, Error> {
        let mut parts = self.parts.into_iter();
        let mut first = None;
        if let Some((head, range)) = parts.next() {
            let pieces = sending.pieces(range).await?;
            first = Some((head, pieces));
        }
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let sent = async {
                if let Some((head, pieces)) = first {
                    send(head, pieces, &sender).await?;
                }
                for (head, range) in parts {
                    let pieces = sending.pieces(range).await;
                    send(head, pieces.map_err(Some)?, &sender).await?;
                }
                pass(&sender, Ok(self.end.into())).await
            };
            // The error breaks the connection, so that the client knows that bytes are missing.
            if let Err(Some(error)) = sent.await {
                sending.failed(&error);
                drop(sender.send(Err(error)).await);
            }
        });
        Ok(Body::Parts(receiver))
    }
}

/// Sends a range and the text before it. The error is `None` if the client has gone.
async fn send(
    head: String,
    mut pieces: FilePieces,
    sender: &Sender<Result<Bytes, Error>>,
) -> Result<(), Option<Error>> {
    pass(sender, Ok(head.into())).await?;
    while let Some(bytes) = poll_fn(|cx| pieces.poll_next(cx)).await {
        pass(sender, Ok(bytes.map_err(Some)?)).await?;
    }
    Ok(())
}

async fn pass(
    sender: &Sender<Result<Bytes, Error>>,
    bytes: Result<Bytes, Error>,
) -> Result<(), Option<Error>> {
    sender.send(bytes).await.map_err(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_all_parts() {
        let parts = FileParts::new(vec![0..2, 5..9], 10, "text/plain", 7);
        let boundary = "zarr-mount-0000000000000007";
        assert_eq!(
            parts.content_type(),
            format!("multipart/byteranges; boundary={boundary}")
        );
        let head = |range| {
            format!(
                "--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/10\r\n\r\n"
            )
        };
        let body = [
            head("0-1"),
            "ab\r\n".to_owned(),
            head("5-8"),
            format!("cdef\r\n--{boundary}--\r\n"),
        ];
        assert_eq!(parts.len(), body.concat().len() as u64);
    }
}
