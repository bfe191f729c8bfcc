//! The HTTP client. It follows redirects of web servers by rules of its own ([`Step`]), and passes the facts in the
//! heads of answers on to the rest of this module.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use http::StatusCode;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_RANGE, COOKIE, HeaderMap, HeaderValue, LOCATION,
};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use percent_encoding::percent_decode_str;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::tls::Certificate;
use reqwest::{Client, Url};

use super::exchange::{Exchange, LISTING};
use super::listed_names;
use super::options::PrivateAddresses;
use super::proxy::proxy_hosts;
use crate::store::StoreError;

/// A connection must be made within this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server must send data within this time.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The message about a host that has private addresses alone.
pub(super) const PRIVATE_ADDRESS: &str = "the name of the host stands for a private address";

/// A page of 5,000 names is no longer than this.
const MOST_PAGE_BYTES: usize = 32 << 20;

/// The answer to `PROPFIND`, which has all names of a directory, is no longer than this. A name takes some 700 bytes.
const MOST_LISTING_BYTES: usize = 128 << 20;

/// An answer with credentials is no longer than this.
const MOST_CREDENTIALS_BYTES: usize = 1 << 20;

/// One request follows at most this many redirects.
const MOST_REDIRECTS: usize = 5;

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

impl Connection {
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
        let connection = &self.0;
        // Requests for credentials have no exchange, and PROPFIND has that of its task.
        let exchange = request.extensions().get::<Exchange>().cloned();
        let headers = request.headers_mut();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let origin = request.uri().clone();
        let is_listing = request.method().as_str() == "PROPFIND";
        if exchange.is_some() || is_listing {
            for (name, value) in &connection.options.headers {
                request.headers_mut().insert(name, value.clone());
            }
        }
        let is_plain = request.uri().scheme_str() == Some("http");
        let mut client = if exchange.is_none() && !is_listing && is_plain {
            &connection.direct
        } else {
            &connection.client
        };
        for hop in 0.. {
            let answered = client.call(request.clone()).await;
            let mut answer = answered.inspect_err(|_| match &exchange {
                Some(exchange) => exchange.failed(),
                None if is_listing => drop(LISTING.try_with(Exchange::failed)),
                None => {}
            })?;
            let Some(exchange) = &exchange else {
                if is_listing {
                    connection.check_listing(&mut answer);
                    return whole_listing(answer).await;
                }
                return within(answer, MOST_CREDENTIALS_BYTES, "credentials").await;
            };
            exchange.answered(answer.status(), answer.headers());
            // The client library would panic, because it adds 1 to the last byte.
            if ends_beyond_numbers(answer.headers()) {
                answer.headers_mut().remove(CONTENT_RANGE);
            }
            if exchange.noted().is_page && answer.status().is_success() {
                return checked_page(answer, exchange).await;
            }
            let location = answer.headers().get(LOCATION);
            let Some(location) = location.filter(|_| {
                connection.options.follows_redirects && answer.status().is_redirection()
            }) else {
                return Ok(answer);
            };
            let step = Step::new(request.uri(), location, hop).and_then(|step| {
                if is_same_origin(&origin, &step.target) {
                    return Ok(step);
                }
                step.leading_to_no_proxy(&connection.proxies)
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
                        for name in connection.options.headers.keys() {
                            request.headers_mut().remove(name);
                        }
                        request.headers_mut().remove(AUTHORIZATION);
                        request.headers_mut().remove(COOKIE);
                        client = &connection.foreign;
                    }
                }
            }
        }
        Err(HttpError::new(
            HttpErrorKind::Unknown,
            std::io::Error::other("too many redirects"),
        ))
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

/// The answer, which has `contents`, read to its end. The client library reads it without a limit to its length.
///
/// # Errors
/// It is longer than `most_bytes`.
async fn within(
    answer: HttpResponse,
    most_bytes: usize,
    contents: &str,
) -> Result<HttpResponse, HttpError> {
    let (head, body) = answer.into_parts();
    let Some(text) = whole(body, most_bytes).await? else {
        let problem = format!("the answer is too long for {contents}");
        let problem = std::io::Error::other(problem);
        return Err(HttpError::new(HttpErrorKind::Decode, problem));
    };
    Ok(HttpResponse::from_parts(head, text.into()))
}

