//! WebDAV, class 1 and read-only (RFC 4918): `PROPFIND` for one file or directory, or for a directory and what is in
//! it.
//!
//! File managers mount the server by this. The bytes of files are those of `GET`. There is no library between, because
//! the ones there are bring a file system of their own with another `GET`, locks and changes, all of which would have
//! to be switched off.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Body as HttpBody;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, StatusCode};
use quick_xml::escape::escape;
use tokio::time::timeout;

use super::answer::{self, Answer};
use super::body::Body;
use super::path::{RequestPath, encode};
use super::pool::on_pool;
use super::properties::{Name, Wanted};
use super::served::Served;
use super::stream::{self, Writing};
use super::{conditions, content_type, file};
use crate::error::Error;
use crate::store::Detail;
use crate::view::{DirectoryEntry, HeldVnode, VnodeAttributes, VnodeKind};

/// The method that asks for properties.
pub(super) const METHOD: &str = "PROPFIND";

/// The longest body of a request.
const MOST_BYTES: usize = 64 << 10;
/// The longest time in which a body has to come.
const BODY_TIME: Duration = Duration::from_secs(10);

const BEGIN: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
const END: &str = "</D:multistatus>\n";

/// The error of a request for all that is below a directory.
const NOT_FINITE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
     <D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n";

/// How far a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The file or directory itself.
    Itself,
    /// A directory, and what is in it.
    Entries,
}

/// The properties that a request asks for, and the files that it asks about.
#[derive(Debug)]
pub(super) struct Asked {
    depth: Depth,
    wanted: Wanted,
}

impl Asked {
    /// Reads what `request` asks for, or returns the answer that refuses it.
    pub(super) async fn read<B>(request: &Request<()>, body: B) -> Result<Asked, Answer>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let headers = request.headers();
        let refuse = |status, text| answer::explain(headers, status, text);
        let depth = match headers
            .get("depth")
            .map(hyper::header::HeaderValue::as_bytes)
        {
            Some(b"0") => Depth::Itself,
            Some(b"1") => Depth::Entries,
            // Everything below the path may be any number of names, so it is refused. A request without the header asks
            // for everything below.
            _ => {
                let mut answer =
                    answer::with(StatusCode::FORBIDDEN, Body::Whole(NOT_FINITE.into()));
                answer::set(&mut answer, CONTENT_TYPE, "application/xml; charset=utf-8");
                return Err(answer);
            }
        };
        let body = timeout(BODY_TIME, Limited::new(body, MOST_BYTES).collect());
        let body = match body.await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => {
                return Err(refuse(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "the body is too long, or was cut off",
                ));
            }
            Err(_) => {
                return Err(refuse(
                    StatusCode::REQUEST_TIMEOUT,
                    "the body took too long",
                ));
            }
        };
        let Some(wanted) = Wanted::parse(&body) else {
            return Err(refuse(
                StatusCode::BAD_REQUEST,
                "the body is no propfind element of WebDAV",
            ));
        };
        Ok(Asked { depth, wanted })
    }
}

/// The answer to a request for `found`, which is at `path`; `None` if it is gone.
pub(super) async fn answer(
    served: &Arc<Served>,
    asked: Asked,
    path: &RequestPath,
    found: Arc<HeldVnode>,
) -> Result<Option<Answer>, Error> {
    let mut writing = Multistatus {
        served: Arc::clone(served),
        href: path.href(),
        name: path.last().to_vec(),
        wanted: asked.wanted,
    };
    let body = if asked.depth == Depth::Entries && found.kind() == VnodeKind::Directory {
        stream::begin(served, found, writing).await?
    } else {
        on_pool(&served.view, move || {
            let Some(shown) = found.attributes()? else {
                return Ok(None);
            };
            let mut text = BEGIN.as_bytes().to_vec();
            writing.itself(&mut text, &found, Some(shown));
            text.extend(END.as_bytes());
            Ok(Some(Body::Whole(text.into())))
        })
        .await?
    };
    Ok(body.map(|body| {
        let mut answer = answer::with(StatusCode::MULTI_STATUS, body);
        answer::set(&mut answer, CONTENT_TYPE, "application/xml; charset=utf-8");
        answer
    }))
}

/// The elements of a directory and what is in it.
struct Multistatus {
    served: Arc<Served>,
    /// The path, without a slash at its end.
    href: String,
    /// The last name of the path; empty for the root.
    name: Vec<u8>,
    wanted: Wanted,
}

impl Writing for Multistatus {
    const DETAIL: Detail = Detail::Attributes;

    fn begin(&mut self, text: &mut Vec<u8>, directory: &HeldVnode) {
        text.extend(BEGIN.as_bytes());
        let shown = directory.attributes().ok().flatten();
        self.itself(text, directory, shown);
    }

