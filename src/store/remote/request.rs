//! An answer that is found without a request, or else the request that other callers wait for.

use std::sync::Arc;
use std::time::Instant;

use super::patience::Patience;
use super::tag::Pinned;
use crate::store::disk_cache::Claim;

/// The result of a search among the answers that are kept.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each request, on the stack"
)]
pub(super) enum Looked<T> {
    Found(T),
    /// Nothing is found, so a request is necessary. The bytes are not sent if the object still has this version.
    Ask(Option<Pinned>, Request),
}

/// A request that other callers wait for. It is dropped after the answer was kept.
#[derive(Debug, Default)]
pub(super) struct Request {
    _claimed: Option<Claimed>,
}

#[derive(Debug)]
struct Claimed {
    patience: Arc<Patience>,
    _claims: Vec<Claim>,
    begun: Instant,
}

impl Request {
    pub(super) fn new(
        patience: &Arc<Patience>,
        claims: impl IntoIterator<Item = Claim>,
    ) -> Request {
        let claims: Vec<Claim> = claims.into_iter().collect();
        let claimed = |claims| Claimed {
            patience: Arc::clone(patience),
            _claims: claims,
            begun: Instant::now(),
        };
        Request {
            _claimed: (!claims.is_empty()).then_some(claims).map(claimed),
        }
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.patience.note_request(self.begun.elapsed());
    }
}
