//! GeoTIFF in tiles, arranged as a COG (cloud-optimized GeoTIFF): all directories first, the smallest level
//! next, the image last.
//!
//! The last two axes are y and x, or the two before an axis of 3 or 4 colours. All other axes are bands, each with
//! planes of its own. Rows are in the order of the array. Truth values are bytes.
//!
//! The transform of the pixels and a CRS with a code of EPSG are in fields of [`geotiff`]; any other CRS is in a file
//! `NAME.geo.tif.aux.xml` beside it.
//!
//! Scales, offsets, units and names of bands are in GDAL's tags, because TIFF has none for them:
//!
//! ```text
//! 42112 GDAL_METADATA  <GDALMetadata><Item name="SCALE" sample="0" role="scale">0.1</Item>…</GDALMetadata>
//! 42113 GDAL_NODATA    the value of missing elements, as text: -9999, nan
//! ```
//!
//! Sources: <https://gdal.org/en/stable/drivers/raster/gtiff.html#metadata>; OGC 21-026, "Cloud Optimized GeoTIFF".

use std::fmt::Write;

use super::array::Array;
use super::envi::band_name;
use super::format::FileFormat;
use super::geo::geotiff;
use super::image::samples_of;
use super::layout::{Layout, TileAxes, Tiles};
use super::number::Scalar;
use super::packing::{self, MissingValue};
use super::tiff::{self, Field, Sample, tag};
use super::tiled::{self, Arrangement, Level};
use super::xml_text::escaped;
use crate::error::FormatError;
use crate::grid::product;

/// The most bands that are named one by one.
const MOST_NAMED: u64 = 1024;
/// The most bands of a TIFF.
const MOST_BANDS: u64 = u16::MAX as u64;
/// Longer names and units are left out.
const LONGEST_TEXT: usize = 256;
/// When the metadata is this long, further bands have no names and units. Their scales, which are short, stay, because
/// the values would be wrong without them.
const LONGEST_METADATA: usize = 1 << 20;

/// A file, and the levels that it does not have.
#[derive(Debug)]
pub struct GeoTiff {
    /// The file.
    pub layout: Layout,
    /// For each level that was given, the reason why the file has no overview of it.
    pub left_out: Vec<Option<FormatError>>,
}

/// Lays out `array` as a file. `levels` are coarser levels of it, the finest first, which become overviews.
///
/// # Errors
///
/// When the format cannot hold the array.
pub fn geo_tiff(array: &Array, levels: &[Array]) -> Result<GeoTiff, FormatError> {
    let raster = Raster::of(array)?;
    let mut own: Vec<Field> = geo_fields(&raster);
    own.extend(metadata(&raster).map(|xml| Field::text(tag::GDAL_METADATA, &xml)));
    let (mut all, mut left_out) = (vec![raster.level()?], Vec::new());
    let mut last = raster.plane();
    for level in levels {
        match raster.overview(level, last) {
            Ok((level, plane)) => {
                all.push(level);
                last = plane;
                left_out.push(None);
            }
            Err(reason) => left_out.push(Some(reason)),
        }
    }
    let layout = tiled::file(all, Arrangement::Cog, &own)?;
    Ok(GeoTiff { layout, left_out })
}

/// The text of the file beside a GeoTIFF that has its CRS, if the GeoTIFF itself cannot hold it.
///
/// # Errors
///
/// When there is no GeoTIFF.
pub fn crs_beside(array: &Array) -> Result<Option<String>, FormatError> {
    Raster::of(array)?;
    Ok(geotiff::aux_xml(array))
}

/// The fields of the place on the earth.
fn geo_fields(raster: &Raster<'_>) -> Vec<Field> {
    // The planes are those of the last two axes, where the colours of a pixel do not count.
    let planes = Array {
        shape: raster
            .array
            .shape
            .iter()
            .take(raster.outer + 2)
            .copied()
            .collect(),
        ..raster.array.clone()
    };
    geotiff::fields(&planes)
}

/// An array as bands of an image.
struct Raster<'a> {
    array: &'a Array,
    sample: Sample,
    number: Scalar,
    /// The number of axes in front of y.
    outer: usize,
    /// The number of planes.
    planes: u64,
}

