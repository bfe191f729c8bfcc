use clap::CommandFactory;

use super::super::error::CliError;
use super::super::options::{MountOptions, Unknown};
use super::*;

fn parse(words: &[&str]) -> Result<(Args, MountOptions), CliError> {
    let words = ["zarr-mount"].iter().chain(words);
    let words: Vec<_> = words.map(OsString::from).collect();
    Args::parse_from(&words, Unknown::Refused)
}

fn parsed(words: &[&str]) -> Args {
    parse(words).unwrap().0
}

fn refused(words: &[&str]) -> String {
    parse(words).unwrap_err().to_string()
}

#[test]
fn the_definition_is_sound() {
    Args::command().debug_assert();
}

#[test]
fn defaults() {
    let args = parsed(&["a.zarr", "m"]);
    assert_eq!(args.store.unwrap(), "a.zarr");
    assert_eq!(args.target.unwrap(), "m");
    assert!(args.view.is_empty());
    assert_eq!(args.shards, Shards::Expand);
    assert_eq!(args.missing, AbsentChunks::Fill);
    assert_eq!(args.passthrough, Passthrough::Auto);
    assert_eq!(args.max_chunk, 1 << 30);
    assert_eq!(args.ttl, None);
    assert_eq!(args.timeout, crate::budget::PATIENCE);
    assert_eq!(args.readahead, ReadaheadLimit(None));
    assert!(!args.foreground && !args.immutable && !args.info);
}

#[test]
fn views() {
    let views = |words| parsed(words).view;
    assert_eq!(views(&["--view", "chunks"]), [ViewKind::Chunks]);
    let both = [ViewKind::Keys, ViewKind::Chunks];
    assert_eq!(views(&["--view=keys,chunks"]), both);
    assert_eq!(views(&["-o", "view=keys\\,chunks"]), both);
    assert_eq!(views(&["--view", "arrays"]), [ViewKind::Arrays]);
    assert!(refused(&["--view", "files"]).contains("keys, chunks, arrays"));
    let message = refused(&["--view", "keys,array"]);
    assert!(
        message.contains("a similar value exists: 'arrays'"),
        "{message}"
    );
}

#[test]
fn another_version() {
    assert_eq!(parsed(&["s", "m"]).shown_as, None);
    let shown_as = |words| parsed(words).shown_as;
    assert_eq!(shown_as(&["--as", "v2"]), Some(Target::V2));
    assert_eq!(shown_as(&["-o", "ro,as=v3"]), Some(Target::V3));
    assert!(refused(&["--as", "v4"]).contains("v2, v3"));
}

#[test]
fn formats_have_the_names_that_users_know() {
    use FileFormat::{H5, Nc, OmeTif, Tif};
    let files = |words| parsed(words).files;
    let known = files(&["--files", "tiff,ome.tiff,netcdf,hdf5"]);
    assert_eq!(known, [Tif, OmeTif, Nc, H5]);
    assert_eq!(files(&["-o", "files=hdf5"]), [H5]);
}

#[test]
fn a_mount_option_of_ours_is_a_flag() {
    let args = parsed(&[
        "s",
        "m",
        "-o",
        "rw,nosuid,cache_size=64M,shards=keep,missing=hide,ttl=2.5,timeout=600,threads=3",
        "-o",
        "immutable,uid=7,gid=8,umask=027,passthrough=never,follow-symlinks,foreground",
    ]);
    assert_eq!(args.cache_size, Some(64 << 20));
    assert_eq!(args.shards, Shards::Keep);
    assert_eq!(args.missing, AbsentChunks::Hide);
    assert_eq!(args.ttl, Some(Duration::from_millis(2500)));
    assert_eq!(args.timeout, Duration::from_secs(600));
    assert_eq!(args.threads, Some(3));
    assert_eq!(
        (args.uid, args.gid, args.umask),
        (Some(7), Some(8), Some(0o27))
    );
    assert_eq!(args.passthrough, Passthrough::Never);
    assert!(args.immutable && args.follow_symlinks && args.foreground);
}

#[test]
fn a_flag_overrides_its_mount_option_wherever_it_stands() {
    for words in [["--ttl", "5", "-o", "ttl=3"], ["-o", "ttl=3", "--ttl", "5"]] {
        assert_eq!(parsed(&words).ttl, Some(Duration::from_secs(5)));
    }
    assert_eq!(
        parsed(&["-o", "ttl=3,ttl=4"]).ttl,
        Some(Duration::from_secs(4))
    );
    let views = parsed(&["-o", "view=keys", "--view", "chunks"]).view;
    assert_eq!(views, [ViewKind::Chunks]);
}

