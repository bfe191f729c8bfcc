//! Files in memory, served by FUSE with nothing behind it: the floor of any mount.
//!
//! usage: `fuse_floor MOUNTPOINT [--no-open | --write] DIRECTORY:COUNT:BYTES...`
//!
//! Each directory has COUNT files of BYTES bytes, named 0, 1, 2 and so on. Two threads, each with its own descriptor of
//! the device; pages are kept; times are long. With `--no-open`, the kernel sends no request for an open. With
//! `--write`, files can be emptied and written: each thread copies what arrives to a buffer of its own, and forgets it,
//! so what is read does not change. The program ends when its mount is unmounted.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

const TTL: Duration = Duration::from_secs(4000);
const READ_AHEAD_KIB: &str = "1024";
const THREADS: usize = 2;
/// The longest write request of the kernel. The mount asks for the same length.
const MAX_WRITE_BYTES: u32 = 1 << 20;
/// A directory is number 2 and up; its files have that number here, and their own below.
const SHIFT: u32 = 32;

thread_local! {
    /// The file that was written last, by a thread that serves.
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Directory {
    name: String,
    count: u64,
    bytes: u64,
}

struct Floor {
    directories: Vec<Directory>,
    content: Vec<u8>,
    opens: bool,
    writes: bool,
}

/// The file or directory that an inode number stands for.
enum Place<'f> {
    Root,
    Directory(&'f Directory),
    File(&'f Directory),
}

impl Floor {
    fn place(&self, ino: u64) -> Option<Place<'_>> {
        if ino == 1 {
            return Some(Place::Root);
        }
        let (above, below) = (ino >> SHIFT, ino & ((1 << SHIFT) - 1));
        let number = if above == 0 { below } else { above };
        let directory = self
            .directories
            .get(usize::try_from(number.checked_sub(2)?).ok()?)?;
        if above == 0 {
            return Some(Place::Directory(directory));
        }
        (below < directory.count).then_some(Place::File(directory))
    }

    fn child(&self, parent: u64, name: &str) -> Option<u64> {
        match self.place(parent)? {
            Place::Root => {
                let at = self.directories.iter().position(|d| d.name == name)?;
                Some(at as u64 + 2)
            }
            Place::Directory(directory) => {
                let n: u64 = name.parse().ok()?;
                (n < directory.count).then_some(parent << SHIFT | n)
            }
            Place::File(_) => None,
        }
    }

    /// The entry at `offset` of a directory: number and name.
    fn entry(&self, directory: u64, offset: u64) -> Option<(u64, String)> {
        match self.place(directory)? {
            Place::Root => {
                let found = self.directories.get(usize::try_from(offset).ok()?)?;
                Some((offset + 2, found.name.clone()))
            }
            Place::Directory(found) => {
                (offset < found.count).then(|| (directory << SHIFT | offset, offset.to_string()))
            }
            Place::File(_) => None,
        }
    }

    fn attr(&self, ino: u64) -> Option<FileAttr> {
        let (kind, size) = match self.place(ino)? {
            Place::File(directory) => (FileType::RegularFile, directory.bytes),
            _ => (FileType::Directory, 0),
        };
        Some(FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: match kind {
                FileType::Directory => 0o555,
                _ if self.writes => 0o644,
                _ => 0o444,
            },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        })
    }
}

