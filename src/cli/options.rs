//! The value of `-o`: what mount(8), `mount.fuse3` and `/etc/fstab` pass, and our own long
//! options by name.
//!
//! `mount -t fuse.zarr-mount STORE DIR -o OPTS` ends in `zarr-mount STORE DIR -o rw,dev,suid,OPTS`:
//! the defaults of mount(8) are spelled out, so `rw`, `dev` and `suid` cannot be refused. The
//! mount is read-only all the same, unless `writable` is given, and without devices and set-uid
//! files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::args::by_mount_option;
use super::error::CliError;
use crate::fuse::session::{Execution, MountAccess};

/// The parsed values of `-o`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MountOptions {
    pub(crate) access: MountAccess,
    pub(crate) execution: Execution,
    /// Mount over a directory that is not empty.
    pub(crate) nonempty: bool,
    /// Answer extended attributes.
    pub(crate) xattr: bool,
    /// Whether programs may write, where an option says so.
    pub(crate) writing: Option<WriteOption>,
    /// The source that the mount table is to show.
    pub(crate) fsname: Option<OsString>,
    /// A warning for the user about options that have another effect than they seem to have.
    pub(crate) hint: Option<&'static str>,
    /// Check everything, and mount nothing.
    pub(crate) is_fake: bool,
    /// Our long options, as they would be typed: `--ttl=5`.
    pub(crate) flags: Vec<OsString>,
}

/// Whether programs may write, as mount options say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOption {
    /// Programs may write: `writable`. mount(8) passes `rw` for every mount, so `rw` has no
    /// meaning.
    Writable,
    /// Programs may not write, whatever other options say: `ro`.
    ReadOnly,
}

/// The treatment of a mount option that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It is an error.
    Refused,
    /// It is left out, as `mount -s` asks for.
    Ignored,
}

/// Ignored options: defaults, those for mount(8) itself, and those that only matter for writing.
const IGNORED: &[&str] = &[
    "defaults",
    "rw",
    "suid",
    "nosuid",
    "dev",
    "nodev",
    "atime",
    "noatime",
    "diratime",
    "nodiratime",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "lazytime",
    "nolazytime",
    "sync",
    "async",
    "dirsync",
    "mand",
    "nomand",
    "iversion",
    "noiversion",
    "symfollow",
    "nosymfollow",
    "silent",
    "loud",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "_netdev",
    "nofail",
    "default_permissions",
    "subtype",
    "comment",
];

/// The hint for a user who has typed `rw`, as mount(8) does for every mount.
const RW_HINT: &str = "-o rw does not make the mount writable: say --rw";

/// With `rw`, `mount.fuse3` passes one of these at least.
const OF_MOUNT: [&str; 4] = ["dev", "nodev", "suid", "nosuid"];

impl MountOptions {
    /// Parses the values of every `-o`, in their order; a later one overrides.
    pub(crate) fn parse(values: &[OsString], unknown: Unknown) -> Result<Self, CliError> {
        let mut options = MountOptions::default();
        let mut all = Vec::new();
        for value in values {
            let words = split(value);
            for (number, option) in words.iter().enumerate() {
                let before = words.get(..number).unwrap_or_default();
                options
                    .add(option, unknown)
                    .map_err(|error| comma_hint(before, option).map_or(error, CliError::Usage))?;
            }
            all.extend(words);
        }
        let given = |name: &str| all.iter().any(|option| option == name.as_bytes());
        let is_rw_typed = given("rw") && !OF_MOUNT.into_iter().any(given);
        options.hint = (is_rw_typed && options.writing.is_none()).then_some(RW_HINT);
        Ok(options)
    }

    fn add(&mut self, option: &[u8], unknown: Unknown) -> Result<(), CliError> {
        let (name, value) = match option.iter().position(|byte| *byte == b'=') {
            Some(at) => (&option[..at], Some(OsStr::from_bytes(&option[at + 1..]))),
            None => (option, None),
        };
        if let Some(known) = by_mount_option(OsStr::from_bytes(name)) {
            let mut flag = OsString::from(format!("--{known}"));
            if let Some(value) = value {
                flag.push("=");
                flag.push(value);
            }
            self.flags.push(flag);
            return Ok(());
        }
        let name = String::from_utf8_lossy(name);
        let usage = |problem: String| Err(CliError::Usage(problem));
        match &*name {
            "allow_other" => self.access = MountAccess::Everyone,
            "allow_root" => self.access = MountAccess::OwnerAndRoot,
            "exec" => self.execution = Execution::Allowed,
            "noexec" => self.execution = Execution::Denied,
            "nonempty" => self.nonempty = true,
            "xattr" => self.xattr = true,
            "writable" => self.writing = self.writing.or(Some(WriteOption::Writable)),
            "ro" => self.writing = Some(WriteOption::ReadOnly),
            "fsname" => {
                let Some(value) = value else {
                    return usage("mount option `fsname` needs a value".to_owned());
                };
                self.fsname = Some(value.to_owned());
                return Ok(());
            }
            "" if value.is_none() => {}
            known if IGNORED.contains(&known) => return Ok(()),
            known if known.starts_with("x-") || known.starts_with("X-") => return Ok(()),
            _ if unknown == Unknown::Ignored => return Ok(()),
            _ => {
                let shown = String::from_utf8_lossy(option);
                return usage(format!("unknown mount option `{name}` (-o {shown})"));
            }
        }
        match value {
            None => Ok(()),
            Some(_) => usage(format!("mount option `{name}` takes no value")),
        }
    }
}

