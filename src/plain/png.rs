//! Previews: a picture of the middle plane of an array, of at most 1024 pixels a side.
//!
//! Each pixel shows one element, so that a pixel of a mask is a label of it, and nothing is averaged over missing
//! values.
//!
//! | array | pixels |
//! |---|---|
//! | one channel | a palette: viridis, or from black to the channel's colour |
//! | labels | a palette, in which neighbouring labels differ |
//! | 2 to 7 channels | the sum of their colours |
//! | red, green, blue, perhaps opacity | as they are |
//!
//! A range of values is shown: the window of a channel, or from the 2nd to the 98th percentile of the values that are
//! shown. The size of a file follows from the metadata alone ([`Frame`]); the texts that follow from values have a
//! fixed length.

mod colours;
mod file;
mod labels;
mod plane;
mod values;
mod viridis;

use smallvec::SmallVec;

use super::array::Array;
use super::axes::Channel;
use super::selection::Selected;
use super::{FileFormat, number::Scalar};
use crate::error::FormatError;
use crate::grid::AxisSamples;
use colours::{Rgb, add, blended, palette};
use file::{Colours, Frame, Text};
pub use labels::LabelColours;
use plane::{Channels, Plane};
use values::{Range, Values, part_of, percentiles};

/// The most pixels of a row, and of a column.
const MOST_PIXELS: u64 = 1024;
/// The longest text of a number, such as `-2.2250738585072014e-308`.
const NUMBER_WIDTH: usize = 24;
/// The keyword of the text that says which part of the array is shown.
const DESCRIPTION: &str = "Description";
/// The longest name and the longest description in characters; more is cut off.
const LONGEST_TEXT: usize = 1000;

/// The picture of an array, without the elements that it shows.
#[derive(Debug, Clone)]
pub struct Preview {
    samples: SmallVec<[AxisSamples; 6]>,
    plane: Plane,
    /// The length of the longer axis of the plane in the array.
    longest_side: u64,
    item_bytes: usize,
    values: Values,
    colouring: Colouring,
    /// The range of each channel; `None` if it follows from the values.
    ranges: Vec<Option<Range>>,
    frame: Frame,
    texts: Vec<Text>,
}

#[derive(Debug, Clone)]
enum Colouring {
    /// The position of a value within the range selects a colour of the palette.
    Palette,
    /// Each channel adds its colour.
    Sum(Vec<Rgb>),
    /// The channels are red, green, blue, and perhaps opacity.
    Samples,
    /// Each value is a label, and each label has a colour of the palette.
    Labels,
}

impl Colouring {
    /// Shows a value of a channel in a pixel.
    fn paint(&self, pixel: &mut [u8], channel: usize, value: f64, range: Range) {
        let part = part_of(value, range);
        match self {
            // Colour 0 is that of missing values.
            Colouring::Palette => pixel[0] = 1 + level(part, 254),
            Colouring::Sum(colours) => {
                let color = colours.get(channel).copied().unwrap_or_default();
                add(pixel, color, level(part, 255));
                pixel[3] = 255;
            }
            Colouring::Labels => pixel[0] = labels::number(value),
            Colouring::Samples => {
                pixel[channel] = level(part, 255);
                // The opacity comes after the colours.
                if channel < 3 {
                    pixel[3] = 255;
                }
            }
        }
    }
}

