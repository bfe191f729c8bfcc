//! Random operations on a mount.

use proptest::prelude::*;

use zarr_mount::store::RenameMode;
use zarr_mount::view::HandleAccess;

use crate::codecs::{ChunkCodec, FILL, LEN};

/// The number of files that operations choose from, at most.
pub(crate) const FILES: usize = 4;

/// A byte string that shrinks to few bytes, all alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) first: u8,
    pub(crate) step: u8,
    pub(crate) len: usize,
}

impl Text {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut next = self.first;
        let mut bytes = Vec::new();
        for _ in 0..self.len {
            bytes.push(next);
            next = next.wrapping_add(self.step);
        }
        bytes
    }
}

/// How a new file gets the name of an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placing {
    Rename(RenameMode),
    Link,
}

/// One operation. `file` and `handle` are the numbers of a file and of an open handle, modulo their
/// counts.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Open {
        file: usize,
        access: HandleAccess,
        is_cut: bool,
    },
    Write {
        handle: usize,
        offset: usize,
        text: Text,
    },
    SetLen {
        handle: usize,
        len: usize,
    },
    Read {
        handle: usize,
        offset: usize,
    },
    /// As close(2) of a duplicate, by the process that opened the file or by a child of it.
    Flush {
        handle: usize,
        is_by_child: bool,
    },
    Sync {
        handle: usize,
    },
    Close {
        handle: usize,
    },
    Touch {
        handle: usize,
    },
    Truncate {
        file: usize,
        len: usize,
    },
    Unlink {
        file: usize,
    },
    /// A new file is written beside the old one and takes its name.
    Place {
        file: usize,
        text: Text,
        placing: Placing,
    },
    /// A file gets the name of another one.
    Move {
        file: usize,
        to: usize,
        placing: Placing,
    },
    Document {
        n: u8,
        is_whole: bool,
    },
    SyncDirectory,
    OutsiderReplaces {
        file: usize,
        text: Text,
    },
    OutsiderDeletes {
        file: usize,
    },
    /// The mount ends as it should, and is made anew.
    Remount,
    /// The mount ends at once, and is made anew.
    Crash,
}

fn text(len: impl Strategy<Value = usize>) -> impl Strategy<Value = Text> {
    let step = prop_oneof![Just(0), Just(1), 0..8_u8];
    let first = prop_oneof![Just(FILL), any::<u8>()];
    (first, step, len).prop_map(|(first, step, len)| Text { first, step, len })
}

fn placing() -> impl Strategy<Value = Placing> {
    prop_oneof![
        3 => Just(Placing::Rename(RenameMode::Replace)),
        1 => Just(Placing::Rename(RenameMode::Keep)),
        1 => Just(Placing::Link),
    ]
}

/// An operation.
pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    use Operation as O;
    let file = || 0..FILES;
    let handle = || 0..6_usize;
    let len = || prop_oneof![3 => Just(LEN), 1 => Just(0), 2 => 1..LEN, 1 => Just(LEN + 3)];
    let access = prop_oneof![
        2 => Just(HandleAccess::ReadsAndWrites),
        2 => Just(HandleAccess::Writes),
        1 => Just(HandleAccess::Reads),
    ];
    let written = prop_oneof![
        2 => (Just(0), text(Just(LEN))),
        3 => (0..LEN, text(1..6_usize)),
        1 => (0..2 * LEN, text(1..LEN)),
    ];
    prop_oneof![
        8 => (file(), access, any::<bool>()).prop_map(|(file, access, is_cut)| O::Open { file, access, is_cut }),
        10 => (handle(), written).prop_map(|(handle, (offset, text))| O::Write { handle, offset, text }),
        3 => (handle(), len()).prop_map(|(handle, len)| O::SetLen { handle, len }),
        3 => (handle(), 0..LEN).prop_map(|(handle, offset)| O::Read { handle, offset }),
        3 => (handle(), any::<bool>()).prop_map(|(handle, is_by_child)| O::Flush { handle, is_by_child }),
        2 => handle().prop_map(|handle| O::Sync { handle }),
        6 => handle().prop_map(|handle| O::Close { handle }),
        1 => handle().prop_map(|handle| O::Touch { handle }),
        1 => (file(), len()).prop_map(|(file, len)| O::Truncate { file, len }),
        2 => file().prop_map(|file| O::Unlink { file }),
        3 => (file(), text(len()), placing()).prop_map(|(file, text, placing)| O::Place { file, text, placing }),
        2 => (file(), file(), placing()).prop_map(|(file, to, placing)| O::Move { file, to, placing }),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(n, is_whole)| O::Document { n, is_whole }),
        1 => Just(O::SyncDirectory),
        2 => (file(), text(Just(LEN))).prop_map(|(file, text)| O::OutsiderReplaces { file, text }),
        1 => file().prop_map(|file| O::OutsiderDeletes { file }),
        1 => Just(O::Remount),
        1 => Just(O::Crash),
    ]
}

/// A budget that is never full.
pub(crate) const ROOMY: u64 = 16 << 20;

/// The array and the mount of a sequence of operations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The codec of the array.
    pub(crate) codec: ChunkCodec,
    /// The memory budget of the mount, in bytes.
    pub(crate) budget: u64,
}

/// A setting, and the operations in it.
pub(crate) fn script(longest: usize) -> impl Strategy<Value = (Setting, Vec<Operation>)> {
    let codec = prop::sample::select(ChunkCodec::ALL.as_slice());
    // Drafts are in memory if they are at most half of the budget, and otherwise in files.
    let budget = prop_oneof![Just(ROOMY), Just(2 * LEN as u64 - 1)];
    let setting = (codec, budget).prop_map(|(codec, budget)| Setting { codec, budget });
    (setting, prop::collection::vec(operation(), 1..longest))
}