#[test]
fn mount_options_are_kept_apart() {
    let (_, options) = parse(&["s", "m", "-o", "allow_other,nonempty", "-o", "xattr"]).unwrap();
    assert!(options.nonempty && options.xattr);
    let message = refused(&["s", "m", "-o", "ro,frobnicate=1"]);
    assert!(message.contains("`frobnicate`"), "{message}");
}

#[test]
fn sizes() {
    let cases = [
        ("0", Some(0)),
        ("1048576", Some(1 << 20)),
        ("64M", Some(64 << 20)),
        ("64m", Some(64 << 20)),
        ("1GiB", Some(1 << 30)),
        ("3KB", Some(3000)),
        ("7B", Some(7)),
        ("2T", Some(2 << 40)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("18014398509481984K", None), // 2^64
        ("", None),
        ("M", None),
        ("-1", None),
        ("1.5G", None),
        ("1X", None),
        ("1 M", None),
        ("1µ", None),
    ];
    for (text, bytes) in cases {
        assert_eq!(size_bytes(text).ok(), bytes, "{text}");
    }
}

#[test]
fn bytes_loaded_ahead() {
    assert_eq!(readahead("auto"), Ok(ReadaheadLimit(None)));
    assert_eq!(readahead("0"), Ok(ReadaheadLimit(Some(0))));
    assert_eq!(readahead("16M"), Ok(ReadaheadLimit(Some(16 << 20))));
    for wrong in ["", "none", "-1", "1.5M"] {
        let message = readahead(wrong).unwrap_err();
        assert!(message.ends_with("1000000; or auto"), "{wrong}: {message}");
    }
    let args = parsed(&["s", "m", "-o", "readahead=4MiB"]);
    assert_eq!(args.readahead, ReadaheadLimit(Some(4 << 20)));
}

#[test]
fn times_threads_and_bits() {
    assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
    for wrong in ["-1", "nan", "inf", "1s", ""] {
        assert!(seconds(wrong).is_err(), "{wrong}");
    }
    assert_eq!(timeout("86400"), Ok(Duration::from_secs(86_400)));
    for wrong in ["0", "86401", "1.5", "-1", "+", "30s", ""] {
        let message = timeout(wrong).unwrap_err();
        assert!(message.contains("1 to 86400"), "{wrong}: {message}");
    }
    assert_eq!(threads("64"), Ok(64));
    for wrong in ["0", "1025", "-1", "2.5", "auto", ""] {
        let message = threads(wrong).unwrap_err();
        assert!(message.contains("1 to 1024"), "{wrong}: {message}");
    }
    for (name, option) in [("user", "--uid"), ("group", "--gid")] {
        let message = refused(&["s", "m", option, "nobody"]);
        assert!(
            message.contains(&format!("the number of a {name}")),
            "{message}"
        );
    }
    assert_eq!(permission_bits("022"), Ok(0o22));
    for wrong in ["8", "1000", "", "-1"] {
        assert!(permission_bits(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn verbosity_adds_up() {
    assert_eq!(parsed(&["-v"]).verbose, 1);
    assert_eq!(parsed(&["-vv", "-v"]).verbose, 3);
    // The count is the same when the line is parsed again for a mount option.
    assert_eq!(parsed(&["-vv", "-o", "immutable"]).verbose, 2);
    assert_eq!(
        parsed(&["--log-level", "trace"]).log_level,
        Some(LevelFilter::Trace)
    );
}

#[test]
fn info_and_unmount() {
    let args = parsed(&["--info", "--sizes", "--json", "s", "a/b"]);
    assert!(args.info && args.sizes && args.json);
    assert_eq!(args.target.unwrap(), "a/b");
    assert_eq!(
        parsed(&["--unmount", "m"]).unmount,
        Some(PathBuf::from("m"))
    );
    assert!(parse(&["--unmount", "m", "s"]).is_err());
    assert!(parse(&["--json", "s"]).is_err());
}

#[test]
fn a_mistake_is_one_line() {
    let cases: [&[&str]; 5] = [
        &["--wiew", "keys"],
        &["--shards", "drop"],
        &["--ttl"],
        &["a", "b", "c"],
        &["--cache-size", "lots"],
    ];
    for words in cases {
        let message = refused(words);
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("zarr-mount --help"), "{message}");
    }
}
