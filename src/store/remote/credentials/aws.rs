//! Credentials and settings of S3. Credentials are taken from the first of these that has some:
//!
//! ```text
//! --anonymous, --profile     options
//! AWS_ACCESS_KEY_ID ...      variables; AWS_SKIP_SIGNATURE and AWS_NO_SIGN_REQUEST: anonymous
//! AWS_PROFILE or default     profile: role with web identity, keys, credential_process
//! AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN
//! AWS_CONTAINER_CREDENTIALS_RELATIVE_URI (ECS), _FULL_URI with _AUTHORIZATION_TOKEN_FILE (EKS)
//! metadata of the instance   (EC2), asked once, unless AWS_EC2_METADATA_DISABLED
//! none                       anonymous
//! ```

use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use object_store::client::HttpConnector;

use crate::store::remote::credentials::access::{Access, Reissued};
use crate::store::remote::credentials::aws_profile::{Profile, ProfileKeys, WebIdentity};
use crate::store::remote::credentials::aws_settings::{
    AwsSettings, BucketPlace, endpoint_of_region,
};
use crate::store::remote::credentials::cloud_options::CloudOptions;
use crate::store::remote::credentials::configured::{Configured, no_retries};
use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::credential_process::process_credentials;
use crate::store::remote::credentials::endpoint::Endpoint;
use crate::store::remote::credentials::environment::Environment;
use crate::store::remote::credentials::instance;
use crate::store::remote::credentials::static_credentials::{StaticCredentials, aws_credential};

/// The addresses of containers' own servers, beside loopback, that may be asked by HTTP.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

const TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";

const NOTHING_FOUND: &str = "anonymous: no credentials found in AWS_* variables, in a profile of \
                             ~/.aws, or from a metadata server";

/// A client of S3 that only needs its region.
#[derive(Debug)]
pub(crate) struct ConfiguredS3 {
    /// The client, without a region.
    client: Configured<AmazonS3Builder>,
    /// The bucket.
    bucket: String,
    settings: AwsSettings,
}

impl ConfiguredS3 {
    /// The region; `None` if S3 has to be asked for it.
    pub(crate) fn region(&self) -> Option<&str> {
        self.settings.region.as_deref()
    }

    /// The server, by which its objects are distinguished from those of other servers: the one that is configured, or
    /// AWS. Names of buckets are unique in AWS, but for its own servers in China and those for governments.
    pub(crate) fn endpoint(&self) -> String {
        if let Some(endpoint) = &self.settings.endpoint {
            return format!("s3 {endpoint}");
        }
        let region = self.region().unwrap_or_default();
        let of_its_own = ["cn-", "us-gov-", "us-iso", "eu-isoe-"];
        let part = of_its_own.iter().find(|start| region.starts_with(**start));
        format!("s3 aws {}", part.unwrap_or(&""))
    }

    /// The client for a bucket in `region`.
    pub(crate) fn in_region(self, region: &str) -> Configured<AmazonS3Builder> {
        let place = self.settings.bucket_place;
        let endpoint = self.settings.endpoint.or_else(|| {
            let endpoint = endpoint_of_region(region)?;
            Some(match place {
                BucketPlace::Host => endpoint.with_bucket(&self.bucket),
                BucketPlace::Path => endpoint,
            })
        });
        self.client.map(|builder| {
            let builder = builder
                .with_region(region)
                .with_virtual_hosted_style_request(place == BucketPlace::Host);
            match endpoint {
                Some(endpoint) => builder
                    .with_allow_http(endpoint.is_http())
                    .with_endpoint(endpoint.to_string()),
                None => builder,
            }
        })
    }
}

/// A client of S3 for `options`, and a description of its credentials. Sends requests only to the
/// instance's metadata server, for at most a second, and only if no credentials are configured.
///
/// # Errors
/// [`CredentialError`] for configuration that is wrong, or that cannot be used.
pub(crate) async fn configure<C: HttpConnector + Clone>(
    options: &CloudOptions,
    env: &Environment,
    connector: C,
) -> Result<ConfiguredS3, CredentialError> {
    options.check_bucket()?;
    let profile = Profile::load(options.profile.as_deref(), env)?;
    let settings = AwsSettings::new(options, env, profile.as_ref())?;
    let pays = env.get("AWS_REQUEST_PAYER");
    let pays = pays.is_some_and(|pays| pays.eq_ignore_ascii_case("requester"));
    let builder = AmazonS3Builder::new()
        .with_bucket_name(&options.bucket)
        .with_request_payer(options.requester_pays || pays)
        .with_retry(no_retries())
        .with_http_connector(connector);
    let client = match configured(&builder, options, env, profile.as_ref())? {
        Some(client) => client,
        None => of_instance(builder, options, env).await?,
    };
    Ok(ConfiguredS3 {
        client,
        bucket: options.bucket.clone(),
        settings,
    })
}

