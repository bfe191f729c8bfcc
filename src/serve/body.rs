//! The bytes of a response.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc::Receiver;

use super::pieces::FilePieces;
use super::sending::Sending;
use crate::error::Error;

/// The bytes of a response. An error breaks the connection, so that the client knows that bytes are missing.
#[derive(Debug)]
pub(super) enum Body {
    /// These bytes.
    Whole(Bytes),
    /// The bytes of a file.
    File(FilePieces, Sending),
    /// Parts of a text that is made while it is sent.
    Parts(Receiver<Result<Bytes, Error>>),
}

impl Body {
    pub(super) fn empty() -> Body {
        Body::Whole(Bytes::new())
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let next = match &mut *self {
            Body::Whole(bytes) if bytes.is_empty() => return Poll::Ready(None),
            Body::Whole(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            Body::File(pieces, sending) => {
                let next = pieces.poll_next(cx);
                if let Poll::Ready(Some(Err(error))) = &next {
                    sending.failed(error);
                }
                next
            }
            Body::Parts(parts) => parts.poll_recv(cx),
        };
        next.map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) => bytes.is_empty(),
            Body::File(pieces, _) => pieces.left() == 0,
            Body::Parts(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::File(pieces, _) => SizeHint::with_exact(pieces.left()),
            Body::Parts(_) => SizeHint::default(),
        }
    }
}
