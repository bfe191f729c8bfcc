//! Copies bytes from one file to another, within the kernel where it can do that.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::fs::copy_file_range;
use rustix::io::{Errno, pread};

/// Bytes that are copied through memory at a time.
const STEP: usize = 1 << 16;

/// Copies `len` bytes from a place in one file to a place in another one.
///
/// # Errors
/// Those of the system calls; [`ErrorKind::UnexpectedEof`] when the first file ends before the range does.
pub fn copy_range(
    (from, mut at): (impl AsFd, u64),
    (to, mut into): (&File, u64),
    len: u64,
) -> Result<()> {
    let end = at.saturating_add(len);
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(usize::MAX).min(1 << 30);
        match copy_file_range(&from, Some(&mut at), to, Some(&mut into), most) {
            Ok(0) => return Err(Error::from(ErrorKind::UnexpectedEof)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
                return copy_by_hand((&from, at), (to, into), end - at);
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Like [`copy_range`], through memory.
fn copy_by_hand(
    (from, mut at): (impl AsFd, u64),
    (to, mut into): (&File, u64),
    len: u64,
) -> Result<()> {
    let end = at.saturating_add(len);
    let mut buffer = vec![0; STEP];
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(usize::MAX).min(STEP);
        let read = pread(&from, &mut buffer[..most], at)?;
        if read == 0 {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
        to.write_all_at(&buffer[..read], into)?;
        (at, into) = (at + read as u64, into + read as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_copied_either_way() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("from");
        let bytes: Vec<u8> = (0..200_000_u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let from = File::open(&path).unwrap();
        for is_by_hand in [false, true] {
            let to = File::create_new(directory.path().join(format!("{is_by_hand}"))).unwrap();
            let copy = |at, into, len| {
                if is_by_hand {
                    copy_by_hand((&from, at), (&to, into), len)
                } else {
                    copy_range((&from, at), (&to, into), len)
                }
            };
            copy(1000, 10, 150_000).unwrap();
            let name = directory.path().join(format!("{is_by_hand}"));
            let found = std::fs::read(name).unwrap();
            assert_eq!(found[10..], bytes[1000..151_000]);
            let short = copy(199_999, 0, 2).unwrap_err();
            assert_eq!(short.kind(), ErrorKind::UnexpectedEof);
        }
    }
}
