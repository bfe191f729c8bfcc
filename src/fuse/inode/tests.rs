//! Every transition of a number, and the effects of a table that forgets.

use std::sync::Arc;
use std::time::SystemTime;

use super::*;
use crate::store::Times;
use crate::view::VnodeKind;

const VNODE: VnodeId = VnodeId(7);
const A: u64 = 0xa;
const B: u64 = 0xb;
const C: u64 = 0xc;

const KEEP: Comparison = Comparison::FirstOpen(StaleCache::Nothing);
const DROP_ATTRIBUTES: Comparison = Comparison::FirstOpen(StaleCache::Attributes);
const DROP_ALL: Comparison = Comparison::FirstOpen(StaleCache::PagesAndAttributes);

fn versions() -> InodeVersions<Arc<u8>> {
    InodeVersions::new()
}

fn attributes(fingerprint: u64) -> VnodeAttributes {
    let never = SystemTime::UNIX_EPOCH;
    VnodeAttributes {
        kind: VnodeKind::File,
        size: 1,
        times: Times {
            atime: never,
            mtime: never,
            ctime: never,
        },
        mode: 0o444,
        uid: 0,
        gid: 0,
        fingerprint,
    }
}

fn open(versions: &InodeVersions<Arc<u8>>, ino: u64, fingerprint: u64) -> Comparison {
    versions.open(ino, attributes(fingerprint))
}

fn open_and_close(versions: &InodeVersions<Arc<u8>>, ino: u64, fingerprint: u64) -> Comparison {
    let comparison = open(versions, ino, fingerprint);
    assert_ne!(comparison, Comparison::Changed);
    assert!(versions.close(ino).is_some());
    comparison
}

#[test]
fn the_first_version_has_the_number_of_the_vnode() {
    let versions = versions();
    assert_eq!(versions.number_to_report(VNODE, A), VNODE.0);
    assert_eq!(versions.vnode(VNODE.0), Some(VNODE));
    assert_eq!(versions.forget(VNODE.0, 1), Some(VNODE));
}

#[test]
fn directories_have_no_versions() {
    let versions = versions();
    assert_eq!(versions.number_to_report(VNODE, 0), VNODE.0);
    assert!(versions.may_report(VNODE.0, 0));
    let table = versions.lock();
    assert_eq!((table.looked_up.len(), table.opened.len()), (0, 0));
}

#[test]
fn a_file_never_opened_has_a_number_for_each_version_too() {
    let versions = versions();
    let mut numbers = [A, B, C].map(|version| versions.number_to_report(VNODE, version));
    assert_eq!(numbers[0], VNODE.0);
    assert_eq!(versions.newest_number(VNODE), numbers[2]);
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(!versions.may_report(VNODE.0, B), "a handle may have it");
}

#[test]
fn the_first_open_drops_attributes_that_are_not_known() {
    let versions = versions();
    versions.number_to_report(VnodeId(2), A);
    versions.number_to_report(VnodeId(2), A);
    assert_eq!(open(&versions, 2, A), KEEP);
    versions.number_to_report(VnodeId(3), A);
    assert_eq!(
        open(&versions, 3, B),
        Comparison::Changed,
        "it stands for A"
    );
    assert_eq!(
        open(&versions, 4, A),
        DROP_ATTRIBUTES,
        "the kernel was told too long ago"
    );
}

#[test]
fn after_an_open_only_that_version_is_reported() {
    let versions = versions();
    open(&versions, VNODE.0, A);
    assert_ne!(
        versions.number_to_report(VNODE, B),
        VNODE.0,
        "before the mode is decided, too"
    );
    assert_eq!(open(&versions, VNODE.0, B), Comparison::Changed);
    assert!(
        versions.close(VNODE.0).is_some(),
        "what changed took no handle"
    );
}

