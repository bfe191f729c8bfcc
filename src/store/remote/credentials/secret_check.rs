//! URLs that have secrets. Every user of the machine could see them in the list of processes, and logs
//! would have them. So they are refused, and the message says how to give the credentials instead.

use percent_encoding::percent_decode_str;

use crate::store::remote::credentials::credential_error::CredentialError;

/// Parameters that are a secret, or a part of a signature that is one, in lower case.
const SECRET_PARAMETERS: [&str; 18] = [
    "access_key",
    "apikey",
    "api_key",
    "api-key",
    "auth",
    "authorization",
    "awsaccesskeyid",
    "code",
    "googleaccessid",
    "jwt",
    "key",
    "key-pair-id",
    "pass",
    "pwd",
    "sas",
    "se",
    "sig",
    "sv",
];

/// Parts of names of parameters that are secret, in lower case.
const SECRET_PARTS: [&str; 5] = ["credential", "password", "secret", "signature", "token"];

/// Refuses `url` when it has a user or password, or a query with a secret. `option` says where it
/// comes from. The message has nothing of the URL but its scheme and host.
///
/// # Errors
/// [`CredentialError::Setting`] with the variable or option to use instead.
pub(crate) fn check_not_secret(option: &str, url: &str) -> Result<(), CredentialError> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Ok(());
    };
    let scheme = scheme.to_ascii_lowercase();
    let authority_len = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(authority_len).unwrap_or((rest, ""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    // `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net` has a container in this place.
    let is_container = is_azure(&scheme) && !user.contains([':', '@', '%']);
    let found = if authority.contains('@') && !is_container {
        "a user or a password"
    } else if path.split(['?', '#', '&', ';']).skip(1).any(is_secret) {
        "a query with a signature, a token or a key"
    } else {
        return Ok(());
    };
    // Text that looks like a scheme or host may be something else in a mistyped URL.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '+');
    let shown = if scheme.chars().chain(host.chars()).all(is_plain) {
        format!("{scheme}://{host}")
    } else {
        "the URL".to_owned()
    };
    let problem = format!(
        "{shown}: the URL has {found}, which other users would see in the list of processes; {}",
        advice(&scheme)
    );
    Err(CredentialError::setting(option, problem))
}

fn is_azure(scheme: &str) -> bool {
    matches!(scheme, "az" | "azure" | "abfs" | "abfss")
}

/// Whether a parameter `NAME=VALUE` is secret.
fn is_secret(parameter: &str) -> bool {
    let (name, _) = parameter.split_once('=').unwrap_or((parameter, ""));
    let name = percent_decode_str(name)
        .decode_utf8_lossy()
        .to_ascii_lowercase();
    SECRET_PARAMETERS.contains(&&*name) || SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// How the credentials are given instead.
fn advice(scheme: &str) -> &'static str {
    match scheme {
        "s3" | "s3a" => {
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in a file for --env-file, or use \
             --profile"
        }
        "gs" | "gcs" => "set GOOGLE_APPLICATION_CREDENTIALS to the path of a key",
        scheme if is_azure(scheme) => {
            "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN in a file for --env-file"
        }
        _ => {
            "put the secret into a file, and give --header 'Authorization: @FILE'; for a bucket, \
             give its s3://, gs:// or abfss:// URL and the variables of its cloud"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_refused_and_not_repeated() {
        for (url, expected) in [
            ("https://me:hunter2@h/p", "https://h: the URL has a user"),
            ("https://hunter2@h:81/p", "https://h:81: the URL has a user"),
            ("https://hunter2:@h", "--header 'Authorization: @FILE'"),
            ("https://me:hunter2%40x@h?a", "a user or a password"),
            ("https://me:hun@ter2@h/p", "https://h: the URL has"),
            ("https://me:hunter2@h\\x/p", "the URL: the URL has"),
            ("s3://AKIA:hunter2@b/p", "AWS_SECRET_ACCESS_KEY"),
            ("gs://u:hunter2@b", "GOOGLE_APPLICATION_CREDENTIALS"),
            (
                "abfss://c:hunter2@a.dfs.core.windows.net/p",
                "AZURE_STORAGE_SAS_TOKEN",
            ),
            ("az://c/p?sv=2022&sig=hunter2", "AZURE_STORAGE_SAS_TOKEN"),
            (
                "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=a&X-Amz-Signature=hunter2",
                "a query",
            ),
            ("https://h/k?x-amz-security-token=hunter2", "a query"),
            ("https://h/k?X%2DAmz%2DSignature=hunter2", "a query"),
            ("https://h/k?%73ig=hunter2", "a query"),
            (
                "https://storage.googleapis.com/b/k?X-Goog-Signature=hunter2",
                "a query",
            ),
            (
                "https://h/k?Expires=1&Signature=hunter2&Key-Pair-Id=K",
                "a query",
            ),
            ("https://h/k?TOKEN=hunter2", "a query"),
            ("https://h/k?a=b;access_token=hunter2", "a query"),
            ("https://h/k#access_token=hunter2", "a query"),
            ("https://h?key=hunter2", "a query"),
            ("HTTPS://h/k?api_key=hunter2", "https://h: the URL"),
        ] {
            let message = check_not_secret("STORE", url).unwrap_err().to_string();
            assert!(message.starts_with("STORE: "), "{message}");
            assert!(message.contains(expected), "{url}: {message}");
            assert!(
                !message.contains("hunter2") && !message.contains("ter2"),
                "{message}"
            );
        }
    }

    #[test]
    fn other_urls_are_taken() {
        for url in [
            "https://h/p",
            "https://h/p@1/x:y",
            "https://h/p?list-type=2&prefix=a/b",
            "https://h/key/token=1/sig",
            "s3://b/a?b",
            "s3://b/100%",
            "abfss://c@a.dfs.core.windows.net/p",
            "/data/me:secret@x",
            "http://127.0.0.1:9000",
        ] {
            check_not_secret("STORE", url).unwrap();
        }
    }
}
