//! The secret that a client has to know.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq;

/// The random bytes of a secret.
const RANDOM_BYTES: usize = 32;
/// The fewest characters of a token in a file. A shorter one can be guessed.
const LEAST_CHARACTERS: usize = 16;
/// The longest file of a token.
const MOST_BYTES: u64 = 4096;

/// A secret.
#[derive(Clone)]
pub struct Token(String);

/// The reason why a file is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not a file.
    #[error("this is not a file")]
    NotAFile,
    /// Other users may read or change it.
    #[error("other users may read it or change it (mode {0:o}); chmod 600 makes it private")]
    Shared(u32),
    /// It is another user's.
    #[error("it belongs to another user ({0})")]
    Owner(u32),
    /// It has no token that can be used.
    #[error(
        "expected one line of {LEAST_CHARACTERS} to {MOST_BYTES} printable ASCII characters without spaces, as \
         `openssl rand -hex 32` writes it"
    )]
    Content,
}

impl Token {
    /// A new secret.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new() -> io::Result<Token> {
        let mut bytes = [0; RANDOM_BYTES];
        let mut filled = 0;
        while let Some(rest @ [_, ..]) = bytes.get_mut(filled..) {
            filled += getrandom(rest, GetRandomFlags::empty())?;
        }
        Ok(Token(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The secret in the file at `path`, which only its owner may read: this user, or root.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        // A FIFO without a writer would be waited for otherwise.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        let meta = file.metadata()?;
        let own = rustix::process::geteuid().as_raw();
        if !meta.is_file() {
            return Err(TokenError::NotAFile);
        }
        if ![own, 0].contains(&meta.uid()) {
            return Err(TokenError::Owner(meta.uid()));
        }
        if meta.mode() & 0o077 != 0 {
            return Err(TokenError::Shared(meta.mode() & 0o777));
        }
        let mut text = String::new();
        let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => TokenError::Content,
            _ => TokenError::Io(error),
        })?;
        let token = text.trim_end();
        let is_usable = token.bytes().all(|byte| byte.is_ascii_graphic());
        let is_long = token.len() >= LEAST_CHARACTERS && text.len() as u64 <= MOST_BYTES;
        if is_usable && is_long {
            Ok(Token(token.to_owned()))
        } else {
            Err(TokenError::Content)
        }
    }

    /// Whether `told` is the secret. The time that this takes reveals only the length.
    pub(super) fn is(&self, told: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(told).into()
    }

    /// The secret itself, for its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::Mode;

    use super::*;

    #[test]
    fn tokens_are_random_and_compared_whole() {
        let (one, other) = (Token::new().unwrap(), Token::new().unwrap());
        assert_eq!(one.reveal().len(), 43);
        assert_ne!(one.reveal(), other.reveal());
        assert!(one.is(one.reveal().as_bytes()));
        assert!(
            !one.is(other.reveal().as_bytes())
                && !one.is(b"")
                && !one.is(&one.reveal().as_bytes()[1..])
        );
        assert!(!format!("{one:?}").contains(one.reveal()));
    }

    #[test]
    fn a_file_has_a_secret_or_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let read = |text: &[u8], mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            Token::read(&path)
        };
        let token = read(b"0123456789abcdef\n", 0o600).unwrap();
        assert_eq!(token.reveal(), "0123456789abcdef");
        assert!(read(b"0123456789abcdef", 0o400).is_ok());
        for mode in [0o640, 0o604, 0o620, 0o644] {
            let found = read(b"0123456789abcdef", mode);
            assert!(matches!(found, Err(TokenError::Shared(found)) if found == mode));
        }
        let long = [b'a'; 5000];
        let contents: [&[u8]; 6] = [
            b"",
            b"short\n",
            b"0123456789 abcdef",
            b"0123456789abcdef\nb",
            b"0123456789abcdef\xff",
            &long,
        ];
        for text in contents {
            assert!(
                matches!(read(text, 0o600), Err(TokenError::Content)),
                "{text:?}"
            );
        }
        let fifo = directory.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
        for path in [directory.path(), &fifo] {
            assert!(matches!(Token::read(path), Err(TokenError::NotAFile)));
        }
        assert!(matches!(
            Token::read(&path.join("x")),
            Err(TokenError::Io(_))
        ));
    }
}
