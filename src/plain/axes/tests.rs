//! Multiscales of every version of OME-NGFF, as its pages show them, and CF coordinates.

use super::super::testing::attributes;
use super::*;

const NONE: [Option<String>; 5] = [const { None }; 5];

fn of_group(path: &str, group: &str, rank: usize) -> Vec<Axis> {
    of_ancestors(&[(path, group)], &[2; 5][..rank]).axes
}

fn of_ancestors(groups: &[(&str, &str)], shape: &[u64]) -> Surroundings {
    let groups = groups.iter().map(|(path, text)| (*path, attributes(text)));
    let groups: Vec<_> = groups.collect();
    let ancestors = groups.iter().map(|(path, attributes)| Ancestor {
        path,
        name: "cells.zarr",
        attributes,
    });
    let ancestors: Vec<_> = ancestors.collect();
    axes(shape, &NONE[..shape.len()], &ancestors, &[])
}

fn names(axes: &[Axis]) -> Vec<&str> {
    let names = axes.iter().map(|axis| axis.name.as_deref().unwrap_or("-"));
    names.collect()
}

fn spacings(axes: &[Axis]) -> Vec<Option<f64>> {
    axes.iter().map(|axis| axis.spacing).collect()
}

/// The example of version 0.4, which 0.5 puts into `ome`.
fn version_04(scale: &str, shared: &str) -> String {
    format!(
        r#"{{"multiscales": [{{
            "version": "0.4", "name": "example",
            "axes": [
                {{"name": "t", "type": "time", "unit": "millisecond"}},
                {{"name": "c", "type": "channel"}},
                {{"name": "z", "type": "space", "unit": "micrometer"}},
                {{"name": "y", "type": "space", "unit": "micrometer"}},
                {{"name": "x", "type": "space", "unit": "micrometer"}}
            ],
            "datasets": [
                {{"path": "0", "coordinateTransformations": [
                    {{"type": "scale", "scale": [1.0, 1.0, 0.5, 0.5, 0.5]}}]}},
                {{"path": "1", "coordinateTransformations": {scale}}}
            ],
            "coordinateTransformations": {shared}
        }}]}}"#
    )
}

const SCALE: &str = r#"[{"type": "scale", "scale": [1.0, 1.0, 1.0, 1.0, 2]}]"#;
const SHARED: &str = r#"[{"type": "scale", "scale": [0.1, 1.0, 1.0, 1.0, 1.0]}]"#;

#[test]
fn version_04_scales_the_dataset_and_then_all() {
    let axes = of_group("1", &version_04(SCALE, SHARED), 5);
    assert_eq!(names(&axes), ["t", "c", "z", "y", "x"]);
    assert_eq!(spacings(&axes), [0.1, 1.0, 1.0, 1.0, 2.0].map(Some));
    assert_eq!(axes[0].kind, AxisKind::Time);
    assert_eq!(axes[0].unit.as_deref(), Some("millisecond"));
    assert_eq!(axes[1].kind, AxisKind::Channel);
    assert_eq!(axes[1].unit, None);
    assert_eq!(axes[4].kind, AxisKind::Space);
    assert_eq!(axes[4].origin, None);
    let blank = version_04(SCALE, SHARED).replace("millisecond", " ");
    assert_eq!(of_group("1", &blank, 5)[0].unit, None);
    let axes = of_group("./0/", &version_04(SCALE, SHARED), 5);
    assert_eq!(spacings(&axes), [0.1, 1.0, 0.5, 0.5, 0.5].map(Some));
}

#[test]
fn translations_compose_in_order() {
    let own = r#"[{"type": "scale", "scale": [1, 1, 2, 2, 2]},
                  {"type": "translation", "translation": [0, 0, 10, 20, 30]}]"#;
    let shared = r#"[{"type": "scale", "scale": [1, 1, 1, 1, 3]},
                     {"type": "translation", "translation": [5, 0, 0, 0, 1]}]"#;
    let axes = of_group("1", &version_04(own, shared), 5);
    assert_eq!(spacings(&axes), [1.0, 1.0, 2.0, 2.0, 6.0].map(Some));
    let origins: Vec<Option<f64>> = axes.iter().map(|axis| axis.origin).collect();
    assert_eq!(origins, [5.0, 0.0, 10.0, 20.0, 91.0].map(Some));
    let cropped = axes[4].part(10, 1);
    assert_eq!((cropped.spacing, cropped.origin), (Some(6.0), Some(151.0)));
}

