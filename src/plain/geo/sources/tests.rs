use super::super::super::testing::attributes;
use super::*;

const TRANSFORM: Affine = [500_000.0, 10.0, 0.0, 4_600_000.0, 0.0, -10.0];

/// An array with dimensions t, y and x of 2, 3 and 4 elements, and the groups above it: the path of the array in each,
/// and its attributes.
fn of(own: &str, groups: &[(&str, &str)], mapping: Option<&str>) -> GeoFacts {
    of_names(&["t", "y", "x"], own, groups, mapping)
}

fn of_names(names: &[&str], own: &str, groups: &[(&str, &str)], mapping: Option<&str>) -> GeoFacts {
    let groups: Vec<_> = groups
        .iter()
        .map(|(path, json)| (*path, attributes(json)))
        .collect();
    let ancestors = groups.iter().map(|(path, attributes)| Ancestor {
        path,
        name: "g",
        attributes,
    });
    let ancestors: Vec<_> = ancestors.collect();
    let names: Vec<_> = names.iter().map(|name| Some((*name).to_owned())).collect();
    let mapping = mapping.map(attributes);
    let coordinate = Attributes::default();
    GeoSources {
        shape: &[2, 3, 4],
        dimension_names: &names,
        attributes: &attributes(own),
        ancestors: &ancestors,
        coordinates: &[("y", &coordinate), ("x", &coordinate)],
        grid_mapping: mapping.as_ref(),
    }
    .find()
}

/// The code of the CRS, and the transform.
fn told(facts: &GeoFacts) -> (Option<String>, Option<Affine>) {
    assert_eq!(facts.problems, []);
    let known = facts.known.as_deref();
    let crs = known.and_then(|known| known.crs.as_ref());
    let code = crs.and_then(Crs::code).map(|code| code.to_string());
    (code, known.and_then(|known| known.transform))
}

#[test]
fn a_grid_mapping_comes_first() {
    let mapping = r#"{"crs_wkt": "PROJCRS[\"a\",ID[\"EPSG\",32632]]",
        "GeoTransform": "500000.0 10.0 0.0 4600000.0 0.0 -10.0"}"#;
    let facts = of(r#"{"_CRS": {"url": "EPSG:4326"}}"#, &[], Some(mapping));
    assert_eq!(
        told(&facts),
        (Some("EPSG:32632".to_owned()), Some(TRANSFORM))
    );
    // Coordinates may be newer than the transform.
    assert_eq!(facts.coordinates, Some(["y".to_owned(), "x".to_owned()]));
}

#[test]
fn gdal_has_its_own_attributes() {
    let own = r#"{"_CRS": {"url": "http://www.opengis.net/def/crs/EPSG/0/32632",
            "wkt": "PROJCRS[\"a\",ID[\"EPSG\",32632]]", "projjson": {"type": "ProjectedCRS"}},
        "gdal:geotransform": [500000, 10, 0, 4600000, 0, -10]}"#;
    let facts = of(own, &[], None);
    assert_eq!(
        told(&facts),
        (Some("EPSG:32632".to_owned()), Some(TRANSFORM))
    );
    assert_eq!(facts.coordinates, None);
    assert_eq!(facts.axes, [1, 2]);
}

#[test]
fn geozarr_is_inherited_by_children_alone() {
    let group = r#"{"proj:code": "EPSG:32632", "spatial:dimensions": ["y", "x"],
        "spatial:transform": [10, 0, 500000, 0, -10, 4600000], "spatial:shape": [3, 4]}"#;
    let child = of("{}", &[("a", group)], None);
    assert_eq!(
        told(&child),
        (Some("EPSG:32632".to_owned()), Some(TRANSFORM))
    );
    assert_eq!(
        told(&of("{}", &[("a", "{}"), ("b/a", group)], None)),
        (None, None)
    );
    let own = of(
        r#"{"proj:code": null, "proj:projjson": {"type": "ProjectedCRS"}}"#,
        &[("a", group)],
        None,
    );
    assert_eq!(told(&own), (None, Some(TRANSFORM)));
    // The dimensions may be in another order.
    let turned = of_names(
        &["x", "t", "y"],
        r#"{"spatial:dimensions": ["y", "x"],
        "spatial:transform": [10, 0, 500000, 0, -10, 4600000]}"#,
        &[],
        None,
    );
    assert_eq!(turned.axes, [2, 0]);
    assert_eq!(turned.known.unwrap().transform, Some(TRANSFORM));
    let other = of_names(&["t", "lat", "lon"], "{}", &[("a", group)], None);
    assert_eq!(told(&other), (Some("EPSG:32632".to_owned()), None));
}

#[test]
fn nodes_are_half_a_pixel_away() {
    let own = r#"{"spatial:registration": "node", "spatial:transform": [10, 0, 500005, 0, -10, 4599995]}"#;
    assert_eq!(told(&of(own, &[], None)), (None, Some(TRANSFORM)));
}

