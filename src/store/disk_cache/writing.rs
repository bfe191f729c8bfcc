//! Writing an entry: under another name first, so that no reader sees a part of it. The file is not synced. If the system
//! ends, the file may be torn, which its checksums show.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat, openat, renameat, statat};

use super::directory::{self, Directory};
use super::entry::{BLOCK_BYTES, EntryFacts, EntryName};

/// The end of the name of a file that is being written.
const UNFINISHED: &str = ".tmp";

/// An unfinished file that is older than this is left over from a process that was killed.
const LEFT_OVER: Duration = Duration::from_secs(3600);

/// The subdirectory of one of this many new entries is looked through for left-over files.
const SWEPT_PART: u64 = 256;

/// Writes the entry `name`. Returns the length of its file.
///
/// # Errors
/// Those of the system. Nothing is left then.
pub(super) fn write(
    directory: &Directory,
    name: &EntryName,
    facts: EntryFacts,
    parts: &[Bytes],
) -> io::Result<u64> {
    let place = name.place();
    let at = directory.subdirectory_made(&place)?;
    let random = RandomState::new().hash_one(std::process::id());
    let unfinished = format!("{}.{random:016x}{UNFINISHED}", place.file());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&at, &unfinished, flags, Mode::RUSR | Mode::WUSR)?;
    let written = fill(File::from(file), name, facts, parts).and_then(|len| {
        renameat(&at, &unfinished, &at, place.file())?;
        Ok(len)
    });
    if written.is_err() {
        directory::remove(&at, &unfinished);
    }
    if random.is_multiple_of(SWEPT_PART) {
        sweep(&at);
    }
    written
}

/// Writes header, payload and checksums.
fn fill(mut file: File, name: &EntryName, facts: EntryFacts, parts: &[Bytes]) -> io::Result<u64> {
    let payload_len: u64 = parts.iter().map(|part| part.len() as u64).sum();
    let header = name.header(facts, payload_len);
    let table = checksums(parts);
    file.write_all(&header)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.write_all(&table)?;
    Ok(header.len() as u64 + payload_len + table.len() as u64)
}

/// The checksums of the blocks of `parts`, which follow each other.
fn checksums(parts: &[Bytes]) -> Vec<u8> {
    let block_bytes = usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX);
    let mut table = Vec::new();
    let (mut checksum, mut filled) = (0, 0);
    for part in parts {
        let mut rest = &part[..];
        while !rest.is_empty() {
            let (taken, others) = rest.split_at(rest.len().min(block_bytes - filled));
            checksum = crc32c::crc32c_append(checksum, taken);
            filled += taken.len();
            if filled == block_bytes {
                table.extend(checksum.to_le_bytes());
                (checksum, filled) = (0, 0);
            }
            rest = others;
        }
    }
    if filled > 0 {
        table.extend(checksum.to_le_bytes());
    }
    table
}

/// Deletes the left-over files in a subdirectory.
fn sweep(at: &OwnedFd) {
    let Ok(names) = Dir::read_from(at) else {
        return;
    };
    for name in names.flatten() {
        if let Ok(name) = name.file_name().to_str()
            && let Ok(found) = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
        {
            sweep_one(at, name, &found);
        }
    }
}

/// Deletes a file of this name if it is left over. Returns whether it is an unfinished file at all.
pub(super) fn sweep_one(at: impl AsFd, name: &str, found: &Stat) -> bool {
    if !name.ends_with(UNFINISHED) {
        return false;
    }
    let seconds = u64::try_from(found.st_mtime).unwrap_or(0);
    let written = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let age = SystemTime::now().duration_since(written);
    if age.is_ok_and(|age| age > LEFT_OVER) {
        directory::remove(at, name);
    }
    true
}
