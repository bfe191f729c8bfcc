//! Layouts against files that are written out whole.

use super::*;

mod tiles;

fn run(len: u64, transform: Transform, slabs: Option<Slabs>) -> Elements {
    Elements {
        array: 0,
        order: AxisOrder::new(),
        bounds: None,
        skip: 0,
        len,
        transform,
        slabs,
    }
}

/// Byte `i` of every run is `i`, but never 0.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature that a layout requires"
)]
fn fetch(_: &Elements, from: u64, out: &mut [u8]) -> Result<(), FormatError> {
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = u8::try_from((from + i as u64) % 255).unwrap() + 1;
    }
    Ok(())
}

fn whole(layout: &Layout) -> Vec<u8> {
    let mut all = vec![0xee; usize::try_from(layout.len()).unwrap()];
    layout.read(0, &mut all, fetch).unwrap();
    all
}

fn check_slices(layout: &Layout, expected: &[u8]) {
    assert_eq!(layout.len(), expected.len() as u64);
    for start in 0..=expected.len() {
        for end in start..=expected.len() {
            let mut part = vec![0xee; end - start];
            layout.read(start as u64, &mut part, fetch).unwrap();
            assert_eq!(part, &expected[start..end], "{start}..{end}");
        }
    }
}

#[test]
fn every_slice_is_that_of_the_whole_file() {
    let mut builder = Layout::builder();
    builder.bytes(b"head".to_vec()).align(8);
    builder.elements(run(6, Transform::Swap { unit: 2 }, None));
    builder.align(4).bytes(b"tail".to_vec()).align(16);
    let layout = builder.finish().unwrap();
    let expected = b"head\0\0\0\0\x02\x01\x04\x03\x06\x05\0\0tail\0\0\0\0\0\0\0\0\0\0\0\0";
    assert_eq!(whole(&layout), expected);
    check_slices(&layout, expected);
}

#[test]
fn slabs_of_several_runs_interleave() {
    let mut builder = Layout::builder();
    builder.bytes(b"h".to_vec());
    let slabs = |len| Some(Slabs { len, stride: 8 });
    builder.elements(run(9, Transform::None, slabs(3)));
    builder.align(1).seek(5);
    builder.elements(run(12, Transform::Swap { unit: 4 }, slabs(4)));
    let layout = builder.finish().unwrap();
    let expected = b"h\x01\x02\x03\0\x04\x03\x02\x01\x04\x05\x06\0\x08\x07\x06\x05\x07\x08\x09\0\x0c\x0b\x0a\x09";
    assert_eq!(whole(&layout), expected);
    check_slices(&layout, expected);
}

#[test]
fn a_file_longer_than_a_file_can_be_is_refused() {
    let mut builder = Layout::builder();
    builder.bytes(b"x".to_vec());
    builder.elements(run(u64::MAX, Transform::None, None));
    assert!(builder.finish().is_err());
    let mut builder = Layout::builder();
    let stride = 1 << 62;
    builder.elements(run(8, Transform::None, Some(Slabs { len: 1, stride })));
    assert!(builder.finish().is_err());
}

#[test]
fn parts_without_bytes_are_left_out() {
    let mut builder = Layout::builder();
    builder.elements(run(0, Transform::None, None));
    builder.bytes(b"x".to_vec());
    let layout = builder.finish().unwrap();
    assert_eq!(layout.parts().len(), 1);
    check_slices(&layout, b"x");
}

/// Long slabs are read one by one, short ones together; both may begin within an element.
#[test]
fn slabs_of_any_length_are_those_of_their_elements() {
    for (len, stride, unit) in [(5000, 5003, 1), (8000, 8192, 8), (8, 12, 8), (6, 6, 2)] {
        let n_slabs = 40_000 / len;
        let mut builder = Layout::builder();
        builder.bytes(b"head".to_vec());
        let transform = Transform::Swap { unit };
        let mut elements = run(len * n_slabs, transform, Some(Slabs { len, stride }));
        elements.skip = 2 * unit as u64;
        builder.elements(elements);
        let layout = builder.finish().unwrap();
        let all = whole(&layout);
        let item = unit as u64;
        for slab in 0..n_slabs {
            for at in 0..len {
                let byte = slab * len + at;
                let swapped = byte / item * item + (item - 1 - byte % item) + 2 * item;
                let expected = u8::try_from(swapped % 255).unwrap() + 1;
                let found = all[usize::try_from(4 + slab * stride + at).unwrap()];
                assert_eq!(found, expected, "byte {at} of slab {slab} of {len}");
            }
        }
        for (start, end) in [(0, 9), (1, 4999), (4990, 5020), (7, 20_011), (8195, 39_999)] {
            let mut part = vec![0xee; end - start];
            layout.read(start as u64, &mut part, fetch).unwrap();
            assert_eq!(part, &all[start..end], "{start}..{end} of slabs of {len}");
        }
    }
}

/// The plan for very many records of one number is proportional to the number of variables.
#[test]
fn short_slabs_are_one_run() {
    let mut builder = Layout::builder();
    let slabs = Some(Slabs { len: 4, stride: 12 });
    for variable in 0..3 {
        builder.align(1).seek(4 * variable);
        builder.elements(run(400_000, Transform::Swap { unit: 4 }, slabs));
    }
    let layout = builder.finish().unwrap();
    let plan = layout.plan(12_345, 1 << 20);
    assert_eq!(plan.runs(&layout).count(), 3);
    assert!(plan.room() <= 2 * (1 << 20) + 3 * 8, "{}", plan.room());
}
