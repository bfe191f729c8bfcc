//! Credentials and settings of Azure Blob Storage. Variables are those of the client library, and
//! those of Azure's command. Credentials are taken from the first of these that has some:
//!
//! ```text
//! --anonymous, AZURE_SKIP_SIGNATURE
//! AZURE_STORAGE_TOKEN                                a token that expires soon
//! AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_KEY       the key of the account
//! AZURE_FEDERATED_TOKEN_FILE, _CLIENT_ID, _TENANT_ID workload identity
//! AZURE_CLIENT_SECRET, _CLIENT_ID, _TENANT_ID        a service principal
//! AZURE_STORAGE_SAS_TOKEN                            a shared access signature
//! AZURE_USE_AZURE_CLI                                the user of `az login`
//! IDENTITY_ENDPOINT, AZURE_MSI_ENDPOINT              managed identity
//! none                                               anonymous
//! ```

use std::sync::Arc;

use object_store::azure::{
    AzureAccessKey, AzureConfigKey, AzureCredential, MicrosoftAzureBuilder, split_sas,
};
use object_store::client::HttpConnector;

use crate::store::remote::credentials::access::Access;
use crate::store::remote::credentials::azure_cli::azure_cli_credentials;
use crate::store::remote::credentials::cloud_options::{CloudOptions, is_host_label};
use crate::store::remote::credentials::configured::{Configured, no_retries};
use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::endpoint::Endpoint;
use crate::store::remote::credentials::environment::Environment;
use crate::store::remote::credentials::static_credentials::{StaticCredentials, is_header_text};

const ACCOUNTS: [&str; 2] = ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"];
const TOKENS: [&str; 1] = ["AZURE_STORAGE_TOKEN"];
const KEYS: [&str; 4] = [
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_MASTER_KEY",
    "AZURE_STORAGE_KEY",
];
const CLIENTS: [&str; 2] = ["AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID"];
const SECRETS: [&str; 2] = ["AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"];
const TENANTS: [&str; 4] = [
    "AZURE_STORAGE_TENANT_ID",
    "AZURE_STORAGE_AUTHORITY_ID",
    "AZURE_TENANT_ID",
    "AZURE_AUTHORITY_ID",
];
const AUTHORITIES: [&str; 2] = ["AZURE_STORAGE_AUTHORITY_HOST", "AZURE_AUTHORITY_HOST"];
const SIGNATURES: [&str; 2] = ["AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN"];
const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";
const ENDPOINTS: [&str; 2] = ["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"];
const IDENTITIES: [&str; 3] = [
    "IDENTITY_ENDPOINT",
    "AZURE_MSI_ENDPOINT",
    "AZURE_IDENTITY_ENDPOINT",
];
const CONNECTION: &str = "AZURE_STORAGE_CONNECTION_STRING";

const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
const EMULATOR_URL: &str = "http://127.0.0.1:10000";

/// The domains of Microsoft Fabric.
const FABRIC_DOMAINS: [&str; 2] = ["dfs.fabric.microsoft.com", "blob.fabric.microsoft.com"];

const NOTHING_FOUND: &str = "anonymous: no credentials found in AZURE_* variables";

type Client = Configured<MicrosoftAzureBuilder>;

/// A client for `options`, and a description of its credentials. Sends no request.
///
/// # Errors
/// [`CredentialError`] for configuration that is wrong, or that cannot be used.
pub(crate) fn configure<C: HttpConnector + Clone>(
    options: &CloudOptions,
    env: &Environment,
    connector: C,
) -> Result<Client, CredentialError> {
    options.check_bucket()?;
    let is_emulator = env.flag("AZURE_STORAGE_USE_EMULATOR")? == Some(true);
    let account = account(options, env, is_emulator)?;
    let endpoint = endpoint(options, env, &account, is_emulator)?;
    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(&account)
        .with_container_name(&options.bucket)
        .with_retry(no_retries())
        .with_http_connector(connector);
    if let Some(endpoint) = &endpoint {
        builder = builder
            .with_allow_http(endpoint.is_http())
            .with_endpoint(endpoint.to_string());
    } else if env.flag("AZURE_USE_FABRIC_ENDPOINT")? == Some(true) {
        check_domain(options, &FABRIC_DOMAINS)?;
        builder = builder.with_use_fabric_endpoint(true);
    } else {
        check_domain(options, &[])?;
    }
    with_credentials(builder, options, env, endpoint.as_ref())
}

