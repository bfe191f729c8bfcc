//! Sentences for people about the parts of a node that its files leave out. Each omission is reported once.
//!
//! One array may be left out of several formats for the same reason, and of the files of all groups
//! above it. Its own line says so, with all formats in one sentence. The line of a group has only
//! omissions that no line of an array has.

use std::collections::HashSet;

use super::facts::FileFacts;
use crate::store::Prefix;
use crate::view::{FileFormat, FormatOutcome, View};

/// The omissions that were reported already: a format, and the path of a node that its file leaves
/// out.
#[derive(Debug, Default)]
pub(super) struct SaidOmissions(HashSet<(FileFormat, Vec<u8>)>);

/// The formats that leave out the same part, and the reason.
struct Reason {
    formats: Vec<&'static str>,
    /// The part that is left out; `None` if the format has no file.
    what: Option<String>,
    text: String,
}

impl Reason {
    fn sentence(&self) -> String {
        let (formats, text) = (self.formats.join(", "), &self.text);
        match &self.what {
            None => format!("not {formats}: {text}"),
            Some(part) => format!("not in {formats}: {part}: {text}"),
        }
    }
}

impl SaidOmissions {
    /// The formats that the node at `prefix` fits, by its `files`, and the reasons why files are missing or leave
    /// something out; `None` if there is nothing to say.
    pub(super) fn sentence(
        &mut self,
        prefix: &Prefix,
        files: &[FileFacts],
        view: &View,
    ) -> Option<String> {
        let mut reasons: Vec<Reason> = Vec::new();
        for FileFacts {
            format, omissions, ..
        } in files
        {
            for (part, text) in omissions {
                let is_new = match part {
                    Some(part) => self.is_new(prefix, *format, part, view),
                    None => true,
                };
                if is_new {
                    add(&mut reasons, *format, part.as_deref(), text);
                }
            }
        }
        let there = files.iter().filter(|file| file.is_there());
        let there: Vec<&str> = there.map(|file| file.format.name()).collect();
        let fits = (!there.is_empty()).then(|| format!("fits {}", there.join(", ")));
        let not = reasons.iter().map(Reason::sentence);
        let sentences: Vec<String> = fits.into_iter().chain(not).collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }

    /// Whether no other line says that the file of the group at `prefix` leaves out `part`.
    fn is_new(&mut self, prefix: &Prefix, format: FileFormat, part: &str, view: &View) -> bool {
        let Ok(path) = prefix.key(part.as_bytes()) else {
            return true;
        };
        let path = path.to_prefix();
        !is_said_of_array(&path, format, view) && self.0.insert((format, path.as_bytes().to_vec()))
    }
}

/// Whether the line of the array at `path` says that it is in no file of `format`.
fn is_said_of_array(path: &Prefix, format: FileFormat, view: &View) -> bool {
    // The line of the array has the error, too.
    let Ok(outcomes) = view.arrays().outcomes(path) else {
        return true;
    };
    let mut outcomes = outcomes.unwrap_or_default().into_iter();
    outcomes.any(|(found, outcome)| found == format && matches!(outcome, FormatOutcome::LeftOut(_)))
}

/// Adds a reason, or adds the format to a reason that is equal.
fn add(reasons: &mut Vec<Reason>, format: FileFormat, what: Option<&str>, text: &str) {
    // The formats are named in front.
    let of_format = format!(" in {}", format.title());
    let text = text.strip_suffix(&of_format).unwrap_or(text);
    let mut known = reasons.iter_mut();
    match known.find(|reason| reason.what.as_deref() == what && reason.text == text) {
        Some(reason) => reason.formats.push(format.name()),
        None => reasons.push(Reason {
            formats: vec![format.name()],
            what: what.map(str::to_owned),
            text: text.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_share_a_reason() {
        let mut reasons = Vec::new();
        let text = |format: &str| format!("data type: `string` cannot be expressed in {format}");
        add(&mut reasons, FileFormat::H5, None, &text("HDF5"));
        add(&mut reasons, FileFormat::Npy, None, &text("npy"));
        add(&mut reasons, FileFormat::Npy, Some("t"), &text("npy"));
        add(&mut reasons, FileFormat::Tif, None, "shape");
        let told: Vec<_> = reasons
            .iter()
            .map(|reason| (reason.formats.join(" "), reason.text.as_str()))
            .collect();
        let cannot = "data type: `string` cannot be expressed";
        assert_eq!(
            told,
            [
                ("h5 npy".to_owned(), cannot),
                ("npy".to_owned(), cannot),
                ("tif".to_owned(), "shape"),
            ]
        );
    }
}
