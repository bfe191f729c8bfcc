//! Tables of flatbuffers, read in place.
//!
//! A table is a list of numbered slots, each of which may be empty. The numbers are those of the fields in the schemas
//! of Icechunk (`repo.fbs`, `snapshot.fbs`, `manifest.fbs`), in their order; a union takes two. Every access is checked
//! against the bytes, so that nothing has to be verified beforehand, and nothing is copied or allocated.
//!
//! The crate `planus` finds the slots. This module gives the results of that crate the few types that Icechunk uses.

use planus::errors::ErrorKind;
use planus::table_reader::Table;
use planus::{SliceWithStartOffset, TableRead};

/// The longest path, name or URL. Texts may overlap in a hostile file, so that reading all of them takes far more time
/// than the file is long.
pub(super) const MOST_TEXT_BYTES: usize = 4096;

/// The reason why bytes are not what a schema says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) String);

/// The result of an access.
pub(super) type Flat<T> = Result<T, Malformed>;

/// A table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'b>(Table<'b>);

/// A vector of tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Records<'b>(Vector<'b, 4>);

/// A vector of numbers of 4 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'b>(Vector<'b, 4>);

/// A vector of pairs of numbers of 4 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs<'b>(Vector<'b, 8>);

/// A vector of structures `ManifestFileInfo`: 12 bytes, padding, a number of 8 bytes and one of 4, and padding.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileSizes<'b>(Vector<'b, 32>);

/// Elements of `STRIDE` bytes each. All of them lie within the buffer, which goes on after them.
#[derive(Debug, Clone, Copy)]
struct Vector<'b, const STRIDE: usize> {
    elements: SliceWithStartOffset<'b>,
    len: usize,
}

/// A fixed number of bytes.
struct Fixed<const N: usize>([u8; N]);

/// A table in a slot.
struct Nested<'b>(Record<'b>);

impl From<planus::Error> for Malformed {
    fn from(error: planus::Error) -> Malformed {
        Malformed(error.error_kind.to_string())
    }
}

impl From<ErrorKind> for Malformed {
    fn from(kind: ErrorKind) -> Malformed {
        Malformed(kind.to_string())
    }
}

impl<'b> TableRead<'b> for Nested<'b> {
    fn from_buffer(buffer: SliceWithStartOffset<'b>, offset: usize) -> Result<Self, ErrorKind> {
        Table::from_buffer(buffer, offset).map(|table| Nested(Record(table)))
    }
}

impl<'b, const N: usize> TableRead<'b> for Fixed<N> {
    fn from_buffer(buffer: SliceWithStartOffset<'b>, offset: usize) -> Result<Self, ErrorKind> {
        let bytes = buffer.advance(offset)?.as_slice().first_chunk();
        bytes.copied().map(Fixed).ok_or(ErrorKind::InvalidLength)
    }
}

impl<'b, const STRIDE: usize> TableRead<'b> for Vector<'b, STRIDE> {
    fn from_buffer(buffer: SliceWithStartOffset<'b>, offset: usize) -> Result<Self, ErrorKind> {
        let number = |buffer, at| {
            let number = u32::from_buffer(buffer, at)?;
            usize::try_from(number).map_err(|_| ErrorKind::InvalidOffset)
        };
        let at = offset.checked_add(number(buffer, offset)?);
        let vector = buffer.advance(at.ok_or(ErrorKind::InvalidOffset)?)?;
        let len = number(vector, 0)?;
        let elements = vector.advance(4)?;
        match len.checked_mul(STRIDE) {
            Some(bytes) if bytes <= elements.len() => Ok(Vector { elements, len }),
            _ => Err(ErrorKind::InvalidLength),
        }
    }
}

impl<const STRIDE: usize> Vector<'_, STRIDE> {
    /// The first of the numbers of 4 bytes at `offset` bytes in element number `at`.
    fn number(&self, at: usize, offset: usize) -> Option<u32> {
        let start = (at < self.len).then(|| at.checked_mul(STRIDE)?.checked_add(offset))??;
        let bytes = self.elements.as_slice().get(start..)?.first_chunk();
        bytes.copied().map(u32::from_le_bytes)
    }
}

