//! The CRS of EPSG's dataset, as Well-Known Text of version 1, for stores that give only its code.

use super::wkt::WktNode;

/// The CRS with the number `code`; `None` if the table lacks it.
pub(super) fn wkt(code: u16) -> Option<String> {
    let text = crs_definitions::from_code(code)?.wkt;
    let node = WktNode::parse(text)?;
    // In a few definitions, the CRS is inside a transformation to WGS 84. The transformation is no
    // part of the CRS.
    let source = node.child(&["SOURCECRS"]);
    let source = source.and_then(|source| WktNode::parse(source.items().next()?));
    let node = source.unwrap_or(node);
    node.kind()?;
    // For some codes, the table has the definition of the CRS that has replaced the one with this
    // code.
    let (authority, own) = node.id()?;
    if authority != "EPSG" || own != code.to_string() {
        return None;
    }
    Some(without_shifts(node.text()))
}

/// `text` without its nodes `TOWGS84`. Such a node describes one of several shifts to WGS 84 that
/// are in use, and is no part of the CRS either.
fn without_shifts(text: &str) -> String {
    const SHIFT: &str = ",TOWGS84[";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(SHIFT) {
        out.push_str(before);
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::super::kind::CrsKind;
    use super::*;

    #[test]
    fn each_definition_has_its_own_code() {
        let mut known = [0; 3];
        for code in 1..=u16::MAX {
            let Some(text) = wkt(code) else { continue };
            assert!(!text.contains("TOWGS84"), "{text}");
            let node = WktNode::parse(&text).unwrap();
            let (authority, of_text) = node.id().unwrap();
            assert_eq!((&*authority, &*of_text), ("EPSG", &*code.to_string()));
            let place = match node.kind().unwrap() {
                CrsKind::Geographic => 0,
                CrsKind::Projected => 1,
                CrsKind::Other => 2,
            };
            known[place] += 1;
        }
        assert!(
            known[0] > 500 && known[1] > 4900 && known[2] > 400,
            "{known:?}"
        );
    }
}
