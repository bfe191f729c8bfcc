use std::fs;

use object_store::ObjectStoreExt;
use tempfile::TempDir;

use super::*;
use crate::store::remote::credentials::environment::testing::environment;
use crate::store::remote::credentials::instance::testing::{Fake, response, run};

const USER: &str = r#"{"type": "authorized_user", "client_id": "c", "client_secret": "hunter2",
    "refresh_token": "hunter2"}"#;
const ACCOUNT: &str = r#"{"type": "service_account", "private_key": "hunter2",
    "private_key_id": "i", "client_email": "a@b"}"#;

/// No machine of Google, whatever the tests run on.
const ELSEWHERE: (&str, &str) = ("NO_GCE_CHECK", "true");

fn options() -> CloudOptions {
    CloudOptions {
        bucket: "b".to_owned(),
        ..CloudOptions::default()
    }
}

fn configured(
    options: &CloudOptions,
    variables: &[(&str, &str)],
    fake: &Fake,
) -> Result<Client, CredentialError> {
    run(configure(options, &environment(variables), fake.clone()))
}

fn message(options: &CloudOptions, variables: &[(&str, &str)]) -> String {
    let mut all = vec![ELSEWHERE];
    all.extend(variables);
    let found = match configured(options, &all, &Fake::refusing()) {
        Ok(found) => {
            assert!(!format!("{found:?}").contains("hunter2"));
            found.credentials
        }
        Err(error) => error.to_string(),
    };
    assert!(!found.contains("hunter2"), "{found}");
    found
}

