//! Whether this machine is one of a cloud's own, whose metadata server gives credentials. The
//! server is asked only once, because on other machines no server answers at its address.

use std::path::Path;
use std::time::Duration;

use object_store::CredentialProvider;

use crate::store::remote::credentials::environment::Environment;

/// A metadata server has answered after this time, or there is none.
const PATIENCE: Duration = Duration::from_secs(1);

/// The file in which the firmware of Google's machines names their product.
const PRODUCT_NAME: &str = "/sys/class/dmi/id/product_name";

/// Whether the metadata server that `provider` asks gives credentials in time.
pub(crate) async fn answers(provider: &impl CredentialProvider) -> bool {
    let asked = tokio::time::timeout(PATIENCE, provider.get_credential());
    matches!(asked.await, Ok(Ok(_)))
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
    use super::*;
    use crate::store::remote::credentials::environment::testing::environment;

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
