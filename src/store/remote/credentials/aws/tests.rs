use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use object_store::ObjectStoreExt;
use object_store::path::Path;

use super::*;
use crate::store::remote::credentials::environment::testing::environment;
use crate::store::remote::credentials::instance::testing::{Fake, response, run};

fn options() -> CloudOptions {
    CloudOptions {
        bucket: "bucket".to_owned(),
        ..CloudOptions::default()
    }
}

fn configured(
    options: &CloudOptions,
    variables: &[(&str, &str)],
    fake: &Fake,
) -> Result<ConfiguredS3, CredentialError> {
    run(configure(options, &environment(variables), fake.clone()))
}

/// The message about the credentials, or the error; the metadata service of the instance is unavailable.
fn message(options: &CloudOptions, variables: &[(&str, &str)]) -> String {
    let configured = configured(options, variables, &Fake::refusing());
    configured.map_or_else(
        |error| error.to_string(),
        |configured| configured.client.credentials,
    )
}

const KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "AKIA"),
    ("AWS_SECRET_ACCESS_KEY", "hunter2"),
];
const IDENTITY: [(&str, &str); 2] = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), ("AWS_ROLE_ARN", "r")];
const ECS: (&str, &str) = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x?id=1");
const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const TOKEN_FILE: (&str, &str) = ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/t");

#[test]
fn the_first_source_is_taken() {
    let all = [KEYS[0], KEYS[1], IDENTITY[0], IDENTITY[1], ECS];
    let mut anonymous = options();
    anonymous.anonymous = true;
    assert_eq!(message(&anonymous, &all), "anonymous, as --anonymous says");
    assert_eq!(
        message(&options(), &all),
        "keys of the variable AWS_ACCESS_KEY_ID"
    );
    let identity = "web identity of AWS_WEB_IDENTITY_TOKEN_FILE";
    assert_eq!(message(&options(), &all[2..]), identity);
    assert!(message(&options(), &all[4..]).contains("(ECS)"));
    let eks = [(FULL, "http://169.254.170.23/v1/credentials"), TOKEN_FILE];
    assert!(message(&options(), &eks).contains("(EKS)"));
    assert_eq!(message(&options(), &[]), NOTHING_FOUND);
    for name in ["AWS_SKIP_SIGNATURE", "AWS_NO_SIGN_REQUEST"] {
        let variables = [KEYS[0], KEYS[1], (name, "YES")];
        assert!(message(&options(), &variables).starts_with("anonymous, as AWS_"));
    }
}

#[test]
fn the_instance_is_asked_last_and_once() {
    let role = |request: &object_store::client::HttpRequest| {
        let keys = r#"{"AccessKeyId": "AKIA", "SecretAccessKey": "hunter2", "Token": "t",
            "Expiration": "2099-01-01T00:00:00Z"}"#;
        Some(match (request.method().as_str(), request.uri().path()) {
            ("PUT", _) => response(200, "TOKEN"),
            (_, path) if path.ends_with('/') => response(200, "role"),
            _ => response(200, keys),
        })
    };
    let fake = Fake::new(role);
    let found = configured(&options(), &[], &fake).unwrap();
    assert_eq!(found.client.credentials, "the role of this instance (EC2)");
    let asked = "http://169.254.169.254/latest";
    assert_eq!(
        fake.requests(),
        [
            format!("PUT {asked}/api/token"),
            format!("GET {asked}/meta-data/iam/security-credentials/"),
            format!("GET {asked}/meta-data/iam/security-credentials/role"),
        ]
    );
    // The fetched credentials are used for the first requests.
    let builder = found.in_region("us-east-1").builder;
    let keys = run(builder.build().unwrap().credentials().get_credential()).unwrap();
    assert_eq!(keys.key_id, "AKIA");
    assert_eq!(fake.requests().len(), 3);

    for (status, token) in [
        (403, "TOKEN"),
        (404, ""),
        (200, "a\r\nX: b"),
        (200, "no role"),
    ] {
        let fake = Fake::new(move |_| Some(response(status, token)));
        let found = configured(&options(), &[], &fake).unwrap();
        assert_eq!(found.client.credentials, NOTHING_FOUND);
    }
    // No server answers.
    let found = configured(&options(), &[], &Fake::new(|_| None)).unwrap();
    assert_eq!(found.client.credentials, NOTHING_FOUND);

    let fake = Fake::new(role);
    let disabled = [("AWS_EC2_METADATA_DISABLED", "true")];
    let found = configured(&options(), &disabled, &fake).unwrap();
    assert_eq!(found.client.credentials, NOTHING_FOUND);
    configured(&options(), &KEYS, &fake).unwrap();
    assert!(fake.requests().is_empty());

    let fake = Fake::refusing();
    let elsewhere = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:81/")];
    configured(&options(), &elsewhere, &fake).unwrap();
    assert_eq!(
        fake.requests(),
        ["PUT http://127.0.0.1:81/latest/api/token"]
    );
    let fake = Fake::refusing();
    let v6 = [("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6")];
    configured(&options(), &v6, &fake).unwrap();
    assert_eq!(
        fake.requests(),
        ["PUT http://[fd00:ec2::254]/latest/api/token"]
    );
}

