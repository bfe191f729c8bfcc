//! Well-Known Text of version 2 from PROJJSON, which has the same members under other names. Only systems of longitudes
//! and latitudes, and of one projection of these, are written.
//!
//! ```text
//! {"type": "ProjectedCRS", "name": "a", "base_crs": {…}, "conversion": {…}, "coordinate_system": {…}, "id": {…}}
//! PROJCRS["a",BASEGEOGCRS[…],CONVERSION[…],CS[Cartesian,2],AXIS[…],AXIS[…],ID["EPSG",32632]]
//! ```
//!
//! Sources: PROJ's schema of PROJJSON, version 0.7; OGC 18-010r7, sections 8 to 10.

use crate::metadata::{Attributes, JsonTree};

/// The text of the CRS that `object` describes; `None` if it is of another kind, or if a member is missing or has
/// an unknown value.
pub(super) fn wkt(object: &Attributes) -> Option<String> {
    let (keyword, base) = match object.text("type")? {
        "GeographicCRS" => ("GEOGCRS", None),
        "ProjectedCRS" => ("PROJCRS", Some(member(object, "base_crs")?)),
        _ => return None,
    };
    let mut items = vec![name_of(object)?];
    match base {
        None => items.extend(datum(object)?),
        Some(base) => {
            let mut of_base = vec![name_of(base)?];
            of_base.extend(datum(base)?);
            items.push(node("BASEGEOGCRS", &with_id(of_base, base)?));
            items.push(conversion(member(object, "conversion")?)?);
        }
    }
    items.extend(coordinate_system(member(object, "coordinate_system")?)?);
    Some(node(keyword, &with_id(items, object)?))
}

/// Datum and prime meridian.
fn datum(of: &Attributes) -> Option<Vec<String>> {
    let of_one = member(of, "datum");
    let (keyword, datum) = match of_one {
        Some(datum) => ("DATUM", datum),
        None => ("ENSEMBLE", member(of, "datum_ensemble")?),
    };
    let mut items = vec![name_of(datum)?];
    if of_one.is_none() {
        for one in datum.get("members")?.as_list()? {
            let one = one.as_object()?;
            items.push(node("MEMBER", &with_id(vec![name_of(one)?], one)?));
        }
    }
    let ellipsoid = member(datum, "ellipsoid")?;
    items.push(shape(ellipsoid)?);
    if of_one.is_none() {
        let accuracy: f64 = datum.text("accuracy")?.parse().ok()?;
        items.push(node("ENSEMBLEACCURACY", &[format!("{accuracy}")]));
    }
    let mut list = vec![node(keyword, &with_id(items, datum)?)];
    if let Some(prime) = member(datum, "prime_meridian") {
        let longitude = prime.get("longitude")?;
        let (value, unit) = match longitude.as_object() {
            Some(object) => (object.get("value")?, object.get("unit")),
            None => (longitude, None),
        };
        let degree = JsonTree::Text("degree".to_owned());
        let items = vec![
            name_of(prime)?,
            number(value)?,
            unit_of(unit.unwrap_or(&degree))?,
        ];
        list.push(node("PRIMEM", &with_id(items, prime)?));
    }
    Some(list)
}

fn shape(ellipsoid: &Attributes) -> Option<String> {
    let major = ellipsoid
        .get("semi_major_axis")
        .or_else(|| ellipsoid.get("radius"))?;
    let flattening = match ellipsoid.get("inverse_flattening") {
        Some(flattening) => number(flattening)?,
        // The flattening follows from both axes. A sphere has none.
        None => match ellipsoid.number("semi_minor_axis") {
            Some(minor) if minor < major.as_number()? => {
                let major = major.as_number()?;
                format!("{}", major / (major - minor))
            }
            Some(_) => "0".to_owned(),
            None if ellipsoid.get("radius").is_some() => "0".to_owned(),
            None => return None,
        },
    };
    let unit = "LENGTHUNIT[\"metre\",1]".to_owned();
    let items = vec![name_of(ellipsoid)?, number(major)?, flattening, unit];
    Some(node("ELLIPSOID", &with_id(items, ellipsoid)?))
}

fn conversion(conversion: &Attributes) -> Option<String> {
    let method = member(conversion, "method")?;
    let method = node("METHOD", &with_id(vec![name_of(method)?], method)?);
    let mut items = vec![name_of(conversion)?, method];
    for parameter in conversion.get("parameters")?.as_list()? {
        let parameter = parameter.as_object()?;
        let mut of = vec![name_of(parameter)?, number(parameter.get("value")?)?];
        of.push(unit_of(parameter.get("unit")?)?);
        items.push(node("PARAMETER", &with_id(of, parameter)?));
    }
    Some(node("CONVERSION", &with_id(items, conversion)?))
}

fn coordinate_system(system: &Attributes) -> Option<Vec<String>> {
    let all = system.get("axis")?.as_list()?;
    let kind = word(system.text("subtype")?)?;
    let mut list = vec![node("CS", &[kind, all.len().to_string()])];
    for (order, axis) in (1..).zip(all) {
        let axis = axis.as_object()?;
        let name = match axis.text("abbreviation") {
            None | Some("") => axis.text("name")?.to_owned(),
            Some(short) => format!("{} ({short})", axis.text("name")?),
        };
        let order: u64 = order;
        let items = [
            quoted(&name),
            word(axis.text("direction")?)?,
            node("ORDER", &[order.to_string()]),
            unit_of(axis.get("unit")?)?,
        ];
        list.push(node("AXIS", &items));
    }
    Some(list)
}

