//! The image of the demo store: cells under a microscope, in two channels and two resolutions, as OME-NGFF 0.5.
//!
//! A cell is a bright nucleus within a darker body. All values are integers from parabolas, so that no rounding differs
//! between machines.

use super::{compress, global, indices, insert};
use crate::store::MemoryStore;

const CELLS: &str = r#"{
  "zarr_format": 3,
  "node_type": "group",
  "attributes": {
    "ome": {
      "version": "0.5",
      "multiscales": [
        {
          "name": "cells",
          "axes": [
            {"name": "c", "type": "channel"},
            {"name": "y", "type": "space", "unit": "micrometer"},
            {"name": "x", "type": "space", "unit": "micrometer"}
          ],
          "datasets": [
            {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 0.5, 0.5]}]},
            {
              "path": "1",
              "coordinateTransformations": [
                {"type": "scale", "scale": [1, 1, 1]},
                {"type": "translation", "translation": [0, 0.25, 0.25]}
              ]
            }
          ],
          "type": "mean"
        }
      ],
      "omero": {
        "name": "cells",
        "channels": [
          {"label": "nuclei", "color": "3F7FFF", "active": true, "window": {"min": 0, "max": 65535, "start": 200, "end": 4000}},
          {"label": "membranes", "color": "FFBF3F", "active": true, "window": {"min": 0, "max": 65535, "start": 200, "end": 3000}}
        ]
      }
    }
  }
}
"#;

/// The finest level: channels, rows, columns.
const SHAPE: [u16; 3] = [2, 128, 192];
const CHUNK: [u16; 3] = [1, 64, 64];
/// The width of a square with one cell in it.
const SQUARE: i32 = 32;
/// The value where there is no cell.
const DARK: i32 = 200;

/// Inserts the pyramid.
pub(super) fn insert_image(store: &MemoryStore) {
    insert(store, "cells/zarr.json", CELLS);
    insert_level(store, 0, SHAPE, element);
    let [channels, height, width] = SHAPE;
    insert_level(store, 1, [channels, height / 2, width / 2], mean);
}

/// Inserts a level. `element` returns the element at its indices.
fn insert_level(store: &MemoryStore, level: u8, shape: [u16; 3], element: fn([u16; 3]) -> u16) {
    let document = format!(
        r#"{{
  "zarr_format": 3,
  "node_type": "array",
  "shape": {shape:?},
  "data_type": "uint16",
  "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": {CHUNK:?}}}}},
  "chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "/"}}}},
  "fill_value": 0,
  "codecs": [
    {{"name": "bytes", "configuration": {{"endian": "little"}}}},
    {{"name": "zstd", "configuration": {{"level": 3, "checksum": false}}}}
  ],
  "dimension_names": ["c", "y", "x"],
  "attributes": {{}}
}}
"#
    );
    insert(store, &format!("cells/{level}/zarr.json"), document);
    let grid = std::array::from_fn(|axis| shape[axis].div_ceil(CHUNK[axis]));
    for [c, y, x] in indices(grid) {
        let elements = indices(CHUNK).map(|inner| global([c, y, x], CHUNK, inner));
        let is_inside = |at: [u16; 3]| at.iter().zip(shape).all(|(&index, len)| index < len);
        let values = elements.map(|at| if is_inside(at) { element(at) } else { 0 });
        let decoded: Vec<u8> = values.flat_map(u16::to_le_bytes).collect();
        insert(
            store,
            &format!("cells/{level}/c/{c}/{y}/{x}"),
            compress(&decoded),
        );
    }
}

/// The brightest of the cells around an element of the finest level.
fn element([channel, y, x]: [u16; 3]) -> u16 {
    let [y, x] = [y, x].map(i32::from);
    let (row, column) = (y / SQUARE, x / SQUARE);
    let around = (row - 1..=row + 1)
        .flat_map(|row| (column - 1..=column + 1).map(move |column| (row, column)));
    let bright = around.map(|(row, column)| {
        let (dy, dx) = (
            y - SQUARE * row - 16 - shift(row, column),
            x - SQUARE * column - 16 - shift(column, row + 5),
        );
        let distance = dy * dy + dx * dx;
        if channel == 0 {
            nucleus(distance, row + column)
        } else {
            membrane(distance)
        }
    });
    let bright = bright.fold(0, i32::max);
    u16::try_from(DARK + bright).expect("values are small")
}

/// The shift of a cell from the middle of its square.
fn shift(across: i32, along: i32) -> i32 {
    (7 * across + 5 * along * along + 3).rem_euclid(11) - 5
}

/// A parabola, brightest in the middle. `distance` is squared.
fn nucleus(distance: i32, number: i32) -> i32 {
    let radius = 60 + 10 * number.rem_euclid(4);
    (40 * (radius - distance)).clamp(0, 3600)
}

/// A ring around the nucleus. `distance` is squared.
fn membrane(distance: i32) -> i32 {
    let from_ring = (distance - 190) / 8;
    (2600 - 12 * from_ring * from_ring).max(0)
}

/// An element of the coarse level: the mean of four elements.
fn mean([channel, y, x]: [u16; 3]) -> u16 {
    let four = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let sum: u32 = four
        .iter()
        .map(|(dy, dx)| u32::from(element([channel, 2 * y + dy, 2 * x + dx])))
        .sum();
    u16::try_from(sum / 4).expect("a mean is no larger than its elements")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_channels_have_bright_and_dark_elements() {
        let [channels, height, width] = SHAPE;
        for channel in 0..channels {
            let values: Vec<u16> = indices([1, height, width])
                .map(|[_, y, x]| element([channel, y, x]))
                .collect();
            let dark = values.iter().filter(|&&value| value == 200).count();
            let share = dark * 100 / values.len();
            assert!(
                (20..90).contains(&share),
                "channel {channel}: {share} % are dark"
            );
            assert!(
                values.iter().any(|&value| value > 2500),
                "channel {channel}"
            );
        }
    }

    #[test]
    fn the_coarse_level_is_the_mean_of_the_fine_one() {
        let four =
            [[0, 10, 20], [0, 10, 21], [0, 11, 20], [0, 11, 21]].map(|at| u32::from(element(at)));
        assert_eq!(u32::from(mean([0, 5, 10])), four.iter().sum::<u32>() / 4);
    }
}
