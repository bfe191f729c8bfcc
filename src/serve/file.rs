//! The bytes of a file.

use std::sync::Arc;
use std::time::SystemTime;

use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HeaderValue, LAST_MODIFIED, RANGE, VARY,
};
use hyper::{HeaderMap, Method, StatusCode};

use super::answer::{self, Answer};
use super::body::Body;
use super::conditions::{Validators, Verdict};
use super::opened::ServedFile;
use super::parts::FileParts;
use super::pieces::held;
use super::pool::on_pool;
use super::range::{Wanted, wanted};
use super::sending::Sending;
use super::served::Served;
use super::{content_type, gzip};
use crate::error::Error;
use crate::view::{OpenedVnode, VnodeAttributes};

/// A file that a client asks for.
#[derive(Debug)]
pub(super) struct FileRequest<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    /// The last name of its path.
    pub(super) name: &'a [u8],
}

/// The answer to `request` for `found`.
pub(super) async fn answer(
    served: &Arc<Served>,
    request: FileRequest<'_>,
    found: &Arc<ServedFile>,
) -> Result<Answer, Error> {
    let len = found.opened.file.len();
    let kind = content_type::of_name(request.name);
    let headers = request.headers;
    let has_forms = gzip::is_compressed(kind, len);
    let mut answer = answer::with(StatusCode::OK, Body::empty());
    let shown = answer.headers_mut();
    if let Some(validators) = &found.validators {
        shown.insert(ETAG, validators.etag.clone());
        if let Some(date) = &validators.last_modified {
            shown.insert(LAST_MODIFIED, date.clone());
        }
        // A browser asks each time whether its copy is the current one. No other cache may keep a copy.
        answer::set_static(&mut answer, CACHE_CONTROL, "private, no-cache");
    } else {
        answer::set_static(&mut answer, CACHE_CONTROL, "no-store");
    }
    if has_forms {
        answer::set_static(&mut answer, VARY, "Accept-Encoding");
    }
    let validators = found.validators.as_ref();
    match validators.map(|validators| validators.judge(headers)) {
        Some(Verdict::NotModified) => {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            return Ok(answer);
        }
        Some(Verdict::Failed) => {
            let text = "the file is of another version than the condition names";
            return Ok(answer::explain(
                headers,
                StatusCode::PRECONDITION_FAILED,
                text,
            ));
        }
        Some(Verdict::Answer) | None => {}
    }
    answer::set_static(&mut answer, CONTENT_TYPE, kind);
    answer::set_static(&mut answer, ACCEPT_RANGES, "bytes");
    let is_get = request.method == Method::GET;
    let sending = || Sending {
        served: Arc::clone(served),
        file: Arc::clone(found),
    };
    let range = range_of(headers, validators).filter(|_| is_get);
    if has_forms && is_get && range.is_none() && gzip::is_accepted(headers) {
        // Twice the document, because its compressed bytes may be as many.
        if let Some(memory) = served.memory.take(2 * len) {
            let bytes = sending().pieces(0..len).await?.collect().await?;
            let packed = on_pool(&served.view, move || Ok(gzip::compress(&bytes))).await?;
            let packed = held(packed, memory);
            let etag = validators.map(|validators| validators.etag_of(gzip::FORM));
            if let Some(etag) = etag.and_then(|etag| HeaderValue::from_maybe_shared(etag).ok()) {
                answer.headers_mut().insert(ETAG, etag);
            }
            answer::set_static(&mut answer, CONTENT_ENCODING, "gzip");
            answer
                .headers_mut()
                .insert(CONTENT_LENGTH, packed.len().into());
            *answer.body_mut() = Body::Whole(packed);
            return Ok(answer);
        }
    }
    let range = match range.map_or(Wanted::Whole, |range| wanted(range, len)) {
        Wanted::Whole => 0..len,
        Wanted::Parts(ranges) => {
            let parts = FileParts::new(ranges, len, kind, served.process);
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
            answer::set(&mut answer, CONTENT_TYPE, &parts.content_type());
            let length = parts.len();
            answer.headers_mut().insert(CONTENT_LENGTH, length.into());
            *answer.body_mut() = parts.begin(sending()).await?;
            return Ok(answer);
        }
        Wanted::Part(part) => {
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
            let last = part.end - 1;
            answer::set(
                &mut answer,
                CONTENT_RANGE,
                &format!("bytes {}-{last}/{len}", part.start),
            );
            part
        }
        Wanted::Outside => {
            let text = format!("the file has {len} bytes");
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let mut answer = answer::explain(headers, status, &text);
            answer::set(&mut answer, CONTENT_RANGE, &format!("bytes */{len}"));
            return Ok(answer);
        }
    };
    let length = range.end - range.start;
    answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    if is_get {
        let sending = sending();
        *answer.body_mut() = Body::File(sending.pieces(range).await?, sending);
    }
    Ok(answer)
}

/// The header of the range that `headers` ask for, if it may be sent.
fn range_of<'h>(headers: &'h HeaderMap, validators: Option<&Validators>) -> Option<&'h str> {
    let range = headers.get(RANGE)?.to_str().ok()?;
    validators?.allows_range(headers).then_some(range)
}

/// The version of `opened`, as the server of the number `process` sends it; `None` if each open shows other bytes.
pub(super) fn validators(process: u64, opened: &OpenedVnode) -> Option<Validators> {
    let shown = opened.attributes;
    if shown.is_momentary() {
        return None;
    }
    let mut etag = etag(process, &shown);
    let mut modified = Some(shown.times.mtime);
    if let Some(snapshot) = opened.file.snapshot() {
        etag = format!("{}-{snapshot:x}\"", etag.trim_end_matches('"'));
        // The time is that of a document, and does not show changes of chunks.
        modified = None;
    }
    Validators::new(etag, modified, SystemTime::now())
}

/// The entity tag of a version that the fingerprint of a file stands for.
pub(super) fn etag(process: u64, shown: &VnodeAttributes) -> String {
    format!("\"{:x}-{:x}-{:x}\"", process, shown.fingerprint, shown.size)
}
