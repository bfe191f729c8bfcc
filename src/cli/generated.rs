//! Texts that are generated from the definition of the options: the man page, and completions for
//! shells.

use std::collections::BTreeSet;

use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::args::{Args, mount_option_of};
use super::environment::VARIABLES;
use super::{error::CliError, help};
use crate::escape::Text;

/// Long options whose values are lists, with commas between them.
const LISTS: [&str; 2] = ["view", "files"];

/// Long options whose value is a mountpoint.
const OF_MOUNTS: [&str; 2] = ["unmount", "status"];

/// The man page, in the language of `roff`.
///
/// # Errors
/// Never: the text is written to memory.
pub(super) fn man_page() -> Result<Text, CliError> {
    let command = Args::command().mut_args(with_values_as_name);
    let man = Man::new(command.clone()).date(" ").manual("User Commands");
    let page = written(&man, &command).map_err(CliError::failed)?;
    Ok(as_text(&page))
}

fn written(man: &Man, command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    let mut head = Roff::new();
    section(&mut head, "SYNOPSIS");
    as_typed(&mut head, help::USAGE);
    section(&mut head, "DESCRIPTION");
    let description = command.get_about().map(ToString::to_string);
    let description = description.unwrap_or_default();
    head.text([roman(format!(
        "{description}. The command returns when the mount answers, and a daemon goes on until the \
         mount is unmounted. The mount is read-only unless --rw is given."
    ))]);
    head.to_writer(&mut page)?;
    tasks().to_writer(&mut page)?;
    page.extend(options_in_groups(man, command)?);
    sections_after_options().to_writer(&mut page)?;
    Ok(page)
}

/// `--shards <expand|keep>`: in the man page, a list of values below each option would be long.
fn with_values_as_name(argument: Arg) -> Arg {
    let values = argument.get_possible_values();
    if !argument.get_action().takes_values()
        || values.is_empty()
        || argument.is_hide_possible_values_set()
    {
        return argument;
    }
    let names: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
    let name = names.join("|");
    argument.value_name(name).hide_possible_values(true)
}

/// The section with the tasks of users, and the commands for them.
fn tasks() -> Roff {
    let mut tasks = Roff::new();
    section(&mut tasks, "TASKS");
    for task in help::TASKS {
        tasks.control("SS", [task.title]);
        tasks.text([roman(task.about)]);
        for (command, meaning) in columns(task.examples) {
            tasks.control("TP", []);
            tasks.text([bold(command)]);
            tasks.text([roman(meaning)]);
        }
    }
    tasks
}

/// The arguments, and the options in the groups of `--help`. `clap_mangen` makes a section of each group, which is made a
/// subsection here.
fn options_in_groups(man: &Man, command: &Command) -> std::io::Result<Vec<u8>> {
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    let mut options = String::from_utf8_lossy(&options).into_owned();
    for title in command.get_arguments().filter_map(Arg::get_help_heading) {
        let section = heading("SH", &title.to_uppercase());
        options = options.replace(&section, &heading("SS", title));
    }
    Ok(options.into_bytes())
}

/// The line of a heading, as the page has it.
fn heading(level: &str, title: &str) -> String {
    let quote = if title.contains(' ') { "\"" } else { "" };
    format!(".{level} {quote}{title}{quote}\n")
}

fn sections_after_options() -> Roff {
    let mut rest = Roff::new();
    section(&mut rest, "MOUNT OPTIONS");
    rest.text([roman(
        "The option -o takes what mount(8) passes, every long option that is about a mount, by its name \
         without the dashes, and:",
    )]);
    for (name, meaning) in columns(help::MOUNT_OPTIONS) {
        rest.control("TP", []);
        rest.text([bold(name)]);
        rest.text([roman(meaning)]);
    }
    rest.control("PP", []);
    rest.text([roman(help::ABOUT_VALUES)]);
    rest.control("PP", []);
    rest.text([roman(format!("{}:", help::ABOUT_FSTAB))]);
    as_typed(&mut rest, help::FSTAB);
    section(&mut rest, "ENVIRONMENT");
    rest.text([roman(
        "The program and its libraries read these variables; no variable is about the log. With --env-file, those of remote \
         stores may be in a file.",
    )]);
    for (names, meaning) in VARIABLES {
        rest.control("TP", []);
        rest.text([bold(names)]);
        rest.text([roman(meaning)]);
    }
    section(&mut rest, "FILES");
    for (path, meaning) in [
        ("MOUNTPOINT/.zarr-mount/stats.json", "counters of the mount"),
        ("MOUNTPOINT/.zarr-mount/log", "the last lines of the log"),
        (
            "MOUNTPOINT/.zarr-mount/sync",
            "with --rw: fsync of it returns when all that was closed is in the store",
        ),
        (
            "MOUNTPOINT/.zarr-mount/refused",
            "with --rw: the last changes that were refused, and why",
        ),
        (
            "STORE/.zarr-mount",
            "while a mount with --rw goes on: temporary files and journals",
        ),
    ] {
        rest.control("TP", []);
        rest.text([bold(path)]);
        rest.text([roman(meaning)]);
    }
    section(&mut rest, "EXIT STATUS");
    rest.text([roman(
        "0 when the command did what was asked, 1 when it could not, 2 when it was not understood. For --verify, 1 means \
         damage, and 2 also that something could not be examined.",
    )]);
    section(&mut rest, "SEE ALSO");
    rest.text([roman("mount(8), fstab(5), fusermount3(1), umount(8)")]);
    rest
}