#[test]
fn transformations_to_several_systems_are_alternatives() {
    let to = |kind: &str, name: &str| {
        let axes = r#"[{"name": "x", "type": "space", "unit": "unit"}]"#;
        format!(
            r#"{{{kind}, "input": {{"name": "tczyx"}}, "output": {{"name": "{name}", "axes": {axes}}}}}"#
        )
    };
    let scale = |by: f64| format!(r#""type": "scale", "scale": [1, 1, 1, 1, {by}]"#);
    let moved = r#""type": "translation", "translation": [0, 0, 0, 0, 50]"#;
    let identity = r#""type": "identity""#;
    let sequence = format!(
        r#""type": "sequence", "transformations": [{{{}}}, {{{moved}}}]"#,
        scale(3.0)
    );
    for (shared, expected) in [
        (vec![to(&scale(3.0), "aligned")], Some((6.0, None))),
        (vec![to(&sequence, "aligned")], Some((6.0, Some(50.0)))),
        (
            vec![to(identity, "global"), to(&scale(0.17), "low")],
            Some((2.0, None)),
        ),
        (
            vec![to(&scale(10.0), "low"), to(&sequence, "global")],
            Some((6.0, Some(50.0))),
        ),
        (vec![to(&scale(3.0), "a"), to(moved, "b")], None),
        (vec![to(identity, "global"), to(moved, "global")], None),
        (vec![to(identity, "a"), format!("{{{moved}}}")], None),
    ] {
        let shared = format!("[{}]", shared.join(","));
        let text = version_04(SCALE, &shared).replace(r#""0.4""#, r#""0.4-dev-spatialdata""#);
        let found = of_ancestors(&[("1", &text)], &[2; 5]);
        let x = &found.axes[4];
        assert_eq!(x.spacing.map(|it| (it, x.origin)), expected, "{shared}");
        let reason = found.left_out.map(|reason| reason.to_string());
        assert_eq!(reason.is_none(), expected.is_some(), "{shared}");
        if let Some(reason) = reason {
            assert!(reason.contains("several coordinate systems"), "{reason}");
        }
    }
}

#[test]
fn version_05_is_within_ome() {
    let text = version_04(SCALE, SHARED).replace("0.4", "0.5");
    let axes = of_group("1", &format!(r#"{{"ome": {text}, "multiscales": 3}}"#), 5);
    assert_eq!(spacings(&axes), [0.1, 1.0, 1.0, 1.0, 2.0].map(Some));
    // From version 0.4 on, a multiscale without axes is invalid and skipped.
    let text = r#"{"ome": {"multiscales": [{"datasets": [{"path": "0"}]}]}}"#;
    assert_eq!(names(&of_group("0", text, 5)), ["-"; 5]);
}

#[test]
fn older_versions_name_axes_only() {
    for version in ["0.1", "0.2"] {
        let text = format!(
            r#"{{"multiscales": [{{"version": "{version}", "name": "example",
                "datasets": [{{"path": "0"}}, {{"path": "1"}}], "type": "gaussian",
                "metadata": {{"method": "skimage.transform.pyramid_gaussian"}}}}]}}"#
        );
        let axes = of_group("1", &text, 5);
        assert_eq!(names(&axes), ["t", "c", "z", "y", "x"]);
        assert_eq!(axes[1].kind, AxisKind::Channel);
        assert_eq!(spacings(&axes), [None; 5]);
        assert_eq!(names(&of_group("1", &text, 3)), ["-"; 3]);
        assert_eq!(names(&of_group("2", &text, 5)), ["-"; 5]);
    }
    let text = r#"{"multiscales": [{"version": "0.3", "axes": ["z", "y", "x"],
        "datasets": [{"path": "s0"}]}]}"#;
    let axes = of_group("s0", text, 3);
    assert_eq!(names(&axes), ["z", "y", "x"]);
    assert_eq!(axes[0].kind, AxisKind::Space);
    assert_eq!(spacings(&axes), [None; 3]);
}

