//! Axes of arrays of N5, from the attributes that the programs of its users write.
//!
//! | convention | where | order of the axes |
//! |---|---|---|
//! | COSEM | `transform` of the array, or of its dataset in `multiscales` of a group: `axes`, `scale`, `translate`, `units` | that of Zarr |
//! | N5-viewer | `pixelResolution` (`dimensions`, `unit`) or `resolution` with `units`, of the array or of the nearest group; `downsamplingFactors` of the array, or `scales` of its group for `sN` | that of N5, reversed |
//!
//! A resolution is that of the elements before downsampling. The first element of an array that was downsampled by n is the
//! mean of n elements, so that it lies between the first and the last of them. The resolution of a group is not used for
//! `s1` and the others if nothing says by how much they were downsampled.
//!
//! Sources: n5-viewer, `README.md`, section "Metadata"; n5-universe, `N5SingleScaleMetadata`, `N5CosemMetadata`.

use super::Ancestor;
use super::axis::{Axis, AxisKind};
use super::cf::kind_of_name;
use crate::metadata::{Attributes, JsonTree};

/// The axes of an array of N5 with the attributes `own`. `dimension_names` and `ancestors` are as in
/// [`axes`](super::axes).
pub fn axes_of_n5(
    dimension_names: &[Option<String>],
    own: &Attributes,
    ancestors: &[Ancestor<'_>],
) -> Vec<Axis> {
    let rank = dimension_names.len();
    let of_cosem = own.get("transform").and_then(JsonTree::as_object);
    let of_group = ancestors
        .iter()
        .find_map(|group| transform_of_dataset(group.path, group.attributes));
    if let Some(axes) = of_cosem
        .into_iter()
        .chain(of_group)
        .find_map(|transform| cosem(transform, rank))
    {
        return axes;
    }
    let scaled = n5_viewer(own, ancestors, rank);
    let names = dimension_names.iter().enumerate();
    names
        .map(|(i, name)| {
            // Arrays without names have x first in N5.
            let usual = ["x", "y", "z"]
                .get(rank - 1 - i)
                .filter(|_| rank <= 3 && scaled.is_some());
            let name = name.clone().or_else(|| usual.map(|&name| name.to_owned()));
            let axis = Axis {
                kind: name.as_deref().map_or(AxisKind::Other, kind_of_name),
                name,
                ..Axis::default()
            };
            match scaled.as_ref().and_then(|scaled| scaled.get(i)) {
                Some(scale) => Axis {
                    spacing: Some(scale.spacing),
                    origin: scale.origin,
                    unit: scale.unit.clone(),
                    ..axis
                },
                None => axis,
            }
        })
        .collect()
}

/// The spacing of an axis.
struct Scale {
    spacing: f64,
    origin: Option<f64>,
    unit: Option<String>,
}

/// The member `transform` of the dataset at `path` in the multiscales of a group.
fn transform_of_dataset<'a>(path: &str, group: &'a Attributes) -> Option<&'a Attributes> {
    let multiscales = group.get("multiscales")?.as_list()?.iter();
    let datasets = multiscales.filter_map(|multiscale| {
        let multiscale = multiscale.as_object()?;
        multiscale.get("datasets")?.as_list()
    });
    datasets.flatten().find_map(|dataset| {
        let dataset = dataset.as_object()?;
        let is_it = dataset.text("path")?.trim_matches('/') == path;
        dataset.get("transform")?.as_object().filter(|_| is_it)
    })
}

/// The axes of a `transform` of COSEM; `None` if it is not one of `rank` axes.
fn cosem(transform: &Attributes, rank: usize) -> Option<Vec<Axis>> {
    let scales = numbers(transform.get("scale")?, rank)?;
    let names = texts(transform.get("axes")?, rank)?;
    if scales.iter().any(|scale| !is_spacing(*scale)) {
        return None;
    }
    let translate = transform
        .get("translate")
        .and_then(|value| numbers(value, rank));
    let units = transform.get("units").and_then(|value| texts(value, rank));
    let axes = names
        .into_iter()
        .zip(scales)
        .enumerate()
        .map(|(i, (name, scale))| Axis {
            kind: kind_of_name(&name),
            name: Some(name),
            spacing: Some(scale),
            origin: translate
                .as_ref()
                .and_then(|translate| translate.get(i).copied()),
            unit: units
                .as_ref()
                .and_then(|units| units.get(i))
                .filter(|unit| !unit.trim().is_empty())
                .cloned(),
            channels: Vec::new(),
        });
    Some(axes.collect())
}