fn section(page: &mut Roff, title: &str) {
    page.control("SH", [title]);
}

/// Adds lines that are not filled, so that they break where they break here.
fn as_typed(page: &mut Roff, lines: &str) {
    page.control("nf", []);
    for line in lines.lines() {
        page.text([roman(line.trim_start())]);
    }
    page.control("fi", []);
}

/// The rows of a text in two columns: a name, and its meaning, which may be alone on the next line.
fn columns(text: &str) -> Vec<(&str, &str)> {
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for line in text.lines() {
        let is_meaning_alone = line.starts_with("    ");
        match (line.trim().split_once("  "), rows.last_mut()) {
            (None, Some(row)) if is_meaning_alone => row.1 = line.trim(),
            (Some((name, meaning)), _) => rows.push((name, meaning.trim())),
            (None, _) => rows.push((line.trim(), "")),
        }
    }
    rows
}

/// A script that has a shell complete options and their values.
pub(super) fn completions(shell: Shell) -> Text {
    let mut command = Args::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "zarr-mount", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script.push_str(&values_in_bash(&command)),
        Shell::Zsh => script = mountpoints_in_zsh(&lists_in_zsh(&script, &command)),
        Shell::Fish => script.push_str(&mountpoints_in_fish()),
        _ => {}
    }
    as_text(script.as_bytes())
}

/// The values that a list may have.
fn words(command: &Command, option: &str) -> String {
    let found = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(option));
    let values = found.map(Arg::get_possible_values);
    let names: Vec<_> = values.unwrap_or_default();
    let names: Vec<_> = names.iter().map(PossibleValue::get_name).collect();
    names.join(" ")
}

/// Bash code for what clap's script does not complete: the words of a list after the first, and mountpoints. If no mount
/// begins with the typed text, bash completes directories.
fn values_in_bash(command: &Command) -> String {
    let cases: Vec<String> = LISTS
        .iter()
        .map(|option| {
            format!(
                "        --{option}) words='{}' ;;\n",
                words(command, option)
            )
        })
        .collect();
    let options = command.get_arguments().filter_map(mount_option_of);
    let mount_options: BTreeSet<String> = columns(help::MOUNT_OPTIONS)
        .iter()
        .flat_map(|(names, _)| names.split(", "))
        .map(|name| name.split_inclusive('=').next().unwrap_or(name).to_owned())
        .chain(options)
        .collect();
    let mount_options: Vec<String> = mount_options.into_iter().collect();
    format!(
        r#"
# Values with commas between them: what stands after the last comma is completed. Mountpoints are those of this user.
_zarr_mount_values() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" words= before= point
    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev="${{COMP_WORDS[COMP_CWORD-2]}}"; fi
    case "$prev" in
{}        -o) words='{}' ;;
        {})
            COMPREPLY=()
            while IFS= read -r point; do
                if [[ $point == "$cur"* || $(printf %q "$point") == "$cur"* ]]; then COMPREPLY+=("$point"); fi
            done < <("$1" --list --quiet 2>/dev/null)
            # A space in a name gets a backslash.
            compopt -o filenames 2>/dev/null
            return 0 ;;
        *) _zarr__mount "$@"; return ;;
    esac
    [[ $cur == *,* ]] && before="${{cur%,*}},"
    COMPREPLY=( $(compgen -P "$before" -W "$words" -- "${{cur##*,}}") )
    compopt -o nospace 2>/dev/null
    return 0
}}
complete -F _zarr_mount_values -o bashdefault -o default zarr-mount
"#,
        cases.concat(),
        mount_options.join(" "),
        OF_MOUNTS.map(|option| format!("--{option}")).join("|"),
    )
}

/// `script` with lists completed by zsh's function for them.
fn lists_in_zsh(script: &str, command: &Command) -> String {
    LISTS.iter().fold(script.to_owned(), |script, option| {
        let words = words(command, option);
        let one = format!("({words})");
        script.replace(&one, &format!("_values -s , {option} {words}"))
    })
}

