//! How the servers of S3 are named: region, endpoint, and whether the bucket is a part of the
//! host's name or of the path.

use crate::store::remote::credentials::aws_profile::Profile;
use crate::store::remote::credentials::cloud_options::{CloudOptions, is_host_label};
use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::endpoint::Endpoint;
use crate::store::remote::credentials::environment::Environment;

/// The region in signatures for servers other than those of AWS, which have no regions.
const REGION_OF_OTHERS: &str = "us-east-1";

/// Where the bucket is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BucketPlace {
    /// `https://BUCKET.HOST/KEY`
    Host,
    /// `https://HOST/BUCKET/KEY`
    Path,
}

/// How the server is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AwsSettings {
    /// The region; `None` if S3 has to be asked for it.
    pub(crate) region: Option<String>,
    /// The server, if it is not one of AWS; with the bucket in its host name if the bucket belongs there.
    pub(crate) endpoint: Option<Endpoint>,
    /// Where the bucket is named.
    pub(crate) bucket_place: BucketPlace,
}

impl AwsSettings {
    /// The settings of options, variables and profile.
    ///
    /// # Errors
    /// [`CredentialError::Setting`] for a region or an endpoint that is none.
    pub(crate) fn new(
        options: &CloudOptions,
        env: &Environment,
        profile: Option<&Profile>,
    ) -> Result<AwsSettings, CredentialError> {
        let endpoint = endpoint(options, env, profile)?;
        let mut region = region(options, env, profile)?;
        if endpoint.is_some() {
            region.get_or_insert_with(|| REGION_OF_OTHERS.to_owned());
        }
        let bucket_place = bucket_place(options, env, profile, endpoint.is_some())?;
        let endpoint = match bucket_place {
            BucketPlace::Host => endpoint.map(|endpoint| endpoint.with_bucket(&options.bucket)),
            BucketPlace::Path => endpoint,
        };
        Ok(AwsSettings {
            region,
            endpoint,
            bucket_place,
        })
    }
}

/// The server of AWS in a region whose servers have another name than most.
pub(crate) fn endpoint_of_region(region: &str) -> Option<Endpoint> {
    let is_china = region.starts_with("cn-") && is_host_label(region);
    let url = is_china.then(|| format!("https://s3.{region}.amazonaws.com.cn"))?;
    Endpoint::parse("region", &url).ok()
}

fn region(
    options: &CloudOptions,
    env: &Environment,
    profile: Option<&Profile>,
) -> Result<Option<String>, CredentialError> {
    let option = options.region.clone().map(|region| ("--region", region));
    let variable = || env.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
    let of_profile = || Some(("region of the profile", profile?.region()?.to_owned()));
    let Some((name, region)) = option.or_else(variable).or_else(of_profile) else {
        return Ok(None);
    };
    if is_host_label(&region) {
        return Ok(Some(region));
    }
    let problem = "a region has only lower-case letters, digits and `-`, as in eu-west-1";
    Err(CredentialError::setting(name, problem))
}

fn endpoint(
    options: &CloudOptions,
    env: &Environment,
    profile: Option<&Profile>,
) -> Result<Option<Endpoint>, CredentialError> {
    let option = options.endpoint.as_deref();
    let is_ignored = env.flag("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")? == Some(true);
    if is_ignored && option.is_none() {
        return Ok(None);
    }
    let variables = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    let given = Endpoint::given(option, env, &variables)?;
    if given.is_some() {
        return Ok(given);
    }
    let of_profile = profile.and_then(Profile::endpoint);
    let name = "endpoint_url of the profile";
    of_profile.map(|url| Endpoint::parse(name, url)).transpose()
}

