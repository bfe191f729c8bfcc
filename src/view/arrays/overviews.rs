//! The coarser levels of an array, which its GeoTIFF has as overviews.

use std::sync::Arc;

use super::super::rights::{is_refused, more_private};
use super::Arrays;
use super::context::may_mention;
use super::facts::ArrayFacts;
use super::file::ElementSource;
use super::inputs::Inputs;
use crate::error::{Error, FormatError};
use crate::plain::{Array, FileFormat, Selected};
use crate::store::Prefix;

/// The coarser levels of an array, or of a selection of one.
pub(super) struct Overviews {
    /// The descriptions of the levels, the finest first. The array itself has the id 0, and the level at `sources[n]` the
    /// id `n + 1`.
    pub(super) arrays: Vec<Array>,
    pub(super) sources: Vec<ElementSource>,
}

impl Arrays {
    /// The coarser levels of the selection `selected` of an array. Levels that cannot be shown are left out, with a line in
    /// the log. Each document that was examined is added to `inputs`.
    pub(super) fn overviews(
        &self,
        facts: &ArrayFacts,
        selected: &Selected,
        inputs: &mut Inputs,
    ) -> Result<Overviews, Error> {
        let mut overviews = Overviews {
            arrays: Vec::new(),
            sources: Vec::new(),
        };
        let around = self.levels_around(facts, inputs)?;
        for path in around.map(|around| around.coarser).unwrap_or_default() {
            let reason = match self.overview(&path, facts, selected, inputs) {
                Ok(Ok((level, selected))) => {
                    let id = 1 + overviews.arrays.len();
                    let array = level.array(id, "", FileFormat::GeoTif, None);
                    let array = array.map(|array| selected.apply(&array));
                    array.map(|described| {
                        let array = Arc::clone(&level.array);
                        overviews.arrays.push(described);
                        overviews.sources.push(ElementSource { array, selected });
                    })
                }
                Ok(Err(reason)) => Err(reason),
                Err(Error::Store(error)) if is_refused(&error) => {
                    inputs.add_refused();
                    Err(more_private())
                }
                Err(Error::Metadata { error, .. }) => Err(error),
                Err(error) => return Err(error),
            };
            if let Err(reason) = reason {
                self.leave_overview_out(&facts.array.path, &path, &reason);
            }
        }
        Ok(overviews)
    }

    /// Logs that the level at `path` is no overview of the array at `of`.
    pub(super) fn leave_overview_out(&self, of: &Prefix, path: &Prefix, reason: &FormatError) {
        self.tree.warn_once(&(path, "overview"), || {
            format!("{of}: no overview of the level {path}: {reason}")
        });
    }

    /// The facts of the level at `path`, and the part of it that is as large on a map as `selected` is; or the reason
    /// why there is none.
    fn overview(
        &self,
        path: &Prefix,
        facts: &ArrayFacts,
        selected: &Selected,
        inputs: &mut Inputs,
    ) -> Result<Result<(Arc<ArrayFacts>, Selected), FormatError>, Error> {
        let are_there = self.observe_documents(path, inputs)?;
        let Some(level) = self.array_facts(path)? else {
            if are_there {
                // A document that was written just now may not have been read yet.
                inputs.observations.add_unobserved();
            }
            return Ok(Err(FormatError::document("path", "there is no array")));
        };
        if !may_mention(&level.inputs, &facts.array.node, inputs) {
            inputs.observations.add_all(&level.inputs.observations);
            return Ok(Err(more_private()));
        }
        inputs.add_all(&level.inputs);
        let lengths = [facts, &level].map(|facts| &facts.array.node.metadata.shape);
        Ok(alike(selected, lengths).map(|part| (level, part)))
    }
}

/// The part of a level that is as large on a map as `selected`, a part of an array. `lengths` are the
/// lengths of the array and of the level along each axis. They differ along the axes of a plane only, and only a
/// whole plane has the same edges in both.
fn alike(
    selected: &Selected,
    [whole, level]: [&crate::grid::Dims; 2],
) -> Result<Selected, FormatError> {
    if whole.len() != level.len() {
        return Err(FormatError::document(
            "shape",
            "another number of dimensions",
        ));
    }
    let part = selected.in_shape(whole, level);
    part.ok_or_else(|| FormatError::document("selection", "a part of a plane has no levels"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Dims;

    #[test]
    fn a_level_has_the_same_selection_of_bands() {
        let [whole, level] =
            [[4, 100, 200], [4, 50, 100]].map(|shape: [u64; 3]| Dims::from(shape.as_slice()));
        let part_of = |selected: &Selected| alike(selected, [&whole, &level]).ok();
        let all = Selected::whole(&whole);
        assert_eq!(part_of(&all), Some(Selected::whole(&level)));
        let mut band = all.clone();
        band.start[0] = 2;
        band.shape[0] = 1;
        band.kept = vec![1, 2];
        let part = part_of(&band).unwrap();
        assert_eq!(
            (part.start.as_slice(), part.shape.as_slice()),
            (&[2, 0, 0][..], &[1, 50, 100][..])
        );
        for (axis, start, length) in [(1, 1, 99), (2, 0, 199)] {
            let mut cut = all.clone();
            cut.start[axis] = start;
            cut.shape[axis] = length;
            assert_eq!(part_of(&cut), None);
        }
        let flat = Dims::from([50, 100].as_slice());
        assert!(alike(&all, [&whole, &flat]).is_err());
    }
}
