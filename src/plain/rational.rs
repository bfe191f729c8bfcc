//! Numbers as fractions of 32-bit integers, the rationals of TIFF.

/// The simplest fraction that equals `value` to 15 digits, or else the best one with 31-bit terms,
/// by continued fractions. `None` if no fraction is near.
pub(super) fn rational(value: f64) -> Option<(u32, u32)> {
    const MOST: f64 = i32::MAX as f64;
    let (mut before, mut now) = ((0.0, 1.0), (1.0, 0.0));
    let mut rest = value;
    for _ in 0..64 {
        let whole = rest.floor();
        let next: (f64, f64) = (whole * now.0 + before.0, whole * now.1 + before.1);
        if !(0.0..=MOST).contains(&next.0) || !(0.0..=MOST).contains(&next.1) {
            break;
        }
        (before, now) = (now, next);
        if (now.0 / now.1 / value - 1.0).abs() < 1e-15 || rest <= whole {
            break;
        }
        rest = 1.0 / (rest - whole);
    }
    let is_near = now.0 > 0.0 && now.1 > 0.0 && (now.0 / now.1 / value - 1.0).abs() < 1e-9;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole numbers of 31 bits"
    )]
    let fraction = (now.0 as u32, now.1 as u32);
    is_near.then_some(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_the_simplest() {
        assert_eq!(rational(1.0 / 0.36), Some((25, 9)));
        assert_eq!(rational(1.0 / 0.1625), Some((80, 13)));
        assert_eq!(rational(2.0), Some((2, 1)));
        let (numerator, denominator) = rational(std::f64::consts::PI).unwrap();
        let value = f64::from(numerator) / f64::from(denominator);
        assert!((value - std::f64::consts::PI).abs() < 1e-15);
        for impossible in [0.0, 1e10, 1e-10, f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(rational(impossible), None, "{impossible}");
        }
    }
}
