//! Axes from dimension names and coordinate variables.
//!
//! CF conventions 1.11, section 4 "Coordinate Types": a coordinate variable has one dimension and
//! bears its name; `units`, `standard_name` and `axis` show the kind of the dimension.

use super::axis::{Axis, AxisKind};
use crate::metadata::Attributes;

/// The axes of dimensions called `names`. `coordinates` are candidates for their coordinate
/// variables.
pub(super) fn axes(names: &[Option<String>], coordinates: &[(&str, &Attributes)]) -> Vec<Axis> {
    names
        .iter()
        .map(|name| {
            let Some(name) = name else {
                return Axis::default();
            };
            let coordinate = coordinates.iter().find(|(of, _)| of == name);
            let attributes = coordinate.map(|(_, attributes)| *attributes);
            let kind = attributes.and_then(kind_of_coordinate);
            Axis {
                name: Some(name.clone()),
                kind: kind.unwrap_or_else(|| kind_of_name(name)),
                unit: attributes.and_then(unit),
                ..Axis::default()
            }
        })
        .collect()
}

/// The kind that a dimension of this name has by custom.
pub(super) fn kind_of_name(name: &str) -> AxisKind {
    match name.to_ascii_lowercase().as_str() {
        "t" | "time" | "frame" | "frames" => AxisKind::Time,
        "z" | "y" | "x" | "lat" | "lon" | "latitude" | "longitude" | "nlat" | "nlon" | "rlat"
        | "rlon" | "depth" | "height" | "altitude" | "level" | "lev" | "plev" | "pressure"
        | "easting" | "northing" => AxisKind::Space,
        "c" | "channel" | "channels" | "band" | "bands" => AxisKind::Channel,
        _ => AxisKind::Other,
    }
}

fn kind_of_coordinate(attributes: &Attributes) -> Option<AxisKind> {
    let has = |name: &str, among: &[&str]| {
        let value = attributes.text(name).map(str::trim);
        value.is_some_and(|value| among.contains(&value))
    };
    let units = attributes.text("units").unwrap_or_default();
    if has("axis", &["T"]) || has("standard_name", &["time"]) || units.contains(" since ") {
        return Some(AxisKind::Time);
    }
    let is_degrees = |unit: &str| {
        // `degrees_north`, `degreeN` and the like are units of latitude or longitude only.
        let unit = unit.strip_prefix("degrees").or(unit.strip_prefix("degree"));
        let side = unit.map(|rest| rest.trim_start_matches('_'));
        matches!(side, Some("north" | "N" | "east" | "E"))
    };
    let in_space = [
        "latitude",
        "longitude",
        "grid_latitude",
        "grid_longitude",
        "projection_x_coordinate",
        "projection_y_coordinate",
        "height",
        "altitude",
        "depth",
        "air_pressure",
        "model_level_number",
    ];
    if has("axis", &["X", "Y", "Z"]) || has("standard_name", &in_space) || is_degrees(units) {
        return Some(AxisKind::Space);
    }
    None
}

/// The unit of a coordinate; for times since an epoch, the unit that is counted.
fn unit(attributes: &Attributes) -> Option<String> {
    let units = attributes.text("units")?;
    let unit = units.split(" since ").next().unwrap_or(units).trim();
    (!unit.is_empty()).then(|| unit.to_owned())
}
