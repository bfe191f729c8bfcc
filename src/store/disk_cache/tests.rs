use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::entry::BLOCK_BYTES;
use super::*;

const LIMIT: u64 = 1 << 30;

/// A time long ago, so that entries differ in their last use.
fn hours_ago(hours: u64) -> SystemTime {
    SystemTime::now() - Duration::from_secs(3600 * hours)
}

struct Scene {
    directory: TempDir,
    cache: Arc<DiskCache>,
}

impl Scene {
    fn new(limit: u64) -> Scene {
        let directory = TempDir::new().unwrap();
        let cache = DiskCache::open(directory.path(), limit).unwrap().unwrap();
        Scene { directory, cache }
    }

    /// The same directory in another process.
    fn again(self) -> Scene {
        let Scene { directory, cache } = self;
        drop(cache);
        let cache = DiskCache::open(directory.path(), LIMIT).unwrap().unwrap();
        Scene { directory, cache }
    }

    fn file(&self, name: &EntryName) -> PathBuf {
        let place = name.place();
        let inner = self.directory.path().join("zarr-mount-1");
        inner.join(place.subdirectory()).join(place.file())
    }

    fn files(&self) -> Vec<PathBuf> {
        let inner = self.directory.path().join("zarr-mount-1");
        let subdirectories = fs::read_dir(inner).unwrap().map(|it| it.unwrap().path());
        let mut files: Vec<PathBuf> = subdirectories
            .filter(|path| path.is_dir())
            .flat_map(|path| fs::read_dir(path).unwrap().map(|it| it.unwrap().path()))
            .collect();
        files.sort();
        files
    }

    fn put(&self, name: &EntryName, parts: &[Bytes]) {
        self.cache.put(name, facts(name), parts);
    }

    fn read(&self, name: &EntryName) -> Option<Vec<u8>> {
        let mut buf = vec![0; usize::try_from(name.len()).unwrap()];
        let is_read = self.cache.read_into(name, facts(name), 0, &mut buf);
        is_read.then_some(buf)
    }

    fn counted(&self, name: &str) -> u64 {
        let shown = self.cache.statistics();
        shown
            .into_iter()
            .find(|(shown, _)| *shown == name)
            .unwrap()
            .1
    }
}

fn named(key: &str, range: std::ops::Range<u64>) -> EntryName {
    EntryName {
        kind: EntryKind::Range,
        origin: Origin {
            endpoint: "s3 aws ".into(),
            bucket: "b".into(),
        },
        key: key.to_owned(),
        tag: "\"1\"".to_owned(),
        version: String::new(),
        range,
    }
}

fn facts(name: &EntryName) -> EntryFacts {
    EntryFacts {
        validated_ms: 5,
        object_bytes: name.range.end,
        modified_s: 7,
    }
}

fn bytes(len: u64) -> Bytes {
    let byte = |at: u64| u8::try_from(at * 7 % 251).unwrap();
    (0..len).map(byte).collect::<Vec<u8>>().into()
}

#[test]
fn an_entry_is_there_for_each_process_and_for_its_own_name_alone() {
    let scene = Scene::new(LIMIT);
    let len = 3 * BLOCK_BYTES + 100;
    let (name, all) = (named("a", 10..10 + len), bytes(len));
    assert_eq!(scene.read(&name), None);
    scene.put(
        &name,
        &[all.slice(..1), all.slice(1..70_000), all.slice(70_000..)],
    );
    let scene = scene.again();
    assert_eq!(scene.read(&name).unwrap(), all);
    let file = fs::metadata(scene.file(&name)).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    let mut others = vec![name.clone(); 7];
    others[0].key = "b".to_owned();
    others[1].tag = "\"2\"".to_owned();
    others[2].version = "1".to_owned();
    others[3].range = 10..9 + len;
    others[4].range = 11..11 + len;
    others[5].kind = EntryKind::Answer;
    others[6].origin.endpoint = "s3 http://h".into();
    for other in &others {
        assert_eq!(scene.read(other), None, "{other:?}");
    }
    let mut buf = vec![0; 5];
    for (offset, expected) in [
        (0, true),
        (BLOCK_BYTES - 2, true),
        (len - 5, true),
        (len - 4, false),
        (u64::MAX, false),
    ] {
        let is_read = scene.cache.read_into(&name, facts(&name), offset, &mut buf);
        assert_eq!(is_read, expected, "{offset}");
        if expected {
            let at = usize::try_from(offset).unwrap();
            assert_eq!(buf, all[at..at + 5]);
        } else {
            // No request for this entry has such an offset, so the entry was removed, and is put again.
            scene.put(&name, std::slice::from_ref(&all));
        }
    }
    let mut of_later = facts(&name);
    of_later.modified_s += 1;
    assert!(
        !scene.cache.read_into(&name, of_later, 0, &mut buf),
        "of another version"
    );
}

