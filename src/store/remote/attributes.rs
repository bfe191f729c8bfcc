//! Requests for the attributes of objects. Some servers and gateways refuse them, and signed URLs are often valid for
//! one method only. In these cases the first byte of the object is requested, and the answer has the same attributes.

use http::StatusCode;
use object_store::path::Path;
use object_store::{GetOptions, GetRange};

use super::client::RemoteClient;
use super::exchange::{AnswerFacts, Exchange, RequestKind};
use super::failure::Failure;
use super::tag::Pinned;
use crate::store::Key;

impl RemoteClient {
    /// The attributes of the object at `key`.
    pub(super) async fn head(&self, key: &Key) -> Result<Pinned, Failure> {
        let path = &self.path(key).ok_or(Failure::Absent)?;
        if self.methods.refuses_head() {
            let ask = |exchange| async move { self.attributes_by_get(path, &exchange).await };
            return self.attempts(RequestKind::Get, ask).await;
        }
        self.attempts(RequestKind::Head, |exchange| async move {
            let mut options = GetOptions::new().with_head(true);
            options.extensions.insert(exchange.clone());
            let found = self.store.get_opts(path, options).await;
            let facts = exchange.facts();
            match found {
                // Some servers give this length for every object in answers to HEAD.
                Ok(found) if found.meta.size == 0 && self.is_web() => {
                    self.statistics.count(RequestKind::Get);
                    self.attributes_by_get(path, &Exchange::default()).await
                }
                Ok(found) => {
                    facts.check(false)?;
                    self.methods.note_answer();
                    Ok(self.pinned(&found.meta, facts.date))
                }
                Err(error) => {
                    let failure = Failure::new(&error, &facts);
                    let is_answer = match failure {
                        Failure::Absent if self.is_web() => self.tells_absence().await,
                        _ => !self.may_refuse_head(&facts),
                    };
                    if is_answer {
                        return Err(failure);
                    }
                    self.instead_of_head(path, &facts).await
                }
            }
        })
        .await
    }

    /// Whether the answer 404 to `HEAD` means that the object is absent: the server must have answered `HEAD` with an
    /// object before. If no request has shown that yet, `HEAD` is sent for an object that is known to exist.
    async fn tells_absence(&self) -> bool {
        if self.methods.answers_head() {
            return true;
        }
        let Some(path) = self.methods.found() else {
            return false;
        };
        self.statistics.count(RequestKind::Head);
        let mut options = GetOptions::new().with_head(true);
        options.extensions.insert(Exchange::default());
        let tells = self.store.get_opts(path, options).await.is_ok();
        if tells {
            self.methods.note_answer();
        }
        tells
    }

    /// Whether an answer may be about the method and not about the object, or has a reason that only the body of an
    /// answer gives.
    fn may_refuse_head(&self, facts: &AnswerFacts) -> bool {
        let is_known = self.methods.answers_head();
        match facts.status {
            Some(StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED) => true,
            Some(StatusCode::UNAUTHORIZED) => !is_known,
            _ => facts.needs_reason() && (!is_known || self.access.is_signed()),
        }
    }

    /// The attributes of an object after the answer to `HEAD`, which `facts` describe, was a refusal. The answer to
    /// `GET` counts.
    async fn instead_of_head(&self, path: &Path, facts: &AnswerFacts) -> Result<Pinned, Failure> {
        self.statistics.count(RequestKind::Get);
        let found = self.attributes_by_get(path, &Exchange::default()).await;
        let is_same = matches!(facts.status, Some(StatusCode::NOT_FOUND | StatusCode::GONE));
        let is_told = match found {
            Ok(_) => true,
            Err(Failure::Absent) => !is_same,
            Err(_) => false,
        };
        if is_told && self.methods.note_refusal() {
            let status = facts.status.map_or_else(String::new, |it| it.to_string());
            log::warn!(
                "the server answers {status} to requests for attributes (HEAD); the first byte of an \
                 object is asked for instead (this is said once)"
            );
        }
        found
    }

    /// The attributes of an object, from the answer to a request for its first byte.
    async fn attributes_by_get(&self, path: &Path, exchange: &Exchange) -> Result<Pinned, Failure> {
        if !self.sends_whole() {
            let mut options = GetOptions::new();
            options.range = Some(GetRange::Bounded(0..1));
            match self.head_of_get(path, options, exchange).await {
                // An empty object has no first byte, and some servers send no parts.
                Err(Failure::BeyondEnd | Failure::NotPartial) => {
                    self.statistics.count(RequestKind::Get);
                }
                answered => return answered.map(|head| head.found),
            }
        }
        // The body is not read.
        let exchange = Exchange::default();
        let whole = self.head_of_get(path, GetOptions::new(), &exchange);
        whole.await.map(|head| head.found)
    }
}
