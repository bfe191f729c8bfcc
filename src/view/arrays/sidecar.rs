//! Sidecars of arrays (`NAME.json`): the facts about an array that its other files do not have, and the
//! reasons why some formats have no file.

use super::super::rights::more_private;
use super::super::vnode::{PlainKind, PlainName, Vnode};
use super::Arrays;
use super::facts::ArrayFacts;
use super::file::{FileParts, is_refusal};
use super::inputs::Inputs;
use super::strings;
use crate::error::{Error, FormatError};
use crate::fresh::Observations;
use crate::metadata::Attributes;
use crate::plain::{
    ElementKind, FileFormat, Group, Layout, MOST_INDENTED, Omitted, Scope, SidecarFacts,
    group_file, sidecar,
};
use crate::store::Prefix;

/// Memory for each byte of long attributes: their text, its compact form, the parsed names, the
/// file, and a copy of it.
pub(super) const MEMORY_OF_LONG: u64 = 6;

/// The outcome of an array in one format.
#[derive(Debug)]
pub enum FormatOutcome {
    /// The array is in the file of this name.
    File(String),
    /// The format cannot express the array.
    LeftOut(FormatError),
}

/// The outcome of a group in one format: the name of its file and the members that the file leaves
/// out, or the reason why there is no file.
pub type GroupOutcome = Result<(String, Vec<Omitted>), FormatError>;

/// Descriptions of the place of an array that cannot be used.
#[derive(Debug, Default)]
pub struct UnusedDescriptions {
    /// The reason why its axes have no spacings and units.
    pub axes: Option<FormatError>,
    /// The reasons why its place on the earth is not known, or only in part.
    pub georeference: Vec<FormatError>,
}

impl Arrays {
    pub(super) fn make_sidecar(&self, path: &Prefix) -> Result<Option<FileParts>, Error> {
        let Some(facts) = self.array_facts(path)? else {
            return Ok(None);
        };
        let mut array = facts.described(0, &self.text_name_of(path));
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        let mut observed = Observations::default();
        for (format, outcome) in self.outcomes_of(path, &facts, &mut observed)? {
            let format = format.name().to_owned();
            match outcome {
                FormatOutcome::File(name) => files.push((format, name)),
                FormatOutcome::LeftOut(error) => left_out.push((format, error.to_string())),
            }
        }
        let long = facts.too_long.as_ref().map_or(0, |_| facts.attribute_bytes);
        let model = facts.model_memory();
        let _working = self.working_memory(model.saturating_add(long * MEMORY_OF_LONG))?;
        let layout = facts.array.chunked.layout();
        let metadata = &facts.array.node.metadata;
        let axes_error = facts.axes_error.as_ref().map(ToString::to_string);
        let georeference_error = facts.geo.problems.first().map(ToString::to_string);
        let mut attributes_error = facts.attributes_error.as_ref().map(ToString::to_string);
        let mut attributes = None;
        if facts.too_long.is_some() {
            match self.compact_attributes(&facts.array.node)? {
                Ok(text) if text.len() <= MOST_INDENTED => {
                    array.attributes = Attributes::parse(text.as_bytes()).unwrap_or_default();
                }
                Ok(text) => attributes = Some(text),
                Err(error) => {
                    array.attributes = Attributes::default();
                    attributes_error = Some(error.within("attributes").to_string());
                }
            }
        }
        let text = sidecar(&SidecarFacts {
            array: &array,
            zarr_format: metadata.zarr_format,
            chunks: layout.shown_grid().chunks(),
            shards: layout.is_sharded().then_some(&metadata.chunks),
            codecs: &metadata.codecs,
            axes_error: axes_error.as_deref(),
            georeference_error: georeference_error.as_deref(),
            attributes: attributes.as_deref(),
            attributes_error: attributes_error.as_deref(),
            files: &files,
            left_out: &left_out,
        });
        let mut parts = facts.parts(Layout::of_bytes(text));
        parts.inputs.observations.add_all(&observed);
        Ok(Some(parts))
    }

    /// The outcome of the array at `path` in each requested format; `None` if no array is there.
    ///
    /// # Errors
    /// [`Error`] when the array cannot be decoded.
    pub fn outcomes(
        &self,
        path: &Prefix,
    ) -> Result<Option<Vec<(FileFormat, FormatOutcome)>>, Error> {
        match self.array_facts(path)? {
            Some(facts) => self
                .outcomes_of(path, &facts, &mut Observations::default())
                .map(Some),
            None => Ok(None),
        }
    }

