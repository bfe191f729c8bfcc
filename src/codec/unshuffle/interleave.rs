//! Interleaves planes, sixteen bytes of each at a time.
//!
//! ```text
//! planes      a0 b0 c0 d0 ..   a1 b1 ..   a2 b2 ..   a3 b3 ..
//! one round   a0 a2 b0 b2 ..   (c, d ..)  a1 a3 b1 b3 ..            the first with the third
//! the next    a0 a1 a2 a3 b0 b1 b2 b3 ..
//! ```
//!
//! Planes of bits are first made planes of bytes: in eight rows, one for each bit of a byte,
//! squares of four, two and one bits are exchanged until each row consists of whole bytes.

#![expect(
    unsafe_code,
    reason = "a call of a function that names the processor's features"
)]

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm_setzero_si128,
    _mm_slli_epi64, _mm_srli_epi64, _mm_unpackhi_epi8, _mm_unpackhi_epi64, _mm_unpacklo_epi8,
    _mm_xor_si128,
};

/// The number of bytes of a plane that are interleaved at a time.
const LANE: usize = 16;

/// The number of lanes of each row of bits that are taken at a time. Together they are one line of the
/// processor's cache. If only one lane were taken, rows that are a power of two apart would evict the
/// line before its other lanes were taken.
const LINE: usize = 4;

/// Puts elements of `size` bytes together from planes of bytes. Returns the number of elements
/// done, from the first one on.
pub(super) fn bytes(size: usize, planes: &[u8], elements: &mut [u8]) -> usize {
    // SAFETY: every processor of this architecture has SSE2.
    unsafe {
        match size {
            2 => bytes_of::<2>(planes, elements),
            4 => bytes_of::<4>(planes, elements),
            8 => bytes_of::<8>(planes, elements),
            16 => bytes_of::<16>(planes, elements),
            _ => 0,
        }
    }
}

/// Puts elements of `size` bytes together from planes of bits. Returns the number of groups of
/// eight elements done, from the first one on.
pub(super) fn bits(size: usize, rows: &[u8], elements: &mut [u8]) -> usize {
    // SAFETY: every processor of this architecture has SSE2.
    unsafe {
        match size {
            1 => bits_of::<1>(rows, elements),
            2 => bits_of::<2>(rows, elements),
            4 => bits_of::<4>(rows, elements),
            8 => bits_of::<8>(rows, elements),
            16 => bits_of::<16>(rows, elements),
            _ => 0,
        }
    }
}

#[target_feature(enable = "sse2")]
fn bytes_of<const N: usize>(planes: &[u8], elements: &mut [u8]) -> usize {
    let count = planes.len() / N;
    let mut lanes_of: [&[[u8; LANE]]; N] = [&[]; N];
    for (lanes, plane) in lanes_of.iter_mut().zip(planes.chunks_exact(count)) {
        *lanes = plane.as_chunks().0;
    }
    let (lanes, _) = elements.as_chunks_mut();
    for (i, out) in lanes.chunks_exact_mut(N).enumerate() {
        interleave_at(&lanes_of, i, out);
    }
    count / LANE * LANE
}

#[target_feature(enable = "sse2")]
fn bits_of<const N: usize>(rows: &[u8], elements: &mut [u8]) -> usize {
    let row = rows.len() / N / 8;
    let mut planes = [[[0; LANE]; 8 * LINE]; N];
    let mut done = 0;
    for out in elements.as_chunks_mut().0.chunks_exact_mut(8 * LINE * N) {
        for (plane, rows) in planes.iter_mut().zip(rows.chunks_exact(8 * row)) {
            for (c, plane) in plane.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let mut lanes = [_mm_setzero_si128(); 8];
                for (lane, row) in lanes.iter_mut().zip(rows.chunks_exact(row)) {
                    let bytes = row.get(done + c * LANE..).and_then(<[u8]>::first_chunk);
                    *lane = load(bytes.unwrap_or(&[0; LANE]));
                }
                join_bits(&mut lanes);
                interleave(&mut lanes);
                for (to, lane) in plane.iter_mut().zip(lanes) {
                    *to = store(lane);
                }
            }
        }
        let lanes_of = planes.each_ref().map(<[_; 8 * LINE]>::as_slice);
        for (i, out) in out.chunks_exact_mut(N).enumerate() {
            interleave_at(&lanes_of, i, out);
        }
        done += LINE * LANE;
    }
    done
}