#[test]
fn no_changed_bit_is_a_wrong_byte() {
    let scene = Scene::new(LIMIT);
    let (name, all) = (named("a", 0..40), bytes(40));
    scene.put(&name, std::slice::from_ref(&all));
    let file = scene.file(&name);
    let sound = fs::read(&file).unwrap();
    for bit in 0..sound.len() * 8 {
        let mut damaged = sound.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let ways: [&dyn Fn() -> bool; 3] = [
            &|| scene.read(&name).is_some(),
            &|| scene.cache.read_into(&name, facts(&name), 5, &mut [0; 35]),
            &|| scene.cache.read(&name).is_some(),
        ];
        for (number, reads) in ways.into_iter().enumerate() {
            fs::write(&file, &damaged).unwrap();
            assert!(!reads(), "bit {bit}, way {number}");
            assert!(!file.exists(), "bit {bit}, way {number}: it is deleted");
        }
    }
    assert_eq!(scene.counted("disk_corrupt"), sound.len() as u64 * 8 * 3);
    for len in (0..sound.len()).chain([sound.len() + 1]) {
        let mut cut = sound.clone();
        cut.resize(len, 0);
        fs::write(&file, cut).unwrap();
        assert_eq!(scene.read(&name), None, "{len} bytes");
    }
    fs::write(&file, &sound).unwrap();
    assert_eq!(scene.read(&name).unwrap(), all);
    assert_eq!(scene.cache.read(&name).unwrap(), (facts(&name), all));
}

#[test]
fn flipped_bits_in_a_thousand_files_are_found() {
    let scene = Scene::new(LIMIT);
    let mut seed = 1_u64;
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % most
    };
    for number in 0..1000 {
        let len = if number % 10 == 0 {
            3 * BLOCK_BYTES
        } else {
            100
        };
        let name = named(&format!("k/{number}"), 0..len);
        scene.put(&name, &[bytes(len)]);
        let file = scene.file(&name);
        let mut damaged = fs::read(&file).unwrap();
        let at = next(damaged.len());
        damaged[at] ^= 1 << next(8);
        fs::write(&file, damaged).unwrap();
        assert_eq!(scene.read(&name), None, "{number}: byte {at}");
    }
    assert_eq!(scene.counted("disk_corrupt"), 1000);
    assert_eq!(scene.files(), Vec::<PathBuf>::new());
}

#[test]
fn files_that_were_swapped_are_noticed() {
    let scene = Scene::new(LIMIT);
    let names: Vec<EntryName> = (0..20).map(|n| named(&format!("k/{n}"), 0..100)).collect();
    for name in &names {
        scene.put(name, &[bytes(100)]);
    }
    for pair in names.chunks_exact(2) {
        let (a, b) = (scene.file(&pair[0]), scene.file(&pair[1]));
        let spare = a.with_extension("spare");
        fs::rename(&a, &spare).unwrap();
        fs::rename(&b, &a).unwrap();
        fs::rename(&spare, &b).unwrap();
    }
    for name in &names {
        assert_eq!(scene.read(name), None);
    }
    assert_eq!(scene.counted("disk_corrupt"), 20);
}

#[test]
fn entries_that_are_no_plain_files_are_not_followed() {
    let scene = Scene::new(LIMIT);
    let name = named("a", 0..100);
    scene.put(&name, &[bytes(100)]);
    let file = scene.file(&name);
    let elsewhere = scene.directory.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_eq!(scene.read(&name), None, "a link");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(scene.read(&name), None, "a directory");
    scene.put(&name, &[bytes(100)]);
    assert!(elsewhere.exists());
}

