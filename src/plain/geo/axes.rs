//! Which axes of an array are y and x on a map.

use crate::metadata::Attributes;

/// A direction on a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Y,
    X,
}

/// The axes y and x, by the coordinates or by the names of the dimensions. `None` unless there is one of each.
pub(super) fn of_names(
    names: &[Option<String>],
    coordinates: &[(&str, &Attributes)],
) -> Option<[usize; 2]> {
    let directions = names.iter().map(|name| {
        let name = name.as_deref()?;
        let coordinate = coordinates.iter().find(|(of, _)| *of == name);
        coordinate
            .and_then(|(_, attributes)| of_coordinate(attributes))
            .or_else(|| of_name(name))
    });
    let directions: Vec<Option<Direction>> = directions.collect();
    let only = |wanted: Direction| {
        let mut places = (0..).zip(&directions);
        let mut of = places.by_ref().filter(|(_, found)| **found == Some(wanted));
        match (of.next(), of.next()) {
            (Some((place, _)), None) => Some(place),
            _ => None,
        }
    };
    Some([only(Direction::Y)?, only(Direction::X)?])
}

/// The direction that a coordinate has by its attributes. CF conventions 1.11, section 4.
fn of_coordinate(attributes: &Attributes) -> Option<Direction> {
    let text = |name| attributes.text(name).map(str::trim);
    match (text("axis"), text("standard_name")) {
        (Some("Y"), _) => return Some(Direction::Y),
        (Some("X"), _) => return Some(Direction::X),
        (_, Some("projection_y_coordinate" | "latitude" | "grid_latitude")) => {
            return Some(Direction::Y);
        }
        (_, Some("projection_x_coordinate" | "longitude" | "grid_longitude")) => {
            return Some(Direction::X);
        }
        _ => {}
    }
    let units = text("units")?;
    let side = units
        .strip_prefix("degrees")
        .or(units.strip_prefix("degree"))?;
    match side.trim_start_matches('_') {
        "north" | "N" => Some(Direction::Y),
        "east" | "E" => Some(Direction::X),
        _ => None,
    }
}

/// The direction that a dimension of this name has by custom.
fn of_name(name: &str) -> Option<Direction> {
    match name.to_ascii_lowercase().as_str() {
        "y" | "lat" | "latitude" | "rlat" | "northing" => Some(Direction::Y),
        "x" | "lon" | "longitude" | "rlon" | "easting" => Some(Direction::X),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::*;

    #[test]
    fn attributes_count_more_than_names() {
        let of = |names: &[&str], coordinates: &[(&str, &str)]| {
            let names: Vec<_> = names.iter().map(|name| Some((*name).to_owned())).collect();
            let parsed: Vec<_> = coordinates
                .iter()
                .map(|(name, json)| (*name, attributes(json)))
                .collect();
            let coordinates: Vec<_> = parsed.iter().map(|(name, json)| (*name, json)).collect();
            of_names(&names, &coordinates)
        };
        assert_eq!(of(&["t", "y", "x"], &[]), Some([1, 2]));
        assert_eq!(of(&["Longitude", "Latitude"], &[]), Some([1, 0]));
        let named = r#"{"standard_name": "projection_x_coordinate"}"#;
        let units = r#"{"units": "degrees_north"}"#;
        assert_eq!(of(&["b", "a"], &[("a", named), ("b", units)]), Some([0, 1]));
        assert_eq!(of(&["y", "x"], &[("y", r#"{"axis": "X"}"#)]), None);
        assert_eq!(of(&["y", "x", "lat"], &[]), None);
        assert_eq!(of(&["y", "time"], &[]), None);
    }
}