impl<'a> Raster<'a> {
    fn of(array: &'a Array) -> Result<Raster<'a>, FormatError> {
        let spell = |_| tiff::sample(&array.data_type);
        let (number, sample) = Scalar::spelled(array, FileFormat::GeoTif, spell)?;
        let per_pixel = samples_of(array);
        let outer = array.rank().checked_sub(2 + usize::from(per_pixel > 1));
        let outer = outer.filter(|_| !array.shape.contains(&0));
        let refused = || FileFormat::GeoTif.refused_shape(array);
        let outer = outer.ok_or_else(refused)?;
        let planes = product(&array.shape[..outer]).ok_or_else(refused)?;
        FormatError::check_limit("the number of bands", planes, MOST_BANDS)?;
        if per_pixel > 1 && planes > 1 {
            let several = "several pictures in colours (a selection has one)";
            return Err(FileFormat::GeoTif.refused("shape", several));
        }
        Ok(Raster {
            array,
            sample: Sample {
                per_pixel,
                ..sample
            },
            number,
            outer,
            planes,
        })
    }

    /// The number of bands.
    fn bands(&self) -> u64 {
        self.planes.max(self.sample.per_pixel.into())
    }

    /// The height and the width of a plane.
    fn plane(&self) -> [u64; 2] {
        [0, 1].map(|k| self.array.shape.get(self.outer + k).copied().unwrap_or(0))
    }

    /// A coarser level of the image, of which `last` is the level before it.
    fn overview(&self, array: &Array, last: [u64; 2]) -> Result<(Level, [u64; 2]), FormatError> {
        let raster = Raster::of(array)?;
        let is_like = |axis: usize| array.shape.get(axis) == self.array.shape.get(axis);
        let mut outside =
            (0..self.array.rank()).filter(|axis| !(self.outer..self.outer + 2).contains(axis));
        let other = |what| Err(FormatError::document("level", what));
        if raster.outer != self.outer || array.rank() != self.array.rank() || !outside.all(is_like)
        {
            return other("its bands are others");
        }
        if array.data_type.name != self.array.data_type.name || raster.sample != self.sample {
            return other("its data type is another one");
        }
        let [height, width] = raster.plane();
        if height > last[0] || width > last[1] || [height, width] == last {
            return other("it is not smaller than the level before it");
        }
        Ok((raster.level()?, [height, width]))
    }

    fn level(&self) -> Result<Level, FormatError> {
        let axes = TileAxes {
            order: (0..self.array.rank()).collect(),
            outer: self.outer,
        };
        let tile = tiled::tile_shape(self.array, [self.outer, self.outer + 1]);
        let tiles = Tiles::new(self.array, axes, tile)?;
        let no_data = no_data(self.array);
        Ok(Level {
            tiles: tiles.transformed(self.number.transform()),
            sample: self.sample,
            fields: no_data
                .map(|text| Field::text(tag::GDAL_NODATA, &text))
                .into_iter()
                .collect(),
        })
    }

    /// The name of a band: that of its channel, the indices along the axes in front of y, or for a single
    /// band the `long_name` of the array.
    fn name(&self, band: u64) -> Option<String> {
        let array = self.array;
        let bands = if self.planes > 1 {
            0..self.outer
        } else {
            self.outer + 2..array.rank()
        };
        let long = |&axis: &usize| array.shape.get(axis).is_some_and(|&length| length > 1);
        let mut long_axes = bands.filter(long);
        let name = match (long_axes.next(), long_axes.next()) {
            (None, _) => {
                let name = array
                    .attributes
                    .get("long_name")
                    .and_then(|name| name.as_text());
                name.map(str::to_owned)
            }
            (Some(axis), None) => {
                let channel = usize::try_from(band).ok();
                let channel = channel.and_then(|at| array.axes.get(axis)?.channels.get(at));
                channel.and_then(|channel| channel.label.clone())
            }
            (Some(_), Some(_)) => None,
        };
        let by_index =
            || (self.planes > 1).then(|| band_name(band, &array.shape[..self.outer], &array.axes));
        name.or_else(by_index)
    }
}

/// The value of missing elements as text.
fn no_data(array: &Array) -> Option<String> {
    // GDAL writes the value as the fill value, and odc-geo as an attribute.
    let is_of_gdal = array.attributes.get("_CRS").is_some();
    let of_gdal = || packing::fill_value(array).filter(|_| is_of_gdal);
    let of_odc = || packing::value_of(array, array.attributes.get("nodata")?);
    let value = packing::missing(array).or_else(of_odc).or_else(of_gdal)?;
    Some(match value {
        MissingValue::Integer(value) => value.to_string(),
        MissingValue::Float(value) => format!("{value:?}").to_lowercase(),
    })
}

/// The metadata of the bands for GDAL; `None` if there is nothing to say.
fn metadata(raster: &Raster<'_>) -> Option<String> {
    let array = raster.array;
    let short = |text: &str| !text.is_empty() && text.len() <= LONGEST_TEXT;
    let units = array
        .attributes
        .get("units")
        .and_then(|units| units.as_text());
    let units = units.filter(|units| short(units)).map(escaped);
    let packing = packing::scale_and_offset(array);
    let begin = "<GDALMetadata>";
    let mut text = begin.to_owned();
    for band in 0..raster.bands() {
        let has_room = text.len() < LONGEST_METADATA;
        let mut item = |name: &str, role: &str, value: &str| {
            let _ = write!(
                text,
                "<Item name=\"{name}\" sample=\"{band}\" role=\"{role}\">{value}</Item>"
            );
        };
        let name = (has_room && band < MOST_NAMED)
            .then(|| raster.name(band))
            .flatten();
        if let Some(name) = name.filter(|name| short(name)) {
            item("DESCRIPTION", "description", &escaped(&name));
        }
        if let Some(units) = units.as_ref().filter(|_| has_room) {
            item("UNITTYPE", "unittype", units);
        }
        if let Some((scale, offset)) = packing {
            item("OFFSET", "offset", &format!("{offset:?}"));
            item("SCALE", "scale", &format!("{scale:?}"));
        }
    }
    (text.len() > begin.len()).then(|| text + "</GDALMetadata>")
}

#[cfg(test)]
mod tests;
