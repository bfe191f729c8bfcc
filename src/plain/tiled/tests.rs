//! Directories and tiles of both arrangements, followed from the header on as a reader follows them.

use std::collections::BTreeMap;

use super::super::layout::TileAxes;
use super::super::testing::{array, counting, read, whole};
use super::*;

/// The levels of an image of `bands` planes, each half as large as the one before.
fn levels(bands: u64, sides: &[u64]) -> (Vec<Level>, Vec<Array>) {
    let arrays = sides.iter().enumerate().map(|(id, &side)| {
        let shape = [bands, side, side + 1];
        let shape = if bands == 1 { &shape[1..] } else { &shape };
        let mut array = array("t", r#""<u2""#, shape);
        array.id = id;
        array
    });
    let arrays: Vec<Array> = arrays.collect();
    let level = |array: &Array| {
        let axes = TileAxes {
            order: (0..array.rank()).collect(),
            outer: array.rank() - 2,
        };
        Level {
            tiles: Tiles::new(array, axes, [16, 32]).unwrap(),
            sample: tiff::sample(&array.data_type).unwrap(),
            fields: vec![Field::text(42113, "65535")],
        }
    };
    (arrays.iter().map(level).collect(), arrays)
}

fn number(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().rev();
    digits.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The values of each tag of the directory at `at`, and the offset of the next directory.
fn directory(file: &[u8], at: u64) -> (BTreeMap<u16, Vec<u64>>, u64) {
    let at = usize::try_from(at).unwrap();
    let n = usize::try_from(number(&file[at..at + 8])).unwrap();
    let mut values = BTreeMap::new();
    let mut last = 0;
    for entry in file[at + 8..][..20 * n].chunks_exact(20) {
        let tag = u16::try_from(number(&entry[..2])).unwrap();
        assert!(tag > last, "tags are in order");
        last = tag;
        let size = match number(&entry[2..4]) {
            1 | 2 => 1,
            3 => 2,
            4 => 4,
            _ => 8,
        };
        let count = usize::try_from(number(&entry[4..12])).unwrap();
        let bytes = match count * size {
            0..=8 => &entry[12..12 + count * size],
            len => &file[usize::try_from(number(&entry[12..])).unwrap()..][..len],
        };
        values.insert(tag, bytes.chunks_exact(size).map(number).collect());
    }
    (values, number(&file[at + 8 + 20 * n..][..8]))
}

/// The elements of plane `plane` of a level of `shape`, put together from its tiles.
fn plane_of(file: &[u8], fields: &BTreeMap<u16, Vec<u64>>, offsets: &[u64]) -> Vec<u8> {
    let field = |tag| usize::try_from(fields[&tag][0]).unwrap();
    let [width, height] = [tag::IMAGE_WIDTH, tag::IMAGE_LENGTH].map(field);
    let [across, down] = [tag::TILE_WIDTH, tag::TILE_LENGTH].map(field);
    let mut plane = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let tile = y / down * width.div_ceil(across) + x / across;
            let at = usize::try_from(offsets[tile]).unwrap();
            let at = at + 2 * (y % down * across + x % across);
            plane.extend(&file[at..at + 2]);
        }
    }
    plane
}

#[test]
fn a_pyramid_has_levels_for_each_plane() {
    let (levels, arrays) = levels(3, &[50, 25, 12]);
    let own = [Field::text(tag::IMAGE_DESCRIPTION, "what it is")];
    let layout = file(levels, Arrangement::Pyramid, &own).unwrap();
    let bytes: Vec<Vec<u8>> = arrays
        .iter()
        .zip(1..)
        .map(|(array, n)| counting(array, n))
        .collect();
    let pairs: Vec<_> = arrays
        .iter()
        .zip(&bytes)
        .map(|(array, bytes)| (array, bytes.as_slice()))
        .collect();
    let file = whole(&layout, &pairs);
    let mut at = number(&file[8..16]);
    for plane in 0..3 {
        let (image, next) = directory(&file, at);
        assert_eq!(image.contains_key(&tag::IMAGE_DESCRIPTION), plane == 0);
        assert_eq!(image[&tag::NEW_SUBFILE_TYPE], [0]);
        let subs = &image[&tag::SUB_IFDS];
        assert_eq!(subs.len(), 2);
        let mut all = vec![image.clone()];
        for &sub in subs {
            let (level, next) = directory(&file, sub);
            assert_eq!((level[&tag::NEW_SUBFILE_TYPE][0], next), (1, 0));
            all.push(level);
        }
        for (level, (array, bytes)) in all.iter().zip(&pairs) {
            assert_eq!(level[&tag::SAMPLES_PER_PIXEL], [1]);
            let n = bytes.len() / 3;
            let found = plane_of(&file, level, &level[&tag::TILE_OFFSETS]);
            assert_eq!(
                found,
                bytes[plane * n..][..n],
                "plane {plane} of {}",
                array.id
            );
            assert!(
                level[&tag::TILE_BYTE_COUNTS]
                    .iter()
                    .all(|&bytes| bytes == 1024)
            );
        }
        at = next;
    }
    assert_eq!(at, 0);
}