/// The client with credentials that are configured; `None` if none are.
fn configured(
    builder: &AmazonS3Builder,
    options: &CloudOptions,
    env: &Environment,
    profile: Option<&Profile>,
) -> Result<Option<Configured<AmazonS3Builder>>, CredentialError> {
    let builder = builder.clone();
    if options.anonymous {
        return Ok(Some(anonymous(builder, "anonymous, as --anonymous says")));
    }
    if options.profile.is_none() {
        for name in ["AWS_SKIP_SIGNATURE", "AWS_NO_SIGN_REQUEST"] {
            if env.flag(name)? == Some(true) {
                let message = "anonymous, as AWS_SKIP_SIGNATURE or AWS_NO_SIGN_REQUEST says";
                return Ok(Some(anonymous(builder, message)));
            }
        }
        if let Some(keys) = keys_of_variables(env)? {
            let from = "the variable AWS_ACCESS_KEY_ID";
            return Ok(Some(with_keys(builder, keys, from)));
        }
    }
    if let Some(profile) = profile
        && let Some(keys) = profile.keys()?
    {
        let from = format!("the profile {}", profile.name());
        return Ok(Some(match keys {
            ProfileKeys::Keys(keys) => with_keys(builder, keys, &from),
            ProfileKeys::Program(program) => {
                let keys = Arc::new(process_credentials(program));
                let access = Access::Renewed(keys.refusals());
                let message = format!("keys of the program (credential_process) of {from}");
                Configured::new(builder.with_credentials(keys), access, message)
            }
            ProfileKeys::WebIdentity(identity) => with_identity(builder, identity, env, &from)?,
        }));
    }
    if let Some(token_file) = env.get(TOKEN_FILE) {
        let problem = "AWS_ROLE_ARN has to be set with it";
        let missing = || CredentialError::setting(TOKEN_FILE, problem);
        let identity = WebIdentity {
            token_file,
            role_arn: env.get("AWS_ROLE_ARN").ok_or_else(missing)?,
            session_name: env.get("AWS_ROLE_SESSION_NAME"),
        };
        return with_identity(builder, identity, env, TOKEN_FILE).map(Some);
    }
    with_container(builder, env)
}

fn anonymous(builder: AmazonS3Builder, message: &str) -> Configured<AmazonS3Builder> {
    Configured::new(
        builder.with_skip_signature(true),
        Access::Anonymous,
        message,
    )
}

fn with_keys(
    builder: AmazonS3Builder,
    keys: AwsCredential,
    from: &str,
) -> Configured<AmazonS3Builder> {
    let builder = builder.with_credentials(Arc::new(StaticCredentials::new(keys)));
    Configured::new(builder, Access::Fixed, format!("keys of {from}"))
}

fn with_identity(
    builder: AmazonS3Builder,
    identity: WebIdentity,
    env: &Environment,
    from: &str,
) -> Result<Configured<AmazonS3Builder>, CredentialError> {
    use AmazonS3ConfigKey as Key;
    let mut builder = builder
        .with_config(Key::WebIdentityTokenFile, identity.token_file)
        .with_config(Key::RoleArn, identity.role_arn);
    if let Some(name) = identity.session_name {
        builder = builder.with_config(Key::RoleSessionName, name);
    }
    if let Some(endpoint) = Endpoint::given(None, env, &["AWS_ENDPOINT_URL_STS"])? {
        endpoint.check_private("a web identity")?;
        builder = builder.with_config(Key::StsEndpoint, endpoint.to_string());
    }
    let message = format!("web identity of {from}");
    Ok(Configured::new(builder, Access::Library, message))
}

