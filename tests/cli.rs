//! The command itself: what it refuses, and the life of a mount from the outside.
//!
//! The tests that mount need `/dev/fuse`. Where there is none they fail and say so;
//! `ZARR_MOUNT_TEST_NO_FUSE=1` leaves them out.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "cli/place.rs"]
mod place;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use self::place::{
    NOBODY, PROGRAM, Place, as_nobody, eventually, has_ended, leave, occupy, place_of_nobody, run,
    signal, zarr_mount,
};

#[test]
fn help_and_version() {
    let help = zarr_mount(["--help"]);
    help.succeeds();
    for part in [
        "Examples:",
        "--cache-size",
        "/etc/fstab",
        "allow_other",
        "-f -v",
    ] {
        assert!(help.stdout.contains(part), "{part}");
    }
    let version = zarr_mount(["--version"]);
    version.succeeds();
    assert!(version.stdout.starts_with("zarr-mount "));
}

#[test]
fn a_wrong_command_line_is_status_2() {
    let cases: [(&[&str], &str); 15] = [
        (&[], "STORE and MOUNTPOINT missing"),
        (&["demo:"], "MOUNTPOINT missing"),
        (&["--frobnicate"], "--frobnicate"),
        (&["demo:", "m", "-o", "ro,frobnicate"], "`frobnicate`"),
        (&["demo:", "m", "--view", "files"], "keys, chunks, arrays"),
        (
            &["demo:", "m", "--view", "array"],
            "a similar value exists: 'arrays'",
        ),
        (
            &["demo:", "m", "--files", "npy", "--view", "chunks"],
            "add arrays to --view",
        ),
        (&["demo:", "m", "-o", "files=nc,npy"], r"-o 'files=nc\,npy'"),
        (
            &["mount", "demo:", "m"],
            "did you mean `zarr-mount demo: m`?",
        ),
        (
            &["demo:", "m", "--view", "arrays", "--files", "doc"],
            "npy, raw",
        ),
        (
            &["demo:", "m", "--view", "arrays", "--files", "nc,nc5"],
            "all are called",
        ),
        (&["demo:", "m", "--cache-size", "x"], "64M, 1GiB"),
        (&["demo:", "m", "--timeout", "0"], "1 to 86400"),
        (&["demo:", "m", "--threads", "0"], "1 to 1024"),
        (&["demo:", "m", "--readahead", "x"], "1000000; or auto"),
    ];
    for (words, part) in cases {
        zarr_mount(words).fails(2, part);
    }
}

#[test]
fn subcommands_of_other_programs_are_explained() {
    let place = Place::without_fuse();
    let (store, m) = (place.store(), place.path("m"));
    let (store, m) = (store.to_str().unwrap(), m.to_str().unwrap());
    let cases: [(&[&str], String); 6] = [
        (&["info", store], format!("zarr-mount --info {store}")),
        (&["ls", store, "a"], format!("zarr-mount --info {store} a")),
        (&["umount", m], format!("zarr-mount --unmount {m}")),
        (&["unmount", m], format!("zarr-mount --unmount {m}")),
        (&["mount", store, m], format!("zarr-mount {store} {m}")),
        (&["help"], "zarr-mount --help".to_owned()),
    ];
    for (words, meant) in cases {
        let meant = format!("did you mean `{meant}`?");
        zarr_mount(words).fails(2, &meant);
    }
}

#[test]
fn a_store_may_be_called_like_a_subcommand() {
    let Some(place) = Place::new() else { return };
    for name in ["info", "mount"] {
        fs::rename(place.path("store"), place.path(name)).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args([name, "m"]).current_dir(&place.root);
        run(command).succeeds();
        assert!(place.path("m/.zgroup").exists());
        place.unmount("m").succeeds();
        fs::rename(place.path(name), place.path("store")).unwrap();
    }
}

