use super::super::testing::{array, attributes, check_slices, counting, whole};
use super::*;

/// The cards without the blanks at their end, END left out.
fn cards(array: &Array) -> Vec<String> {
    let (header, _) = header(array).unwrap();
    assert_eq!(header.len() % 2880, 0);
    let text = String::from_utf8(header).unwrap();
    let cards: Vec<String> = (0..text.len() / 80)
        .map(|i| text[i * 80..][..80].trim_end().to_owned())
        .collect();
    let end = cards.iter().position(|card| card == "END").unwrap();
    assert!(cards[end + 1..].iter().all(String::is_empty));
    cards[..end].to_vec()
}

#[test]
fn cards_are_of_80_columns() {
    let mut array = array("t", r#""<i2""#, &[3, 4]);
    array.axes[0].name = Some("lat".to_owned());
    array.axes[0].unit = Some("degrees_north".to_owned());
    array.axes[0].spacing = Some(-0.5);
    array.axes[0].origin = Some(1e-7);
    array.axes[1].name = Some("ü".to_owned());
    array.axes[1].unit = Some("furlongs".to_owned());
    array.attributes = attributes(
        r#"{"units": "K'", "scale_factor": 0.01, "_FillValue": -1, "é": [1, "\ud83e\udd80"]}"#,
    );
    let expected = [
        "SIMPLE  =                    T",
        "BITPIX  =                   16",
        "NAXIS   =                    2",
        "NAXIS1  =                    4",
        "NAXIS2  =                    3",
        "BSCALE  =                 0.01",
        "BZERO   =                  0.0",
        "BLANK   =                   -1",
        "BUNIT   = 'K''     '",
        "CTYPE2  = 'lat     '",
        "CUNIT2  = 'deg     '",
        "CRPIX2  =                  1.0",
        "CRVAL2  =                 1E-7",
        "CDELT2  =                 -0.5",
        "HISTORY _FillValue = -1",
        r#"HISTORY \u00e9 = [1,"\ud83e\udd80"]"#,
    ];
    assert_eq!(cards(&array), expected);
}

#[test]
fn units_are_those_of_the_numbers_that_readers_get() {
    let units = |typestr: &str, json: &str| {
        let mut array = array("t", typestr, &[3]);
        array.attributes = attributes(json);
        array.axes[0].unit = Some("degree".to_owned());
        let cards = cards(&array);
        let has = |name: &str| cards.iter().any(|card| card.starts_with(name));
        assert!(!has("CUNIT1"), "readers would take an element for a degree");
        (has("BUNIT"), has("HISTORY units"))
    };
    let packed = r#"{"units": "K", "scale_factor": 0.01}"#;
    let unsigned = r#"{"units": "K", "scale_factor": 0.01, "_Unsigned": "true"}"#;
    assert_eq!(units(r#""<i2""#, packed), (true, false));
    assert_eq!(units(r#""<u2""#, packed), (false, true));
    assert_eq!(units(r#""<i2""#, unsigned), (false, true));
    assert_eq!(units(r#""<u2""#, r#"{"units": "K"}"#), (true, false));
}

#[test]
fn unsigned_numbers_are_shifted_by_half_their_range() {
    for (typestr, bits, zero, fill, blank) in [
        (r#""|i1""#, 8, "-128", "-128", "0"),
        (r#""<u2""#, 16, "32768", "65535", "32767"),
        (r#""<u4""#, 32, "2147483648", "0", "-2147483648"),
        (
            r#""<u8""#,
            64,
            "9223372036854775808",
            "18446744073709551615",
            "9223372036854775807",
        ),
    ] {
        let mut array = array("t", typestr, &[1]);
        let json = format!(r#"{{"_FillValue": {fill}, "scale_factor": 2}}"#);
        array.attributes = attributes(&json);
        let cards = cards(&array);
        for (card, value) in [
            ("BITPIX", &*bits.to_string()),
            ("BZERO", zero),
            ("BLANK", blank),
        ] {
            let card = format!("{card:<8}= {value:>20}");
            // Readers replace the wrong value if an int8 array has `BLANK`.
            let is_there = !(card.starts_with("BLANK") && bits == 8);
            assert_eq!(cards.contains(&card), is_there, "{card}");
        }
        assert!(cards.contains(&"BSCALE  =                    1".to_owned()));
        assert!(cards.contains(&"HISTORY scale_factor = 2".to_owned()));
    }
}

#[test]
fn elements_are_big_endian_in_blocks() {
    let array_of = |typestr| array("t", typestr, &[2]);
    for (typestr, stored, expected) in [
        (r#""<i2""#, &[1, 2, 3, 4][..], &[2, 1, 4, 3][..]),
        (r#""<u2""#, &[0, 0, 255, 255], &[0x80, 0, 0x7f, 0xff]),
        (r#""|i1""#, &[0x80, 0x7f], &[0, 255]),
        (r#""|u1""#, &[0, 255], &[0, 255]),
        (r#""|b1""#, &[0, 255], &[0, 1]),
        (
            r#""<f4""#,
            &[1, 2, 3, 4, 5, 6, 7, 8],
            &[4, 3, 2, 1, 8, 7, 6, 5],
        ),
    ] {
        let array = array_of(typestr);
        let layout = layout(&array).unwrap();
        assert_eq!(layout.len(), 2 * 2880);
        let file = whole(&layout, &[(&array, stored)]);
        assert_eq!(&file[2880..][..expected.len()], expected, "{typestr}");
        assert!(file[2880 + expected.len()..].iter().all(|&byte| byte == 0));
    }
    let array = array("t", r#""<u8""#, &[7, 60]);
    let layout = layout(&array).unwrap();
    assert_eq!(layout.len(), 2880 * 3);
    check_slices(&layout, &[(&array, &counting(&array, 2))]);
}

#[test]
fn long_attributes_are_left_out() {
    let mut array = array("t", r#""<i2""#, &[0]);
    let long = "x".repeat(5000);
    array.attributes = attributes(&format!(r#"{{"a": "{long}", "b": "{}"}}"#, &long[..100]));
    let cards = cards(&array);
    let history: Vec<&String> = cards
        .iter()
        .filter(|card| card.starts_with("HIST"))
        .collect();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0].len(), 80);
    assert_eq!(layout(&array).unwrap().len(), 2880);
}

#[test]
fn what_fits_lacks_is_refused_by_name() {
    for (typestr, shape, found) in [
        (r#""<f2""#, &[1][..], "data type: `<f2`"),
        (r#""<c8""#, &[1], "data type: `<c8`"),
        (r#""<m8[s]""#, &[1], "data type: `<m8[s]`"),
        (r#""<u2""#, &[], "shape: `[]`"),
        (r#""<u2""#, &[1; 1000], "shape: `[1, 1"),
    ] {
        let error = layout(&array("t", typestr, shape)).unwrap_err().to_string();
        assert!(error.starts_with(found), "{error}");
    }
}
