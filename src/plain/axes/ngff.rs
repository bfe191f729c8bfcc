//! Axes from OME-NGFF multiscales, versions 0.1 to 0.5.
//!
//! | version | where | axes | voxel sizes |
//! |---|---|---|---|
//! | 0.1, 0.2 | `multiscales` | none: `t c z y x` | none |
//! | 0.3 | `multiscales` | names | none |
//! | 0.4 | `multiscales` | `{name, type, unit}` | `coordinateTransformations` of the dataset, then of the multiscale |
//! | 0.5 | `ome.multiscales` | as 0.4 | as 0.4 |
//!
//! <https://ngff.openmicroscopy.org/0.5/>, sections "axes", "coordinateTransformations" and
//! "multiscales". A multiscale with invalid axes is skipped. A multiscale with invalid
//! transformations gives names and kinds, but neither spacings nor units.

use std::collections::HashSet;

use super::axis::{Axis, AxisKind};
use super::cf::kind_of_name;
use super::channel::channels;
use super::{Ancestor, Surroundings};
use crate::metadata::{Attributes, JsonTree};

/// The axes of the array of this shape below `group`, if a multiscale of the group has a dataset at
/// its path and as many axes.
pub(super) fn axes(group: &Ancestor<'_>, shape: &[u64]) -> Option<Surroundings> {
    let path = normal(group.path)?;
    let in_each = |attributes: &Attributes, default: &[&str]| {
        let multiscales = attributes.get("multiscales")?.as_list()?;
        let mut found = multiscales.iter().find_map(|multiscale| {
            of_multiscale(&path, multiscale.as_object()?, shape.len(), default)
        })?;
        if let Some(omero) = attributes.get("omero") {
            describe_channels(&mut found.axes, shape, omero);
        }
        Some(found)
    };
    let ome = group.attributes.get("ome").and_then(JsonTree::as_object);
    let mut found = ome
        .and_then(|ome| in_each(ome, &[]))
        .or_else(|| in_each(group.attributes, &["t", "c", "z", "y", "x"]))?;
    found.image = found.image.or_else(|| Some(group.name.to_owned()));
    Some(found)
}

/// Adds the channels of `omero` to the axis of channels, if there are as many as it is long.
fn describe_channels(axes: &mut [Axis], shape: &[u64], omero: &JsonTree) {
    let with_lengths = axes.iter_mut().zip(shape);
    let mut of_channels = with_lengths.filter(|(axis, _)| axis.kind == AxisKind::Channel);
    let (Some((found, &length)), None) = (of_channels.next(), of_channels.next()) else {
        return;
    };
    found.channels = channels(omero)
        .filter(|channels| channels.len() as u64 == length)
        .unwrap_or_default();
}

/// The segments of a relative path; `None` if it leaves its starting point with `..`.
fn normal(path: &str) -> Option<Vec<&str>> {
    let segments = path
        .split('/')
        .filter(|segment| !["", "."].contains(segment));
    let segments: Vec<&str> = segments.collect();
    (!segments.contains(&"..")).then_some(segments)
}

fn of_multiscale(
    path: &[&str],
    multiscale: &Attributes,
    rank: usize,
    default: &[&str],
) -> Option<Surroundings> {
    let mut datasets = multiscale.get("datasets")?.as_list()?.iter();
    let dataset = datasets.find_map(|dataset| {
        let dataset = dataset.as_object()?;
        (normal(dataset.text("path")?)? == path).then_some(dataset)
    })?;
    let mut axes = match multiscale.get("axes") {
        Some(axes) => axes
            .as_list()?
            .iter()
            .map(axis)
            .collect::<Option<Vec<_>>>()?,
        None if matches!(multiscale.text("version"), None | Some("0.1" | "0.2")) => {
            default.iter().map(|name| named(name)).collect()
        }
        None => return None,
    };
    let names: HashSet<_> = axes.iter().map(|axis| axis.name.as_deref()).collect();
    if axes.len() != rank || names.len() != rank {
        return None;
    }
    let own = dataset.get("coordinateTransformations");
    let shared = multiscale.get("coordinateTransformations");
    let transforms = own.and_then(|own| transforms(own, shared, rank));
    if let Some(transforms) = transforms {
        for (axis, (scale, translation)) in axes.iter_mut().zip(transforms) {
            axis.spacing = Some(scale);
            axis.origin = translation;
        }
    } else {
        // With a unit and no spacing, readers would take one element for one unit.
        for axis in &mut axes {
            axis.unit = None;
        }
    }
    // Some programs write the path of the group, which is `/` for the root.
    let image = multiscale
        .text("name")
        .filter(|name| !name.trim_matches('/').is_empty());
    Some(Surroundings {
        axes,
        image: image.map(str::to_owned),
    })
}

