//! Sets in JSON of both versions, and sets that are not understood.

use super::*;
use crate::store::references::row::Found;

fn set(text: &str) -> Result<JsonSet, String> {
    read(text.as_bytes(), 1 << 20, &Progress::default())
}

fn found(set: &JsonSet, key: &str) -> Option<Found> {
    set.table.get(key.as_bytes())
}

fn inline(text: &str) -> Found {
    Found::Inline(text.as_bytes().to_vec().into())
}

#[test]
fn values_of_all_kinds_in_both_versions() {
    let refs = r#"{"x/.zarray": {"shape": [1],  "a": NAN}, "t": "ü\n", "b": "base64:AAH/",
        "x/0": ["u", 3, 4], "x/1": ["{{a}}/u"], "x/2": ["u", null, null]}"#;
    let refs = refs.replace("NAN", "null");
    let of_version_1 =
        format!(r#"{{"refs": {refs}, "templates": {{"a": "s3://b"}}, "version": 1}}"#);
    for text in [refs.as_str(), &of_version_1] {
        let set = set(text).unwrap();
        assert_eq!(
            found(&set, "x/.zarray"),
            Some(inline(r#"{"shape": [1],  "a": null}"#))
        );
        assert_eq!(found(&set, "t"), Some(inline("ü\n")));
        assert_eq!(
            found(&set, "b"),
            Some(Found::Inline(vec![0, 1, 255].into()))
        );
        assert_eq!(
            found(&set, "x/0"),
            Some(Found::At("u".into(), Some((3, 4))))
        );
        assert_eq!(found(&set, "x/1"), Some(Found::At("{{a}}/u".into(), None)));
        assert_eq!(found(&set, "x/2"), Some(Found::At("u".into(), None)));
        assert_eq!(found(&set, "x/3"), None);
    }
    let set = set(&of_version_1).unwrap();
    assert_eq!(set.templates.expand("{{a}}/u").unwrap(), "s3://b/u");
    assert_eq!(found(&set, "version"), None);
}

#[test]
fn generated_references() {
    let text = r#"{"version": 1, "templates": {"u": "s3://b", "f": "{{c}}.nc"}, "gen": [
        {"key": "x/{{i}}.{{j // 5}}", "url": "{{u}}/{{i}}.nc", "offset": "{{i * 100 + j}}", "length": 7,
         "dimensions": {"i": {"stop": 3}, "j": [0, 5]}},
        {"key": "y/{{i}}", "url": "{{f(c='t')}}", "dimensions": {"i": {"start": 9, "stop": 3, "step": -4}}},
        {"key": "z/{{i}}", "url": "u", "dimensions": {"i": {"stop": 0}, "j": {"stop": 9000000000}}}],
        "refs": {"x/2.1": "explicit", "a": "b"}}"#;
    let set = set(text).unwrap();
    for (key, address, range) in [
        ("x/0.0", "s3://b/0.nc", Some((0, 7))),
        ("x/1.1", "s3://b/1.nc", Some((105, 7))),
        // As in fsspec, a generated reference replaces a listed one.
        ("x/2.1", "s3://b/2.nc", Some((205, 7))),
        ("y/9", "t.nc", None),
        ("y/5", "t.nc", None),
    ] {
        assert_eq!(
            found(&set, key),
            Some(Found::At(address.into(), range)),
            "{key}"
        );
    }
    for key in ["x/3.0", "y/1", "y/3", "z/0"] {
        assert_eq!(found(&set, key), None, "{key}");
    }
    assert_eq!(found(&set, "a"), Some(inline("b")));
}

