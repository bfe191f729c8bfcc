//! The part of STORE after `|icechunk:`, and the branch, tag or snapshot that it names.
//!
//! ```text
//! STORE|icechunk:                   the branch main
//! STORE|icechunk:a/b                the node a/b of it
//! STORE|icechunk:@branch.dev        another branch
//! STORE|icechunk:@branch.dev%2Fx    the branch dev/x
//! STORE|icechunk:@tag.v1/a/b        a node of a tag
//! STORE|icechunk:@1CECHNKREP0F1RSTCMT0
//! ```

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::object_id::ObjectId;
use crate::store::{Prefix, StoreError};

/// The branch of a repository that is read unless another one is named.
const MAIN: &str = "main";

/// The characters of a name that are written as `%` and two hexadecimal digits: a `/` would begin the path of a node.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'/').add(b'%');

/// The snapshot and the node of a repository that are shown as the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IcechunkAddress {
    pub(super) reference: Reference,
    /// The node that is the root of the store.
    pub(super) root: Prefix,
}

/// A name of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// The last snapshot of a branch, which changes.
    Branch(String),
    /// The snapshot of a tag.
    Tag(String),
    /// The snapshot itself.
    Snapshot(ObjectId),
}

impl Default for IcechunkAddress {
    fn default() -> IcechunkAddress {
        IcechunkAddress {
            reference: Reference::Branch(MAIN.to_owned()),
            root: Prefix::root(),
        }
    }
}

impl IcechunkAddress {
    /// Parses `text`, which is what follows `|icechunk:`.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] when it names no snapshot, [`StoreError::InvalidKey`] for a path that no node can
    /// have.
    pub fn parse(text: &str) -> Result<IcechunkAddress, StoreError> {
        let default = IcechunkAddress::default();
        let Some(named) = text.strip_prefix('@') else {
            let root = Prefix::parse(text.as_bytes())?;
            return Ok(IcechunkAddress { root, ..default });
        };
        let (name, path) = named.split_once('/').unwrap_or((named, ""));
        let root = Prefix::parse(path.as_bytes())?;
        let reference = match name.split_once('.') {
            Some(("branch", branch)) if !branch.is_empty() => Reference::Branch(unescaped(branch)?),
            Some(("tag", tag)) if !tag.is_empty() => Reference::Tag(unescaped(tag)?),
            _ => Reference::Snapshot(ObjectId::parse(name).ok_or_else(|| {
                StoreError::Unsupported(format!(
                    "@{name} names no snapshot; write @branch.NAME, @tag.NAME, or @ and the 20 characters of a \
                     snapshot"
                ))
            })?),
        };
        Ok(IcechunkAddress { reference, root })
    }
}

/// The name of a branch or tag that is typed as `typed`.
fn unescaped(typed: &str) -> Result<String, StoreError> {
    let name = percent_decode_str(typed).decode_utf8();
    let name = name.map_err(|_| {
        StoreError::Unsupported(format!(
            "{typed} is no name of a branch or tag, because it is not UTF-8"
        ))
    })?;
    Ok(name.into_owned())
}

/// The `name` of a branch or tag as it is typed.
pub(super) fn escaped(name: &str) -> impl fmt::Display {
    utf8_percent_encode(name, ESCAPED)
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Branch(name) => write!(f, "branch {name}"),
            Reference::Tag(name) => write!(f, "tag {name}"),
            Reference::Snapshot(id) => write!(f, "snapshot {id}"),
        }
    }
}

impl fmt::Display for IcechunkAddress {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reference {
            Reference::Branch(name) => write!(f, "@branch.{}", escaped(name))?,
            Reference::Tag(name) => write!(f, "@tag.{}", escaped(name))?,
            Reference::Snapshot(id) => write!(f, "@{id}")?,
        }
        if self.root.is_root() {
            return Ok(());
        }
        write!(f, "/{}", self.root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_named_in_three_ways() {
        for (text, shown) in [
            ("", "@branch.main"),
            ("a/b", "@branch.main/a/b"),
            ("/a/", "@branch.main/a"),
            ("@branch.dev", "@branch.dev"),
            ("@branch.a.b/c/d", "@branch.a.b/c/d"),
            ("@branch.a%2fb/c", "@branch.a%2Fb/c"),
            ("@tag.50%25/c", "@tag.50%25/c"),
            ("@tag.T1/", "@tag.T1"),
            ("@1cechnkrep0f1rstcmt0/x", "@1CECHNKREP0F1RSTCMT0/x"),
        ] {
            let address = IcechunkAddress::parse(text).unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(IcechunkAddress::parse(shown).unwrap(), address);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["@", "@main", "@branch.", "@tag", "@1CECHNKREP0F1RSTCMT1"] {
            let problem = IcechunkAddress::parse(text).unwrap_err().to_string();
            assert!(problem.contains("@branch.NAME"), "{text}: {problem}");
        }
        assert!(IcechunkAddress::parse("@branch.main/a/../b").is_err());
        assert!(IcechunkAddress::parse("@branch.%ff").is_err());
    }

    #[test]
    fn names_may_have_slashes() {
        for (text, name, root) in [
            ("@branch.dev%2Fx/a/b", "dev/x", "a/b"),
            ("@branch.50%", "50%", ""),
            ("@branch.a%252Fb", "a%2Fb", ""),
        ] {
            let address = IcechunkAddress::parse(text).unwrap();
            assert_eq!(address.reference, Reference::Branch(name.to_owned()));
            assert_eq!(address.root, Prefix::parse(root.as_bytes()).unwrap());
        }
    }
}
