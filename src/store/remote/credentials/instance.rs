//! Whether this machine is one of a cloud's own, whose metadata server gives credentials. It is
//! asked once, because elsewhere nobody answers at its address.

use std::path::Path;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpRequest, HttpRequestBody, HttpResponse};
use reqwest::Method;
use reqwest::header::{CONTENT_LENGTH, HeaderName, HeaderValue};

use crate::store::remote::credentials::environment::Environment;
use crate::store::remote::credentials::static_credentials::is_header_text;

/// A metadata server has answered after this time, or there is none.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest token of a metadata server.
const MOST_TOKEN_BYTES: usize = 4 << 10;

/// Where the firmware of Google's machines tells what they are.
const PRODUCT_NAME: &str = "/sys/class/dmi/id/product_name";

/// Whether the metadata server of AWS at `endpoint` knows a role of this machine, by the second
/// version of its protocol (`IMDSv2`).
pub(crate) async fn has_aws_role(connector: &impl HttpConnector, endpoint: &str) -> bool {
    let ask = async {
        let client = client(connector)?;
        let token_url = format!("{endpoint}/latest/api/token");
        let seconds = ("x-aws-ec2-metadata-token-ttl-seconds", "60");
        let answer = send(&client, Method::PUT, &token_url, seconds).await?;
        // The length is checked before the body is read.
        let length = answer.headers().get(CONTENT_LENGTH)?.to_str().ok()?;
        if length.parse::<usize>().ok()? > MOST_TOKEN_BYTES {
            return None;
        }
        let token = answer.into_body().bytes().await.ok()?;
        let token = std::str::from_utf8(&token).ok();
        let token = token.filter(|token| is_header_text(token))?;
        let role_url = format!("{endpoint}/latest/meta-data/iam/security-credentials/");
        send(
            &client,
            Method::GET,
            &role_url,
            ("x-aws-ec2-metadata-token", token),
        )
        .await
    };
    answers(ask).await
}

/// Whether the metadata server of Google at `host` knows a service account of this machine.
pub(crate) async fn has_google_account(connector: &impl HttpConnector, host: &str) -> bool {
    let ask = async {
        let client = client(connector)?;
        let path = "computeMetadata/v1/instance/service-accounts/default/email";
        let url = format!("http://{host}/{path}");
        let answer = send(&client, Method::GET, &url, ("metadata-flavor", "Google")).await?;
        // Other servers do not send this header back.
        (answer.headers().get("metadata-flavor")? == "Google").then_some(answer)
    };
    answers(ask).await
}

/// Whether this machine may be one of Google's: its firmware or its environment says so.
pub(crate) fn may_be_google(env: &Environment) -> bool {
    if env
        .first(&["GCE_METADATA_HOST", "GCE_METADATA_ROOT"])
        .is_some()
    {
        return true;
    }
    // Containers without firmware, of Cloud Run.
    if env.first(&["K_SERVICE", "CLOUD_RUN_JOB"]).is_some() {
        return true;
    }
    is_google_product(Path::new(PRODUCT_NAME))
}

fn is_google_product(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|name| name.trim_start().starts_with("Google"))
}

/// Whether an answer of success comes in time.
async fn answers(ask: impl Future<Output = Option<HttpResponse>>) -> bool {
    matches!(tokio::time::timeout(PATIENCE, ask).await, Ok(Some(_)))
}

fn client(connector: &impl HttpConnector) -> Option<HttpClient> {
    let options = ClientOptions::new()
        .with_allow_http(true)
        .with_connect_timeout(PATIENCE);
    connector.connect(&options).ok()
}

