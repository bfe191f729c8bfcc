//! Answers that the client library reads to their end, without a limit to their length: names and credentials.

use futures_util::StreamExt;
use object_store::client::{HttpError, HttpErrorKind, HttpResponse, HttpResponseBody};

use super::exchange::Exchange;
use super::failure::is_passing;
use super::listed_names;

/// A page of 5,000 names is no longer than this.
const MOST_PAGE_BYTES: usize = 32 << 20;

/// The answer to `PROPFIND`, which has all names of a directory, is no longer than this. A name takes some 700 bytes.
const MOST_LISTING_BYTES: usize = 128 << 20;

/// An answer with credentials is no longer than this.
const MOST_CREDENTIALS_BYTES: usize = 1 << 20;

/// The answer with credentials, read to its end.
///
/// # Errors
/// It is too long, or the connection is lost, or its status says that the server cannot answer at the moment. The client
/// library tells nobody the status.
pub(super) async fn credentials(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (head, body) = answer.into_parts();
    if is_passing(head.status) {
        let problem = format!("their server answered {}", head.status);
        let problem = std::io::Error::other(problem);
        return Err(HttpError::new(HttpErrorKind::Interrupted, problem));
    }
    let text = whole(body, MOST_CREDENTIALS_BYTES).await;
    let text = text.map_err(|lost| HttpError::new(HttpErrorKind::Interrupted, lost))?;
    let text = text.ok_or_else(|| unusable("the answer is too long for credentials"))?;
    Ok(HttpResponse::from_parts(head, text.into()))
}

/// The answer to `PROPFIND`, read to its end. `exchange` notes it after that, so that an answer whose connection is lost
/// counts as none.
///
/// # Errors
/// It is too long, or the connection is lost.
pub(super) async fn listing(
    answer: HttpResponse,
    exchange: &Exchange,
) -> Result<HttpResponse, HttpError> {
    let (head, body) = answer.into_parts();
    let text = whole(body, MOST_LISTING_BYTES).await?;
    exchange.answered(head.status, &head.headers);
    let text = text.ok_or_else(|| noted(exchange, "the list of names is too long".to_owned()))?;
    Ok(HttpResponse::from_parts(head, text.into()))
}

/// A page of names, checked because the client library would read any other document as a page without names.
///
/// # Errors
/// It is no page of names, or too long, or the connection is lost.
pub(super) async fn checked_page(
    answer: HttpResponse,
    exchange: &Exchange,
) -> Result<HttpResponse, HttpError> {
    let no_page = |problem: &str| {
        let problem = format!("the server sent no page of names: {problem}");
        noted(exchange, problem)
    };
    let (head, body) = answer.into_parts();
    let page = whole(body, MOST_PAGE_BYTES).await?;
    let page = page.ok_or_else(|| no_page("it is too long"))?;
    let text = String::from_utf8(page).map_err(|_| no_page("it is not UTF-8"))?;
    let checked = listed_names::checked_page(&text);
    let (kept, left_out) = checked.map_err(|problem| no_page(&problem))?;
    exchange.noted().left_out = left_out;
    Ok(HttpResponse::from_parts(head, kept.into()))
}

/// The bytes of `body`; `None` if they are more than `most`.
async fn whole(body: HttpResponseBody, most: usize) -> Result<Option<Vec<u8>>, HttpError> {
    let mut parts = body.bytes_stream();
    let mut bytes = Vec::new();
    while let Some(part) = parts.next().await {
        bytes.extend_from_slice(&part?);
        if bytes.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

/// The error for an answer with this problem, which `exchange` notes.
fn noted(exchange: &Exchange, problem: String) -> HttpError {
    let error = unusable(&problem);
    exchange.noted().problem = Some(problem);
    error
}

/// The error for an answer with this problem.
fn unusable(problem: &str) -> HttpError {
    HttpError::new(
        HttpErrorKind::Decode,
        std::io::Error::other(problem.to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_server_of_credentials_that_is_busy_gives_no_answer() {
        let runtime = Builder::new_current_thread().build().unwrap();
        for (status, kind) in [
            (StatusCode::OK, None),
            (StatusCode::NOT_FOUND, None),
            (
                StatusCode::SERVICE_UNAVAILABLE,
                Some(HttpErrorKind::Interrupted),
            ),
        ] {
            let mut answer = HttpResponse::new("hunter2".to_owned().into());
            *answer.status_mut() = status;
            let error = runtime.block_on(credentials(answer)).err();
            assert_eq!(error.as_ref().map(HttpError::kind), kind, "{status}");
            assert!(!format!("{error:?}").contains("hunter2"));
        }
    }

    #[test]
    fn an_answer_is_not_read_beyond_its_bound() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let read = |len: usize| {
            let answer = HttpResponse::new(vec![b' '; len].into());
            let answer = runtime.block_on(credentials(answer))?;
            runtime.block_on(answer.into_body().bytes())
        };
        let bytes = read(MOST_CREDENTIALS_BYTES).unwrap();
        assert_eq!(bytes.len(), MOST_CREDENTIALS_BYTES);
        assert!(read(MOST_CREDENTIALS_BYTES + 1).is_err());
    }
}