impl Preview {
    /// The preview of the part `selected` of the array `whole`. Its integers are labels if the colours of `labels` are
    /// given.
    ///
    /// # Errors
    /// When the part has no planes or no elements, or these are no real numbers.
    pub fn of(
        whole: &Array,
        selected: &Selected,
        labels: Option<&LabelColours>,
    ) -> Result<Preview, FormatError> {
        let part = selected.apply(whole);
        let values = Values::of(&part).ok_or_else(|| FileFormat::Png.refused_type(&part))?;
        let item_bytes = usize::try_from(part.data_type.item_size)
            .map_err(|_| FileFormat::Png.refused_type(&part))?;
        let in_part = Plane::of(&part)?;
        let whole_axis = |axis: usize| selected.kept.get(axis).copied().unwrap_or_default();
        let plane = Plane {
            y: whole_axis(in_part.y),
            x: whole_axis(in_part.x),
            channels: in_part.channels.map(|(axis, of)| (whole_axis(axis), of)),
            middle_channel: in_part.middle_channel.map(whole_axis),
        };
        let longest_side = part.shape[in_part.y].max(part.shape[in_part.x]);
        let step = longest_side.div_ceil(MOST_PIXELS);
        let starts = selected.start.iter().zip(&selected.shape).enumerate();
        let samples = starts.map(|(axis, (&start, &length))| {
            if axis == plane.y || axis == plane.x {
                AxisSamples::every(step, start, length)
            } else if plane.channels.is_some_and(|(channels, _)| channels == axis) {
                AxisSamples::every(1, start, length)
            } else {
                AxisSamples::one(start + length / 2)
            }
        });
        let samples: SmallVec<[AxisSamples; 6]> = samples.collect();
        let channels = described(&part, in_part);
        let labels = labels.filter(|_| values.are_integers());
        let truths = values.are_truths().then_some([0.0, 1.0]);
        let window = |channel: Option<&Channel>| channel.and_then(|channel| channel.window);
        let mut ranges: Vec<_> = channels.iter().map(|it| truths.or(window(*it))).collect();
        let (colouring, colours) = match (plane.channels, labels) {
            (None, Some(labels)) => {
                // No label is outside of a range.
                ranges = vec![Some([0.0, 1.0])];
                let palette = Box::new(labels.palette());
                (Colouring::Labels, Colours::Palette(palette))
            }
            (None, None) => {
                let color = channels.first().copied().flatten().and_then(|it| it.color);
                let palette = Box::new(palette(color));
                (Colouring::Palette, Colours::Palette(palette))
            }
            (Some((_, Channels::Pictures)), _) => {
                let colours = blended(channels.into_iter());
                (Colouring::Sum(colours), Colours::Rgba)
            }
            (Some((_, Channels::Samples)), _) => {
                let all = full_range(&part);
                for range in &mut ranges {
                    range.get_or_insert(all);
                }
                (Colouring::Samples, Colours::Rgba)
            }
        };
        let side = |axis: usize| {
            let count = samples.get(axis).map_or(1, |samples| samples.count);
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let frame = Frame {
            width: side(plane.x),
            height: side(plane.y),
            colours,
        };
        let texts = texts(whole, selected, &samples);
        Ok(Preview {
            samples,
            plane,
            longest_side,
            item_bytes,
            values,
            colouring,
            ranges,
            frame,
            texts,
        })
    }

    /// Whether the picture has all elements of the plane.
    pub fn is_whole(&self) -> bool {
        self.longest_side <= MOST_PIXELS
    }

    /// The place of the preview among the previews of other levels of the image; the lowest is the best:
    ///
    /// 0. previews that have all elements, and are more than half as long as a picture may be, the longest first;
    /// 1. previews that leave elements out, the shortest plane first;
    /// 2. shorter previews, the longest first.
    pub fn rank(&self) -> (u8, u64) {
        match self.longest_side {
            side if side > MOST_PIXELS => (1, side),
            side if side > MOST_PIXELS / 2 => (0, MOST_PIXELS - side),
            side => (2, MOST_PIXELS - side),
        }
    }

    /// Whether this shows the same axes as `finer` does, of an array that is not larger.
    pub fn is_coarser_than(&self, finer: &Preview) -> bool {
        self.plane == finer.plane
            && self.ranges.len() == finer.ranges.len()
            && self.longest_side < finer.longest_side
    }

    /// Says in the file which level of the image it shows.
    pub fn name_level(&mut self, name: &str) {
        let description = self
            .texts
            .iter_mut()
            .find(|text| text.keyword == DESCRIPTION);
        if let Some(Text { text, .. }) = description {
            *text = plain_text(&format!("level {name}: {text}"));
        }
    }

    /// The elements that are shown, along each axis of the whole array.
    pub fn samples(&self) -> &[AxisSamples] {
        &self.samples
    }

    /// The length of the file.
    pub fn len(&self) -> u64 {
        let ranges = self.range_text(&[]);
        self.frame.len(self.texts.iter().chain(&ranges))
    }

    /// Always `false`: a file has a signature.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The memory that [`Preview::paint`] takes, with its elements and the file.
    pub fn memory_bytes(&self) -> u64 {
        let pixels = self.frame.n_pixels() as u64;
        let elements = pixels * (self.ranges.len() * self.item_bytes) as u64;
        elements + pixels * size_of::<f64>() as u64 + self.frame.rows_bytes() + self.len()
    }

    /// The bytes of the file. `elements` are the decoded samples, in the order of the array.
    pub fn paint(&self, elements: &[u8]) -> Vec<u8> {
        let row_bytes = usize::try_from(self.frame.row_bytes()).unwrap_or(usize::MAX);
        let pixel_bytes = self.frame.pixel_bytes();
        let len = usize::try_from(self.frame.rows_bytes()).unwrap_or_default();
        let mut rows = vec![0; len];
        let mut ranges = Vec::new();
        for (channel, range) in self.ranges.iter().enumerate() {
            let range = range.unwrap_or_else(|| {
                let mut finite = Vec::with_capacity(self.frame.n_pixels());
                let values = self.values_of(channel, elements);
                finite.extend(values.filter_map(|(_, value)| value.filter(|it| it.is_finite())));
                percentiles(finite)
            });
            ranges.push(range);
            for ([y, x], value) in self.values_of(channel, elements) {
                let at = y * row_bytes + 1 + x * pixel_bytes;
                if let Some((value, pixel)) = value.zip(rows.get_mut(at..at + pixel_bytes)) {
                    self.colouring.paint(pixel, channel, value, range);
                }
            }
        }
        let texts: Vec<Text> = self
            .texts
            .iter()
            .cloned()
            .chain(self.range_text(&ranges))
            .collect();
        self.frame.file(&texts, &rows)
    }

    /// The pixels of a channel, row by row: their places y and x, and their values.
    fn values_of<'e>(
        &self,
        channel: usize,
        elements: &'e [u8],
    ) -> impl Iterator<Item = ([usize; 2], Option<f64>)> + use<'_, 'e> {
        let stride = |axis: usize| {
            let after = self.samples.get(axis + 1..).unwrap_or_default();
            let counts = after.iter().map(|samples| samples.count);
            usize::try_from(counts.product::<u64>()).unwrap_or(usize::MAX)
        };
        let [by_y, by_x] = [self.plane.y, self.plane.x].map(stride);
        let first = self
            .plane
            .channels
            .map_or(0, |(axis, _)| channel * stride(axis));
        let (height, width) = (self.frame.height as usize, self.frame.width as usize);
        let places = (0..height).flat_map(move |y| (0..width).map(move |x| [y, x]));
        places.map(move |[y, x]| {
            let at = (first + y * by_y + x * by_x) * self.item_bytes;
            let element = elements.get(at..at + self.item_bytes);
            ([y, x], self.values.value(element.unwrap_or_default()))
        })
    }