#[test]
fn the_entries_that_were_not_used_for_longest_go() {
    let limit = 100 * 4096;
    let scene = Scene::new(limit);
    let names: Vec<EntryName> = (0..110).map(|n| named(&format!("k/{n}"), 0..100)).collect();
    for (age, name) in (1..).zip(&names) {
        writing::write(&scene.cache.directory, name, facts(name), &[bytes(100)]).unwrap();
        let file = fs::File::open(scene.file(name)).unwrap();
        file.set_modified(hours_ago(age)).unwrap();
    }
    // The oldest one is used.
    assert!(scene.read(&names[109]).is_some());
    assert_eq!(scene.cache.checked_size(false), 90 * 4096);
    let left: Vec<bool> = names.iter().map(|name| scene.file(name).exists()).collect();
    let expected: Vec<bool> = (0..110).map(|n| n < 89 || n == 109).collect();
    assert_eq!(left, expected);
    assert_eq!(scene.counted("disk_evictions"), 20);
    assert_eq!(scene.counted("disk_evicted_bytes"), 20 * 4096);
    assert_eq!(
        scene.cache.checked_size(false),
        90 * 4096,
        "nothing more goes"
    );
}

#[test]
fn one_process_deletes_at_a_time() {
    let scene = Scene::new(4096);
    for n in 0..4 {
        let name = named(&format!("k/{n}"), 0..100);
        writing::write(&scene.cache.directory, &name, facts(&name), &[bytes(100)]).unwrap();
    }
    let lock = scene.cache.directory.lock_file().unwrap();
    let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::flock(&lock, exclusive).unwrap();
    assert_eq!(scene.cache.checked_size(false), 4 * 4096);
    assert_eq!(scene.counted("disk_evictions"), 0);
    drop(lock);
    assert!(scene.cache.checked_size(false) <= 4096);
}

#[test]
fn a_cache_that_was_filled_while_it_was_measured_takes_entries_again() {
    let scene = Scene::new(10 * 4096);
    let before = scene.cache.usage.takes_check(false).unwrap();
    let put = |n: u64| scene.put(&named(&format!("k/{n}"), 0..100), &[bytes(100)]);
    (0..20).for_each(put);
    // The size of a moment before the entries were written.
    scene.cache.usage.checked(0, before);
    let refused = scene.cache.usage.estimate();
    assert!(refused > 11 * 4096, "{refused}");
    for n in 20.. {
        put(n);
        if scene.file(&named(&format!("k/{n}"), 0..100)).exists() {
            break;
        }
        assert!(n < 4000, "no entry was taken any more");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(scene.counted("disk_evictions") > 0);
}

#[test]
fn the_cache_stays_near_its_limit_while_it_is_written() {
    let limit = 64 << 10;
    let scene = Scene::new(limit);
    for n in 0..2000 {
        scene.put(&named(&format!("k/{n}"), 0..3000), &[bytes(3000)]);
    }
    // A check may be under way, and each thread may write one more entry.
    let most = limit + limit / 10 + 4096;
    // A file may be deleted before its length is read.
    let lens = scene
        .files()
        .into_iter()
        .filter_map(|file| Some(fs::metadata(file).ok()?.len()));
    let size: u64 = lens.map(usage::taken).sum();
    assert!(size <= 2 * most, "{size}");
}

#[test]
fn files_that_were_left_over_are_swept_and_new_ones_are_not() {
    let scene = Scene::new(4096);
    let name = named("a", 0..100);
    scene.put(&name, &[bytes(100)]);
    let old = scene.file(&name).with_extension("0123.tmp");
    let new = scene.file(&name).with_extension("4567.tmp");
    fs::write(&old, "x").unwrap();
    fs::write(&new, "x").unwrap();
    fs::File::open(&old)
        .unwrap()
        .set_modified(hours_ago(2))
        .unwrap();
    scene.cache.checked_size(false);
    assert!(!old.exists() && new.exists() && scene.file(&name).exists());
}

#[test]
fn a_use_is_noted_when_the_last_one_is_long_ago() {
    let scene = Scene::new(LIMIT);
    let name = named("a", 0..100);
    scene.put(&name, &[bytes(100)]);
    let file = scene.file(&name);
    for (age, is_noted) in [
        (Duration::from_secs(300), false),
        (Duration::from_secs(700), true),
    ] {
        let used = SystemTime::now() - age;
        fs::File::open(&file).unwrap().set_modified(used).unwrap();
        let before = fs::metadata(&file).unwrap().mtime();
        assert!(scene.read(&name).is_some());
        assert_eq!(
            fs::metadata(&file).unwrap().mtime() != before,
            is_noted,
            "{age:?}"
        );
    }
}

#[test]
fn a_directory_in_which_others_may_write_is_refused() {
    let directory = TempDir::new().unwrap();
    let refused = |path: &Path| match DiskCache::open(path, LIMIT) {
        Err(StoreError::Denied { reason, .. }) => Some(reason),
        _ => None,
    };
    let own = directory.path().join("own");
    assert_eq!(refused(&own), None, "it is made");
    assert_eq!(
        fs::metadata(&own).unwrap().permissions().mode() & 0o777,
        0o700
    );
    for mode in [0o720, 0o702, 0o777] {
        fs::set_permissions(&own, fs::Permissions::from_mode(mode)).unwrap();
        assert!(refused(&own).unwrap().contains("chmod 700"), "{mode:o}");
    }
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(refused(&own), None, "only its own files are hidden");
    let inner = own.join("zarr-mount-1");
    assert_eq!(
        fs::metadata(&inner).unwrap().permissions().mode() & 0o777,
        0o700
    );
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o750)).unwrap();
    assert!(refused(&own).unwrap().contains("chmod 700"), "others read");
    let link = directory.path().join("link");
    symlink(&own, &link).unwrap();
    assert!(refused(&link).unwrap().contains("symbolic link"));
    fs::write(directory.path().join("file"), "").unwrap();
    assert!(refused(&directory.path().join("file")).is_some());
}

