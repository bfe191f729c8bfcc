//! The region of a bucket in S3, if it is not configured. S3 sends it in the answer to `HEAD` of the bucket at any of
//! its servers, even if it denies the request or redirects it.

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use crate::store::remote::credentials::cloud_options::is_host_label;
use crate::store::remote::credentials::credential_error::CredentialError;

const HEADER: &str = "x-amz-bucket-region";

/// The URL that is asked with `HEAD`, without a signature. The bucket is in its path, because a name
/// with dots fits no certificate.
pub(crate) fn question(bucket: &str) -> String {
    format!("https://s3.us-east-1.amazonaws.com/{bucket}")
}

/// The region in an answer.
///
/// # Errors
/// [`CredentialError::Setting`] when there is no such bucket, or the answer has no region.
pub(crate) fn answer(
    bucket: &str,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<String, CredentialError> {
    let region = headers.get(HEADER).and_then(|value| value.to_str().ok());
    if let Some(region) = region.filter(|region| is_host_label(region)) {
        return Ok(region.to_owned());
    }
    let problem = if status == StatusCode::NOT_FOUND {
        "there is no such bucket in S3; for another server, give --endpoint".to_owned()
    } else {
        let status = status.as_u16();
        format!("S3 does not say its region (HTTP status {status}); give --region")
    };
    Err(CredentialError::setting(
        format!("bucket {bucket}"),
        problem,
    ))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn the_region_is_told_whatever_the_status() {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_static("eu-central-1"));
        for status in [200, 301, 307, 400, 403, 404] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(answer("b", status, &headers).unwrap(), "eu-central-1");
        }
        assert!(question("a.b").ends_with("amazonaws.com/a.b"));
    }

    #[test]
    fn without_a_region_the_error_says_what_to_do() {
        let found = |status, headers: &HeaderMap| {
            let status = StatusCode::from_u16(status).unwrap();
            answer("b", status, headers).unwrap_err().to_string()
        };
        let empty = HeaderMap::new();
        assert!(found(404, &empty).contains("no such bucket"));
        assert!(found(403, &empty).contains("--region"));
        for hostile in ["evil.example/", "", "a@b", "x y"] {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_static(hostile));
            assert!(found(200, &headers).contains("--region"), "{hostile}");
        }
    }
}
