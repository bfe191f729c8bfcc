use super::*;

#[test]
fn the_wish_is_found_in_documents() {
    let paths = |paths: &[&str]| Wish::Have(paths.iter().map(ToString::to_string).collect());
    let v2 = br#"{"zarr_consolidated_format": 1, "metadata": {".zgroup": {}, "g/a/.zarray": {}}}"#;
    let v3 = br#"{"consolidated_metadata": {"kind": "inline", "metadata": {"g/a": {}}}}"#;
    let of = |name, written: &[u8], before: Option<&[u8]>| Wish::of((name, written), before);
    let found = of(DocumentName::ZMetadata, v2, None).unwrap();
    assert_eq!(found, Some(paths(&["", "g/a"])));
    let found = of(DocumentName::ZarrJson, v3, None).unwrap();
    assert_eq!(found, Some(paths(&["g/a"])));
    let found = of(DocumentName::ZarrJson, b"{}", Some(v3)).unwrap();
    assert_eq!(found, Some(Wish::Drop));
    assert_eq!(
        of(DocumentName::ZarrJson, b"{}", Some(b"{}")).unwrap(),
        None
    );
    assert!(of(DocumentName::ZMetadata, b"{}", None).is_err());
}

#[test]
fn a_mark_is_found_wherever_it_is_in_a_long_document() {
    const PART: usize = 1 << 20;
    for mark in MARKS {
        for at in [0, PART - 5, PART] {
            let mut text = vec![b' '; at];
            assert!(!has_mark_in(text.as_slice()).unwrap());
            text.extend(mark);
            assert!(has_mark_in(text.as_slice()).unwrap(), "{at}");
        }
    }
}
