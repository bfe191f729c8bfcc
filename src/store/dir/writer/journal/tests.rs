use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use rustix::fs::FileType;

use super::*;
use crate::store::dir::writer::tests::{Fixture, fixture, key, writer_with};
use crate::store::{DirStore, Durability, Store, Symlinks, WaitingParts, WriterOptions};

const DOCUMENT: &[u8] = br#"{"zarr_format": 3}"#;

impl Fixture {
    /// A journal of `a/c/0` in which slot 3 was written, erased and written again, and slot 1 written.
    fn journal(&self) -> (Journal, Vec<JournalRecord>) {
        let mut journal = self.writer.begin_journal(&key("a/c/0"), DOCUMENT).unwrap();
        let old = PartContent::of(b"old");
        let mut records = vec![journal.append(3, Some(b"one"), old).unwrap()];
        records.push(journal.append(3, None, records[0].new).unwrap());
        records.push(journal.append(1, Some(b""), PartContent::Unknown).unwrap());
        records.push(
            journal
                .append(3, Some(&[7; 300]), PartContent::Nothing)
                .unwrap(),
        );
        (journal, records)
    }

    fn journals(&self) -> PathBuf {
        self.path.join(".zarr-mount/journal")
    }

    /// The only journal.
    fn only(&self) -> PathBuf {
        let mut names = fs::read_dir(self.journals()).unwrap();
        names.next().unwrap().unwrap().path()
    }

    fn left(&self) -> Vec<LeftJournal> {
        self.writer.left_journals().unwrap().0
    }
}

fn bytes(left: &LeftJournal, record: JournalRecord) -> Vec<u8> {
    let PartContent::Bytes { len, .. } = record.new else {
        panic!("{record:?}");
    };
    let mut bytes = vec![0; usize::try_from(len).unwrap()];
    let file = left.journal.file().open().unwrap();
    file.read_exact_at(&mut bytes, record.offset).unwrap();
    bytes
}

#[test]
fn records_are_read_after_the_end_of_the_writer() {
    let fixture = fixture(Durability::Close);
    let (journal, records) = fixture.journal();
    let len = journal.len();
    drop(journal);
    let [left] = &fixture.left()[..] else {
        panic!("one journal");
    };
    assert_eq!((&left.key, &*left.document), (&key("a/c/0"), DOCUMENT));
    assert_eq!(left.records, records);
    assert_eq!(left.journal.len(), len);
    assert_eq!(bytes(left, records[3]), [7; 300]);
    assert!(!left.only_erases());
    left.journal.remove();
    assert!(fixture.left().is_empty());
    fixture.writer.finish_journals();
    assert!(!fixture.journals().exists());
}

#[test]
fn journals_are_in_the_order_in_which_they_were_begun() {
    let fixture = fixture(Durability::Atomic);
    let keys = ["a/c/5", "a/c/0", "a/c/3", "a/c/5"].map(key);
    let journals = keys
        .each_ref()
        .map(|key| fixture.writer.begin_journal(key, b"").unwrap());
    assert_eq!(
        fixture
            .left()
            .into_iter()
            .map(|left| left.key)
            .collect::<Vec<_>>(),
        keys
    );
    drop(journals);
}

#[test]
fn a_journal_that_ends_anywhere_has_the_records_that_are_whole() {
    let fixture = fixture(Durability::Atomic);
    let (_journal, records) = fixture.journal();
    let path = fixture.only();
    let whole = fs::read(&path).unwrap();
    let head = HEAD_BYTES + "a/c/0".len() + DOCUMENT.len();
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let left = fixture.left();
        assert_eq!(left.len(), usize::from(len >= head), "{len} bytes");
        assert_eq!(path.exists(), len >= HEAD_BYTES, "{len} bytes");
        if let [left] = &left[..] {
            let n = records
                .iter()
                .filter(|record| record.end() <= len as u64)
                .count();
            assert_eq!(left.records, records[..n], "{len} bytes");
        }
    }
}

