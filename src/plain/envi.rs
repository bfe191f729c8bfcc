//! `.raw.hdr`: an ENVI header beside `NAME.raw`, for GDAL, QGIS, ENVI, IDL, GRASS.
//!
//! ```text
//! ENVI
//! samples = 5                             the last axis
//! lines = 4                               the one before
//! bands = 3                               all others, as one
//! header offset = 0
//! file type = ENVI Standard
//! data type = 12
//! interleave = bsq
//! byte order = 0
//! map info = {UTM, 1, 1, x, y, dx, dy, 32, North, WGS-84, units=Meters}     on the earth
//! map info = {Arbitrary, 1.5, 1.5, x, y, dx, dy, 0}      else, if the last two axes have spacings
//! coordinate system string = {PROJCS["WGS 84 / UTM zone 32N", …]}
//! band names = {t 0 z 0, t 0 z 1, t 0 z 2}               of 1024 bands at most
//! data ignore value = -9999                              `_FillValue`
//! data gain values = {0.5, 0.5, 0.5}                     `scale_factor`, for as many bands as names
//! data offset values = {0.0, 0.0, 0.0}                   `add_offset`, for as many bands as names
//! ```
//!
//! The pixel 1, 1 is the outer corner of the first pixel, and 1.5, 1.5 is its centre. ENVI counts lines downwards, so `dy`
//! is minus the spacing. The header has no rotated transforms. Truth values are unsigned bytes. An array needs two axes or more, and none
//! may be empty; GDAL opens at most 65,536 bands.
//!
//! The file is not called `NAME.hdr`: [`FileFormat::extension`] gives the reason.
//!
//! Source: "ENVI Header Files" in the documentation of ENVI; GDAL looks for the name `raw.hdr`.

use std::fmt::Write;

use super::number::Scalar;
use super::packing::{self, MissingValue};
use super::{Array, Axis, FileFormat, Layout};
use crate::error::FormatError;
use crate::grid::product;

/// The most bands that are named one by one.
const MOST_NAMED: u64 = 1024;

pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    Ok(Layout::of_bytes(header(array)?.into_bytes()))
}

fn header(array: &Array) -> Result<String, FormatError> {
    array.n_bytes()?;
    let (_, code) = Scalar::spelled(array, FileFormat::Envi, type_code)?;
    let unfit = || FileFormat::Envi.refused_shape(array);
    let [outer @ .., lines, samples] = array.shape.as_slice() else {
        return Err(unfit());
    };
    let bands = product(outer).ok_or_else(unfit)?;
    // Readers use 32-bit integers.
    let fits = |length: u64| length > 0 && i32::try_from(length).is_ok();
    if !(fits(bands) && fits(*lines) && fits(*samples)) {
        return Err(unfit());
    }
    let mut out = format!(
        "ENVI\nsamples = {samples}\nlines = {lines}\nbands = {bands}\nheader offset = 0\n\
         file type = ENVI Standard\ndata type = {code}\ninterleave = bsq\nbyte order = 0\n"
    );
    place(&mut out, array);
    let is_short = bands <= MOST_NAMED;
    if is_short && !outer.is_empty() {
        let names = (0..bands).map(|band| band_name(band, outer, &array.axes));
        list(&mut out, "band names", names);
    }
    match packing::missing(array) {
        Some(MissingValue::Integer(value)) => {
            let _ = writeln!(out, "data ignore value = {value}");
        }
        Some(MissingValue::Float(value)) if !value.is_infinite() => {
            let value = format!("{value:?}").to_lowercase();
            let _ = writeln!(out, "data ignore value = {value}");
        }
        _ => {}
    }
    if let Some((scale, offset)) = packing::scale_and_offset(array).filter(|_| is_short) {
        let each = |value: f64| (0..bands).map(move |_| format!("{value:?}"));
        list(&mut out, "data gain values", each(scale));
        list(&mut out, "data offset values", each(offset));
    }
    Ok(out)
}