impl<'b> Record<'b> {
    /// The table that all of `bytes` is about.
    pub(super) fn root(bytes: &'b [u8]) -> Flat<Record<'b>> {
        let buffer = SliceWithStartOffset {
            buffer: bytes,
            offset_from_start: 0,
        };
        Ok(Record(Table::from_buffer(buffer, 0)?))
    }

    fn get<T: TableRead<'b>>(&self, slot: usize) -> Flat<Option<T>> {
        Ok(self.0.access(slot, "", "")?)
    }

    fn demand<T: TableRead<'b>>(&self, slot: usize) -> Flat<T> {
        let found = self.get(slot)?;
        found.ok_or_else(|| Malformed(format!("the required field {slot} is missing")))
    }

    /// The number in a slot; 0 if it is empty, as in all schemas that are read.
    pub(super) fn u8(&self, slot: usize) -> Flat<u8> {
        Ok(self.get(slot)?.unwrap_or(0))
    }

    pub(super) fn u32(&self, slot: usize) -> Flat<u32> {
        Ok(self.get(slot)?.unwrap_or(0))
    }

    pub(super) fn u64(&self, slot: usize) -> Flat<u64> {
        Ok(self.get(slot)?.unwrap_or(0))
    }

    /// A text of at most [`MOST_TEXT_BYTES`].
    pub(super) fn text(&self, slot: usize) -> Flat<Option<&'b str>> {
        self.bytes(slot)?.map(text_of).transpose()
    }

    pub(super) fn required_text(&self, slot: usize) -> Flat<&'b str> {
        text_of(self.demand(slot)?)
    }

    pub(super) fn bytes(&self, slot: usize) -> Flat<Option<&'b [u8]>> {
        self.get(slot)
    }

    pub(super) fn required_bytes(&self, slot: usize) -> Flat<&'b [u8]> {
        self.demand(slot)
    }

    /// A structure of `N` bytes.
    pub(super) fn fixed<const N: usize>(&self, slot: usize) -> Flat<Option<[u8; N]>> {
        let found: Option<Fixed<N>> = self.get(slot)?;
        Ok(found.map(|Fixed(bytes)| bytes))
    }

    pub(super) fn required_fixed<const N: usize>(&self, slot: usize) -> Flat<[u8; N]> {
        self.demand(slot).map(|Fixed(bytes)| bytes)
    }

    pub(super) fn required_record(&self, slot: usize) -> Flat<Record<'b>> {
        self.demand(slot).map(|Nested(record)| record)
    }

    pub(super) fn records(&self, slot: usize) -> Flat<Option<Records<'b>>> {
        Ok(self.get(slot)?.map(Records))
    }

    pub(super) fn required_records(&self, slot: usize) -> Flat<Records<'b>> {
        self.demand(slot).map(Records)
    }

    pub(super) fn required_words(&self, slot: usize) -> Flat<Words<'b>> {
        self.demand(slot).map(Words)
    }

    pub(super) fn required_pairs(&self, slot: usize) -> Flat<Pairs<'b>> {
        self.demand(slot).map(Pairs)
    }

    /// The number of elements of a vector of structures of 16 bytes.
    pub(super) fn len_of_structures(&self, slot: usize) -> Flat<usize> {
        let found: Vector<'b, 16> = self.demand(slot)?;
        Ok(found.len)
    }

    pub(super) fn required_file_sizes(&self, slot: usize) -> Flat<FileSizes<'b>> {
        self.demand(slot).map(FileSizes)
    }
}

fn text_of(bytes: &[u8]) -> Flat<&str> {
    if bytes.len() > MOST_TEXT_BYTES {
        let len = bytes.len();
        return Err(Malformed(format!(
            "a text of {len} bytes, of which at most {MOST_TEXT_BYTES} are supported"
        )));
    }
    std::str::from_utf8(bytes).map_err(|_| Malformed("a text that is not UTF-8".to_owned()))
}

impl<'b> Records<'b> {
    pub(super) fn len(&self) -> usize {
        self.0.len
    }

