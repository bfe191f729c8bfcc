//! The names, colours and ranges of channels, as `ImageJ` stores them in two entries of its own: the metadata, and the
//! length of each of their parts.
//!
//! ```text
//! "JIJI", then for each kind of metadata: its name, reversed, u32 number of parts
//! "labl"  a part for each plane: UTF-16
//! "rang"  one part: two f64 for each channel
//! "luts"  a part for each channel: 256 bytes each of red, green and blue
//! ```
//!
//! All numbers and texts have the byte order of the file.
//! <https://imagej.net/ij/developer/source/ij/io/TiffEncoder.java.html>

use super::super::axes::Channel;
use super::super::image::{Image, ImageAxis};

/// The most planes that get labels.
const MOST_LABELS: u64 = 4096;
/// The most channels that `ImageJ` shows at once.
const MOST_AT_ONCE: usize = 7;
/// The length of the name of a kind of metadata, and of its number of parts.
const KIND_BYTES: usize = 8;

/// The channels of an image.
pub(super) struct Channels<'a> {
    all: &'a [Channel],
    n_planes: u64,
    /// Whether the values of a range are those of the elements, which they are not for signed integers.
    has_ranges: bool,
}

impl<'a> Channels<'a> {
    /// The channels of `image`, which has `n_planes` planes. Signed integers have no ranges: `ImageJ` adds 32,768 to
    /// their elements.
    pub(super) fn of(image: &Image<'a>, n_planes: u64, is_signed: bool) -> Channels<'a> {
        let axis = image.axis(ImageAxis::C);
        Channels {
            all: axis.map(|axis| &axis.channels[..]).unwrap_or_default(),
            n_planes,
            has_ranges: !is_signed,
        }
    }

    /// How `ImageJ` shows the channels: in grey, blended in their colours, or one at a time.
    pub(super) fn mode(&self) -> &'static str {
        match self.colors() {
            None => "grayscale",
            Some(colors) if colors.len() <= MOST_AT_ONCE => "composite",
            Some(_) => "color",
        }
    }

    /// The lines of the description that say which values of a single channel are shown black and white.
    pub(super) fn lines(&self) -> Vec<String> {
        match self.windows().as_deref() {
            Some([[from, to]]) => vec![format!("min={from:?}"), format!("max={to:?}")],
            _ => Vec::new(),
        }
    }

    /// The lengths of the parts of the metadata, and the metadata; `None` if nothing is known.
    pub(super) fn metadata(&self) -> Option<(Vec<u32>, Vec<u8>)> {
        let kinds = [
            (b"labl", self.labels()),
            (b"rang", self.ranges()),
            (b"luts", self.tables()),
        ];
        let kinds: Vec<_> = kinds
            .into_iter()
            .filter(|(_, parts)| !parts.is_empty())
            .collect();
        if kinds.is_empty() {
            return None;
        }
        let mut bytes = b"JIJI".to_vec();
        let mut lengths = vec![bytes.len() + KIND_BYTES * kinds.len()];
        for (name, parts) in &kinds {
            bytes.extend(name.iter().rev());
            bytes.extend(u32::try_from(parts.len()).ok()?.to_le_bytes());
        }
        for part in kinds.iter().flat_map(|(_, parts)| parts) {
            lengths.push(part.len());
            bytes.extend(part);
        }
        let lengths = lengths.into_iter().map(|length| u32::try_from(length).ok());
        Some((lengths.collect::<Option<_>>()?, bytes))
    }

    /// The name of the channel of each plane. Channels vary fastest.
    fn labels(&self) -> Vec<Vec<u8>> {
        let is_named = self.all.iter().any(|channel| channel.label.is_some());
        if !is_named || self.n_planes > MOST_LABELS {
            return Vec::new();
        }
        let labels = self.all.iter().map(|channel| {
            let label = channel.label.as_deref().unwrap_or_default();
            label.encode_utf16().flat_map(u16::to_le_bytes).collect()
        });
        let labels: Vec<Vec<u8>> = labels.collect();
        let n_planes = usize::try_from(self.n_planes).unwrap_or_default();
        labels.iter().cycle().take(n_planes).cloned().collect()
    }

    fn ranges(&self) -> Vec<Vec<u8>> {
        let Some(windows) = self.windows().filter(|windows| windows.len() > 1) else {
            return Vec::new();
        };
        let numbers = windows.iter().flatten();
        vec![numbers.flat_map(|number| number.to_le_bytes()).collect()]
    }

    /// A table of colours for each channel, from black to its own colour.
    fn tables(&self) -> Vec<Vec<u8>> {
        let table = |color: &[u8; 3]| {
            let of_sample = |full: &u8| {
                let full = u32::from(*full);
                (0..256_u32).map(move |value| ((value * full + 127) / 255).to_le_bytes()[0])
            };
            color.iter().flat_map(of_sample).collect()
        };
        let colors = self.colors().unwrap_or_default();
        colors.iter().map(table).collect()
    }

    /// The colours of all channels, if there are several and each has one.
    fn colors(&self) -> Option<Vec<[u8; 3]>> {
        let colors = self.all.iter().map(|channel| channel.color);
        let colors: Vec<_> = colors.collect::<Option<_>>()?;
        (colors.len() > 1).then_some(colors)
    }

    /// The windows of all channels, if each has one.
    fn windows(&self) -> Option<Vec<[f64; 2]>> {
        let windows = self.all.iter().map(|channel| channel.window);
        windows
            .collect::<Option<Vec<_>>>()
            .filter(|_| self.has_ranges)
    }
}