#[test]
fn a_hierarchy_is_described_as_a_tree() {
    let place = Place::without_fuse();
    let array = r#"{"zarr_format":3,"node_type":"array","shape":[SHAPE],"data_type":"TYPE",
        "chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2]}},"fill_value":FILL,
        "chunk_key_encoding":{"name":"default"},"codecs":[CODEC],"dimension_names":["time"]}"#;
    let bytes = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
    let large = "4000000000".to_owned();
    for (path, shape, data_type, fill, codec) in [
        ("a", "12".to_owned(), "int16", "0", bytes),
        ("long", large, "float64", "0", bytes),
        ("g/text", "3".to_owned(), "string", "\"\"", r#""vlen-utf8""#),
    ] {
        fs::create_dir_all(place.path(&format!("store/{path}"))).unwrap();
        let text = array.replace("SHAPE", &shape).replace("TYPE", data_type);
        let text = text.replace("FILL", fill).replace("CODEC", codec);
        fs::write(place.path(&format!("store/{path}/zarr.json")), text).unwrap();
    }
    let v2 = r#"{"zarr_format":2,"shape":[3],"chunks":[3],"dtype":"|u1","compressor":null,
        "fill_value":0,"order":"C","filters":null}"#;
    fs::create_dir(place.path("store/old")).unwrap();
    fs::write(place.path("store/old/.zarray"), v2).unwrap();
    let names = r#"{"_ARRAY_DIMENSIONS":["x"]}"#;
    fs::write(place.path("store/old/.zattrs"), names).unwrap();
    let store = place.store();
    let info = zarr_mount(["--info", "--files", "h5,nc5,npy", store.to_str().unwrap()]);
    info.succeeds();
    let expected = "\
/         v2  group
    fits nc5, h5
  a       v3  int16      (time: 12)              24 B  6 chunks (2)  bytes
      fits npy, nc5, h5
  g           directory
    text      string     (time: 3)                     2 chunks (2)  vlen-utf8
        fits nc5, h5; not npy: data type: `string` cannot be expressed
  long        float64    (time: 4000000000)  29.8 GiB  2000000000 chunks (2)  bytes
      fits npy, nc5, h5
  old     v2  uint8      (x: 3)                   3 B  1 chunk  no codecs
      fits npy, nc5, h5
1 group, 4 arrays, 29.8 GiB and 1 array of unknown size
";
    assert_eq!(info.stdout, expected);
    let info = zarr_mount([
        "--info",
        "--files",
        "npy",
        "--cache-size",
        "0",
        store.to_str().unwrap(),
        "a",
    ]);
    assert!(
        info.stdout
            .contains("read whole with --cache-size 1MiB or more"),
        "{}",
        info.stdout
    );
}

#[test]
fn mountpoints_that_are_refused() {
    let place = Place::without_fuse();
    fs::write(place.path("file"), "").unwrap();
    fs::write(place.path("m/entry"), "").unwrap();
    std::os::unix::fs::symlink("nowhere", place.path("dangling")).unwrap();
    std::os::unix::fs::symlink("store", place.path("link")).unwrap();
    let cases = [
        ("file", "not a directory"),
        ("m", "is not empty"),
        ("store", "is inside STORE"),
        ("store/new", "is inside STORE"),
        ("link/new", "is inside STORE"),
        (".", "is inside MOUNTPOINT"),
        ("dangling", "No such file"),
        (
            "no/parent",
            "the directory above it is missing; make it first: mkdir -p ",
        ),
    ];
    for (name, part) in cases {
        place.mount(name, &[]).fails(1, part);
        place.mount(name, &["-f"]).fails(1, part);
    }
    assert!(!place.path("store/new").exists());
    let missing = place.path("none");
    zarr_mount([&missing, &place.path("m")]).fails(1, "No such file");
    place
        .mount("m", &["--log-file", "/no/log"])
        .fails(1, "log file /no/log");
}

#[test]
fn unmounting_what_is_not_ours_is_refused() {
    let place = Place::without_fuse();
    place.unmount("m").fails(1, "nothing is mounted");
    place.unmount("none").fails(1, "nothing is mounted");
    zarr_mount(["--unmount", "/proc"]).fails(1, "a mount of type proc");
}

#[test]
fn a_mount_answers_when_the_command_returns() {
    let Some(place) = Place::new() else { return };
    place.mount("m", &[]).succeeds();
    let entry = place.entry("m").unwrap();
    assert!(entry.is_ours());
    assert_eq!(entry.source, place.store());
    for entry in fs::read_dir(place.path("m")).unwrap() {
        entry.unwrap();
    }
    let error = fs::write(place.path("m/x"), "").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    place.mount("m", &[]).fails(1, "already mounted");

    let daemon = place.daemon("m");
    place.unmount("m").succeeds();
    assert_eq!(place.entry("m"), None);
    eventually("the daemon ends", || has_ended(daemon));
    assert!(place.path("m").exists(), "it was there before");
}

