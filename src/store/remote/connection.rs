//! The HTTP client. It follows redirects of web servers by rules of its own ([`Step`]), and passes the facts in the
//! heads of answers on to the rest of this module.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_RANGE, COOKIE, HeaderMap, HeaderValue, LOCATION,
};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use reqwest::Client;
use reqwest::redirect::Policy;
use reqwest::tls::Certificate;

use super::addresses::PublicNames;
use super::exchange::{Exchange, LISTING};
use super::options::PrivateAddresses;
use super::proxy::proxy_hosts;
use super::redirect::{Step, is_same_origin};
use super::whole_answer;
use crate::store::StoreError;

/// A connection must be made within this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server must send data within this time.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of connections to the server.
#[derive(Debug, Clone)]
pub(super) struct ConnectionOptions {
    /// A file of certificates in PEM that are trusted beside those of the system.
    pub(super) ca_file: Option<PathBuf>,
    /// Headers of each request to the store's own origin. Their values are secret.
    pub(super) headers: HeaderMap,
    /// Whether redirects are followed, as for web servers.
    pub(super) follows_redirects: bool,
    /// The most idle connections that are kept for each host.
    pub(super) most_idle: usize,
    /// The private addresses that the name of the store's own server may stand for.
    pub(super) private_addresses: PrivateAddresses,
}

/// Makes clients that use one pool of connections.
#[derive(Clone)]
pub(super) struct Connector(Arc<Connection>);

/// A pool of connections, and the rules of redirects.
struct Connection {
    client: Client,
    /// The client for other origins, whose names may not stand for private addresses.
    foreign: Client,
    /// The client for servers of credentials with plain HTTP. These are on this machine or in its network, and no proxy
    /// may answer for them, or read their answers.
    direct: Client,
    /// The hosts of proxies, in lower case.
    proxies: Arc<[String]>,
    /// Whether a web server has answered a request for names.
    has_listed: AtomicBool,
    options: ConnectionOptions,
}

impl Connector {
    /// A connector with these options. It reads the file of certificates.
    ///
    /// # Errors
    /// [`StoreError::Io`] when that file cannot be read or has no certificate.
    pub(super) fn new(options: ConnectionOptions) -> Result<Connector, StoreError> {
        // An error means that a provider is installed already, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificates = certificates(&options)?;
        let proxies: Arc<[String]> = proxy_hosts().into();
        if options.follows_redirects && !proxies.is_empty() {
            log::info!(
                "the targets of redirects are checked by the proxy, because the proxy resolves the \
                 names of hosts"
            );
        }
        let builder = || {
            Client::builder()
                .redirect(Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(READ_TIMEOUT)
                .pool_max_idle_per_host(options.most_idle)
                .tcp_nodelay(true)
                .http1_only()
                .user_agent(concat!("zarr-mount/", env!("CARGO_PKG_VERSION")))
                .tls_certs_merge(certificates.clone())
        };
        let public = |allowed: Option<&[IpAddr]>| PublicNames {
            proxies: Arc::clone(&proxies),
            allowed: allowed.map(<[IpAddr]>::to_vec),
        };
        let foreign = builder().dns_resolver(Arc::new(public(None)));
        let own = match &options.private_addresses {
            PrivateAddresses::All => builder(),
            PrivateAddresses::Only(allowed) => {
                builder().dns_resolver(Arc::new(public(Some(allowed))))
            }
        };
        let failed = |error: reqwest::Error| StoreError::problem("TLS", error.to_string());
        Ok(Connector(Arc::new(Connection {
            client: own.build().map_err(failed)?,
            foreign: foreign.build().map_err(failed)?,
            direct: builder().no_proxy().build().map_err(failed)?,
            proxies,
            has_listed: AtomicBool::new(false),
            options,
        })))
    }
}

impl Connector {
    /// Requests the head of `url`, without any header of the store's own requests.
    ///
    /// # Errors
    /// A message without secrets.
    pub(super) async fn head(&self, url: &str) -> Result<(StatusCode, HeaderMap), String> {
        let asked = self.0.client.head(url).send().await;
        let answer = asked.map_err(|_| {
            "S3 cannot be asked for the region of the bucket; give --region".to_owned()
        })?;
        Ok((answer.status(), answer.headers().clone()))
    }
}

fn certificates(options: &ConnectionOptions) -> Result<Vec<Certificate>, StoreError> {
    let Some(path) = &options.ca_file else {
        return Ok(Vec::new());
    };
    let shown = path.display();
    let pem = std::fs::read(path).map_err(|error| StoreError::io(shown, &error))?;
    let found = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if found.is_empty() {
        let problem = "no certificate in PEM is in this file (--ca-file)";
        return Err(StoreError::problem(path.display(), problem));
    }
    Ok(found)
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(SharedConnection(Arc::clone(&self.0))))
    }
}