fn unit_of(unit: &JsonTree) -> Option<String> {
    let Some(unit) = unit.as_object() else {
        return Some(
            match unit.as_text()? {
                "metre" => "LENGTHUNIT[\"metre\",1]",
                "degree" => "ANGLEUNIT[\"degree\",0.0174532925199433]",
                "unity" => "SCALEUNIT[\"unity\",1]",
                _ => return None,
            }
            .to_owned(),
        );
    };
    let keyword = match unit.text("type")? {
        "LinearUnit" => "LENGTHUNIT",
        "AngularUnit" => "ANGLEUNIT",
        "ScaleUnit" => "SCALEUNIT",
        _ => return None,
    };
    let items = vec![name_of(unit)?, number(unit.get("conversion_factor")?)?];
    Some(node(keyword, &with_id(items, unit)?))
}

/// `items`, and the authority and code of `object` if it has them.
fn with_id(mut items: Vec<String>, object: &Attributes) -> Option<Vec<String>> {
    if let Some(id) = member(object, "id") {
        let code = match id.get("code")? {
            JsonTree::Integer(code) => code.to_string(),
            code => quoted(code.as_text()?),
        };
        items.push(node("ID", &[quoted(id.text("authority")?), code]));
    }
    Some(items)
}

fn member<'a>(object: &'a Attributes, name: &str) -> Option<&'a Attributes> {
    object.get(name)?.as_object()
}

fn name_of(object: &Attributes) -> Option<String> {
    object.text("name").map(quoted)
}

fn number(value: &JsonTree) -> Option<String> {
    let number = value.as_number().filter(|number| number.is_finite())?;
    Some(format!("{number}"))
}

/// A text that stands without quotes.
fn word(text: &str) -> Option<String> {
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
    is_word.then(|| text.to_owned())
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn node(keyword: &str, items: &[String]) -> String {
    format!("{keyword}[{}]", items.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::super::wkt::WktNode;
    use super::*;

    const GEOGRAPHIC: &str = r#"{"type": "GeographicCRS", "name": "a \"b\"",
        "datum": {"name": "d", "ellipsoid": {"name": "e", "semi_major_axis": 6378137, "inverse_flattening": 298.5},
                  "prime_meridian": {"name": "Paris", "longitude": {"value": 2.5969213, "unit":
                      {"type": "AngularUnit", "name": "grad", "conversion_factor": 0.0157}}}},
        "coordinate_system": {"subtype": "ellipsoidal", "axis": [
            {"name": "Longitude", "abbreviation": "lon", "direction": "east", "unit": "degree"},
            {"name": "Latitude", "abbreviation": "", "direction": "north", "unit": "degree"}]},
        "id": {"authority": "EPSG", "code": 4807}}"#;

    #[test]
    fn members_become_nodes() {
        let degree = r#"ANGLEUNIT["degree",0.0174532925199433]"#;
        let metre = r#"LENGTHUNIT["metre",1]"#;
        let text = wkt(&attributes(GEOGRAPHIC)).unwrap();
        assert_eq!(
            text,
            format!(
                r#"GEOGCRS["a ""b""",DATUM["d",ELLIPSOID["e",6378137,298.5,{metre}]],PRIMEM["Paris",2.5969213,ANGLEUNIT["grad",0.0157]],CS[ellipsoidal,2],AXIS["Longitude (lon)",east,ORDER[1],{degree}],AXIS["Latitude",north,ORDER[2],{degree}],ID["EPSG",4807]]"#
            )
        );
        let projected = r#"{"type": "ProjectedCRS", "name": "p", "base_crs": {"name": "b", "datum_ensemble": {"name": "n",
                "members": [{"name": "m"}], "accuracy": "2.0",
                "ellipsoid": {"name": "e", "semi_major_axis": 2, "semi_minor_axis": 1}}},
            "conversion": {"name": "c", "method": {"name": "Mercator", "id": {"authority": "EPSG", "code": 9804}},
                "parameters": [{"name": "k", "value": 0.5, "unit": "unity"}]},
            "coordinate_system": {"subtype": "Cartesian", "axis": []}}"#;
        let text = wkt(&attributes(projected)).unwrap();
        assert_eq!(
            text,
            format!(
                r#"PROJCRS["p",BASEGEOGCRS["b",ENSEMBLE["n",MEMBER["m"],ELLIPSOID["e",2,2,{metre}],ENSEMBLEACCURACY[2]]],CONVERSION["c",METHOD["Mercator",ID["EPSG",9804]],PARAMETER["k",0.5,SCALEUNIT["unity",1]]],CS[Cartesian,0]]"#
            )
        );
        assert!(WktNode::parse(&text).is_some());
    }

    #[test]
    fn what_is_unknown_gives_no_text() {
        for (from, to) in [
            ("GeographicCRS", "VerticalCRS"),
            ("\"ellipsoidal\"", "\"a]b\""),
            ("298.5", "NaN"),
            ("\"unit\": \"degree\"", "\"unit\": \"inch\""),
            ("4807", "[1]"),
            ("\"datum\"", "\"other\""),
        ] {
            let changed = GEOGRAPHIC.replace(from, to);
            assert_eq!(wkt(&attributes(&changed)), None, "{to}");
        }
    }
}
