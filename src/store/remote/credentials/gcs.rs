//! Credentials and settings of Google Cloud Storage. Credentials are taken from the first of these
//! that has some:
//!
//! ```text
//! --anonymous, GOOGLE_SKIP_SIGNATURE
//! GOOGLE_BEARER_TOKEN                     a token that expires soon
//! GOOGLE_SERVICE_ACCOUNT(_PATH), GOOGLE_SERVICE_ACCOUNT_KEY
//! GOOGLE_APPLICATION_CREDENTIALS          a file of a service account or of a user
//! STORAGE_EMULATOR_HOST                   anonymous
//! application_default_credentials.json    of `gcloud auth application-default login`
//! metadata of the instance                asked once, and only on machines of Google
//! none                                    anonymous
//! ```

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ClientConfigKey;
use object_store::client::HttpConnector;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use serde_json::Value;

use super::{instance, small_file};
use crate::store::remote::credentials::access::Access;
use crate::store::remote::credentials::cloud_options::CloudOptions;
use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::endpoint::Endpoint;
use crate::store::remote::credentials::environment::Environment;
use crate::store::remote::credentials::static_credentials::{StaticCredentials, is_header_text};

const EMULATOR: &str = "STORAGE_EMULATOR_HOST";

/// The file in the folder of `gcloud`.
const DEFAULT_FILE: &str = "application_default_credentials.json";

const NOTHING_FOUND: &str = "anonymous: no credentials found in GOOGLE_* variables, in \
                             application_default_credentials.json of gcloud, or from a metadata \
                             server";

/// A client of Google Cloud Storage.
pub(crate) struct ConfiguredGcs {
    /// The client.
    pub(crate) builder: GoogleCloudStorageBuilder,
    /// How its requests prove who asks.
    pub(crate) access: Access,
    /// Which credentials are used, as a message.
    pub(crate) credentials: String,
}