#[test]
fn a_missing_mountpoint_is_created_and_removed_again() {
    let Some(place) = Place::new() else { return };
    for end in ["umount", "fusermount3"] {
        place.mount("new", &[]).succeeds();
        let mut command = Command::new(end);
        if end == "fusermount3" {
            command.arg("-u");
        }
        command.arg(place.path("new"));
        run(command).succeeds();
        eventually("it is removed", || !place.path("new").exists());
    }
}

#[test]
fn signals_unmount_first() {
    let Some(place) = Place::new() else { return };
    for name in ["INT", "TERM", "HUP"] {
        place.mount_hearing_hangups("new").succeeds();
        let daemon = place.daemon("new");
        signal(daemon, name);
        eventually("the daemon ends", || has_ended(daemon));
        assert_eq!(place.entry("new"), None);
        assert!(!place.path("new").exists());
    }
}

#[test]
fn the_foreground_ends_with_status_0() {
    let Some(place) = Place::new() else { return };
    let mut command = Command::new(PROGRAM);
    command
        .arg(place.store())
        .arg(place.path("m"))
        .args(["-f", "-v"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("mounted at") {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended");
    }
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    log.read_to_string(&mut line).unwrap();
    assert!(line.contains("unmounted"), "{line}");
    assert_eq!(place.entry("m"), None);
}

#[test]
fn a_busy_mount_is_refused_and_detached_after_a_signal() {
    let Some(place) = Place::new() else { return };
    place.mount("m", &[]).succeeds();
    let occupant = occupy(&place.path("m"));
    place.unmount("m").fails(1, "fuser -vm");
    let daemon = place.daemon("m");
    // The first signal lets programs close their files. The second one ends the mount at once.
    signal(daemon, "TERM");
    sleep(Duration::from_millis(300));
    assert!(place.entry("m").is_some(), "it gets some seconds");
    signal(daemon, "TERM");
    eventually("the daemon ends", || has_ended(daemon));
    assert_eq!(place.entry("m"), None);
    leave(occupant);
}

#[test]
fn a_busy_mount_that_becomes_idle_is_unmounted() {
    let Some(place) = Place::new() else { return };
    place.mount("new", &[]).succeeds();
    let occupant = occupy(&place.path("new"));
    let daemon = place.daemon("new");
    signal(daemon, "TERM");
    leave(occupant);
    eventually("the daemon ends", || has_ended(daemon));
    assert!(!place.path("new").exists());
}

#[test]
fn a_dead_mount_is_repaired() {
    let Some(place) = Place::new() else { return };
    place.mount("m", &[]).succeeds();
    let dead = place.daemon("m");
    signal(dead, "KILL");
    eventually("it ends", || has_ended(dead));
    // Its other threads may end a moment later, and the mount with the last of them.
    let is_dead = || fs::metadata(place.path("m")).is_err();
    eventually("the mount is dead", is_dead);
    assert!(
        place.entry("m").is_some(),
        "a killed daemon leaves it behind"
    );
    place.mount("m", &[]).succeeds();
    fs::read_dir(place.path("m")).unwrap();
    place.unmount("m").succeeds();
    assert_eq!(place.entry("m"), None, "no second mount below");
}

#[test]
fn a_dead_mount_can_be_unmounted() {
    let Some(place) = Place::new() else { return };
    place.mount("m", &[]).succeeds();
    let dead = place.daemon("m");
    signal(dead, "KILL");
    eventually("it ends", || has_ended(dead));
    place.unmount("m").succeeds();
    assert_eq!(place.entry("m"), None);
}

#[test]
fn a_command_substitution_returns() {
    let Some(place) = Place::new() else { return };
    // Descriptor 9 is a copy of the pipe that the shell reads to its end.
    let script = r#"out=$("$0" "$1" "$2" 9>&1); echo "status $? [$out]""#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script, PROGRAM]);
    shell.arg(place.store()).arg(place.path("m"));
    let outcome = run(shell);
    assert_eq!(outcome.stdout, "status 0 []\n");
    let daemon = place.daemon("m");
    assert_eq!(
        fs::read_link(format!("/proc/{daemon}/cwd")).unwrap(),
        Path::new("/")
    );
    place.unmount("m").succeeds();
}

#[test]
fn a_nonempty_mountpoint_can_be_asked_for() {
    let Some(place) = Place::new() else { return };
    fs::write(place.path("m/entry"), "").unwrap();
    place.mount("m", &["-o", "nonempty"]).succeeds();
    place.unmount("m").succeeds();
    assert!(place.path("m/entry").exists());
}

#[test]
fn paths_are_relative_to_the_working_directory() {
    let Some(place) = Place::new() else { return };
    let mut command = Command::new(PROGRAM);
    command.args(["store", "new", "--log-file", "log", "-v"]);
    command.current_dir(&place.root);
    run(command).succeeds();
    assert_eq!(place.entry("new").unwrap().source, place.store());
    let log = fs::read_to_string(place.path("log")).unwrap();
    assert!(log.contains("mounted at"), "{log}");
    let mut umount = Command::new("umount");
    assert!(umount.arg(place.path("new")).status().unwrap().success());
    eventually("it is removed", || !place.path("new").exists());
}

#[test]
fn a_source_with_commas_stays_a_source() {
    let Some(place) = Place::new() else { return };
    place.mount("m", &["-o", r"fsname=a\,suid\\ b"]).succeeds();
    assert_eq!(place.entry("m").unwrap().source, "a,suid\\ b");
    place.unmount("m").succeeds();
}

#[test]
fn a_plain_user_mounts_and_unmounts() {
    let Some(place) = place_of_nobody() else {
        return;
    };
    let program = place.path("zarr-mount");
    let mount = |options: &[&str]| {
        let mut command = Command::new(&program);
        command
            .arg(place.store())
            .arg(place.path("u/m"))
            .args(options);
        as_nobody(command)
    };
    let unmount = || {
        let mut command = Command::new(&program);
        command.arg("--unmount").arg(place.path("u/m"));
        as_nobody(command)
    };
    mount(&["-o", r"fsname=a\,allow_other\\,b"]).fails(2, "unknown mount option `b`");
    mount(&["-o", r"fsname=a\,allow_other\\\,b"]).succeeds();
    let entry = place.entry("u/m").unwrap();
    assert!(entry.is_ours());
    assert_eq!(entry.source, "a,allow_other\\,b");
    let mut list = Command::new("ls");
    list.arg(place.path("u/m"));
    as_nobody(list).succeeds();
    // Only that user may enter, so a shell of that user does.
    let mut occupant = {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", r#"cd "$0" && echo in && cat"#])
            .arg(place.path("u/m"));
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        shell.uid(NOBODY).gid(NOBODY).spawn().unwrap()
    };
    let mut entered = [0; 3];
    occupant
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut entered)
        .unwrap();
    unmount().fails(1, "is busy");
    leave(occupant);
    unmount().succeeds();
    assert_eq!(place.entry("u/m"), None);
    eventually("it is removed", || !place.path("u/m").exists());
}

/// `mount -t fuse.zarr-mount STORE DIR -o …` ends in this call. mount(8) itself sets a PATH of
/// its own, on which the program under test is not.
#[test]
fn the_helper_of_mount_8_can_be_used() {
    let Some(place) = place_of_nobody() else {
        return;
    };
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", place.root.display());
    let mut mount = Command::new("/sbin/mount.fuse3");
    mount.arg(place.store()).arg(place.path("m"));
    mount.args(["-t", "fuse.zarr-mount", "-o"]);
    mount.arg("rw,allow_other,noatime,x-test=1,cache_size=64M,view=keys\\,chunks");
    mount.env("PATH", path);
    run(mount).succeeds();
    assert!(place.entry("m").unwrap().is_ours());
    let mut list = Command::new("ls");
    list.arg(place.path("m"));
    as_nobody(list).succeeds();
    let mut umount = Command::new("umount");
    umount.arg(place.path("m"));
    run(umount).succeeds();
    assert_eq!(place.entry("m"), None);
}

#[test]
fn another_users_mount_is_not_unmounted() {
    let Some(place) = place_of_nobody() else {
        return;
    };
    place.mount("m", &["-o", "allow_other"]).succeeds();
    let mut command = Command::new(place.path("zarr-mount"));
    command.arg("--unmount").arg(place.path("m"));
    as_nobody(command).fails(1, "by another user");
    assert!(place.entry("m").is_some());
    place.unmount("m").succeeds();
}

#[test]
fn nohup_ignores_the_hangup() {
    let Some(place) = Place::new() else { return };
    let mut command = Command::new("nohup");
    command.arg(PROGRAM).arg(place.store()).arg(place.path("m"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).arg("-f");
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    eventually("it is mounted", || {
        fs::read_dir(place.path("m")).is_ok() && place.entry("m").is_some()
    });
    signal(child.id(), "HUP");
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.entry("m"), None);
}