#[test]
fn a_directory_that_is_gone_costs_the_cache_alone() {
    let scene = Scene::new(LIMIT);
    let name = named("a", 0..100);
    scene.put(&name, &[bytes(100)]);
    fs::remove_dir_all(scene.directory.path()).unwrap();
    assert_eq!(scene.read(&name), None);
    scene.put(&name, &[bytes(100)]);
    assert_eq!(scene.read(&name), None);
    assert_eq!(scene.counted("disk_refused"), 1);
    let nowhere = Path::new("/proc/self/no/such/directory");
    assert!(DiskCache::open(nowhere, LIMIT).unwrap().is_none());
}

#[test]
fn what_one_process_claims_no_other_does() {
    let scene = Scene::new(LIMIT);
    // Another spelling of the path, so that it is opened a second time.
    let path = scene.directory.path().join(".");
    let other = DiskCache::open(&path, LIMIT).unwrap().unwrap();
    let (byte, another) = (named("a", 0..1).claim_byte(), named("a", 0..2).claim_byte());
    for (ours, theirs) in [(&scene.cache, &other), (&scene.cache, &scene.cache)] {
        assert!(!theirs.is_claimed(byte));
        let claim = ours.claim(byte).unwrap();
        assert!(theirs.is_claimed(byte) && theirs.claim(byte).is_none());
        assert!(!theirs.is_claimed(another) && theirs.claim(another).is_some());
        drop(claim);
        assert!(!theirs.is_claimed(byte));
        assert!(theirs.claim(byte).is_some());
    }
    let file = scene.directory.path().join("zarr-mount-1/claims");
    assert_eq!(fs::metadata(file).unwrap().len(), 0);
}

#[test]
fn a_claim_needs_no_lock() {
    for harm in [
        |file: &Path| symlink("elsewhere", file).unwrap(),
        |file: &Path| fs::create_dir(file).unwrap(),
        |file: &Path| {
            use rustix::fs::{CWD, Mode, mkfifoat};
            mkfifoat(CWD, file, Mode::RUSR | Mode::WUSR).unwrap();
        },
    ] {
        let scene = Scene::new(LIMIT);
        let inner = scene.directory.path().join("zarr-mount-1");
        harm(&inner.join("claims"));
        let byte = named("a", 0..1).claim_byte();
        let claim = scene.cache.claim(byte).unwrap();
        assert!(scene.cache.claim(byte).is_none(), "in one process");
        drop(claim);
        assert!(scene.cache.claim(byte).is_some());
        assert!(!inner.join("elsewhere").exists());
    }
}
