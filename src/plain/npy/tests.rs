use super::super::testing::{array, check_slices, counting, whole};
use super::*;

/// The header of `np.save`: version, text without blanks at its end, and length in bytes.
fn told(typestr: &str, shape: &[u64]) -> (u8, String, usize) {
    let header = header(&array("t", typestr, shape)).unwrap();
    assert_eq!(&header[..6], b"\x93NUMPY");
    assert_eq!(header[7], 0);
    assert_eq!(header.len() % 64, 0);
    let (length, text) = if header[6] == 1 {
        let length = u16::from_le_bytes([header[8], header[9]]);
        (usize::from(length), &header[10..])
    } else {
        let length = header[8..12].first_chunk::<4>().unwrap();
        (u32::from_le_bytes(*length) as usize, &header[12..])
    };
    assert_eq!(length, text.len());
    let text = String::from_utf8(text.to_vec()).unwrap();
    let text = text.strip_suffix('\n').unwrap();
    (header[6], text.trim_end().to_owned(), header.len())
}

#[test]
fn types_have_numpys_names() {
    for (typestr, descr) in [
        (r#""|b1""#, "'|b1'"),
        (r#""|i1""#, "'|i1'"),
        (r#"">u8""#, "'<u8'"),
        (r#""<f2""#, "'<f2'"),
        (r#""<c16""#, "'<c16'"),
        (r#""<M8[25us]""#, "'<M8[25us]'"),
        (r#""<m8[ns]""#, "'<m8[ns]'"),
        (r#""<M8""#, "'<M8'"),
        (r#""|S7""#, "'|S7'"),
        (r#"">U7""#, "'<U7'"),
        (r#""|V7""#, "'|V7'"),
        (
            r#"[["a",">i2"],["b","|u1"],["c","<f8",[2,3]],["d","|S1",4]]"#,
            "[('a', '>i2'), ('b', '|u1'), ('c', '<f8', (2, 3)), ('d', '|S1', (4,))]",
        ),
        (
            r#"[[["title","a"],"|u1"],["","|V2"],["","|V1"],["r",[["x",">U2"],["","|V3"]],[2]]]"#,
            "[('a', '|u1'), ('', '|V3'), ('r', [('x', '>U2'), ('', '|V3')], (2,))]",
        ),
    ] {
        let (version, text, _) = told(typestr, &[3, 4]);
        let expected = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (3, 4), }}");
        assert_eq!((version, text), (1, expected), "{typestr}");
    }
}

#[test]
fn shapes_are_tuples_with_room_to_grow() {
    for (shape, tuple, len) in [
        (&[][..], "()", 128),
        (&[5], "(5,)", 128),
        (&[0, 2], "(0, 2)", 128),
        // 68 characters, 20 blanks to grow, the line feed and ten bytes before: 99.
        (&[1, 1_000_000_000, 1], "(1, 1000000000, 1)", 128),
        // With 97 characters, no blank is needed to get to 128, but NumPy adds 64.
        (
            &[1, 1_000_000_000, 1_000_000_000_000_000_000, 11_111_111],
            "(1, 1000000000, 1000000000000000000, 11111111)",
            192,
        ),
    ] {
        let (_, text, found) = told(r#""<u2""#, shape);
        assert_eq!(
            text,
            format!("{{'descr': '<u2', 'fortran_order': False, 'shape': {tuple}, }}")
        );
        assert_eq!(found, len, "{shape:?}");
    }
}

#[test]
fn long_headers_and_names_beyond_latin_1_raise_the_version() {
    let fields = |n: usize, letter: &str| {
        let fields: Vec<String> = (0..n)
            .map(|i| format!(r#"["{letter}{i:05}","|u1"]"#))
            .collect();
        format!("[{}]", fields.join(","))
    };
    assert_eq!(told(&fields(3000, "a"), &[2]).0, 1);
    assert_eq!(told(&fields(4000, "a"), &[2]).0, 2);
    assert_eq!(told(&fields(1, "日"), &[2]).0, 3);
    let latin1 = header(&array("t", &fields(1, "é"), &[2])).unwrap();
    assert_eq!(latin1[6], 1);
    assert!(latin1.windows(8).any(|bytes| bytes == b"('\xe900000"));
}

#[test]
fn what_numpy_lacks_is_refused_by_name() {
    for (typestr, name) in [
        (r#""bfloat16""#, "bfloat16"),
        (r#""float8_e5m2""#, "float8_e5m2"),
        (r#""int4""#, "int4"),
        (r#""complex_float16""#, "complex_float16"),
        (r#"[["a",[["b","bfloat16"]]]]"#, "a.b"),
        (r#"[["a","|u1"],["a","|u1"]]"#, "a"),
        (r#"[["","<i4"]]"#, "structured"),
    ] {
        let error = layout(&array("t", typestr, &[1])).unwrap_err().to_string();
        assert!(error.contains(&format!("`{name}` cannot be")), "{error}");
    }
}

#[test]
fn elements_follow_the_header() {
    let array = array("t", r#""<i4""#, &[2, 3, 5]);
    let elements = counting(&array, 1);
    let layout = layout(&array).unwrap();
    assert_eq!(layout.len(), 128 + 120);
    let file = whole(&layout, &[(&array, &elements)]);
    assert_eq!(&file[128..], elements);
    check_slices(&layout, &[(&array, &elements)]);
}