#[test]
fn a_closed_file_keeps_its_pages_while_it_is_the_same() {
    let versions = versions();
    versions.number_to_report(VNODE, A);
    open_and_close(&versions, VNODE.0, A);
    assert_eq!(versions.number_to_report(VNODE, A), VNODE.0);
    assert_eq!(open(&versions, VNODE.0, B), Comparison::Changed);
    assert_eq!(open(&versions, VNODE.0, A), Comparison::Same);
}

#[test]
fn a_changed_file_gets_a_fresh_number() {
    let versions = versions();
    open(&versions, VNODE.0, A);
    let second = versions.number_to_report(VNODE, B);
    assert!(second >= FIRST_FRESH);
    assert_eq!(
        versions.number_to_report(VNODE, B),
        second,
        "as long as it is B"
    );
    assert_eq!(versions.newest_number(VNODE), second);
    assert_eq!(versions.vnode(second), Some(VNODE));
    assert_eq!(open_and_close(&versions, second, B), KEEP);
    let third = versions.number_to_report(VNODE, A);
    assert!(
        third != second && third != VNODE.0,
        "one number, one version"
    );
}

#[test]
fn a_number_of_a_handle_is_reported_for_its_version_only() {
    let versions = versions();
    assert!(versions.report_again(VNODE.0, VNODE, A), "not remembered");
    assert!(versions.report_again(VNODE.0, VNODE, A));
    assert!(!versions.report_again(VNODE.0, VNODE, B));
    let second = versions.number_to_report(VNODE, B);
    assert!(versions.report_again(second, VNODE, B), "not forgotten");
    versions.forget(second, 1);
    assert_eq!(versions.vnode(second), Some(VNODE), "one lookup is left");
    versions.forget(second, 1);
    assert_eq!(versions.vnode(second), None);

    assert_eq!(versions.recall(second), Some(VNODE));
    assert!(!versions.report_again(second, VNODE, C));
    assert!(versions.report_again(second, VNODE, B));
    assert_eq!(versions.vnode(second), Some(VNODE));
    assert_eq!(versions.number_to_report(VNODE, B), second);
    assert_eq!(versions.forget(second, 2), Some(VNODE));
    assert!(versions.lock().fresh.is_empty());
    assert!(versions.report_again(7, VnodeId(7), 0), "a directory");
    assert_eq!(versions.recall(versions.placeholder()), None);
}

#[test]
fn attributes_come_from_the_open_handles() {
    let versions = versions();
    assert!(versions.pinned_attributes(VNODE.0).is_none());
    open(&versions, VNODE.0, A);
    assert_eq!(versions.pinned_attributes(VNODE.0), Some(attributes(A)));
    assert!(versions.may_report(VNODE.0, A) && !versions.may_report(VNODE.0, B));
    versions.close(VNODE.0);
    assert!(versions.pinned_attributes(VNODE.0).is_none());
    assert!(
        !versions.may_report(VNODE.0, B),
        "the kernel may hold pages of A"
    );
}

#[test]
fn reported_attributes_are_remembered() {
    let versions = versions();
    assert!(versions.may_report(VNODE.0, A));
    assert_eq!(open(&versions, VNODE.0, A), KEEP);
}

#[test]
fn the_last_handle_ends_the_mode() {
    let versions = versions();
    assert!(versions.mode(VNODE.0).is_none());
    open(&versions, VNODE.0, A);
    assert!(versions.mode(VNODE.0).is_none(), "not decided yet");
    versions.set_mode(VNODE.0, ReadMode::Passthrough(Arc::new(3)));
    open(&versions, VNODE.0, A);
    assert!(versions.close(VNODE.0).is_none(), "one is left");
    assert!(matches!(versions.mode(VNODE.0), Some(ReadMode::Passthrough(b)) if *b == 3));
    assert!(versions.close(VNODE.0).is_some());
    assert!(versions.mode(VNODE.0).is_none());
    assert!(versions.close(VNODE.0).is_none(), "no handle left to close");
}