    fn entry(&mut self, text: &mut Vec<u8>, directory: &HeldVnode, entry: &DirectoryEntry) {
        let vnode = directory.listed(entry);
        // A file whose size is unknown, because its document is damaged, is listed without its size.
        let shown = entry
            .attributes
            .or_else(|| vnode.attributes().ok().flatten());
        let resource = Resource {
            href: format!("{}/{}", self.href, encode(&entry.name)),
            name: &entry.name,
            kind: entry.kind,
            has_fingerprint: vnode.has_fingerprint(),
            shown,
        };
        text.extend(resource.element(&self.served, &self.wanted).into_bytes());
    }

    fn end(&mut self, text: &mut Vec<u8>) {
        text.extend(END.as_bytes());
    }
}

impl Multistatus {
    fn itself(&mut self, text: &mut Vec<u8>, vnode: &HeldVnode, shown: Option<VnodeAttributes>) {
        let resource = Resource {
            href: self.href.clone(),
            name: &self.name,
            kind: vnode.kind(),
            has_fingerprint: vnode.has_fingerprint(),
            shown,
        };
        text.extend(resource.element(&self.served, &self.wanted).into_bytes());
    }
}

/// A file or directory, and its properties.
struct Resource<'a> {
    /// The path, without a slash at its end.
    href: String,
    name: &'a [u8],
    kind: VnodeKind,
    /// Whether the fingerprint in `shown` stands for one version.
    has_fingerprint: bool,
    shown: Option<VnodeAttributes>,
}

impl Resource<'_> {
    /// The element `response`.
    fn element(&self, served: &Served, wanted: &Wanted) -> String {
        let slash = if self.kind == VnodeKind::Directory {
            "/"
        } else {
            ""
        };
        let href = format!("{}{slash}", self.href);
        let mut element = format!("<D:response><D:href>{href}</D:href>");
        let (mut there, mut missing) = (String::new(), String::new());
        for name in wanted.names() {
            let value = name
                .own()
                .and_then(|own| Some((own, self.property(served, own)?)));
            // Writing to a string never fails.
            let _ = match value {
                Some((own, _)) if !wanted.has_values() => write!(there, "<D:{own}/>"),
                Some((own, value)) => write!(there, "<D:{own}>{value}</D:{own}>"),
                // A client that asks for all properties wants only those that the file has.
                None if wanted.is_all() => Ok(()),
                None => write!(missing, "{}", name.element()),
            };
        }
        for (properties, status) in [(there, "200 OK"), (missing, "404 Not Found")] {
            if !properties.is_empty() || (status == "200 OK" && wanted.is_all()) {
                let _ = write!(
                    element,
                    "<D:propstat><D:prop>{properties}</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>"
                );
            }
        }
        if !element.contains("<D:propstat>") {
            element += "<D:status>HTTP/1.1 200 OK</D:status>";
        }
        element + "</D:response>\n"
    }

    /// The value of the property of WebDAV called `name`, as XML; `None` if there is none.
    fn property(&self, served: &Served, name: &str) -> Option<String> {
        let is_file = self.kind == VnodeKind::File;
        let file = || self.shown.filter(|_| is_file);
        Some(match name {
            "resourcetype" if is_file => String::new(),
            "resourcetype" => "<D:collection/>".to_owned(),
            "displayname" => text(&String::from_utf8_lossy(self.name)),
            "getcontentlength" => file()?.size.to_string(),
            "getcontenttype" if is_file => text(content_type::of_name(self.name)),
            "getetag" if !self.has_fingerprint => return None,
            "getetag" => {
                let shown = file().filter(|shown| !shown.is_momentary())?;
                text(&file::etag(served.process, &shown))
            }
            "getlastmodified" => {
                let (mut modified, now) = (self.shown?.times.mtime, SystemTime::now());
                // The time of a document does not show changes of chunks. cadaver lists no file without a time.
                if is_file && !self.has_fingerprint {
                    modified = now;
                }
                httpdate::fmt_http_date(conditions::shown(modified, now)?)
            }
            "supportedlock" => String::new(),
            _ => return None,
        })
    }
}

impl Name {
    /// An empty element of this name.
    fn element(&self) -> String {
        let Name { namespace, local } = self;
        format!("<{local} xmlns=\"{}\"/>", text(namespace))
    }
}

/// `text` in XML, which has no control characters.
fn text(text: &str) -> String {
    let is_allowed = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let text: String = text
        .chars()
        .map(|c| if is_allowed(c) { c } else { '\u{fffd}' })
        .collect();
    escape(text.as_str()).into_owned()
}
