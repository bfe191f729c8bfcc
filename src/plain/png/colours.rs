//! The colours of previews: palettes for one channel, and the sum of several channels.

use super::viridis::VIRIDIS;
use crate::plain::Channel;

/// Red, green and blue.
pub(super) type Rgb = [u8; 3];

/// The most channels that are shown together: `ImageJ` blends as many.
pub(super) const MOST_CHANNELS: u64 = 7;

/// The colours of channels whose metadata give none, in the order of `ImageJ`.
const DEFAULTS: [Rgb; 7] = [
    [255, 0, 0],
    [0, 255, 0],
    [0, 0, 255],
    [255, 255, 255],
    [0, 255, 255],
    [255, 0, 255],
    [255, 255, 0],
];

/// A palette for the numbers of a picture of one channel. Colour 0 is that of missing values, which are transparent.
pub(super) type Palette = [Rgb; 256];

/// The palette of a channel: from black to `color`, or viridis if the channel has no colour.
pub(super) fn palette(color: Option<Rgb>) -> Palette {
    let mut palette = match color {
        None => VIRIDIS.map(|color| {
            let [_, red, green, blue] = color.to_be_bytes();
            [red, green, blue]
        }),
        Some(color) => {
            let mut levels = 0_u8..=255;
            // The first level of a value is colour 1.
            [(); 256].map(|()| dimmed(color, levels.next().unwrap_or(255)))
        }
    };
    palette[0] = [0; 3];
    palette
}

/// The colours of channels that are blended.
pub(super) fn blended<'c>(channels: impl Iterator<Item = Option<&'c Channel>>) -> Vec<Rgb> {
    let defaults = DEFAULTS.iter().cycle();
    let channels = channels.zip(defaults);
    let color = |(channel, default): (Option<&Channel>, &Rgb)| {
        channel
            .and_then(|channel| channel.color)
            .unwrap_or(*default)
    };
    channels.map(color).collect()
}

/// Adds a channel of `color` at `level` to a pixel.
pub(super) fn add(pixel: &mut [u8], color: Rgb, level: u8) {
    for (sum, part) in pixel.iter_mut().zip(dimmed(color, level)) {
        *sum = sum.saturating_add(part);
    }
}

/// `color` in a part of its brightness, of which 255 is all.
fn dimmed(color: Rgb, level: u8) -> Rgb {
    let part = |whole: u8| {
        let part = (u16::from(whole) * u16::from(level) + 127) / 255;
        u8::try_from(part).unwrap_or(u8::MAX)
    };
    color.map(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn palettes_begin_dark_and_end_bright() {
        let viridis = palette(None);
        assert_eq!(
            (viridis[1], viridis[128], viridis[255]),
            ([68, 2, 86], [33, 145, 140], [253, 231, 37])
        );
        let green = palette(Some([0, 255, 10]));
        assert_eq!(
            (green[1], green[128], green[255]),
            ([0, 1, 0], [0, 128, 5], [0, 255, 10])
        );
    }

    #[test]
    fn channels_without_a_colour_get_one() {
        let blue = Channel {
            color: Some([0, 0, 255]),
            ..Channel::default()
        };
        let found = blended([None, Some(&blue), Some(&Channel::default())].into_iter());
        assert_eq!(found, [[255, 0, 0], [0, 0, 255], [0, 0, 255]]);
    }

    #[test]
    fn sums_of_channels_end_at_white() {
        let mut pixel = [0, 250, 0];
        add(&mut pixel, [255, 255, 255], 10);
        assert_eq!(pixel, [10, 255, 10]);
    }
}
