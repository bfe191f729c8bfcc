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

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ClientConfigKey;
use object_store::client::HttpConnector;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use serde_json::Value;

use super::{instance, small_file};
use crate::store::remote::credentials::access::{Access, Reissued};
use crate::store::remote::credentials::cloud_options::CloudOptions;
use crate::store::remote::credentials::configured::{Configured, no_retries};
use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::endpoint::Endpoint;
use crate::store::remote::credentials::environment::Environment;
use crate::store::remote::credentials::static_credentials::{StaticCredentials, is_header_text};

const EMULATOR: &str = "STORAGE_EMULATOR_HOST";

/// The file in the folder of `gcloud`.
const DEFAULT_FILE: &str = "application_default_credentials.json";

/// The members of a service account's key.
const OF_ACCOUNT: [&str; 3] = ["private_key", "private_key_id", "client_email"];

const NOTHING_FOUND: &str = "anonymous: no credentials found in GOOGLE_* variables, in \
                             application_default_credentials.json of gcloud, or from a metadata \
                             server";

type Client = Configured<GoogleCloudStorageBuilder>;

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
) -> Result<Client, CredentialError> {
    options.check_bucket()?;
    let endpoint = endpoint(options, env)?;
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&options.bucket)
        .with_retry(no_retries())
        .with_http_connector(connector);
    if let Some(endpoint) = &endpoint {
        builder = with_endpoint(builder, endpoint);
    }
    let client = match configured(&builder, options, env)? {
        Some(client) => client,
        None => of_instance(builder, env).await?,
    };
    if let Some(endpoint) = endpoint
        && client.access.is_signed()
    {
        endpoint.check_private("a token of Google")?;
    }
    Ok(client)
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

fn with_endpoint(
    builder: GoogleCloudStorageBuilder,
    endpoint: &Endpoint,
) -> GoogleCloudStorageBuilder {
    let allow_http = GoogleConfigKey::Client(ClientConfigKey::AllowHttp);
    builder
        .with_base_url(&endpoint.to_string())
        .with_config(allow_http, endpoint.is_http().to_string())
}

