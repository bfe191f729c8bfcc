//! Values of `FlexBuffers`, read in place: the maps and texts in which the configuration of a repository is kept.
//!
//! ```text
//! ... value, its type, the width of its slot       the last bytes
//! width, offset of the keys, length | slots | types     a map, of which the slots are pointed to
//! ```
//!
//! A slot has a number, or how far before it the value is. Numbers have 1, 2, 4 or 8 bytes, as the type before a value
//! says. Every access is checked against the bytes. The crate `flexbuffers` panics where an offset leads out of them.

use super::flat::{Flat, MOST_TEXT_BYTES, Malformed};

/// The most entries of a map. Maps may overlap in hostile bytes, so that reading all of them takes far more time than
/// there are bytes.
const MOST_ENTRIES: usize = 4096;

const NULL: u8 = 0;
const TEXT: u8 = 5;
const MAP: u8 = 9;

/// A value.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlexValue<'b> {
    bytes: &'b [u8],
    kind: u8,
    at: usize,
    /// The bytes of each number in it.
    width: usize,
}

/// A map from texts to values.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlexMap<'b> {
    values: FlexValue<'b>,
    len: usize,
    keys: usize,
    key_width: usize,
}

impl<'b> FlexValue<'b> {
    /// The value that all of `bytes` is.
    pub(super) fn root(bytes: &'b [u8]) -> Flat<FlexValue<'b>> {
        let Some((before, &[packed, width])) = bytes.split_last_chunk() else {
            return Err(out_of_bounds());
        };
        let width = width_of(width.into())?;
        let slot = before.len().checked_sub(width);
        FlexValue::in_slot(bytes, slot.ok_or_else(out_of_bounds)?, width, packed)
    }

    /// The value whose slot of `width` bytes is at `slot`, and whose type and width are `packed`.
    fn in_slot(bytes: &'b [u8], slot: usize, width: usize, packed: u8) -> Flat<FlexValue<'b>> {
        let kind = packed >> 2;
        let at = match kind {
            TEXT | MAP => pointed_to(bytes, slot, width)?,
            _ => slot,
        };
        Ok(FlexValue {
            bytes,
            kind,
            at,
            width: 1 << (packed & 3),
        })
    }

    /// The number that is `n` numbers before the value.
    fn before(&self, n: usize) -> Flat<usize> {
        let at = self.at.checked_sub(n * self.width);
        number(self.bytes, at.ok_or_else(out_of_bounds)?, self.width)
    }

    /// The text; `None` for null.
    pub(super) fn text(&self) -> Flat<Option<&'b str>> {
        match self.kind {
            NULL => return Ok(None),
            TEXT => {}
            other => return Err(Malformed(format!("a value of kind {other}, not a text"))),
        }
        let len = self.before(1)?;
        if len > MOST_TEXT_BYTES {
            return Err(Malformed(format!("a text of {len} bytes")));
        }
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        let text = std::str::from_utf8(bytes.ok_or_else(out_of_bounds)?);
        text.map(Some)
            .map_err(|_| Malformed("a text that is not UTF-8".to_owned()))
    }

    /// The map; `None` for null.
    pub(super) fn map(&self) -> Flat<Option<FlexMap<'b>>> {
        match self.kind {
            NULL => return Ok(None),
            MAP => {}
            other => return Err(Malformed(format!("a value of kind {other}, not a map"))),
        }
        let len = self.before(1)?;
        if len > MOST_ENTRIES {
            return Err(Malformed(format!("a map of {len} entries")));
        }
        let key_width = width_of(self.before(2)?)?;
        let offset = self.at.checked_sub(3 * self.width);
        let keys = pointed_to(self.bytes, offset.ok_or_else(out_of_bounds)?, self.width)?;
        Ok(Some(FlexMap {
            values: *self,
            len,
            keys,
            key_width,
        }))
    }
}

