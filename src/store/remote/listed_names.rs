//! Pages of names, before the client library reads them. The library refuses a page that has a name with an empty
//! segment (`a//b`), or with the segment `.` or `..`, so such names are removed from the page. And it takes any other
//! document, such as a page for logging in, for a page without names, after which all chunks would be absent.

use std::ops::Range;

use object_store::path::Path;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};

/// The elements that contain a name in the pages of S3, Google and Azure, each with the element of the name itself.
const ENTRIES: [(&[u8], &[u8]); 4] = [
    (b"Contents", b"Key"),
    (b"CommonPrefixes", b"Prefix"),
    (b"Blob", b"Name"),
    (b"BlobPrefix", b"Name"),
];

/// The outer elements of pages of names.
const PAGES: [&str; 2] = ["ListBucketResult", "EnumerationResults"];

/// The parts of a page that decide whether it is used.
#[derive(Default)]
struct Outline {
    outer: String,
    n_entries: usize,
    /// The positions of entries whose names the client library refuses.
    unreadable: Vec<Range<usize>>,
    is_truncated: Option<String>,
    /// Whether the page says that it has no names.
    says_empty: bool,
    next_token: String,
}

/// `page` without the names that the client library cannot read, and the number of these names.
///
/// # Errors
/// The problem, as a message, of a document that is not a page of names, and of a page that has no token for the next
/// one although more names follow. A page of S3 without names must say that it has none,
/// or that none follow.
pub(super) fn checked_page(page: &str) -> Result<(String, usize), String> {
    let page = page.trim_start_matches('\u{feff}');
    let mut outline = Outline::default();
    // The client library reads the page by the same rules, and has better error messages.
    outline.read(page).ok();
    let Outline {
        outer,
        n_entries,
        unreadable,
        is_truncated,
        says_empty,
        next_token,
    } = outline;
    if !PAGES.contains(&outer.as_str()) {
        return Err(format!("its outer element is {outer:?}"));
    }
    // Some servers leave out `IsTruncated` where it is false.
    let says_nothing = is_truncated.is_none() && !says_empty;
    if outer == "ListBucketResult" && says_nothing && n_entries == 0 {
        return Err("it has no name, and does not say that none follow".to_owned());
    }
    if is_truncated.as_deref() == Some("true") && next_token.is_empty() {
        return Err("it says that more names follow, and not how to ask for them".to_owned());
    }
    let mut kept = String::with_capacity(page.len());
    let mut end = 0;
    for entry in &unreadable {
        kept.push_str(page.get(end..entry.start).unwrap_or_default());
        end = entry.end;
    }
    kept.push_str(page.get(end..).unwrap_or_default());
    Ok((kept, unreadable.len()))
}

impl Outline {
    /// Reads `page` up to the end of its outer element.
    fn read(&mut self, page: &str) -> Result<(), quick_xml::Error> {
        let mut reader = Reader::from_str(page);
        let mut depth = 0_usize;
        // The start of the entry, its depth, the element of its name, and its name.
        let mut entry: Option<(usize, usize, &[u8], Option<String>)> = None;
        let mut text = String::new();
        loop {
            let start = position(&reader);
            match reader.read_event()? {
                Event::Start(element) => {
                    depth += 1;
                    let name = element.local_name();
                    if depth == 1 {
                        self.outer = String::from_utf8_lossy(name.as_ref()).into_owned();
                    }
                    let known = ENTRIES.iter().find(|(outer, _)| *outer == name.as_ref());
                    if let (None, Some((_, inner))) = (&entry, known) {
                        entry = Some((start, depth, inner, None));
                    }
                    text.clear();
                }
                Event::Text(part) => text.push_str(&part.decode()?),
                Event::CData(part) => text.push_str(&part.decode()?),
                Event::GeneralRef(part) => text.push_str(&resolved(&part)?),
                Event::End(element) => {
                    match element.local_name().as_ref() {
                        b"IsTruncated" => self.is_truncated = Some(text.trim().to_owned()),
                        b"KeyCount" => self.says_empty = text.trim() == "0",
                        b"NextContinuationToken" => self.next_token.clone_from(&text),
                        name => {
                            if let Some((_, within, inner, found)) = &mut entry
                                && name == *inner
                                && depth == *within + 1
                            {
                                *found = Some(text.clone());
                            }
                        }
                    }
                    let ended = entry.take_if(|(_, within, ..)| depth == *within);
                    if let Some((start, _, _, name)) = ended {
                        self.n_entries += 1;
                        if name.is_some_and(|name| Path::parse(name).is_err()) {
                            self.unreadable.push(start..position(&reader));
                        }
                    }
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                    text.clear();
                }
                Event::Eof => return Ok(()),
                _ => {}
            }
        }
    }
}