fn account(
    options: &CloudOptions,
    env: &Environment,
    is_emulator: bool,
) -> Result<String, CredentialError> {
    let of_url = options.account.clone().map(|account| ("STORE", account));
    let of_emulator = is_emulator.then(|| ("the emulator", EMULATOR_ACCOUNT.to_owned()));
    let found = of_url.or_else(|| env.first(&ACCOUNTS)).or(of_emulator);
    let Some((name, account)) = found else {
        let problem = "the account is not known; give it as in \
                       abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH, or set \
                       AZURE_STORAGE_ACCOUNT_NAME";
        return Err(CredentialError::setting("STORE", problem));
    };
    if is_host_label(&account) {
        return Ok(account);
    }
    let problem = "an account has only lower-case letters, digits and `-`";
    Err(CredentialError::setting(name, problem))
}

/// Refuses a URL with another domain than `domains`, because the server that gets the requests, and the credentials
/// with them, would be another one than that of the URL.
fn check_domain(options: &CloudOptions, domains: &[&str]) -> Result<(), CredentialError> {
    match &options.domain {
        Some(domain) if !domains.contains(&&**domain) => {
            let problem = "the domain after the account is none of Azure's public cloud; give the URL of \
                           the server by --endpoint";
            Err(CredentialError::setting("STORE", problem))
        }
        _ => Ok(()),
    }
}

/// The server, if it is not Azure's own. The emulator has the account in its path.
fn endpoint(
    options: &CloudOptions,
    env: &Environment,
    account: &str,
    is_emulator: bool,
) -> Result<Option<Endpoint>, CredentialError> {
    let mut given = Endpoint::given(options.endpoint.as_deref(), env, &ENDPOINTS)?;
    if given.is_none() && is_emulator {
        let url = Endpoint::given(None, env, &["AZURITE_BLOB_STORAGE_URL"])?;
        given = Some(match url {
            Some(url) => url,
            None => Endpoint::parse("AZURE_STORAGE_USE_EMULATOR", EMULATOR_URL)?,
        });
    }
    // A host that is an address has no place for the account but the path.
    Ok(given.map(|endpoint| {
        let is_bare = !endpoint.has_path();
        let is_address = endpoint.address().is_some() || endpoint.is_loopback();
        if is_bare && (is_address || is_emulator) {
            endpoint.with_segment(account)
        } else {
            endpoint
        }
    }))
}