#[test]
fn a_level_of_a_pyramid_has_its_own_transform() {
    let pyramid = r#"{"proj:code": "EPSG:32632", "spatial:dimensions": ["y", "x"],
        "spatial:transform": [5, 0, 0, 0, -5, 0],
        "multiscales": {"layout": [{"asset": "0", "spatial:transform": [5, 0, 0, 0, -5, 0]},
            {"asset": "r10m", "spatial:shape": [3, 4],
             "spatial:transform": [10, 0, 500000, 0, -10, 4600000]}, {"asset": "r20m"}]}}"#;
    let known = (Some("EPSG:32632".to_owned()), Some(TRANSFORM));
    assert_eq!(
        told(&of("{}", &[("b02", "{}"), ("r10m/b02", pyramid)], None)),
        known
    );
    assert_eq!(told(&of("{}", &[("r10m", pyramid)], None)), known);
    // The transform of the group is that of the first level.
    assert_eq!(
        told(&of("{}", &[("r20m", pyramid)], None)),
        (Some("EPSG:32632".to_owned()), None)
    );
    let below = told(&of(
        "{}",
        &[("a", "{}"), ("m/a", "{}"), ("r10m/m/a", pyramid)],
        None,
    ));
    assert_eq!(below, (None, None));
}

#[test]
fn products_of_eopf_have_one_crs() {
    let own = r#"{"proj:epsg": 32632, "proj:transform": [10, 0, 500000, 0, -10, 4600000, 0, 0, 1],
        "proj:shape": [3, 4], "proj:wkt2": "PROJCS[\"a\"]"}"#;
    assert_eq!(
        told(&of(own, &[], None)),
        (Some("EPSG:32632".to_owned()), Some(TRANSFORM))
    );
    for product in [
        r#"{"other_metadata": {"horizontal_CRS_code": "EPSG:32632"}}"#,
        r#"{"stac_discovery": {"properties": {"proj:epsg": 32632}}}"#,
        r#"{"stac_discovery": {"properties": {"proj:code": "EPSG:32632"}}, "other_metadata": {}}"#,
    ] {
        let groups = [("b02", "{}"), ("r10m/b02", "{}"), ("m/r10m/b02", product)];
        assert_eq!(
            told(&of("{}", &groups, None)),
            (Some("EPSG:32632".to_owned()), None),
            "{product}"
        );
        let swath = of_names(&["t", "rows", "columns"], "{}", &groups, None);
        assert_eq!(told(&swath), (None, None));
    }
}

#[test]
fn coordinates_alone_are_read_and_tell_no_crs() {
    let facts = of("{}", &[], None);
    assert_eq!(told(&facts), (None, None));
    assert_eq!(facts.coordinates, Some(["y".to_owned(), "x".to_owned()]));
    assert_eq!(
        of_names(&["t", "lat", "lon"], "{}", &[], None).coordinates,
        None
    );
}

#[test]
fn what_is_wrong_is_told_and_not_replaced() {
    let group = [(
        "a",
        r#"{"proj:code": "EPSG:4326", "spatial:transform": [1, 0, 0, 0, 1, 0]}"#,
    )];
    for (own, reason) in [
        (r#"{"_CRS": 7}"#, "`_CRS`: it is no object"),
        (r#"{"_CRS": {"url": 7}}"#, "no code of a CRS"),
        (r#"{"_CRS": {"wkt": [1]}}"#, "`wkt` is no text"),
        (
            r#"{"_CRS": {"wkt": "+proj=longlat"}}"#,
            "neither Well-Known Text",
        ),
        (r#"{"proj:projjson": "x"}"#, "no PROJJSON"),
        (r#"{"proj:epsg": 1.5}"#, "no code of a CRS"),
        (
            r#"{"spatial:transform": [0, 0, 0, 0, 0, 0]}"#,
            "no transform",
        ),
        (
            r#"{"spatial:transform": [1, 0, NaN, 0, 1, 0]}"#,
            "no transform",
        ),
        (r#"{"spatial:transform": "x"}"#, "neither six numbers"),
        (
            r#"{"spatial:transform": [1, 0, 0, 0, 1, 0], "spatial:shape": [9, 9]}"#,
            "another size",
        ),
        (
            r#"{"spatial:transform": [1, 0, 0, 0, 1, 0], "spatial:registration": 1}"#,
            "neither `pixel`",
        ),
        (
            r#"{"spatial:transform": [1, 0, 0, 0, 1, 0], "spatial:transform_type": "rpc"}"#,
            "`affine`",
        ),
        (
            r#"{"spatial:transform": [1, 0, 0, 0, 1, 0], "spatial:dimensions": "yx"}"#,
            "two names",
        ),
        (r#"{"gdal:geotransform": [1, 2]}"#, "not six numbers"),
    ] {
        let facts = of(own, &group, None);
        let problems: Vec<String> = facts.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 1, "{own}");
        assert!(problems[0].contains(reason), "{own}: {problems:?}");
        // The other half is that of the group.
        let known = facts.known.unwrap();
        let is_crs = own.contains("_CRS") || own.contains("proj:");
        assert_eq!(known.crs.is_none(), is_crs, "{own}");
        assert_eq!(known.transform.is_none(), !is_crs, "{own}");
    }
}