impl fmt::Debug for ConfiguredGcs {
    /// Leaves the client out, which would show secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredGcs")
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

/// Where credentials come from.
enum Source {
    Anonymous(&'static str),
    Token(String),
    /// A key of a service account, and where it is from.
    AccountKey(String, &'static str),
    /// A file that was checked, and where it is from.
    File(CredentialFile, String),
    /// The instance, if it answers.
    Instance,
}

/// A file of credentials of a kind that is supported.
enum CredentialFile {
    ServiceAccount(PathBuf),
    User(PathBuf),
}

/// A client for `options`, and what its credentials are. Sends a request to the instance's metadata
/// server alone, for at most a second, and only where nothing else is configured on a machine of
/// Google.
///
/// # Errors
/// [`CredentialError`] for configuration that is wrong, or that cannot be used.
pub(crate) async fn configure<C: HttpConnector + Clone>(
    options: &CloudOptions,
    env: &Environment,
    connector: C,
) -> Result<ConfiguredGcs, CredentialError> {
    options.check_bucket()?;
    let endpoint = endpoint(options, env)?;
    let mut source = source(options, env)?;
    if matches!(source, Source::Instance) && !has_account(env, &connector).await? {
        source = Source::Anonymous(NOTHING_FOUND);
    }
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&options.bucket)
        .with_http_connector(connector);
    if let Some(endpoint) = &endpoint {
        if !matches!(source, Source::Anonymous(_)) {
            endpoint.check_private("a token of Google")?;
        }
        let allow_http = GoogleConfigKey::Client(ClientConfigKey::AllowHttp);
        builder = builder
            .with_base_url(&endpoint.to_string())
            .with_config(allow_http, endpoint.is_http().to_string());
    }
    let access = match source {
        Source::Anonymous(_) => Access::Anonymous,
        Source::Token(_) => Access::Fixed,
        Source::AccountKey(..) | Source::File(..) | Source::Instance => Access::Library,
    };
    let (builder, credentials) = with_source(builder, source)?;
    Ok(ConfiguredGcs {
        builder,
        access,
        credentials,
    })
}

fn endpoint(
    options: &CloudOptions,
    env: &Environment,
) -> Result<Option<Endpoint>, CredentialError> {
    let given = Endpoint::given(options.endpoint.as_deref(), env, &["GOOGLE_BASE_URL"])?;
    if given.is_some() {
        return Ok(given);
    }
    let Some(host) = env.get(EMULATOR) else {
        return Ok(None);
    };
    // The variable may have a host alone, as Google's own clients take it.
    let url = if host.contains("://") {
        host
    } else {
        format!("http://{host}")
    };
    Endpoint::parse(EMULATOR, &url).map(Some)
}

fn source(options: &CloudOptions, env: &Environment) -> Result<Source, CredentialError> {
    if options.anonymous {
        return Ok(Source::Anonymous("anonymous, as --anonymous says"));
    }
    if env.flag("GOOGLE_SKIP_SIGNATURE")? == Some(true) {
        return Ok(Source::Anonymous(
            "anonymous, as GOOGLE_SKIP_SIGNATURE says",
        ));
    }
    if let Some(token) = env.get("GOOGLE_BEARER_TOKEN") {
        if is_header_text(&token) {
            return Ok(Source::Token(token));
        }
        let problem = "this has characters that no token has";
        return Err(CredentialError::setting("GOOGLE_BEARER_TOKEN", problem));
    }
    let accounts = [
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "SERVICE_ACCOUNT",
    ];
    if let Some((name, path)) = env.first(&accounts) {
        return named_file(env, name, &path);
    }
    let key_name = "GOOGLE_SERVICE_ACCOUNT_KEY";
    if let Some(key) = env.get(key_name) {
        check_account_key(&key)?;
        return Ok(Source::AccountKey(key, key_name));
    }
    let name = "GOOGLE_APPLICATION_CREDENTIALS";
    if let Some(path) = env.get(name) {
        return named_file(env, name, &path);
    }
    if env.get(EMULATOR).is_some() {
        return Ok(Source::Anonymous("anonymous, for STORAGE_EMULATOR_HOST"));
    }
    if let Some(path) = default_file(env)
        && let Some(file) = checked_file(&path)?
    {
        return Ok(Source::File(file, path.display().to_string()));
    }
    let is_disabled = env.flag("NO_GCE_CHECK")? == Some(true);
    if is_disabled || !instance::may_be_google(env) {
        return Ok(Source::Anonymous(NOTHING_FOUND));
    }
    Ok(Source::Instance)
}

/// The file that the variable `name` names.
fn named_file(env: &Environment, name: &str, path: &str) -> Result<Source, CredentialError> {
    // The message would show a key that was put here in place of its path.
    if path.contains(['{', '\n']) {
        let problem = "expected the path of a file; a key belongs into GOOGLE_SERVICE_ACCOUNT_KEY";
        return Err(CredentialError::setting(name, problem));
    }
    let missing = || CredentialError::setting(name, format!("{path}: there is no such file"));
    let path = env.in_home(path).ok_or_else(missing)?;
    let file = checked_file(&path)?.ok_or_else(missing)?;
    Ok(Source::File(file, name.to_owned()))
}

/// The file that `gcloud` writes.
fn default_file(env: &Environment) -> Option<PathBuf> {
    let folder = env.get("CLOUDSDK_CONFIG");
    let folder = folder.as_deref().unwrap_or("~/.config/gcloud");
    Some(env.in_home(folder)?.join(DEFAULT_FILE))
}

/// The file at `path`, of which only the kind is looked at; `None` when there is none.
fn checked_file(path: &Path) -> Result<Option<CredentialFile>, CredentialError> {
    let Some(file) = small_file::read_if_present(path)? else {
        return Ok(None);
    };
    let problem = |problem: &str| CredentialError::file(path, problem);
    let value: Value = serde_json::from_str(&file.text)
        .map_err(|_| problem("this is not JSON, as the files of Google's credentials are"))?;
    let kind = value.get("type").and_then(Value::as_str);
    let (needed, found): (&[&str], _) = match kind {
        Some("service_account") => (
            &["private_key", "private_key_id", "client_email"],
            CredentialFile::ServiceAccount(path.to_owned()),
        ),
        Some("authorized_user") => (
            &["client_id", "client_secret", "refresh_token"],
            CredentialFile::User(path.to_owned()),
        ),
        _ => {
            return Err(problem(
                "only files of a service account or an authorized user are supported; set \
                 GOOGLE_BEARER_TOKEN to what `gcloud auth print-access-token` prints, or give \
                 --anonymous",
            ));
        }
    };
    check_members(&value, needed).map_err(|missing| problem(&missing))?;
    Ok(Some(found))
}

/// Whether these members are there, of their type. The client library's message might show one.
fn check_members(value: &Value, needed: &[&str]) -> Result<(), String> {
    for name in needed {
        if !value.get(*name).is_some_and(Value::is_string) {
            return Err(format!("this has no member {name} that is a string"));
        }
    }
    let is_flag = value.get("disable_oauth").is_none_or(Value::is_boolean);
    let url = value.get("gcs_base_url");
    if !is_flag || !url.is_none_or(|url| url.is_string() || url.is_null()) {
        return Err("the member disable_oauth or gcs_base_url is of another type".to_owned());
    }
    Ok(())
}

fn check_account_key(key: &str) -> Result<(), CredentialError> {
    let name = "GOOGLE_SERVICE_ACCOUNT_KEY";
    let value: Value = serde_json::from_str(key).map_err(|_| {
        let problem = "this is not JSON; a path belongs into GOOGLE_APPLICATION_CREDENTIALS";
        CredentialError::setting(name, problem)
    })?;
    let needed = ["private_key", "private_key_id", "client_email"];
    check_members(&value, &needed).map_err(|problem| CredentialError::setting(name, problem))
}

/// Whether the metadata server of this machine answers.
async fn has_account(
    env: &Environment,
    connector: &impl HttpConnector,
) -> Result<bool, CredentialError> {
    // The client library looks for these in the variables of the process alone.
    let names = ["GCE_METADATA_HOST", "GCE_METADATA_ROOT"];
    if let Some(name) = names.iter().find(|name| env.is_changed_by_file(name)) {
        let problem = "this has to be set in the environment, and not by --env-file";
        return Err(CredentialError::setting(*name, problem));
    }
    let host = env.first(&names).map(|(_, host)| host);
    let host = host.as_deref().unwrap_or("metadata.google.internal");
    Ok(instance::has_google_account(connector, host).await)
}

fn with_source(
    builder: GoogleCloudStorageBuilder,
    source: Source,
) -> Result<(GoogleCloudStorageBuilder, String), CredentialError> {
    // With a token the client library looks for no credentials of its own.
    let with_token = |builder: GoogleCloudStorageBuilder, bearer: String| {
        let token = StaticCredentials::new(GcpCredential { bearer });
        builder.with_credentials(Arc::new(token))
    };
    let path = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| CredentialError::file(path, "its path is not UTF-8"))
    };
    Ok(match source {
        Source::Anonymous(message) => {
            let builder = with_token(builder, String::new()).with_skip_signature(true);
            (builder, message.to_owned())
        }
        Source::Token(bearer) => {
            let message = "the token of GOOGLE_BEARER_TOKEN, which is not renewed".to_owned();
            (with_token(builder, bearer), message)
        }
        Source::AccountKey(key, from) => {
            let message = format!("the service account of {from}");
            (builder.with_service_account_key(key), message)
        }
        Source::File(CredentialFile::ServiceAccount(file), from) => {
            let builder = builder.with_service_account_path(path(&file)?);
            (builder, format!("the service account of {from}"))
        }
        Source::File(CredentialFile::User(file), from) => {
            let builder = builder.with_application_credentials(path(&file)?);
            (builder, format!("the user of {from}"))
        }
        Source::Instance => {
            let message = "the service account of this instance (Google)".to_owned();
            (builder, message)
        }
    })
}

#[cfg(test)]
mod tests;
