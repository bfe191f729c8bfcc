//! Assigns the axes of an array to the dimensions of `NIfTI`.
//!
//! Dimensions 1 to 3 are space, 4 is time, and 5 holds several values of one voxel. Elements are
//! not transposed, so only axes of length 1 can change places. If the order of the array does not
//! fit, its axes take consecutive dimensions, and the description in the header says so.
//!
//! | axes of the array, slowest first | dimensions 1, 2, … |
//! |---|---|
//! | `y x` | `x y 1` |
//! | `t y x` | `x y 1 t` |
//! | `c z y x` | `x y z 1 c` |
//! | `c t z y x` | `x y z t c` |
//! | `t c z y x`, `t` or `c` of length 1 | `x y z t c` |
//! | `t c z y x` | `x y z c t`, and a remark |
//! | `y x c` | `c x y`, and a remark |

use super::super::axes::{Axis, AxisKind};
use super::super::{Array, FileFormat};
use crate::error::FormatError;

/// The number of dimensions in `NIfTI`.
const MOST: usize = 7;

/// The axis of each dimension, and the lengths of the dimensions.
#[derive(Debug)]
pub(super) struct NiftiDims {
    assigned: [Option<usize>; MOST],
    /// The lengths of the dimensions up to the last one in use, 1 to 7 of them.
    pub(super) lengths: Vec<u64>,
}

impl NiftiDims {
    /// Assigns the axes of `array`.
    pub(super) fn of(array: &Array) -> Result<NiftiDims, FormatError> {
        let refused = |name: String| Err(FileFormat::Nii.refused("shape", name));
        if array.rank() == 0 || array.shape.contains(&0) {
            return refused("an array without a dimension or without elements".to_owned());
        }
        // The lists below are sorted fastest first.
        let is_one = |axis: usize| array.shape.get(axis) == Some(&1);
        let mut kept = Vec::new();
        let mut moved = Vec::new();
        for axis in (0..array.rank()).rev() {
            let kind = array.kind(axis);
            let is_late = kept.iter().any(|&(_, kind)| is_named(kind));
            if is_one(axis) && (is_named(kind) || kind == AxisKind::Space && is_late) {
                moved.push((axis, kind));
            } else {
                kept.push((axis, kind));
            }
        }
        while kept.len() > MOST {
            match kept.iter().rposition(|&(axis, _)| is_one(axis)) {
                Some(extra) => kept.remove(extra),
                None => return Err(FileFormat::Nii.too_many_dimensions(array)),
            };
        }
        let mut assigned = spread(&kept).unwrap_or_else(|| in_order(&kept));
        let last = assigned.iter().rposition(Option::is_some);
        // Moved axes have the length 1, but they may have a spacing.
        for (axis, kind) in moved {
            let own = match kind {
                AxisKind::Time => 3,
                AxisKind::Channel => 4,
                AxisKind::Space | AxisKind::Other => 2,
            };
            if assigned[own].is_none() {
                assigned[own] = Some(axis);
            }
        }
        let n = match last.map_or(1, |last| last + 1) {
            2 => 3,
            n => n,
        };
        let length = |slot: &Option<usize>| {
            slot.and_then(|axis| array.shape.get(axis).copied())
                .unwrap_or(1)
        };
        Ok(NiftiDims {
            lengths: assigned.iter().take(n).map(length).collect(),
            assigned,
        })
    }

    /// The axis of `array` that is dimension `index + 1`.
    pub(super) fn axis<'a>(&self, array: &'a Array, index: usize) -> Option<&'a Axis> {
        array.axes.get((*self.assigned.get(index)?)?)
    }

    /// A remark that names the dimensions with another meaning than `NIfTI` gives them.
    pub(super) fn remark(&self, array: &Array) -> Option<String> {
        let mut remarks = Vec::new();
        for index in 0..MOST {
            let Some(axis) = self.axis(array, index) else {
                continue;
            };
            let is_right = match axis.kind {
                AxisKind::Space => index < 3,
                AxisKind::Time => index == 3,
                AxisKind::Channel => index == 4,
                AxisKind::Other => true,
            };
            if !is_right {
                let name = axis.name.as_deref().unwrap_or(match axis.kind {
                    AxisKind::Time => "time",
                    AxisKind::Channel => "channel",
                    AxisKind::Space | AxisKind::Other => "space",
                });
                remarks.push(format!("dim{}={name}", index + 1));
            }
        }
        (!remarks.is_empty()).then(|| remarks.join(" "))
    }
}

/// Whether `NIfTI` has a separate dimension for axes of this kind.
fn is_named(kind: AxisKind) -> bool {
    matches!(kind, AxisKind::Time | AxisKind::Channel)
}

/// Assigns each axis to the dimension that is meant for it, as far as their order allows; `None` if
/// there are not enough dimensions.
fn spread(axes: &[(usize, AxisKind)]) -> Option<[Option<usize>; MOST]> {
    let mut assigned = [None; MOST];
    let mut next = 0;
    for (i, &(axis, kind)) in axes.iter().enumerate() {
        let slower = axes.get(i + 1..).unwrap_or_default();
        let is_before = |of| slower.iter().any(|&(_, kind)| kind == of);
        let own = match kind {
            _ if is_before(AxisKind::Space) => 0,
            AxisKind::Time => 3,
            AxisKind::Channel if is_before(AxisKind::Time) => 3,
            AxisKind::Channel => 4,
            AxisKind::Space | AxisKind::Other => 0,
        };
        let slot = next.max(own);
        *assigned.get_mut(slot)? = Some(axis);
        next = slot + 1;
    }
    Some(assigned)
}

/// Assigns the axes to consecutive dimensions; there are at most [`MOST`].
fn in_order(axes: &[(usize, AxisKind)]) -> [Option<usize>; MOST] {
    let mut assigned = [None; MOST];
    for (slot, &(axis, _)) in assigned.iter_mut().zip(axes) {
        *slot = Some(axis);
    }
    assigned
}