/// A folder with a file, and the path of the file.
fn file(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(DEFAULT_FILE);
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn the_first_source_is_taken() {
    let (folder, user) = file(USER);
    let (_folder, account) = file(ACCOUNT);
    let all = [
        ("GOOGLE_BEARER_TOKEN", "hunter2"),
        ("GOOGLE_SERVICE_ACCOUNT", &*account),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", ACCOUNT),
        ("GOOGLE_APPLICATION_CREDENTIALS", &*user),
        (EMULATOR, "localhost:4443"),
        ("CLOUDSDK_CONFIG", folder.path().to_str().unwrap()),
    ];
    let mut anonymous = options();
    anonymous.anonymous = true;
    assert_eq!(message(&anonymous, &all), "anonymous, as --anonymous says");
    for (left_out, expected) in [
        (0, "the token of GOOGLE_BEARER_TOKEN, which is not renewed"),
        (1, "the service account of GOOGLE_SERVICE_ACCOUNT"),
        (2, "the service account of GOOGLE_SERVICE_ACCOUNT_KEY"),
        (3, "the user of GOOGLE_APPLICATION_CREDENTIALS"),
        (4, "anonymous, for STORAGE_EMULATOR_HOST"),
        (5, &*format!("the user of {user}")),
        (6, NOTHING_FOUND),
    ] {
        assert_eq!(message(&options(), &all[left_out..]), expected);
    }
    let home = tempfile::tempdir().unwrap();
    let gcloud = home.path().join(".config/gcloud");
    fs::create_dir_all(&gcloud).unwrap();
    fs::write(gcloud.join(DEFAULT_FILE), USER).unwrap();
    let variables = [("HOME", home.path().to_str().unwrap())];
    assert!(message(&options(), &variables).starts_with("the user of /"));
    let skipped = [all[0], ("GOOGLE_SKIP_SIGNATURE", "1")];
    assert!(message(&options(), &skipped).contains("GOOGLE_SKIP_SIGNATURE"));
}

#[test]
fn files_that_cannot_be_used_are_named_and_not_shown() {
    for (text, expected) in [
        ("hunter2", "not JSON"),
        (
            r#"{"type": "external_account", "x": "hunter2"}"#,
            "GOOGLE_BEARER_TOKEN",
        ),
        (r#"{"type": "impersonated_service_account"}"#, "--anonymous"),
        (r#"{"type": "hunter2"}"#, "only files of"),
        (r#"["hunter2"]"#, "only files of"),
        (
            r#"{"type": "authorized_user", "client_id": "hunter2"}"#,
            "client_secret",
        ),
        (
            r#"{"type": "service_account", "private_key": 1}"#,
            "private_key",
        ),
    ] {
        let (_folder, path) = file(text);
        let found = message(&options(), &[("GOOGLE_APPLICATION_CREDENTIALS", &path)]);
        assert!(
            found.starts_with(&path) && found.contains(expected),
            "{found}"
        );
    }
    let absent = [("GOOGLE_APPLICATION_CREDENTIALS", "/no/such")];
    assert!(message(&options(), &absent).contains("no such file"));
    let key = [("GOOGLE_APPLICATION_CREDENTIALS", ACCOUNT)];
    assert!(message(&options(), &key).contains("expected the path"));
    for key in ["hunter2", "/hunter2", r#"{"private_key": "hunter2"}"#] {
        let found = message(&options(), &[("GOOGLE_SERVICE_ACCOUNT_KEY", key)]);
        assert!(found.starts_with("GOOGLE_SERVICE_ACCOUNT_KEY: "), "{found}");
    }
    let token = [("GOOGLE_BEARER_TOKEN", "hunter2\nX: y")];
    assert!(message(&options(), &token).contains("characters"));
}

#[test]
fn the_instance_is_asked_on_machines_of_google_alone() {
    let on = [("K_SERVICE", "s")];
    let token = r#"{"access_token": "hunter2", "expires_in": 3600}"#;
    let fake = Fake::new(move |request| {
        let asked = request.headers().get("metadata-flavor");
        let is_asked = asked.is_some_and(|asked| asked == "Google");
        is_asked.then(|| response(200, token))
    });
    let found = configured(&options(), &on, &fake).unwrap();
    assert_eq!(
        found.credentials,
        "the service account of this instance (Google)"
    );
    let path = "computeMetadata/v1/instance/service-accounts/default/token";
    let url = format!(
        "http://metadata.google.internal/{path}?audience=https%3A%2F%2Fwww.googleapis.com%2Foauth2%2Fv4%2Ftoken"
    );
    assert_eq!(fake.requests(), [format!("GET {url}")]);
    // The fetched credentials are used for the first requests.
    let store = found.builder.build().unwrap();
    let token = run(store.credentials().get_credential()).unwrap();
    assert_eq!(token.bearer, "hunter2");
    assert_eq!(fake.requests().len(), 1);

    let captive = Fake::new(|_| Some(response(200, "please log in")));
    let found = configured(&options(), &on, &captive).unwrap();
    assert_eq!(found.credentials, NOTHING_FOUND);
    let found = configured(&options(), &on, &Fake::refusing()).unwrap();
    assert_eq!(found.credentials, NOTHING_FOUND);
    let fake = Fake::refusing();
    configured(&options(), &[on[0], ELSEWHERE], &fake).unwrap();
    assert!(fake.requests().is_empty());
}

#[test]
fn requests_go_to_the_server_that_was_given() {
    let token = ("GOOGLE_BEARER_TOKEN", "hunter2");
    for (variables, url, is_signed) in [
        (vec![ELSEWHERE], "https://storage.googleapis.com/b/k", false),
        (
            vec![ELSEWHERE, token],
            "https://storage.googleapis.com/b/k",
            true,
        ),
        (
            vec![(EMULATOR, "localhost:4443")],
            "http://localhost:4443/b/k",
            false,
        ),
        (
            vec![(EMULATOR, "http://127.0.0.1:1/")],
            "http://127.0.0.1:1/b/k",
            false,
        ),
        (
            vec![ELSEWHERE, ("GOOGLE_BASE_URL", "https://g")],
            "https://g/b/k",
            false,
        ),
    ] {
        let fake = Fake::new(|request| {
            let is_signed = request.headers().contains_key("authorization");
            Some(response(if is_signed { 403 } else { 404 }, ""))
        });
        let found = configured(&options(), &variables, &fake).unwrap();
        let store = found.builder.build().unwrap();
        assert!(!format!("{store:?}").contains("hunter2"));
        let error = run(store.get(&object_store::path::Path::from("k"))).unwrap_err();
        let is_denied = matches!(error, object_store::Error::PermissionDenied { .. });
        assert_eq!(
            (fake.requests().concat(), is_denied),
            (format!("GET {url}"), is_signed)
        );
    }
}

#[test]
fn tokens_are_not_sent_where_others_can_read_them() {
    let mut open = options();
    open.endpoint = Some("http://storage.example".to_owned());
    let token = [("GOOGLE_BEARER_TOKEN", "hunter2")];
    assert!(message(&open, &token).contains("without encryption"));
    assert_eq!(message(&open, &[]), NOTHING_FOUND);
    open.endpoint = Some("http://127.0.0.1:1".to_owned());
    assert!(message(&open, &token).contains("GOOGLE_BEARER_TOKEN"));
}

#[test]
fn the_server_of_a_service_account_is_known() {
    let key = |url: &str, more: &str| {
        let start = ACCOUNT.trim_end_matches('}');
        format!(r#"{start}, "gcs_base_url": "{url}"{more}}}"#)
    };
    let emulator = "http://gcs.example:4443";
    let without_oauth = r#", "disable_oauth": true"#;
    for (url, more, expected) in [
        ("https://gcs.example/", "", Ok("https://gcs.example")),
        ("http://127.0.0.1:1", "", Ok("http://127.0.0.1:1")),
        (emulator, without_oauth, Ok(emulator)),
        (emulator, "", Err("without encryption")),
        ("gcs.example", "", Err("gcs_base_url")),
    ] {
        let key = key(url, more);
        let (_folder, path) = file(&key);
        for given in [
            ("GOOGLE_SERVICE_ACCOUNT_KEY", &key),
            ("GOOGLE_SERVICE_ACCOUNT", &path),
        ] {
            let variables = [(given.0, &**given.1)];
            let found = configured(&options(), &variables, &Fake::refusing());
            match (found, expected) {
                (Ok(found), expected) => {
                    let url = found.builder.get_config_value(&GoogleConfigKey::BaseUrl);
                    assert_eq!(url.as_deref().ok_or(""), expected);
                }
                (Err(error), Err(problem)) => {
                    assert!(error.to_string().contains(problem), "{error}");
                }
                (Err(error), Ok(_)) => panic!("{error}"),
            }
        }
    }
    let mut other = options();
    other.endpoint = Some("https://other.example".to_owned());
    let key = key(emulator, "");
    let variables = [("GOOGLE_SERVICE_ACCOUNT_KEY", &*key)];
    let found = configured(&other, &variables, &Fake::refusing()).unwrap();
    let url = found.builder.get_config_value(&GoogleConfigKey::BaseUrl);
    assert_eq!(url, other.endpoint);
}
