//! Reads several entries of an object at once, such as the documents of a node: their requests are
//! sent side by side, and entries that are near each other share one.

use std::sync::Arc;

use super::archive::Archive;
use super::extent::Coding;
use super::object::ZipObject;
use crate::store::{FetchRequest, Fetched, Object, StoreError};

/// The longest entry that is read with others.
const MOST_BYTES_EACH: u64 = 256 << 10;

/// The most bytes of all entries that are read at once.
const MOST_BYTES: u64 = 8 << 20;

/// The result of a fetch.
type Answer = Result<Option<Fetched>, StoreError>;

/// An entry that is read with others.
struct Member<'b> {
    /// The number of the request.
    number: usize,
    entry: Arc<ZipObject>,
    buf: &'b mut [u8],
    /// The stored bytes, where they differ from the decoded ones.
    encoded: Option<Vec<u8>>,
}

/// Fetches for each of `requests` the entry of `archive` that was `opened` for it.
pub(super) fn fetch(
    archive: &Archive,
    opened: Vec<Result<Option<Arc<ZipObject>>, StoreError>>,
    requests: &mut [FetchRequest<'_>],
) -> Vec<Answer> {
    let mut answers = Vec::with_capacity(opened.len());
    let mut members = Vec::new();
    let mut left = MOST_BYTES;
    for (number, (found, request)) in opened.into_iter().zip(requests).enumerate() {
        let entry = match found {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                answers.push(Ok(None));
                continue;
            }
            Err(error) => {
                answers.push(Err(error));
                continue;
            }
        };
        let (size, stored) = (entry.meta().size(), entry.extent().stored);
        let is_short = size <= request.most_bytes && size.max(stored) <= MOST_BYTES_EACH.min(left);
        if size == 0 || !is_short {
            let fetched = Fetched::of_object(entry, request.most_bytes, request.buffer);
            answers.push(fetched.map(Some));
            continue;
        }
        let buf = request.buffer.of_len(size);
        answers.push(Ok(Some(Fetched {
            object: Arc::clone(&entry) as Arc<dyn Object>,
            is_read: buf.is_some(),
        })));
        if let Some(buf) = buf {
            left -= size.max(stored);
            let stored = usize::try_from(stored).unwrap_or(0);
            let is_deflated = entry.extent().coding == Coding::Deflated;
            members.push(Member {
                number,
                entry,
                buf,
                encoded: is_deflated.then(|| vec![0; stored]),
            });
        }
    }
    for (number, failed) in read(archive, members) {
        if let Some(answer) = answers.get_mut(number) {
            *answer = Err(failed);
        }
    }
    answers
}

/// Reads all `members`. Returns the numbers of those that failed.
fn read(archive: &Archive, mut members: Vec<Member<'_>>) -> Vec<(usize, StoreError)> {
    let end_of_entries = archive.end_of_entries();
    let mut reads = Vec::with_capacity(members.len());
    for member in &mut members {
        let mut read = member.entry.encoded_read();
        let encoded = member.encoded.as_deref_mut();
        read.add(0, encoded.unwrap_or(member.buf), end_of_entries);
        reads.push((Arc::clone(&member.entry), read));
    }
    let ranges = reads.iter_mut();
    let mut ranges: Vec<_> = ranges
        .flat_map(|(_, read)| read.ranges(end_of_entries))
        .collect();
    let filled = archive.file.read_ranges(&mut ranges);
    drop(ranges);
    let ended: Vec<_> = reads
        .into_iter()
        .map(|(entry, read)| match &filled {
            Ok(()) => entry.end_read(read),
            Err(error) => Err(entry.error(error)),
        })
        .collect();
    let each = members.into_iter().zip(ended);
    let failed = each.filter_map(|(member, ended)| {
        let number = member.number;
        let decoded = ended.and_then(|()| member.decode());
        decoded.err().map(|error| (number, error))
    });
    failed.collect()
}

impl Member<'_> {
    /// Checks the bytes that were read, and inflates them where they are deflated.
    fn decode(self) -> Result<(), StoreError> {
        match self.encoded {
            Some(encoded) => self.entry.inflate(encoded, self.buf),
            None => self.entry.check(self.buf),
        }
    }
}