fn list(out: &mut String, field: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.collect();
    let _ = writeln!(out, "{field} = {{{}}}", items.join(", "));
}

/// Transform and CRS, if they are known; else the spacings of the axes.
fn place(out: &mut String, array: &Array) {
    let geo = array.geo.as_deref();
    match geo.and_then(|geo| geo.raster(array.rank())) {
        Some([left, dx, rx, top, ry, dy]) if rx == 0.0 && ry == 0.0 => {
            let code = geo.and_then(|geo| geo.crs.as_ref()?.epsg());
            let (name, details) = projection(code);
            let dy = -dy;
            let _ = writeln!(
                out,
                "map info = {{{name}, 1, 1, {left:?}, {top:?}, {dx:?}, {dy:?}{details}}}"
            );
        }
        Some(_) => {}
        None => map_info(out, &array.axes),
    }
    let wkt = geo.and_then(|geo| geo.crs.as_ref()?.wkt_1());
    let wkt = wkt.map(|wkt| wkt.split_whitespace().collect::<Vec<_>>().join(" "));
    if let Some(wkt) = wkt.filter(|wkt| !wkt.contains(['{', '}'])) {
        let _ = writeln!(out, "coordinate system string = {{{wkt}}}");
    }
}

/// ENVI's name of the projection that is the CRS `code` of EPSG, and the details that belong to it.
fn projection(code: Option<u16>) -> (&'static str, String) {
    let utm = |zone: u16, half: &str| format!(", {zone}, {half}, WGS-84, units=Meters");
    match code {
        Some(code @ 32601..=32660) => ("UTM", utm(code - 32600, "North")),
        Some(code @ 32701..=32760) => ("UTM", utm(code - 32700, "South")),
        Some(4326) => ("Geographic Lat/Lon", ", WGS-84, units=Degrees".to_owned()),
        _ => ("Arbitrary", ", 0".to_owned()),
    }
}

fn map_info(out: &mut String, axes: &[Axis]) {
    let [.., y, x] = axes else { return };
    if let (Some(dx), Some(dy)) = (x.spacing, y.spacing) {
        let left = x.origin.unwrap_or(0.0);
        let top = y.origin.unwrap_or(0.0);
        let dy = -dy;
        let _ = writeln!(
            out,
            "map info = {{Arbitrary, 1.5, 1.5, {left:?}, {top:?}, {dx:?}, {dy:?}, 0}}"
        );
    }
}

/// The name of a band, from its indices: `t 0 z 1`.
pub(super) fn band_name(band: u64, outer: &[u64], axes: &[Axis]) -> String {
    let mut rest = band;
    let mut parts = Vec::new();
    for (number, (&length, axis)) in outer.iter().zip(axes).enumerate().rev() {
        // Formats of images refuse lengths of 0.
        let index = rest % length.max(1);
        rest /= length.max(1);
        let is_word =
            |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let name = axis.name.as_deref().filter(is_word);
        let name = name.map_or_else(|| format!("axis{number}"), str::to_owned);
        parts.push(format!("{name} {index}"));
    }
    parts.reverse();
    parts.join(" ")
}

