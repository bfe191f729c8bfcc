//! Spacings and origins from coordinate transformations.
//!
//! | version | those of a dataset | those of its multiscale |
//! |---|---|---|
//! | 0.4, 0.5 | a scale, perhaps a translation | perhaps each of the two, applied after the dataset's |
//! | 0.4, 0.5 of `SpatialData` | likewise | each of them leads to another system, its `output`; one is applied after the dataset's |
//! | 0.6 | one: a scale, an identity, or a sequence of scales and translations | lead away from the image's own system: not used |
//!
//! Other transformations (rotations and shears, or fields of displacements) have no spacing along an axis.

use crate::error::FormatError;
use crate::metadata::{Attributes, JsonTree};
use crate::plain::format::shortened;

/// The member of datasets and multiscales that lists transformations.
pub(super) const MEMBER: &str = "coordinateTransformations";
/// The coordinate system of which `SpatialData` speaks if nothing else is said.
const GLOBAL: &str = "global";
/// The most axes that an error names.
const MOST_NAMED: usize = 8;
/// The most sequences within each other.
const MOST_DEPTH: usize = 8;

/// The place of an array along an axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    /// Distance from one element to the next: a normal number greater than 0.
    pub(super) spacing: f64,
    /// Position of the first element, if there is a translation; finite.
    pub(super) origin: Option<f64>,
}

/// The composition of the transformations that were applied so far, axis by axis. `None` along an axis with a scale that is not
/// greater than 0.
struct Composition(Vec<Option<Placed>>);

/// The transformations of versions 0.4 and 0.5: those of a dataset (`own`), which have a scale, and then
/// those of its multiscale (`shared`). `None` for an axis with a scale that is not greater than 0.
pub(super) fn of_version_04(
    own: &JsonTree,
    shared: Option<&JsonTree>,
    rank: usize,
) -> Result<Vec<Option<Placed>>, FormatError> {
    let mut composition = Composition::new(rank);
    if !composition.apply_steps(transformations(own)?)? {
        return Err(refused("there is no scale"));
    }
    let shared = shared.map(transformations).transpose()?.unwrap_or_default();
    match alternative(shared)? {
        Some(only) => composition.apply(only, 0)?,
        None => {
            composition.apply_steps(shared)?;
        }
    }
    composition.finish()
}

/// The transformation that counts if those of a multiscale lead to coordinate systems with a name, each to its own: the only one, or
/// the one to the global system. `None` if they name no systems, so that they are steps.
fn alternative(shared: &[JsonTree]) -> Result<Option<&Attributes>, FormatError> {
    let all = shared.iter().filter_map(JsonTree::as_object);
    let all: Vec<&Attributes> = all.collect();
    if all.iter().all(|one| one.get("output").is_none()) {
        return Ok(None);
    }
    if let [only] = all[..] {
        return Ok(Some(only));
    }
    let is_global = |one: &&&Attributes| output_name(one) == Some(GLOBAL);
    let mut to_global = all.iter().filter(is_global);
    match (to_global.next(), to_global.next()) {
        (Some(only), None) => Ok(Some(only)),
        _ => Err(refused(
            "leads to several coordinate systems, and not to one called `global`",
        )),
    }
}

/// The name of the coordinate system to which a transformation leads. Drafts of version 0.6 refer to it by its name alone.
pub(super) fn output_name(transformation: &Attributes) -> Option<&str> {
    let output = transformation.get("output")?;
    match output.as_object() {
        Some(output) => output.text("name"),
        None => output.as_text(),
    }
}

/// The transformation of a dataset of version 0.6: to the image's own coordinate system. `None` as in [`of_version_04`].
pub(super) fn of_version_06(
    own: &JsonTree,
    rank: usize,
) -> Result<Vec<Option<Placed>>, FormatError> {
    let [transformation] = transformations(own)? else {
        return Err(refused("must be one transformation"));
    };
    let mut composition = Composition::new(rank);
    composition.apply(transformation.as_object().ok_or_else(ill_formed)?, 0)?;
    composition.finish()
}

impl Composition {
    fn new(rank: usize) -> Composition {
        let here = Placed {
            spacing: 1.0,
            origin: None,
        };
        Composition(vec![Some(here); rank])
    }