    /// The descriptions of the place of the array at `path`, in the documents around it, that cannot be used.
    ///
    /// # Errors
    /// [`Error`] when they cannot be read.
    pub fn unused_descriptions(&self, path: &Prefix) -> Result<UnusedDescriptions, Error> {
        let Some(facts) = self.array_facts(path)? else {
            return Ok(UnusedDescriptions::default());
        };
        Ok(UnusedDescriptions {
            axes: facts.axes_error.clone(),
            georeference: self.georeference_problems(&facts)?,
        })
    }

    /// The outcome of the group at `path` in each requested format that holds groups. A group
    /// without arrays has no outcomes.
    ///
    /// # Errors
    /// [`Error`] when the group cannot be read.
    pub fn group_outcomes(&self, path: &Prefix) -> Result<Vec<(FileFormat, GroupOutcome)>, Error> {
        let mut outcomes = Vec::new();
        for format in self.group_formats() {
            let outcome = self.group_outcome(path, format, &mut Inputs::default())?;
            outcomes.extend(outcome.map(|outcome| (format, outcome)));
        }
        Ok(outcomes)
    }

    /// The outcome of the group at `path` in `format`; `None` if the group has no arrays. Everything that the outcome
    /// depends on is added to `inputs`.
    pub(super) fn group_outcome(
        &self,
        path: &Prefix,
        format: FileFormat,
        inputs: &mut Inputs,
    ) -> Result<Option<GroupOutcome>, Error> {
        let name = PlainName::new(path, PlainKind::Group(format));
        match self.plain_file(&name) {
            Ok(Some(file)) => {
                inputs.add_all(&file.inputs);
                let name = self.text_name(path, format, name, &mut inputs.observations)?;
                Ok(Some(Ok((name, file.omitted.clone()))))
            }
            Ok(None)
                if format == FileFormat::H5ad
                    && self
                        .anndata_above(path, &mut inputs.observations)?
                        .is_none() =>
            {
                let problem = "it is not `anndata`, so the group is no AnnData object";
                let reason = FormatError::document("encoding-type", problem);
                Ok(Some(Err(reason)))
            }
            Ok(None) => {
                // No change of the inputs would show when the group will have the file.
                inputs.observations.add_unobserved();
                Ok(None)
            }
            Err(Error::Metadata { error, .. }) if is_refusal(&error) => {
                inputs.observations.add_unobserved();
                Ok(Some(Err(error)))
            }
            Err(error) => Err(error),
        }
    }