/// The answer to `PROPFIND`, read to its end. It is noted after that, so that an answer whose connection is lost counts
/// as none.
async fn whole_listing(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (head, body) = answer.into_parts();
    let text = whole(body, MOST_LISTING_BYTES).await?;
    let too_long = || "the list of names is too long".to_owned();
    let note = |exchange: &Exchange| {
        exchange.answered(head.status, &head.headers);
        exchange.noted().problem = text.is_none().then(too_long);
    };
    // Each caller that lists names notes the answer.
    let _ = LISTING.try_with(note);
    let text = text.ok_or_else(|| {
        let problem = std::io::Error::other(too_long());
        HttpError::new(HttpErrorKind::Decode, problem)
    })?;
    Ok(HttpResponse::from_parts(head, text.into()))
}

/// The bytes of `body`; `None` if they are more than `most`.
async fn whole(body: HttpResponseBody, most: usize) -> Result<Option<Vec<u8>>, HttpError> {
    let mut parts = body.bytes_stream();
    let mut bytes = Vec::new();
    while let Some(part) = parts.next().await {
        bytes.extend_from_slice(&part?);
        if bytes.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

/// A page of names, checked because the client library would read any other document as a page without names.
async fn checked_page(
    answer: HttpResponse,
    exchange: &Exchange,
) -> Result<HttpResponse, HttpError> {
    let (head, body) = answer.into_parts();
    let page = whole(body, MOST_PAGE_BYTES).await?;
    let page = page.ok_or_else(|| unusable_page(exchange, "it is too long"))?;
    let text = String::from_utf8(page).map_err(|_| unusable_page(exchange, "it is not UTF-8"))?;
    let checked = listed_names::checked_page(&text);
    let (kept, left_out) = checked.map_err(|problem| unusable_page(exchange, &problem))?;
    exchange.noted().left_out = left_out;
    Ok(HttpResponse::from_parts(head, kept.into()))
}

/// The error for a page of names with this problem.
fn unusable_page(exchange: &Exchange, problem: &str) -> HttpError {
    let problem = format!("the server sent no page of names: {problem}");
    exchange.noted().problem = Some(problem);
    HttpError::new(HttpErrorKind::Decode, std::io::Error::other("no page"))
}

/// A redirect that may be followed.
struct Step {
    target: Url,
    /// Whether the target has the same path with a slash.
    adds_slash: bool,
}

impl Step {
    /// The step from `from` to `location`, or the reason why it may not be followed.
    fn new(from: &http::Uri, location: &HeaderValue, hop: usize) -> Result<Step, String> {
        if hop >= MOST_REDIRECTS {
            return Err(format!("more than {MOST_REDIRECTS} redirects"));
        }
        let unreadable = || "a redirect to an address that cannot be read".to_owned();
        let base = Url::parse(&from.to_string()).map_err(|_| unreadable())?;
        // Some servers send names without encoding, and `join` encodes them.
        let location = std::str::from_utf8(location.as_bytes()).map_err(|_| unreadable())?;
        let target = base.join(location).map_err(|_| unreadable())?;
        let shown = target.host_str().unwrap_or_default();
        let is_safe = matches!(
            (base.scheme(), target.scheme()),
            ("http" | "https", "https") | ("http", "http")
        );
        if !is_safe {
            let scheme = target.scheme();
            return Err(format!("a redirect to {scheme}://{shown} is not followed"));
        }
        let is_own = base.origin() == target.origin();
        let address = target
            .host_str()
            .map(|host| host.trim_matches(['[', ']']))
            .and_then(|host| host.parse::<IpAddr>().ok());
        if !is_own && address.is_some_and(|address| !is_public(address)) {
            return Err(format!(
                "a redirect to the private address {shown} is not followed"
            ));
        }
        // Servers spell a path differently from the request, such as `%c3` for `%C3`.
        let shorter = target.path().strip_suffix('/');
        let adds_slash = shorter
            .is_some_and(|path| percent_decode_str(path).eq(percent_decode_str(base.path())));
        Ok(Step { target, adds_slash })
    }

    /// Refuses to request the proxy itself: its address may be private.
    fn leading_to_no_proxy(self, proxies: &[String]) -> Result<Step, String> {
        let host = self.target.host_str().unwrap_or_default();
        let is_proxy = proxies.iter().any(|proxy| host.eq_ignore_ascii_case(proxy));
        if is_proxy {
            return Err(format!("a redirect to the proxy {host} is not followed"));
        }
        Ok(self)
    }
}

fn is_same_origin(origin: &http::Uri, target: &Url) -> bool {
    let origin = Url::parse(&origin.to_string());
    origin.is_ok_and(|origin| origin.origin() == target.origin())
}

/// Resolves names only to public addresses, so that a server cannot make this machine connect to its own network.
struct PublicNames {
    /// The hosts of proxies, which may have private addresses.
    proxies: Arc<[String]>,
    /// Private addresses that the names of the store's own server may stand for, beside that of this machine for
    /// `localhost`; `None` for the names that redirects lead to.
    allowed: Option<Vec<IpAddr>>,
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str();
        let is_proxy = self.proxies.iter().any(|it| it.eq_ignore_ascii_case(host));
        let is_this_machine = host.eq_ignore_ascii_case("localhost");
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let is_allowed = |found: &SocketAddr| {
                let address = found.ip();
                is_proxy
                    || is_public(address)
                    || allowed.as_ref().is_some_and(|allowed| {
                        // The user has named this machine.
                        allowed.contains(&address) || is_this_machine && address.is_loopback()
                    })
            };
            let public: Vec<SocketAddr> = found.filter(is_allowed).collect();
            if public.is_empty() {
                return Err(Box::from(std::io::Error::other(PRIVATE_ADDRESS)));
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Whether `address` is that of a machine that anyone can reach.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || a == 0
                // Addresses that providers share among their customers.
                || (a == 100 && b & 0xc0 == 64)
                // Addresses for measuring the devices of a network.
                || (a == 198 && b & 0xfe == 18))
        }
        IpAddr::V6(v6) => {
            if let Some(v4) = v4_within(v6) {
                return is_public(IpAddr::V4(v4));
            }
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local())
        }
    }
}