fn type_code(number: Scalar) -> Option<u8> {
    Some(match number {
        Scalar::Bool | Scalar::UInt8 => 1,
        Scalar::Int16 => 2,
        Scalar::Int32 => 3,
        Scalar::Float32 => 4,
        Scalar::Float64 => 5,
        Scalar::Complex64 => 6,
        Scalar::Complex128 => 9,
        Scalar::UInt16 => 12,
        Scalar::UInt32 => 13,
        Scalar::Int64 | Scalar::Time => 14,
        Scalar::UInt64 => 15,
        Scalar::Int8 | Scalar::Float16 => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::geo::{Crs, Georeference};
    use super::super::testing::{array, attributes};
    use super::*;

    #[test]
    fn leading_axes_are_bands() {
        let mut array = array("t", r#""<i2""#, &[2, 2, 4, 5]);
        array.axes[0].name = Some("t".to_owned());
        array.axes[1].name = Some("a, b".to_owned());
        array.axes[2].spacing = Some(-0.5);
        array.axes[2].origin = Some(90.0);
        array.axes[3].spacing = Some(0.25);
        array.attributes = attributes(r#"{"_FillValue": -9999, "scale_factor": 0.1}"#);
        let expected = "ENVI\nsamples = 5\nlines = 4\nbands = 4\nheader offset = 0\n\
            file type = ENVI Standard\ndata type = 2\ninterleave = bsq\nbyte order = 0\n\
            map info = {Arbitrary, 1.5, 1.5, 0.0, 90.0, 0.25, 0.5, 0}\n\
            band names = {t 0 axis1 0, t 0 axis1 1, t 1 axis1 0, t 1 axis1 1}\n\
            data ignore value = -9999\n\
            data gain values = {0.1, 0.1, 0.1, 0.1}\ndata offset values = {0.0, 0.0, 0.0, 0.0}\n";
        assert_eq!(header(&array).unwrap(), expected);
    }

    #[test]
    fn a_place_on_the_earth_is_that_of_pixel_corners() {
        let header_of = |crs: Option<&str>, transform| {
            let mut array = array("t", r#""<f4""#, &[4, 5]);
            array.axes[1].spacing = Some(7.0);
            array.axes[0].spacing = Some(7.0);
            array.geo = Some(Arc::new(Georeference {
                crs: crs.map(|text| Crs {
                    wkt: Some(text.into()),
                    ..Crs::default()
                }),
                transform,
                axes: [0, 1],
            }));
            let header = header(&array).unwrap();
            let tail = header.split_once("byte order = 0\n").unwrap().1;
            tail.to_owned()
        };
        let utm = "PROJCS[\"a\",\n  AUTHORITY[\"EPSG\",\"32733\"]]";
        assert_eq!(
            header_of(Some(utm), Some([500_000.0, 10.0, 0.0, 9e6, 0.0, -10.0])),
            "map info = {UTM, 1, 1, 500000.0, 9000000.0, 10.0, 10.0, 33, South, WGS-84, units=Meters}\n\
             coordinate system string = {PROJCS[\"a\", AUTHORITY[\"EPSG\",\"32733\"]]}\n"
        );
        assert_eq!(
            header_of(None, Some([0.0, 1.0, 0.0, -90.0, 0.0, 2.0])),
            "map info = {Arbitrary, 1, 1, 0.0, -90.0, 1.0, -2.0, 0}\n"
        );
        assert_eq!(
            header_of(Some("GEOGCS[\"{\"]"), Some([0.0, 1.0, 1.0, 0.0, 2.0, 1.0])),
            ""
        );
    }

    #[test]
    fn many_bands_are_not_named_one_by_one() {
        let mut array = array("t", r#""<f4""#, &[1_000_000, 1, 2]);
        array.attributes = attributes(r#"{"_FillValue": "NaN", "add_offset": 1}"#);
        let header = header(&array).unwrap();
        assert!(header.ends_with("byte order = 0\ndata ignore value = nan\n"));
    }

    #[test]
    fn types_and_shapes_that_envi_lacks_are_refused_by_name() {
        for (typestr, shape, found) in [
            (r#""|i1""#, &[1, 1][..], "data type: `|i1`"),
            (r#""<f2""#, &[1, 1], "data type: `<f2`"),
            (r#""|V2""#, &[1, 1], "data type: `|V2`"),
            (r#""<u2""#, &[], "shape: `[]`"),
            (r#""<u2""#, &[3], "shape: `[3]`"),
            (r#""<u2""#, &[3, 0, 3], "shape: `[3, 0, 3]`"),
            (r#""|u1""#, &[1 << 31, 2], "shape: `[2147483648, 2]`"),
        ] {
            let error = layout(&array("t", typestr, shape)).unwrap_err().to_string();
            assert!(error.starts_with(found), "{error}");
        }
    }
}
