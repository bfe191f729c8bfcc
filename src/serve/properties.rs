//! The properties that a request of WebDAV asks for (RFC 4918, section 14.20).

use quick_xml::NsReader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;

/// The namespace of WebDAV.
const DAV: &str = "DAV:";

/// The properties that files and directories may have.
const OWN: [&str; 7] = [
    "resourcetype",
    "displayname",
    "getcontentlength",
    "getcontenttype",
    "getlastmodified",
    "getetag",
    "supportedlock",
];

/// The most properties of a request.
const MOST_NAMES: usize = 64;
/// The most bytes of the names of these properties, with their namespaces: the answer repeats them for each file.
const MOST_NAME_BYTES: usize = 8 << 10;
/// The deepest element of a request that is looked at, and a few below.
const MOST_DEPTH: usize = 8;

/// The name of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) namespace: String,
    pub(super) local: String,
}

impl Name {
    /// The name, if it is one of the properties that files and directories may have.
    pub(super) fn own(&self) -> Option<&'static str> {
        let mut own = OWN.into_iter();
        own.find(|own| self.namespace == DAV && self.local == *own)
    }
}

/// The properties that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All that there are.
    All(Vec<Name>),
    /// The names of all that there are.
    Names(Vec<Name>),
    /// These.
    Some(Vec<Name>),
}

impl Wanted {
    /// Parses the body of a request. `None` if it is no `propfind` element, or has more than a client needs.
    pub(super) fn parse(body: &[u8]) -> Option<Wanted> {
        let own = || {
            let own = OWN.into_iter().map(|local| Name {
                namespace: DAV.to_owned(),
                local: local.to_owned(),
            });
            own.collect()
        };
        if body.trim_ascii().is_empty() {
            return Some(Wanted::All(own()));
        }
        let mut reader = NsReader::from_reader(body);
        reader.config_mut().expand_empty_elements = true;
        let (mut depth, mut names, mut found) = (0, Vec::new(), None);
        let mut name_bytes = 0;
        loop {
            let (namespace, event) = reader.read_resolved_event().ok()?;
            match event {
                Event::Start(start) => {
                    let namespace = match namespace {
                        ResolveResult::Bound(namespace) => {
                            let namespace = std::str::from_utf8(namespace.0).ok()?;
                            unescape(namespace).ok()?.into_owned()
                        }
                        ResolveResult::Unbound => String::new(),
                        ResolveResult::Unknown(_) => return None,
                    };
                    let name = start.local_name();
                    let local = std::str::from_utf8(name.as_ref()).ok()?.to_owned();
                    depth += 1;
                    match (depth, &*namespace, &*local) {
                        (1, DAV, "propfind") => {}
                        (1, ..) => return None,
                        (2, DAV, "prop" | "allprop" | "propname") if found.is_none() => {
                            found = Some(local);
                        }
                        (3, ..) if found.as_deref() == Some("prop") => {
                            name_bytes += namespace.len() + local.len();
                            names.push(Name { namespace, local });
                        }
                        // Elements that are not known are ignored.
                        _ => {}
                    }
                    if depth > MOST_DEPTH
                        || names.len() > MOST_NAMES
                        || name_bytes > MOST_NAME_BYTES
                    {
                        return None;
                    }
                }
                Event::End(_) => depth -= 1,
                Event::Eof if depth == 0 => break,
                // Entities could make a short document long.
                Event::Eof | Event::DocType(_) => return None,
                _ => {}
            }
        }
        Some(match &*found? {
            "prop" => {
                names.retain(|name| is_plain(&name.local));
                Wanted::Some(names)
            }
            "propname" => Wanted::Names(own()),
            _ => Wanted::All(own()),
        })
    }

    /// The names of the properties.
    pub(super) fn names(&self) -> &[Name] {
        let (Wanted::All(names) | Wanted::Names(names) | Wanted::Some(names)) = self;
        names
    }

    /// Whether the client wants the values.
    pub(super) fn has_values(&self) -> bool {
        !matches!(self, Wanted::Names(_))
    }

    /// Whether the client wants all properties, because it knows no names of properties.
    pub(super) fn is_all(&self) -> bool {
        !matches!(self, Wanted::Some(_))
    }
}

/// Whether a name can be written into an answer as it is.
fn is_plain(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_next = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    name.starts_with(is_first) && name.chars().all(is_next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> Option<Wanted> {
        Wanted::parse(body.as_bytes())
    }

    #[test]
    fn properties_of_a_request() {
        let name = |namespace: &str, local: &str| Name {
            namespace: namespace.to_owned(),
            local: local.to_owned(),
        };
        let body = "<?xml version=\"1.0\"?><a:propfind xmlns:a=\"DAV:\" xmlns:w=\"urn:&lt;w\">\
             <a:prop><a:getetag/><w:x></w:x><y xmlns=\"\"/></a:prop></a:propfind>";
        let expected = vec![name("DAV:", "getetag"), name("urn:<w", "x"), name("", "y")];
        assert_eq!(parsed(body), Some(Wanted::Some(expected)));
        let [etag, other] = [name("DAV:", "getetag"), name("urn:w", "getetag")];
        assert_eq!((etag.own(), other.own()), (Some("getetag"), None));

        for (body, is_all, has_values) in [
            ("", true, true),
            (" \r\n", true, true),
            ("<propfind xmlns=\"DAV:\"><allprop/></propfind>", true, true),
            (
                "<propfind xmlns=\"DAV:\"><propname/></propfind>",
                true,
                false,
            ),
            ("<propfind xmlns=\"DAV:\"><prop/></propfind>", false, true),
            (
                "<propfind xmlns=\"DAV:\"><x/><allprop/><include><z/></include></propfind>",
                true,
                true,
            ),
        ] {
            let found = parsed(body).unwrap();
            assert_eq!(
                (found.is_all(), found.has_values()),
                (is_all, has_values),
                "{body}"
            );
        }
    }

    #[test]
    fn hostile_bodies() {
        let many = format!(
            "<propfind xmlns=\"DAV:\"><prop>{}</prop></propfind>",
            "<a/>".repeat(1000)
        );
        let long = format!(
            "<propfind xmlns=\"DAV:\" xmlns:a=\"{}\"><prop>{}</prop></propfind>",
            "a".repeat(1000),
            "<a:a/>".repeat(9)
        );
        let deep = format!("<propfind xmlns=\"DAV:\">{}", "<a>".repeat(1000));
        let bodies = [
            "x",
            "<propfind/>",
            "<propfind xmlns=\"DAV:\"/>",
            "<prop xmlns=\"DAV:\"/>",
            "<propfind xmlns=\"DAV:\"><allprop/>",
            "<propfind xmlns=\"DAV:\"><allprop/></x>",
            "<a:propfind><a:allprop/></a:propfind>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><propfind xmlns=\"DAV:\"><allprop/></propfind>",
            &many,
            &long,
            &deep,
        ];
        for body in bodies {
            assert_eq!(parsed(body), None, "{body}");
        }
        assert_eq!(Wanted::parse(b"\xff\xfe<"), None);
        let odd = parsed("<propfind xmlns=\"DAV:\"><prop><a\"b/><getetag/></prop></propfind>");
        assert!(odd.is_none_or(|odd| odd.names().len() == 1));
    }
}
