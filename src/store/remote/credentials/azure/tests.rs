use object_store::ObjectStoreExt;

use super::*;
use crate::store::remote::credentials::environment::testing::environment;
use crate::store::remote::credentials::instance::testing::{Fake, response, run};

const KEY: (&str, &str) = ("AZURE_STORAGE_ACCOUNT_KEY", "aHVudGVyMg==");
const SAS: (&str, &str) = ("AZURE_STORAGE_SAS_TOKEN", "?sv=2022-11-02&sig=hunter2%3D");
const ACCOUNT: (&str, &str) = ("AZURE_STORAGE_ACCOUNT", "acc");

fn options() -> CloudOptions {
    CloudOptions {
        bucket: "c".to_owned(),
        ..CloudOptions::default()
    }
}

fn message(options: &CloudOptions, variables: &[(&str, &str)]) -> String {
    let mut all = vec![ACCOUNT];
    all.extend(variables);
    let found = match configure(options, &environment(&all), Fake::refusing()) {
        Ok(found) => {
            assert!(!format!("{found:?}").contains("hunter2"));
            found.builder.build().unwrap();
            found.credentials
        }
        Err(error) => error.to_string(),
    };
    assert!(!found.contains("hunter2"), "{found}");
    found
}

#[test]
fn the_first_source_is_taken() {
    let all = [
        ("AZURE_STORAGE_TOKEN", "hunter2"),
        KEY,
        ("AZURE_FEDERATED_TOKEN_FILE", "/t"),
        ("AZURE_CLIENT_SECRET", "hunter2"),
        SAS,
        ("AZURE_USE_AZURE_CLI", "true"),
        ("IDENTITY_ENDPOINT", "http://127.0.0.1:41741/msi/token"),
        ("AZURE_CLIENT_ID", "i"),
        ("AZURE_TENANT_ID", "t"),
    ];
    let mut anonymous = options();
    anonymous.anonymous = true;
    assert_eq!(message(&anonymous, &all), "anonymous, as --anonymous says");
    for (left_out, expected) in [
        (0, "the token of AZURE_STORAGE_TOKEN, which is not renewed"),
        (1, "the key of AZURE_STORAGE_ACCOUNT_KEY"),
        (2, "workload identity of AZURE_FEDERATED_TOKEN_FILE"),
        (3, "the service principal of AZURE_CLIENT_SECRET"),
        (4, "the shared access signature of AZURE_STORAGE_SAS_TOKEN"),
        (5, "tokens of the command az"),
        (6, "managed identity of IDENTITY_ENDPOINT"),
        (7, NOTHING_FOUND),
        (9, NOTHING_FOUND),
    ] {
        assert_eq!(message(&options(), &all[left_out..]), expected);
    }
    let skipped = [KEY, ("AZURE_SKIP_SIGNATURE", "yes")];
    assert!(message(&options(), &skipped).contains("AZURE_SKIP_SIGNATURE"));
    let of_command = [("AZURE_STORAGE_KEY", KEY.1)];
    assert_eq!(
        message(&options(), &of_command),
        "the key of AZURE_STORAGE_KEY"
    );
}

