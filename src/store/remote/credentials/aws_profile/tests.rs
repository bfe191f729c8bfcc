use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;
use crate::store::remote::credentials::environment::testing::environment;

/// A home with these files.
fn home(config: &str, credentials: &str) -> (TempDir, Environment) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".aws");
    fs::create_dir(&folder).unwrap();
    for (name, text) in [("config", config), ("credentials", credentials)] {
        let path = folder.join(name);
        if !text.is_empty() {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        }
    }
    let env = environment(&[("HOME", home.path().to_str().unwrap())]);
    (home, env)
}

fn load(config: &str, credentials: &str, name: &str) -> Profile {
    let (_home, env) = home(config, credentials);
    Profile::load(Some(name), &env).unwrap().unwrap()
}

fn keys(profile: &Profile) -> AwsCredential {
    match profile.keys().unwrap().unwrap() {
        ProfileKeys::Keys(keys) => keys,
        other => panic!("{other:?}"),
    }
}

const CONFIG: &str = "[default]\nregion = us-west-2\n\n[profile dev]\nregion = eu-west-1\n\
    endpoint_url = https://all\nservices = local\naws_access_key_id = CONFIG\n\
    aws_secret_access_key = config\ns3 =\n  addressing_style = virtual\n\
    [services local]\ns3 =\n  endpoint_url = https://s3\n";
const CREDENTIALS: &str = "[default]\naws_access_key_id = AKIAD\naws_secret_access_key = hunter2\n\
    [dev]\naws_access_key_id = AKIA\naws_secret_access_key = hunter2\naws_session_token = t0k\n";

#[test]
fn both_files_make_one_profile_and_credentials_go_first() {
    let profile = load(CONFIG, CREDENTIALS, "dev");
    assert_eq!(profile.region(), Some("eu-west-1"));
    assert_eq!(profile.endpoint(), Some("https://s3"));
    assert_eq!(profile.addressing_style(), Some("virtual"));
    let found = keys(&profile);
    assert_eq!(
        (&*found.key_id, found.token.as_deref()),
        ("AKIA", Some("t0k"))
    );
    let found = keys(&load(CONFIG, "", "dev"));
    assert_eq!((&*found.key_id, found.token), ("CONFIG", None));
    let shown = format!("{profile:?} {:?}", profile.keys());
    assert!(
        !shown.contains("hunter2") && !shown.contains("t0k"),
        "{shown}"
    );
}

#[test]
fn a_named_profile_must_be_there_and_default_need_not() {
    let (_home, env) = home(CONFIG, CREDENTIALS);
    let found = Profile::load(None, &env).unwrap().unwrap();
    assert_eq!(
        (found.name(), found.region()),
        ("default", Some("us-west-2"))
    );
    let message = Profile::load(Some("prod"), &env).unwrap_err().to_string();
    assert!(
        message.starts_with("--profile: the profile \"prod\" is not in /"),
        "{message}"
    );
    // A profile of `config` needs the word, and one of `credentials` has none.
    assert!(Profile::load(Some("services local"), &env).is_err());

    let (_home, empty) = home("", "");
    assert!(Profile::load(None, &empty).unwrap().is_none());
    assert!(Profile::load(Some("default"), &empty).is_err());
    assert!(Profile::load(None, &environment(&[])).unwrap().is_none());
    let named = environment(&[("AWS_PROFILE", "prod")]);
    let message = Profile::load(None, &named).unwrap_err().to_string();
    assert!(
        message.contains("AWS_PROFILE") && message.contains("HOME"),
        "{message}"
    );
}

#[test]
fn variables_name_the_profile_and_the_files() {
    let (home, _) = home("", "");
    let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("c"), "[profile x]\nregion = r\n").unwrap();
    fs::write(
        path("k"),
        "[x]\naws_access_key_id=A\naws_secret_access_key=s\n",
    )
    .unwrap();
    let env = environment(&[
        ("AWS_PROFILE", "x"),
        ("AWS_CONFIG_FILE", "~/c"),
        ("AWS_SHARED_CREDENTIALS_FILE", &path("k")),
        ("HOME", home.path().to_str().unwrap()),
    ]);
    let profile = Profile::load(None, &env).unwrap().unwrap();
    assert_eq!(
        (profile.region(), &*keys(&profile).key_id),
        (Some("r"), "A")
    );
}

#[test]
fn profile_default_goes_before_default_and_endpoints_can_be_ignored() {
    let config = "[default]\nregion = a\n[profile default]\nregion = b\nendpoint_url = http://h\n\
        ignore_configured_endpoint_urls = TRUE\n";
    let profile = load(config, "", "default");
    assert_eq!((profile.region(), profile.endpoint()), (Some("b"), None));
}

#[test]
fn a_program_and_a_web_identity_are_found() {
    let profile = load(
        "[profile p]\ncredential_process = \"/a b/c\" --x 'hunter2'\n",
        "",
        "p",
    );
    let found = profile.keys().unwrap().unwrap();
    let ProfileKeys::Program(program) = &found else {
        panic!("{found:?}");
    };
    let shown = format!("{program:?}");
    assert!(
        shown.contains("/a b/c") && !shown.contains("hunter2"),
        "{shown}"
    );

    let config = "[profile p]\nrole_arn = r\nweb_identity_token_file = /t\nrole_session_name = s\n";
    let profile = load(
        config,
        "[p]\naws_access_key_id=A\naws_secret_access_key=s\n",
        "p",
    );
    let found = profile.keys().unwrap().unwrap();
    let ProfileKeys::WebIdentity(identity) = &found else {
        panic!("{found:?}");
    };
    assert_eq!((&*identity.token_file, &*identity.role_arn), ("/t", "r"));
    assert_eq!(identity.session_name.as_deref(), Some("s"));
    assert!(
        load("[profile p]\nregion = r\n", "", "p")
            .keys()
            .unwrap()
            .is_none()
    );
}

#[test]
fn what_is_not_supported_says_what_to_do() {
    for config in [
        "role_arn = r\nsource_profile = default\n",
        "role_arn = r\ncredential_source = Ec2InstanceMetadata\n",
        "sso_session = s\nsso_account_id = 1\n",
        "sso_start_url = https://x\n",
        "source_profile = y\n",
        "login_session = arn\n",
        "web_identity_token_file = /t\n",
    ] {
        let profile = load(&format!("[profile p]\n{config}"), "", "p");
        let message = profile.keys().unwrap_err().to_string();
        let hint = "aws configure export-credentials --profile p --format process";
        assert!(message.contains(hint), "{message}");
    }
    for (config, problem) in [
        ("aws_access_key_id = hunter2\n", "no aws_secret_access_key"),
        ("aws_secret_access_key = hunter2\n", "no aws_access_key_id"),
        (
            "aws_access_key_id = a\naws_secret_access_key = hun ter2\n",
            "characters",
        ),
        ("credential_process = x 'hunter2\n", "a quote is not closed"),
        ("credential_process = '' hunter2\n", "it is empty"),
    ] {
        let profile = load(&format!("[profile p]\n{config}"), "", "p");
        let message = profile.keys().unwrap_err().to_string();
        assert!(message.contains(problem), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn a_program_of_a_file_that_others_can_change_is_not_run() {
    let (home, env) = home("[default]\ncredential_process = x\n", "");
    let path = home.path().join(".aws/config");
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let profile = Profile::load(None, &env).unwrap().unwrap();
    let message = profile.keys().unwrap_err().to_string();
    assert!(
        message.contains("other users can change this file"),
        "{message}"
    );
}
