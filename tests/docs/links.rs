//! The pages of the book and the README lead to each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{options, options_of_the_help, output, quoted};

const README_LINES: usize = 250;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn is_markdown(path: &str) -> bool {
    let extension = Path::new(path).extension();
    extension.is_some_and(|extension| extension == "md")
}

/// README.md, CONTRIBUTING.md, and all pages of the book and of decisions, by their paths in the repository.
fn pages() -> BTreeMap<String, String> {
    let within = |directory: &'static str| {
        let names = fs::read_dir(root().join(directory)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let markdown = names.filter(|name| is_markdown(name));
        markdown.map(move |name| format!("{directory}/{name}"))
    };
    within("docs/src")
        .chain(within("docs/decisions"))
        .chain(["README.md", "CONTRIBUTING.md"].map(str::to_owned))
        .map(|path| (path.clone(), fs::read_to_string(root().join(path)).unwrap()))
        .collect()
}

/// The lines outside of code fences, and what is wrong with the fences.
fn prose(text: &str) -> Result<String, String> {
    let mut kept = String::new();
    let mut fence: Option<(usize, &str)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim_start();
        let ticks = trimmed.len() - trimmed.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some((number, &trimmed[..ticks])),
            None => {
                kept.push_str(line);
                kept.push('\n');
            }
            Some((_, opened)) if trimmed.trim_end() == opened => fence = None,
            Some((first, opened)) if trimmed.starts_with(opened) => {
                return Err(format!("line {number}: a fence in that of line {first}"));
            }
            Some(_) => {}
        }
    }
    match fence {
        Some((number, _)) => Err(format!("line {number}: a fence that is left open")),
        None => Ok(kept),
    }
}

/// The text without code between backticks, which holds no links.
fn without_code(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        kept.push_str(&rest[..at]);
        let ticks = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        let (mark, after) = rest[at..].split_at(ticks);
        // Backticks without a partner in their paragraph are text.
        let paragraph = &after[..after.find("\n\n").unwrap_or(after.len())];
        rest = match paragraph.find(mark) {
            Some(end) => &after[end + ticks..],
            None => after,
        };
    }
    kept + rest
}

/// The targets of the links of a page: `[text](target)`, and `[name]: target` at the beginning of a line.
fn targets(page: &str) -> Vec<String> {
    let text = without_code(&prose(page).unwrap());
    let inline = text
        .split("](")
        .skip(1)
        .map(|after| after.split([')', ' ']).next().unwrap_or_default());
    let defined = text
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once("]: "))
        .map(|(_, target)| target);
    inline.chain(defined).map(str::to_owned).collect()
}

/// The anchors of the headings, as mdBook and GitHub make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let text = prose(page).unwrap();
    let mut made = BTreeSet::new();
    for line in text.lines() {
        let level = line.len() - line.trim_start_matches('#').len();
        if !(1..=6).contains(&level) || !line[level..].starts_with(' ') {
            continue;
        }
        let heading = line[level..].trim().to_lowercase();
        let name: String = heading
            .chars()
            .filter_map(|letter| match letter {
                '-' | '_' => Some(letter),
                _ if letter.is_alphanumeric() => Some(letter),
                _ if letter.is_whitespace() => Some('-'),
                _ => None,
            })
            .collect();
        // The second one of a name is `name-1`.
        let others = (1..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.clone()).chain(others);
        let free = names.find(|name| !made.contains(name)).unwrap();
        made.insert(free);
    }
    made
}

/// A path relative to the directory of a page, without `..`; nothing where it leads out of the repository.
fn resolved(page: &str, target: &str) -> Option<String> {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    Some(path.to_str()?.to_owned())
}

