//! Previews of small arrays, whose pixels are decoded again and compared with those that the rules give.

use std::io::Read;

use super::*;
use crate::grid::Dims;
use crate::plain::AxisKind;
use crate::plain::testing::{array, attributes};

/// A PNG file as a reader has it.
struct Picture {
    width: usize,
    bytes_of_pixel: usize,
    palette: Vec<[u8; 3]>,
    pixels: Vec<u8>,
    texts: Vec<(String, String)>,
}

impl Picture {
    fn pixel(&self, y: usize, x: usize) -> &[u8] {
        let at = (y * self.width + x) * self.bytes_of_pixel;
        &self.pixels[at..at + self.bytes_of_pixel]
    }

    fn text(&self, keyword: &str) -> &str {
        let text = self.texts.iter().find(|(known, _)| known == keyword);
        text.map_or("", |(_, text)| text.trim_end())
    }
}

fn number(bytes: &[u8]) -> usize {
    u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize
}

/// Reads a file, checks its sums, and inflates its pixels.
fn decoded(file: &[u8]) -> Picture {
    assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
    let mut picture = Picture {
        width: 0,
        bytes_of_pixel: 0,
        palette: Vec::new(),
        pixels: Vec::new(),
        texts: Vec::new(),
    };
    let (mut rest, mut data) = (&file[8..], Vec::new());
    let mut kinds = Vec::new();
    while !rest.is_empty() {
        let len = number(rest);
        let (kind, content) = (&rest[4..8], &rest[8..8 + len]);
        let sum = crc32fast::hash(&rest[4..8 + len]) as usize;
        assert_eq!(number(&rest[8 + len..]), sum);
        match kind {
            b"IHDR" => {
                picture.width = number(content);
                picture.bytes_of_pixel = if content[9] == 3 { 1 } else { 4 };
                assert_eq!((content[8], &content[10..]), (8, &[0, 0, 0][..]));
            }
            b"PLTE" => picture.palette = content.as_chunks::<3>().0.to_vec(),
            b"tRNS" => assert_eq!(content, [0]),
            b"tEXt" | b"iTXt" => {
                let text = String::from_utf8(content.to_vec()).unwrap();
                let (keyword, text) = text.split_once('\0').unwrap();
                let text = text.trim_start_matches('\0');
                picture.texts.push((keyword.to_owned(), text.to_owned()));
            }
            b"IDAT" => data.extend_from_slice(content),
            _ => assert_eq!((kind, len), (&b"IEND"[..], 0)),
        }
        kinds.push(kind);
        rest = &rest[12 + len..];
    }
    assert_eq!(kinds.last(), Some(&&b"IEND"[..]));
    let mut rows = Vec::new();
    let mut inflated = flate2::read::ZlibDecoder::new(data.as_slice());
    inflated.read_to_end(&mut rows).unwrap();
    for row in rows.chunks(1 + picture.width * picture.bytes_of_pixel) {
        assert_eq!(row[0], 0, "no filter");
        picture.pixels.extend_from_slice(&row[1..]);
    }
    picture
}

/// The bytes of the samples of `array`, whose elements in C order are `elements`.
fn sampled<const N: usize>(preview: &Preview, array: &Array, elements: &[[u8; N]]) -> Vec<u8> {
    let mut places: Vec<u64> = vec![0];
    for (samples, &length) in preview.samples().iter().zip(&array.shape) {
        let positions = 0..samples.count;
        let positions: Vec<u64> = positions.map(|number| samples.position(number)).collect();
        assert!(positions.iter().all(|&at| at < length));
        let next = places
            .iter()
            .flat_map(|&place| positions.iter().map(move |at| place * length + at));
        places = next.collect();
    }
    let element = |place: u64| elements[usize::try_from(place).unwrap()];
    places.into_iter().flat_map(element).collect()
}

fn painted_part<const N: usize>(
    array: &Array,
    selected: &Selected,
    elements: &[[u8; N]],
) -> Picture {
    let preview = Preview::of(array, selected, None).unwrap();
    let file = preview.paint(&sampled(&preview, array, elements));
    assert_eq!(file.len() as u64, preview.len());
    decoded(&file)
}

fn painted<const N: usize>(array: &Array, elements: &[[u8; N]]) -> Picture {
    painted_part(array, &Selected::whole(&array.shape), elements)
}

fn channel(array: &mut Array, axis: usize, channels: Vec<Channel>) {
    array.axes[axis].kind = AxisKind::Channel;
    array.axes[axis].channels = channels;
}

