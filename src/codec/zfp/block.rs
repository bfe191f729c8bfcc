//! Codes one block of 4, 16, 64 or 256 numbers.
//!
//! ```text
//! floats --scaled by the largest exponent--> integers --transform--> coefficients
//!        --negabinary, in order--> bit planes
//! ```
//!
//! Integers begin at the second step; their arithmetic wraps round, as in zfp. In the reversible mode another transform
//! is used, which loses nothing, and floats that the scaling would change are taken as integers by
//! their bits.

use super::bits::{BitReader, BitWriter};
use super::order::order;
use super::parameters::Parameters;
use super::planes::Planes;
use super::stored::Stored;
use super::{FormatError, NAME};

/// A type of numbers that zfp has blocks of.
pub(super) trait Value: Copy + Default {
    /// Reads a block.
    fn decode<const N: usize>(parameters: Parameters, reader: &mut BitReader<'_>) -> [Self; N];

    /// Writes a block.
    ///
    /// # Errors
    /// A number that this mode has no bits for.
    fn encode<const N: usize>(
        parameters: Parameters,
        block: &[Self; N],
        writer: &mut BitWriter,
    ) -> Result<(), FormatError>;

    /// Writes numbers as elements of the array.
    fn store(stored: Stored, numbers: &[Self], out: &mut [u8]);

    /// Reads numbers from elements of the array.
    fn load(stored: Stored, elements: &[u8], numbers: &mut [Self]);
}

/// An integer of 32 or 64 bits.
trait Integer: Value {
    const BITS: u32;
    /// Bits that store a number of planes in the reversible mode.
    const PRECISION_BITS: u32;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Half of it, rounded down.
    fn half(self) -> Self;
    fn to_negabinary(self) -> u64;
    fn of_negabinary(coefficient: u64) -> Self;
}

/// A floating point number of 32 or 64 bits.
trait Float: Value + PartialOrd {
    type Integer: Integer;
    const EXPONENT_BITS: u32;
    const BIAS: i32 = (1 << (Self::EXPONENT_BITS - 1)) - 1;
    /// The power of two by which a number below one becomes an integer.
    const SCALE: i32;

