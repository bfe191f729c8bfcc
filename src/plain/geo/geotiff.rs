//! The place of an image in a `GeoTIFF`: tags for the transform, and geo keys for a CRS with a code of EPSG.
//!
//! ```text
//! 33550 ModelPixelScale      dx, -dy, 0                   columns go east and rows south
//! 33922 ModelTiepoint        0, 0, 0, x0, y0, 0
//! 34264 ModelTransformation  16 numbers, by rows          anything else: rows that go north, rotations
//! 34735 GeoKeyDirectory      1, 1, 0, n, then n keys of four numbers
//!       1024 GTModelType     1 projected, 2 geographic
//!       1025 GTRasterType    1: the place 0, 0 is the outer corner of the first pixel
//!       2048 GeodeticCRS, 3072 ProjectedCRS               the code
//! ```
//!
//! Any other CRS is in a file `NAME.aux.xml` beside the image, where GDAL looks for it. Sources: OGC 19-008r4, "`GeoTIFF`
//! standard", sections 7.1 and B; the section "PAM" in GDAL's "Raster data model".

use super::CrsKind;
use super::affine::Affine;
use crate::plain::Array;
use crate::plain::tiff::Field;
use crate::plain::xml_text::escaped;

const MODEL_PIXEL_SCALE: u16 = 33550;
const MODEL_TIEPOINT: u16 = 33922;
const MODEL_TRANSFORMATION: u16 = 34264;
const GEO_KEY_DIRECTORY: u16 = 34735;

/// The fields for the planes of the last two axes of `array`, sorted by tag.
pub(in crate::plain) fn fields(array: &Array) -> Vec<Field> {
    let mut fields = Vec::new();
    let Some(geo) = array.geo.as_deref() else {
        return fields;
    };
    if let Some(transform) = geo.raster(array.rank()) {
        fields.extend(of_transform(transform));
    }
    let crs = geo.crs.as_ref();
    let keys = crs.and_then(|crs| {
        let (model, of_crs) = match crs.kind()? {
            CrsKind::Projected => (1, 3072),
            CrsKind::Geographic => (2, 2048),
            CrsKind::Other => return None,
        };
        // Greater numbers are for users, and 32767 says that the CRS is another one.
        let code = crs.epsg().filter(|&code| (1024..32767).contains(&code))?;
        let key = |number: u16, value: u16| [number, 0, 1, value];
        let keys = [
            [1, 1, 0, 3],
            key(1024, model),
            key(1025, 1),
            key(of_crs, code),
        ];
        Some(keys.concat())
    });
    fields.extend(keys.map(|keys| Field::shorts(GEO_KEY_DIRECTORY, &keys)));
    fields
}

fn of_transform([x0, dx, rx, y0, ry, dy]: Affine) -> Vec<Field> {
    if rx == 0.0 && ry == 0.0 && dx > 0.0 && dy < 0.0 {
        return vec![
            Field::doubles(MODEL_PIXEL_SCALE, &[dx, -dy, 0.0]),
            Field::doubles(MODEL_TIEPOINT, &[0.0, 0.0, 0.0, x0, y0, 0.0]),
        ];
    }
    let rows = [
        [dx, rx, 0.0, x0],
        [ry, dy, 0.0, y0],
        [0.0; 4],
        [0.0, 0.0, 0.0, 1.0],
    ];
    vec![Field::doubles(MODEL_TRANSFORMATION, &rows.concat())]
}

/// The text of the file `NAME.aux.xml` for a CRS that [`fields`] cannot express; `None` if there is no such CRS.
pub(in crate::plain) fn aux_xml(array: &Array) -> Option<String> {
    if fields(array)
        .iter()
        .any(|field| field.tag == GEO_KEY_DIRECTORY)
    {
        return None;
    }
    let wkt = array.geo.as_ref()?.crs.as_ref()?.wkt()?.into_owned();
    let wkt = escaped(&wkt);
    Some(format!("<PAMDataset>\n  <SRS>{wkt}</SRS>\n</PAMDataset>\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Crs, Georeference};
    use super::*;
    use crate::plain::testing::array;

    fn image(crs: Option<&str>, transform: Option<Affine>) -> Array {
        let mut array = array("t", "\"<u2\"", &[3, 4, 5]);
        array.geo = Some(Arc::new(Georeference {
            crs: crs.map(|text| Crs::of_text("", text).unwrap()),
            transform,
            axes: [1, 2],
        }));
        array
    }

    #[test]
    fn a_code_and_a_transform_are_fields() {
        let north_up = image(
            Some("EPSG:32632"),
            Some([500.5, 10.0, 0.0, 9000.0, 0.0, -20.0]),
        );
        let keys = vec![1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632];
        assert_eq!(
            fields(&north_up),
            [
                Field::doubles(33550, &[10.0, 20.0, 0.0]),
                Field::doubles(33922, &[0.0, 0.0, 0.0, 500.5, 9000.0, 0.0]),
                Field::shorts(34735, &keys),
            ]
        );
        assert_eq!(aux_xml(&north_up), None);
        let south_up = image(Some("OGC:CRS84"), Some([-180.0, 1.0, 0.0, -90.0, 0.0, 1.0]));
        let matrix = [
            1.0, 0.0, 0.0, -180.0, 0.0, 1.0, 0.0, -90.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0,
        ];
        let keys = vec![1, 1, 0, 3, 1024, 0, 1, 2, 1025, 0, 1, 1, 2048, 0, 1, 4326];
        assert_eq!(
            fields(&south_up),
            [Field::doubles(34264, &matrix), Field::shorts(34735, &keys)]
        );
    }

    #[test]
    fn any_other_crs_is_beside_the_image() {
        let local = image(Some("PROJCS[\"a & b\", GEOGCS[\"g\"]]"), None);
        assert_eq!(fields(&local), []);
        let expected = "<PAMDataset>\n  <SRS>PROJCS[&quot;a &amp; b&quot;, GEOGCS[&quot;g&quot;]]</SRS>\n</PAMDataset>\n";
        assert_eq!(aux_xml(&local).unwrap(), expected);
        // The kind of this one is not known.
        let unknown = image(Some("ESRI:54009"), None);
        assert_eq!((fields(&unknown), aux_xml(&unknown)), (vec![], None));
        // Heights besides.
        let compound = image(Some("EPSG:7415"), None);
        assert_eq!(fields(&compound), []);
        assert!(aux_xml(&compound).unwrap().contains("COMPD_CS"));
    }
}