/// The answer, if it is one of success.
async fn send(
    client: &HttpClient,
    method: Method,
    url: &str,
    (name, value): (&'static str, &str),
) -> Option<HttpResponse> {
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.method_mut() = method.clone();
    *request.uri_mut() = url.parse().ok()?;
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    let headers = request.headers_mut();
    headers.insert(HeaderName::from_static(name), value);
    if method == Method::PUT {
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    let answer = client.execute(request).await.ok()?;
    answer.status().is_success().then_some(answer)
}

#[cfg(test)]
pub(crate) mod testing {
    use std::fmt;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};

    use object_store::ClientOptions;
    use object_store::client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    };
    use tokio::runtime::Builder;

    type Answer = dyn Fn(&HttpRequest) -> Option<HttpResponse> + Send + Sync;

    /// Answers requests by a function, and remembers them. Where the function has no answer, none
    /// ever comes.
    #[derive(Clone)]
    pub(crate) struct Fake {
        answer: Arc<Answer>,
        requests: Arc<Mutex<Vec<String>>>,
    }

    impl Fake {
        pub(crate) fn new(
            answer: impl Fn(&HttpRequest) -> Option<HttpResponse> + Send + Sync + 'static,
        ) -> Fake {
            Fake {
                answer: Arc::new(answer),
                requests: Arc::default(),
            }
        }

        /// A network in which every connection is refused.
        pub(crate) fn refusing() -> Fake {
            Fake::new(|_| Some(response(503, "")))
        }

        /// Method and URL of each request.
        pub(crate) fn requests(&self) -> Vec<String> {
            self.requests.lock().unwrap().clone()
        }
    }

    impl fmt::Debug for Fake {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Fake")
        }
    }

    impl HttpConnector for Fake {
        fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
            Ok(HttpClient::new(self.clone()))
        }
    }

    impl HttpService for Fake {
        fn call<'s, 'f>(
            &'s self,
            request: HttpRequest,
        ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
        where
            's: 'f,
            Self: 'f,
        {
            let line = format!("{} {}", request.method(), request.uri());
            self.requests.lock().unwrap().push(line);
            let answer = (self.answer)(&request);
            Box::pin(async move {
                match answer {
                    Some(answer) if answer.status() == 503 => {
                        let refused = std::io::Error::other("refused");
                        Err(HttpError::new(HttpErrorKind::Connect, refused))
                    }
                    Some(answer) => Ok(answer),
                    None => std::future::pending().await,
                }
            })
        }
    }

    /// An answer with its length.
    pub(crate) fn response(status: u16, body: &str) -> HttpResponse {
        let mut response = HttpResponse::new(body.to_owned().into());
        *response.status_mut() = status.try_into().unwrap();
        let length = body.len().into();
        response.headers_mut().insert("content-length", length);
        response
    }

    /// Runs `future`; time passes at once where nothing else happens.
    pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(future)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{Fake, response, run};
    use super::*;
    use crate::store::remote::credentials::environment::testing::environment;

    const IMDS: &str = "http://169.254.169.254";

    #[test]
    fn a_machine_with_a_role_is_told_from_others() {
        let with_role = Fake::new(|request| {
            let token = request.headers().get("x-aws-ec2-metadata-token");
            Some(match (request.method().as_str(), token) {
                ("PUT", None) => response(200, "TOKEN=="),
                ("GET", Some(token)) if token == "TOKEN==" => response(200, "role"),
                _ => response(401, ""),
            })
        });
        assert!(run(has_aws_role(&with_role, IMDS)));
        assert_eq!(
            with_role.requests(),
            [
                "PUT http://169.254.169.254/latest/api/token",
                "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/",
            ]
        );
        let status = |put: u16, get: u16, token: &'static str| {
            Fake::new(move |request| {
                let is_put = request.method() == Method::PUT;
                Some(response(if is_put { put } else { get }, token))
            })
        };
        let long = "x".repeat(MOST_TOKEN_BYTES + 1).leak();
        for (fake, requests) in [
            (status(200, 404, "T"), 2),
            (status(403, 200, "T"), 1),
            (status(200, 200, ""), 1),
            (status(200, 200, "a\r\nX: b"), 1),
            (status(200, 200, long), 1),
            (Fake::refusing(), 1),
            (Fake::new(|_| None), 1),
        ] {
            assert!(!run(has_aws_role(&fake, IMDS)));
            assert_eq!(fake.requests().len(), requests);
        }
    }

    #[test]
    fn a_machine_of_google_is_told_from_others() {
        let google = |flavor: &'static str| {
            Fake::new(move |request| {
                let mut answer = response(200, "a@b");
                let headers = answer.headers_mut();
                headers.insert("metadata-flavor", HeaderValue::from_static(flavor));
                let asked = request.headers().get("metadata-flavor");
                asked
                    .is_some_and(|asked| asked == "Google")
                    .then_some(answer)
            })
        };
        assert!(run(has_google_account(
            &google("Google"),
            "metadata.google.internal"
        )));
        assert!(!run(has_google_account(
            &google("Other"),
            "169.254.169.254"
        )));
        let captive = Fake::new(|_| Some(response(200, "please log in")));
        assert!(!run(has_google_account(&captive, "h")));
        assert!(!run(has_google_account(&Fake::refusing(), "h")));
    }

    #[test]
    fn machines_of_google_are_known_by_their_firmware_or_environment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("product_name");
        assert!(!is_google_product(&path));
        for (name, is_google) in [("Google Compute Engine\n", true), ("Standard PC\n", false)] {
            std::fs::write(&path, name).unwrap();
            assert_eq!(is_google_product(&path), is_google);
        }
        assert!(may_be_google(&environment(&[("GCE_METADATA_HOST", "h")])));
        assert!(may_be_google(&environment(&[("K_SERVICE", "s")])));
    }
}