/// The client with credentials that are configured; `None` if nothing is.
fn configured(
    builder: &GoogleCloudStorageBuilder,
    options: &CloudOptions,
    env: &Environment,
) -> Result<Option<Client>, CredentialError> {
    let builder = builder.clone();
    if options.anonymous {
        return Ok(Some(anonymous(builder, "anonymous, as --anonymous says")));
    }
    if env.flag("GOOGLE_SKIP_SIGNATURE")? == Some(true) {
        let message = "anonymous, as GOOGLE_SKIP_SIGNATURE says";
        return Ok(Some(anonymous(builder, message)));
    }
    if let Some(token) = env.get("GOOGLE_BEARER_TOKEN") {
        if is_header_text(&token) {
            let message = "the token of GOOGLE_BEARER_TOKEN, which is not renewed";
            let builder = with_token(builder, token);
            return Ok(Some(Configured::new(builder, Access::Fixed, message)));
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
        return with_named_file(builder, env, name, &path).map(Some);
    }
    let name = "GOOGLE_SERVICE_ACCOUNT_KEY";
    if let Some(key) = env.get(name) {
        let value = account_key(name, &key)?;
        let builder = at_server_of_account(builder, &value, name)?;
        let message = format!("the service account of {name}");
        let builder = builder.with_service_account_key(key);
        return Ok(Some(Configured::new(builder, Access::Library, message)));
    }
    let name = "GOOGLE_APPLICATION_CREDENTIALS";
    if let Some(path) = env.get(name) {
        return with_named_file(builder, env, name, &path).map(Some);
    }
    if env.get(EMULATOR).is_some() {
        let message = "anonymous, for STORAGE_EMULATOR_HOST";
        return Ok(Some(anonymous(builder, message)));
    }
    let Some(path) = default_file(env) else {
        return Ok(None);
    };
    with_file(builder, &path, &path.display().to_string())
}

/// The client without credentials, which then does not look for some itself.
fn anonymous(builder: GoogleCloudStorageBuilder, message: &str) -> Client {
    let builder = with_token(builder, String::new()).with_skip_signature(true);
    Configured::new(builder, Access::Anonymous, message)
}

fn with_token(builder: GoogleCloudStorageBuilder, bearer: String) -> GoogleCloudStorageBuilder {
    builder.with_credentials(Arc::new(StaticCredentials::new(GcpCredential { bearer })))
}

/// The client with the file that the variable `name` names.
fn with_named_file(
    builder: GoogleCloudStorageBuilder,
    env: &Environment,
    name: &str,
    path: &str,
) -> Result<Client, CredentialError> {
    // The message would show a key that was put here in place of its path.
    if path.contains(['{', '\n']) {
        let problem = "expected the path of a file; a key belongs into GOOGLE_SERVICE_ACCOUNT_KEY";
        return Err(CredentialError::setting(name, problem));
    }
    let missing = || CredentialError::setting(name, format!("{path}: there is no such file"));
    let path = env.in_home(path).ok_or_else(missing)?;
    with_file(builder, &path, name)?.ok_or_else(missing)
}

/// The file that `gcloud` writes.
fn default_file(env: &Environment) -> Option<PathBuf> {
    let folder = env.get("CLOUDSDK_CONFIG");
    let folder = folder.as_deref().unwrap_or("~/.config/gcloud");
    Some(env.in_home(folder)?.join(DEFAULT_FILE))
}

/// The client with the file at `path`, of which only the kind is examined; `None` when there is none. `from` says where
/// the file is from.
fn with_file(
    builder: GoogleCloudStorageBuilder,
    path: &Path,
    from: &str,
) -> Result<Option<Client>, CredentialError> {
    let Some(file) = small_file::read_if_present(path)? else {
        return Ok(None);
    };
    let problem = |problem: &str| CredentialError::file(path, problem);
    let value: Value = serde_json::from_str(&file.text)
        .map_err(|_| problem("this is not JSON, as the files of Google's credentials are"))?;
    let check =
        |needed: &[&str]| check_members(&value, needed).map_err(|missing| problem(&missing));
    let text = path.to_str();
    let text = text.ok_or_else(|| problem("its path is not UTF-8"))?;
    let (builder, message) = match value.get("type").and_then(Value::as_str) {
        Some("service_account") => {
            check(&OF_ACCOUNT)?;
            let builder = at_server_of_account(builder, &value, text)?;
            let message = format!("the service account of {from}");
            (builder.with_service_account_path(text), message)
        }
        Some("authorized_user") => {
            check(&["client_id", "client_secret", "refresh_token"])?;
            let message = format!("the user of {from}");
            (builder.with_application_credentials(text), message)
        }
        _ => {
            return Err(problem(
                "only files of a service account or an authorized user are supported; set \
                 GOOGLE_BEARER_TOKEN to what `gcloud auth print-access-token` prints, or give \
                 --anonymous",
            ));
        }
    };
    Ok(Some(Configured::new(builder, Access::Library, message)))
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

/// The client with the server that the key of a service account names, unless another one is configured. The client
/// library takes it in that case, too, but nobody would learn which server it is.
fn at_server_of_account(
    builder: GoogleCloudStorageBuilder,
    key: &Value,
    from: &str,
) -> Result<GoogleCloudStorageBuilder, CredentialError> {
    let is_given = builder
        .get_config_value(&GoogleConfigKey::BaseUrl)
        .is_some();
    let url = key.get("gcs_base_url").and_then(Value::as_str);
    let Some(url) = url.filter(|_| !is_given) else {
        return Ok(builder);
    };
    let endpoint = Endpoint::parse(&format!("gcs_base_url of {from}"), url)?;
    // Without OAuth, the token is empty.
    if key.get("disable_oauth") != Some(&Value::Bool(true)) {
        endpoint.check_private("a token of Google")?;
    }
    Ok(with_endpoint(builder, &endpoint))
}

fn account_key(name: &str, key: &str) -> Result<Value, CredentialError> {
    let value: Value = serde_json::from_str(key).map_err(|_| {
        let problem = "this is not JSON; a path belongs into GOOGLE_APPLICATION_CREDENTIALS";
        CredentialError::setting(name, problem)
    })?;
    check_members(&value, &OF_ACCOUNT)
        .map_err(|problem| CredentialError::setting(name, problem))?;
    Ok(value)
}

/// The client with the service account of this instance, or without credentials where there is none.
async fn of_instance(
    builder: GoogleCloudStorageBuilder,
    env: &Environment,
) -> Result<Client, CredentialError> {
    if env.flag("NO_GCE_CHECK")? == Some(true) || !instance::may_be_google(env) {
        return Ok(anonymous(builder, NOTHING_FOUND));
    }
    // The client library looks for these in the variables of the process alone.
    let names = ["GCE_METADATA_HOST", "GCE_METADATA_ROOT"];
    if let Some(name) = names.iter().find(|name| env.is_changed_by_file(name)) {
        let problem = "this has to be set in the environment, and not by --env-file";
        return Err(CredentialError::setting(*name, problem));
    }
    let library = builder.clone();
    let provider = Reissued::new(move || Ok(Arc::clone(library.clone().build()?.credentials())));
    if !instance::answers(&provider).await {
        return Ok(anonymous(builder, NOTHING_FOUND));
    }
    let access = provider.access();
    let builder = builder.with_credentials(Arc::new(provider));
    let message = "the service account of this instance (Google)";
    Ok(Configured::new(builder, access, message))
}

#[cfg(test)]
mod tests;
