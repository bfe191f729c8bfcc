//! Inputs that are made of others, by a few random changes.

use crate::random::Random;

/// Longer inputs are cut: they would only be slow.
const LONGEST: usize = 1 << 14;

/// Words that mean something to one of the formats, and numbers at the ends of their types.
const WORDS: [&str; 30] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-7",
    "NaN",
    "Infinity",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "{{i}}",
    "{{i // 0}}",
    "..",
    "/",
    "//",
    "%00",
    "\\u0000",
    "base64:",
    "target",
    "file:///proc/self/fd/-1/target",
    "x/0.1",
];

/// Whole numbers that a length, a count or an offset may be.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_fffe,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
];

/// One of `inputs`, with one to sixteen changes.
pub(crate) fn mutated(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut data = one_of(inputs, random).clone();
    for _ in 0..1 << random.below(5) {
        let other = one_of::<Vec<u8>>(inputs, random);
        change(&mut data, other, random);
    }
    data.truncate(LONGEST);
    data
}

/// Changes `data` in one place. `other` lends bytes for some changes.
fn change(data: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = index(data.len() + 1, random);
    let rest = data.len() - at;
    match random.below(10) {
        0 => flip_bit(data, random),
        1 => drop(data.drain(at..at + rest.min(short(random)))),
        2 => data.truncate(at),
        3 => insert(data, at, &random.next().to_le_bytes()[..index(8, random)]),
        4 => insert(data, at, piece(other, random)),
        5 => overwrite(data, at, piece(other, random)),
        6 => overwrite(data, at, &number(random)),
        7 => {
            let again = piece(data, random).to_vec();
            insert(data, at, &again);
        }
        8 => replace_token(data, token(other, random).0, random),
        _ => replace_token(data, one_of(&WORDS, random).as_bytes(), random),
    }
}

fn flip_bit(data: &mut [u8], random: &mut Random) {
    if !data.is_empty() {
        data[index(data.len(), random)] ^= 1 << random.below(8);
    }
}

fn insert(data: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    data.splice(at..at, bytes.iter().copied());
}

fn overwrite(data: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = data.len().min(at + bytes.len());
    data.splice(at..end, bytes.iter().copied());
}

/// A whole number of one to eight bytes, in either order.
fn number(random: &mut Random) -> Vec<u8> {
    let value = match random.below(3) {
        0 => random.below(256),
        1 => random.next() >> random.below(63),
        _ => *one_of(&NUMBERS, random),
    };
    let mut bytes = value.to_le_bytes()[..1 << random.below(4)].to_vec();
    if random.below(2) == 0 {
        bytes.reverse();
    }
    bytes
}

/// Puts `bytes` in place of a token of `data`.
fn replace_token(data: &mut Vec<u8>, bytes: &[u8], random: &mut Random) {
    let (_, range) = token(data, random);
    data.splice(range, bytes.iter().copied());
}

/// Some bytes of `data` that belong together in a text: a word, a number, a string with its quotes, or a single character.
fn token<'a>(data: &'a [u8], random: &mut Random) -> (&'a [u8], std::ops::Range<usize>) {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(byte);
    let at = index(data.len(), random);
    let Some(first) = data.get(at) else {
        return (&[], 0..0);
    };
    let (before, behind) = data.split_at(at);
    let range = if *first == b'"' {
        let length = behind[1..].iter().position(|byte| *byte == b'"');
        at..length.map_or(at + 1, |length| at + 2 + length)
    } else if is_word(first) {
        let start = before.iter().rposition(|byte| !is_word(byte));
        let length = behind.iter().position(|byte| !is_word(byte));
        start.map_or(0, |start| start + 1)..length.map_or(data.len(), |length| at + length)
    } else {
        at..at + 1
    };
    (&data[range.clone()], range)
}

/// Some bytes of `data` that follow each other.
fn piece<'a>(data: &'a [u8], random: &mut Random) -> &'a [u8] {
    let start = index(data.len() + 1, random);
    let length = (data.len() - start).min(short(random));
    &data[start..start + length]
}

/// A length, more often a short one.
fn short(random: &mut Random) -> usize {
    let most = 1 << random.below(9);
    1 + index(most, random)
}

fn one_of<'a, T>(all: &'a [T], random: &mut Random) -> &'a T {
    &all[index(all.len(), random)]
}

/// A number less than `end`, or 0.
fn index(end: usize, random: &mut Random) -> usize {
    usize::try_from(random.below(end.max(1) as u64)).expect("it is less than a length")
}