#[test]
fn ill_formed_transformations_give_no_sizes() {
    let cases = [
        "[]",
        "null",
        r#"{"type": "scale", "scale": [1, 1, 1, 1, 1]}"#,
        r#"[{"type": "scale", "scale": [1, 1, 1, 1]}]"#,
        r#"[{"type": "scale", "scale": [1, 1, 1, 1, 1, 1]}]"#,
        r#"[{"type": "scale", "scale": [1, 1, 1, 1, NaN]}]"#,
        r#"[{"type": "scale", "scale": [1, 1, 1, 1, 1e999]}]"#,
        r#"[{"type": "scale", "scale": [1, 1, 1, 1, "1"]}]"#,
        r#"[{"type": "scale", "path": "scales"}]"#,
        r#"[{"type": "rotation", "rotation": [1]}]"#,
        r#"[{"type": "translation", "translation": [1, 1, 1, 1, 1]}]"#,
        r#"[{"type": "translation", "translation": [1, 1, 1, 1, 1]},
            {"type": "scale", "scale": [1, 1, 1, 1, 1]}]"#,
        r#"[{"type": "scale", "scale": [1, 1, 1, 1, 1]},
            {"type": "scale", "scale": [1, 1, 1, 1, 1]}]"#,
        r#"[{"type": "scale", "scale": [1e-300, 1, 1, 1, 1]},
            {"type": "translation", "translation": [1, 1]}]"#,
    ];
    for case in cases {
        let axes = of_group("1", &version_04(case, SHARED), 5);
        assert_eq!(names(&axes), ["t", "c", "z", "y", "x"], "{case}");
        assert_eq!(spacings(&axes), [None; 5], "{case}");
        assert!(axes.iter().all(|axis| axis.unit.is_none()), "{case}");
    }
    // The scale that all datasets share may be absent but not invalid. A product of scales may be
    // too small.
    let tiny = r#"[{"type": "scale", "scale": [1e-300, 1, 1, 1, 1]}]"#;
    for (own, shared) in [(SCALE, r#"[{"type": "scale"}]"#), (tiny, tiny)] {
        let axes = of_group("1", &version_04(own, shared), 5);
        assert_eq!(spacings(&axes), [None; 5], "{shared}");
    }
    let axes = of_group("1", &version_04(SCALE, "[]"), 5);
    assert_eq!(spacings(&axes), [1.0, 1.0, 1.0, 1.0, 2.0].map(Some));
}

#[test]
fn an_axis_without_a_positive_scale_has_no_size() {
    let units = [Some("millisecond"), None].into_iter();
    let units: Vec<_> = units.chain([Some("micrometer"); 3]).collect();
    let moved = r#"{"type": "translation", "translation": [3, 0, 0, 4, 5]}"#;
    for (scale, without) in [
        ("[0.0, 1, 1, 0.5, 2]", &[0][..]),
        ("[1, 1, 1, -0.5, 2]", &[3]),
        ("[1, 0, 1, -0.5, 2]", &[1, 3]),
        ("[-1, 0, -0.0, 0, -1]", &[0, 1, 2, 3, 4]),
    ] {
        let own = format!(r#"[{{"type": "scale", "scale": {scale}}}, {moved}]"#);
        let found = of_ancestors(&[("1", &version_04(&own, SHARED))], &[2; 5]);
        for (i, (axis, unit)) in found.axes.iter().zip(&units).enumerate() {
            let is_placed = !without.contains(&i);
            assert_eq!(axis.spacing.is_some(), is_placed, "{scale} {i}");
            assert_eq!(axis.origin.is_some(), is_placed, "{scale} {i}");
            let unit = unit.filter(|_| is_placed);
            assert_eq!(axis.unit.as_deref(), unit, "{scale} {i}");
        }
        let reason = found.left_out.unwrap().to_string();
        let named = without
            .iter()
            .map(|&i| format!("`{}`", names(&found.axes)[i]));
        let named = named.collect::<Vec<_>>().join(", ");
        assert!(reason.contains(&format!("along {named} is")), "{reason}");
    }
    let output = r#""output": {"name": "own"}"#;
    let text = version_06(&format!(
        r#"[{{"type": "scale", "scale": [-2, 3], {output}}}]"#
    ));
    let found = of_ancestors(&[("s0", &text)], &[4, 5]);
    assert_eq!(spacings(&found.axes), [None, Some(3.0)]);
    // The error names no more than it has room for.
    let axes: Vec<String> = (0..30)
        .map(|n| format!(r#""{n}{}""#, "a".repeat(1000)))
        .collect();
    let text = format!(
        r#"{{"multiscales": [{{"axes": [{}], "datasets": [{{"path": "0", "coordinateTransformations":
            [{{"type": "scale", "scale": {:?}}}]}}]}}]}}"#,
        axes.join(","),
        [0; 30]
    );
    let groups = attributes(&text);
    let ancestor = Ancestor {
        path: "0",
        name: "",
        attributes: &groups,
    };
    let found = super::axes(&[2; 30], &[const { None }; 30], &[ancestor], &[]);
    assert!(found.left_out.unwrap().to_string().len() < 500);
}

