//! Writes the headers of both versions, little-endian.
//!
//! | field | `NIfTI`-1 | `NIfTI`-2 |
//! |---|---|---|
//! | `sizeof_hdr` | 0 i32 = 348 | 0 i32 = 540 |
//! | `magic` | 344 `n+1\0` | 4 `n+2\0\r\n\x1a\n` |
//! | `datatype`, `bitpix` | 70, 72 i16 | 12, 14 i16 |
//! | `dim[8]` | 40 i16 | 16 i64 |
//! | `pixdim[8]` | 76 f32 | 104 f64 |
//! | `vox_offset` | 108 f32 | 168 i64 |
//! | `scl_slope`, `scl_inter` | 112, 116 f32 | 176, 184 f64 |
//! | `toffset` | 136 f32 | 216 f64 |
//! | `descrip` | 148, 80 bytes | 240, 80 bytes |
//! | `qform_code`, `sform_code` | 252, 254 i16 | 344, 348 i32 |
//! | `srow_x`, `_y`, `_z` | 280 f32 x 12 | 400 f64 x 12 |
//! | `xyzt_units` | 123 u8 | 500 i32 |

use super::geometry::VoxelGeometry;

/// Offset of the elements.
pub(super) const PAYLOAD: u64 = 4096;
/// Size of the description in bytes, of which the last is NUL.
const DESCRIPTION: usize = 80;

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NiftiVersion {
    /// `NIfTI`-1.
    One,
    /// `NIfTI`-2.
    Two,
}

impl NiftiVersion {
    /// Whether the floats of the version hold these numbers exactly.
    pub(super) fn holds(self, numbers: [f64; 2]) -> bool {
        match self {
            NiftiVersion::One => numbers
                .iter()
                .all(|&number| f64::from(short(number)).to_bits() == number.to_bits()),
            NiftiVersion::Two => true,
        }
    }
}

/// The contents of a header.
#[derive(Debug)]
pub(super) struct NiftiHeader {
    pub(super) datatype: i16,
    pub(super) bitpix: i16,
    /// The lengths of the dimensions, 1 to 7 of them.
    pub(super) lengths: Vec<u64>,
    pub(super) geometry: VoxelGeometry,
    /// Slope and intercept.
    pub(super) scaling: Option<[f64; 2]>,
    pub(super) description: String,
}

impl NiftiHeader {
    /// The bytes of the header, followed by four zeros, which mean that there are no extensions.
    pub(super) fn bytes(&self, version: NiftiVersion) -> Vec<u8> {
        let is_one = version == NiftiVersion::One;
        let mut bytes = vec![0; if is_one { 352 } else { 544 }];
        let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
        // The offset of a field, which depends on the version.
        let at = |one: usize, two: usize| if is_one { one } else { two };
        if is_one {
            put(0, &348_i32.to_le_bytes());
            // `regular`, a field of ANALYZE: all elements are contiguous.
            put(38, b"r");
            put(108, &4096_f32.to_le_bytes());
            put(344, b"n+1\0");
        } else {
            put(0, &540_i32.to_le_bytes());
            put(4, b"n+2\0\r\n\x1a\n");
            put(168, &PAYLOAD.to_le_bytes());
        }
        for (i, length) in self.dim().into_iter().enumerate() {
            match version {
                // The version is chosen so that the lengths fit.
                NiftiVersion::One => {
                    let length = i16::try_from(length).unwrap_or(i16::MAX);
                    put(40 + 2 * i, &length.to_le_bytes());
                }
                NiftiVersion::Two => put(16 + 8 * i, &length.to_le_bytes()),
            }
        }
        put(at(70, 12), &self.datatype.to_le_bytes());
        put(at(72, 14), &self.bitpix.to_le_bytes());
        let description = self.description.chars().take(DESCRIPTION - 1);
        let printable = |character: char| match character {
            ' '..='~' => u8::try_from(character).unwrap_or(b'?'),
            _ => b'?',
        };
        put(
            at(148, 240),
            &description.map(printable).collect::<Vec<_>>(),
        );
        // `sform_code` and `xyzt_units` are small integers: only their lowest byte is not 0.
        put(at(254, 348), &[1]);
        put(at(123, 500), &self.geometry.units.to_le_bytes()[..1]);
        let mut floats = |one: usize, two: usize, numbers: &[f64]| {
            for (i, &number) in numbers.iter().enumerate() {
                match version {
                    NiftiVersion::One => put(one + 4 * i, &short(number).to_le_bytes()),
                    NiftiVersion::Two => put(two + 8 * i, &number.to_le_bytes()),
                }
            }
        };
        floats(76, 104, &self.pixdim());
        floats(112, 176, &self.scaling.unwrap_or([0.0, 0.0]));
        floats(136, 216, &[self.geometry.start]);
        floats(280, 400, &self.srow());
        bytes
    }

    /// The number of dimensions, then their lengths.
    fn dim(&self) -> [u64; 8] {
        let mut dim = [1; 8];
        dim[0] = self.lengths.len() as u64;
        for (to, length) in dim.iter_mut().skip(1).zip(&self.lengths) {
            *to = *length;
        }
        dim
    }

    /// 1, which means a right-handed coordinate system, then the spacings.
    fn pixdim(&self) -> [f64; 8] {
        let mut pixdim = [1.0; 8];
        pixdim[1..].copy_from_slice(&self.geometry.spacings);
        pixdim
    }

    /// The rows of the matrix that maps indices to positions.
    fn srow(&self) -> [f64; 12] {
        let mut rows = [0.0; 12];
        for i in 0..3 {
            rows[5 * i] = self.geometry.spacings[i];
            rows[4 * i + 3] = self.geometry.origin[i];
        }
        rows
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the floats of NIfTI-1 are short; what must be exact is checked"
)]
fn short(number: f64) -> f32 {
    number as f32
}