/// The spacing of each axis of an array by the conventions of N5-viewer.
fn n5_viewer(own: &Attributes, ancestors: &[Ancestor<'_>], rank: usize) -> Option<Vec<Scale>> {
    let of_group = || {
        let mut groups = ancestors.iter();
        groups.find_map(|group| Some((group, resolution(group.attributes, rank)?)))
    };
    let own_factors = own
        .get("downsamplingFactors")
        .and_then(|value| numbers(value, rank));
    let (resolution, factors) = match (resolution(own, rank), own_factors) {
        (Some(resolution), factors) => (resolution, factors),
        (None, Some(factors)) => (of_group()?.1, Some(factors)),
        (None, None) => {
            let (group, resolution) = of_group()?;
            let level: usize = group.path.strip_prefix('s')?.parse().ok()?;
            let scales = group.attributes.get("scales").and_then(JsonTree::as_list);
            let scale = scales.and_then(|scales| numbers(scales.get(level)?, rank));
            (
                resolution,
                Some(scale.or_else(|| (level == 0).then(|| vec![1.0; rank]))?),
            )
        }
    };
    let factors = factors.unwrap_or_else(|| vec![1.0; rank]);
    let mut scales = Vec::new();
    for ((one, unit), factor) in resolution.into_iter().zip(factors) {
        let spacing = one * factor;
        if !is_spacing(spacing) || factor < 1.0 {
            return None;
        }
        scales.push(Scale {
            spacing,
            origin: (factor > 1.0).then_some(one * (factor - 1.0) / 2.0),
            unit,
        });
    }
    scales.reverse();
    Some(scales)
}

/// The size of an element along each axis, and its unit, in the order of N5.
fn resolution(attributes: &Attributes, rank: usize) -> Option<Vec<(f64, Option<String>)>> {
    let pixel = attributes.get("pixelResolution");
    let of_object = pixel.and_then(JsonTree::as_object);
    let sizes = match of_object {
        Some(pixel) => pixel.get("dimensions"),
        None => pixel.or_else(|| attributes.get("resolution")),
    };
    let sizes = numbers(sizes?, rank)?;
    let units = match of_object.and_then(|pixel| pixel.text("unit")) {
        Some(unit) => Some(vec![unit.to_owned(); rank]),
        None => attributes
            .get("units")
            .and_then(|units| match units.as_text() {
                Some(unit) => Some(vec![unit.to_owned(); rank]),
                None => texts(units, rank),
            }),
    };
    let units = units.unwrap_or_default();
    let unit_of = |i: usize| units.get(i).filter(|unit| !unit.trim().is_empty()).cloned();
    Some(
        sizes
            .into_iter()
            .enumerate()
            .map(|(i, size)| (size, unit_of(i)))
            .collect(),
    )
}

fn is_spacing(number: f64) -> bool {
    number.is_normal() && number > 0.0
}

/// A list of `rank` finite numbers.
fn numbers(value: &JsonTree, rank: usize) -> Option<Vec<f64>> {
    let numbers = value.as_list()?.iter().map(JsonTree::as_number);
    let numbers: Vec<f64> = numbers.collect::<Option<_>>()?;
    (numbers.len() == rank && numbers.iter().all(|n| n.is_finite())).then_some(numbers)
}

/// A list of `rank` texts.
fn texts(value: &JsonTree, rank: usize) -> Option<Vec<String>> {
    let texts = value
        .as_list()?
        .iter()
        .map(|text| text.as_text().map(str::to_owned));
    let texts: Vec<String> = texts.collect::<Option<_>>()?;
    (texts.len() == rank).then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::*;

    /// Name, spacing, origin and unit of each axis.
    fn facts(own: &str, groups: &[(&str, &str)], rank: usize) -> Vec<String> {
        let groups: Vec<_> = groups
            .iter()
            .map(|(path, text)| (*path, attributes(text)))
            .collect();
        let groups = groups.iter().map(|(path, attributes)| Ancestor {
            path,
            name: "",
            attributes,
        });
        let groups: Vec<_> = groups.collect();
        let axes = axes_of_n5(&vec![None; rank], &attributes(own), &groups);
        let described = axes.into_iter().map(|axis| {
            let name = axis.name.unwrap_or_default();
            let unit = axis.unit.unwrap_or_default();
            format!("{name} {:?} {:?} {unit}", axis.spacing, axis.origin)
        });
        described.collect()
    }

    const NOTHING: &str = " None None ";

    #[test]
    fn cosem_has_the_order_of_zarr() {
        let transform = r#"{"axes": ["z", "y", "x"], "scale": [5.24, 4, 4], "translate": [1, 2, 3], "units": ["nm", "nm", "um"]}"#;
        let expected = [
            "z Some(5.24) Some(1.0) nm",
            "y Some(4.0) Some(2.0) nm",
            "x Some(4.0) Some(3.0) um",
        ];
        let own = format!(
            r#"{{"transform": {transform}, "pixelResolution": {{"dimensions": [9, 9, 9], "unit": "m"}}}}"#
        );
        assert_eq!(facts(&own, &[], 3), expected);
        let group = format!(
            r#"{{"multiscales": [{{"datasets": [{{"path": "s0"}}, {{"path": "s1", "transform": {transform}}}]}}]}}"#
        );
        assert_eq!(facts("{}", &[("s1", &group)], 3), expected);
        assert_eq!(facts("{}", &[("s0", &group)], 3), [NOTHING; 3]);
        assert_eq!(facts(&own, &[], 2), [NOTHING; 2]);
    }

    #[test]
    fn n5_viewer_has_the_order_of_n5() {
        let pixel = r#"{"pixelResolution": {"unit": "um", "dimensions": [0.1, 0.2, 0.5]}}"#;
        let expected = [
            "z Some(0.5) None um",
            "y Some(0.2) None um",
            "x Some(0.1) None um",
        ];
        assert_eq!(facts(pixel, &[], 3), expected);
        assert_eq!(facts("{}", &[("s0", pixel)], 3), expected);
        assert_eq!(
            facts("{}", &[("s1", pixel)], 3),
            [NOTHING; 3],
            "of unknown downsampling"
        );
        assert_eq!(
            facts("{}", &[("raw", pixel)], 3),
            [NOTHING; 3],
            "of another array"
        );
        let group = r#"{"resolution": [4, 4, 40], "units": ["nm", "nm", "um"], "scales": [[1, 1, 1], [2, 2, 1]]}"#;
        let halved = [
            "z Some(40.0) None um",
            "y Some(8.0) Some(2.0) nm",
            "x Some(8.0) Some(2.0) nm",
        ];
        assert_eq!(facts("{}", &[("s1", group)], 3), halved);
        let factors = r#"{"downsamplingFactors": [2, 2, 1]}"#;
        assert_eq!(facts(factors, &[("c0/s1", group)], 3), halved);
        let own = r#"{"resolution": [4, 8], "units": "nm", "downsamplingFactors": [1, 4]}"#;
        assert_eq!(
            facts(own, &[], 2),
            ["y Some(32.0) Some(12.0) nm", "x Some(4.0) None nm"]
        );
    }

    #[test]
    fn what_is_no_resolution_is_not_used() {
        for own in [
            "{}",
            r#"{"resolution": [4]}"#,
            r#"{"resolution": [4, -1]}"#,
            r#"{"resolution": [4, "a"]}"#,
            r#"{"resolution": [4, 0]}"#,
            r#"{"pixelResolution": {"dimensions": 4}}"#,
            r#"{"resolution": [4, 4], "downsamplingFactors": [0, 1]}"#,
            r#"{"transform": {"axes": ["y", "x"], "scale": [0, 1]}}"#,
        ] {
            assert_eq!(facts(own, &[], 2), [NOTHING; 2], "{own}");
        }
    }
}
