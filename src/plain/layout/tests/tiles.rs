//! Tiles against files that are written out element by element.

use proptest::prelude::*;

use super::super::*;
use crate::plain::FileFormat;
use crate::plain::narrowing::{NarrowType, Narrowing};
use crate::plain::testing::{array, check_slices, read, whole};

/// An array, its elements, and the file that has it in tiles.
struct Example {
    array: Array,
    elements: Vec<u8>,
    layout: Layout,
    expected: Vec<u8>,
}

/// The encoding of an element in the file.
#[derive(Debug, Clone, Copy)]
enum Encoding {
    Same,
    Swapped,
    /// Integers of 32 bits as numbers of 8 bits.
    Narrow,
}

impl Example {
    /// An array whose axes have the lengths `outer`, then those of `plane` and, if there are any, of
    /// `samples`; in the file, the outer axes are in the reverse order if `is_reversed`.
    fn new(
        (outer, plane, samples): (&[u64], [u64; 2], Option<u64>),
        tile: [u64; 2],
        encoding: Encoding,
        is_reversed: bool,
    ) -> Example {
        let typestr = match encoding {
            Encoding::Same => "\"|u1\"",
            Encoding::Swapped => "\"<u2\"",
            Encoding::Narrow => "\"<u4\"",
        };
        let shape = outer.iter().copied().chain(plane).chain(samples);
        let array = array("t", typestr, &shape.collect::<Vec<_>>());
        let mut order: AxisOrder = (0..array.rank()).collect();
        if is_reversed {
            order[..outer.len()].reverse();
        }
        let axes = TileAxes {
            order: order.clone(),
            outer: outer.len(),
        };
        let size = usize::try_from(array.data_type.item_size).unwrap();
        let n = usize::try_from(array.n_elements().unwrap()).unwrap();
        let value = |i: usize| u8::try_from(i % 250).unwrap() + 1;
        let elements: Vec<u8> = (0..n)
            .flat_map(|i| {
                (0..size).map(move |byte| match (encoding, byte) {
                    (_, 0) => value(i),
                    (Encoding::Narrow, _) => 0,
                    _ => value(i + 7),
                })
            })
            .collect();
        let mut builder = Layout::builder();
        builder.bytes(b"head".to_vec()).align(3);
        let tiles = match encoding {
            Encoding::Same => Tiles::new(&array, axes, tile).unwrap(),
            Encoding::Swapped => {
                let tiles = Tiles::new(&array, axes, tile).unwrap();
                tiles.transformed(Transform::Swap { unit: 2 })
            }
            Encoding::Narrow => {
                let narrowed = Narrowing::of(&array, FileFormat::Tif, NarrowType::UInt8);
                let (narrow, narrowing) = narrowed.unwrap().unwrap();
                let tiles = Tiles::new(&narrow, axes, tile).unwrap();
                tiles.transformed(narrowing.transform())
            }
        };
        builder.tiles(tiles).bytes(b"tail".to_vec());
        let mut example = Example {
            layout: builder.finish().unwrap(),
            expected: b"head\0\0".to_vec(),
            elements,
            array,
        };
        example.write_tiles(&order, outer.len(), tile, encoding);
        example.expected.extend(b"tail");
        example
    }

    fn write_tiles(&mut self, order: &[usize], n_outer: usize, tile: [u64; 2], encoding: Encoding) {
        let shape = &self.array.shape;
        let mut planes = vec![vec![0; shape.len()]];
        for &axis in &order[..n_outer] {
            planes = planes
                .iter()
                .flat_map(|plane| {
                    (0..shape[axis]).map(move |i| {
                        let mut plane = plane.clone();
                        plane[axis] = i;
                        plane
                    })
                })
                .collect();
        }
        let samples = shape.get(n_outer + 2).copied();
        for plane in planes {
            for row in 0..shape[n_outer].div_ceil(tile[0]) {
                for column in 0..shape[n_outer + 1].div_ceil(tile[1]) {
                    for y in row * tile[0]..(row + 1) * tile[0] {
                        for x in column * tile[1]..(column + 1) * tile[1] {
                            for sample in 0..samples.unwrap_or(1) {
                                let mut at = plane.clone();
                                at[n_outer..n_outer + 2].copy_from_slice(&[y, x]);
                                if samples.is_some() {
                                    at[n_outer + 2] = sample;
                                }
                                let bytes = self.element(&at, encoding);
                                self.expected.extend(bytes);
                            }
                        }
                    }
                }
            }
        }
    }

