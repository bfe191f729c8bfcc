//! The kind and the attributes of what a key names.

use super::ObjectMeta;
#[cfg(doc)]
use super::Store;

/// The result of [`Store::stat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// An object or a prefix.
    pub kind: StatKind,
    /// Its attributes.
    pub meta: ObjectMeta,
    /// The attributes of the prefix of the same name, if the object has keys below it too, as a zip
    /// file has that is shown as a directory.
    pub below: Option<ObjectMeta>,
}

impl Stat {
    /// The answer for a key that is an object or a prefix, and not both.
    pub(super) fn new(kind: StatKind, meta: ObjectMeta) -> Stat {
        let below = None;
        Stat { kind, meta, below }
    }

    /// The answer for an object.
    pub fn of_object(meta: ObjectMeta) -> Stat {
        Stat::new(StatKind::Object, meta)
    }

    /// The answer for a prefix.
    pub fn of_prefix(meta: ObjectMeta) -> Stat {
        Stat::new(StatKind::Prefix, meta)
    }

    /// The attributes of the prefix; `None` if there is none.
    pub fn prefix_meta(&self) -> Option<ObjectMeta> {
        match self.kind {
            StatKind::Object => self.below,
            StatKind::Prefix => Some(self.meta),
        }
    }

    /// The attributes of the object; `None` if there is none.
    pub fn object_meta(&self) -> Option<ObjectMeta> {
        (self.kind == StatKind::Object).then_some(self.meta)
    }
}

/// The two things that a key can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatKind {
    /// The key holds bytes.
    Object,
    /// Other keys begin with it.
    Prefix,
}
