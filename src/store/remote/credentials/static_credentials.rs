//! Credentials that do not change. They show nothing of themselves in `Debug`, unlike those of the
//! client library.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use object_store::CredentialProvider;
use object_store::aws::AwsCredential;

/// The result of [`CredentialProvider::get_credential`].
pub(crate) type CredentialFuture<'f, T> =
    Pin<Box<dyn Future<Output = object_store::Result<Arc<T>>> + Send + 'f>>;

/// Credentials that do not change.
pub(crate) struct StaticCredentials<T>(Arc<T>);

impl<T> StaticCredentials<T> {
    /// Always `credentials`.
    pub(crate) fn new(credentials: T) -> StaticCredentials<T> {
        StaticCredentials(Arc::new(credentials))
    }
}

impl<T> fmt::Debug for StaticCredentials<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StaticCredentials")
    }
}

impl<T: Send + Sync> CredentialProvider for StaticCredentials<T> {
    type Credential = T;

    fn get_credential<'s, 'f>(&'s self) -> CredentialFuture<'f, T>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async { Ok(Arc::clone(&self.0)) })
    }
}

/// Whether `text` can be a part of a header. The client library takes that for granted.
pub(crate) fn is_header_text(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Keys of AWS; `None` when a part is empty or has a character that no key has.
pub(crate) fn aws_credential(
    key_id: &str,
    secret_key: &str,
    token: Option<&str>,
) -> Option<AwsCredential> {
    let parts = [Some(key_id), Some(secret_key), token];
    let is_usable = parts.into_iter().flatten().all(is_header_text);
    is_usable.then(|| AwsCredential {
        key_id: key_id.to_owned(),
        secret_key: secret_key.to_owned(),
        token: token.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_would_break_headers_are_refused_and_none_is_shown() {
        let keys = aws_credential("AKIA", "hunter2", Some("a/+=")).unwrap();
        assert_eq!(keys.token.as_deref(), Some("a/+="));
        assert!(!format!("{:?}", StaticCredentials::new(keys)).contains("hunter2"));
        for (id, secret, token) in [
            ("", "s", None),
            ("i", "", None),
            ("i", "s", Some("")),
            ("i\n", "s", None),
            ("i", "s t", None),
            ("i", "s", Some("t\r\nX: y")),
            ("i", "s\u{e9}", None),
        ] {
            assert!(aws_credential(id, secret, token).is_none());
        }
    }
}
