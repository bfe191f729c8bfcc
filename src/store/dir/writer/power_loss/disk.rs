//! The contents of a disk, before and after a loss of power.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::Path;

use crate::store::dir::writer::calls::recorded::{Call, Name};

/// Numbers that look random, always the same ones (`SplitMix64`).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}

/// The contents of a disk.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    root: u64,
    names: BTreeMap<Name, u64>,
    bytes: BTreeMap<u64, Vec<u8>>,
}

impl Disk {
    /// The contents of the directory at `path`.
    pub(crate) fn of(path: &Path) -> Disk {
        let root = fs::metadata(path).unwrap().ino();
        let mut disk = Disk {
            root,
            ..Disk::default()
        };
        disk.add(root, path);
        disk
    }

    fn add(&mut self, directory: u64, path: &Path) {
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            let inode = entry.ino();
            let name = entry.file_name().into_encoded_bytes();
            self.names.insert((directory, name), inode);
            if entry.file_type().unwrap().is_dir() {
                self.add(inode, &entry.path());
            } else {
                self.bytes.insert(inode, fs::read(entry.path()).unwrap());
            }
        }
    }

    /// Writes all objects as files below `path`.
    pub(crate) fn write_to(&self, path: &Path) {
        self.write_below(self.root, path);
    }

    fn write_below(&self, directory: u64, path: &Path) {
        fs::create_dir_all(path).unwrap();
        for ((_, name), inode) in self
            .names
            .range((directory, Vec::new())..(directory + 1, Vec::new()))
        {
            let path = path.join(OsStr::from_bytes(name));
            match self.bytes.get(inode) {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => self.write_below(*inode, &path),
            }
        }
    }

    /// The contents after `calls` and a loss of power.
    pub(crate) fn after_loss(&self, calls: &[Call], chance: &mut Chance) -> Disk {
        let (mut disk, mut synced) = (self.clone(), BTreeMap::new());
        for (at, call) in calls.iter().enumerate() {
            match call {
                Call::Names(names) => {
                    let is_synced = calls[at..].iter().any(|later| {
                        let of = |directory| *later == Call::SyncNames(directory);
                        names.iter().any(|((directory, _), _)| of(*directory))
                    });
                    if is_synced || chance.below(2) == 0 {
                        disk.set(names);
                    }
                }
                Call::Data {
                    inode,
                    bytes,
                    is_synced,
                } => {
                    if *is_synced {
                        synced.insert(*inode, bytes);
                    }
                    // Bytes that were added to synced bytes may be lost.
                    let safe = synced.get(inode).filter(|synced| bytes.starts_with(synced));
                    let left = torn(bytes, safe.map_or(0, |safe| safe.len()), chance);
                    disk.bytes.insert(*inode, left);
                }
                Call::SyncNames(_) => {}
            }
        }
        disk
    }

    /// The contents after `calls`, none of which is lost.
    pub(crate) fn after(&self, calls: &[Call]) -> Disk {
        let mut disk = self.clone();
        for call in calls {
            match call {
                Call::Names(names) => disk.set(names),
                Call::Data { inode, bytes, .. } => {
                    disk.bytes.insert(*inode, bytes.clone());
                }
                Call::SyncNames(_) => {}
            }
        }
        disk
    }

    fn set(&mut self, names: &[(Name, Option<u64>)]) {
        for (name, inode) in names {
            match inode {
                Some(inode) => self.names.insert(name.clone(), *inode),
                None => self.names.remove(name),
            };
        }
    }

    /// The bytes of the object at `key`.
    pub(crate) fn object(&self, key: &str) -> Option<&Vec<u8>> {
        let step = |directory: u64, name: &str| {
            let name = name.as_bytes().to_vec();
            self.names.get(&(directory, name)).copied()
        };
        let found = key.split('/').try_fold(self.root, step)?;
        Some(&self.bytes[&found])
    }
}

/// The bytes that may remain after a loss of power, if the first `n_safe` were synced.
fn torn(bytes: &[u8], n_safe: usize, chance: &mut Chance) -> Vec<u8> {
    let mut left = bytes.to_vec();
    let at = n_safe + chance.below(bytes.len() + 1 - n_safe);
    match chance.below(3) {
        0 => left.truncate(at),
        // The length was kept, and the bytes were lost.
        1 => left[at..].fill(0),
        _ => {}
    }
    left
}

/// The calls, one a line.
pub(crate) fn shown(calls: &[Call]) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let line = |(at, call): (usize, &Call)| match call {
        Call::Names(names) => {
            let name = |((directory, name), inode): &(Name, Option<u64>)| {
                format!(" {directory}/{} = {inode:?}", text(name))
            };
            format!("\n{at} names{}", names.iter().map(name).collect::<String>())
        }
        Call::SyncNames(directory) => format!("\n{at} sync names {directory}"),
        Call::Data {
            inode,
            bytes,
            is_synced,
        } => {
            format!("\n{at} data {inode} {} synced: {is_synced}", text(bytes))
        }
    };
    calls.iter().enumerate().map(line).collect()
}
