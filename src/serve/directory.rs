//! A directory: a page for people, JSON or plain text for programs that ask for it, and links for those that do not.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, VARY};
use hyper::{Request, StatusCode};
use serde_json::json;

use super::answer::{self, Answer, Liking};
use super::body::Body;
use super::path::{RequestPath, encode};
use super::pool::on_pool;
use super::served::Served;
use super::stream::{self, Writing};
use super::{content_type, pages};
use crate::error::Error;
use crate::store::Detail;
use crate::view::{DirectoryEntry, HeldVnode, VnodeKind};

/// The type of a list of links.
const HTML: &str = "text/html; charset=utf-8";

/// The answer to `request` for `directory`, which is at `path`; `None` if it is gone.
pub(super) async fn answer<B>(
    served: &Arc<Served>,
    request: &Request<B>,
    path: RequestPath,
    directory: Arc<HeldVnode>,
) -> Result<Option<Answer>, Error> {
    let liking = Liking::of(request.headers());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let needs_slash = matches!(liking, Liking::Page | Liking::Links);
    if needs_slash && !path.is_directory {
        return Ok(Some(with_slash(&path, &query)));
    }
    let (href, view) = (path.href(), &served.view);
    let (body, kind) = match liking {
        Liking::Page => {
            let store = served.store.clone();
            let page = on_pool(view, move || {
                let request = pages::Request {
                    store: &store,
                    path: &path.names,
                    query: &query,
                };
                pages::directory(&directory, &request)
            });
            let page = page.await?.map(|page| answer::page(StatusCode::OK, page));
            return Ok(page.map(|page| answer::without_body(page, request.method())));
        }
        Liking::Links => (
            stream::begin(served, directory, Links { href }).await?,
            HTML,
        ),
        Liking::Json => {
            let is_first = true;
            let writing = Json { href, is_first };
            let body = stream::begin(served, directory, writing).await?;
            (body, content_type::JSON)
        }
        Liking::Text => {
            let body = stream::begin(served, directory, Lines).await?;
            (body, "text/plain; charset=utf-8")
        }
    };
    let Some(body) = body else { return Ok(None) };
    let mut answer = answer::with(StatusCode::OK, body);
    answer::set(&mut answer, CONTENT_TYPE, kind);
    answer::set(&mut answer, CACHE_CONTROL, "no-store");
    answer::set(&mut answer, VARY, "Accept");
    Ok(Some(answer::without_body(answer, request.method())))
}

/// Sends the client to the path with a slash at its end, from which links go on.
fn with_slash(path: &RequestPath, query: &str) -> Answer {
    let mut answer = answer::with(StatusCode::PERMANENT_REDIRECT, Body::empty());
    let query = if query.is_empty() {
        String::new()
    } else {
        format!("?{query}")
    };
    answer::set(&mut answer, LOCATION, &format!("{}/{query}", path.href()));
    answer::set(&mut answer, CACHE_CONTROL, "no-store");
    answer
}

/// A link to each entry, as other web servers have them.
struct Links {
    /// The path of the directory, without a slash at its end.
    href: String,
}

impl Writing for Links {
    const DETAIL: Detail = Detail::Names;

    fn begin(&mut self, text: &mut Vec<u8>, _: &HeldVnode) {
        let title = format!("Index of {}/", self.href);
        text.extend(
            format!("<!DOCTYPE html>\n<title>{title}</title>\n<h1>{title}</h1>\n<pre>\n")
                .into_bytes(),
        );
    }

    fn entry(&mut self, text: &mut Vec<u8>, _: &HeldVnode, entry: &DirectoryEntry) {
        let slash = match entry.kind {
            VnodeKind::Directory => "/",
            VnodeKind::File => "",
        };
        let name = encode(&entry.name);
        text.extend(format!("<a href=\"{name}{slash}\">{name}{slash}</a>\n").into_bytes());
    }

    fn end(&mut self, text: &mut Vec<u8>) {
        text.extend(b"</pre>\n");
    }
}

/// The name of each entry in a line, with a slash behind those of directories. Names are percent-encoded where they are
/// not plain, so that no name is two lines.
struct Lines;

impl Writing for Lines {
    const DETAIL: Detail = Detail::Names;

    fn begin(&mut self, _: &mut Vec<u8>, _: &HeldVnode) {}

    fn entry(&mut self, text: &mut Vec<u8>, _: &HeldVnode, entry: &DirectoryEntry) {
        text.extend(encode(&entry.name).into_bytes());
        text.extend(match entry.kind {
            VnodeKind::Directory => &b"/\n"[..],
            VnodeKind::File => b"\n",
        });
    }

    fn end(&mut self, _: &mut Vec<u8>) {}
}

/// An object with the member `entries`.
struct Json {
    /// The path of the directory, without a slash at its end.
    href: String,
    is_first: bool,
}

impl Writing for Json {
    const DETAIL: Detail = Detail::Attributes;

    fn begin(&mut self, text: &mut Vec<u8>, _: &HeldVnode) {
        let href = json!(format!("{}/", self.href));
        text.extend(format!("{{\"href\":{href},\"entries\":[").into_bytes());
    }

    fn entry(&mut self, text: &mut Vec<u8>, directory: &HeldVnode, entry: &DirectoryEntry) {
        if !std::mem::take(&mut self.is_first) {
            text.push(b',');
        }
        let is_directory = entry.kind == VnodeKind::Directory;
        let slash = if is_directory { "/" } else { "" };
        let mut value = json!({
            "name": String::from_utf8_lossy(&entry.name),
            "href": format!("{}/{}{slash}", self.href, encode(&entry.name)),
            "kind": if is_directory { "directory" } else { "file" },
        });
        // A file whose size is unknown, because its document is damaged, is listed without its size.
        let shown = entry
            .attributes
            .or_else(|| directory.listed(entry).attributes().ok().flatten());
        if let Some(shown) = shown.filter(|_| !is_directory) {
            value["size"] = shown.size.into();
            value["modified"] = seconds(shown.times.mtime).into();
        }
        text.extend(format!("\n{value}").into_bytes());
    }

    fn end(&mut self, text: &mut Vec<u8>) {
        text.extend(b"]}\n");
    }
}

/// Seconds since 1970.
fn seconds(time: SystemTime) -> i64 {
    let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => signed(after.as_secs()),
        Err(before) => -signed(before.duration().as_secs()),
    }
}