#[test]
fn ill_formed_axes_are_no_axes() {
    for axes in [
        r#"["y"]"#,
        r#"["x", "x"]"#,
        "[1, 2]",
        r#"[{"name": "y"}, {"type": "space"}]"#,
        r#"[{"name": "y"}, {"name": "x", "type": 1}]"#,
        r#"{"y": 1, "x": 2}"#,
        "null",
    ] {
        let text =
            format!(r#"{{"multiscales": [{{"axes": {axes}, "datasets": [{{"path": "0"}}]}}]}}"#);
        assert_eq!(names(&of_group("0", &text, 2)), ["-", "-"], "{axes}");
    }
    for text in [
        r#"{"multiscales": {}}"#,
        r#"{"multiscales": [1]}"#,
        r#"{"multiscales": [{"axes": ["y", "x"], "datasets": [{"path": "../0"}]}]}"#,
        r#"{"multiscales": [{"axes": ["y", "x"], "datasets": {"path": "0"}}]}"#,
        r#"{"ome": 3}"#,
    ] {
        assert_eq!(names(&of_group("0", text, 2)), ["-", "-"], "{text}");
    }
}

#[test]
fn a_dataset_may_lie_deeper_and_its_axes_may_be_anything() {
    let text = r#"{"multiscales": [
        {"axes": ["y", "x"], "datasets": [{"path": "a/1"}]},
        {"axes": [{"name": "angle", "type": "angle"}, {"name": "q", "type": null}],
         "datasets": [{"path": "./a/0", "coordinateTransformations":
            [{"type": "identity"}, {"type": "scale", "scale": [2, 3]}]}]}]}"#;
    let axes = of_ancestors(&[("0", "{}"), ("a/0", text)], &[2, 2]).axes;
    assert_eq!(names(&axes), ["angle", "q"]);
    assert_eq!(axes[0].kind, AxisKind::Other);
    assert_eq!(spacings(&axes), [Some(2.0), Some(3.0)]);
}

