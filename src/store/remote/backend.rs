//! The client library for the service that a URL names.

use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use object_store::ObjectStore;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::GoogleConfigKey;
use object_store::list::PaginatedListStore;
use tokio::time::timeout;

use super::connection::{ConnectionOptions, Connector};
use super::credentials::access::{Access, Reissued};
use super::credentials::cloud_options::CloudOptions;
use super::credentials::configured::{Configured, no_retries};
use super::credentials::credential_error::CredentialError;
use super::credentials::environment::Environment;
use super::credentials::{aws, azure, gcs, region};
use super::options::{HeaderOption, RemoteOptions};
use super::url::{RemoteUrl, Service};
use crate::store::StoreError;
use crate::store::disk_cache::Origin;

/// The longest file with the value of a header.
const MOST_HEADER_BYTES: u64 = 64 << 10;

/// The client library for one store.
pub(super) struct Backend {
    pub(super) store: Arc<dyn ObjectStore>,
    /// The interface that lists names page by page, if the service has one.
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    /// The prefix of the keys of the store in the bucket.
    pub(super) path: String,
    /// The credentials that are used, as a message.
    pub(super) credentials: String,
    /// How requests are authorized.
    pub(super) access: Access,
    /// The server and the bucket, by which entries of the disk cache are named.
    pub(super) origin: Origin,
}

impl Backend {
    /// The client for `url`.
    ///
    /// # Errors
    /// [`StoreError`] with the problem of the options, or of the file of certificates or headers.
    pub(super) async fn new(
        url: &RemoteUrl,
        options: &RemoteOptions,
    ) -> Result<Backend, StoreError> {
        let mut env = Environment::of_process();
        if let Some(file) = &options.env_file {
            env = env.with_file(file).map_err(|error| refused(&error))?;
        }
        let is_http = url.service == Service::Http;
        let connector = Connector::new(ConnectionOptions {
            ca_file: options.ca_file.clone(),
            headers: if is_http {
                headers(options)?
            } else {
                HeaderMap::new()
            },
            follows_redirects: is_http,
            most_idle: options.most_requests(),
            private_addresses: options.private_addresses.clone(),
        })?;
        match url.service {
            Service::Http => web(url, options, connector),
            Service::S3 => s3(url, options, &env, connector).await,
            Service::Gcs => gcs(url, options, &env, connector).await,
            Service::Azure => azure(url, options, &env, connector),
        }
    }
}