/// The position of the next event.
fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// The text that an entity or character reference stands for, such as `&amp;` or `&#46;`.
fn resolved(reference: &BytesRef<'_>) -> Result<String, quick_xml::Error> {
    if let Some(character) = reference.resolve_char_ref()? {
        return Ok(character.to_string());
    }
    let text = resolve_predefined_entity(&reference.decode()?);
    Ok(text.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(names: &[(&str, &str, &str)]) -> String {
        let element = |(outer, inner, name): &(&str, &str, &str)| {
            format!("<{outer}><{inner}>{name}</{inner}><Size>1</Size></{outer}>")
        };
        let elements: String = names.iter().map(element).collect();
        format!(
            "<?xml version=\"1.0\"?>\n<ListBucketResult><Prefix>z//</Prefix>{elements}</ListBucketResult>"
        )
    }

    #[test]
    fn names_that_no_path_has_are_removed() {
        let good = [
            ("Contents", "Key", "z/a&amp;b"),
            ("CommonPrefixes", "Prefix", "z/a/"),
            ("Blob", "Name", "z/..b"),
            ("BlobPrefix", "Name", "z/b/"),
        ];
        let bad = [
            ("Contents", "Key", "z//a"),
            ("CommonPrefixes", "Prefix", "z//"),
            ("CommonPrefixes", "Prefix", "z&#x2F;/"),
            ("CommonPrefixes", "Prefix", "z/&#046;"),
            ("Contents", "Key", "<![CDATA[z//b]]>"),
            ("Blob", "Name", "z/."),
            ("BlobPrefix", "Name", "z/../"),
        ];
        let all: Vec<_> = good.iter().chain(&bad).copied().collect();
        let mut turned = all.clone();
        turned.reverse();
        assert_eq!(checked_page(&page(&all)), Ok((page(&good), 7)));
        assert_eq!(checked_page(&page(&turned)).unwrap().1, 7);
        assert_eq!(checked_page(&page(&good)), Ok((page(&good), 0)));
        let marked = format!("\u{feff}{}", page(&all));
        assert_eq!(checked_page(&marked), Ok((page(&good), 7)));
    }

    #[test]
    fn entries_are_found_in_any_spelling() {
        let entry = "<a:Contents b='c'><a:Owner><a:Key>o</a:Key></a:Owner>\n<a:Key >z//a</a:Key></a:Contents>";
        let page = |entry: &str| {
            format!(
                "<a:ListBucketResult>{entry}<a:IsTruncated>false</a:IsTruncated></a:ListBucketResult>"
            )
        };
        assert_eq!(checked_page(&page(entry)), Ok((page(""), 1)));
    }

    #[test]
    fn a_document_that_is_not_a_page_of_names_is_refused() {
        let head = "<?xml version='1.0'?>\n<!-- a -->";
        for page in [
            "<ListBucketResult xmlns=\"a\"><Contents><Key>a</Key></Contents></ListBucketResult>",
            "<a:ListBucketResult>\n<a:IsTruncated>false</a:IsTruncated></a:ListBucketResult>",
            &format!("{head}<EnumerationResults ServiceEndpoint='a'></EnumerationResults>"),
            "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
            "<ListBucketResult><Name>b</Name><Prefix>a/</Prefix><KeyCount>0</KeyCount></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated>\
             <NextContinuationToken>a</NextContinuationToken></ListBucketResult>",
        ] {
            assert_eq!(checked_page(page), Ok((page.to_owned(), 0)));
        }
        for page in [
            "",
            "{\"items\": []}",
            "<",
            "<?xml",
            "<!doctype html><html><body>Log in</body></html>",
            "<?xml version='1.0'?><Error><Code>InternalError</Code></Error>",
            "<ListAllMyBucketsResult></ListAllMyBucketsResult>",
            "<ListBucketResult></ListBucketResult>",
            "<ListBucketResult/>",
            "<ListBucketResult><KeyCount>1</KeyCount></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated>\
             <NextContinuationToken></NextContinuationToken></ListBucketResult>",
        ] {
            assert!(checked_page(page).is_err(), "{page}");
        }
    }

    #[test]
    fn a_damaged_page_is_left_to_the_client_library() {
        let start = "<ListBucketResult><IsTruncated>false</IsTruncated>";
        for end in [
            "<",
            "<Contents>",
            "<Contents><Key>a//b</Contents>",
            "<<\u{e9}>a//b",
            "</a>",
        ] {
            let page = format!("{start}{end}");
            assert_eq!(checked_page(&page), Ok((page.clone(), 0)));
        }
    }
}