fn bucket_place(
    options: &CloudOptions,
    env: &Environment,
    profile: Option<&Profile>,
    has_endpoint: bool,
) -> Result<BucketPlace, CredentialError> {
    if let Some(is_host) = env.flag("AWS_VIRTUAL_HOSTED_STYLE_REQUEST")? {
        return Ok(if is_host {
            BucketPlace::Host
        } else {
            BucketPlace::Path
        });
    }
    Ok(match profile.and_then(Profile::addressing_style) {
        Some("path") => BucketPlace::Path,
        Some("virtual") => BucketPlace::Host,
        _ if has_endpoint => BucketPlace::Path,
        // A name with dots fits no certificate, and old names have letters that hosts do not have.
        _ if is_host_label(&options.bucket) => BucketPlace::Host,
        _ => BucketPlace::Path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::remote::credentials::environment::testing::environment;

    fn settings(
        options: &CloudOptions,
        variables: &[(&str, &str)],
    ) -> Result<(Option<String>, Option<String>, BucketPlace), CredentialError> {
        let settings = AwsSettings::new(options, &environment(variables), None)?;
        let endpoint = settings.endpoint.map(|endpoint| endpoint.to_string());
        Ok((settings.region, endpoint, settings.bucket_place))
    }

    fn bucket(name: &str) -> CloudOptions {
        CloudOptions {
            bucket: name.to_owned(),
            ..CloudOptions::default()
        }
    }

    #[test]
    fn options_go_before_variables() {
        let options = CloudOptions {
            region: Some("r1".to_owned()),
            endpoint: Some("http://o".to_owned()),
            ..bucket("b")
        };
        let variables = [("AWS_REGION", "r2"), ("AWS_ENDPOINT_URL_S3", "http://e")];
        let expected = (
            Some("r1".to_owned()),
            Some("http://o".to_owned()),
            BucketPlace::Path,
        );
        assert_eq!(settings(&options, &variables).unwrap(), expected);
        let ignored = [("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")];
        assert_eq!(settings(&options, &ignored).unwrap(), expected);
    }

    #[test]
    fn variables_have_their_order_and_other_servers_a_region() {
        let of = |variables: &[(&str, &str)]| settings(&bucket("b"), variables).unwrap();
        assert_eq!(of(&[]), (None, None, BucketPlace::Host));
        let (region, ..) = of(&[("AWS_DEFAULT_REGION", "d"), ("AWS_REGION", "r")]);
        assert_eq!(region.as_deref(), Some("r"));
        assert_eq!(of(&[("AWS_DEFAULT_REGION", "d")]).0.as_deref(), Some("d"));
        let all = ("AWS_ENDPOINT_URL", "http://all");
        let s3 = ("AWS_ENDPOINT_URL_S3", "http://s3/");
        let (region, endpoint, place) = of(&[all, s3]);
        assert_eq!(endpoint.as_deref(), Some("http://s3"));
        assert_eq!(
            (region.as_deref(), place),
            (Some("us-east-1"), BucketPlace::Path)
        );
        let hosted = ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true");
        assert_eq!(of(&[all, hosted]).1.as_deref(), Some("http://b.all"));
        let ignored = ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
        assert_eq!(of(&[all, ignored]).1, None);
    }

    #[test]
    fn buckets_whose_name_is_no_host_are_in_the_path() {
        for (name, place) in [
            ("abc-1", BucketPlace::Host),
            ("a.b", BucketPlace::Path),
            ("Old", BucketPlace::Path),
            ("a_b", BucketPlace::Path),
        ] {
            assert_eq!(settings(&bucket(name), &[]).unwrap().2, place, "{name}");
        }
        let path = [("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "0")];
        assert_eq!(settings(&bucket("b"), &path).unwrap().2, BucketPlace::Path);
    }

    #[test]
    fn what_would_change_the_host_is_refused() {
        for variables in [
            [("AWS_REGION", "x.evil.example/")],
            [("AWS_REGION", "EU")],
            [("AWS_ENDPOINT_URL", "https://u:hunter2@h")],
            [("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "hunter2")],
        ] {
            let message = settings(&bucket("b"), &variables).unwrap_err().to_string();
            assert!(!message.contains("hunter2"), "{message}");
        }
        let china = endpoint_of_region("cn-north-1").unwrap().to_string();
        assert_eq!(china, "https://s3.cn-north-1.amazonaws.com.cn");
        assert!(endpoint_of_region("eu-west-1").is_none());
    }
}
