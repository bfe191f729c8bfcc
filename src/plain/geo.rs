//! Georeferencing: the coordinate reference system (CRS) of an array, and the transform from its pixels to coordinates.
//!
//! ```text
//! sources       what documents say: CF, GDAL, GeoZarr, EOPF    -> GeoFacts
//! regular       elements of coordinate arrays                  -> Spacing
//! Georeference  CRS and transform, for formats
//! ```

mod affine;
mod axes;
mod crs;
mod epsg;
pub(super) mod geotiff;
pub mod grid_mapping;
mod kind;
mod parameters;
mod projjson;
mod regular;
mod sources;
mod wkt;

use std::sync::Arc;

pub use affine::Affine;
pub use crs::{Crs, CrsCode};
pub use kind::CrsKind;
pub(super) use parameters::grid_mapping_attributes;
pub use regular::{CoordinateNumbers, Spacing};
pub use sources::GeoSources;

use crate::error::FormatError;

/// The place of an array on the earth, or on another map.
#[derive(Debug, Clone, PartialEq)]
pub struct Georeference {
    /// The CRS of the coordinates, if the store has one.
    pub crs: Option<Crs>,
    /// The transform from columns (indices along the second of `axes`) and rows to coordinates, if there is one.
    pub transform: Option<Affine>,
    /// The array's axes y and x.
    pub axes: [usize; 2],
}

/// The CRS and the transform of an array in the documents of a store.
#[derive(Debug, Clone, Default)]
pub struct GeoFacts {
    /// The georeference; `None` if nothing is known.
    pub known: Option<Arc<Georeference>>,
    /// The array's axes y and x; meaningful only with `known` or `coordinates`.
    pub axes: [usize; 2],
    /// The names of the coordinate arrays of y and x in the same group, where the transform depends on their elements.
    pub coordinates: Option<[String; 2]>,
    /// The reasons why a description in the store was not used.
    pub problems: Vec<FormatError>,
}

impl GeoFacts {
    /// The georeference with a transform from regular coordinates. A transform in the documents is kept if it differs by
    /// rounding only, because its numbers are exact.
    pub fn with_coordinates(&self, [y, x]: [Spacing; 2]) -> Georeference {
        let ((y0, dy), (x0, dx)) = (y.edge_and_width(), x.edge_and_width());
        let of_coordinates = [x0, dx, 0.0, y0, 0.0, dy];
        let known = self.known.as_deref();
        let told = known.and_then(|known| known.transform);
        let told = told.filter(|told| are_alike(told, &of_coordinates));
        Georeference {
            crs: known.and_then(|known| known.crs.clone()),
            transform: told.or(Some(of_coordinates)),
            axes: self.axes,
        }
    }

    /// An estimate of the memory of the facts.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let crs = self.known.as_ref().and_then(|known| known.crs.as_ref());
        size_of::<Georeference>() as u64 + crs.map_or(0, Crs::memory_bytes)
    }
}

impl Georeference {
    /// The transform of the plane of the last two axes of an array with `rank` axes: columns are indices along the last
    /// one. `None` if y and x are other axes.
    pub fn raster(&self, rank: usize) -> Option<Affine> {
        let transform = self.transform?;
        match self.axes {
            [y, x] if y + 2 == rank && x + 1 == rank => Some(transform),
            [y, x] if x + 2 == rank && y + 1 == rank => Some(affine::transposed(transform)),
            _ => None,
        }
    }

    /// The names that CF has for the coordinates along y and x.
    pub(super) fn standard_names(&self) -> Option<[&'static str; 2]> {
        match self.crs.as_ref()?.kind()? {
            CrsKind::Geographic => Some(["latitude", "longitude"]),
            CrsKind::Projected => Some(["projection_y_coordinate", "projection_x_coordinate"]),
            CrsKind::Other => None,
        }
    }

    /// The georeference of a selection that begins with the element `start` and has the axes `kept`; `None` if y or x is
    /// not among them.
    #[expect(clippy::cast_precision_loss, reason = "a place in space")]
    pub(super) fn part(&self, start: &[u64], kept: &[usize]) -> Option<Georeference> {
        let kept = |axis: usize| kept.iter().position(|&kept| kept == axis);
        let [y, x] = self.axes;
        let start = |axis: usize| start.get(axis).copied().unwrap_or(0) as f64;
        let moved = |transform| affine::moved(transform, start(x), start(y));
        Some(Georeference {
            crs: self.crs.clone(),
            transform: self.transform.map(moved),
            axes: [kept(y)?, kept(x)?],
        })
    }
}

/// Whether two transforms differ by less than a hundredth of a pixel in the first million pixels.
fn are_alike(one: &Affine, other: &Affine) -> bool {
    let [_, dx, rx, _, ry, dy] = *one;
    let (width, height) = (dx.abs().max(rx.abs()), dy.abs().max(ry.abs()));
    let within = |at: usize, size: f64, part: f64| {
        let difference = one
            .get(at)
            .zip(other.get(at))
            .map(|(one, other)| one - other);
        difference.is_some_and(|difference| difference.abs() <= size * part)
    };
    (0..3).all(|at| within(at, width, if at == 0 { 1e-2 } else { 1e-4 }))
        && (3..6).all(|at| within(at, height, if at == 3 { 1e-2 } else { 1e-4 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(transform: Option<Affine>, axes: [usize; 2]) -> Georeference {
        Georeference {
            crs: None,
            transform,
            axes,
        }
    }

    #[test]
    fn the_plane_of_the_last_two_axes_has_a_transform() {
        let transform = [0.0, 1.0, 0.0, 9.0, 0.0, -2.0];
        assert_eq!(of(Some(transform), [1, 2]).raster(3), Some(transform));
        let turned = Some([0.0, 0.0, 1.0, 9.0, -2.0, 0.0]);
        assert_eq!(of(Some(transform), [1, 0]).raster(2), turned);
        assert_eq!(of(Some(transform), [0, 1]).raster(3), None);
        assert_eq!(of(None, [0, 1]).raster(2), None);
    }

    #[test]
    fn a_selection_keeps_its_place() {
        let whole = of(Some([0.0, 1.0, 0.0, 9.0, 0.0, -2.0]), [1, 2]);
        let part = whole.part(&[1, 2, 3], &[1, 2]).unwrap();
        assert_eq!(part, of(Some([3.0, 1.0, 0.0, 5.0, 0.0, -2.0]), [0, 1]));
        assert_eq!(whole.part(&[1, 2, 3], &[0, 2]), None);
    }

    #[test]
    fn exact_numbers_are_kept_where_coordinates_agree() {
        let array = super::super::testing::array("x", "\"<f8\"", &[3]);
        let numbers = CoordinateNumbers::of(&array.data_type, &array.attributes).unwrap();
        let spacing = |first, last| Spacing::of(&numbers, (first, last), 3).unwrap();
        let told = [0.1, 0.1, 0.0, 0.9, 0.0, -0.1];
        let facts = GeoFacts {
            known: Some(Arc::new(of(Some(told), [0, 1]))),
            axes: [0, 1],
            ..GeoFacts::default()
        };
        let same = facts.with_coordinates([spacing(0.85, 0.65), spacing(0.15, 0.35)]);
        assert_eq!(same.transform, Some(told));
        let other = facts.with_coordinates([spacing(0.85, 0.65), spacing(1.15, 1.35)]);
        assert_ne!(other.transform, Some(told));
        assert!((other.transform.unwrap()[0] - 1.1).abs() < 1e-12);
    }
}
