//! Open files and directories, for which handles stand.

use std::sync::{Arc, Mutex};

use super::directory::Stream;
use super::late_reads::LateReads;
use crate::view::{Directory, OpenFile, VnodeAttributes};

/// Number of locks that all inodes share.
pub(super) const STRIPES: u64 = 64;

/// An open file.
pub(super) struct OpenedFile {
    pub(super) ino: u64,
    pub(super) file: Arc<OpenFile>,
    pub(super) attributes: VnodeAttributes,
    pub(super) late_reads: Arc<LateReads>,
}

impl OpenedFile {
    pub(super) fn new(ino: u64, file: Arc<OpenFile>, attributes: VnodeAttributes) -> OpenedFile {
        OpenedFile {
            ino,
            file,
            attributes,
            late_reads: Arc::default(),
        }
    }
}

/// An open directory.
pub(super) type OpenedDirectory = Mutex<DirectoryStream>;

/// The entries of a directory.
pub(super) struct DirectoryStream {
    pub(super) stream: Stream<Directory>,
    /// The count of renamed directories when it was opened.
    pub(super) n_renames: u64,
}
