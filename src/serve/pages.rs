//! Pages for people who look into a store with a browser. They need no script.

use std::fmt::Write;

use crate::error::Error;
use crate::view::HeldVnode;

/// The path of the style sheet, which everybody may read.
pub(super) const STYLE_PATH: &str = "/.zarr-mount/page.css";

/// The style sheet of all pages.
pub(super) const STYLE: &str = "body { font-family: sans-serif }\n";

/// The policy of the browser for all pages (`Content-Security-Policy`).
pub(super) const POLICY: &str = "default-src 'none'; img-src 'self'; style-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

/// The directory that is asked for.
pub(super) struct Request<'a> {
    /// The name of the store.
    pub(super) store: &'a str,
    /// The names from the root on, with slashes between them.
    pub(super) path: &'a [u8],
    /// The query of the URL, as it was sent.
    pub(super) query: &'a str,
}

/// The page of a directory; `None` if it is gone.
pub(super) fn directory(
    directory: &HeldVnode,
    request: &Request<'_>,
) -> Result<Option<String>, Error> {
    let _ = (request.path, request.query);
    if directory.list()?.is_none() {
        return Ok(None);
    }
    Ok(Some(page(request.store, "")))
}

/// The page of an error.
pub(super) fn error(status: u16, title: &str, text: &str) -> String {
    page(&format!("{status} {title}"), text)
}

fn page(title: &str, text: &str) -> String {
    let mut page = String::from("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>");
    escape(&mut page, title);
    let _ = write!(
        page,
        "</title>\n<link rel=\"stylesheet\" href=\"{STYLE_PATH}\">\n<h1>"
    );
    escape(&mut page, title);
    page.push_str("</h1>\n<p>");
    escape(&mut page, text);
    page.push_str("</p>\n");
    page
}

fn escape(page: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            c => page.push(c),
        }
    }
}