/// The client with the role of this instance, or without credentials if it has no role.
async fn of_instance(
    builder: AmazonS3Builder,
    options: &CloudOptions,
    env: &Environment,
) -> Result<Configured<AmazonS3Builder>, CredentialError> {
    if env.flag("AWS_EC2_METADATA_DISABLED")? != Some(true) {
        let library = builder
            .clone()
            .with_metadata_endpoint(instance_endpoint(env)?);
        let provider =
            Reissued::new(move || Ok(Arc::clone(library.clone().build()?.credentials())));
        if instance::answers(&provider).await {
            let access = provider.access();
            let builder = builder.with_credentials(Arc::new(provider));
            let message = "the role of this instance (EC2)";
            return Ok(Configured::new(builder, access, message));
        }
    }
    // A profile that was named on the command line must have credentials.
    if options.profile.is_some() {
        let problem = "this profile has no credentials; for a public bucket, give --anonymous also";
        return Err(CredentialError::setting("--profile", problem));
    }
    Ok(anonymous(builder, NOTHING_FOUND))
}

/// The keys in variables; `None` if there are none.
fn keys_of_variables(env: &Environment) -> Result<Option<AwsCredential>, CredentialError> {
    const ID: &str = "AWS_ACCESS_KEY_ID";
    const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
    const TOKEN: &str = "AWS_SESSION_TOKEN";
    let (id, secret) = match (env.get(ID), env.get(SECRET)) {
        (None, None) => return Ok(None),
        (Some(id), Some(secret)) => (id, secret),
        (Some(_), None) => {
            let problem = "AWS_SECRET_ACCESS_KEY has to be set with it";
            return Err(CredentialError::setting(ID, problem));
        }
        (None, Some(_)) => {
            let problem = "AWS_ACCESS_KEY_ID has to be set with it";
            return Err(CredentialError::setting(SECRET, problem));
        }
    };
    // The token of the process belongs to its keys, and not to those of a file.
    let is_of_others = env.is_in_file(ID) && !env.is_in_file(TOKEN);
    let token = env.get(TOKEN).filter(|_| !is_of_others);
    let keys = aws_credential(&id, &secret, token.as_deref());
    let problem = "this, the secret or the token has characters that no key has";
    keys.ok_or_else(|| CredentialError::setting(ID, problem))
        .map(Some)
}

/// The client with the role that the server of a container gives, whose address is in variables.
fn with_container(
    builder: AmazonS3Builder,
    env: &Environment,
) -> Result<Option<Configured<AmazonS3Builder>>, CredentialError> {
    use AmazonS3ConfigKey as Key;
    const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    if let Some(uri) = env.get(RELATIVE) {
        // Otherwise it could be another host.
        let is_path = uri.starts_with('/') && uri.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_path {
            let problem = "expected a path that begins with `/`";
            return Err(CredentialError::setting(RELATIVE, problem));
        }
        let builder = builder.with_config(Key::ContainerCredentialsRelativeUri, uri);
        let message = "the role of this container (ECS)";
        return Ok(Some(Configured::new(builder, Access::Library, message)));
    }
    let Some(uri) = env.get(FULL) else {
        return Ok(None);
    };
    let endpoint = Endpoint::parse(FULL, &uri)?;
    let address = endpoint.address().map(|address| address.to_string());
    let is_container = address.is_some_and(|address| CONTAINER_HOSTS.contains(&&*address));
    if endpoint.is_overheard() && !is_container {
        let problem = "expected an https:// URL, or an address of this machine or container";
        return Err(CredentialError::setting(FULL, problem));
    }
    let token_file = env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    let Some(token_file) = token_file else {
        let problem = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE has to be set with it; other \
                       containers are not supported: make a profile that has `credential_process = \
                       aws configure export-credentials --format process`, and name it by --profile";
        return Err(CredentialError::setting(FULL, problem));
    };
    let builder = builder
        .with_config(Key::ContainerCredentialsFullUri, uri)
        .with_config(Key::ContainerAuthorizationTokenFile, token_file);
    let message = "the role of this container (EKS)";
    Ok(Some(Configured::new(builder, Access::Library, message)))
}

fn instance_endpoint(env: &Environment) -> Result<String, CredentialError> {
    let variables = ["AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_METADATA_ENDPOINT"];
    if let Some(endpoint) = Endpoint::given(None, env, &variables)? {
        return Ok(endpoint.to_string());
    }
    let mode = env.get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    let is_v6 = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6"));
    let address = if is_v6 {
        "http://[fd00:ec2::254]"
    } else {
        "http://169.254.169.254"
    };
    Ok(address.to_owned())
}

#[cfg(test)]
mod tests;
