//! Tests regions against a run that is made element by element.

use super::*;
use proptest::prelude::*;

/// All index tuples of a box, in C order.
fn indices(counts: &[u64]) -> Vec<Vec<u64>> {
    counts.iter().fold(vec![vec![]], |all, &count| {
        let more = |first: &Vec<u64>| {
            let first = first.clone();
            (0..count).map(move |i| [&first[..], &[i]].concat())
        };
        all.iter().flat_map(more).collect()
    })
}

/// The byte of an array of fewer than 2^8 elements a side.
fn byte(at: &[u64], byte: u64) -> u8 {
    let sum = at.iter().fold(byte, |sum, i| sum * 7 + i + 1);
    sum.to_le_bytes()[0]
}

fn chunk_bytes(grid: &ChunkGrid, chunk: &[u64], item_size: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for within in indices(grid.longest_chunk()) {
        let corner = chunk.iter().zip(grid.longest_chunk());
        let at: Vec<u64> = corner.zip(&within).map(|((i, n), j)| i * n + j).collect();
        bytes.extend((0..item_size).map(|k| byte(&at, k)));
    }
    bytes
}

fn run(region: &Region, item_size: u64) -> Vec<u8> {
    let lengths: Vec<u64> = region.order.iter().map(|&a| region.shape[a]).collect();
    let mut bytes = Vec::new();
    for file in indices(&lengths) {
        let mut at = region.start.clone();
        for (&axis, i) in region.order.iter().zip(file) {
            at[axis] += i;
        }
        bytes.extend((0..item_size).map(|k| byte(&at, k)));
    }
    bytes
}

