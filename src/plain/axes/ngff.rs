//! Axes from OME-NGFF multiscales, versions 0.1 to 0.6.
//!
//! | version | where | axes | voxel sizes |
//! |---|---|---|---|
//! | 0.1, 0.2 | `multiscales` | none: `t c z y x` | none |
//! | 0.3 | `multiscales` | names | none |
//! | 0.4 | `multiscales` | `{name, type, unit}` | `coordinateTransformations` of the dataset, then of the multiscale |
//! | 0.5 | `ome.multiscales` | as 0.4 | as 0.4 |
//! | 0.6 | `ome.multiscales` | those of the system in `coordinateSystems` to which the dataset leads | `coordinateTransformations` of the dataset |
//!
//! <https://ngff.openmicroscopy.org/0.5/> and <https://ngff.openmicroscopy.org/0.6/>, sections "axes",
//! "coordinateTransformations" and "multiscales". `SpatialData` has versions of its own, such as
//! `0.5-dev-spatialdata`, whose transformations of the multiscale are alternatives. A multiscale with invalid axes is
//! skipped. A multiscale with transformations that are invalid, or that have no spacing along each axis, gives names
//! and kinds, but neither spacings nor units, and the reason. If the scale of an axis is not greater than 0, this holds
//! for that axis alone.

mod image_name;
mod transforms;

use std::collections::HashSet;

use super::axis::{Axis, AxisKind};
use super::cf::kind_of_name;
use super::channel::channels;
use super::{Ancestor, Surroundings};
use crate::metadata::{Attributes, JsonTree};
use image_name::image_name;

/// The axes of an array of this shape below the first of `groups`. `None` unless a multiscale of that group has a
/// dataset at the path of the array, and as many axes as the array. The other groups are those around the first one,
/// the nearest first.
pub(super) fn axes(groups: &[Ancestor<'_>], shape: &[u64]) -> Option<Surroundings> {
    let group = groups.first()?;
    let path = normal(group.path)?;
    let in_each = |attributes: &Attributes, default: &[&str]| {
        let multiscales = attributes.get("multiscales")?.as_list()?;
        let mut found = multiscales.iter().find_map(|multiscale| {
            let multiscale = multiscale.as_object()?;
            let found = of_multiscale(&path, multiscale, shape.len(), default)?;
            Some(Surroundings {
                image: image_name(multiscale, groups),
                ..found
            })
        })?;
        if let Some(omero) = attributes.get("omero") {
            describe_channels(&mut found.axes, shape, omero);
        }
        Some(found)
    };
    let ome = group.attributes.get("ome").and_then(JsonTree::as_object);
    ome.and_then(|ome| in_each(ome, &[]))
        .or_else(|| in_each(group.attributes, &["t", "c", "z", "y", "x"]))
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
pub(super) fn normal(path: &str) -> Option<Vec<&str>> {
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
    let own = dataset.get(transforms::MEMBER);
    let systems = multiscale.get("coordinateSystems");
    let mut axes = match (systems, multiscale.get("axes")) {
        (Some(systems), _) => axes_of(own_system(systems, own?)?.get("axes")?)?,
        (None, Some(axes)) => axes_of(axes)?,
        (None, None) if matches!(multiscale.text("version"), None | Some("0.1" | "0.2")) => {
            default.iter().map(|name| named(name)).collect()
        }
        (None, None) => return None,
    };
    let names: HashSet<_> = axes.iter().map(|axis| axis.name.as_deref()).collect();
    if axes.len() != rank || names.len() != rank {
        return None;
    }
    let shared = multiscale.get(transforms::MEMBER);
    let placed = own.map(|own| match systems {
        Some(_) => transforms::of_version_06(own, rank),
        None => transforms::of_version_04(own, shared, rank),
    });
    // With a unit and no spacing, readers would take one element for one unit.
    let left_out = match placed.transpose() {
        Ok(Some(placed)) => {
            let mut without = Vec::new();
            for (axis, placed) in axes.iter_mut().zip(placed) {
                axis.spacing = placed.map(|placed| placed.spacing);
                axis.origin = placed.and_then(|placed| placed.origin);
                if placed.is_none() {
                    axis.unit = None;
                    without.push(axis.name.as_deref().unwrap_or_default());
                }
            }
            (!without.is_empty()).then(|| transforms::not_positive(&without))
        }
        unplaced => {
            for axis in &mut axes {
                axis.unit = None;
            }
            unplaced.err()
        }
    };
    Some(Surroundings {
        axes,
        image: None,
        left_out,
    })
}

/// The coordinate system of the image itself in version 0.6: that to which the transformation of a dataset leads.
fn own_system<'a>(systems: &'a JsonTree, transformations: &JsonTree) -> Option<&'a Attributes> {
    let transformation = transformations.as_list()?.first()?.as_object()?;
    let name = transforms::output_name(transformation)?;
    let mut systems = systems.as_list()?.iter().filter_map(JsonTree::as_object);
    systems.find(|system| system.text("name") == Some(name))
}

/// Parses a list of axes.
fn axes_of(axes: &JsonTree) -> Option<Vec<Axis>> {
    axes.as_list()?.iter().map(axis).collect()
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
            .filter(|unit| !unit.trim().is_empty())
            .map(str::to_owned),
        ..axis
    })
}