    /// The ranges of the channels as a text, whose length does not depend on the ranges. `None` for labels, and where
    /// the channels are the colours.
    fn range_text(&self, ranges: &[Range]) -> Option<Text> {
        if matches!(self.colouring, Colouring::Samples | Colouring::Labels) {
            return None;
        }
        let told: Vec<String> = ranges.iter().map(|range| told(*range)).collect();
        let longest = (2 * NUMBER_WIDTH + " to ; ".len()) * self.ranges.len();
        Some(Text {
            keyword: "Range",
            text: format!("{:longest$}", told.join("; ")),
        })
    }
}

/// The facts about the channels that are shown, of which there is at least one. `None` for a channel without metadata.
fn described(part: &Array, plane: Plane) -> Vec<Option<&Channel>> {
    let of = |axis: usize| part.axes.get(axis).map(|axis| axis.channels.as_slice());
    match (plane.channels, plane.middle_channel) {
        (Some((axis, _)), _) => {
            let channels = of(axis).unwrap_or_default();
            let count = usize::try_from(part.shape[axis]).unwrap_or_default();
            (0..count).map(|number| channels.get(number)).collect()
        }
        (None, Some(axis)) => {
            let middle = usize::try_from(part.shape[axis] / 2).unwrap_or(usize::MAX);
            vec![of(axis).unwrap_or_default().get(middle)]
        }
        (None, None) => vec![None],
    }
}

/// The range of the samples of coloured pixels.
fn full_range(array: &Array) -> Range {
    match Scalar::of(&array.data_type) {
        Some(Scalar::UInt8) => [0.0, 255.0],
        Some(Scalar::UInt16) => [0.0, 65535.0],
        _ => [0.0, 1.0],
    }
}

/// The whole number that is nearest to this part of `most`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the part is from 0 to 1"
)]
fn level(part: f64, most: u8) -> u8 {
    (part * f64::from(most)).round() as u8
}

fn told([low, high]: Range) -> String {
    let number = |number: f64| {
        let text = format!("{number:?}");
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    };
    format!("{} to {}", number(low), number(high))
}

/// The texts that follow from metadata.
fn texts(array: &Array, selected: &Selected, samples: &[AxisSamples]) -> Vec<Text> {
    let title = array.image.as_ref().unwrap_or(&array.name);
    let mut shown = Vec::new();
    for (axis, samples) in samples.iter().enumerate() {
        let own = array.dimension_names.get(axis).cloned().flatten();
        let name = own.or_else(|| array.axes.get(axis)?.name.clone());
        let name = name.unwrap_or_else(|| axis.to_string());
        let length = selected.shape.get(axis).copied().unwrap_or(1);
        let end = samples.start + length;
        shown.push(match (samples.count, samples.step) {
            (1, _) => format!("{name}={}", samples.start),
            (_, 1) => format!("{name}={}:{end}", samples.start),
            (_, step) => format!("{name}={}:{end}:{step}", samples.start),
        });
    }
    let texts = [
        ("Title", title.clone()),
        (DESCRIPTION, shown.join(", ")),
        ("Software", "zarr-mount".to_owned()),
    ];
    let text = |(keyword, text): (&'static str, String)| Text {
        keyword,
        text: plain_text(&text),
    };
    texts.map(text).into()
}

/// `text` without control characters, cut to a limit.
fn plain_text(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(LONGEST_TEXT).map(visible).collect()
}

#[cfg(test)]
mod tests;