/// The address that `v6` leads to in a network of version 4: written in version 6, translated by a gateway (RFC 6052),
/// or through a tunnel (RFC 3056).
fn v4_within(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    match v6.octets() {
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
        | [0x20, 0x02, a, b, c, d, ..] => Some(Ipv4Addr::new(a, b, c, d)),
        _ => v6.to_ipv4_mapped(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn an_answer_is_not_read_beyond_its_bound() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let read = |len: usize| {
            let answer = HttpResponse::new(vec![b' '; len].into());
            let answer = runtime.block_on(within(answer, MOST_CREDENTIALS_BYTES, "credentials"))?;
            runtime.block_on(answer.into_body().bytes())
        };
        let bytes = read(MOST_CREDENTIALS_BYTES).unwrap();
        assert_eq!(bytes.len(), MOST_CREDENTIALS_BYTES);
        assert!(read(MOST_CREDENTIALS_BYTES + 1).is_err());
    }

    #[test]
    fn redirects_stay_with_the_origin_or_go_to_public_addresses() {
        let step = |from: &str, to: &str| {
            let location = HeaderValue::from_str(to).unwrap();
            let step = Step::new(&from.parse().unwrap(), &location, 0);
            step.map(|step| step.target.to_string())
        };
        for (from, to, expected) in [
            ("http://h/a", "/b", Some("http://h/b")),
            ("http://h/a", "https://h/a", Some("https://h/a")),
            ("https://h/a", "http://h/a", None),
            (
                "https://h/a",
                "https://93.184.216.34/a",
                Some("https://93.184.216.34/a"),
            ),
            ("https://h/a", "https://169.254.169.254/a", None),
            ("https://h/a", "https://[::1]/a", None),
            ("https://h/a", "https://[::ffff:10.0.0.1]/a", None),
            // Addresses that a gateway or a tunnel leads to 10.0.0.1 and to 1.1.1.1.
            ("https://h/a", "https://[64:ff9b::a00:1]/a", None),
            ("https://h/a", "https://[2002:a00:1::]/a", None),
            (
                "https://h/a",
                "https://[64:ff9b::101:101]/a",
                Some("https://[64:ff9b::101:101]/a"),
            ),
            ("https://h/a", "https://198.19.0.1/a", None),
            (
                "http://127.0.0.1:1/a",
                "http://127.0.0.1:1/b",
                Some("http://127.0.0.1:1/b"),
            ),
            ("http://127.0.0.1:1/a", "http://127.0.0.1:2/b", None),
            ("https://h/a", "file:///etc/passwd", None),
        ] {
            assert_eq!(step(from, to).ok().as_deref(), expected, "{from} to {to}");
        }
        for (to, adds_slash) in [
            ("/a/", false),
            ("/%C3%BC%20b/", true),
            ("/%c3%bc%20b/", true),
            ("/%c3%bc b/", true),
            ("/ü b/", true),
            ("/%c3%bc b", false),
            ("/%c3%bc%2fb/", false),
        ] {
            let location = HeaderValue::from_bytes(to.as_bytes()).unwrap();
            let from = "http://h/%C3%BC%20b".parse().unwrap();
            let step = Step::new(&from, &location, 0).unwrap();
            assert_eq!(step.adds_slash, adds_slash, "{to}");
        }
        let location = HeaderValue::from_static("/b");
        let from = "http://h/a".parse().unwrap();
        assert!(Step::new(&from, &location, MOST_REDIRECTS).is_err());
    }
}