impl<'b> FlexMap<'b> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The value of number `index`, in the order of the keys.
    pub(super) fn value(&self, index: usize) -> Flat<FlexValue<'b>> {
        let FlexValue {
            bytes, at, width, ..
        } = self.values;
        // A map has at most `MOST_ENTRIES`, so no product is large; `at` lies within the bytes.
        let packed = bytes.get(at + self.len * width + index);
        let packed = packed.filter(|_| index < self.len);
        let packed = packed.ok_or_else(out_of_bounds)?;
        FlexValue::in_slot(bytes, at + index * width, width, *packed)
    }

    /// The value at `key`, if there is one.
    pub(super) fn get(&self, key: &str) -> Flat<Option<FlexValue<'b>>> {
        let bytes = self.values.bytes;
        for index in 0..self.len {
            let slot = self.keys + index * self.key_width;
            let found = pointed_to(bytes, slot, self.key_width)?;
            let rest = bytes.get(found..).unwrap_or_default();
            let rest = rest.strip_prefix(key.as_bytes());
            if rest.is_some_and(|rest| rest.first() == Some(&0)) {
                return self.value(index).map(Some);
            }
        }
        Ok(None)
    }
}

/// The place to which the slot at `slot` points.
fn pointed_to(bytes: &[u8], slot: usize, width: usize) -> Flat<usize> {
    let place = slot.checked_sub(number(bytes, slot, width)?);
    place.ok_or_else(out_of_bounds)
}

/// The number of `width` bytes at `at`.
fn number(bytes: &[u8], at: usize, width: usize) -> Flat<usize> {
    let found = bytes.get(at..).and_then(|rest| rest.get(..width));
    let mut wide = [0; 8];
    let (used, _) = wide.split_at_mut(width);
    used.copy_from_slice(found.ok_or_else(out_of_bounds)?);
    usize::try_from(u64::from_le_bytes(wide)).map_err(|_| out_of_bounds())
}

fn width_of(number: usize) -> Flat<usize> {
    let is_width = matches!(number, 1 | 2 | 4 | 8);
    let problem = || Malformed(format!("numbers of {number} bytes"));
    is_width.then_some(number).ok_or_else(problem)
}

fn out_of_bounds() -> Malformed {
    Malformed("an offset leads out of the bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"a": null, "b": {"c": "hi"}}`, as another program writes it.
    const MAPS: [u8; 30] = [
        b'a', 0, b'b', 0, b'c', 0, // keys
        2, b'h', b'i', 0, // a text behind its length
        1, 7, 1, 1, 1, 8, 0x14, // the keys of the inner map, and the map
        2, 18, 17, 2, 1, 2, 0, 9, 0, 0x24, // the same of the outer map
        4, 0x24, 1, // where that is
    ];

    fn root_of(bytes: &[u8]) -> Flat<FlexMap<'_>> {
        let map = FlexValue::root(bytes)?.map()?;
        map.ok_or_else(|| Malformed("null".to_owned()))
    }

    #[test]
    fn values_are_found_by_their_keys() {
        let map = root_of(&MAPS).unwrap();
        assert_eq!(map.len(), 2);
        let null = map.get("a").unwrap().unwrap();
        assert_eq!(null.text(), Ok(None));
        assert!(null.map().unwrap().is_none());
        let inner = map.get("b").unwrap().unwrap();
        assert!(inner.text().is_err(), "a map is no text");
        let inner = inner.map().unwrap().unwrap();
        let text = inner.get("c").unwrap().unwrap();
        assert_eq!(text.text(), Ok(Some("hi")));
        for absent in ["", "bc", "c"] {
            assert!(map.get(absent).unwrap().is_none(), "{absent}");
        }
        assert!(map.value(2).is_err());
    }

    #[test]
    fn any_change_of_a_byte_is_an_error_or_another_value() {
        for at in 0..MAPS.len() {
            for value in 0..=255 {
                let mut bytes = MAPS;
                bytes[at] = value;
                let Ok(map) = root_of(&bytes) else { continue };
                for key in ["a", "b", "c", ""] {
                    let Ok(Some(found)) = map.get(key) else {
                        continue;
                    };
                    let _ = found.text();
                    if let Ok(Some(inner)) = found.map() {
                        let _ = inner.get("c").map(|found| found.map(|found| found.text()));
                    }
                }
                for index in 0..map.len() {
                    let _ = map.value(index);
                }
            }
        }
    }

    #[test]
    fn truncated_bytes_are_errors() {
        for len in 0..3 {
            assert!(FlexValue::root(&MAPS[..len]).is_err(), "{len}");
        }
        for len in 0..MAPS.len() {
            let _ = root_of(&MAPS[..len]).and_then(|map| map.get("b"));
        }
    }
}