#[test]
fn halves_and_hosts_of_others_are_refused() {
    for (variables, expected) in [
        (
            vec![KEYS[0]],
            "AWS_ACCESS_KEY_ID: AWS_SECRET_ACCESS_KEY has to be set",
        ),
        (
            vec![KEYS[1]],
            "AWS_SECRET_ACCESS_KEY: AWS_ACCESS_KEY_ID has to be set",
        ),
        (
            vec![KEYS[0], ("AWS_SECRET_ACCESS_KEY", "hunter2\n")],
            "characters",
        ),
        (vec![IDENTITY[0]], "AWS_ROLE_ARN has to be set"),
        (
            vec![
                IDENTITY[0],
                IDENTITY[1],
                ("AWS_ENDPOINT_URL_STS", "http://sts.example"),
            ],
            "without encryption",
        ),
        (vec![(ECS.0, "@evil.example/hunter2")], "begins with `/`"),
        (
            vec![(FULL, "http://evil.example/"), TOKEN_FILE],
            "https:// URL",
        ),
        (
            vec![(FULL, "http://169.254.170.2.evil.example/"), TOKEN_FILE],
            "https:// URL",
        ),
        (vec![(FULL, "http://127.0.0.1/x")], "credential_process"),
    ] {
        let found = message(&options(), &variables);
        assert!(found.contains(expected), "{found}");
        assert!(!found.contains("hunter2"), "{found}");
    }
}

#[test]
fn a_profile_on_the_command_line_goes_before_variables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    fs::write(
        &path,
        "[p]\naws_access_key_id=A\naws_secret_access_key=hunter2\n[none]\n",
    )
    .unwrap();
    let file = ("AWS_SHARED_CREDENTIALS_FILE", path.to_str().unwrap());
    let variables = [KEYS[0], KEYS[1], file];
    let with = |profile: &str| CloudOptions {
        profile: Some(profile.to_owned()),
        ..options()
    };
    assert_eq!(message(&with("p"), &variables), "keys of the profile p");
    assert!(message(&with("none"), &variables).contains("has no credentials"));
    assert!(message(&with("other"), &variables).contains("is not in"));
    let named = [file, ("AWS_PROFILE", "p")];
    assert_eq!(message(&options(), &named), "keys of the profile p");
    let named = [KEYS[0], KEYS[1], file, ("AWS_PROFILE", "p")];
    assert!(message(&options(), &named).contains("AWS_ACCESS_KEY_ID"));
}

/// The request for an object, and whether it is signed.
fn request(options: &CloudOptions, variables: &[(&str, &str)], region: &str) -> (String, bool) {
    let fake = Fake::new(|request| {
        let mut answer = response(404, "");
        let is_signed = request.headers().contains_key("authorization");
        *answer.status_mut() = if is_signed { 403 } else { 404 }.try_into().unwrap();
        Some(answer)
    });
    let mut disabled = variables.to_vec();
    disabled.push(("AWS_EC2_METADATA_DISABLED", "true"));
    let configured = configured(options, &disabled, &fake).unwrap();
    let shown = format!("{configured:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    let region = configured.region().unwrap_or(region).to_owned();
    let store = configured.in_region(&region).builder.build().unwrap();
    assert!(!format!("{store:?}").contains("hunter2"));
    let error = run(store.get(&Path::from("k"))).unwrap_err();
    let is_signed = matches!(error, object_store::Error::PermissionDenied { .. });
    (fake.requests().concat(), is_signed)
}

#[test]
fn requests_go_to_the_right_server_and_are_signed_with_credentials() {
    let other = |name: &str| CloudOptions {
        bucket: name.to_owned(),
        ..CloudOptions::default()
    };
    let endpoint = ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000");
    let hosted = ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true");
    for (bucket, variables, url, is_signed) in [
        ("b", vec![], "https://b.s3.eu-west-1.amazonaws.com/k", false),
        (
            "b",
            KEYS.to_vec(),
            "https://b.s3.eu-west-1.amazonaws.com/k",
            true,
        ),
        (
            "a.b",
            vec![],
            "https://s3.eu-west-1.amazonaws.com/a.b/k",
            false,
        ),
        ("b", vec![endpoint], "http://127.0.0.1:9000/b/k", false),
        (
            "b",
            vec![endpoint, hosted],
            "http://b.127.0.0.1:9000/k",
            false,
        ),
        (
            "b",
            vec![("AWS_REGION", "cn-north-1")],
            "https://b.s3.cn-north-1.amazonaws.com.cn/k",
            false,
        ),
    ] {
        let found = request(&other(bucket), &variables, "eu-west-1");
        assert_eq!(found, (format!("GET {url}"), is_signed));
    }
}

#[test]
fn the_token_of_the_process_does_not_go_with_the_keys_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("env");
    let process = environment(&[KEYS[0], KEYS[1], ("AWS_SESSION_TOKEN", "old")]);
    for (text, id, token) in [
        ("AWS_ACCESS_KEY_ID=F\nAWS_SECRET_ACCESS_KEY=s\n", "F", None),
        (
            "AWS_ACCESS_KEY_ID=F\nAWS_SESSION_TOKEN=new\n",
            "F",
            Some("new"),
        ),
        ("AWS_REGION=r\n", "AKIA", Some("old")),
    ] {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let env = process.clone().with_file(&path).unwrap();
        let keys = keys_of_variables(&env).unwrap().unwrap();
        assert_eq!((&*keys.key_id, keys.token.as_deref()), (id, token));
    }
}

#[test]
fn settings_are_made_on_any_thread() {
    fn check_send<T: Send>(_: T) {}
    let (options, env) = (options(), environment(&[]));
    check_send(configure(&options, &env, Fake::refusing()));
    check_send(crate::store::remote::credentials::gcs::configure(
        &options,
        &env,
        Fake::refusing(),
    ));
}
