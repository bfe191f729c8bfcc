//! `credential_process` of AWS's profiles: a program that prints keys as JSON. AWS SDKs and Tools
//! Reference Guide, section "Process credential provider".
//!
//! ```json
//! {"Version": 1, "AccessKeyId": "...", "SecretAccessKey": "...", "SessionToken": "...",
//!  "Expiration": "2026-11-23T01:02:03Z"}
//! ```

use object_store::aws::AwsCredential;
use serde_json::Value;

use crate::store::remote::credentials::command::Program;
use crate::store::remote::credentials::renewed::{Fetched, Renewed};
use crate::store::remote::credentials::static_credentials::aws_credential;
use crate::store::remote::credentials::timestamp;

/// Keys that `program` prints.
pub(crate) fn process_credentials(program: Program) -> Renewed<AwsCredential> {
    Renewed::new(move || {
        let output = program.output()?;
        parse(&output).map_err(|problem| program.problem(problem))
    })
}

/// The keys in `output`. The error message has no part of the output.
fn parse(output: &[u8]) -> Result<Fetched<AwsCredential>, String> {
    let value: Value = serde_json::from_slice(output).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("printed no JSON, at line {line} column {column} of its output")
    })?;
    if value.get("Version") != Some(&Value::from(1)) {
        return Err("printed credentials whose Version is not 1".to_owned());
    }
    let text = |name: &str| match value.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("printed a {name} that is not a string")),
    };
    let needed = |name: &str| text(name)?.ok_or_else(|| format!("printed no {name}"));
    // Some programs print an empty token for keys that have none.
    let token = text("SessionToken")?.filter(|token| !token.is_empty());
    let keys = aws_credential(needed("AccessKeyId")?, needed("SecretAccessKey")?, token);
    let expires = text("Expiration")?.filter(|expires| !expires.is_empty());
    let expires = expires.map(|expires| {
        timestamp::parse(expires)
            .ok_or_else(|| "printed an Expiration that is not of RFC 3339".to_owned())
    });
    Ok(Fetched {
        credentials: keys.ok_or("printed keys with characters that no key has")?,
        expires: expires.transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;
    use crate::store::remote::credentials::command::testing::script;

    #[test]
    fn keys_are_read_from_the_output() {
        let long = br#"{"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "s",
            "SessionToken": "t", "Expiration": "2019-05-29T00:21:43Z", "Other": {}}"#;
        let found = parse(long).unwrap();
        assert_eq!(found.credentials.token.as_deref(), Some("t"));
        assert!(found.expires.is_some());
        let short = br#"{"Version":1,"AccessKeyId":"AKIA","SecretAccessKey":"hunter2"}"#;
        let found = parse(short).unwrap();
        assert_eq!(
            (found.credentials.token.as_deref(), found.expires),
            (None, None)
        );
        assert!(!format!("{found:?}").contains("hunter2"));
    }

    #[test]
    fn other_output_is_refused_without_showing_it() {
        for (output, problem) in [
            ("", "no JSON"),
            ("hunter2", "no JSON"),
            ("{\"Version\": 1, \"hunter2", "no JSON"),
            ("[1]", "Version"),
            (r#"{"Version": 2, "SecretAccessKey": "hunter2"}"#, "Version"),
            (r#"{"Version": "1"}"#, "Version"),
            (
                r#"{"Version": 1, "SecretAccessKey": "hunter2"}"#,
                "no AccessKeyId",
            ),
            (
                r#"{"Version": 1, "AccessKeyId": "a"}"#,
                "no SecretAccessKey",
            ),
            (
                r#"{"Version": 1, "AccessKeyId": 7, "SecretAccessKey": "s"}"#,
                "not a string",
            ),
            (
                r#"{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "hunter2\nX: y"}"#,
                "characters",
            ),
            (
                r#"{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "s", "Expiration": "hunter2"}"#,
                "RFC 3339",
            ),
        ] {
            let message = parse(output.as_bytes()).unwrap_err();
            assert!(message.contains(problem), "{output}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
        let deep = "[".repeat(10_000);
        assert!(parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn a_program_gives_keys() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let text = r#"echo '{"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "s"}'"#;
            let credentials = process_credentials(script(text));
            assert_eq!(credentials.get().await.unwrap().key_id, "AKIA");
            let failing = process_credentials(script("echo no >&2; exit 2"));
            let message = failing.get().await.unwrap_err().to_string();
            assert_eq!(message, "/bin/sh: failed (exit status: 2): no");
        });
    }
}
