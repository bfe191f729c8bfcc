//! The shard of an array of two by two inner chunks, read and written without the crate's own code.

/// The inner chunks of the shard.
pub(crate) const SLOTS: usize = 4;

/// The value of offset and length for an absent inner chunk.
const NOTHING: u64 = u64::MAX;

/// Bytes of the index: an offset and a length for each slot, and their checksum.
const INDEX_BYTES: usize = SLOTS * 16 + 4;

/// Encoded inner chunks, by their slots.
pub(crate) type Encoded = [Option<Vec<u8>>; SLOTS];

/// The inner chunks in the bytes of a shard; none if there is no shard.
pub(crate) fn read(shard: Option<&[u8]>) -> Encoded {
    let mut found = Encoded::default();
    let Some(shard) = shard else { return found };
    let (index, checksum) = shard[shard.len() - INDEX_BYTES..].split_at(INDEX_BYTES - 4);
    assert_eq!(crc32c::crc32c(index).to_le_bytes(), checksum, "the index");
    let words = index
        .chunks(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    let words: Vec<u64> = words.collect();
    for (slot, entry) in words.chunks(2).enumerate() {
        if entry == [NOTHING; 2] {
            continue;
        }
        let [offset, len] = [0, 1].map(|at| usize::try_from(entry[at]).unwrap());
        found[slot] = Some(shard[offset..offset + len].to_vec());
    }
    found
}

/// The bytes of a shard with these inner chunks, which leave gaps between them; `None` if it has none.
pub(crate) fn write(chunks: &Encoded) -> Option<Vec<u8>> {
    let (mut shard, mut index) = (vec![0; 3], Vec::new());
    for chunk in chunks.iter().rev() {
        let entry = match chunk {
            Some(chunk) => {
                let entry = [shard.len(), chunk.len()].map(|word| word as u64);
                shard.extend(chunk);
                shard.push(0);
                entry
            }
            None => [NOTHING; 2],
        };
        index.push(entry.map(u64::to_le_bytes).concat());
    }
    index.reverse();
    let index = index.concat();
    shard.extend(&index);
    shard.extend(crc32c::crc32c(&index).to_le_bytes());
    chunks.iter().any(Option::is_some).then_some(shard)
}