fn case() -> impl Strategy<Value = (ChunkGrid, Region, u64)> {
    // For each axis: the lengths of the array and of a chunk, the beginning and the end of the
    // region, and a number to sort the axes by.
    let one = (0..9_u64, 1..5_u64, any::<(u64, u64, u64)>());
    let axes = proptest::collection::vec(one, 0..=4);
    let item_size = prop::sample::select(vec![1, 2, 3, 4, 8, 16]);
    (axes, item_size).prop_map(|(axes, item_size)| {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let chunk: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
        let start: Dims = axes.iter().map(|axis| axis.2.0 % (axis.0 + 1)).collect();
        let lengths = axes.iter().zip(&start).map(|(axis, start)| {
            let most = axis.0 - start;
            // Most regions are not empty.
            (axis.2.1 % (most + 3)).min(most)
        });
        let lengths = lengths.collect();
        let mut order: SmallVec<[usize; 6]> = (0..axes.len()).collect();
        order.sort_by_key(|&axis| axes[axis].2.2);
        let region = Region {
            shape: lengths,
            start,
            order,
        };
        (ChunkGrid::new(&shape, &chunk).unwrap(), region, item_size)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn ranges_are_put_together_out_of_chunks(
        (grid, region, item_size) in case(),
        range in any::<(u64, u64)>(),
    ) {
        let expected = run(&region, item_size);
        let total = expected.len() as u64;
        let from = range.0 % (total + 1);
        let len = range.1 % (total + 1 - from);
        let cut = region.cut(&grid, item_size).unwrap();
        prop_assert!(cut.has(0, total) && !cut.has(0, total + 1));
        let mut out = vec![0xee; usize::try_from(len).unwrap()];
        let mut seen = Vec::new();
        let mut wanted = 0;
        cut.visit(from, len, |indices, pieces| {
            seen.push(indices.to_vec());
            let chunk = chunk_bytes(&grid, indices, item_size);
            for piece in pieces {
                wanted += piece.len();
                piece.copy(cut.longest_chunk(), &chunk, 0, &mut out).unwrap();
            }
            Ok::<(), ()>(())
        }).unwrap();
        let from = usize::try_from(from).unwrap();
        prop_assert_eq!(&out[..], &expected[from..][..out.len()]);
        prop_assert_eq!(wanted, len, "no byte twice");
        let visits = seen.len();
        seen.sort();
        seen.dedup();
        prop_assert_eq!(seen.len(), visits, "no chunk twice");
    }

    #[test]
    fn runs_of_the_output_are_filled_at_their_place_in_an_element(
        (grid, region, item_size) in case(),
        range in any::<(u64, u64)>(),
    ) {
        let total = run(&region, item_size).len() as u64;
        let from = range.0 % (total + 1);
        let len = range.1 % (total + 1 - from);
        let cut = region.cut(&grid, item_size).unwrap();
        let mut out = vec![0xee; usize::try_from(len).unwrap()];
        cut.visit(from, len, |_, pieces| {
            pieces.iter().try_for_each(|piece| piece.fill(&mut out, |phase, run| {
                for (byte, at) in run.iter_mut().zip(phase..) {
                    *byte = (at % item_size).to_le_bytes()[0];
                }
            })).ok_or(())
        }).unwrap();
        for (byte, at) in out.iter().zip(from..) {
            prop_assert_eq!(u64::from(*byte), at % item_size);
        }
    }
}

fn region(start: &[u64], shape: &[u64], order: &[usize]) -> Region {
    Region {
        start: start.into(),
        shape: shape.into(),
        order: order.into(),
    }
}

#[test]
fn rows_of_chunks_are_counted() {
    let grid = ChunkGrid::new(&[100, 100, 100], &[10, 20, 50]).unwrap();
    let chunk = 10 * 20 * 50 * 4;
    let row = |region: &Region| region.row_chunks_bytes(&[], &grid, 4);
    assert_eq!(row(&Region::all(grid.shape())), Some(5 * 2 * chunk));
    let reversed = region(&[0; 3], &[100; 3], &[2, 1, 0]);
    assert_eq!(row(&reversed), Some(5 * 10 * chunk));
    let plane = region(&[7, 0, 0], &[1, 100, 100], &[0, 1, 2]);
    assert_eq!(row(&plane), Some(2 * chunk), "one index of axis 0");
    let crossing = region(&[9, 19, 0], &[2, 2, 100], &[0, 1, 2]);
    assert_eq!(row(&crossing), Some(chunk), "no chunk has two rows");
    let element = region(&[7, 0, 0], &[1, 1, 1], &[0, 1, 2]);
    assert_eq!(row(&element), Some(chunk));
    let nothing = region(&[100, 0, 0], &[0, 1, 1], &[0, 1, 2]);
    assert_eq!(row(&nothing), Some(0));
    let scalar = ChunkGrid::new(&[], &[]).unwrap();
    assert_eq!(Region::all(&[]).row_chunks_bytes(&[], &scalar, 8), Some(8));
}

#[test]
fn rows_of_chunks_in_tiles_are_counted() {
    let whole = region(&[0; 3], &[4, 1000, 1000], &[0, 1, 2]);
    let moved = region(&[0, 10, 0], &[4, 900, 1000], &[0, 1, 2]);
    for (region, chunk, tile, expected, why) in [
        (
            &whole,
            [1, 256, 256],
            [1, 256, 256],
            1,
            "each tile is a chunk",
        ),
        (
            &whole,
            [2, 256, 256],
            [1, 256, 256],
            16,
            "a chunk has two planes",
        ),
        (
            &whole,
            [1, 64, 64],
            [1, 256, 256],
            16,
            "a tile has 4 x 4 chunks",
        ),
        (
            &whole,
            [1, 300, 300],
            [1, 256, 256],
            8,
            "a row of tiles touches two rows",
        ),
        (
            &whole,
            [1, 512, 512],
            [1, 256, 256],
            2,
            "a row of tiles lies in a row",
        ),
        (
            &whole,
            [1, 300, 300],
            [1, 1024, 1024],
            16,
            "a tile is a plane",
        ),
        (
            &moved,
            [1, 256, 256],
            [1, 256, 256],
            8,
            "the first tile cuts chunks",
        ),
    ] {
        let grid = ChunkGrid::new(&[4, 1000, 1000], &chunk).unwrap();
        let bytes = chunk.iter().product::<u64>() * 2;
        let found = region.row_chunks_bytes(&tile, &grid, 2);
        assert_eq!(found, Some(expected * bytes), "{why}");
    }
}

#[test]
fn regions_outside_of_the_array_are_refused() {
    let grid = ChunkGrid::new(&[10, 10], &[4, 4]).unwrap();
    assert!(region(&[6, 0], &[4, 10], &[1, 0]).cut(&grid, 1).is_some());
    for (start, shape, order) in [
        (&[7, 0][..], &[4, 10][..], &[0, 1][..]),
        (&[u64::MAX, 0], &[4, 10], &[0, 1]),
        (&[0, 0], &[4, 10], &[1, 1]),
        (&[0, 0], &[4, 10], &[0, 1, 1]),
        (&[0, 0], &[4, 10], &[0, 2]),
        (&[0], &[4], &[0]),
    ] {
        let region = region(start, shape, order);
        assert!(region.cut(&grid, 1).is_none(), "{region:?}");
        assert_eq!(region.row_chunks_bytes(&[], &grid, 1), None, "{region:?}");
    }
    let whole = Region::all(&[10, 10]);
    assert!(whole.cut(&grid, u64::MAX / 100).is_none(), "past i64::MAX");
}

#[test]
fn a_read_of_a_huge_array_touches_only_the_chunks_it_needs() {
    let (n, item) = (1 << 20, 99_999_999);
    let grid = ChunkGrid::new(&[n, 1000], &[1, 100]).unwrap();
    let region = Region::all(grid.shape());
    let cut = region.cut(&grid, item).unwrap();
    let mut seen = Vec::new();
    let from = (n / 2) * 1000 * item - 5;
    cut.visit(from, 10, |indices, pieces| {
        seen.push(indices.to_vec());
        assert_eq!((pieces.len(), pieces[0].len()), (1, 5));
        Ok::<(), ()>(())
    })
    .unwrap();
    assert_eq!(seen, [[n / 2 - 1, 9], [n / 2, 0]]);
}