/// Puts elements together from lane `i` of each plane.
#[inline]
#[target_feature(enable = "sse2")]
fn interleave_at<const N: usize>(planes: &[&[[u8; LANE]]; N], i: usize, out: &mut [[u8; LANE]]) {
    let mut lanes = [_mm_setzero_si128(); N];
    for (lane, plane) in lanes.iter_mut().zip(planes) {
        *lane = load(plane.get(i).unwrap_or(&[0; LANE]));
    }
    interleave(&mut lanes);
    for (to, lane) in out.iter_mut().zip(lanes) {
        *to = store(lane);
    }
}

/// Gives the first bytes of all lanes, then all second bytes, and so on. The number of lanes is a
/// power of two.
#[inline]
#[target_feature(enable = "sse2")]
fn interleave<const N: usize>(lanes: &mut [__m128i; N]) {
    for _ in 0..N.ilog2() {
        let (first, second) = lanes.split_at(N / 2);
        let mut next = [_mm_setzero_si128(); N];
        for (to, (a, b)) in next.chunks_exact_mut(2).zip(first.iter().zip(second)) {
            if let [low, high] = to {
                *low = _mm_unpacklo_epi8(*a, *b);
                *high = _mm_unpackhi_epi8(*a, *b);
            }
        }
        *lanes = next;
    }
}

/// Turns eight lanes, lane k of the bits k, into lanes of bytes: lane e has those of every eighth
/// element, from e on.
#[inline]
#[target_feature(enable = "sse2")]
fn join_bits([b0, b1, b2, b3, b4, b5, b6, b7]: &mut [__m128i; 8]) {
    for (one, other) in [(&mut *b0, &mut *b4), (b1, b5), (b2, b6), (b3, b7)] {
        exchange::<4>(one, other, 0x0f);
    }
    for (one, other) in [(&mut *b0, &mut *b2), (b1, b3), (b4, b6), (b5, b7)] {
        exchange::<2>(one, other, 0x33);
    }
    for (one, other) in [(b0, b1), (b2, b3), (b4, b5), (b6, b7)] {
        exchange::<1>(one, other, 0x55);
    }
}

/// Exchanges the bits `mask` of each byte of `other` with the bits of `one` that are `SHIFT` places
/// higher.
#[inline]
#[target_feature(enable = "sse2")]
fn exchange<const SHIFT: i32>(one: &mut __m128i, other: &mut __m128i, mask: i8) {
    let differing = _mm_xor_si128(_mm_srli_epi64::<SHIFT>(*one), *other);
    let differing = _mm_and_si128(differing, _mm_set1_epi8(mask));
    *other = _mm_xor_si128(*other, differing);
    *one = _mm_xor_si128(*one, _mm_slli_epi64::<SHIFT>(differing));
}

/// This compiles to one instruction, as [`store`] does, and needs no pointer.
#[inline]
#[target_feature(enable = "sse2")]
fn load(bytes: &[u8; LANE]) -> __m128i {
    let mut halves = bytes.as_chunks().0.iter();
    let mut half = || halves.next().copied().map_or(0, i64::from_le_bytes);
    let (low, high) = (half(), half());
    _mm_set_epi64x(high, low)
}

#[inline]
#[target_feature(enable = "sse2")]
fn store(lane: __m128i) -> [u8; LANE] {
    let mut bytes = [0; LANE];
    let halves = [lane, _mm_unpackhi_epi64(lane, lane)];
    for (to, half) in bytes.as_chunks_mut().0.iter_mut().zip(halves) {
        *to = _mm_cvtsi128_si64(half).to_le_bytes();
    }
    bytes
}