    /// Applies a list of version 0.4: a scale, a translation, or both in this order. Returns whether there is a scale.
    fn apply_steps(&mut self, list: &[JsonTree]) -> Result<bool, FormatError> {
        let (mut has_scale, mut has_translation) = (false, false);
        for transformation in list {
            let transformation = transformation.as_object().ok_or_else(ill_formed)?;
            match kind(transformation)? {
                "scale" if !has_scale && !has_translation => has_scale = true,
                "translation" if !has_translation => has_translation = true,
                "scale" | "translation" => {
                    return Err(refused("must be a scale, and then perhaps a translation"));
                }
                "sequence" => return Err(not_separate("sequence")),
                _ => {}
            }
            self.apply(transformation, 0)?;
        }
        Ok(has_scale)
    }

    /// Applies one more transformation, which is within `depth` sequences.
    fn apply(&mut self, transformation: &Attributes, depth: usize) -> Result<(), FormatError> {
        match kind(transformation)? {
            "identity" => {}
            "scale" => {
                let by = self.vector(transformation, "scale")?;
                for (axis, by) in self.0.iter_mut().zip(by) {
                    *axis = axis.filter(|_| by > 0.0).map(|axis| Placed {
                        spacing: axis.spacing * by,
                        origin: axis.origin.map(|origin| origin * by),
                    });
                }
            }
            "translation" => {
                let by = self.vector(transformation, "translation")?;
                for (axis, by) in self.0.iter_mut().zip(by) {
                    if let Some(axis) = axis {
                        axis.origin = Some(axis.origin.unwrap_or(0.0) + by);
                    }
                }
            }
            "sequence" if depth < MOST_DEPTH => {
                let steps = transformation
                    .get("transformations")
                    .ok_or_else(ill_formed)?;
                for step in transformations(steps)? {
                    self.apply(step.as_object().ok_or_else(ill_formed)?, depth + 1)?;
                }
            }
            other => return Err(not_separate(other)),
        }
        Ok(())
    }

    /// The member `member` of a transformation, which must be a list of a finite number for each axis.
    fn vector(&self, transformation: &Attributes, member: &str) -> Result<Vec<f64>, FormatError> {
        let numbers = transformation.get(member).and_then(JsonTree::as_list);
        let numbers = numbers.and_then(|numbers| {
            let is_one_each = numbers.len() == self.0.len();
            let numbers = is_one_each.then(|| numbers.iter().map(JsonTree::as_number))?;
            numbers.collect::<Option<Vec<f64>>>()
        });
        let numbers = numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()));
        numbers.ok_or_else(|| refused(&format!("`{member}` must be a number for each axis")))
    }

    fn finish(self) -> Result<Vec<Option<Placed>>, FormatError> {
        let is_sound = |axis: &Placed| {
            axis.spacing.is_normal() && axis.spacing > 0.0 && axis.origin.is_none_or(f64::is_finite)
        };
        if !self.0.iter().flatten().all(is_sound) {
            return Err(refused(
                "a product of scales, or an origin, is out of range",
            ));
        }
        Ok(self.0)
    }
}

fn transformations(list: &JsonTree) -> Result<&[JsonTree], FormatError> {
    list.as_list().ok_or_else(ill_formed)
}

fn kind(transformation: &Attributes) -> Result<&str, FormatError> {
    transformation.text("type").ok_or_else(ill_formed)
}

fn ill_formed() -> FormatError {
    refused("must be a list of objects that have a `type`")
}

/// The error that a transformation of this type gives no spacings.
fn not_separate(kind: &str) -> FormatError {
    refused(&format!(
        "`{}` gives no voxel size along each axis",
        shortened(kind)
    ))
}

/// The error that these axes have a scale that is not greater than 0.
pub(super) fn not_positive(axes: &[&str]) -> FormatError {
    let names = axes.iter().take(MOST_NAMED);
    let names: Vec<String> = names.map(|name| format!("`{}`", shortened(name))).collect();
    FormatError::document(
        MEMBER,
        format!(
            "the scale along {} is not greater than 0, so spacing and unit are left out there",
            names.join(", ")
        ),
    )
}

fn refused(problem: &str) -> FormatError {
    FormatError::document(
        MEMBER,
        format!("{problem}, so voxel sizes and units are left out"),
    )
}
