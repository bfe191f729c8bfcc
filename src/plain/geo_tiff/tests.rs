//! The fields of a GeoTIFF. What programs make of them is tested through a mount.

use super::super::testing::{array, attributes, read};
use super::super::{Axis, AxisKind, Channel};
use super::*;

/// The text of a field of the first directory.
fn text_of(array: &Array, wanted: u16) -> Option<String> {
    let layout = geo_tiff(array, &[]).unwrap().layout;
    let head = read(&layout, &[], 0, 4096);
    let number = |at: usize, n: usize| {
        let bytes = head[at..at + n].iter().rev();
        bytes.fold(0_usize, |all, &byte| all << 8 | usize::from(byte))
    };
    let at = number(8, 8);
    let mut entries = (0..number(at, 8)).map(|n| at + 8 + 20 * n);
    let entry = entries.find(|&entry| number(entry, 2) == usize::from(wanted))?;
    let len = number(entry + 4, 8);
    let place = if len <= 8 {
        entry + 12
    } else {
        number(entry + 12, 8)
    };
    let text = read(&layout, &[], place as u64, len - 1);
    Some(String::from_utf8(text).unwrap())
}

#[test]
fn missing_values_are_gdals() {
    for (typestr, json, expected) in [
        ("<i2", r#"{"_FillValue": -9999}"#, Some("-9999")),
        ("<f4", r#"{"_FillValue": "NaN"}"#, Some("nan")),
        ("<f8", r#"{"missing_value": -1.5}"#, Some("-1.5")),
        ("<f8", r#"{"_FillValue": "-Infinity"}"#, Some("-inf")),
        ("<u2", r#"{"_CRS": {"url": "x"}}"#, Some("7")),
        ("<u2", r#"{"_CRS": {"url": "x"}, "nodata": 3}"#, Some("3")),
        ("<u2", r#"{"nodata": "none"}"#, None),
        ("<u2", "{}", None),
    ] {
        let mut array = array("t", &format!("\"{typestr}\""), &[20, 30]);
        let size = usize::try_from(array.data_type.item_size).unwrap();
        let mut fill = vec![0; size];
        fill[0] = 7;
        array.fill_value = crate::dtype::FillValue::new(fill, true);
        array.attributes = attributes(json);
        let found = text_of(&array, tag::GDAL_NODATA);
        assert_eq!(found.as_deref(), expected, "{typestr} {json}");
    }
}

#[test]
fn bands_have_names_units_and_packing() {
    let mut packed = array("t", r#""<i2""#, &[2, 20, 30]);
    packed.axes[0].name = Some("time".to_owned());
    packed.attributes =
        attributes(r#"{"units": "a<b", "scale_factor": 0.1, "long_name": "no band"}"#);
    let expected = [0, 1].map(|band| {
        format!(
            "<Item name=\"DESCRIPTION\" sample=\"{band}\" role=\"description\">time {band}</Item>\
             <Item name=\"UNITTYPE\" sample=\"{band}\" role=\"unittype\">a&lt;b</Item>\
             <Item name=\"OFFSET\" sample=\"{band}\" role=\"offset\">0.0</Item>\
             <Item name=\"SCALE\" sample=\"{band}\" role=\"scale\">0.1</Item>"
        )
    });
    let expected = format!("<GDALMetadata>{}</GDALMetadata>", expected.concat());
    assert_eq!(text_of(&packed, tag::GDAL_METADATA), Some(expected));

    let mut colours = array("t", r#""|u1""#, &[20, 30, 3]);
    colours.axes[2] = Axis {
        kind: AxisKind::Channel,
        channels: vec![Channel {
            label: Some("red".to_owned()),
            ..Channel::default()
        }],
        ..Axis::default()
    };
    let expected = "<GDALMetadata><Item name=\"DESCRIPTION\" sample=\"0\" role=\"description\">red</Item></GDALMetadata>";
    assert_eq!(
        text_of(&colours, tag::GDAL_METADATA).as_deref(),
        Some(expected)
    );

    let mut single = array("t", r#""|u1""#, &[1, 20, 30]);
    assert_eq!(text_of(&single, tag::GDAL_METADATA), None);
    single.attributes = attributes(r#"{"long_name": "height"}"#);
    let found = text_of(&single, tag::GDAL_METADATA).unwrap();
    assert!(found.contains(">height</Item>"), "{found}");
}

#[test]
fn units_of_very_many_bands_take_little_memory() {
    let mut array = array("t", r#""<i2""#, &[65_535, 20, 30]);
    let units = "\"".repeat(256);
    let json = serde_json::json!({"units": units, "scale_factor": 0.1});
    array.attributes = attributes(&json.to_string());
    let text = metadata(&Raster::of(&array).unwrap()).unwrap();
    assert!(text.len() < 16 << 20, "{}", text.len());
    assert!(text.contains("<Item name=\"UNITTYPE\" sample=\"9\""));
    assert!(!text.contains("<Item name=\"UNITTYPE\" sample=\"65534\""));
    let last = "<Item name=\"SCALE\" sample=\"65534\" role=\"scale\">0.1</Item></GDALMetadata>";
    assert!(text.ends_with(last));
}

#[test]
fn what_no_geotiff_holds_is_refused_by_name() {
    for (typestr, shape, expected) in [
        ("<M8[s]", &[3, 4][..], "data type: "),
        ("|S2", &[3, 4], "data type: "),
        ("|u1", &[3], "shape: `[3]`"),
        ("|u1", &[3, 0], "shape: `[3, 0]`"),
        ("|u1", &[70_000, 3, 4], "the number of bands"),
        ("|u1", &[256, 256, 3, 4], "the number of bands"),
        ("|u1", &[u64::MAX, u64::MAX, 3, 4], "shape: "),
        ("|u1", &[1 << 40, 4], "the height of a plane"),
    ] {
        let error = geo_tiff(&array("t", &format!("\"{typestr}\""), shape), &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut colours = array("t", r#""|u1""#, &[2, 20, 30, 3]);
    colours.axes[3].kind = AxisKind::Channel;
    assert!(
        geo_tiff(&colours, &[])
            .unwrap_err()
            .to_string()
            .contains("several pictures")
    );
    colours.shape[0] = 1;
    assert!(geo_tiff(&colours, &[]).is_ok());
}

#[test]
fn levels_that_fit_are_overviews() {
    let level = |id: usize, typestr: &str, shape: &[u64]| {
        let mut array = array("t", typestr, shape);
        array.id = id;
        array
    };
    let image = level(0, r#""<u2""#, &[2, 100, 100]);
    let levels = [
        level(1, r#""<u2""#, &[2, 100, 100]),
        level(2, r#""<u2""#, &[2, 50, 100]),
        level(3, r#""<u2""#, &[1, 25, 25]),
        level(4, r#""<i2""#, &[2, 25, 25]),
        level(5, r#""<u2""#, &[2, 50, 101]),
        level(6, r#""<u2""#, &[25, 25]),
        level(7, r#""<u2""#, &[2, 25, 25]),
        level(8, r#""<u2""#, &[2, 0, 0]),
    ];
    let file = geo_tiff(&image, &levels).unwrap();
    let shown: Vec<usize> = file.layout.tiles().map(|tiles| tiles.array).collect();
    assert_eq!(shown, [7, 2, 0], "the smallest first");
    let reasons: Vec<String> = file
        .left_out
        .iter()
        .map(|reason| reason.as_ref().map_or(String::new(), ToString::to_string))
        .collect();
    for (reason, expected) in reasons.iter().zip([
        "smaller", "", "bands", "type", "smaller", "bands", "", "shape",
    ]) {
        assert!(
            reason.contains(expected) && reason.is_empty() == expected.is_empty(),
            "{reason}: {expected}"
        );
    }
}

#[test]
fn the_place_on_the_earth_is_that_of_the_planes() {
    use super::super::geo::{Crs, Georeference};
    let mut colours = array("t", r#""|u1""#, &[20, 30, 3]);
    colours.axes[2].kind = AxisKind::Channel;
    colours.geo = Some(std::sync::Arc::new(Georeference {
        crs: Some(Crs::of_text("", "EPSG:32632").unwrap()),
        transform: Some([5.0, 2.0, 0.0, 9.0, 0.0, -2.0]),
        axes: [0, 1],
    }));
    let tags: Vec<u16> = geo_fields(&Raster::of(&colours).unwrap())
        .iter()
        .map(|field| field.tag)
        .collect();
    assert_eq!(tags, [33550, 33922, 34735]);
    assert_eq!(crs_beside(&colours).unwrap(), None);
    let text = "PROJCS[\"own\", GEOGCS[\"g\"]]";
    let mut own = colours.geo.as_deref().unwrap().clone();
    own.crs = Some(Crs::of_text("", text).unwrap());
    colours.geo = Some(std::sync::Arc::new(own));
    assert!(crs_beside(&colours).unwrap().unwrap().contains("own"));
    colours.shape[0] = 0;
    assert!(
        crs_beside(&colours).is_err(),
        "no GeoTIFF, and so nothing beside it"
    );
}
