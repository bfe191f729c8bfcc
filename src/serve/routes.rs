//! Which part of the server answers a request.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Body as HttpBody;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, SET_COOKIE,
};
use hyper::{Method, Request, StatusCode};

use super::answer::{self, Answer};
use super::body::Body;
use super::file::FileRequest;
use super::found::{Found, Outcome};
use super::opened::ServedFile;
use super::path::RequestPath;
use super::pool::on_pool;
use super::served::Served;
use super::session::LINK;
use super::{cors, directory, file, metrics, pages, webdav};
use crate::error::{Error, ErrorKind, until_current};
use crate::escape::Escaped;
use crate::view::VnodeKind;

/// The answer to `request`, with the headers that each answer has.
pub(super) async fn answer<B>(served: Arc<Served>, request: Request<B>) -> Answer
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let request = Request::from_parts(head, ());
    let mut answer = route(&served, &request, body).await;
    let origin = served.door.origin(request.headers());
    let has_origins = !served.door.origins.is_empty();
    answer::finish(&mut answer, origin.is_some(), has_origins);
    if let Some(origin) = origin {
        cors::allow(&mut answer, origin);
    }
    served.counters.add(answer.status());
    // The query is left out, and so is the path where it is a secret.
    let path = request.uri().path();
    let path = if path.starts_with(LINK) { LINK } else { path };
    let (method, status) = (request.method(), answer.status().as_u16());
    log::debug!("{method} {}: {status}", Escaped(&path.to_owned()));
    answer
}

async fn route<B>(served: &Arc<Served>, request: &Request<()>, body: B) -> Answer
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (headers, method) = (request.headers(), request.method());
    let explain = |status, text: &str| answer::explain(headers, status, text);
    let is_read = [Method::GET, Method::HEAD].contains(method);
    if !served.door.is_here(request) {
        let text = "this server has another name; --host lets it answer to further ones";
        return explain(StatusCode::MISDIRECTED_REQUEST, text);
    }
    let path = request.uri().path();
    let asset = [pages::STYLE, pages::ICON].into_iter();
    if let Some(asset) = asset.filter(|_| is_read).find(|asset| asset.path == path) {
        return of_page(asset, method);
    }
    if let Some(code) = path.strip_prefix(LINK) {
        return open(served, request, code);
    }
    if cors::is_preflight(request) && served.door.origin(headers).is_some() {
        return cors::preflight(request);
    }
    if !served.door.is_open_to(headers) {
        let text = "the token is missing or wrong. Open the link that zarr-mount has printed, which works once, or give the \
                    token as the password of any user, or as \"Authorization: Bearer TOKEN\"";
        return explain(StatusCode::UNAUTHORIZED, text);
    }
    if method == Method::OPTIONS {
        let mut answer = answer::with(StatusCode::NO_CONTENT, Body::empty());
        answer::set(&mut answer, ALLOW, answer::METHODS);
        answer::set(&mut answer, HeaderName::from_static("dav"), "1");
        // The client of Windows looks for this.
        answer::set(&mut answer, HeaderName::from_static("ms-author-via"), "DAV");
        return answer;
    }
    let asks_properties = method.as_str() == webdav::METHOD;
    if !is_read && !asks_properties {
        return explain(StatusCode::METHOD_NOT_ALLOWED, "this server is read-only");
    }
    if is_read && path == metrics::PATH {
        return answer::without_body(metrics::answer(served), method);
    }
    if is_read && path.contains("//") {
        return with_single_slashes(path);
    }
    let Some(parsed) = RequestPath::parse(path) else {
        let text = "no file has this path: names are not empty, and neither . nor .., and a path has at most 8192 bytes";
        return explain(StatusCode::BAD_REQUEST, text);
    };
    let shown = if asks_properties {
        match webdav::Asked::read(request, body).await {
            Ok(asked) => show_properties(served, asked, parsed).await,
            Err(refusal) => return refusal,
        }
    } else {
        show(served, request, parsed).await
    };
    match shown {
        Ok(Some(answer)) => answer,
        Ok(None) => explain(StatusCode::NOT_FOUND, "no such file or directory"),
        Err(error) => {
            served.report(&error);
            answer::failed(headers, &error)
        }
    }
}

/// The file or directory at `path`; `None` if there is none.
async fn show<B>(
    served: &Arc<Served>,
    request: &Request<B>,
    path: RequestPath,
) -> Result<Option<Answer>, Error> {
    if path.is_own() {
        return Ok(None);
    }
    let mut is_again = false;
    loop {
        let found = match find(served, &path).await? {
            Some(Found::Directory(directory)) => {
                return directory::answer(served, request, path, directory).await;
            }
            Some(Found::File(_)) if path.is_directory => return Ok(None),
            Some(Found::File(found)) => found,
            None => return Ok(None),
        };
        let asked = FileRequest {
            method: request.method(),
            headers: request.headers(),
            name: path.last(),
        };
        served.view.requests().reads.add(1);
        let shown = file::answer(served, asked, &found).await;
        if let Err(error) = &shown {
            served.opened.forget(&path.names);
            // The file was opened for an earlier request, and has changed since then.
            if error.kind() == ErrorKind::Stale && !is_again {
                is_again = true;
                continue;
            }
        }
        return shown.map(Some);
    }
}

