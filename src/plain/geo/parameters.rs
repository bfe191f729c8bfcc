//! The attributes of a CF grid mapping variable for a CRS: its text, and the parameters of projections that CF has a
//! name for.
//!
//! CF conventions 1.11, appendix F "Grid Mappings". Programs that read `crs_wkt` ignore the parameters; older programs
//! read only the parameters. The text is written twice, because GDAL looks for it in `spatial_ref`.

use super::kind::CrsKind;
use super::wkt::WktNode;
use super::{Affine, Georeference};
use crate::metadata::{Attributes, JsonTree};

/// A projection: names of its method in Well-Known Text, its name in CF, and names of its parameters in both.
type Projection = (&'static [&'static str], &'static str, &'static [Parameter]);

/// Names of a parameter in Well-Known Text of version 1 and 2, and its name in CF.
type Parameter = (&'static str, &'static str, &'static str);

const FALSE_EASTING: Parameter = ("false_easting", "False easting", "false_easting");
const FALSE_NORTHING: Parameter = ("false_northing", "False northing", "false_northing");

const PROJECTIONS: [Projection; 2] = [
    (
        &["Transverse_Mercator", "Transverse Mercator"],
        "transverse_mercator",
        &[
            (
                "latitude_of_origin",
                "Latitude of natural origin",
                "latitude_of_projection_origin",
            ),
            (
                "central_meridian",
                "Longitude of natural origin",
                "longitude_of_central_meridian",
            ),
            (
                "scale_factor",
                "Scale factor at natural origin",
                "scale_factor_at_central_meridian",
            ),
            FALSE_EASTING,
            FALSE_NORTHING,
        ],
    ),
    (
        &[
            "Lambert_Azimuthal_Equal_Area",
            "Lambert Azimuthal Equal Area",
        ],
        "lambert_azimuthal_equal_area",
        &[
            (
                "latitude_of_center",
                "Latitude of natural origin",
                "latitude_of_projection_origin",
            ),
            (
                "longitude_of_center",
                "Longitude of natural origin",
                "longitude_of_projection_origin",
            ),
            FALSE_EASTING,
            FALSE_NORTHING,
        ],
    ),
];

/// The attributes of a grid mapping variable for arrays at this place; `None` if there is no text of a CRS.
pub(in crate::plain) fn grid_mapping_attributes(geo: &Georeference) -> Option<Attributes> {
    let crs = geo.crs.as_ref()?;
    if let Some(own) = &crs.grid_mapping {
        return Some((**own).clone());
    }
    let wkt = crs.wkt()?;
    let mut list = WktNode::parse(&wkt)
        .and_then(parameters)
        .unwrap_or_default();
    for name in ["crs_wkt", "spatial_ref"] {
        list.push((name.to_owned(), JsonTree::Text(wkt.clone().into_owned())));
    }
    if let Some(transform) = geo.transform {
        list.push((
            "GeoTransform".to_owned(),
            JsonTree::Text(spelled(&transform)),
        ));
    }
    Some(list.into_iter().collect())
}

/// Numbers in GDAL's order and spelling.
fn spelled(transform: &Affine) -> String {
    transform.map(|number| format!("{number}")).join(" ")
}

/// The name of the grid mapping and its parameters, if CF has them and each is known.
fn parameters(node: WktNode<'_>) -> Option<Vec<(String, JsonTree)>> {
    let kind = node.kind()?;
    let (name, numbers) = match kind {
        CrsKind::Geographic => ("latitude_longitude", Vec::new()),
        CrsKind::Projected => projection(node)?,
        CrsKind::Other => return None,
    };
    let base = match kind {
        CrsKind::Projected => node.child(&["GEOGCS", "BASEGEOGCRS", "BASEGEODCRS"])?,
        _ => node,
    };
    let mut list = vec![(
        "grid_mapping_name".to_owned(),
        JsonTree::Text(name.to_owned()),
    )];
    let numbers = numbers.into_iter().chain(ellipsoid(base)?);
    list.extend(numbers.map(|(name, number)| (name.to_owned(), JsonTree::Float(number))));
    Some(list)
}

type Numbers = Vec<(&'static str, f64)>;

/// The shape of the earth, and the meridian from which longitudes count.
fn ellipsoid(base: WktNode<'_>) -> Option<Numbers> {
    let datum = base.child(&["DATUM", "ENSEMBLE", "TRF", "GEODETICDATUM"])?;
    let ellipsoid = datum.child(&["SPHEROID", "ELLIPSOID"])?;
    let prime = base.child(&["PRIMEM", "PRIMEMERIDIAN"]);
    let is_greenwich = prime.is_none_or(|prime| prime.number(1) == Some(0.0));
    is_greenwich.then_some(())?;
    Some(vec![
        ("longitude_of_prime_meridian", 0.0),
        ("semi_major_axis", ellipsoid.number(1)?),
        ("inverse_flattening", ellipsoid.number(2)?),
    ])
}

/// Name and parameters of the projection. All lengths are metres and all angles are degrees, as in CF.
fn projection(node: WktNode<'_>) -> Option<(&'static str, Numbers)> {
    // Version 1 has the parameters beside the name of the method, and version 2 below one node.
    let of_version_2 = node.child(&["CONVERSION"]);
    let of = of_version_2.unwrap_or(node);
    let method = of.child(&["PROJECTION", "METHOD"])?.value(0)?;
    let (_, name, known) = PROJECTIONS
        .iter()
        .find(|(methods, ..)| methods.iter().any(|known| *known == method))?;
    let unit = node.child(&["UNIT"]).and_then(|unit| unit.number(1));
    if of_version_2.is_none() && unit != Some(1.0) {
        return None;
    }
    let parameters: Vec<WktNode<'_>> = of
        .items()
        .filter_map(WktNode::parse)
        .filter(|child| child.is(&["PARAMETER"]))
        .collect();
    let numbers = known.iter().map(|(one, two, of_cf)| {
        let wanted = if of_version_2.is_some() { two } else { one };
        let found = parameters
            .iter()
            .find(|parameter| parameter.value(0).is_some_and(|name| name == *wanted))?;
        let unit = found.child(&["ANGLEUNIT", "LENGTHUNIT"]);
        let is_usual = unit.is_none_or(|unit| {
            let name = unit.value(0);
            name.is_some_and(|name| ["degree", "metre"].contains(&&*name))
        });
        Some((*of_cf, found.number(1).filter(|_| is_usual)?))
    });
    Some((name, numbers.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::super::crs::Crs;
    use super::*;

    fn of(crs: Crs, transform: Option<Affine>) -> Option<String> {
        let geo = Georeference {
            crs: Some(crs),
            transform,
            axes: [0, 1],
        };
        let attributes = grid_mapping_attributes(&geo)?;
        let short = attributes.iter().filter(|(name, value)| {
            *name != "crs_wkt" && *name != "spatial_ref" || value.as_text().is_none()
        });
        let short = short.map(|(name, value)| format!("{name}={value}"));
        assert!(attributes.text("crs_wkt").unwrap() == attributes.text("spatial_ref").unwrap());
        Some(short.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn projections_of_cf_have_their_parameters() {
        let code = |text| Crs::of_text("", text).unwrap();
        let transform = [0.1, 10.0, 0.0, 4_600_000.0, 0.0, -10.5];
        assert_eq!(
            of(code("EPSG:32632"), Some(transform)).unwrap(),
            "grid_mapping_name=\"transverse_mercator\" latitude_of_projection_origin=0.0 \
             longitude_of_central_meridian=9.0 scale_factor_at_central_meridian=0.9996 \
             false_easting=500000.0 false_northing=0.0 longitude_of_prime_meridian=0.0 \
             semi_major_axis=6378137.0 inverse_flattening=298.257223563 \
             GeoTransform=\"0.1 10 0 4600000 0 -10.5\""
        );
        assert_eq!(
            of(code("EPSG:4326"), None).unwrap(),
            "grid_mapping_name=\"latitude_longitude\" longitude_of_prime_meridian=0.0 \
             semi_major_axis=6378137.0 inverse_flattening=298.257223563"
        );
        // CF has no name for the projection of web maps, and no unit but metres.
        assert_eq!(of(code("EPSG:3857"), None).unwrap(), "");
        assert_eq!(of(code("EPSG:2263"), None).unwrap(), "");
        assert_eq!(of(code("EPSG:1"), None), None);
        let second = r#"PROJCRS["a",BASEGEOGCRS["b",DATUM["d",ELLIPSOID["e",6378137,298.257222101]]],
            CONVERSION["c",METHOD["Lambert Azimuthal Equal Area"],
            PARAMETER["Latitude of natural origin",52,ANGLEUNIT["degree",0.0174532925199433]],
            PARAMETER["Longitude of natural origin",10,ANGLEUNIT["degree",0.0174532925199433]],
            PARAMETER["False easting",1,LENGTHUNIT["metre",1]],PARAMETER["False northing",2]],CS[Cartesian,2]]"#;
        let found = of(Crs::of_text("", second).unwrap(), None).unwrap();
        assert!(
            found.contains("longitude_of_projection_origin=10.0 false_easting=1.0"),
            "{found}"
        );
        let other = second.replace("\"degree\"", "\"grad\"");
        assert_eq!(of(Crs::of_text("", &other).unwrap(), None).unwrap(), "");
    }
}
