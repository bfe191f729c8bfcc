//! Sequences of calls whose results once differed from the model.

use zarr_mount::store::RenameMode;
use zarr_mount::view::{HandleAccess, ViewKind};

use crate::codecs::{ChunkCodec, LEN};
use crate::operations::{Operation, Placing, ROOMY, Setting, Text};
use crate::run::Run;

fn open(file: usize, access: HandleAccess, is_cut: bool) -> Operation {
    Operation::Open {
        file,
        access,
        is_cut,
    }
}

fn full(first: u8) -> Text {
    Text {
        first,
        step: 0,
        len: LEN,
    }
}

fn run(kind: ViewKind, operations: &[Operation]) {
    let setting = Setting {
        codec: ChunkCodec::Plain,
        budget: ROOMY,
    };
    Run::new(kind, setting).run(operations);
}

#[test]
fn unlink_removes_what_another_program_has_stored_since_the_file_was_made() {
    let replaced = Operation::OutsiderReplaces {
        file: 0,
        text: full(1),
    };
    let unlinked = Operation::Unlink { file: 0 };
    let opened = open(0, HandleAccess::ReadsAndWrites, true);
    run(ViewKind::Chunks, &[opened, replaced, unlinked]);
}

#[test]
fn unlink_removes_a_written_file_whose_object_is_gone() {
    let placed = Operation::Place {
        file: 0,
        text: full(1),
        placing: Placing::Rename(RenameMode::Replace),
    };
    let opened = open(0, HandleAccess::ReadsAndWrites, true);
    let deleted = Operation::OutsiderDeletes { file: 0 };
    let unlinked = Operation::Unlink { file: 0 };
    run(ViewKind::Keys, &[placed, opened, deleted, unlinked]);
}

#[test]
fn a_chunk_without_a_name_is_read_after_its_times_were_set() {
    let placed = |first| Operation::Place {
        file: 0,
        text: full(first),
        placing: Placing::Rename(RenameMode::Replace),
    };
    let opened = open(0, HandleAccess::Reads, false);
    let touched = Operation::Touch { handle: 0 };
    let read = Operation::Read {
        handle: 0,
        offset: 0,
    };
    run(
        ViewKind::Chunks,
        &[placed(1), opened, placed(2), touched, read],
    );
}

#[test]
fn a_directory_is_synced_with_files_that_were_replaced_while_they_were_open() {
    let replaced = Operation::OutsiderReplaces {
        file: 0,
        text: full(1),
    };
    let [first, second] = [0, 1].map(|_| open(0, HandleAccess::Writes, false));
    let written = Operation::Write {
        handle: 0,
        offset: 0,
        text: full(2),
    };
    let synced = Operation::SyncDirectory;
    run(
        ViewKind::Chunks,
        &[first, replaced, second, written, synced],
    );
}

#[test]
fn truncate_is_refused_where_the_chunk_is_only_read() {
    let opened = open(0, HandleAccess::Reads, false);
    let cut = Operation::Truncate { file: 0, len: 5 };
    run(ViewKind::Chunks, &[opened, cut]);
}

/// The file stays the opened one if the encoded bytes of the other program are the same.
#[test]
fn an_inner_chunk_is_current_where_another_program_stores_equal_bytes() {
    for codec in ChunkCodec::ALL {
        let placed = Operation::Place {
            file: 1,
            text: full(1),
            placing: Placing::Rename(RenameMode::Replace),
        };
        let opened = open(1, HandleAccess::ReadsAndWrites, false);
        let replaced = Operation::OutsiderReplaces {
            file: 1,
            text: full(1),
        };
        let cleared = open(1, HandleAccess::Writes, true);
        let written = Operation::Write {
            handle: 0,
            offset: 8,
            text: Text {
                first: 3,
                step: 0,
                len: 5,
            },
        };
        let setting = Setting {
            codec,
            budget: ROOMY,
        };
        Run::of_shard(setting).run(&[placed, opened, replaced, cleared, written]);
    }
}