/// `script` with mountpoints of this user completed, or directories if no mount begins with the typed text.
fn mountpoints_in_zsh(script: &str) -> String {
    const FUNCTION: &str = r#"
(( $+functions[_zarr_mount_points] )) ||
_zarr_mount_points() {
    local -a points
    points=( ${(f)"$("${words[1]}" --list --quiet 2>/dev/null)"} )
    compadd -f -a points || _files -/
}
"#;
    let lines = script.lines().map(|line| {
        let is_of_mounts = OF_MOUNTS
            .iter()
            .any(|option| line.contains(&format!("--{option}=[")));
        let line = match line.strip_suffix(":MOUNTPOINT:_files -/' \\") {
            Some(begin) if is_of_mounts => format!("{begin}:MOUNTPOINT:_zarr_mount_points' \\"),
            _ => line.to_owned(),
        };
        line + "\n"
    });
    let script: String = lines.collect();
    // The script calls its main function at its end.
    match script.rfind("\nif [ \"$funcstack[1]\"") {
        Some(end) => [&script[..end], FUNCTION, &script[end..]].concat(),
        None => script,
    }
}

/// Lines for fish, which complete mountpoints of this user before directories.
fn mountpoints_in_fish() -> String {
    let lines = OF_MOUNTS.map(|option| {
        format!(
            "complete -c zarr-mount -l {option} -x -a \"(zarr-mount --list --quiet 2>/dev/null)\"\n"
        )
    });
    lines.concat()
}

fn as_text(bytes: &[u8]) -> Text {
    let text = String::from_utf8_lossy(bytes);
    text.lines().fold(Text::new(), Text::line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: Text) -> String {
        String::from_utf8(text.into_bytes()).unwrap()
    }

    #[test]
    fn the_man_page_has_all_options_and_examples() {
        let page = text(man_page().unwrap());
        let plain = ["\\fB", "\\fR"]
            .iter()
            .fold(page.clone(), |page, font| page.replace(font, ""));
        let plain = plain.replace("\\-", "-").replace("\\*(Aq", "'");
        for argument in Args::command().get_arguments() {
            let Some(long) = argument.get_long() else {
                continue;
            };
            let is_hidden = argument.is_hide_set();
            assert_eq!(plain.contains(&format!("--{long}")), !is_hidden, "{long}");
        }
        for task in help::TASKS {
            assert!(plain.contains(&heading("SS", task.title)), "{}", task.title);
            for (command, _) in columns(task.examples) {
                assert!(plain.contains(command), "{command}");
            }
        }
        for (names, _) in VARIABLES {
            assert!(plain.contains(names), "{names}");
        }
        for title in [
            "ENVIRONMENT",
            "TASKS",
            "NAME",
            "SYNOPSIS",
            "OPTIONS",
            "MOUNT OPTIONS",
            "EXIT STATUS",
        ] {
            assert!(
                page.contains(&format!(".SH \"{title}\""))
                    || page.contains(&format!(".SH {title}")),
                "{title}"
            );
        }
        assert!(!page.contains("\\u{"), "{page}");
    }

    #[test]
    fn the_man_page_has_the_options_in_the_groups_of_the_help() {
        let page = text(man_page().unwrap());
        let (_, options) = page.split_once("\n.SH OPTIONS\n").unwrap();
        let (options, _) = options.split_once("\n.SH ").unwrap();
        let command = Args::command();
        let help = command.clone().render_help().to_string();
        let mut groups = Vec::new();
        for argument in command.get_arguments().filter(|one| !one.is_hide_set()) {
            let Some(title) = argument.get_help_heading() else {
                continue;
            };
            assert!(help.contains(&format!("\n{title}:\n")), "{title}");
            let (_, group) = options.split_once(&heading("SS", title)).expect(title);
            let group = group.split("\n.SS ").next().unwrap();
            let name = argument.get_long().unwrap_or("o").replace('-', "\\-");
            assert!(group.contains(&name), "{title}: {name}");
            groups.push(title);
        }
        groups.dedup();
        assert_eq!(options.matches(".SS ").count(), groups.len());
    }

    #[test]
    fn columns_are_names_and_meanings() {
        let found = columns("  a b  c\n  d\n        e f\n  g   h");
        assert_eq!(found, [("a b", "c"), ("d", "e f"), ("g", "h")]);
        let commands = help::TASKS.map(|task| columns(task.examples));
        for (command, meaning) in commands.concat() {
            let is_explained = !meaning.is_empty() || command.starts_with("mount -t fuse");
            assert!(is_explained, "{command}");
        }
    }

    #[test]
    fn completions_have_the_values_of_options() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = text(completions(shell));
            for word in ["cache-size", "keys", "ome.tif", "atomic", "v3"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            assert!(!script.contains("\\u{"), "{shell}");
        }
        let zsh = text(completions(Shell::Zsh));
        assert_eq!(zsh.matches(":_zarr_mount_points'").count(), OF_MOUNTS.len());
        assert!(zsh.contains("_values -s , view keys chunks arrays"));
        let bash = text(completions(Shell::Bash));
        assert!(bash.contains("--view) words='keys chunks arrays' ;;"));
        for name in ["allow_other", "fsname=", "cache-size=", "immutable"] {
            assert!(bash.contains(&format!(" {name} ")), "{name}");
        }
    }
}
