//! Tests which windows of a chunk are read. The tests of `read::operation` check the bytes with
//! random arrays.

use super::windows::WindowLimits;
use crate::grid::ChunkGrid;
use crate::load::Region;

/// The windows for a region of an array that is one chunk.
fn windows(shape: &[u64], region: &Region, near: &WindowLimits) -> Vec<(u64, u64)> {
    let grid = ChunkGrid::new(shape, shape).unwrap();
    let cut = region.cut(&grid, 1).unwrap();
    let len = region.shape.iter().product();
    let mut windows = Vec::new();
    cut.visit(0, len, |_, pieces| {
        pieces.iter().try_for_each(|piece| {
            near.for_each_window(&[piece], cut.longest_chunk(), |start, end| {
                windows.push((start, end));
                Ok(())
            })
        })
    })
    .unwrap();
    windows
}

fn corner(start: &[u64], shape: &[u64]) -> Region {
    Region {
        start: start.into(),
        shape: shape.into(),
        order: (0..shape.len()).rev().collect(),
    }
}

#[test]
fn pieces_that_lie_near_each_other_are_read_at_once() {
    let near = |gap, most, unit| WindowLimits { gap, most, unit };
    let whole = [10, 100];
    let column = corner(&[2, 7], &[3, 2]);
    let apart = [(207, 209), (307, 309), (407, 409)];
    assert_eq!(windows(&whole, &column, &near(97, 1000, 1)), apart);
    assert_eq!(windows(&whole, &column, &near(98, 1000, 1)), [(207, 409)]);
    assert_eq!(
        windows(&whole, &column, &near(98, 110, 1)),
        [(207, 309), (407, 409)],
        "no more than fits"
    );
    assert_eq!(
        windows(&whole, &column, &near(0, 1000, 4)),
        [(204, 212), (304, 312), (404, 412)],
        "whole units"
    );
    let rows = corner(&[2, 0], &[3, 100]);
    assert_eq!(
        windows(&whole, &rows, &near(0, 128, 1)),
        [(200, 328), (328, 456), (456, 500)],
        "long ones in parts"
    );
}
