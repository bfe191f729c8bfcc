//! The parts that all pages have: the head, the way to the directory, the heading and the foot.

use super::html::{Html, shown_name};
use super::{ICON, Request, STYLE};

/// A page with this title and these contents. `way` is the navigation above them.
pub(super) fn page(title: &str, way: &Html, contents: &Html) -> String {
    let mut page = Html::default();
    page.markup(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>",
    );
    page.text(title)
        .markup("</title>\n<link rel=\"stylesheet\" href=\"");
    page.markup(STYLE.path)
        .markup("\">\n<link rel=\"icon\" href=\"");
    page.markup(ICON.path).markup("\">\n</head>\n<body>\n");
    page.markup("<a class=\"skip\" href=\"#content\">Skip to the contents</a>\n");
    page.part(way);
    page.markup("<main id=\"content\" tabindex=\"-1\">\n")
        .part(contents);
    page.markup("</main>\n<footer><p>Shown by zarr-mount, which changes nothing in the store.</p></footer>\n");
    page.markup("</body>\n</html>\n");
    page.into_string()
}

/// The names of the directories above this one, each of which is a link.
pub(super) fn way(request: &Request<'_>) -> Html {
    let names = names(request.path);
    let mut way = Html::default();
    way.markup("<header>\n<nav aria-label=\"Directories above\">\n<ol>\n");
    for level in 0..=names.len() {
        let is_last = level == names.len();
        way.markup("<li>");
        if is_last {
            way.markup("<span aria-current=\"page\">");
        } else {
            way.markup("<a href=\"");
            for _ in level..names.len() {
                way.markup("../");
            }
            way.markup("\">");
        }
        match level.checked_sub(1).and_then(|above| names.get(above)) {
            None => way.markup("<bdi>").text(request.store).markup("</bdi>"),
            Some(name) => way.name(name),
        };
        way.markup(if is_last { "</span>" } else { "</a>" })
            .markup("</li>\n");
    }
    way.markup("</ol>\n</nav>\n</header>\n");
    way
}

/// The title of the page of a directory: the directory first, because tabs show the beginning.
pub(super) fn title(request: &Request<'_>) -> String {
    if request.path.is_empty() {
        return format!("{} – zarr-mount", request.store);
    }
    format!(
        "{} – {} – zarr-mount",
        shown_name(request.path),
        request.store
    )
}

/// The names of a path.
pub(super) fn names(path: &[u8]) -> Vec<&[u8]> {
    let names = path.split(|&byte| byte == b'/');
    names.filter(|name| !name.is_empty()).collect()
}
