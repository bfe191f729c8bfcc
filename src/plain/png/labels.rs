//! The colours of the labels of an image: those that the metadata give, and others that differ from label to label.
//!
//! OME-NGFF 0.5, section "labels": the group of an image of labels has `image-label`, in which `colors` has the colour
//! of some labels.

use super::colours::{Palette, Rgb};
use crate::metadata::{Attributes, JsonTree};

/// The distance from the hue of a label to that of the next label. There are [`HUES`] around the circle. The hues of
/// any two of 255 labels differ by 6 or more, and those of labels whose numbers differ by 8 or less by 156 or more.
const HUE_STEP: u32 = 846;
const HUES: u32 = 6 * 256;

/// The colours of labels, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelColours {
    /// Labels from 1 to 255 with their colours.
    known: Vec<(u8, Rgb)>,
}

impl LabelColours {
    /// The colours in the attributes of a group; `None` if it is no image of labels.
    pub fn of_group(attributes: &Attributes) -> Option<LabelColours> {
        let ome = attributes.get("ome").and_then(JsonTree::as_object);
        let mut places = ome.into_iter().chain([attributes]);
        let of_labels = places.find_map(|place| place.get("image-label"))?;
        let colors = of_labels
            .as_object()
            .and_then(|labels| labels.get("colors"));
        let colors = colors.and_then(JsonTree::as_list).unwrap_or_default();
        let mut found = LabelColours::default();
        for entry in colors.iter().filter_map(JsonTree::as_object) {
            let label = entry.number("label-value").and_then(whole);
            let color = entry.get("rgba").and_then(JsonTree::as_list).and_then(rgb);
            if let (Some(label @ 1..), Some(color)) = (label, color)
                && found.known.len() < usize::from(u8::MAX)
            {
                found.known.push((label, color));
            }
        }
        Some(found)
    }

    /// The palette in which colour [`number`] is that of a label.
    pub(super) fn palette(&self) -> Palette {
        let mut palette = [[0; 3]; 256];
        for (number, color) in (0..).zip(&mut palette).skip(1) {
            *color = hue(number * HUE_STEP % HUES);
        }
        for (label, color) in &self.known {
            palette[usize::from(*label)] = *color;
        }
        palette
    }
}

/// The number of the colour of a label: 0, which is transparent, for the background; else 1 to 255, which repeat.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the remainder is from 0 to 254"
)]
pub(super) fn number(label: f64) -> u8 {
    if label == 0.0 {
        return 0;
    }
    1 + (label - 1.0).rem_euclid(255.0) as u8
}

/// A bright colour, one of [`HUES`] around the circle of red, green and blue.
fn hue(hue: u32) -> Rgb {
    let up = u8::try_from(hue % 256).unwrap_or(u8::MAX);
    let (most, down) = (u8::MAX, u8::MAX - up);
    let [red, green, blue] = match hue / 256 {
        0 => [most, up, 0],
        1 => [down, most, 0],
        2 => [0, most, up],
        3 => [0, down, most],
        4 => [up, 0, most],
        _ => [most, 0, down],
    };
    // A full blue would be dark, so all colours are lighter.
    [red, green, blue]
        .map(|part| 40 + u8::try_from(u16::from(part) * 5 / 6).unwrap_or(u8::MAX - 40))
}

fn rgb(rgba: &[JsonTree]) -> Option<Rgb> {
    let parts: Option<Vec<u8>> = rgba
        .iter()
        .map(|part| whole(part.as_number()?))
        .take(3)
        .collect();
    parts?.try_into().ok()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is whole, and within the range"
)]
fn whole(number: f64) -> Option<u8> {
    (number.fract() == 0.0 && (0.0..=255.0).contains(&number)).then_some(number as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::testing::attributes;

    #[test]
    fn known_colours_are_kept_and_others_differ() {
        let text = r#"{"ome": {"image-label": {"version": "0.5", "colors": [
            {"label-value": 2, "rgba": [1, 2, 3, 255]}, {"label-value": 3}, {"label-value": 0, "rgba": [9, 9, 9, 9]},
            {"label-value": 1.5, "rgba": [1, 1, 1, 1]}, {"label-value": 4, "rgba": [1, 2, 256]}, 7]}}}"#;
        let found = LabelColours::of_group(&attributes(text)).unwrap();
        assert_eq!(found.known, [(2, [1, 2, 3])]);
        let palette = found.palette();
        assert_eq!((palette[0], palette[2]), ([0; 3], [1, 2, 3]));
        let mut colours = palette[1..].to_vec();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), 255);
        for (text, is_labels) in [
            (r#"{"image-label": {}}"#, true),
            (r#"{"image-label": {"colors": 3}}"#, true),
            ("{}", false),
        ] {
            let found = LabelColours::of_group(&attributes(text));
            assert_eq!(found, is_labels.then(LabelColours::default), "{text}");
        }
    }

    #[test]
    fn labels_have_a_colour_and_the_background_has_none() {
        for (label, expected) in [(0.0, 0), (1.0, 1), (255.0, 255), (256.0, 1), (-1.0, 254)] {
            assert_eq!(number(label), expected, "{label}");
        }
        assert!(number(1e19) > 0);
    }
}