fn headers(options: &RemoteOptions) -> Result<HeaderMap, StoreError> {
    let mut headers = HeaderMap::new();
    for option in &options.headers {
        let (name, value) = match option {
            HeaderOption::Value(name, value) => (name, value.clone()),
            HeaderOption::File(name, path) => {
                let failed = |error: std::io::Error| StoreError::io(path.display(), &error);
                let len = std::fs::metadata(path).map_err(&failed)?.len();
                if len > MOST_HEADER_BYTES {
                    let problem = "this file is too long for the value of a header";
                    return Err(StoreError::problem(path.display(), problem));
                }
                (name, std::fs::read_to_string(path).map_err(&failed)?)
            }
        };
        let wrong = || StoreError::Unsupported(format!("--header {name}: this is not a header"));
        let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Builds a client that lists pages. The client library's builders have these methods, but no trait
/// for them.
macro_rules! paged {
    ($url:expr, $endpoint:expr, $configured:expr) => {{
        let Configured {
            mut builder,
            mut access,
            credentials,
        } = $configured;
        if matches!(access, Access::Library) {
            let library = builder.clone();
            let make = move || Ok(Arc::clone(library.clone().build()?.credentials()));
            let provider = Reissued::new(make);
            access = provider.access();
            builder = builder.with_credentials(Arc::new(provider));
        }
        let store = Arc::new(builder.build().map_err(|error| failed($url, &error))?);
        Ok(Backend {
            store: Arc::clone(&store) as Arc<dyn ObjectStore>,
            pages: Some(store),
            path: $url.path.clone(),
            credentials,
            access,
            origin: Origin {
                endpoint: $endpoint.into(),
                bucket: $url.authority.as_str().into(),
            },
        })
    }};
}

fn failed(url: &RemoteUrl, error: &object_store::Error) -> StoreError {
    // The messages of builders have no secrets.
    StoreError::problem(url, error.to_string())
}

fn web(
    url: &RemoteUrl,
    options: &RemoteOptions,
    connector: Connector,
) -> Result<Backend, StoreError> {
    let store = object_store::http::HttpBuilder::new()
        .with_url(url.to_string())
        .with_http_connector(connector)
        .with_retry(no_retries())
        .build()
        .map_err(|error| failed(url, &error))?;
    Ok(Backend {
        store: Arc::new(store),
        pages: None,
        path: String::new(),
        credentials: "no credentials but the headers that were given".to_owned(),
        access: Access::Anonymous,
        origin: Origin {
            endpoint: web_endpoint(url, options).into(),
            bucket: "".into(),
        },
    })
}

/// The URL of a web server, with the headers that are no secrets: the server may send another object for another language.
fn web_endpoint(url: &RemoteUrl, options: &RemoteOptions) -> String {
    let public = options.headers.iter().filter_map(|header| match header {
        HeaderOption::Value(name, value) => Some(format!("\n{name}: {value}")),
        HeaderOption::File(..) => None,
    });
    url.to_string() + &public.collect::<String>()
}

async fn s3(
    url: &RemoteUrl,
    options: &RemoteOptions,
    env: &Environment,
    connector: Connector,
) -> Result<Backend, StoreError> {
    let cloud = cloud_options(url, options);
    let configured = aws::configure(&cloud, env, connector.clone()).await;
    let configured = configured.map_err(|error| refused(&error))?;
    let endpoint = configured.endpoint();
    let region = match configured.region() {
        Some(region) => region.to_owned(),
        // No request is sent to any region.
        None if options.is_offline() => "us-east-1".to_owned(),
        None => region_of(url, options, &connector).await?,
    };
    paged!(url, endpoint, configured.in_region(&region))
}

/// Asks S3 for the region of a bucket.
async fn region_of(
    url: &RemoteUrl,
    options: &RemoteOptions,
    connector: &Connector,
) -> Result<String, StoreError> {
    let bucket = &url.authority;
    let question = region::question(bucket);
    let answered = timeout(options.timeout, connector.head(&question)).await;
    let answered = answered.unwrap_or_else(|_| {
        let problem =
            "S3 does not answer which region the bucket is in (see --timeout); give --region";
        Err(problem.to_owned())
    });
    let (status, headers) = answered.map_err(|problem| StoreError::problem(url, problem))?;
    region::answer(bucket, status, &headers).map_err(|error| refused(&error))
}

async fn gcs(
    url: &RemoteUrl,
    options: &RemoteOptions,
    env: &Environment,
    connector: Connector,
) -> Result<Backend, StoreError> {
    let cloud = cloud_options(url, options);
    let configured = gcs::configure(&cloud, env, connector).await;
    let configured = configured.map_err(|error| refused(&error))?;
    let key = GoogleConfigKey::BaseUrl;
    let endpoint = configured.builder.get_config_value(&key);
    let endpoint = format!("gs {}", endpoint.unwrap_or_default());
    paged!(url, endpoint, configured)
}

fn azure(
    url: &RemoteUrl,
    options: &RemoteOptions,
    env: &Environment,
    connector: Connector,
) -> Result<Backend, StoreError> {
    let cloud = cloud_options(url, options);
    let configured = azure::configure(&cloud, env, connector);
    let configured = configured.map_err(|error| refused(&error))?;
    let endpoint = azure_endpoint(&configured.builder);
    paged!(url, endpoint, configured)
}

/// The account and the server, by which the objects of Azure are distinguished from those of others. Without a server, it
/// is Microsoft Fabric or the public cloud, where an account of one name may be another.
fn azure_endpoint(builder: &MicrosoftAzureBuilder) -> String {
    let value = |key| builder.get_config_value(&key).unwrap_or_default();
    let account = value(AzureConfigKey::AccountName);
    let server = match value(AzureConfigKey::Endpoint) {
        server if !server.is_empty() => server,
        _ if value(AzureConfigKey::UseFabricEndpoint) == "true" => "fabric".to_owned(),
        _ => String::new(),
    };
    format!("az {account} {server}")
}

/// The settings of a store in a cloud, from `url` and `options`.
fn cloud_options(url: &RemoteUrl, options: &RemoteOptions) -> CloudOptions {
    CloudOptions {
        bucket: url.authority.clone(),
        account: url.account.clone(),
        domain: url.domain.clone(),
        // Credentials may take requests of their own.
        anonymous: options.anonymous || options.is_offline(),
        profile: options.profile.clone(),
        region: options.region.clone(),
        endpoint: options.endpoint.clone(),
        requester_pays: options.requester_pays,
    }
}

/// The messages about credentials have no secrets.
fn refused(error: &CredentialError) -> StoreError {
    StoreError::Unsupported(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_one_name_in_two_clouds_are_distinguished() {
        let builder = MicrosoftAzureBuilder::new().with_account("a");
        for (builder, expected) in [
            (builder.clone(), "az a "),
            (
                builder.clone().with_use_fabric_endpoint(true),
                "az a fabric",
            ),
            (
                builder.with_endpoint("http://127.0.0.1:1/a".to_owned()),
                "az a http://127.0.0.1:1/a",
            ),
        ] {
            assert_eq!(azure_endpoint(&builder), expected);
        }
    }
}