#[test]
fn a_journal_that_is_mostly_empty_space_is_not_read() {
    let fixture = fixture(Durability::Atomic);
    let (_journal, _) = fixture.journal();
    let path = fixture.only();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    let (left, unusable) = fixture.writer.left_journals().unwrap();
    assert!(left.is_empty() && unusable == 1 && path.exists());
    assert_eq!(
        parts_left(fixture.writer.root().unwrap(), &fixture.path).unwrap(),
        WaitingParts::new()
    );
    file.set_len(fs::metadata(&path).unwrap().len().min(1 << 20))
        .unwrap();
    assert_eq!(fixture.left().len(), 1);
}

#[test]
fn a_journal_of_a_directory_of_stores_is_found_by_the_writer_of_the_store() {
    let Fixture {
        _folder,
        path,
        writer,
    } = fixture(Durability::Atomic);
    let mut journal = writer.begin_journal(&key("a/c/0"), DOCUMENT).unwrap();
    let nothing = PartContent::Nothing;
    journal.append(3, Some(b"one"), nothing).unwrap();
    drop((journal, writer));
    fs::create_dir(path.join("b")).unwrap();
    let options = WriterOptions::default();
    let beside = writer_with(&path.join("b"), &options).unwrap();
    assert!(beside.left_journals().unwrap().0.is_empty());
    let inner = writer_with(&path.join("a"), &options).unwrap();
    let waiting = |path: PathBuf| DirStore::open(&path, Symlinks::Inside).unwrap().waiting();
    assert_eq!(waiting(path.join("a")).unwrap(), [(key("c/0"), 3)].into());
    assert!(waiting(path.join("b")).unwrap().is_empty());
    let (left, _) = inner.left_journals().unwrap();
    let [left] = &left[..] else {
        panic!("{left:?}");
    };
    assert_eq!(left.key, key("c/0"));
    assert_eq!(bytes(left, left.records[0]), b"one");
    left.journal.remove();
    inner.sync_removed_journals().unwrap();
    assert!(waiting(path.clone()).unwrap().is_empty());
}

#[test]
fn a_journal_without_bytes_was_only_begun() {
    let fixture = fixture(Durability::Atomic);
    let (_journal, _) = fixture.journal();
    let path = fixture.only();
    for (bytes, is_removed) in [(&[][..], true), (&[0; 300], true), (b"zmjx", false)] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(
            parts_left(fixture.writer.root().unwrap(), &fixture.path).unwrap(),
            WaitingParts::new()
        );
        assert!(path.exists());
        assert!(fixture.left().is_empty());
        assert_eq!(path.exists(), !is_removed, "{bytes:?}");
    }
}

#[test]
fn a_damaged_byte_ends_the_journal_before_its_record() {
    let fixture = fixture(Durability::Atomic);
    let (_journal, records) = fixture.journal();
    let path = fixture.only();
    let whole = fs::read(&path).unwrap();
    let head = HEAD_BYTES + "a/c/0".len() + DOCUMENT.len();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let left = fixture.left();
        assert_eq!(left.len(), usize::from(at >= head), "byte {at}");
        if let [left] = &left[..] {
            let n = records
                .iter()
                .filter(|record| record.end() <= at as u64)
                .count();
            assert_eq!(left.records, records[..n], "byte {at}");
        }
    }
}

#[test]
fn records_in_another_place_or_longer_than_the_file_are_none() {
    let fixture = fixture(Durability::Atomic);
    let (_journal, records) = fixture.journal();
    let path = fixture.only();
    let whole = fs::read(&path).unwrap();
    // The second record is copied over the third one, where its checksum does not match.
    let second =
        usize::try_from(records[0].end()).unwrap()..usize::try_from(records[1].end()).unwrap();
    let mut moved = whole[..second.end].to_vec();
    moved.extend(&whole[second]);
    fs::write(&path, &moved).unwrap();
    assert_eq!(fixture.left()[0].records, records[..2]);
    // The checksum is valid, but the end of the record overflows or is beyond the file.
    for len in [u64::MAX - 2, u64::MAX - 100, 1 << 62, 1000] {
        let at = HEAD_BYTES + "a/c/0".len() + DOCUMENT.len();
        let mut forged = whole.clone();
        forged[at + 8..at + 16].copy_from_slice(&len.to_le_bytes());
        let place = crc32c::crc32c(&(at as u64).to_le_bytes());
        let own = crc32c::crc32c_append(place, &forged[at..at + RECORD_BYTES - 4]);
        forged[at + RECORD_BYTES - 4..at + RECORD_BYTES].copy_from_slice(&own.to_le_bytes());
        fs::write(&path, &forged).unwrap();
        assert_eq!(fixture.left()[0].records, [], "{len}");
    }
}

