//! The task that a command line means.

use std::path::Path;

use super::shown::shown_task;
use super::store::{is_immutable, open_options};
use super::values::{absolute, cache_budget_bytes, log_config, talk};
use super::view::{array_options, view_options, views};
use super::writing::{writer_options, writing};
use super::{CliTask, InfoConfig, MountConfig, StoreArgument};
use crate::cli::args::{Args, Indices};
use crate::cli::error::CliError;
use crate::cli::list::ListForm;
use crate::cli::options::MountOptions;
use crate::cli::{addresses, format_step, generated, version};
use crate::escape::Text;
use crate::fuse::session::{MountAccess, SessionOptions};
#[cfg(feature = "remote")]
use crate::store::OpenOptions;

impl CliTask {
    /// Checks the arguments, and decides which task they mean.
    ///
    /// # Errors
    /// When an argument is missing or wrong, or STORE does not exist.
    pub(crate) fn new(mut args: Args, options: MountOptions) -> Result<Self, CliError> {
        if let Some(text) = about_itself(&args)? {
            return Ok(CliTask::Print(text));
        }
        if let Some(mountpoint) = &args.unmount {
            return Ok(CliTask::Unmount(absolute(mountpoint)?, talk(&args)));
        }
        if args.list {
            return Ok(CliTask::List(list_form(&args)));
        }
        if let Some(mountpoint) = &args.status {
            return Ok(CliTask::Status {
                mountpoint: absolute(mountpoint)?,
                json: args.json,
            });
        }
        let Some(store) = &args.store else {
            return Err(store_missing(&args));
        };
        (args.view, args.immutable) = (views(&args), is_immutable(&args));
        let log = log_config(&args)?;
        let others_look = options.access == MountAccess::Everyone;
        let (store, read_as) = format_step::split(store);
        let store = StoreArgument::resolve(&store)?;
        if args.recover {
            let writing = writer_options(&args, &store)?;
            return Ok(CliTask::Recover(store, writing, log, talk(&args)));
        }
        let open = open_options(&args, read_as, others_look);
        #[cfg(feature = "remote")]
        let open = OpenOptions {
            remote: super::store::remote_options(&args, &store)?,
            ..open
        };
        if args.info {
            let arrays = array_options(&args, &store, others_look)?;
            let cache_budget_bytes = cache_budget_bytes(&args);
            let talk = talk(&args);
            return Ok(CliTask::Info(Box::new(InfoConfig {
                arrays: (!args.files.is_empty()).then_some(arrays),
                store,
                read_as,
                open,
                path: args.target,
                at: element(args.at)?,
                offset: args.offset,
                shown_as: args.shown_as,
                sizes: args.sizes,
                json: args.json,
                talk,
                cache_budget_bytes,
                max_chunk_bytes: args.max_chunk,
                timeout: args.timeout,
                log,
                #[cfg(debug_assertions)]
                injections: args.inject,
            })));
        }
        if args.verify || args.warms() || args.cat || args.serves() || args.export.is_some() {
            return shown_task(args, store, open, read_as);
        }
        let Some(target) = &args.target else {
            return Err(CliError::Usage(format!(
                "MOUNTPOINT missing: where is {} to be mounted",
                Path::new(store.as_os_str()).display()
            )));
        };
        let arrays = array_options(&args, &store, others_look)?;
        let view = view_options(&args, &store, read_as, arrays);
        let writing = writing(&args, &options, &store, read_as)?;
        let task = if options.is_fake {
            CliTask::Check
        } else {
            CliTask::Mount
        };
        Ok(task(Box::new(MountConfig {
            open,
            mountpoint: absolute(Path::new(target))?,
            nonempty: options.nonempty,
            foreground: args.foreground,
            hint: options.hint.filter(|_| !args.rw),
            xattr: options.xattr,
            passthrough: args.passthrough,
            transport: args.transport,
            session: SessionOptions {
                is_writable: writing.is_some(),
                ..session_options(&store, options, view.decode_threads)
            },
            writing,
            view,
            store,
            log,
            #[cfg(debug_assertions)]
            injections: args.inject,
        })))
    }
}

/// The error that STORE is missing, with the other argument that the command needs.
fn store_missing(args: &Args) -> CliError {
    let has_path =
        args.info || args.verify || args.warms() || args.serves() || args.export.is_some();
    let and_other = match (args.cat, has_path) {
        (true, _) => " and PATH",
        (_, true) => "",
        _ => " and MOUNTPOINT",
    };
    CliError::Usage(format!("STORE{and_other} missing"))
}