#[test]
fn what_is_wrong_is_named_and_not_shown() {
    for (variables, expected) in [
        (vec![("AZURE_STORAGE_ACCOUNT_KEY", "hunter2!")], "Base64"),
        (
            vec![("AZURE_STORAGE_SAS_TOKEN", "hunter2")],
            "AZURE_STORAGE_SAS_TOKEN: this is no",
        ),
        (vec![("AZURE_STORAGE_TOKEN", "hunter2\nx")], "characters"),
        (
            vec![(CONNECTION, "AccountKey=hunter2")],
            "AZURE_STORAGE_ACCOUNT_KEY",
        ),
        (
            vec![("AZURE_CLIENT_SECRET", "hunter2")],
            "AZURE_TENANT_ID have to be set",
        ),
        (
            vec![("AZURE_STORAGE_ENDPOINT", "https://u:hunter2@h")],
            "a user or a password",
        ),
        (
            vec![SAS, ("AZURE_STORAGE_ENDPOINT", "http://h/a")],
            "without encryption",
        ),
        (
            vec![("AZURE_STORAGE_USE_EMULATOR", "hunter2")],
            "true or false",
        ),
    ] {
        let found = message(&options(), &variables);
        assert!(found.contains(expected), "{found}");
    }
    for account in ["evil.example/", "a.b", "a@b"] {
        let mut other = options();
        other.account = Some(account.to_owned());
        assert!(
            message(&other, &[KEY]).contains("an account has"),
            "{account}"
        );
    }
    let error = configure(&options(), &environment(&[]), Fake::refusing()).unwrap_err();
    assert!(error.to_string().contains("AZURE_STORAGE_ACCOUNT_NAME"));
}

#[test]
fn credentials_do_not_go_to_another_server_than_that_of_the_url() {
    let fabric = ("AZURE_USE_FABRIC_ENDPOINT", "true");
    let mut other = options();
    other.domain = Some("dfs.core.usgovcloudapi.net".to_owned());
    for variables in [&[KEY][..], &[KEY, fabric]] {
        let found = message(&other, variables);
        assert!(found.contains("by --endpoint"), "{found}");
    }
    other.endpoint = Some("https://acc.blob.core.usgovcloudapi.net".to_owned());
    assert!(message(&other, &[KEY]).starts_with("the key"));
    let mut onelake = options();
    onelake.domain = Some("dfs.fabric.microsoft.com".to_owned());
    assert!(message(&onelake, &[KEY]).contains("by --endpoint"));
    assert!(message(&onelake, &[KEY, fabric]).starts_with("the key"));
}

#[test]
fn requests_go_to_the_server_that_was_given() {
    let azurite = CloudOptions {
        endpoint: Some("http://127.0.0.1:10000".to_owned()),
        ..options()
    };
    let with_path = CloudOptions {
        endpoint: Some("http://localhost:1/acc/".to_owned()),
        ..options()
    };
    let of_url = CloudOptions {
        account: Some("other".to_owned()),
        ..options()
    };
    let emulator = ("AZURE_STORAGE_USE_EMULATOR", "true");
    for (options, variables, url, is_signed) in [
        (
            options(),
            vec![ACCOUNT],
            "https://acc.blob.core.windows.net/c/k",
            false,
        ),
        (
            of_url,
            vec![ACCOUNT, KEY],
            "https://other.blob.core.windows.net/c/k",
            true,
        ),
        (
            azurite,
            vec![ACCOUNT, KEY],
            "http://127.0.0.1:10000/acc/c/k",
            true,
        ),
        (
            with_path,
            vec![ACCOUNT],
            "http://localhost:1/acc/c/k",
            false,
        ),
        (
            options(),
            vec![emulator, KEY],
            "http://127.0.0.1:10000/devstoreaccount1/c/k",
            true,
        ),
        (
            options(),
            vec![
                emulator,
                ("AZURITE_BLOB_STORAGE_URL", "http://127.0.0.1:9/"),
            ],
            "http://127.0.0.1:9/devstoreaccount1/c/k",
            false,
        ),
    ] {
        let fake = Fake::new(|request| {
            let is_signed = request.headers().contains_key("authorization");
            Some(response(if is_signed { 403 } else { 404 }, ""))
        });
        let found = configure(&options, &environment(&variables), fake.clone()).unwrap();
        let store = found.builder.build().unwrap();
        // The bytes of the key, as a derived `Debug` would show them.
        assert!(!format!("{store:?}").contains("104, 117, 110, 116"));
        let error = run(store.get(&object_store::path::Path::from("k"))).unwrap_err();
        let is_denied = matches!(error, object_store::Error::PermissionDenied { .. });
        assert_eq!(
            (fake.requests().concat(), is_denied),
            (format!("GET {url}"), is_signed)
        );
    }
}