#[test]
fn coordinates_say_what_dimensions_are() {
    use AxisKind::{Other, Space, Time};
    let named = ["time", "lev", "south_north", "lon", "member"].map(|name| Some(name.to_owned()));
    let time = attributes(r#"{"units": "days since 1970-01-01", "calendar": "standard"}"#);
    let south = attributes(r#"{"units": "degrees_north"}"#);
    let member = attributes(r#"{"units": ["m"], "axis": 3}"#);
    let coordinates = [
        ("time", &time),
        ("south_north", &south),
        ("member", &member),
    ];
    let axes = axes(&[2; 5], &named, &[], &coordinates).axes;
    let kinds: Vec<AxisKind> = axes.iter().map(|axis| axis.kind).collect();
    assert_eq!(kinds, [Time, Space, Space, Space, Other]);
    let units: Vec<Option<&str>> = axes.iter().map(|axis| axis.unit.as_deref()).collect();
    assert_eq!(
        units,
        [Some("days"), None, Some("degrees_north"), None, None]
    );
    assert_eq!(spacings(&axes), [None; 5]);
}

#[test]
fn an_axis_of_channels_has_those_of_omero_if_they_are_as_many() {
    let omero = r#""omero": {"channels": [{"label": "DAPI"}, {"label": "GFP"}]}"#;
    let old = version_04(SCALE, SHARED).replacen('{', &format!("{{{omero},"), 1);
    let new = format!(r#"{{"ome": {}, "omero": 3}}"#, old.replace("0.4", "0.5"));
    for text in [&old, &new] {
        let found = of_ancestors(&[("1", text)], &[1, 2, 3, 4, 5]);
        let [t, c, ..] = &found.axes[..] else {
            panic!("five axes");
        };
        let labels: Vec<_> = c.channels.iter().map(|it| it.label.as_deref()).collect();
        assert_eq!(labels, [Some("DAPI"), Some("GFP")]);
        assert!(t.channels.is_empty());
        let second = c.part(1, 1).channels;
        assert_eq!(second, c.channels[1..]);
        for n in [1, 3] {
            let found = of_ancestors(&[("1", text)], &[1, n, 3, 4, 5]);
            assert!(found.axes[1].channels.is_empty(), "{n}");
        }
    }
}

#[test]
fn an_image_has_the_name_of_its_multiscale_or_group() {
    let image = |name: &str| {
        let text = version_04(SCALE, SHARED).replace(r#""name": "example","#, name);
        of_ancestors(&[("1", &text)], &[2; 5]).image
    };
    assert_eq!(image(r#""name": "example","#).as_deref(), Some("example"));
    for unnamed in ["", r#""name": 3,"#, r#""name": "/","#, r#""name": "","#] {
        assert_eq!(image(unnamed).as_deref(), Some("cells.zarr"), "{unnamed}");
    }
    assert_eq!(of_ancestors(&[("7", "{}")], &[2; 5]).image, None);
}

/// A multiscale of version 0.6 with these transformations of its dataset.
fn version_06(transformations: &str) -> String {
    format!(
        r#"{{"ome": {{"version": "0.6", "multiscales": [{{
            "name": "example",
            "coordinateSystems": [
                {{"name": "world", "axes": [{{"name": "b"}}, {{"name": "a"}}]}},
                {{"name": "own", "axes": [
                    {{"name": "y", "type": "space", "unit": "micrometer"}},
                    {{"name": "x", "type": "space", "unit": "micrometer"}}]}}
            ],
            "datasets": [{{"path": "s0", "coordinateTransformations": {transformations}}}],
            "coordinateTransformations": [
                {{"type": "scale", "scale": [10, 10], "input": {{"name": "own"}}, "output": {{"name": "world"}}}}]
        }}]}}}}"#
    )
}

#[test]
fn version_06_leads_to_the_system_of_the_image() {
    let output = r#""input": {"path": "s0"}, "output": {"name": "own"}"#;
    let steps =
        r#"{"type": "scale", "scale": [0.5, 2]}, {"type": "translation", "translation": [1, 0]}"#;
    let cases = [
        (
            format!(r#"[{{"type": "scale", "scale": [0.5, 2], {output}}}]"#),
            [(0.5, None), (2.0, None)],
        ),
        (
            format!(r#"[{{"type": "identity", {output}}}]"#),
            [(1.0, None), (1.0, None)],
        ),
        (
            format!(r#"[{{"type": "sequence", "transformations": [{steps}], {output}}}]"#),
            [(0.5, Some(1.0)), (2.0, Some(0.0))],
        ),
        // A translation before a scale is scaled, and drafts refer to systems by their names.
        (
            r#"[{"type": "sequence", "input": "s0", "output": "own", "transformations": [
                {"type": "translation", "translation": [1, 2]},
                {"type": "sequence", "transformations": [{"type": "scale", "scale": [2, 3]}, {"type": "identity"}]}]}]"#
                .to_owned(),
            [(2.0, Some(2.0)), (3.0, Some(6.0))],
        ),
    ];
    for (transformations, expected) in cases {
        let found = of_ancestors(&[("s0", &version_06(&transformations))], &[4, 5]);
        assert_eq!(names(&found.axes), ["y", "x"], "{transformations}");
        let places = found.axes.iter();
        let places: Vec<_> = places.map(|axis| (axis.spacing, axis.origin)).collect();
        let expected = expected.map(|(spacing, origin)| (Some(spacing), origin));
        assert_eq!(places, expected, "{transformations}");
        assert_eq!(found.axes[0].unit.as_deref(), Some("micrometer"));
        assert_eq!(found.left_out, None);
    }
}

