//! The bytes of a PNG file whose pixels are not compressed, so that its size is known before them.
//!
//! ```text
//! signature | IHDR | PLTE tRNS | tEXt … | IDAT: 78 01 | 00 ff ff 00 00 65535 bytes | … | Adler-32 | IEND
//!                    of palettes          zlib header   a stored block of deflate        of all pixels
//! ```
//!
//! Sources: PNG, third edition; RFC 1950 (zlib); RFC 1951 (deflate), section 3.2.4. The crate `png` also writes stored
//! blocks, but how it divides them, and so the size of the file, is not a part of its interface.

use super::colours::Palette;

const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";
/// A compression method of 32 KiB windows, without a dictionary, and the check bits.
const ZLIB_HEADER: [u8; 2] = [0x78, 0x01];
const LONGEST_BLOCK: usize = 0xffff;
/// Length, type and checksum around the data of a chunk.
const AROUND_CHUNK: u64 = 12;

/// The pixels of a picture, by their colour type.
#[derive(Debug, Clone)]
pub(super) enum Colours {
    /// A byte each, the number of a colour in the palette. Colour 0 is transparent.
    Palette(Box<Palette>),
    /// Red, green, blue and opacity.
    Rgba,
}

/// A text about a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// A keyword of 1 to 79 letters.
    pub(super) keyword: &'static str,
    /// The text itself, which must not contain NUL.
    pub(super) text: String,
}

/// A picture without its pixels.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) colours: Colours,
}

impl Frame {
    /// Bytes of a pixel.
    pub(super) fn pixel_bytes(&self) -> usize {
        match self.colours {
            Colours::Palette(_) => 1,
            Colours::Rgba => 4,
        }
    }

    /// The number of pixels.
    pub(super) fn n_pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }

    /// Bytes of a row: its filter, which is 0 for none, and its pixels.
    pub(super) fn row_bytes(&self) -> u64 {
        1 + u64::from(self.width) * self.pixel_bytes() as u64
    }

    /// Bytes of all rows.
    pub(super) fn rows_bytes(&self) -> u64 {
        self.row_bytes() * u64::from(self.height)
    }

    /// The length of the file with `texts`.
    pub(super) fn len<'t>(&self, texts: impl IntoIterator<Item = &'t Text>) -> u64 {
        let palette = match self.colours {
            Colours::Palette(_) => AROUND_CHUNK + 3 * 256 + AROUND_CHUNK + 1,
            Colours::Rgba => 0,
        };
        let texts = texts.into_iter();
        let texts = texts.map(|text| AROUND_CHUNK + text.data().len() as u64);
        let rows = self.rows_bytes();
        let blocks = rows.div_ceil(LONGEST_BLOCK as u64);
        let data = ZLIB_HEADER.len() as u64 + 5 * blocks + rows + 4;
        let ends = SIGNATURE.len() as u64 + AROUND_CHUNK + 13 + AROUND_CHUNK;
        ends + palette + texts.sum::<u64>() + AROUND_CHUNK + data
    }

    /// The file. `rows` are as many bytes as [`Frame::rows_bytes`] says.
    pub(super) fn file(&self, texts: &[Text], rows: &[u8]) -> Vec<u8> {
        let mut file = Vec::with_capacity(usize::try_from(self.len(texts)).unwrap_or(0));
        file.extend_from_slice(SIGNATURE);
        let colour_type = match self.colours {
            Colours::Palette(_) => 3,
            Colours::Rgba => 6,
        };
        chunk(&mut file, *b"IHDR", |data| {
            data.extend_from_slice(&self.width.to_be_bytes());
            data.extend_from_slice(&self.height.to_be_bytes());
            // 8 bits a sample, the only methods of compression and filters, and no interlacing.
            data.extend_from_slice(&[8, colour_type, 0, 0, 0]);
        });
        if let Colours::Palette(palette) = &self.colours {
            chunk(&mut file, *b"PLTE", |data| {
                data.extend_from_slice(palette.as_flattened());
            });
            chunk(&mut file, *b"tRNS", |data| data.push(0));
        }
        for text in texts {
            chunk(&mut file, text.chunk_type(), |data| {
                data.extend_from_slice(&text.data());
            });
        }
        chunk(&mut file, *b"IDAT", |data| {
            data.extend_from_slice(&ZLIB_HEADER);
            let mut blocks = rows.chunks(LONGEST_BLOCK).peekable();
            while let Some(block) = blocks.next() {
                data.push(u8::from(blocks.peek().is_none()));
                let len = u16::try_from(block.len()).unwrap_or(u16::MAX);
                data.extend_from_slice(&len.to_le_bytes());
                data.extend_from_slice(&(!len).to_le_bytes());
                data.extend_from_slice(block);
            }
            data.extend_from_slice(&simd_adler32::adler32(&rows).to_be_bytes());
        });
        chunk(&mut file, *b"IEND", |_| {});
        file
    }
}

impl Text {
    /// `tEXt` has Latin-1, of which readers agree on the letters of ASCII; `iTXt` has UTF-8.
    fn chunk_type(&self) -> [u8; 4] {
        if self.text.is_ascii() {
            *b"tEXt"
        } else {
            *b"iTXt"
        }
    }

    fn data(&self) -> Vec<u8> {
        // In `iTXt`: not compressed (two bytes), of no language, without a translated keyword.
        let between: &[u8] = if self.text.is_ascii() {
            &[0]
        } else {
            &[0, 0, 0, 0, 0]
        };
        [self.keyword.as_bytes(), between, self.text.as_bytes()].concat()
    }
}

/// Appends a chunk with the data that `append` appends.
fn chunk(file: &mut Vec<u8>, kind: [u8; 4], append: impl FnOnce(&mut Vec<u8>)) {
    let start = file.len();
    file.extend_from_slice(&[0; 4]);
    file.extend_from_slice(&kind);
    append(file);
    let (length, covered) = file[start..].split_at_mut(4);
    // A picture has at most 1024 rows of some 4 KiB.
    let len = u32::try_from(covered.len() - kind.len()).unwrap_or(u32::MAX);
    length.copy_from_slice(&len.to_be_bytes());
    let checksum = crc32fast::hash(covered);
    file.extend_from_slice(&checksum.to_be_bytes());
}