    /// The table of number `at`.
    pub(super) fn get(&self, at: usize) -> Flat<Record<'b>> {
        let offset = (at < self.0.len).then(|| at.checked_mul(4)).flatten();
        let offset = offset.ok_or(ErrorKind::InvalidOffset)?;
        Ok(Record(Table::from_buffer(self.0.elements, offset)?))
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Flat<Record<'b>>> {
        (0..self.len()).map(move |at| self.get(at))
    }

    /// The number of tables for which `is_before` holds, which are the first ones.
    pub(super) fn partition(&self, is_before: impl Fn(Record<'b>) -> Flat<bool>) -> Flat<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.get(middle)?)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

impl<'b> Words<'b> {
    pub(super) fn len(&self) -> usize {
        self.0.len
    }

    pub(super) fn iter(self) -> impl Iterator<Item = u32> + 'b {
        (0..self.len()).map_while(move |at| self.0.number(at, 0))
    }
}

impl<'b> Pairs<'b> {
    pub(super) fn len(&self) -> usize {
        self.0.len
    }

    pub(super) fn iter(self) -> impl Iterator<Item = (u32, u32)> + 'b {
        let pair = move |at| Some((self.0.number(at, 0)?, self.0.number(at, 4)?));
        (0..self.len()).map_while(pair)
    }
}

impl<'b> FileSizes<'b> {
    /// The two numbers of each.
    pub(super) fn iter(self) -> impl Iterator<Item = (u64, u32)> + 'b {
        let sizes = move |at| {
            let [low, high] = [16, 20].map(|offset| self.0.number(at, offset));
            Some((
                u64::from(high?) << 32 | u64::from(low?),
                self.0.number(at, 24)?,
            ))
        };
        (0..self.0.len).map_while(sizes)
    }
}

/// Tables that tests read.
#[cfg(test)]
pub(super) mod testing {
    use super::super::object_id::ObjectId;

    /// A table of flatbuffers that is written from its beginning on.
    struct FlatWriter(Vec<u8>);

    impl FlatWriter {
        /// The root, with slots of these sizes, and the places of the slots.
        fn with_root(sizes: &[u8]) -> (FlatWriter, Vec<usize>) {
            let mut writer = FlatWriter(vec![0; 4]);
            let slots = writer.table(0, sizes);
            (writer, slots)
        }

        /// Writes that the pointer at `place` is to what follows.
        fn point(&mut self, place: usize) {
            let offset = u32::try_from(self.0.len() - place).unwrap();
            self.0[place..place + 4].copy_from_slice(&offset.to_le_bytes());
        }

        /// Adds a table to which the pointer at `place` is, and returns the places of its slots.
        fn table(&mut self, place: usize, sizes: &[u8]) -> Vec<usize> {
            let (mut offset, start) = (4_u16, self.0.len());
            let len = u16::try_from(4 + 2 * sizes.len()).unwrap();
            let all = 4 + sizes.iter().copied().map(u16::from).sum::<u16>();
            self.0
                .extend([len.to_le_bytes(), all.to_le_bytes()].concat());
            for &size in sizes {
                let slot = if size == 0 { 0 } else { offset };
                self.0.extend(slot.to_le_bytes());
                offset += u16::from(size);
            }
            let at = self.0.len();
            self.point(place);
            self.0
                .extend(u32::try_from(at - start).unwrap().to_le_bytes());
            self.0.resize(at + usize::from(all), 0);
            let mut slot = at + 4;
            let places = sizes.iter().map(|&size| {
                slot += usize::from(size);
                slot - usize::from(size)
            });
            places.collect()
        }

        /// Adds a vector of `n` elements of zeros to which the pointer at `place` is, and returns its first element.
        fn vector(&mut self, place: usize, n: usize, element: usize) -> usize {
            self.point(place);
            self.0.extend(u32::try_from(n).unwrap().to_le_bytes());
            let first = self.0.len();
            self.0.resize(first + n * element, 0);
            first
        }

        fn put(&mut self, place: usize, bytes: &[u8]) {
            self.0[place..place + bytes.len()].copy_from_slice(bytes);
        }

        fn text(&mut self, place: usize, text: &[u8]) {
            let first = self.vector(place, text.len(), 1);
            self.put(first, text);
        }
    }