fn list_form(args: &Args) -> ListForm {
    match (args.json, args.quiet) {
        (true, _) => ListForm::Json,
        (_, true) => ListForm::Mountpoints,
        _ => ListForm::Table,
    }
}

/// The answer to a question about the program itself, if the command asks only that.
fn about_itself(args: &Args) -> Result<Option<Text>, CliError> {
    if args.version {
        return Ok(Some(version::version(args.verbose > 0)));
    }
    if args.man {
        return generated::man_page().map(Some);
    }
    Ok(args.completions.map(generated::completions))
}

/// The indices of the element that `--at` asks for.
fn element(mut given: Vec<Indices>) -> Result<Option<Vec<i128>>, CliError> {
    if given.len() > 1 {
        let problem =
            "--at is given more than once; it takes all indices of one element, as --at 3,20,40";
        return Err(CliError::Usage(problem.to_owned()));
    }
    Ok(given.pop().map(|indices| indices.0))
}

fn session_options(
    store: &StoreArgument,
    options: MountOptions,
    decode_threads: usize,
) -> SessionOptions {
    SessionOptions {
        is_writable: false,
        fsname: options
            .fsname
            .unwrap_or_else(|| store.as_os_str().to_owned()),
        access: options.access,
        execution: options.execution,
        // There are more of these threads than decoders: a thread that waits for a disk must not block requests that
        // need no disk.
        n_threads: addresses::reader_threads(decode_threads.max(4) * 2),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::sync::Arc;

    use log::LevelFilter;

    use super::*;
    use crate::cli::config::Talk;
    use crate::cli::config::ViewKind;
    use crate::cli::options::Unknown;
    use crate::metadata::ZarrFormat;
    use crate::store::{MemoryStore, Store};
    use crate::threads::cores;

    fn task(words: &[&str]) -> Result<CliTask, CliError> {
        let words = ["zarr-mount"].iter().chain(words).map(OsString::from);
        let words: Vec<_> = words.collect();
        let (args, options) = Args::parse_from(&words, Unknown::Refused)?;
        CliTask::new(args, options)
    }

    fn mount(words: &[&str]) -> MountConfig {
        match task(words).unwrap() {
            CliTask::Mount(config) => *config,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_mount_with_its_defaults() {
        let config = mount(&["demo:", "m"]);
        assert_eq!(config.store, StoreArgument::Name("demo:".into()));
        assert!(config.mountpoint.is_absolute());
        assert_eq!(config.session.fsname, "demo:");
        assert!(config.session.n_threads >= 1);
        assert_eq!(config.view.decode_threads, cores());
        assert_eq!(config.view.views, [ViewKind::Keys]);
        assert!(config.view.cache_budget_bytes > 0);
        assert_eq!(config.log.level, LevelFilter::Warn);
    }

    #[test]
    fn paths_are_resolved_now() {
        let config = mount(&["src", "m", "-o", "fsname=x", "--log-file", "l"]);
        let source = std::env::current_dir().unwrap().join("src");
        assert_eq!(config.store.path(), Some(&*source.canonicalize().unwrap()));
        assert_eq!(config.session.fsname, "x");
        assert!(config.log.file.unwrap().is_absolute());
    }

    #[test]
    fn a_view_named_twice_is_one() {
        let config = mount(&["demo:", "m", "--view", "chunks,keys,chunks", "-vv"]);
        assert_eq!(config.view.views, [ViewKind::Chunks, ViewKind::Keys]);
        assert_eq!(config.log.level, LevelFilter::Debug);
    }

    #[test]
    fn threads_that_answer_are_more_than_those_that_decode() {
        let most = |n| addresses::reader_threads(n);
        for (words, decode, answer) in [("1", 1, 8), ("4", 4, 8), ("64", 64, 128)] {
            let config = mount(&["demo:", "m", "--threads", words]);
            assert_eq!(config.view.decode_threads, decode);
            assert_eq!(config.session.n_threads, most(answer));
        }
    }

    #[test]
    fn missing_arguments_are_named() {
        let cases: [(&[&str], &str); 4] = [
            (&[], "STORE and MOUNTPOINT missing"),
            (&["demo:"], "MOUNTPOINT missing"),
            (&["--info"], "STORE missing"),
            (
                &["/no/such/store", "m"],
                "STORE /no/such/store: No such file",
            ),
        ];
        for (words, part) in cases {
            let message = task(words).unwrap_err().to_string();
            assert!(message.starts_with(part), "{message}");
        }
    }

    #[test]
    fn the_other_tasks() {
        assert!(
            matches!(task(&["--unmount", "m"]), Ok(CliTask::Unmount(path, Talk::Usual)) if path.is_absolute())
        );
        let info = task(&["--info", "https://host/a.zarr", "b", "--json"]);
        let Ok(CliTask::Info(info)) = info else {
            panic!("{info:?}");
        };
        assert_eq!(
            info.store,
            StoreArgument::Name("https://host/a.zarr".into())
        );
        assert_eq!(info.path.unwrap(), "b");
        assert!(info.json && !info.sizes);
        let words = [
            "--info",
            "demo:",
            "a",
            "--at",
            "0",
            "--max-chunk",
            "7",
            "--cache-size",
            "99MiB",
        ];
        let Ok(CliTask::Info(info)) = task(&words) else {
            panic!("{words:?}");
        };
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (options, _) = crate::cli::at::for_one_look(&store, &info);
        assert_eq!(options.max_chunk_bytes, 7);
        assert_eq!(options.cache_budget_bytes, 99 << 20);
    }

    #[test]
    fn the_format_of_a_store_is_named() {
        for (typed, read_as) in [
            ("demo:", None),
            ("demo:|zarr3:", Some(ZarrFormat::V3)),
            ("demo:|n5:", Some(ZarrFormat::N5)),
        ] {
            let config = mount(&[typed, "m"]);
            assert_eq!(config.store, StoreArgument::Name("demo:".into()));
            assert_eq!(config.view.read_as, read_as);
        }
        let refused = task(&["src|zarr2:", "m", "--rw"]).unwrap_err().to_string();
        assert!(refused.contains("is only read"), "{refused}");
    }

    #[test]
    fn journals_are_kept_outside_of_the_store() {
        for (directory, is_refused) in [
            ("src", true),
            ("src/new", true),
            ("new/../src/new", true),
            ("src/../new", false),
        ] {
            let words = [
                "src",
                "m",
                "--rw",
                "--view",
                "chunks",
                "--staging",
                directory,
            ];
            let problem = task(&words).err().map(|error| error.to_string());
            let is_told = problem.is_some_and(|problem| problem.contains("is in STORE"));
            assert_eq!(is_told, is_refused, "{directory}");
        }
    }

    #[test]
    fn nothing_is_exported_into_a_store_that_is_named_with_steps() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).into_os_string();
        std::fs::create_dir(at("repository")).unwrap();
        std::fs::write(at("a.zip"), "").unwrap();
        for (store, step, directory, expected) in [
            ("repository", "|icechunk:", "repository/out", "is in STORE"),
            ("repository", "|icechunk:", "repository", "is in STORE"),
            ("repository", "|icechunk:", ".", "has STORE in it"),
            ("repository", "|icechunk:", "out", ""),
            ("a.zip", "|zip:x", ".", "has STORE in it"),
            ("a.zip", "|zip:b.zip|zip:", ".", "has STORE in it"),
            ("a.zip", "|zip:x", "out", ""),
        ] {
            let mut typed = at(store);
            typed.push(step);
            let words = ["zarr-mount".into(), "--export".into(), at(directory), typed];
            let (args, options) = Args::parse_from(&words, Unknown::Refused).unwrap();
            let problem = CliTask::new(args, options).err();
            let problem = problem.map_or_else(String::new, |error| error.to_string());
            assert!(problem.contains(expected), "{store} {directory}: {problem}");
            assert_eq!(problem.is_empty(), expected.is_empty(), "{problem}");
        }
    }

    #[test]
    fn one_element_is_asked_for() {
        let at = |words: &[&str]| match task(&[&["--info", "demo:", "a"], words].concat()) {
            Ok(CliTask::Info(info)) => Ok(info.at),
            other => Err(format!("{other:?}")),
        };
        assert_eq!(at(&[]), Ok(None));
        assert_eq!(at(&["--at", "1,-2"]), Ok(Some(vec![1, -2])));
        let refused = at(&["--at", "1", "--at", "2"]).unwrap_err();
        assert!(
            refused.contains("--at is given more than once"),
            "{refused}"
        );
    }
}
