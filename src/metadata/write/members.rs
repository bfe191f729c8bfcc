//! The text of a document.

/// The JSON of an object with one member in each line. The values are JSON already.
pub(super) fn document(members: &[(&str, &[u8])]) -> Vec<u8> {
    let lines: Vec<Vec<u8>> = members
        .iter()
        .map(|(name, value)| [b"  \"", name.as_bytes(), b"\": ", value].concat())
        .collect();
    [b"{\n", lines.join(&b",\n"[..]).as_slice(), b"\n}\n"].concat()
}