#[derive(Debug)]
struct SharedConnection(Arc<Connection>);

#[async_trait::async_trait]
impl HttpService for SharedConnection {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let headers = request.headers_mut();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let is_listing = request.method().as_str() == "PROPFIND";
        let exchange = if is_listing {
            LISTING.try_with(Exchange::clone).ok()
        } else {
            request.extensions().get::<Exchange>().cloned()
        };
        let connection = &self.0;
        let Some(exchange) = exchange else {
            return connection.credentials(request).await;
        };
        let headers = request.headers_mut();
        for (name, value) in &connection.options.headers {
            headers.insert(name, value.clone());
        }
        if is_listing {
            return connection.listing(request, &exchange).await;
        }
        connection.object_or_page(request, &exchange).await
    }
}

impl Connection {
    /// The answer to a request for credentials, which no exchange notes.
    async fn credentials(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_plain = request.uri().scheme_str() == Some("http");
        let client = if is_plain { &self.direct } else { &self.client };
        whole_answer::credentials(client.call(request).await?).await
    }

    /// The answer to `PROPFIND`.
    async fn listing(
        &self,
        request: HttpRequest,
        exchange: &Exchange,
    ) -> Result<HttpResponse, HttpError> {
        let answer = self.client.call(request).await;
        let mut answer = answer.inspect_err(|_| exchange.failed())?;
        self.check_listing(&mut answer);
        whole_answer::listing(answer, exchange).await
    }

    /// The answer to a request for an object or a page of names, after all redirects that are followed.
    async fn object_or_page(
        &self,
        mut request: HttpRequest,
        exchange: &Exchange,
    ) -> Result<HttpResponse, HttpError> {
        let origin = request.uri().clone();
        let mut client = &self.client;
        for hop in 0.. {
            let answer = client.call(request.clone()).await;
            let mut answer = answer.inspect_err(|_| exchange.failed())?;
            exchange.answered(answer.status(), answer.headers());
            // The client library would panic, because it adds 1 to the last byte.
            if ends_beyond_numbers(answer.headers()) {
                answer.headers_mut().remove(CONTENT_RANGE);
            }
            if exchange.noted().is_page && answer.status().is_success() {
                return whole_answer::checked_page(answer, exchange).await;
            }
            let location = answer.headers().get(LOCATION);
            let Some(location) = location
                .filter(|_| self.options.follows_redirects && answer.status().is_redirection())
            else {
                return Ok(answer);
            };
            let step = Step::new(request.uri(), location, hop).and_then(|step| {
                if is_same_origin(&origin, &step.target) {
                    return Ok(step);
                }
                step.leading_to_no_proxy(&self.proxies)
            });
            match step {
                Err(reason) => {
                    exchange.noted().refused = Some(reason);
                    return Ok(answer);
                }
                Ok(step) if step.adds_slash => {
                    exchange.noted().is_directory = true;
                    return Ok(answer);
                }
                Ok(step) => {
                    let uri = step.target.as_str().parse();
                    *request.uri_mut() = uri.map_err(|error: http::uri::InvalidUri| {
                        HttpError::new(HttpErrorKind::Decode, error)
                    })?;
                    if !is_same_origin(&origin, &step.target) {
                        for name in self.options.headers.keys() {
                            request.headers_mut().remove(name);
                        }
                        request.headers_mut().remove(AUTHORIZATION);
                        request.headers_mut().remove(COOKIE);
                        client = &self.foreign;
                    }
                }
            }
        }
        Err(HttpError::new(
            HttpErrorKind::Unknown,
            std::io::Error::other("too many redirects"),
        ))
    }

    /// Many web servers answer 404 to a method that they do not know, and the client library takes a 404 for a
    /// directory without names. A 404 means that only if the server has listed names before, and else becomes a 501.
    fn check_listing(&self, answer: &mut HttpResponse) {
        match answer.status() {
            StatusCode::MULTI_STATUS => self.has_listed.store(true, Ordering::Relaxed),
            StatusCode::NOT_FOUND if !self.has_listed.load(Ordering::Relaxed) => {
                *answer.status_mut() = StatusCode::NOT_IMPLEMENTED;
            }
            _ => {}
        }
    }
}

/// Whether the last byte of the range that an answer announces is beyond any object.
fn ends_beyond_numbers(headers: &HeaderMap) -> bool {
    let range = headers
        .get(CONTENT_RANGE)
        .and_then(|range| range.to_str().ok());
    let span = range.and_then(|range| range.split('/').next());
    let last = span.and_then(|span| span.rsplit('-').next());
    last.is_some_and(|last| last.parse() == Ok(u64::MAX))
}