#[test]
fn heads_that_lie_are_refused() {
    let fixture = fixture(Durability::Atomic);
    drop(fixture.journal());
    let path = fixture.only();
    let head = |key: &[u8], document_len: u32| {
        let mut head = MAGIC.to_vec();
        head.extend(u32::try_from(key.len()).unwrap().to_le_bytes());
        head.extend(document_len.to_le_bytes());
        let own = crc32c::crc32c_append(crc32c::crc32c(&head), key);
        head.extend(own.to_le_bytes());
        head.extend(key);
        head
    };
    fs::write(&path, head(b"a/c/0", 0)).unwrap();
    assert_eq!(fixture.left().len(), 1);
    let long = vec![b'k'; 1 << 17];
    for (key, document_len) in [
        (&b"../outside"[..], 0),
        (b"/a/c/0", 0),
        (b"a//c", 0),
        (b"", 0),
        (b"a/c/0", u32::MAX),
        (b"a/c/0", 1),
        (&long, 0),
    ] {
        fs::write(&path, head(key, document_len)).unwrap();
        let shown = String::from_utf8_lossy(&key[..key.len().min(20)]).into_owned();
        assert!(fixture.left().is_empty(), "{shown} {document_len}");
        assert!(path.exists());
    }
}

#[test]
fn links_and_what_is_no_plain_file_are_not_read() {
    let fixture = fixture(Durability::Atomic);
    drop(fixture.journal());
    let path = fixture.only();
    let outside = fixture.path.join("outside");
    // Another program can write to the file by a second name.
    fs::hard_link(&path, &outside).unwrap();
    assert!(fixture.left().is_empty());
    fs::remove_file(&path).unwrap();
    assert!(fixture.left().is_empty());
    symlink(&outside, &path).unwrap();
    assert!(fixture.left().is_empty());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(fixture.left().is_empty());
    fs::remove_dir(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    assert!(fixture.left().is_empty());
    fs::remove_file(&path).unwrap();
    fs::rename(&outside, &path).unwrap();
    assert_eq!(fixture.left().len(), 1);
    // Files with names of another form belong to other programs.
    fs::rename(&path, path.with_file_name("0123.journal")).unwrap();
    assert!(fixture.left().is_empty());
}

#[test]
fn the_directory_of_journals_may_be_no_link_and_may_be_removed() {
    let fixture = fixture(Durability::Atomic);
    drop(fixture.journal());
    fs::remove_dir_all(fixture.journals()).unwrap();
    // The directory is made again.
    drop(fixture.journal());
    assert_eq!(fixture.left().len(), 1);
    let elsewhere = fixture.path.join("elsewhere");
    fs::rename(fixture.journals(), &elsewhere).unwrap();
    symlink(&elsewhere, fixture.journals()).unwrap();
    assert!(fixture.writer.left_journals().is_err());
}

#[test]
fn only_the_owner_reads_a_journal() {
    let fixture = fixture(Durability::Atomic);
    let (_journal, _) = fixture.journal();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(fixture.only()), 0o600);
    assert_eq!(mode(fixture.journals()), 0o700);
}

#[test]
fn a_record_that_could_not_be_written_is_not_in_the_journal() {
    let fixture = fixture(Durability::Atomic);
    let (mut journal, mut records) = fixture.journal();
    // After this write through another descriptor, the file is as after a full disk: the record is
    // not whole.
    let begun = journal.len();
    let file = journal.file().open().unwrap();
    file.write_all_at(b"a record that was begun", begun)
        .unwrap();
    assert_eq!(fixture.left()[0].records, records);
    records.push(
        journal
            .append(9, Some(b"next"), PartContent::Nothing)
            .unwrap(),
    );
    assert_eq!(fixture.left()[0].records, records);
}