/// The problem of a link of a page; `None` if the link leads somewhere.
fn complaint(pages: &BTreeMap<String, String>, page: &str, target: &str) -> Option<String> {
    if ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| target.starts_with(scheme))
    {
        return None;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let path = match path {
        "" => page.to_owned(),
        _ => match resolved(page, path) {
            Some(path) => path,
            None => return Some("leads out of the repository".to_owned()),
        },
    };
    if !root().join(&path).exists() {
        return Some(format!("there is no {path}"));
    }
    let in_the_book = |path: &str| path.starts_with("docs/src/");
    // mdBook would link to an `.html` file that does not exist.
    if in_the_book(page) && is_markdown(&path) && !in_the_book(&path) {
        return Some(format!("{path} is no page of the book: link its directory"));
    }
    let anchor = anchor?;
    match pages.get(&path) {
        Some(text) if anchors(text).contains(anchor) => None,
        _ => Some(format!("{path} has no heading `{anchor}`")),
    }
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let mut wrong = Vec::new();
    let mut links = 0;
    for (page, text) in &pages {
        for target in targets(text) {
            links += 1;
            if let Some(what) = complaint(&pages, page, &target) {
                wrong.push(format!("{page}: [...]({target}): {what}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(links > 100, "only {links} links were found");
}

#[test]
fn the_summary_has_every_page_once() {
    let pages = pages();
    let listed = targets(&pages["docs/src/SUMMARY.md"]);
    let unique: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    let there = pages
        .keys()
        .filter_map(|path| path.strip_prefix("docs/src/"))
        .filter(|name| *name != "SUMMARY.md")
        .map(str::to_owned)
        .collect::<BTreeSet<_>>();
    assert_eq!(unique, there, "entries of SUMMARY.md, pages");
}

#[test]
fn code_fences_are_closed() {
    let wrong: Vec<String> = pages()
        .iter()
        .filter_map(|(page, text)| Some(format!("{page}: {}", prose(text).err()?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_page_has_one_title() {
    for (page, text) in pages() {
        assert!(text.starts_with("# "), "{page} begins without a title");
        let text = prose(&text).unwrap();
        let titles = text.lines().filter(|line| line.starts_with("# ")).count();
        // Those of the summary are the parts of the book.
        assert!(
            titles == 1 || page.ends_with("/SUMMARY.md"),
            "{page}: {titles} titles"
        );
    }
}

#[test]
fn the_readme_is_short() {
    let lines = pages()["README.md"].lines().count();
    assert!(lines <= README_LINES, "{lines} lines");
}

/// Of the page itself, whatever other pages have.
#[test]
fn the_page_of_options_has_every_option_of_the_help() {
    let page = &pages()["docs/src/options.md"];
    let rows = page.lines().filter(|line| line.starts_with("| `-"));
    let documented: BTreeSet<String> = rows
        .filter_map(|row| row.split(" | ").next())
        .flat_map(quoted)
        .flat_map(|text| options(&text).collect::<Vec<_>>())
        .collect();
    let in_help = options_of_the_help();
    let missing: Vec<_> = in_help.difference(&documented).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
}

/// The README shows the description of `demo:` that the program prints.
#[test]
fn the_readme_describes_the_demo_as_the_program_does() {
    let page = &pages()["README.md"];
    let mut shown = 0;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ zarr-mount --info ") else {
            continue;
        };
        if !command.contains("demo:") {
            continue;
        }
        let mut text = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
            text += line;
            text += "\n";
        }
        let mut arguments = vec!["--info"];
        arguments.extend(command.split(' '));
        assert_eq!(text, output(&arguments), "{command}");
        shown += 1;
    }
    assert!(shown > 0);
}

#[test]
fn anchors_are_those_of_mdbook_and_github() {
    let page = "# `a` and B_c\n## For v2: X, Y-z\n```\n# no heading\n```\n## For v2: X, Y-z\n#no\n";
    let expected = ["a-and-b_c", "for-v2-x-y-z", "for-v2-x-y-z-1"];
    assert_eq!(anchors(page), expected.map(str::to_owned).into());
}

#[test]
fn links_are_found_outside_of_code_only() {
    let page = "[a](b.md), `[c](d.md)`, [`e`](f.md#g \"title\")\n\n```\n[h](i)\n```\n[j]: k.md\n";
    assert_eq!(targets(page), ["b.md", "f.md#g", "k.md"]);
    assert!(prose("```\nx\n").is_err() && prose("```\n```text\n```\n").is_err());
}
