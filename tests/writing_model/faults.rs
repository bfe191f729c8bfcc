//! Calls that are known not to do what the model says. Random sequences leave them out, so that they
//! find others; each has a test here, which is ignored until the fault is gone.

use zarr_mount::store::RenameMode;
use zarr_mount::view::{HandleAccess, ViewKind};

use crate::codecs::{ChunkCodec, LEN};
use crate::model::Model;
use crate::operations::{Operation, Placing, Text};
use crate::run::Run;

/// Whether the operation would show one of the faults.
pub(crate) fn shows_fault(model: &Model, operation: &Operation) -> bool {
    match operation {
        Operation::Unlink { file } => model.has_draft_of_changed(*file),
        Operation::Truncate { file, .. } => model.is_only_read(*file),
        Operation::SyncDirectory | Operation::Remount => model.has_draft_that_left(),
        Operation::Touch { handle } => {
            let at = handle.checked_rem(model.handles.len());
            at.is_some_and(|at| model.is_nameless_chunk(at))
        }
        _ => false,
    }
}

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
    Run::new(kind, ChunkCodec::Plain).run_all(operations);
}

#[test]
#[ignore = "the object of another program stays when a new file is removed"]
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
#[ignore = "it says ENOENT"]
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
#[ignore = "reads say ESTALE"]
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
#[ignore = "what was written is neither saved nor refused"]
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
#[ignore = "it says that all is well, and the chunk is as it was when the reader closes it"]
fn truncate_is_refused_where_the_chunk_is_only_read() {
    let opened = open(0, HandleAccess::Reads, false);
    let cut = Operation::Truncate { file: 0, len: 5 };
    run(ViewKind::Chunks, &[opened, cut]);
}