#[test]
fn forgetting_a_fresh_number_leads_back_to_the_vnode() {
    let versions = versions();
    open_and_close(&versions, VNODE.0, A);
    let second = versions.number_to_report(VNODE, B);
    versions.number_to_report(VNODE, B);
    assert_eq!(versions.forget(second, 1), Some(VNODE));
    assert_eq!(versions.newest_number(VNODE), second, "one lookup is left");
    assert_eq!(versions.forget(second, 1), Some(VNODE));
    assert_eq!(versions.vnode(second), None);
    assert_eq!(versions.newest_number(VNODE), VNODE.0);
    assert_eq!(
        versions.number_to_report(VNODE, A),
        VNODE.0,
        "A is back, with its pages"
    );
    assert_eq!(versions.forget(second, 1), None);
}

#[test]
fn forgetting_an_old_fresh_number_leaves_the_newer_one() {
    let versions = versions();
    open_and_close(&versions, VNODE.0, A);
    let second = versions.number_to_report(VNODE, B);
    open_and_close(&versions, second, B);
    let third = versions.number_to_report(VNODE, C);
    versions.forget(second, 1);
    assert_eq!(versions.newest_number(VNODE), third);
    versions.forget(third, 1);
    assert_eq!(versions.newest_number(VNODE), VNODE.0);
    let table = versions.lock();
    assert!(table.fresh.is_empty() && table.newest.is_empty());
    assert!(!table.forgot_opened, "the kernel forgot, not we");
}

#[test]
fn a_release_overtaken_by_forget_leaves_nothing() {
    let versions = versions();
    open_and_close(&versions, VNODE.0, A);
    let second = versions.number_to_report(VNODE, B);
    open(&versions, second, B);
    versions.forget(second, 1);
    assert!(versions.close(second).is_some());
    assert_eq!(
        versions.lock().opened.len(),
        1,
        "that of the vnode's own number"
    );
}

#[test]
fn placeholders_stand_for_nothing() {
    let versions = versions();
    let (one, other) = (versions.placeholder(), versions.placeholder());
    assert_ne!(one, other);
    assert_eq!(versions.vnode(one), None);
    assert_eq!(versions.forget(one, 1), None);
}

#[test]
fn after_forgetting_a_closed_file_pages_are_dropped() {
    let versions = InodeVersions::<Arc<u8>>::remembering(NonZeroUsize::new(2).unwrap());
    for ino in [1, 2, 2, 1] {
        versions.number_to_report(VnodeId(ino), A);
        open_and_close(&versions, ino, A);
    }
    assert!(!versions.lock().forgot_opened, "both fit");
    open_and_close(&versions, 3, A);
    assert!(versions.lock().forgot_opened);
    assert_eq!(
        versions.number_to_report(VnodeId(2), B),
        2,
        "open drops what is left of A"
    );
    assert_eq!(open(&versions, 1, A), Comparison::Same);
    assert_eq!(open(&versions, 2, B), DROP_ALL);
}

#[test]
fn after_forgetting_a_lookup_attributes_are_dropped() {
    let versions = InodeVersions::<Arc<u8>>::remembering(NonZeroUsize::new(2).unwrap());
    for ino in [1, 2, 3] {
        versions.number_to_report(VnodeId(ino), A);
    }
    assert_eq!(open(&versions, 1, A), DROP_ATTRIBUTES);
    assert_eq!(open(&versions, 3, A), KEEP);
}

#[test]
fn open_files_are_not_forgotten() {
    let versions = InodeVersions::<Arc<u8>>::remembering(NonZeroUsize::new(2).unwrap());
    open(&versions, 1, A);
    for ino in 2..10 {
        open_and_close(&versions, ino, A);
    }
    assert_eq!(open(&versions, 1, A), Comparison::Same);
    assert_eq!(open(&versions, 1, B), Comparison::Changed);
}