/// The properties of the file or directory at `path`; `None` if there is none.
async fn show_properties(
    served: &Arc<Served>,
    asked: webdav::Asked,
    path: RequestPath,
) -> Result<Option<Answer>, Error> {
    if path.is_own() {
        return Ok(None);
    }
    let (view, names) = (Arc::clone(&served.view), served.names(&path));
    let found = on_pool(&served.view, move || {
        view.requests().lookups.add(1);
        until_current(|| view.find_path(&names))
    });
    match found.await? {
        Some(found) if found.kind() == VnodeKind::File && path.is_directory => Ok(None),
        Some(found) => webdav::answer(served, asked, &path, Arc::new(found)).await,
        None => Ok(None),
    }
}

async fn find(served: &Served, path: &RequestPath) -> Outcome {
    if let Some(file) = served.opened.get(&path.names, Instant::now()) {
        return Ok(Some(Found::File(file)));
    }
    let look = || async {
        let found = look(served, path).await?;
        match &found {
            Some(Found::File(file)) => served.opened.put(&path.names, file),
            _ => served.opened.forget(&path.names),
        }
        Ok(found)
    };
    if !served.opened.keeps_files() {
        return look().await;
    }
    // The lookup of another request may have begun before this client was sent something new.
    let news = served.opened.news();
    served.lookups.share(&path.names, news, look).await
}

/// Looks `path` up in the view.
async fn look(served: &Served, path: &RequestPath) -> Outcome {
    let (view, names) = (Arc::clone(&served.view), served.names(path));
    let path = path.names.clone();
    let process = served.process;
    on_pool(&served.view, move || {
        // A file that changes meanwhile is looked up again.
        until_current(|| {
            let asked = Instant::now();
            view.requests().lookups.add(1);
            let Some(found) = view.find_path(&names)? else {
                return Ok(None);
            };
            if found.kind() == VnodeKind::Directory {
                return Ok(Some(Found::Directory(Arc::new(found))));
            }
            view.requests().opens.add(1);
            let opened = found.open()?;
            Ok(opened.map(|opened| {
                let validators = file::validators(process, &opened);
                Found::File(Arc::new(ServedFile {
                    path: path.clone(),
                    opened,
                    asked,
                    validators,
                }))
            }))
        })
    })
    .await
}

/// The answer to a browser that opens the link with `code`.
fn open<B>(served: &Served, request: &Request<B>, code: &str) -> Answer {
    let headers = request.headers();
    // A program that looks where a link leads must not use it up.
    let is_meant = request.method() == Method::GET && !headers.contains_key("sec-purpose");
    let cookie = if is_meant {
        served.door.sessions.open(code)
    } else {
        None
    };
    let Some(cookie) = cookie else {
        let text =
            "this link does not work, or has been used; zarr-mount prints one each time it starts";
        return answer::explain(headers, StatusCode::FORBIDDEN, text);
    };
    // No redirection: a browser that follows one from another site does not send the cookie.
    let page = "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>zarr-mount</title>\n\
                <meta http-equiv=\"refresh\" content=\"0; url=/\">\n<p><a href=\"/\">Go on to the store</a></p>\n</html>\n";
    let mut answer = answer::page(StatusCode::OK, page.to_owned());
    answer::set(&mut answer, SET_COOKIE, &cookie);
    answer
}

/// Sends the client to `path` without empty names. Programs that add names to a URL with a slash at its end ask for them.
fn with_single_slashes(path: &str) -> Answer {
    let names = path.split('/').filter(|name| !name.is_empty());
    let mut location = names.fold(String::new(), |location, name| location + "/" + name);
    if path.ends_with('/') {
        location.push('/');
    }
    let mut answer = answer::with(StatusCode::PERMANENT_REDIRECT, Body::empty());
    answer::set(&mut answer, LOCATION, &location);
    answer::set(&mut answer, CACHE_CONTROL, "no-store");
    answer
}

/// A file that pages refer to.
fn of_page(asset: pages::Asset, method: &Method) -> Answer {
    let mut answer = answer::with(StatusCode::OK, Body::Whole(asset.text.into()));
    answer::set(&mut answer, CONTENT_TYPE, asset.content_type);
    answer::set(&mut answer, CONTENT_SECURITY_POLICY, pages::POLICY);
    answer::set(&mut answer, CACHE_CONTROL, "max-age=3600");
    answer::without_body(answer, method)
}
