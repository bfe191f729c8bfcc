//! The client library for the service that a URL names.

use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use object_store::list::PaginatedListStore;
use object_store::{ObjectStore, RetryConfig};

use super::connection::{ConnectionOptions, Connector};
use super::options::{HeaderOption, RemoteOptions};
use super::url::{RemoteUrl, Service};
use crate::store::StoreError;

/// The longest file of a header.
const MOST_HEADER_BYTES: u64 = 64 << 10;

/// The client library for one store.
pub(super) struct Backend {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Where names can be listed page by page.
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    /// What the keys of the store begin with.
    pub(super) path: String,
    /// Which credentials are used, as a message.
    pub(super) credentials: String,
}

/// Repetitions are ours alone.
fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    }
}

impl Backend {
    /// The client for `url`.
    ///
    /// # Errors
    /// [`StoreError`] with what is wrong about the options, or with the file of certificates or
    /// headers.
    pub(super) fn new(url: &RemoteUrl, options: &RemoteOptions) -> Result<Backend, StoreError> {
        let is_http = url.service == Service::Http;
        let connector = Connector::new(ConnectionOptions {
            ca_file: options.ca_file.clone(),
            headers: if is_http {
                headers(options)?
            } else {
                HeaderMap::new()
            },
            follows_redirects: is_http,
            most_idle: options.requests,
        })?;
        match url.service {
            Service::Http => web(url, connector),
            Service::S3 => s3(url, options, connector),
            Service::Gcs => gcs(url, options, connector),
            Service::Azure => azure(url, options, connector),
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
        let wrong = || StoreError::Unsupported(format!("--header {name}: not a header"));
        let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Wraps a client that lists pages.
fn paged<T: ObjectStore + PaginatedListStore>(
    store: T,
    path: &str,
    credentials: String,
) -> Backend {
    let store = Arc::new(store);
    Backend {
        store: Arc::clone(&store) as Arc<dyn ObjectStore>,
        pages: Some(store),
        path: path.to_owned(),
        credentials,
    }
}

fn failed(url: &RemoteUrl, error: &object_store::Error) -> StoreError {
    // The messages of builders have no secrets.
    StoreError::problem(url, error.to_string())
}

fn web(url: &RemoteUrl, connector: Connector) -> Result<Backend, StoreError> {
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
    })
}

fn s3(
    url: &RemoteUrl,
    options: &RemoteOptions,
    connector: Connector,
) -> Result<Backend, StoreError> {
    let mut builder = object_store::aws::AmazonS3Builder::from_env()
        .with_bucket_name(&url.authority)
        .with_http_connector(connector)
        .with_request_payer(options.requester_pays)
        .with_retry(no_retries());
    let has_keys = std::env::var_os("AWS_ACCESS_KEY_ID").is_some();
    if options.anonymous || !has_keys {
        builder = builder.with_skip_signature(true);
    }
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder
            .with_endpoint(endpoint)
            .with_allow_http(endpoint.starts_with("http://"));
    }
    let store = builder.build().map_err(|error| failed(url, &error))?;
    Ok(paged(store, &url.path, String::new()))
}

fn gcs(
    url: &RemoteUrl,
    options: &RemoteOptions,
    connector: Connector,
) -> Result<Backend, StoreError> {
    let mut builder = object_store::gcp::GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(&url.authority)
        .with_http_connector(connector)
        .with_retry(no_retries());
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_base_url(endpoint);
    }
    let store = builder.build().map_err(|error| failed(url, &error))?;
    Ok(paged(store, &url.path, String::new()))
}

fn azure(
    url: &RemoteUrl,
    options: &RemoteOptions,
    connector: Connector,
) -> Result<Backend, StoreError> {
    let mut builder = object_store::azure::MicrosoftAzureBuilder::from_env()
        .with_container_name(&url.authority)
        .with_http_connector(connector)
        .with_retry(no_retries());
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    if let Some(account) = &url.account {
        builder = builder.with_account(account);
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder
            .with_endpoint(endpoint.clone())
            .with_allow_http(endpoint.starts_with("http://"));
    }
    let store = builder.build().map_err(|error| failed(url, &error))?;
    Ok(paged(store, &url.path, String::new()))
}