#[test]
fn chunks_that_end_with_their_checksum_are_distinguished() {
    let with_checksum = |bytes: &[u8]| [bytes, &crc32c::crc32c(bytes).to_le_bytes()].concat();
    let [one, two] = [[1; 64], [2; 64]].map(|bytes| with_checksum(&bytes));
    assert_eq!(crc32c::crc32c(&one), crc32c::crc32c(&two));
    assert_ne!(PartContent::of(&one), PartContent::of(&two));
}

#[test]
fn journals_are_in_the_staging_directory_if_there_is_one() {
    let fixture = fixture(Durability::Atomic);
    drop(fixture.journal());
    let staging = tempfile::tempdir().unwrap();
    let names = || -> Vec<PathBuf> {
        let entries = fs::read_dir(staging.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let options = WriterOptions {
        durability: Durability::Close,
        staging: Some(staging.path().to_owned()),
        ..WriterOptions::default()
    };
    let Fixture {
        _folder,
        path,
        writer,
    } = fixture;
    drop(writer);
    let writer = writer_with(&path, &options).unwrap();
    assert!(names().is_empty());
    let mut journal = writer.begin_journal(&key("a/c/1"), DOCUMENT).unwrap();
    journal
        .append(0, Some(b"new"), PartContent::Nothing)
        .unwrap();
    writer.sync_journals().unwrap();
    let [own] = names().try_into().unwrap();
    assert_eq!(
        fs::metadata(&own).unwrap().permissions().mode() & 0o777,
        0o700
    );
    drop((journal, writer));
    // Both journals are found, the older one first, also by the new name of the store.
    let moved = path.with_extension("moved");
    fs::rename(&path, &moved).unwrap();
    let writer = writer_with(&moved, &options).unwrap();
    let (left, _) = writer.left_journals().unwrap();
    let keys: Vec<_> = left.iter().map(|left| left.key.to_string()).collect();
    assert_eq!(keys, ["a/c/0", "a/c/1"]);
    for left in left {
        left.journal.remove();
    }
    writer.sync_removed_journals().unwrap();
    writer.finish_journals();
    assert!(names().is_empty());
    // Another store has another directory.
    let other = tempfile::tempdir().unwrap();
    let writer = writer_with(other.path(), &options).unwrap();
    drop(writer.begin_journal(&key("a/c/1"), DOCUMENT).unwrap());
    assert_ne!(names(), [own]);
}

/// The number of files below `folder` that this process has open.
fn n_open_below(folder: &std::path::Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let paths = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    paths.filter(|path| path.parent() == Some(folder)).count()
}

#[test]
fn few_of_many_journals_are_open_and_all_are_written_and_read() {
    let fixture = fixture(Durability::Atomic);
    let mut journals: Vec<_> = (0..200_u8)
        .map(|n| {
            let key = key(&format!("a/c/{n}"));
            fixture.writer.begin_journal(&key, DOCUMENT).unwrap()
        })
        .collect();
    for round in [1, 2] {
        for (n, journal) in (0_u8..).zip(&mut journals) {
            let appended = journal.append(round, Some(&[n; 9]), PartContent::Nothing);
            appended.unwrap();
        }
    }
    assert!((1..=64).contains(&n_open_below(&fixture.journals())));
    for (n, left) in (0_u8..).zip(&fixture.left()) {
        assert_eq!(left.records.len(), 2);
        assert_eq!(bytes(left, left.records[1]), [n; 9]);
    }
    assert!((1..=64).contains(&n_open_below(&fixture.journals())));
    for journal in &journals {
        journal.remove();
    }
    assert_eq!(n_open_below(&fixture.journals()), 0);
}

#[test]
fn a_file_in_the_place_of_a_journal_is_not_written() {
    let fixture = fixture(Durability::Atomic);
    let (mut journal, _) = fixture.journal();
    let path = fixture.only();
    let other = fixture
        .writer
        .begin_journal(&key("a/c/1"), DOCUMENT)
        .unwrap();
    let theirs = fixture
        .journals()
        .join(String::from_utf8(other.file().name.clone()).unwrap());
    for name in [&journal, &other].map(|journal| journal.file().name.clone()) {
        journal.file().directory.open.close(&name);
    }
    fs::rename(theirs, &path).unwrap();
    let before = fs::read(&path).unwrap();
    let refused = journal.append(1, Some(b"x"), PartContent::Nothing);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("another file"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), before);
}