#[test]
fn texts_of_templates_are_bounded() {
    let (half, long) = ("x".repeat(500_000), "y".repeat(70_000));
    let text = |template: &str| {
        let refs = format!(r#"{{"x/0": ["{long}"], "x/1": ["{{{{a}}}}{{{{a}}}}"], "x/2": ["u"]}}"#);
        format!(r#"{{"version": 1, "templates": {{{template}}}, "refs": {refs}}}"#)
    };
    let set_with = set(&text(&format!(r#""a": "{half}""#))).unwrap();
    assert!(matches!(found(&set_with, "x/0"), Some(Found::Bad(_))));
    assert!(set_with.templates.expand("{{a}}{{a}}").is_err());
    assert!(set_with.memory_bytes() > 500_000);
    // Each is short enough by itself.
    let both = format!(r#""a": "{half}", "b": "{half}", "c": "{half}""#);
    assert!(set(&text(&both)).is_err());
}

#[test]
fn sets_that_are_not_understood_are_refused_by_name() {
    let long = format!(r#"{{"a": "{}"}}"#, "x".repeat(2 << 20));
    let dimensions = r#"{"i": {"stop": 100000}, "j": {"stop": 10000}}"#;
    let billion = format!(
        r#"{{"version": 1, "gen": [{{"key": "x/{{{{i}}}}.{{{{j}}}}", "url": "u", "dimensions": {dimensions}}}]}}"#
    );
    // No index of these keys names one dimension alone.
    let million = billion.replace("10000}", "10}").replace("}}.{{", "}}-{{");
    let names: Vec<_> = (0..7000).map(|n| format!(r#""{n}": """#)).collect();
    let many_templates = format!(r#"{{"version": 1, "templates": {{{}}}}}"#, names.join(","));
    let generator = |key: &str, values: &str| {
        format!(
            r#"{{"version": 1, "gen": [{{"key": "{key}", "url": "u", "dimensions": {{"i": {values}}}}}]}}"#
        )
    };
    let long_list = generator("x/{{i}}", &format!("[{}1]", "1,".repeat(140_000)));
    let long_key = generator(&"{{i}}".repeat(4000), "[1]");
    for (text, expected) in [
        ("", "EOF"),
        ("[]", "a set of references"),
        (r#"{"version": 2, "refs": {}}"#, "version 2"),
        (r#"{"refs": {}}"#, "not the version 1"),
        (r#"{"version": 1, "refs": []}"#, "references by their keys"),
        (r#"{"version": 1, "templates": {"a": 1}}"#, "not all texts"),
        (
            r#"{"version": 1, "templates": {"a": "b", "a": "c"}}"#,
            "twice",
        ),
        (
            &many_templates,
            "templates: the references take more than 1 MiB",
        ),
        (
            &long_list,
            "dimensions: i: the references take more than 1 MiB",
        ),
        (&long_key, "its expressions take too much memory"),
        (r#"{"a": "b""#, "EOF"),
        (r#"{"a": "b"} x"#, "trailing"),
        (&long, "more than 1 MiB"),
        (&billion, "makes 1000000000 references"),
        (&million, "more than 1 MiB"),
        (
            r#"{"version": 1, "gen": [{"key": "x/{{k}}", "url": "u", "dimensions": {"i": [1]}}]}"#,
            "called `k`",
        ),
        (
            r#"{"version": 1, "gen": [{"key": "x", "url": "u", "offset": 1, "dimensions": {}}]}"#,
            "together",
        ),
        (
            r#"{"version": 1, "gen": [{"key": "x", "url": "u", "dimensions": {"i": {"stop": 2, "step": 0}}}]}"#,
            "step is 0",
        ),
    ] {
        let problem = set(text).unwrap_err();
        let start: String = text.chars().take(60).collect();
        assert!(problem.contains(expected), "{start}: {problem}");
    }
}

#[test]
fn one_bad_value_spoils_its_own_key_alone() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = r#"{"a": 5, "b": ["u", 1], "deep": DEEP, "c": [null, 1, 2], "d": "base64:*", "e": ["u", -1, 2],
        "f": ["u", 9223372036854775808, 1], "x/0": ["{{ u|b }}"], "x/1": "good", "a//b": "x"}"#;
    let set = set(&text.replace("DEEP", &deep)).unwrap();
    for key in ["a", "b", "deep", "c", "d", "e", "f", "x/0"] {
        let found = found(&set, key);
        assert!(matches!(found, Some(Found::Bad(_))), "{key}: {found:?}");
    }
    assert_eq!(found(&set, "x/1"), Some(inline("good")));
    assert_eq!(set.n_invalid, 1);
}

#[test]
fn templates_that_name_themselves_are_not_followed() {
    let text =
        r#"{"version": 1, "templates": {"a": "{{b}}", "b": "{{a}}"}, "refs": {"x": ["{{a}}"]}}"#;
    let set = set(text).unwrap();
    let problem = set.templates.expand("{{a}}").unwrap_err();
    assert!(problem.contains("is a function"), "{problem}");
    let problem = set.templates.expand("{{a(b='x')}}");
    assert_eq!(problem.unwrap(), "x");
}
