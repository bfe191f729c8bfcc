//! The options of the command line for a store in a cloud.

use crate::store::remote::credentials::credential_error::CredentialError;

/// A bucket or container, and the options that say how it is reached. No option is secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CloudOptions {
    /// The bucket, or Azure's container.
    pub(crate) bucket: String,
    /// Azure's account, if the URL has one.
    pub(crate) account: Option<String>,
    /// The domain of that account, if the URL has one that is not of Azure's public cloud.
    pub(crate) domain: Option<String>,
    /// Whether no credentials are looked for (`--anonymous`).
    pub(crate) anonymous: bool,
    /// The profile of AWS's configuration files (`--profile`).
    pub(crate) profile: Option<String>,
    /// The region of the bucket (`--region`).
    pub(crate) region: Option<String>,
    /// The URL of the server (`--endpoint`).
    pub(crate) endpoint: Option<String>,
    /// Whether the caller pays for requests (`--requester-pays`).
    pub(crate) requester_pays: bool,
}

impl CloudOptions {
    /// Refuses a bucket whose name would have another meaning in a URL.
    ///
    /// # Errors
    /// [`CredentialError::Setting`].
    pub(crate) fn check_bucket(&self) -> Result<(), CredentialError> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '$');
        let bucket = &self.bucket;
        let is_name = (1..=255).contains(&bucket.len())
            && bucket.chars().all(is_part)
            && bucket.chars().any(|c| c != '.');
        if is_name {
            return Ok(());
        }
        let problem = "a bucket or container has only letters, digits, `-`, `.` and `_`";
        // The name may contain a password, if the user has mistyped a URL.
        Err(CredentialError::setting("the bucket of STORE", problem))
    }
}

/// Whether `text` can be a region or an account, which become a part of a host's name.
pub(crate) fn is_host_label(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_change_the_url_are_refused() {
        let check = |bucket: &str| {
            let options = CloudOptions {
                bucket: bucket.to_owned(),
                ..CloudOptions::default()
            };
            options.check_bucket().is_ok()
        };
        for bucket in ["b", "a.b-c_1", "$root", "Old_Bucket"] {
            assert!(check(bucket), "{bucket}");
        }
        for bucket in [
            "", ".", "..", "a/b", "a?b", "a@b", "a:b", "a%2f", "a b", "\u{e9}",
        ] {
            assert!(!check(bucket), "{bucket}");
        }
        assert!(is_host_label("eu-west-1") && is_host_label("acc1"));
        for label in ["", "a.b", "A", "a/b", "a@b", "a:1"] {
            assert!(!is_host_label(label), "{label}");
        }
    }
}
