//! `mount.zarr-mount`, the name under which mount(8) runs this program for `mount -t zarr-mount`.
//!
//! A helper of mount(8) has a grammar of its own: `SPEC DIR [-sfnv] [-N namespace] [-o options]
//! [-t type.subtype]`. Here `-f` means fake, where `zarr-mount -f` stays in the foreground.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Parser};
use rustix::thread::LinkNameSpaceType;

use super::args::Args;
use super::error::CliError;
use super::options::{MountOptions, Unknown};

/// The helper of mount(8) for Zarr stores
#[derive(Debug, Parser)]
#[command(name = "mount.zarr-mount", version, args_override_self = true)]
struct HelperArgs {
    /// STORE of zarr-mount(1)
    #[arg(value_name = "SPEC")]
    store: OsString,

    /// Where to mount
    #[arg(value_name = "DIR")]
    mountpoint: OsString,

    /// Sloppy: ignore mount options that are unknown
    #[arg(short)]
    sloppy: bool,

    /// Fake: check everything, and mount nothing
    #[arg(short)]
    fake: bool,

    /// Without effect: nothing is written to /etc/mtab in any case
    #[arg(short = 'n')]
    _no_mtab: bool,

    /// Log more
    #[arg(short, action = ArgAction::Count)]
    verbose: u8,

    /// Mount in the mount namespace of this file, where SPEC and DIR are looked up too
    #[arg(short = 'N', value_name = "NAMESPACE")]
    namespace: Option<PathBuf>,

    /// Mount options
    #[arg(short, value_name = "OPTIONS", action = ArgAction::Append)]
    options: Vec<OsString>,

    /// Without effect: this program mounts one type only
    #[arg(short = 't', value_name = "TYPE")]
    _file_system_type: Option<OsString>,
}

/// Whether a command line has the grammar of a helper: the program is called `mount.…`.
pub(crate) fn is_meant(command_line: &[OsString]) -> bool {
    let program = command_line.first().map(Path::new);
    let name = program.and_then(Path::file_name).map(OsStr::as_bytes);
    name.is_some_and(|name| name.starts_with(b"mount."))
}

/// Parses the command line of a helper, and enters the namespace that it names. To be called before
/// this process has a second thread.
pub(crate) fn parse(command_line: &[OsString]) -> Result<(Args, MountOptions), CliError> {
    let helper = HelperArgs::try_parse_from(command_line)?;
    if let Some(namespace) = &helper.namespace {
        enter(namespace).map_err(|error| {
            CliError::Failed(format!("namespace {}: {error}", namespace.display()))
        })?;
    }
    let unknown = if helper.sloppy {
        Unknown::Ignored
    } else {
        Unknown::Refused
    };
    let (args, options) = Args::parse_from(&helper.as_typed(), unknown)?;
    if args.foreground {
        let problem = "mount(8) waits for its helper, so that it cannot stay in the foreground";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let is_fake = helper.fake;
    let options = MountOptions {
        is_fake,
        // mount(8) has passed `rw`, not the user.
        hint: None,
        ..options
    };
    Ok((args, options))
}

impl HelperArgs {
    /// The command line of `zarr-mount` that asks for the same mount.
    fn as_typed(&self) -> Vec<OsString> {
        let mut words = vec![OsString::from("zarr-mount")];
        words.extend((0..self.verbose).map(|_| "-v".into()));
        for options in &self.options {
            words.extend(["-o".into(), options.clone()]);
        }
        words.push("--".into());
        words.extend([self.store.clone(), self.mountpoint.clone()]);
        words
    }
}

fn enter(namespace: &Path) -> io::Result<()> {
    let file = File::open(namespace)?;
    let kind = Some(LinkNameSpaceType::Mount);
    Ok(rustix::thread::move_into_link_name_space(
        file.as_fd(),
        kind,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<(Args, MountOptions), CliError> {
        let words = ["/sbin/mount.zarr-mount"].iter().chain(words);
        parse(&words.map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_name_tells() {
        let meant = |name: &str| is_meant(&[name.into()]);
        assert!(meant("/sbin/mount.zarr-mount") && meant("mount.fuse.zarr-mount"));
        assert!(!meant("zarr-mount") && !meant("/mount.d/zarr-mount") && !is_meant(&[]));
    }

    #[test]
    fn what_mount_passes() {
        let (args, options) = parsed(&["s", "/m", "-o", "rw,ttl=5,view=keys\\,chunks"]).unwrap();
        assert_eq!(
            (args.store.unwrap(), args.target.unwrap()),
            ("s".into(), "/m".into())
        );
        assert_eq!(
            (
                args.ttl.map(|ttl| ttl.as_secs()),
                args.view.len(),
                args.verbose
            ),
            (Some(5), 2, 0)
        );
        assert!(!options.is_fake && options.hint.is_none() && !args.foreground);

        let (args, options) = parsed(&["s", "m", "-sfnv", "-o", "rw,foo=1", "-t", "a.b"]).unwrap();
        assert!(options.is_fake && !args.foreground);
        assert_eq!(args.verbose, 1);
        let (_, options) = parsed(&["-v", "-f", "s", "-oallow_other", "m"]).unwrap();
        assert!(options.is_fake);
    }

    #[test]
    fn mistakes_are_named() {
        let cases: [(&[&str], &str); 5] = [
            (&["s"], "DIR"),
            (&["s", "m", "-x"], "-x"),
            (&["s", "m", "-o", "foo"], "`foo`"),
            (&["s", "m", "-s", "-o", "ttl=x"], "--ttl"),
            (&["s", "m", "-N", "/no/such"], "/no/such"),
        ];
        for (words, part) in cases {
            let message = parsed(words).unwrap_err().to_string();
            assert!(message.contains(part), "{words:?}: {message}");
        }
    }
}
