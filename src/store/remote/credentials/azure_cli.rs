//! Tokens of Azure's command `az`. The client library would run it without a deadline, and would
//! stop all other requests meanwhile.

use std::time::{Duration, UNIX_EPOCH};

use object_store::azure::AzureCredential;
use serde_json::Value;

use crate::store::remote::credentials::command::Program;
use crate::store::remote::credentials::environment::Environment;
use crate::store::remote::credentials::renewed::{Fetched, Renewed};
use crate::store::remote::credentials::static_credentials::is_header_text;

const COMMAND: [&str; 7] = [
    "az",
    "account",
    "get-access-token",
    "--output",
    "json",
    "--scope",
    "https://storage.azure.com/.default",
];

/// Tokens for the user who is signed in by `az login`.
pub(crate) fn azure_cli_credentials(env: &Environment) -> Option<Renewed<AzureCredential>> {
    let program = Program::new(COMMAND.map(str::to_owned), env.of_file())?;
    Some(Renewed::new(move || {
        let output = program.output()?;
        parse(&output).ok_or_else(|| program.problem("printed no token with its expiry"))
    }))
}

fn parse(output: &[u8]) -> Option<Fetched<AzureCredential>> {
    let value: Value = serde_json::from_slice(output).ok()?;
    let token = value.get("accessToken")?.as_str()?;
    let kind = value.get("tokenType")?.as_str()?;
    if !kind.eq_ignore_ascii_case("bearer") || !is_header_text(token) {
        return None;
    }
    // Seconds since 1970; `expiresOn` is in local time, which is ambiguous for an hour in autumn.
    let seconds = value.get("expires_on")?.as_u64()?;
    let expires = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    Some(Fetched {
        credentials: AzureCredential::BearerToken(token.to_owned()),
        expires: Some(expires),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_from_the_output() {
        let output = br#"{"accessToken": "hunter2", "expiresOn": "2026-11-23 02:00:00.000000",
            "expires_on": 1795399200, "subscription": "s", "tenant": "t", "tokenType": "Bearer"}"#;
        let found = parse(output).unwrap();
        let expires = UNIX_EPOCH + Duration::from_secs(1_795_399_200);
        assert_eq!(found.expires, Some(expires));
        let expected = AzureCredential::BearerToken("hunter2".to_owned());
        assert_eq!(found.credentials, expected);
        assert!(!format!("{found:?}").contains("hunter2"));
        for output in [
            "",
            "{}",
            r#"{"accessToken": "x", "tokenType": "Bearer"}"#,
            r#"{"accessToken": "x", "tokenType": "pop", "expires_on": 1}"#,
            r#"{"accessToken": "x\ny", "tokenType": "Bearer", "expires_on": 1}"#,
        ] {
            assert!(parse(output.as_bytes()).is_none(), "{output}");
        }
    }
}