    fn outcomes_of(
        &self,
        path: &Prefix,
        facts: &ArrayFacts,
        observed: &mut Observations,
    ) -> Result<Vec<(FileFormat, FormatOutcome)>, Error> {
        let mut outcomes = Vec::new();
        for &format in &self.tree.options.arrays.files {
            if !format.has(Scope::Array) {
                let outcome = self.outcome_in_group(path, format, facts, observed)?;
                outcomes.extend(outcome.map(|outcome| (format, outcome)));
                continue;
            }
            let name = PlainName::new(path, PlainKind::Array(format, None));
            // Strings are not decoded to find out whether there is a file.
            let is_held = if format == FileFormat::Jsonl && strings::kind_of(facts).is_some() {
                Ok(true)
            } else {
                self.plain_file(&name).map(|file| {
                    if let Some(file) = &file {
                        observed.add_all(&file.inputs.observations);
                    }
                    file.is_some()
                })
            };
            match is_held {
                Ok(true) => {
                    let name = self.text_name(path, format, name, observed)?;
                    outcomes.push((format, FormatOutcome::File(name)));
                }
                Ok(false) => {}
                Err(Error::Metadata { error, .. }) if is_refusal(&error) => {
                    if self.is_refused_for_others(facts, format)? {
                        observed.add_unobserved();
                    }
                    outcomes.push((format, FormatOutcome::LeftOut(error)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(outcomes)
    }

    /// Whether an array that has no file in `format` may get one without a change of the inputs of its `facts`: when a coarser
    /// level is written, or when the name of the elements is free.
    fn is_refused_for_others(&self, facts: &ArrayFacts, format: FileFormat) -> Result<bool, Error> {
        if format == FileFormat::Png {
            let around = self.levels_around(facts, &facts.inputs)?;
            return Ok(around.is_some_and(|around| !around.coarser.is_empty()));
        }
        Ok(format.points_to_raw() && !self.has_own_raw(&facts.array.path, None)?)
    }

    /// The outcome of an array in the file of its group; `None` if its group has no such file.
    fn outcome_in_group(
        &self,
        path: &Prefix,
        format: FileFormat,
        facts: &ArrayFacts,
        observed: &mut Observations,
    ) -> Result<Option<FormatOutcome>, Error> {
        let group = path.to_key().map_or_else(Prefix::root, |key| key.parent());
        let group = match format {
            // One `AnnData` object has arrays in many groups.
            FileFormat::H5ad => match self.anndata_above(&group, observed)? {
                Some(group) => group,
                None => return Ok(None),
            },
            _ => group,
        };
        if !self.may_include(&group, facts)? {
            return Ok(Some(FormatOutcome::LeftOut(more_private())));
        }
        if format == FileFormat::H5ad || strings::kind_of(facts) == Some(ElementKind::Text) {
            let outcome = self.outcome_by_file(path, &group, format, observed)?;
            return Ok(Some(outcome));
        }
        // The array is checked alone: conflicts with other arrays in the group are reported for the
        // group.
        let file = facts
            .array(0, &self.text_name_of(path), format, None)
            .and_then(|array| {
                let alone = Group {
                    arrays: vec![array],
                    ..Group::default()
                };
                group_file(format, &alone, &self.group_options())
            });
        let reason = match file {
            Ok(file) => file.omitted.into_iter().next().map(|left| left.reason),
            Err(error) => Some(error),
        };
        if let Some(reason) = reason {
            return Ok(Some(FormatOutcome::LeftOut(reason)));
        }
        let name = PlainName::new(&group, PlainKind::Group(format));
        let name = self.text_name(&group, format, name, observed)?;
        Ok(Some(FormatOutcome::File(name)))
    }

    /// The nearest group at or above `group` that holds an `AnnData` object. The documents of all groups that were examined
    /// are added to `observed`.
    fn anndata_above(
        &self,
        group: &Prefix,
        observed: &mut Observations,
    ) -> Result<Option<Prefix>, Error> {
        for above in group.with_ancestors() {
            if self.is_anndata(&above, observed)? {
                return Ok(Some(above));
            }
        }
        Ok(None)
    }

    /// The outcome of an array in a file that depends on other arrays: its strings need room beside
    /// the other strings in it, and an `AnnData` object is whole or has no file. The file itself is
    /// made to find out, and its inputs are added to `observed`.
    fn outcome_by_file(
        &self,
        path: &Prefix,
        group: &Prefix,
        format: FileFormat,
        observed: &mut Observations,
    ) -> Result<FormatOutcome, Error> {
        let name = PlainName::new(group, PlainKind::Group(format));
        let file = match self.plain_file(&name) {
            Ok(Some(file)) => file,
            Ok(None) => {
                // No change of the inputs would show when the group will have the file.
                observed.add_unobserved();
                let problem = "left out of the file of the group, which has nothing else";
                return Ok(FormatOutcome::LeftOut(FormatError::document(
                    "array", problem,
                )));
            }
            Err(Error::Metadata { error, .. }) if is_refusal(&error) => {
                observed.add_unobserved();
                return Ok(FormatOutcome::LeftOut(error));
            }
            Err(error) => return Err(error),
        };
        observed.add_all(&file.inputs.observations);
        let own = group.strip(path.as_bytes()).unwrap_or_default();
        let own = if own.is_empty() {
            self.text_name_of(path)
        } else {
            String::from_utf8_lossy(own).into_owned()
        };
        let omitted = file.omitted.iter().find(|omitted| omitted.name == own);
        if let Some(omitted) = omitted {
            return Ok(FormatOutcome::LeftOut(omitted.reason.clone()));
        }
        // The path is relative to the directory of the array.
        let up = "../".repeat(own.matches('/').count());
        let name = self.text_name(group, format, name, observed)?;
        Ok(FormatOutcome::File(up + &name))
    }

    /// The name of a file of the node at `path`, as text for messages. What may give the file another name is added to
    /// `observed`.
    fn text_name(
        &self,
        path: &Prefix,
        format: FileFormat,
        name: PlainName,
        observed: &mut Observations,
    ) -> Result<String, Error> {
        let (name, vnode) = self.named(path, format.extension(), Vnode::Plain(name))?;
        self.observe_name(&vnode, &name, observed)?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }
}
