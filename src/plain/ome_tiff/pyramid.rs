//! The levels of an image as one file: a pyramid, in which each plane has its coarser levels as sub-directories.
//!
//! OME-TIFF 6.0 has pyramids in which y and x alone become shorter. A level with fewer slices, as some writers make them for
//! volumes, is left out, as is each level that does not follow from those before it.
//! <https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/specification.html#sub-resolutions>

use super::super::image::ImageAxis;
use super::super::layout::{TileAxes, Tiles};
use super::super::tiff::{Field, tag};
use super::super::tiled::{self, Arrangement, Level};
use super::super::{Array, FileFormat, Group, GroupFile, Narrowing, Omitted, Options, Transform};
use super::pixels::Pixels;
use super::xml::{self, Described};
use crate::error::FormatError;

/// Lays out the arrays of `group`, the levels of one image, as a file. The levels that do not fit are left out.
pub(in crate::plain) fn file(group: &Group, options: &Options) -> Result<GroupFile, FormatError> {
    let mut omitted = group.omitted.clone();
    let omit = |omitted: &mut Vec<Omitted>, name: &str, reason| {
        let name = name.to_owned();
        omitted.push(Omitted { name, reason });
    };
    let mut arrays = Vec::new();
    for array in &group.arrays {
        match narrowed(array, options) {
            Ok(array) => arrays.push(array),
            Err(reason) => omit(&mut omitted, &array.name, reason),
        }
    }
    let mut levels: Vec<Pixels<'_>> = Vec::new();
    for (array, transform) in &arrays {
        let fits = |level: &Pixels<'_>| match (levels.first(), levels.last()) {
            (Some(finest), Some(last)) => check_fit(finest, last, level),
            _ => Ok(()),
        };
        let level = Pixels::of(array, transform.clone());
        match level.and_then(|level| fits(&level).map(|()| level)) {
            Ok(level) => levels.push(level),
            Err(reason) => omit(&mut omitted, &array.name, reason),
        }
    }
    let Some(finest) = levels.first() else {
        // The reason of the finest level says best why there is no file.
        let reason = omitted
            .into_iter()
            .next()
            .map(|omitted| omitted.reason.within(&omitted.name));
        let none = || FormatError::document("multiscales", "the image has no levels");
        return Err(reason.unwrap_or_else(none));
    };
    omitted.extend(xml::unknown_units(finest));
    let described = Described {
        name: finest.array.image.as_ref().unwrap_or(&group.name),
        attributes: &group.attributes,
        omitted: &omitted,
    };
    let description = Field::text(tag::IMAGE_DESCRIPTION, &xml::document(&described, finest));
    let levels = levels.iter().map(tiled).collect::<Result<_, _>>()?;
    let layout = tiled::file(levels, Arrangement::Pyramid, &[description])?;
    Ok(GroupFile { layout, omitted })
}

/// The planes of a level in tiles.
fn tiled(pixels: &Pixels<'_>) -> Result<Level, FormatError> {
    let [y, x] = pixels.image.plane_indices();
    let axes = TileAxes {
        order: (0..pixels.array.rank()).collect(),
        outer: y,
    };
    let tiles = Tiles::new(pixels.array, axes, tiled::tile_shape(pixels.array, [y, x]))?;
    Ok(Level {
        tiles: tiles.transformed(pixels.transform.clone()),
        sample: pixels.sample,
        fields: pixels.resolution(),
    })
}

/// `array` with the type that the user wants for wide integers, and the transform for that.
fn narrowed(array: &Array, options: &Options) -> Result<(Array, Option<Transform>), FormatError> {
    let narrowing = options
        .integers
        .map(|to| Narrowing::of(array, FileFormat::OmeTif, to));
    Ok(match narrowing.transpose()?.flatten() {
        Some((array, narrowing)) => (array, Some(narrowing.transform())),
        None => (array.clone(), None),
    })
}

/// Checks that `level` can follow the levels from `finest` to `last`.
fn check_fit(
    finest: &Pixels<'_>,
    last: &Pixels<'_>,
    level: &Pixels<'_>,
) -> Result<(), FormatError> {
    let refused = |place: &str, problem: &str| Err(FormatError::document(place, problem));
    if (level.sample, level.pixel_type) != (finest.sample, finest.pixel_type) {
        return refused("data type", "is not that of the finest level");
    }
    if !level.image.roles().eq(finest.image.roles()) {
        return refused("axes", "are not those of the finest level");
    }
    for (name, role) in [
        ("slices", ImageAxis::Z),
        ("channels", ImageAxis::C),
        ("times", ImageAxis::T),
    ] {
        let [own, all] = [level, finest].map(|level| level.image.len(role));
        if own != all {
            let problem = format!(
                "{own} {name}, but the finest level has {all}, and the levels of OME-TIFF reduce y and x only"
            );
            return refused("shape", &problem);
        }
    }
    let ([height, width], [above, beside]) = (level.image.plane(), last.image.plane());
    if height > above || width > beside || (height, width) == (above, beside) {
        let problem = format!(
            "{height} x {width} pixels are not fewer than the {above} x {beside} of the level before it"
        );
        return refused("shape", &problem);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
