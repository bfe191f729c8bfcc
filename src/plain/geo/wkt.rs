//! A scanner of Well-Known Text: the keyword of a node, its name and its children. It knows no more of a CRS than that
//! takes: programs that read the files parse the text.
//!
//! ```text
//! PROJCRS["WGS 84 / UTM zone 32N", BASEGEOGCRS["WGS 84", …], CONVERSION[…], CS[Cartesian, 2], …, ID["EPSG", 32632]]
//! PROJCS["WGS 84 / UTM zone 32N", GEOGCS["WGS 84", …], PROJECTION["Transverse_Mercator"], …, AUTHORITY["EPSG", "32632"]]
//! ```
//!
//! A quote in a text is doubled. Round brackets may stand for square ones. Source: OGC 18-010r7, "Well-known text
//! representation of coordinate reference systems", section 6; GDAL writes the older form of OGC 01-009.

use std::borrow::Cow;

use super::kind::CrsKind;

/// A node: `KEYWORD[item, item, …]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct WktNode<'a> {
    keyword: &'a str,
    /// The text between its brackets.
    inner: &'a str,
    /// Keyword, brackets and everything between them.
    text: &'a str,
}

impl<'a> WktNode<'a> {
    /// The node that is all of `text`; `None` if the text is none, for example because a bracket is open at its end.
    pub(super) fn parse(text: &'a str) -> Option<WktNode<'a>> {
        let text = text.trim();
        let (keyword, rest) = text.split_once(['[', '('])?;
        let inner = rest.strip_suffix([']', ')'])?;
        let keyword = keyword.trim_end();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if keyword.is_empty() || !keyword.chars().all(is_word) || !is_balanced(inner) {
            return None;
        }
        Some(WktNode {
            keyword,
            inner,
            text,
        })
    }

    /// Keyword, brackets and everything between them.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn is(&self, keywords: &[&str]) -> bool {
        keywords
            .iter()
            .any(|keyword| self.keyword.eq_ignore_ascii_case(keyword))
    }

    /// The texts of its items.
    pub(super) fn items(&self) -> Items<'a> {
        Items {
            rest: Some(self.inner),
        }
    }

    /// The first child with one of these keywords.
    pub(super) fn child(&self, keywords: &[&str]) -> Option<WktNode<'a>> {
        let mut children = self.items().filter_map(WktNode::parse);
        children.find(|child| child.is(keywords))
    }

    /// The item `index`, without its quotes.
    pub(super) fn value(&self, index: usize) -> Option<Cow<'a, str>> {
        let item = self.items().nth(index)?;
        let quoted = item
            .strip_prefix('"')
            .and_then(|item| item.strip_suffix('"'));
        Some(match quoted {
            Some(text) if text.contains("\"\"") => Cow::Owned(text.replace("\"\"", "\"")),
            Some(text) => Cow::Borrowed(text),
            None => Cow::Borrowed(item),
        })
    }

    /// The item `index`, if it is a finite number.
    pub(super) fn number(&self, index: usize) -> Option<f64> {
        let number: f64 = self.value(index)?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    /// Authority and code of the node, if its text has them: `ID["EPSG", 4326]`.
    pub(super) fn id(&self) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
        let id = self.child(&["ID", "AUTHORITY"])?;
        Some((id.value(0)?, id.value(1)?))
    }

    /// The kind of CRS that the node is; `None` if it is no CRS.
    pub(super) fn kind(&self) -> Option<CrsKind> {
        let is_ellipsoidal = || {
            let system = self.child(&["CS"]).and_then(|system| system.value(0));
            system.is_some_and(|system| system.eq_ignore_ascii_case("ellipsoidal"))
        };
        if self.is(&["GEOGCS", "GEOGCRS", "GEOGRAPHICCRS"]) {
            return Some(CrsKind::Geographic);
        }
        if self.is(&["GEODCRS", "GEODETICCRS"]) && is_ellipsoidal() {
            return Some(CrsKind::Geographic);
        }
        if self.is(&["PROJCS", "PROJCRS", "PROJECTEDCRS"]) {
            return Some(CrsKind::Projected);
        }
        let keyword = self.keyword.to_ascii_uppercase();
        let is_other = keyword.ends_with("CRS") || keyword.ends_with("CS") && keyword != "CS";
        is_other.then_some(CrsKind::Other)
    }
}