#[test]
fn transformations_without_voxel_sizes_are_named() {
    let output = r#""output": {"name": "own"}"#;
    let nested = (0..10).fold(r#"{"type": "identity"}"#.to_owned(), |inner, _| {
        format!(r#"{{"type": "sequence", {output}, "transformations": [{inner}]}}"#)
    });
    let long = "r".repeat(1 << 20);
    for (transformation, expected) in [
        (
            r#"{"type": "affine", "affine": [[1, 0, 0], [0, 1, 0]], OUT}"#,
            "`affine`",
        ),
        (r#"{"type": "rotation", "path": "r", OUT}"#, "`rotation`"),
        (r#"{"type": "scale", "scale": [1], OUT}"#, "for each axis"),
        (
            r#"{"type": "sequence", "transformations": 3, OUT}"#,
            "must be a list",
        ),
        (r#"{"scale": [1, 1], OUT}"#, "must be a list"),
        (
            r#"{"type": "identity", OUT}, {"type": "identity"}"#,
            "must be one",
        ),
        (&nested, "`sequence`"),
        (&format!(r#"{{"type": "{long}", {output}}}"#), "`rrr"),
    ] {
        let transformation = transformation.replace("OUT", output);
        let text = version_06(&format!("[{transformation}]"));
        let found = of_ancestors(&[("s0", &text)], &[4, 5]);
        assert_eq!(names(&found.axes), ["y", "x"]);
        assert_eq!(spacings(&found.axes), [None; 2]);
        assert!(found.axes.iter().all(|axis| axis.unit.is_none()));
        let reason = found.left_out.unwrap().to_string();
        assert!(reason.contains(expected), "{reason}");
        assert!(
            reason.len() < 200 && reason.contains("left out"),
            "{reason}"
        );
    }
    // Without a system that the dataset leads to, the axes are unknown.
    for transformations in [
        "[]",
        "3",
        r#"[{"type": "identity"}]"#,
        r#"[{"type": "identity", "output": {"name": "none"}}]"#,
        r#"[{"type": "identity", "output": 7}]"#,
    ] {
        let found = of_ancestors(&[("s0", &version_06(transformations))], &[4, 5]);
        assert_eq!(names(&found.axes), ["-", "-"], "{transformations}");
    }
}

#[test]
fn fields_of_wells_have_the_name_of_their_place() {
    let image = |name: &str| {
        format!(
            r#"{{"multiscales": [{{"axes": ["y", "x"], {name} "datasets": [{{"path": "0"}}]}}]}}"#
        )
    };
    let well = r#"{"well": {"images": [{"path": "1"}, {"path": "0"}]}}"#;
    let plate = |name: &str, path: &str| {
        format!(
            r#"{{"ome": {{"plate": {{{name} "wells": [{{"path": "A/1"}}, {{"path": "{path}"}}]}}}}}}"#
        )
    };
    let named = |image: &str, well: &str, plate: &str| {
        let texts = [
            ("0", image),
            ("0/0", well),
            ("1/0/0", "{}"),
            ("B/1/0/0", plate),
        ];
        let groups = texts.map(|(path, text)| (path, attributes(text)));
        let groups: Vec<_> = groups
            .iter()
            .zip(["0", "1", "B", "p.zarr"])
            .map(|((path, attributes), name)| Ancestor {
                path,
                name,
                attributes,
            })
            .collect();
        axes(&[2, 2], &NONE[..2], &groups, &[]).image.unwrap()
    };
    let (none, path) = (image(""), image(r#""name": "/B/1/0","#));
    let (own, screen) = (plate("", "B/1"), plate(r#""name": "screen","#, "B/1"));
    assert_eq!(named(&none, well, &own), "B/1 field 0");
    assert_eq!(named(&path, well, &screen), "screen B/1 field 0");
    assert_eq!(named(&image(r#""name": "mine","#), well, &own), "mine");
    for (well, plate) in [
        (r#"{"well": {"images": [{"path": "3"}]}}"#, &own),
        (r#"{"well": 3}"#, &own),
        (well, &plate("", "B/2")),
        (well, &r#"{"plate": {"wells": {}}}"#.to_owned()),
    ] {
        assert_eq!(named(&none, well, plate), "0", "{well} {plate}");
    }
}