    /// The element at `at` as the file has it; zeros outside of the array.
    fn element(&self, at: &[u64], encoding: Encoding) -> Vec<u8> {
        let size = usize::try_from(self.array.data_type.item_size).unwrap();
        let element = match crate::grid::rank_of(at, &self.array.shape) {
            Some(rank) => self.elements[usize::try_from(rank).unwrap() * size..][..size].to_vec(),
            None => vec![0; size],
        };
        match encoding {
            Encoding::Same => element,
            Encoding::Swapped => element.into_iter().rev().collect(),
            Encoding::Narrow => element[..1].to_vec(),
        }
    }

    fn check(&self) {
        let arrays = [(&self.array, self.elements.as_slice())];
        assert_eq!(whole(&self.layout, &arrays), self.expected);
        check_slices(&self.layout, &arrays);
    }
}

#[test]
fn the_drawing_of_tiles_is_the_file() {
    let example = Example::new((&[], [5, 7], None), [4, 4], Encoding::Same, false);
    example.check();
    assert_eq!(example.expected.len(), 6 + 4 * 16 + 4);
    // Every range, which may begin and end in the zeros outside of the array.
    let arrays = [(&example.array, example.elements.as_slice())];
    for start in 0..example.expected.len() {
        for end in start..example.expected.len() {
            let found = read(&example.layout, &arrays, start as u64, end - start);
            assert_eq!(found, example.expected[start..end], "{start}..{end}");
        }
    }
}

/// The rows of wide tiles at the edge are read one by one, those of narrow ones together.
#[test]
fn wide_tiles_are_cut_at_the_edge() {
    for encoding in [Encoding::Same, Encoding::Swapped, Encoding::Narrow] {
        let example = Example::new((&[2], [5, 9000], None), [4, 5000], encoding, false);
        example.check();
    }
}

#[test]
fn a_read_of_a_tile_needs_the_elements_of_that_tile() {
    let example = Example::new((&[3], [100, 100], None), [32, 32], Encoding::Same, false);
    let plan = example.layout.plan(6 + (16 + 5) * 1024, 1024);
    let runs: Vec<_> = plan.runs(&example.layout).collect();
    let [(elements, run)] = runs.as_slice() else {
        panic!("{runs:?}");
    };
    let bounds = elements.bounds.as_ref().unwrap();
    assert_eq!(bounds.start.as_slice(), [1, 32, 32]);
    assert_eq!(bounds.shape.as_slice(), [1, 32, 32]);
    assert_eq!((run.from, run.len, plan.room()), (0, 1024, 1024));
    let ranges: Vec<_> = plan.tile_ranges(&example.layout).collect();
    assert_eq!((ranges[0].from, ranges[0].len), (21 * 1024, 1024));
}

#[test]
fn tiles_that_no_file_has_are_refused() {
    let axes = |rank: usize, outer| TileAxes {
        order: (0..rank).collect(),
        outer,
    };
    let refused = |shape: &[u64], outer, tile| {
        let array = array("t", "\"|u1\"", shape);
        Tiles::new(&array, axes(shape.len(), outer), tile).is_err()
    };
    assert!(!refused(&[3, 4], 0, [16, 16]));
    for (shape, outer, tile, why) in [
        (&[3][..], 0, [16, 16], "one dimension"),
        (&[3, 4], 1, [16, 16], "no plane after the outer axes"),
        (&[3, 0], 0, [16, 16], "no elements"),
        (&[3, 4], 0, [16, 0], "tiles without elements"),
        (&[3, 4], 0, [1 << 16, 1 << 16], "a tile of 4 GiB"),
        (
            &[1 << 40, 1 << 20, 1 << 20],
            1,
            [256, 256],
            "too many bytes",
        ),
        (&[u64::MAX, u64::MAX], 0, [256, 256], "too many tiles"),
    ] {
        assert!(refused(shape, outer, tile), "{why}");
    }
}

proptest! {
    #[test]
    fn every_file_is_its_tiles_in_order(
        outer in proptest::collection::vec(1..4_u64, 0..3),
        plane in (1..12_u64, 1..12_u64),
        samples in proptest::option::of(1..4_u64),
        tile in (1..7_u64, 1..7_u64),
        encoding in 0..3_usize,
        is_reversed in any::<bool>(),
    ) {
        let encoding = [Encoding::Same, Encoding::Swapped, Encoding::Narrow][encoding];
        let shape = (outer.as_slice(), [plane.0, plane.1], samples);
        Example::new(shape, [tile.0, tile.1], encoding, is_reversed).check();
    }
}