    /// The file of a snapshot without nodes.
    pub(in super::super) fn snapshot(id: ObjectId) -> Vec<u8> {
        let (mut writer, slots) = FlatWriter::with_root(&[12, 0, 4]);
        writer.put(slots[0], &id.0);
        writer.vector(slots[2], 0, 4);
        let header = ["ICE🧊CHUNK".as_bytes(), &[b' '; 24], &[1, 1, 0]].concat();
        [header, writer.0].concat()
    }

    /// The table of a snapshot with the array `a`, which has one dimension and `n_manifests` manifests. It refers to the
    /// first of them `n_shared` times more.
    pub(in super::super) fn snapshot_with_array(
        id: ObjectId,
        n_manifests: usize,
        n_shared: usize,
    ) -> Vec<u8> {
        let (mut writer, root) = FlatWriter::with_root(&[12, 0, 4]);
        writer.put(root[0], &id.0);
        let first = writer.vector(root[2], 1, 4);
        let node = writer.table(first, &[8, 4, 4, 1, 4]);
        writer.text(node[1], b"/a");
        writer.text(node[2], b"{}");
        writer.put(node[3], &[1]);
        let array = writer.table(node[4], &[4, 0, 4]);
        writer.vector(array[0], 1, 16);
        let manifests = writer.vector(array[2], n_manifests + n_shared, 4);
        let mut shared = None;
        for at in 0..n_manifests {
            let slots = writer.table(manifests + 4 * at, &[12, 4]);
            shared.get_or_insert(slots[0] - 4);
            let extents = writer.vector(slots[1], 1, 8);
            writer.put(extents + 4, &9_u32.to_le_bytes());
        }
        for at in n_manifests..n_manifests + n_shared {
            let place = manifests + 4 * at;
            let offset = u32::try_from(shared.unwrap() - place).unwrap();
            writer.put(place, &offset.to_le_bytes());
        }
        writer.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root table with a number in slot 0 and a vector of two numbers in slot 2.
    const TABLE: [u8; 40] = [
        16, 0, 0, 0, // where the root is
        0, 0, // padding
        10, 0, 12, 0, 4, 0, 0, 0, 8, 0, // its slots: 4, none, 8
        10, 0, 0, 0, // how far before it they are
        7, 0, 0, 0, // slot 0
        4, 0, 0, 0, // slot 2: where the vector is
        2, 0, 0, 0, 5, 0, 0, 0, // its length, and its numbers
        9, 0, 0, 0,
    ];

    #[test]
    fn slots_are_found_by_their_numbers() {
        let root = Record::root(&TABLE).unwrap();
        assert_eq!(root.u32(0), Ok(7));
        assert_eq!(root.u32(1), Ok(0), "an empty slot");
        assert_eq!(root.u32(9), Ok(0), "a slot of a later schema");
        let words = root.required_words(2).unwrap();
        assert_eq!(words.iter().collect::<Vec<_>>(), [5, 9]);
        assert!(root.required_words(1).is_err());
        assert!(root.required_pairs(2).is_err(), "past the end");
    }

    #[test]
    fn any_change_of_a_byte_is_an_error_or_another_value() {
        for at in 0..TABLE.len() {
            for value in [0, 1, 3, 127, 128, 255] {
                let mut bytes = TABLE;
                bytes[at] = value;
                let Ok(root) = Record::root(&bytes) else {
                    continue;
                };
                let _ = (root.u32(0), root.text(2), root.fixed::<12>(0));
                let _ = (root.bytes(2), root.required_record(2).map(|r| r.u64(0)));
                if let Ok(Some(records)) = root.records(2) {
                    let _ = records.iter().take(9).map(|r| r?.u64(0)).count();
                }
                if let Ok(pairs) = root.required_pairs(2) {
                    assert_eq!(pairs.iter().count(), pairs.len());
                }
            }
        }
    }

    #[test]
    fn truncated_bytes_are_errors() {
        for len in 0..TABLE.len() {
            let bytes = &TABLE[..len];
            let read = || Record::root(bytes)?.required_words(2);
            assert!(read().is_err(), "{len}");
        }
    }
}