    fn magnitude(self) -> Self;
    fn is_finite(self) -> bool;
    /// The least e for which the number, which is not negative, is below two to the power of e. Subnormal numbers have
    /// the exponent of the least normal number, and zero has `-BIAS`.
    fn exponent(self) -> i32;
    /// Two to the power of `exponent`, rounded to zero or infinity where there is no such number.
    fn power_of_two(exponent: i32) -> Self;
    /// The number times `scale`, cut to a whole number. If no integer is that large, the least integer.
    fn scaled(self, scale: Self) -> Self::Integer;
    fn of_scaled(integer: Self::Integer, scale: Self) -> Self;
    fn is_same(self, other: Self) -> bool;
    /// The bits as an integer, so that greater numbers have greater integers.
    fn to_ordered(self) -> Self::Integer;
    fn of_ordered(integer: Self::Integer) -> Self;
}

/// The number of dimensions of a block of `N` numbers.
const fn dimensions<const N: usize>() -> u32 {
    N.trailing_zeros() / 2
}

/// Applies `step` to each line of four numbers along the axis of `stride`.
#[inline]
fn each_line<T, const N: usize>(block: &mut [T; N], stride: usize, step: impl Fn([&mut T; 4])) {
    for lines in block.chunks_exact_mut(4 * stride) {
        let (low, high) = lines.split_at_mut(2 * stride);
        let ((x, y), (z, w)) = (low.split_at_mut(stride), high.split_at_mut(stride));
        for (((x, y), z), w) in x.iter_mut().zip(y).zip(z).zip(w) {
            step([x, y, z, w]);
        }
    }
}

#[inline]
fn transform<T: Integer, const N: usize>(parameters: Parameters, block: &mut [T; N]) {
    for axis in 0..dimensions::<N>() {
        let stride = 1 << (2 * axis);
        if parameters.is_reversible() {
            each_line(block, stride, |[x, y, z, w]| {
                *w = w.minus(*z);
                *z = z.minus(*y);
                *y = y.minus(*x);
                *w = w.minus(*z);
                *z = z.minus(*y);
                *w = w.minus(*z);
            });
        } else {
            each_line(block, stride, |[x, y, z, w]| {
                *x = x.plus(*w).half();
                *w = w.minus(*x);
                *z = z.plus(*y).half();
                *y = y.minus(*z);
                *x = x.plus(*z).half();
                *z = z.minus(*x);
                *w = w.plus(*y).half();
                *y = y.minus(*w);
                *w = w.plus(y.half());
                *y = y.minus(w.half());
            });
        }
    }
}

#[inline]
fn untransform<T: Integer, const N: usize>(parameters: Parameters, block: &mut [T; N]) {
    for axis in (0..dimensions::<N>()).rev() {
        let stride = 1 << (2 * axis);
        if parameters.is_reversible() {
            each_line(block, stride, |[x, y, z, w]| {
                *w = w.plus(*z);
                *z = z.plus(*y);
                *w = w.plus(*z);
                *y = y.plus(*x);
                *z = z.plus(*y);
                *w = w.plus(*z);
            });
        } else {
            each_line(block, stride, |[x, y, z, w]| {
                *y = y.plus(w.half());
                *w = w.minus(y.half());
                *y = y.plus(*w);
                *w = w.minus(y.minus(*w));
                *z = z.plus(*x);
                *x = x.minus(z.minus(*x));
                *y = y.plus(*z);
                *z = z.minus(y.minus(*z));
                *w = w.plus(*x);
                *x = x.minus(w.minus(*x));
            });
        }
    }
}

/// Reads a block of integers, of which `read` bits were read before.
#[inline]
fn decode_integers<T: Integer, const N: usize>(
    parameters: Parameters,
    precision: u32,
    mut read: u32,
    reader: &mut BitReader<'_>,
) -> [T; N] {
    let mut most = precision;
    if parameters.is_reversible() {
        read += T::PRECISION_BITS;
        most = u32::try_from(reader.bits(T::PRECISION_BITS) + 1).unwrap_or(u32::MAX);
    }
    let planes = Planes {
        all: T::BITS,
        most,
        most_bits: parameters.max_bits.saturating_sub(read),
    };
    let mut coefficients = [0; N];
    read += planes.decode(reader, &mut coefficients);
    reader.skip(parameters.min_bits.saturating_sub(read));
    let mut block = [T::default(); N];
    for (coefficient, &place) in coefficients.iter().zip(order::<N>()) {
        if let Some(number) = block.get_mut(usize::from(place)) {
            *number = T::of_negabinary(*coefficient);
        }
    }
    untransform(parameters, &mut block);
    block
}

/// Writes a block of integers, of which `written` bits were written before.
#[inline]
fn encode_integers<T: Integer, const N: usize>(
    parameters: Parameters,
    precision: u32,
    mut written: u32,
    mut block: [T; N],
    writer: &mut BitWriter,
) {
    transform(parameters, &mut block);
    let mut coefficients = [0; N];
    for (coefficient, &place) in coefficients.iter_mut().zip(order::<N>()) {
        let number = block.get(usize::from(place)).copied();
        *coefficient = number.map_or(0, T::to_negabinary);
    }
    let mut most = precision;
    if parameters.is_reversible() {
        // The planes below the lowest one bit are not stored.
        let any = coefficients.iter().fold(0, |any, bits| any | bits);
        let needed = T::BITS - any.trailing_zeros().min(T::BITS);
        most = needed.min(precision).max(1);
        writer.bits(u64::from(most) - 1, T::PRECISION_BITS);
        written += T::PRECISION_BITS;
    }
    let planes = Planes {
        all: T::BITS,
        most,
        most_bits: parameters.max_bits.saturating_sub(written),
    };
    written += planes.encode(coefficients, writer);
    writer.zeros(parameters.min_bits.saturating_sub(written));
}

/// The number of bit planes of a block of floats whose largest exponent is `exponent`.
fn precision<const N: usize>(parameters: Parameters, exponent: i32) -> u32 {
    let growth = 2 * dimensions::<N>().cast_signed() + 2;
    let planes =
        (i64::from(exponent) - i64::from(parameters.min_exponent) + i64::from(growth)).max(0);
    parameters
        .max_precision
        .min(u32::try_from(planes).unwrap_or(u32::MAX))
}

#[inline]
fn decode_floats<T: Float, const N: usize>(
    parameters: Parameters,
    reader: &mut BitReader<'_>,
) -> [T; N] {
    let mut read = 1;
    if !reader.bit() {
        reader.skip(parameters.min_bits.saturating_sub(read));
        return [T::default(); N];
    }
    if parameters.is_reversible() {
        read += 1;
        if reader.bit() {
            let block: [T::Integer; N] = decode_integers(parameters, 0, read, reader);
            return block.map(T::of_ordered);
        }
    }
    read += T::EXPONENT_BITS;
    let exponent = i32::try_from(reader.bits(T::EXPONENT_BITS)).unwrap_or(0) - T::BIAS;
    let precision = precision::<N>(parameters, exponent);
    let block: [T::Integer; N] = decode_integers(parameters, precision, read, reader);
    unscale(&block, exponent)
}

/// The floats that integers stand for in a block whose largest exponent is `exponent`.
#[inline]
fn unscale<T: Float, const N: usize>(block: &[T::Integer; N], exponent: i32) -> [T; N] {
    // The exponent of an array of zeros; numbers times its power could be negative zeros.
    if exponent == -T::BIAS {
        return [T::default(); N];
    }
    let scale = T::power_of_two(exponent - T::SCALE);
    block.map(|integer| T::of_scaled(integer, scale))
}

#[inline]
fn encode_floats<T: Float, const N: usize>(
    parameters: Parameters,
    block: &[T; N],
    writer: &mut BitWriter,
) -> Result<(), FormatError> {
    let largest = block.iter().fold(T::default(), |largest, number| {
        let magnitude = number.magnitude();
        if largest < magnitude {
            magnitude
        } else {
            largest
        }
    });
    let exponent = largest.exponent();
    let biased = u64::try_from(exponent + T::BIAS).unwrap_or(0);
    let scale = T::power_of_two(T::SCALE - exponent);
    let scaled = || block.map(|number| number.scaled(scale));
    if parameters.is_reversible() {
        let mut integers = [T::Integer::default(); N];
        if biased > 0 {
            integers = scaled();
        }
        let again: [T; N] = unscale(&integers, exponent);
        let is_same = block
            .iter()
            .zip(again)
            .all(|(one, other)| one.is_same(other));
        if is_same && biased == 0 {
            writer.bit(false);
            return Ok(());
        }
        let mut written = 2;
        if is_same {
            writer.bits(0b01, 2);
            writer.bits(biased, T::EXPONENT_BITS);
            written += T::EXPONENT_BITS;
        } else {
            writer.bits(0b11, 2);
            integers = block.map(T::to_ordered);
        }
        encode_integers(
            parameters,
            parameters.max_precision,
            written,
            integers,
            writer,
        );
        return Ok(());
    }
    if !block.iter().all(|number| number.is_finite()) {
        let problem = "only the reversible mode stores infinities and NaN";
        return Err(FormatError::encoded(NAME, problem));
    }
    let precision = precision::<N>(parameters, exponent);
    if precision == 0 || biased == 0 {
        writer.bit(false);
        writer.zeros(parameters.min_bits.saturating_sub(1));
        return Ok(());
    }
    writer.bits(2 * biased + 1, 1 + T::EXPONENT_BITS);
    encode_integers(
        parameters,
        precision,
        1 + T::EXPONENT_BITS,
        scaled(),
        writer,
    );
    Ok(())
}

macro_rules! values {
    ($integer:ident, $bits:ident, $precision_bits:literal, $float:ident, $exponent_bits:literal) => {
        impl Integer for $integer {
            const BITS: u32 = $bits::BITS;
            const PRECISION_BITS: u32 = $precision_bits;

            #[inline]
            fn plus(self, other: $integer) -> $integer {
                self.wrapping_add(other)
            }

            #[inline]
            fn minus(self, other: $integer) -> $integer {
                self.wrapping_sub(other)
            }

            #[inline]
            fn half(self) -> $integer {
                self >> 1
            }

            #[inline]
            fn to_negabinary(self) -> u64 {
                // The digits that count negative.
                const ODD: $bits = $bits::MAX / 3 * 2;
                u64::from(self.cast_unsigned().wrapping_add(ODD) ^ ODD)
            }

            #[inline]
            #[allow(
                clippy::cast_possible_truncation,
                reason = "a coefficient has no more bits than the integer"
            )]
            fn of_negabinary(coefficient: u64) -> $integer {
                const ODD: $bits = $bits::MAX / 3 * 2;
                (coefficient as $bits ^ ODD).wrapping_sub(ODD).cast_signed()
            }
        }