#[test]
fn a_cog_has_bands_and_overviews() {
    let (levels, arrays) = levels(5, &[50, 25]);
    let own = [Field::doubles(33550, &[10.0, 10.0, 0.0])];
    let layout = file(levels, Arrangement::Cog, &own).unwrap();
    let bytes: Vec<Vec<u8>> = arrays
        .iter()
        .zip(1..)
        .map(|(array, n)| counting(array, n))
        .collect();
    let pairs: Vec<_> = arrays
        .iter()
        .zip(&bytes)
        .map(|(array, bytes)| (array, bytes.as_slice()))
        .collect();
    let file = whole(&layout, &pairs);
    let at = number(&file[8..16]);
    let head = "GDAL_STRUCTURAL_METADATA_SIZE=000077 bytes\nLAYOUT=IFDS_BEFORE_DATA\n";
    assert_eq!(&file[16..][..head.len()], head.as_bytes());
    // The lines are as long as they say, up to the first directory.
    assert_eq!(at, 16 + 43 + 77);
    let (image, next) = directory(&file, at);
    let (overview, end) = directory(&file, next);
    assert_eq!(end, 0);
    assert_eq!(image[&33550].len(), 3);
    assert!(!overview.contains_key(&33550));
    for (fields, (_, bytes)) in [&image, &overview].into_iter().zip(&pairs) {
        assert_eq!(fields[&tag::SAMPLES_PER_PIXEL], [5]);
        assert_eq!(fields[&tag::PLANAR_CONFIGURATION], [2]);
        assert_eq!(fields[&tag::BITS_PER_SAMPLE], [16; 5]);
        assert_eq!(fields[&tag::EXTRA_SAMPLES], [0; 4]);
        let offsets = &fields[&tag::TILE_OFFSETS];
        assert!(offsets.is_sorted());
        let (n, tiles) = (bytes.len() / 5, offsets.len() / 5);
        for band in 0..5 {
            let found = plane_of(&file, fields, &offsets[band * tiles..][..tiles]);
            assert_eq!(found, bytes[band * n..][..n], "band {band}");
        }
    }
    let first = |fields: &BTreeMap<_, Vec<u64>>| fields[&tag::TILE_OFFSETS][0];
    assert!(
        first(&overview) < first(&image),
        "the smallest level is first"
    );
}

#[test]
fn the_header_is_computed_where_it_is_read() {
    // 2^22 tiles: 48 MiB of offsets and sizes.
    let (levels, _) = levels(1, &[1 << 16, 1 << 15]);
    let layout = file(levels, Arrangement::Pyramid, &[]).unwrap();
    assert!(
        layout.memory_bytes() < 16 << 10,
        "{}",
        layout.memory_bytes()
    );
    let tiles = (1_u64 << 12) * 2049;
    assert!(layout.len() > tiles * 1024);
    // The offset of the last tile stands where the directory says.
    let head = read(&layout, &[], 0, 1024);
    let count = |tag: u16| {
        let at = head[24..]
            .chunks_exact(20)
            .position(|entry| entry[..2] == tag.to_le_bytes());
        let entry = &head[24 + 20 * at.unwrap()..][..20];
        (number(&entry[4..12]), number(&entry[12..]))
    };
    let (n, place) = count(tag::TILE_OFFSETS);
    assert_eq!(n, tiles);
    let all: Vec<u64> = [0, 1, n - 1]
        .iter()
        .map(|n| number(&read(&layout, &[], place + 8 * n, 8)))
        .collect();
    assert_eq!(all[1] - all[0], 1024);
    assert_eq!(all[2] - all[0], (tiles - 1) * 1024);
    let odd = read(&layout, &[], place + 8 * 5 + 3, 8);
    let around = read(&layout, &[], place + 8 * 5, 16);
    assert_eq!(odd, around[3..11]);
}

#[test]
fn what_no_file_holds_is_refused() {
    let (mut unequal, _) = levels(2, &[50]);
    unequal.extend(levels(3, &[25]).0);
    assert!(
        file(unequal, Arrangement::Cog, &[]).is_err(),
        "other planes"
    );
    assert!(
        file(Vec::new(), Arrangement::Cog, &[]).is_err(),
        "no levels"
    );
    let (many, _) = levels(65536, &[3]);
    assert!(file(many, Arrangement::Cog, &[]).is_err(), "too many bands");
    let (many, _) = levels(65536, &[3]);
    assert!(file(many, Arrangement::Pyramid, &[]).is_ok());
}

#[test]
fn a_tile_is_a_chunk_where_that_suits() {
    let shape_of = |chunk: [u64; 3], typestr: &str| {
        let mut array = array("t", typestr, &[9, 5000, 5000]);
        array.chunk = Some(chunk.as_slice().into());
        tile_shape(&array, [1, 2])
    };
    let usual = [256, 256];
    for (chunk, tile, why) in [
        ([1, 512, 128], [512, 128], "multiples of 16"),
        ([7, 512, 512], [512, 512], "the depth does not matter"),
        ([1, 500, 512], usual, "no multiple"),
        ([1, 512, 16], [512, 16], "narrow"),
        ([1, 16, 16], [16, 16], "small"),
        ([1, 1 << 13, 1 << 13], usual, "large"),
        ([1, u64::MAX - 15, u64::MAX - 15], usual, "beyond 64 bits"),
    ] {
        assert_eq!(shape_of(chunk, r#""|u1""#), tile, "{why}");
    }
    assert_eq!(shape_of([1, 2048, 2048], r#""<f4""#), [2048, 2048]);
    assert_eq!(shape_of([1, 2048, 2048], r#""<f8""#), usual, "more bytes");
    let array = array("t", r#""|u1""#, &[9, 9]);
    assert_eq!(tile_shape(&array, [0, 1]), usual, "no chunks are known");
}
