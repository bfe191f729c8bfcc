//! Affine transforms from the place of a pixel to coordinates, in GDAL's order:
//!
//! ```text
//! x = x0 + column * dx + row * rx        [x0, dx, rx, y0, ry, dy]
//! y = y0 + column * ry + row * dy
//! ```
//!
//! The place 0, 0 is the outer corner of the first pixel, and 0.5, 0.5 is its centre.

use crate::error::FormatError;
use crate::metadata::JsonTree;

/// A transform in GDAL's order.
pub type Affine = [f64; 6];

/// The transform of `value`: numbers in GDAL's order, in a list or in a text.
///
/// # Errors
/// When they are no transform.
pub(super) fn in_gdal_order(place: &str, value: &JsonTree) -> Result<Affine, FormatError> {
    match numbers(value).as_deref() {
        Some(&[x0, dx, rx, y0, ry, dy]) => checked(place, [x0, dx, rx, y0, ry, dy]),
        _ => Err(FormatError::document(place, "it is not six numbers")),
    }
}

/// The transform of `value`: the rows of a matrix, which may end with the row 0, 0, 1.
///
/// # Errors
/// When they are no transform.
pub(super) fn in_matrix_order(place: &str, value: &JsonTree) -> Result<Affine, FormatError> {
    let numbers = numbers(value);
    let rows = match numbers.as_deref() {
        Some([rows @ .., zero, also_zero, one])
            if rows.len() == 6 && *zero == 0.0 && *also_zero == 0.0 && (*one - 1.0) == 0.0 =>
        {
            rows
        }
        Some(rows) => rows,
        None => &[],
    };
    match *rows {
        [dx, rx, x0, ry, dy, y0] => checked(place, [x0, dx, rx, y0, ry, dy]),
        _ => Err(FormatError::document(
            place,
            "it is neither six numbers nor nine whose last are 0, 0, 1",
        )),
    }
}

/// `transform`, if every number is finite and no two pixels have the same place.
///
/// # Errors
/// Otherwise.
pub(super) fn checked(place: &str, transform: Affine) -> Result<Affine, FormatError> {
    let [_, dx, rx, _, ry, dy] = transform;
    let area = dx * dy - rx * ry;
    let is_finite = transform.iter().all(|number| number.is_finite());
    if is_finite && area.is_finite() && area != 0.0 {
        return Ok(transform);
    }
    let problem = format!("{transform:?} is no transform: its pixels have no size");
    Err(FormatError::document(place, problem))
}

/// The transform of pixels that begin `columns` and `rows` later.
pub(super) fn moved(transform: Affine, columns: f64, rows: f64) -> Affine {
    let [x0, dx, rx, y0, ry, dy] = transform;
    let along = |from: f64, by_column: f64, by_row: f64| {
        // A sum with 0 * infinity would be NaN, and a sum with 0 would change the sign of a zero.
        let parts = [(columns, by_column), (rows, by_row)];
        let parts = parts
            .iter()
            .filter(|(count, by)| *count != 0.0 && *by != 0.0);
        parts.fold(from, |sum, (count, by)| sum + count * by)
    };
    [along(x0, dx, rx), dx, rx, along(y0, ry, dy), ry, dy]
}

/// The transform of the same pixels with rows as columns.
pub(super) fn transposed(transform: Affine) -> Affine {
    let [x0, dx, rx, y0, ry, dy] = transform;
    [x0, rx, dx, y0, dy, ry]
}

fn numbers(value: &JsonTree) -> Option<Vec<f64>> {
    /// More numbers are no transform.
    const MOST: usize = 9;
    if let Some(text) = value.as_text() {
        let words = text.split(|c: char| c.is_whitespace() || c == ',');
        let words = words.filter(|word| !word.is_empty()).take(MOST + 1);
        return words.map(|word| word.parse().ok()).collect();
    }
    let list = value.as_list()?.iter().take(MOST + 1);
    list.map(JsonTree::as_number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::*;

    const NORTH_UP: Affine = [500_000.0, 10.0, 0.0, 4_600_000.0, 0.0, -20.0];

    fn of(order: fn(&str, &JsonTree) -> Result<Affine, FormatError>, json: &str) -> Option<Affine> {
        let attributes = attributes(&format!("{{\"a\": {json}}}"));
        order("a", attributes.get("a").unwrap()).ok()
    }

    #[test]
    fn both_orders_give_the_same_transform() {
        for json in [
            "[500000, 10.0, 0, 4600000, 0, -20]",
            "\"500000.0 10.0 0.0 4600000.0 0.0 -20.0\"",
            "\"500000, 10, 0, 4600000, 0, -20 \"",
        ] {
            assert_eq!(of(in_gdal_order, json), Some(NORTH_UP), "{json}");
        }
        for json in [
            "[10, 0, 500000, 0, -20, 4600000]",
            "[10, 0, 500000, 0, -20, 4600000, 0, 0, 1]",
        ] {
            assert_eq!(of(in_matrix_order, json), Some(NORTH_UP), "{json}");
        }
    }

    #[test]
    fn what_is_no_transform_is_refused() {
        for json in [
            "[0, 0, 0, 0, 0, 0]",
            "[0, 1, 0, 0, 0, 0]",
            "[0, 1, 1, 0, 1, 1]",
            "[0, 1, 0, 0, 0, NaN]",
            "[Infinity, 1, 0, 0, 0, 1]",
            "[0, 1e300, 0, 0, 0, 1e300]",
            "[0, 1, 0, 0, 0]",
            "[0, 1, 0, 0, 0, \"1\"]",
            "\"0 1 0 0 0 x\"",
            "7",
            "null",
        ] {
            assert_eq!(of(in_gdal_order, json), None, "{json}");
        }
        assert_eq!(of(in_matrix_order, "[1, 0, 0, 0, 1, 0, 0, 0, 2]"), None);
    }

    #[test]
    fn pixels_move_and_turn() {
        let [east, .., south, _, _] = moved(NORTH_UP, 2.0, 1.0);
        assert_eq!(Some([east, south]), Some([500_020.0, 4_599_980.0]));
        let [east, ..] = moved(NORTH_UP, -0.5, -0.5);
        assert_eq!(Some(east), Some(499_995.0));
        let turned = [500_000.0, 0.0, 10.0, 4_600_000.0, -20.0, 0.0];
        assert_eq!(Some(transposed(NORTH_UP)), Some(turned));
    }
}