/// The items between the brackets of a node.
#[derive(Debug, Clone)]
pub(super) struct Items<'a> {
    rest: Option<&'a str>,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let comma = outer(rest).find(|&(_, c, depth)| c == b',' && depth == 0);
        let Some((comma, ..)) = comma else {
            return Some(rest.trim());
        };
        self.rest = rest.get(comma + 1..);
        rest.get(..comma).map(str::trim)
    }
}

/// Place, byte and depth of each character outside of quotes; a bracket has the depth outside of it.
fn outer(text: &str) -> impl Iterator<Item = (usize, u8, i64)> {
    let mut is_quoted = false;
    let mut depth = 0_i64;
    text.bytes().enumerate().filter_map(move |(at, c)| {
        if c == b'"' {
            is_quoted = !is_quoted;
        }
        if is_quoted || c == b'"' {
            return None;
        }
        depth -= i64::from(matches!(c, b']' | b')'));
        let here = depth;
        depth += i64::from(matches!(c, b'[' | b'('));
        Some((at, c, here))
    })
}

/// Whether every bracket and quote in `text` has its counterpart.
fn is_balanced(text: &str) -> bool {
    let mut open = 0_i64;
    let never_below = outer(text).all(|(_, c, depth)| {
        open += i64::from(matches!(c, b'[' | b'(')) - i64::from(matches!(c, b']' | b')'));
        depth >= 0
    });
    never_below && open == 0 && text.bytes().filter(|&c| c == b'"').count() % 2 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_a_name_children_and_an_id() {
        let text = r#" PROJCS["a, ""b""]", GEOGCS["g", AUTHORITY["EPSG","4326"]], PARAMETER["x", 9.5],
            AUTHORITY ( "EPSG", 32632 ) ] "#;
        let node = WktNode::parse(text).unwrap();
        assert_eq!(node.kind(), Some(CrsKind::Projected));
        assert_eq!(node.value(0).unwrap(), r#"a, "b"]"#);
        assert_eq!(node.items().count(), 4);
        let (authority, code) = node.id().unwrap();
        assert_eq!((&*authority, &*code), ("EPSG", "32632"));
        let parameter = node.child(&["parameter"]).unwrap();
        assert_eq!(parameter.number(1), Some(9.5));
        let base = node.child(&["GEOGCS"]).unwrap();
        assert_eq!(base.text(), r#"GEOGCS["g", AUTHORITY["EPSG","4326"]]"#);
    }

    #[test]
    fn the_keyword_tells_the_kind() {
        let kind = |text| WktNode::parse(text).and_then(|node| node.kind());
        assert_eq!(kind(r#"GEOGCRS["a"]"#), Some(CrsKind::Geographic));
        let geocentric = r#"GEODCRS["a", CS[Cartesian, 3]]"#;
        assert_eq!(kind(geocentric), Some(CrsKind::Other));
        let geodetic = r#"GEODCRS["a", CS[ellipsoidal, 2]]"#;
        assert_eq!(kind(geodetic), Some(CrsKind::Geographic));
        assert_eq!(kind(r#"COMPD_CS["a"]"#), Some(CrsKind::Other));
        assert_eq!(kind(r#"DATUM["a"]"#), None);
        assert_eq!(kind("CS[Cartesian, 2]"), None);
    }

    #[test]
    fn what_is_no_node_is_refused() {
        for text in [
            "",
            "EPSG:4326",
            "[1]",
            "PROJCS[",
            "PROJCS[\"a]",
            "PROJCS[a]]",
            "A[b], C[d]",
            "PROJCS[\"a\", B[1]",
            "a b[1]",
            "+proj=utm [1]",
        ] {
            assert!(WktNode::parse(text).is_none(), "{text}");
        }
        let deep = "A[".repeat(1 << 16) + &"]".repeat(1 << 16);
        assert_eq!(WktNode::parse(&deep).unwrap().items().count(), 1);
    }
}