fn with_credentials(
    builder: MicrosoftAzureBuilder,
    options: &CloudOptions,
    env: &Environment,
    endpoint: Option<&Endpoint>,
) -> Result<Client, CredentialError> {
    let anonymous = |message: &str| {
        // With credentials, the client library does not look for any itself.
        let none = AzureCredential::BearerToken(String::new());
        let builder = with_static(builder.clone(), none).with_skip_signature(true);
        Ok(Configured::new(builder, Access::Anonymous, message))
    };
    if options.anonymous {
        return anonymous("anonymous, as --anonymous says");
    }
    if env.flag("AZURE_SKIP_SIGNATURE")? == Some(true) {
        return anonymous("anonymous, as AZURE_SKIP_SIGNATURE says");
    }
    let check_private = |what: &str| match endpoint {
        Some(endpoint) => endpoint.check_private(what),
        None => Ok(()),
    };
    if let Some((name, token)) = env.first(&TOKENS) {
        if !is_header_text(&token) {
            let problem = "this has characters that no token has";
            return Err(CredentialError::setting(name, problem));
        }
        check_private("a token of Azure")?;
        let builder = with_static(builder, AzureCredential::BearerToken(token));
        let message = format!("the token of {name}, which is not renewed");
        return Ok(Configured::new(builder, Access::Fixed, message));
    }
    if let Some((name, key)) = env.first(&KEYS) {
        // The message of the client library has the character that is wrong.
        let problem = "this is no key of an account, which is written in Base64";
        let key = AzureAccessKey::try_new(&key);
        let key = key.map_err(|_| CredentialError::setting(name, problem))?;
        let builder = with_static(builder, AzureCredential::AccessKey(key));
        let message = format!("the key of {name}");
        return Ok(Configured::new(builder, Access::Fixed, message));
    }
    let (client, tenant) = (env.first(&CLIENTS), env.first(&TENANTS));
    if let (Some((_, client)), Some((_, tenant))) = (client, tenant) {
        let mut builder = builder
            .clone()
            .with_client_id(client)
            .with_tenant_id(tenant);
        if let Some(authority) = Endpoint::given(None, env, &AUTHORITIES)? {
            authority.check_private("a token of Azure")?;
            builder = builder.with_authority_host(authority.to_string());
        }
        if let Some(file) = env.get(TOKEN_FILE) {
            check_private("a token of Azure")?;
            let builder = builder.with_federated_token_file(file);
            let message = format!("workload identity of {TOKEN_FILE}");
            return Ok(Configured::new(builder, Access::Library, message));
        }
        if let Some((name, secret)) = env.first(&SECRETS) {
            check_private("a token of Azure")?;
            let builder = builder.with_client_secret(secret);
            let message = format!("the service principal of {name}");
            return Ok(Configured::new(builder, Access::Library, message));
        }
    }
    if let Some((name, signature)) = env.first(&SIGNATURES) {
        let problem = "this is no shared access signature, as in sv=...&sig=...";
        let pairs = split_sas(&signature);
        let pairs = pairs.map_err(|_| CredentialError::setting(name, problem))?;
        check_private("a shared access signature")?;
        let builder = with_static(builder, AzureCredential::SASToken(pairs));
        let message = format!("the shared access signature of {name}");
        return Ok(Configured::new(builder, Access::Fixed, message));
    }
    if env.flag("AZURE_USE_AZURE_CLI")? == Some(true) {
        check_private("a token of Azure")?;
        let problem = "the command cannot be run";
        let tokens = azure_cli_credentials(env);
        let tokens = tokens.ok_or_else(|| CredentialError::setting("az", problem))?;
        let access = Access::Renewed(tokens.refusals());
        let builder = builder.with_credentials(Arc::new(tokens));
        return Ok(Configured::new(builder, access, "tokens of the command az"));
    }
    if let Some((name, _)) = env.first(&IDENTITIES) {
        check_private("a token of Azure")?;
        let builder = managed_identity(builder, env)?;
        let message = format!("managed identity of {name}");
        return Ok(Configured::new(builder, Access::Library, message));
    }
    check_nothing_left(env)?;
    anonymous(NOTHING_FOUND)
}

fn with_static(
    builder: MicrosoftAzureBuilder,
    credential: AzureCredential,
) -> MicrosoftAzureBuilder {
    builder.with_credentials(Arc::new(StaticCredentials::new(credential)))
}

fn managed_identity(
    mut builder: MicrosoftAzureBuilder,
    env: &Environment,
) -> Result<MicrosoftAzureBuilder, CredentialError> {
    // The client library looks for this only in the variables of the process.
    let header = "IDENTITY_HEADER";
    if env.is_changed_by_file(header) {
        let problem = "this has to be set in the environment, and not by --env-file";
        return Err(CredentialError::setting(header, problem));
    }
    if let Some(endpoint) = Endpoint::given(None, env, &IDENTITIES)? {
        builder = builder.with_msi_endpoint(endpoint.to_string());
    }
    if let Some((_, client)) = env.first(&CLIENTS) {
        builder = builder.with_client_id(client);
    }
    for (name, key) in [
        ("AZURE_OBJECT_ID", AzureConfigKey::ObjectId),
        ("AZURE_MSI_RESOURCE_ID", AzureConfigKey::MsiResourceId),
    ] {
        if let Some(value) = env.get(name) {
            builder = builder.with_config(key, value);
        }
    }
    Ok(builder)
}

/// Refuses variables that are credentials, but are not understood or not complete: a user who sets
/// them does not expect anonymous requests.
fn check_nothing_left(env: &Environment) -> Result<(), CredentialError> {
    if env.get(CONNECTION).is_some() {
        let problem = "this is not read; set AZURE_STORAGE_ACCOUNT_NAME and \
                       AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or give --anonymous";
        return Err(CredentialError::setting(CONNECTION, problem));
    }
    let [of_storage, of_azure] = SECRETS;
    if let Some((name, _)) = env.first(&[TOKEN_FILE, of_storage, of_azure]) {
        let problem = "AZURE_CLIENT_ID and AZURE_TENANT_ID have to be set with it";
        return Err(CredentialError::setting(name, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
