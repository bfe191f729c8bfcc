//! The image that an array is a level of. The nearest group above the array that lists it as a level describes the image,
//! by OME-NGFF or GeoZarr.

use super::Arrays;
use super::context::{MOST_ANCESTORS, may_mention};
use super::facts::ArrayFacts;
use super::inputs::Inputs;
use crate::error::Error;
use crate::plain::{LabelColours, coarser_levels};
use crate::store::Prefix;

/// The image that an array is a level of.
pub(super) struct LevelsAround {
    /// The paths of the coarser levels, the finest first. They may lead to no array.
    pub(super) coarser: Vec<Prefix>,
    /// The colours of labels, if it is an image of labels.
    pub(super) labels: Option<LabelColours>,
}

impl Arrays {
    /// The image that an array is a level of. A group that fewer users may read than `inputs` counts as absent. The
    /// documents of these groups are among the inputs of `facts`.
    pub(super) fn levels_around(
        &self,
        facts: &ArrayFacts,
        inputs: &Inputs,
    ) -> Result<Option<LevelsAround>, Error> {
        let path = &facts.array.path;
        for group in path.with_ancestors().skip(1).take(MOST_ANCESTORS) {
            let own = group.strip(path.as_bytes()).unwrap_or_default();
            let Ok(own) = str::from_utf8(own) else {
                break;
            };
            let found = self.group_facts(&group)?;
            if !may_mention(&found.inputs, &facts.array.node, inputs) {
                continue;
            }
            let Some(levels) = coarser_levels(&found.attributes, own) else {
                continue;
            };
            let paths = levels.iter().map(|names| self.path_below(&group, names));
            let paths = paths.collect::<Result<Vec<_>, _>>()?;
            return Ok(Some(LevelsAround {
                coarser: paths.into_iter().flatten().collect(),
                labels: LabelColours::of_group(&found.attributes),
            }));
        }
        Ok(None)
    }
}