        impl Value for $integer {
            fn decode<const N: usize>(
                parameters: Parameters,
                reader: &mut BitReader<'_>,
            ) -> [$integer; N] {
                decode_integers(parameters, parameters.max_precision, 0, reader)
            }

            fn encode<const N: usize>(
                parameters: Parameters,
                block: &[$integer; N],
                writer: &mut BitWriter,
            ) -> Result<(), FormatError> {
                encode_integers(parameters, parameters.max_precision, 0, *block, writer);
                Ok(())
            }

            #[inline]
            fn store(stored: Stored, numbers: &[$integer], out: &mut [u8]) {
                if stored == Stored::AsIs {
                    for (number, out) in numbers.iter().zip(out.as_chunks_mut().0) {
                        *out = number.to_le_bytes();
                    }
                    return;
                }
                let size = (out.len() / numbers.len().max(1)).max(1);
                for (number, out) in numbers.iter().zip(out.chunks_exact_mut(size)) {
                    super::copy_start(&stored.demoted((*number).into()).to_le_bytes(), out);
                }
            }

            #[inline]
            fn load(stored: Stored, elements: &[u8], numbers: &mut [$integer]) {
                if stored == Stored::AsIs {
                    for (number, element) in numbers.iter_mut().zip(elements.as_chunks().0) {
                        *number = $integer::from_le_bytes(*element);
                    }
                    return;
                }
                let size = (elements.len() / numbers.len().max(1)).max(1);
                for (number, element) in numbers.iter_mut().zip(elements.chunks_exact(size)) {
                    *number = $integer::try_from(stored.promoted(element)).unwrap_or($integer::MAX);
                }
            }
        }