fn named(name: &str) -> Axis {
    Axis {
        name: Some(name.to_owned()),
        kind: kind_of_name(name),
        ..Axis::default()
    }
}

/// Parses an entry of `axes`: a name, or an object with a name.
fn axis(entry: &JsonTree) -> Option<Axis> {
    if let Some(name) = entry.as_text() {
        return Some(named(name));
    }
    let entry = entry.as_object()?;
    let text = |member: &str| match entry.get(member) {
        None | Some(JsonTree::Null) => Some(None),
        Some(value) => value.as_text().map(Some),
    };
    let axis = named(entry.text("name")?);
    Some(Axis {
        kind: match text("type")? {
            Some("space") => AxisKind::Space,
            Some("time") => AxisKind::Time,
            Some("channel") => AxisKind::Channel,
            Some(_) => AxisKind::Other,
            None => axis.kind,
        },
        unit: text("unit")?
            .filter(|unit| !unit.is_empty())
            .map(str::to_owned),
        ..axis
    })
}

/// The combined transformations of a dataset (`own`, required) and then of its multiscale
/// (`shared`): for each axis the scale, and the translation if there is one. Either list is a scale
/// that may be followed by a translation.
fn transforms(
    own: &JsonTree,
    shared: Option<&JsonTree>,
    rank: usize,
) -> Option<Vec<(f64, Option<f64>)>> {
    let mut transforms = vec![(1.0, None); rank];
    for (step, transformations) in std::iter::once(own).chain(shared).enumerate() {
        let (mut n_scales, mut n_translations) = (0, 0);
        for transformation in transformations.as_list()? {
            let transformation = transformation.as_object()?;
            match transformation.text("type")? {
                "identity" => {}
                "scale" if n_scales == 0 && n_translations == 0 => {
                    n_scales += 1;
                    let by = vector(transformation, "scale", rank)?;
                    for ((scale, translation), by) in transforms.iter_mut().zip(by) {
                        *scale *= by;
                        *translation = translation.map(|translation: f64| translation * by);
                        if by <= 0.0 {
                            return None;
                        }
                    }
                }
                "translation" if n_translations == 0 => {
                    n_translations += 1;
                    let by = vector(transformation, "translation", rank)?;
                    for ((_, translation), by) in transforms.iter_mut().zip(by) {
                        *translation = Some(translation.unwrap_or(0.0) + by);
                    }
                }
                _ => return None,
            }
        }
        if step == 0 && n_scales == 0 {
            return None;
        }
    }
    let is_sound = |(scale, translation): &(f64, Option<f64>)| {
        scale.is_normal() && *scale > 0.0 && translation.is_none_or(f64::is_finite)
    };
    transforms.iter().all(is_sound).then_some(transforms)
}

/// The member `member` of a transformation, which must be a list of `rank` finite numbers.
fn vector(transformation: &Attributes, member: &str, rank: usize) -> Option<Vec<f64>> {
    let numbers = transformation.get(member)?.as_list()?.iter();
    let numbers: Option<Vec<f64>> = numbers.map(JsonTree::as_number).collect();
    numbers.filter(|numbers| numbers.len() == rank && numbers.iter().all(|n| n.is_finite()))
}