#[test]
fn one_channel_is_shown_in_viridis_between_the_percentiles() {
    let mut array = array("heat", r#""<i2""#, &[3, 10, 20]);
    array.attributes = attributes(r#"{"_FillValue": -5}"#);
    array.dimension_names[0] = Some("time".to_owned());
    // The middle plane counts from 0 to 199; one element of it is missing.
    let mut values: Vec<i16> = (-200..400).collect();
    values[200 + 37] = -5;
    let elements: Vec<[u8; 2]> = values.iter().map(|value| value.to_le_bytes()).collect();
    let picture = painted(&array, &elements);
    assert_eq!(picture.text("Description"), "time=1, 1=0:10, 2=0:20");
    assert_eq!(picture.text("Title"), "heat");
    assert_eq!(picture.text("Range"), "3 to 196");
    assert_eq!(picture.palette.len(), 256);
    for (at, &value) in values[200..400].iter().enumerate() {
        let part = (f64::from(value) - 3.0) / 193.0;
        let expected = 1.0 + (part.clamp(0.0, 1.0) * 254.0).round();
        let expected = if value == -5 { 0.0 } else { expected };
        let found = f64::from(picture.pixel(at / 20, at % 20)[0]);
        assert!((found - expected).abs() < 0.5, "{value}: {found}");
    }
}

#[test]
fn large_planes_are_sampled() {
    let shape = [2, 2500, 1300];
    let array = array("big", r#""<u2""#, &shape);
    let elements: Vec<[u8; 2]> = (0..shape.iter().product())
        .map(|at: u64| u16::try_from(at % 65521).unwrap().to_le_bytes())
        .collect();
    let picture = painted(&array, &elements);
    assert_eq!((picture.width, picture.pixels.len()), (434, 434 * 834));
    assert_eq!(picture.text("Description"), "0=1, 1=0:2500:3, 2=0:1300:3");
}

#[test]
fn channels_add_their_colours_between_their_windows() {
    let mut array = array("cells", r#""<f4""#, &[1, 3, 2, 2]);
    let described = |color, window| Channel {
        label: None,
        color,
        window,
    };
    let channels = vec![
        described(Some([0, 0, 255]), Some([0.0, 10.0])),
        described(Some([0, 255, 0]), Some([0.0, 100.0])),
        Channel::default(),
    ];
    channel(&mut array, 1, channels);
    let nan = f32::NAN;
    let values = [
        [0.0, 5.0, 20.0, nan],
        [0.0, 100.0, 20.0, nan],
        [7.0, 7.0, nan, nan],
    ];
    let elements: Vec<[u8; 4]> = values
        .as_flattened()
        .iter()
        .map(|it| it.to_le_bytes())
        .collect();
    let picture = painted(&array, &elements);
    // All values of the third channel are equal, and are shown in the middle of its colour, the third of ImageJ.
    assert_eq!(picture.pixel(0, 0), [0, 0, 128, 255]);
    assert_eq!(picture.pixel(0, 1), [0, 255, 255, 255]);
    assert_eq!(picture.pixel(1, 0), [0, 51, 255, 255]);
    assert_eq!(picture.pixel(1, 1), [0, 0, 0, 0]);
    assert_eq!(picture.text("Range"), "0 to 10; 0 to 100; 7 to 7");
}

#[test]
fn a_single_channel_has_its_own_colour() {
    let mut array = array("dapi", r#""|u1""#, &[1, 1, 3]);
    let blue = Channel {
        color: Some([0, 0, 255]),
        window: Some([0.0, 200.0]),
        label: None,
    };
    channel(&mut array, 0, vec![blue]);
    let picture = painted(&array, &[[0], [100], [255]]);
    let colours = [0, 1, 2].map(|x| picture.palette[usize::from(picture.pixel(0, x)[0])]);
    assert_eq!(colours, [[0, 0, 1], [0, 0, 128], [0, 0, 255]]);
}

#[test]
fn labels_have_colours_of_their_own() {
    let array = array("cells", r#""<u2""#, &[1, 5]);
    let elements = [0_u16, 1, 2, 256, 0].map(u16::to_le_bytes);
    let preview = |labels| Preview::of(&array, &Selected::whole(&[1, 5]), labels).unwrap();
    let colours = LabelColours::default();
    let labels = preview(Some(&colours));
    let file = labels.paint(elements.as_flattened());
    assert_eq!(file.len() as u64, labels.len());
    let picture = decoded(&file);
    assert_eq!(picture.pixels, [0, 1, 2, 1, 0]);
    assert_eq!(picture.text("Range"), "");
    assert_ne!(preview(None).len(), labels.len());
}

#[test]
fn coloured_pixels_stay_as_they_are() {
    let picture_of = |typestr: &str, n: u64, elements: &[[u8; 2]]| {
        let mut array = array("rgb", typestr, &[1, 2, n]);
        channel(&mut array, 2, Vec::new());
        painted(&array, elements)
    };
    let all = [0_u16, 65535, 32768, 257, 514, 65535].map(u16::to_le_bytes);
    let picture = picture_of(r#""<u2""#, 3, &all);
    assert_eq!(picture.pixel(0, 0), [0, 255, 128, 255]);
    assert_eq!(picture.pixel(0, 1), [1, 2, 255, 255]);
    assert_eq!(picture.text("Range"), "");
    let opaque = [1_u16, 2, 3, 65535, 257, 257, 257, 0].map(u16::to_le_bytes);
    let picture = picture_of(r#""<u2""#, 4, &opaque);
    assert_eq!(picture.pixel(0, 0), [0, 0, 0, 255]);
    assert_eq!(picture.pixel(0, 1), [1, 1, 1, 0]);
}

#[test]
fn parts_are_named_by_the_indices_of_the_whole_array() {
    let array = array("a", r#""|u1""#, &[4, 6, 8]);
    let elements: Vec<[u8; 1]> = (0..192).map(|it| [it]).collect();
    let selected = Selected {
        start: Dims::from_slice(&[3, 2, 0]),
        shape: Dims::from_slice(&[1, 4, 8]),
        kept: vec![1, 2],
    };
    let picture = painted_part(&array, &selected, &elements);
    assert_eq!(picture.text("Description"), "0=3, 1=2:6, 2=0:8");
    assert_eq!(picture.text("Range"), "160 to 191");
}

#[test]
fn axes_in_another_order_are_turned_upright() {
    let mut array = array("a", r#""|b1""#, &[2, 3]);
    array.dimension_names = ["x", "y"].map(|name| Some(name.to_owned())).into();
    let picture = painted(&array, &[[1], [0], [0], [0], [0], [2]]);
    assert_eq!(picture.pixels, [255, 1, 1, 1, 1, 255]);
    assert_eq!(picture.text("Range"), "0 to 1");
}

#[test]
fn names_of_any_letters_are_held() {
    let mut array = array("a\nb", r#""<f8""#, &[1, 1]);
    array.dimension_names[0] = Some("höhe".to_owned());
    let picture = painted(&array, &[f64::MIN_POSITIVE.to_le_bytes()]);
    assert_eq!(picture.text("Title"), "a b");
    assert_eq!(picture.text("Description"), "höhe=0, 1=0");
    let least = "2.2250738585072014e-308";
    assert_eq!(picture.text("Range"), format!("{least} to {least}"));
    array.name = "é".repeat(2000);
    let picture = painted(&array, &[f64::NAN.to_le_bytes()]);
    assert_eq!(picture.text("Title"), "é".repeat(LONGEST_TEXT));
    assert_eq!((picture.pixels, picture.texts.len()), (vec![0], 4));
}

#[test]
fn the_best_level_has_all_its_elements_in_the_picture() {
    let of = |side: u64| {
        let shape = [side / 2, side];
        let array = array("a", r#""|u1""#, &shape);
        Preview::of(&array, &Selected::whole(&shape), None).unwrap()
    };
    let mut sides = vec![300, 5000, 100, 700, 1300, 512, 2500, 1024];
    sides.sort_by_key(|side| of(*side).rank());
    assert_eq!(sides, [1024, 700, 1300, 2500, 5000, 512, 300, 100]);
    assert!(of(1300).is_coarser_than(&of(2500)) && !of(2500).is_coarser_than(&of(2500)));
    let mut level = of(100);
    let len = level.len();
    level.name_level("s\t2");
    assert_eq!(level.len(), len + "level s 2: ".len() as u64);
}

#[test]
fn what_has_no_picture_is_refused() {
    for (typestr, shape) in [
        (r#""<c8""#, &[4, 4][..]),
        (r#""<M8[s]""#, &[4, 4]),
        (r#""|S3""#, &[4, 4]),
        (r#""<f4""#, &[4]),
        (r#""<f4""#, &[4, 0]),
    ] {
        let array = array("a", typestr, shape);
        let refused = Preview::of(&array, &Selected::whole(shape), None);
        assert!(refused.is_err(), "{typestr} {shape:?}");
    }
}