        impl Float for $float {
            type Integer = $integer;
            const EXPONENT_BITS: u32 = $exponent_bits;
            const SCALE: i32 = $bits::BITS.cast_signed() - 2;

            fn magnitude(self) -> $float {
                self.abs()
            }

            fn is_finite(self) -> bool {
                $float::is_finite(self)
            }

            fn exponent(self) -> i32 {
                let biased = self.to_bits() >> ($float::MANTISSA_DIGITS - 1);
                match i32::try_from(biased).unwrap_or(0) {
                    // The C library says so of infinity, which no scaling stores.
                    _ if self.is_infinite() => 0,
                    0 if self == 0.0 => -<$float as Float>::BIAS,
                    biased => biased - <$float as Float>::BIAS + 1,
                }
            }

            fn power_of_two(exponent: i32) -> $float {
                let digits = $float::MANTISSA_DIGITS - 1;
                let biased = exponent + <$float as Float>::BIAS;
                if biased > 2 * <$float as Float>::BIAS {
                    return $float::INFINITY;
                }
                let bits: $bits = match $bits::try_from(biased) {
                    Ok(biased @ 1..) => biased << digits,
                    // A subnormal number has one bit of the mantissa.
                    _ => u32::try_from(biased + digits.cast_signed() - 1)
                        .ok()
                        .and_then(|bit| $bits::checked_shl(1, bit))
                        .unwrap_or(0),
                };
                $float::from_bits(bits)
            }

            #[inline]
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                reason = "numbers are cut as in C"
            )]
            fn scaled(self, scale: $float) -> $integer {
                const END: $float = $integer::MIN as $float;
                let scaled = self * scale;
                // Outside of the range, C does not say; zfp on today's processors has the least integer.
                if (END..-END).contains(&scaled) {
                    scaled as $integer
                } else {
                    $integer::MIN
                }
            }

            #[inline]
            #[allow(clippy::cast_precision_loss, reason = "integers are rounded as in C")]
            fn of_scaled(integer: $integer, scale: $float) -> $float {
                scale * integer as $float
            }

            fn is_same(self, other: $float) -> bool {
                self.to_bits() == other.to_bits()
            }

            fn to_ordered(self) -> $integer {
                let bits = self.to_bits().cast_signed();
                if bits < 0 { bits ^ $integer::MAX } else { bits }
            }

            #[inline]
            fn of_ordered(integer: $integer) -> $float {
                let bits = if integer < 0 {
                    integer ^ $integer::MAX
                } else {
                    integer
                };
                $float::from_bits(bits.cast_unsigned())
            }
        }

        impl Value for $float {
            fn decode<const N: usize>(
                parameters: Parameters,
                reader: &mut BitReader<'_>,
            ) -> [$float; N] {
                decode_floats(parameters, reader)
            }

            fn encode<const N: usize>(
                parameters: Parameters,
                block: &[$float; N],
                writer: &mut BitWriter,
            ) -> Result<(), FormatError> {
                encode_floats(parameters, block, writer)
            }

            #[inline]
            fn store(_: Stored, numbers: &[$float], out: &mut [u8]) {
                for (number, out) in numbers.iter().zip(out.as_chunks_mut().0) {
                    *out = number.to_le_bytes();
                }
            }

            #[inline]
            fn load(_: Stored, elements: &[u8], numbers: &mut [$float]) {
                for (number, element) in numbers.iter_mut().zip(elements.as_chunks().0) {
                    *number = $float::from_le_bytes(*element);
                }
            }
        }
    };
}

values!(i32, u32, 5, f32, 8);
values!(i64, u64, 6, f64, 11);
