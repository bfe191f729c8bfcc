//! Files of configuration, which are read whole. A file is examined after it was opened, so that
//! it cannot be exchanged in between, and a FIFO or device is refused without waiting for it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::store::remote::credentials::credential_error::CredentialError;

/// The longest file.
const MOST_BYTES: u64 = 1 << 20;

/// The rights that a private file may give.
const PRIVATE_RIGHTS: u32 = 0o600;

/// The right of all users to write.
const OTHERS_WRITE: u32 = 0o002;

/// The users who can have written a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The user of this process, their group, or root.
    User,
    /// Any user.
    Anybody,
}

/// A file that was read.
pub(crate) struct SmallFile {
    /// Its text.
    pub(crate) text: String,
    /// The users who can have written it.
    pub(crate) author: Author,
}

impl fmt::Debug for SmallFile {
    /// Leaves the text out, which may have secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmallFile")
            .field("author", &self.author)
            .finish_non_exhaustive()
    }
}

/// Reads a file of secrets that only its owner can read or change: the user of this process, or
/// root. The file may not be a symbolic link.
///
/// # Errors
/// [`CredentialError::File`] also when the file is absent.
pub(crate) fn read_private(path: &Path) -> Result<String, CredentialError> {
    let (file, stat) = match opened(path, OFlags::NOFOLLOW) {
        Ok(opened) => opened,
        Err(Errno::LOOP) => {
            let problem = "this is a symbolic link; name the file that it leads to";
            return Err(CredentialError::file(path, problem));
        }
        Err(error) => return Err(failed(path, error)),
    };
    check_regular(path, &stat)?;
    if !is_own(&stat) {
        let problem = format!(
            "this file belongs to the user {}; it must belong to the user who mounts, or to root",
            stat.st_uid
        );
        return Err(CredentialError::file(path, problem));
    }
    let rights = stat.st_mode & 0o7777;
    if rights & !PRIVATE_RIGHTS != 0 {
        let problem = format!(
            "its mode is {rights:04o}, so that other users could read or change secrets; run \
             chmod 600 on it"
        );
        return Err(CredentialError::file(path, problem));
    }
    text(path, file)
}

/// Reads a file of configuration; `None` when there is none.
///
/// # Errors
/// [`CredentialError::File`].
pub(crate) fn read_if_present(path: &Path) -> Result<Option<SmallFile>, CredentialError> {
    // With this path, users make a program read no configuration.
    if path == Path::new("/dev/null") {
        return Ok(None);
    }
    let (file, stat) = match opened(path, OFlags::empty()) {
        Ok(opened) => opened,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(failed(path, error)),
    };
    check_regular(path, &stat)?;
    let is_users = is_own(&stat) && stat.st_mode & OTHERS_WRITE == 0;
    let author = if is_users {
        Author::User
    } else {
        Author::Anybody
    };
    let text = text(path, file)?;
    Ok(Some(SmallFile { text, author }))
}

fn opened(path: &Path, flags: OFlags) -> Result<(File, Stat), Errno> {
    // A FIFO without a writer would be waited for otherwise.
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(path, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    Ok((File::from(file), stat))
}

fn failed(path: &Path, error: Errno) -> CredentialError {
    CredentialError::file(path, std::io::Error::from(error).to_string())
}

fn is_own(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == geteuid().as_raw()
}

fn check_regular(path: &Path, stat: &Stat) -> Result<(), CredentialError> {
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        return Ok(());
    }
    Err(CredentialError::file(path, "this is not a regular file"))
}

fn text(path: &Path, file: File) -> Result<String, CredentialError> {
    let mut bytes = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| CredentialError::file(path, error.to_string()))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MOST_BYTES {
        let problem = "this file is longer than 1 MiB, which no configuration is";
        return Err(CredentialError::file(path, problem));
    }
    // The error of the conversion would show a part of the text.
    String::from_utf8(bytes).map_err(|_| CredentialError::file(path, "this file is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    fn file(folder: &Path, mode: u32) -> PathBuf {
        let path = folder.join(format!("{mode:o}"));
        fs::write(&path, "A=hunter2\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn problem(path: &Path) -> String {
        let message = read_private(path).unwrap_err().to_string();
        assert!(!message.contains("hunter2"), "{message}");
        message
    }

    #[test]
    fn private_files_are_read_and_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o400] {
            let text = read_private(&file(folder.path(), mode)).unwrap();
            assert_eq!(text, "A=hunter2\n");
        }
        for mode in [0o644, 0o640, 0o660, 0o604, 0o700, 0o4600] {
            let message = problem(&file(folder.path(), mode));
            assert!(message.contains("chmod 600"), "{mode:o}: {message}");
        }
    }

    #[test]
    fn links_fifos_folders_and_long_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink(file(folder.path(), 0o600), &link).unwrap();
        assert!(problem(&link).contains("symbolic link"));

        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
        assert!(problem(&fifo).contains("not a regular file"));
        assert!(problem(folder.path()).contains("not a regular file"));
        assert!(problem(Path::new("/dev/null")).contains("not a regular file"));
        assert!(problem(&folder.path().join("absent")).contains("No such file"));
        assert!(matches!(read_if_present(Path::new("/dev/null")), Ok(None)));
        assert!(
            read_if_present(&fifo).is_err(),
            "a FIFO is not configuration"
        );

        let long = file(folder.path(), 0o600);
        let most = usize::try_from(MOST_BYTES).unwrap();
        fs::write(&long, vec![b'#'; most]).unwrap();
        assert_eq!(read_private(&long).unwrap().len(), most);
        fs::write(&long, vec![b'#'; most + 1]).unwrap();
        assert!(problem(&long).contains("1 MiB"));
        fs::write(&long, b"hunter2\xff").unwrap();
        assert!(problem(&long).contains("UTF-8"));
    }

    #[test]
    fn files_of_other_users_are_refused_where_this_test_can_make_one() {
        if !geteuid().is_root() {
            return;
        }
        // Root owns the file of a user who is not root; here root must not trust a user's file.
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), 0o600);
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        assert!(problem(&path).contains("belongs to the user 12345"));
        let read = read_if_present(&path).unwrap().unwrap();
        assert_eq!(read.author, Author::Anybody);
    }

    #[test]
    fn configuration_may_be_absent_linked_and_readable_but_the_author_is_told() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            read_if_present(&folder.path().join("absent"))
                .unwrap()
                .is_none()
        );
        let link = folder.path().join("link");
        symlink(file(folder.path(), 0o644), &link).unwrap();
        let read = read_if_present(&link).unwrap().unwrap();
        assert_eq!(read.author, Author::User);
        let read = read_if_present(&file(folder.path(), 0o666)).unwrap();
        assert_eq!(read.as_ref().unwrap().author, Author::Anybody);
        assert!(!format!("{read:?}").contains("hunter2"));
    }
}