/// The message about the unknown `option`, where it may belong to the value of the option before it: in
/// `files=nc,npy`, `npy` does.
fn comma_hint(before: &[Vec<u8>], option: &[u8]) -> Option<String> {
    let listed = before.last()?;
    let (name, value) = listed.split_at(listed.iter().position(|byte| *byte == b'=')?);
    by_mount_option(OsStr::from_bytes(name)).filter(|_| !option.contains(&b'='))?;
    let [name, value, option] = [name, value, option].map(String::from_utf8_lossy);
    Some(format!(
        "unknown mount option `{option}`; a comma in a value is written `\\,`, in a shell: \
         -o '{name}{value}\\,{option}'"
    ))
}

/// Splits at commas, but not between double quotes, which are removed, as mount(8) has it. A
/// backslash is removed too, and makes the byte after it literal.
fn split(text: &OsStr) -> Vec<Vec<u8>> {
    let mut options = vec![];
    let mut option = Vec::new();
    let mut is_quoted = false;
    let mut bytes = text.as_bytes().iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => options.push(std::mem::take(&mut option)),
            b'\\' => option.push(bytes.next().unwrap_or(byte)),
            _ => option.push(byte),
        }
    }
    options.push(option);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn parse(values: &[&str]) -> Result<MountOptions, CliError> {
        MountOptions::parse(
            &values.iter().map(OsString::from).collect::<Vec<_>>(),
            Unknown::Refused,
        )
    }

    #[test]
    fn what_mount_and_fstab_pass_changes_nothing() {
        let cases = [
            "rw,dev,suid",
            "defaults",
            "nosuid,nodev,relatime,user,_netdev,nofail,noauto",
            "x-systemd.automount,x-gvfs-show,X-mount.mkdir=0755,comment=my data",
            "default_permissions,subtype=zarr",
            "",
            ",,",
        ];
        for case in cases {
            assert_eq!(parse(&[case]).unwrap(), MountOptions::default(), "{case}");
        }
    }

    #[test]
    fn options_of_the_mount() {
        let options = parse(&["allow_other,noexec", "nonempty,xattr,fsname=a\\,b\\\\c"]).unwrap();
        let expected = MountOptions {
            access: MountAccess::Everyone,
            execution: Execution::Denied,
            nonempty: true,
            xattr: true,
            fsname: Some(OsString::from("a,b\\c")),
            writing: None,
            hint: None,
            is_fake: false,
            flags: Vec::new(),
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn rw_is_typed_where_mount_has_not_passed_it() {
        for (given, is_typed) in [
            (&["rw"][..], true),
            (&["ttl=5", "allow_other,rw"], true),
            (&["rw,dev,suid"], false),
            (&["rw,nosuid", "nodev"], false),
            (&["ro"], false),
            (&["rw,writable"], false),
            (&["rw,ro"], false),
        ] {
            assert_eq!(parse(given).unwrap().hint.is_some(), is_typed, "{given:?}");
        }
    }

    #[test]
    fn read_only_wins_over_writable() {
        for (given, expected) in [
            ("rw", None),
            ("rw,writable", Some(WriteOption::Writable)),
            ("writable,ro", Some(WriteOption::ReadOnly)),
            ("ro,writable", Some(WriteOption::ReadOnly)),
        ] {
            let options = parse(&[given]).unwrap();
            assert_eq!(
                (options.writing, options.flags.len()),
                (expected, 0),
                "{given}"
            );
        }
    }

    #[test]
    fn names_say_whether_programs_may_write() {
        assert_eq!(
            parse(&["allow_root"]).unwrap().access,
            MountAccess::OwnerAndRoot
        );
    }

    #[test]
    fn our_options_become_flags() {
        let options = parse(&["cache_size=64M,immutable,log-file=/a\\,b"]).unwrap();
        assert_eq!(
            options.flags,
            ["--cache-size=64M", "--immutable", "--log-file=/a,b"]
        );
    }

    #[test]
    fn unknown_ones_are_refused_by_name() {
        let cases = [
            ("ro,remount", "`remount`"),
            ("kernel_cache=1", "`kernel_cache`"),
            ("store=x", "`store`"),
            ("fsname", "`fsname`"),
            ("nonempty=1", "takes no value"),
        ];
        for (case, part) in cases {
            let message = parse(&[case]).unwrap_err().to_string();
            assert!(message.contains(part), "{case}: {message}");
        }
    }

    #[test]
    fn unknown_ones_are_ignored_on_request() {
        let value = OsString::from("kernel_cache=1,xattr,remount");
        let options = MountOptions::parse(&[value], Unknown::Ignored).unwrap();
        assert!(options.xattr && options.flags.is_empty());
    }

    #[test]
    fn a_comma_between_quotes_separates_nothing() {
        let options = parse(&["view=\"keys,chunks\",fsname=a\\\"b"]).unwrap();
        assert_eq!(options.flags, ["--view=keys,chunks"]);
        assert_eq!(options.fsname.unwrap(), "a\"b");
    }

    #[test]
    fn names_need_not_be_text() {
        let value = OsString::from_vec(b"fsname=\xff".to_vec());
        let options = MountOptions::parse(&[value], Unknown::Refused).unwrap();
        assert_eq!(options.fsname.unwrap().as_bytes(), b"\xff");
        let value = OsString::from_vec(b"\xff".to_vec());
        assert!(MountOptions::parse(&[value], Unknown::Refused).is_err());
    }

    #[test]
    fn a_backslash_at_the_end_stays() {
        assert_eq!(split(OsStr::new("a,b\\")), [b"a".to_vec(), b"b\\".to_vec()]);
    }
}