impl Filesystem for Floor {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_EXPLICIT_INVAL_DATA;
        if !self.opens {
            wanted |= InitFlags::FUSE_NO_OPEN_SUPPORT;
        }
        if self.writes {
            // Without it, O_TRUNC would be a request of its own after the open.
            wanted |= InitFlags::FUSE_ATOMIC_O_TRUNC;
            let _ = config.set_max_write(MAX_WRITE_BYTES);
        }
        config
            .add_capabilities(wanted)
            .map_err(|lacking| io::Error::other(format!("the kernel lacks {lacking:?}")))
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let child = name.to_str().and_then(|name| self.child(parent.0, name));
        match child.and_then(|ino| self.attr(ino)) {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(ino.0) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if self.opens {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
        } else {
            reply.error(Errno::ENOSYS);
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(Place::File(directory)) = self.place(ino.0) else {
            return reply.error(Errno::EISDIR);
        };
        let end = directory.bytes.min(offset + u64::from(size));
        let range = usize::try_from(offset.min(end))
            .ok()
            .zip(usize::try_from(end).ok());
        match range.and_then(|(start, end)| self.content.get(start..end)) {
            Some(bytes) => reply.data(bytes),
            None => reply.error(Errno::EINVAL),
        }
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(Place::File(directory)) = self.place(ino.0) else {
            return reply.error(Errno::EISDIR);
        };
        match copy(data, offset, directory.bytes) {
            Some(n) => reply.written(n),
            None => reply.error(Errno::EFBIG),
        }
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // The error that is the default would end these requests, which a mount has to answer.
        if self.writes {
            reply.ok();
        } else {
            reply.error(Errno::ENOSYS);
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        mut offset: u64,
        mut reply: ReplyDirectory,
    ) {
        while let Some((child, name)) = self.entry(ino.0, offset) {
            offset += 1;
            let kind = if ino.0 == 1 {
                FileType::Directory
            } else {
                FileType::RegularFile
            };
            if reply.add(INodeNo(child), offset, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        mut offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        while let Some((child, name)) = self.entry(ino.0, offset) {
            offset += 1;
            let Some(attr) = self.attr(child) else { break };
            if reply.add(INodeNo(child), offset, name, &TTL, &attr, Generation(0)) {
                break;
            }
        }
        reply.ok();
    }
}

/// Copies what was written at `offset` of a file of `bytes`; `None` beyond its end.
fn copy(data: &[u8], offset: u64, bytes: u64) -> Option<u32> {
    let (start, len) = (usize::try_from(offset).ok()?, usize::try_from(bytes).ok()?);
    let range = start..start.checked_add(data.len())?;
    WRITTEN.with_borrow_mut(|buffer| {
        buffer.resize(len, 0);
        buffer.get_mut(range)?.copy_from_slice(data);
        u32::try_from(data.len()).ok()
    })
}

fn parse(argument: &str) -> Option<Directory> {
    let mut parts = argument.split(':');
    Some(Directory {
        name: parts.next()?.to_owned(),
        count: parts.next()?.parse().ok()?,
        bytes: parts.next()?.parse().ok()?,
    })
}

/// Reads of up to 1 MiB, where this process may ask for them.
fn widen_read_ahead(mountpoint: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(mountpoint)?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    std::fs::write(
        format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
        READ_AHEAD_KIB,
    )
}

fn main() -> io::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let opens = !arguments.iter().any(|a| a == "--no-open");
    let writes = arguments.iter().any(|a| a == "--write");
    arguments.retain(|a| a != "--no-open" && a != "--write");
    let mountpoint = PathBuf::from(arguments.first().ok_or(io::ErrorKind::InvalidInput)?);
    let directories: Option<Vec<Directory>> = arguments[1..].iter().map(|a| parse(a)).collect();
    let directories = directories.ok_or(io::ErrorKind::InvalidInput)?;
    let largest = directories.iter().map(|d| d.bytes).max().unwrap_or(0);
    let floor = Floor {
        content: (0..largest).map(|n| (n / 7 % 251) as u8).collect(),
        directories,
        opens,
        writes,
    };
    let mut config = fuser::Config::default();
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    config.mount_options = vec![
        if writes {
            fuser::MountOption::RW
        } else {
            fuser::MountOption::RO
        },
        fuser::MountOption::FSName("floor".into()),
    ];
    let session = fuser::Session::new(floor, &mountpoint, &config)?;
    let serving = std::thread::spawn(move || session.run());
    if let Err(error) = widen_read_ahead(&mountpoint) {
        eprintln!("read-ahead stays as it is: {error}");
    }
    serving.join().map_err(|_| io::Error::other("a panic"))?
}
