//! Which array a `.png` file is made of: the array of its name, or a coarser level of the same image.

use std::sync::Arc;

use super::Arrays;
use super::coarser::LevelsAround;
use super::context::may_mention;
use super::facts::ArrayFacts;
use super::file::{ElementSource, FileParts};
use super::inputs::Inputs;
use super::preview_samples::SampledPreview;
use crate::error::{Error, FormatError};
use crate::plain::{FileFormat, Layout, Preview, Selected, Selection};

/// An array that a preview may be made of, and the part of it.
struct PreviewSource {
    facts: Arc<ArrayFacts>,
    selected: Selected,
    preview: Preview,
}

impl Arrays {
    /// Makes the preview of the part `selection` of an array. `stem` is its name.
    pub(super) fn make_preview(
        &self,
        facts: &Arc<ArrayFacts>,
        stem: &str,
        selection: Option<&Selection>,
    ) -> Result<Option<FileParts>, Error> {
        let refused = |error| Error::in_document(&facts.array.node.document.key, error);
        let Some(selected) = facts.selected(selection) else {
            return Ok(None);
        };
        let image = self.levels_around(facts, &facts.inputs)?;
        let own = PreviewSource::of(facts, selected, (stem, image.as_ref())).map_err(refused)?;
        if own.preview.is_whole()
            && let Ok(found) = self.sampled(&own)
        {
            return Ok(Some(own.into_parts(found)));
        }
        let mut examined = Inputs::default();
        let mut sources = self.previews_of_levels(&own, (stem, image.as_ref()), &mut examined);
        sources.push(own);
        sources.sort_by_key(|source| source.preview.rank());
        let mut failed = None;
        for source in sources {
            match self.sampled(&source) {
                Ok(found) => {
                    let mut parts = source.into_parts(found);
                    parts.meta = facts.array.node.document.meta;
                    parts.inputs.add_all(&facts.inputs);
                    parts.checked = parts.checked.or_older(&facts.last_checked());
                    parts.inputs.observations.add_all(&examined.observations);
                    return Ok(Some(parts));
                }
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        let missing = || FormatError::document("shape", "there is no plane");
        Err(refused(failed.unwrap_or_else(missing)))
    }

    fn sampled(&self, source: &PreviewSource) -> Result<SampledPreview, FormatError> {
        let cache_bytes = self.tree.loader.cache().budget().limit();
        let layout = source.facts.array.chunked.layout();
        SampledPreview::of(source.preview.clone(), layout, cache_bytes)
    }

    /// The coarser levels of the image that `own` is a level of, with the same part. A level that cannot be read is left out,
    /// because a finer one serves too, and its own files report the error. A level that fewer users may read is also left
    /// out. Everything that was examined is added to `inputs`.
    fn previews_of_levels(
        &self,
        own: &PreviewSource,
        (stem, image): (&str, Option<&LevelsAround>),
        inputs: &mut Inputs,
    ) -> Vec<PreviewSource> {
        let mut coarser = Vec::new();
        let Some(image) = image else {
            return coarser;
        };
        let node = &own.facts.array.node;
        for path in &image.coarser {
            let Ok(Some(facts)) = self.array_facts(path) else {
                // The document of a level that is there was not read, or not yet.
                if self.observe_documents(path, inputs).unwrap_or(true) {
                    inputs.observations.add_unobserved();
                }
                continue;
            };
            inputs.observations.add_all(&facts.inputs.observations);
            if may_mention(&facts.inputs, node, &own.facts.inputs) {
                let name = self.text_name_of(path);
                coarser.extend(own.at_level(&facts, (stem, Some(image)), &name));
            }
        }
        coarser
    }
}

impl PreviewSource {
    fn of(
        facts: &Arc<ArrayFacts>,
        selected: Selected,
        (stem, image): (&str, Option<&LevelsAround>),
    ) -> Result<PreviewSource, FormatError> {
        let whole = facts.array(0, stem, FileFormat::Png, None)?;
        Ok(PreviewSource {
            preview: Preview::of(
                &whole,
                &selected,
                image.and_then(|image| image.labels.as_ref()),
            )?,
            facts: Arc::clone(facts),
            selected,
        })
    }

    /// The same part of the level `facts`, if that is a coarser array with the same planes.
    fn at_level(
        &self,
        facts: &Arc<ArrayFacts>,
        of: (&str, Option<&LevelsAround>),
        name: &str,
    ) -> Option<PreviewSource> {
        let [own, other] = [&self.facts, facts].map(|facts| &facts.array.node.metadata.shape);
        let selected = self.selected.in_shape(own, other)?;
        let mut found = PreviewSource::of(facts, selected, of).ok()?;
        found.preview.name_level(name);
        let is_coarser = found.preview.is_coarser_than(&self.preview);
        is_coarser.then_some(found)
    }

    fn into_parts(self, preview: SampledPreview) -> FileParts {
        let source = ElementSource {
            array: Arc::clone(&self.facts.array),
            selected: self.selected,
        };
        FileParts {
            sources: vec![source],
            preview: Some(Arc::new(preview)),
            ..self.facts.parts(Layout::of_bytes(Vec::new()))
        }
    }
}
