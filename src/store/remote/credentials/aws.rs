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

use std::fmt;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use object_store::client::HttpConnector;

use crate::store::remote::credentials::access::Access;
use crate::store::remote::credentials::aws_profile::{Profile, ProfileKeys, WebIdentity};
use crate::store::remote::credentials::aws_settings::{
    AwsSettings, BucketPlace, endpoint_of_region,
};
use crate::store::remote::credentials::cloud_options::CloudOptions;
use crate::store::remote::credentials::command::Program;
use crate::store::remote::credentials::credential_error::CredentialError;
use crate::store::remote::credentials::credential_process::process_credentials;
use crate::store::remote::credentials::endpoint::Endpoint;
use crate::store::remote::credentials::environment::Environment;
use crate::store::remote::credentials::instance;
use crate::store::remote::credentials::static_credentials::{StaticCredentials, aws_credential};

/// The addresses of containers' own servers, beside loopback, that may be asked by HTTP.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

const NOTHING_FOUND: &str = "anonymous: no credentials found in AWS_* variables, in a profile of \
                             ~/.aws, or from a metadata server";

/// A client of S3 that only needs its region.
pub(crate) struct ConfiguredS3 {
    /// The client, without a region.
    builder: AmazonS3Builder,
    /// The bucket.
    bucket: String,
    settings: AwsSettings,
    /// Which credentials are used, as a message.
    pub(crate) credentials: String,
    /// How its requests prove who asks.
    pub(crate) access: Access,
}

impl fmt::Debug for ConfiguredS3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredS3")
            .field("bucket", &self.bucket)
            .field("settings", &self.settings)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

impl ConfiguredS3 {
    /// The region; `None` where S3 has to be asked for it.
    pub(crate) fn region(&self) -> Option<&str> {
        self.settings.region.as_deref()
    }

    /// The server, where it is not one of AWS.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.settings.endpoint.as_ref()
    }

    /// The client for a bucket in `region`.
    pub(crate) fn in_region(self, region: &str) -> AmazonS3Builder {
        let place = self.settings.bucket_place;
        let endpoint = self.settings.endpoint.or_else(|| {
            let endpoint = endpoint_of_region(region)?;
            Some(match place {
                BucketPlace::Host => endpoint.with_bucket(&self.bucket),
                BucketPlace::Path => endpoint,
            })
        });
        let builder = self
            .builder
            .with_region(region)
            .with_virtual_hosted_style_request(place == BucketPlace::Host);
        match endpoint {
            Some(endpoint) => builder
                .with_allow_http(endpoint.is_http())
                .with_endpoint(endpoint.to_string()),
            None => builder,
        }
    }
}

/// Where credentials come from.
enum Source {
    /// There are none, as a message says.
    Anonymous(&'static str),
    /// Keys, and where they are from.
    Keys(AwsCredential, String),
    /// The program of a profile.
    Program(Program, String),
    WebIdentity(WebIdentity, String),
    /// The path at the container's own server.
    RelativeUri(String),
    FullUri {
        uri: String,
        token_file: String,
    },
    /// The instance at this endpoint, if it answers.
    Instance(String),
}

/// A client of S3 for `options`, and what its credentials are. Sends requests to the instance's
/// metadata server alone, for at most a second, and only where nothing else is configured.
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
    let mut source = source(options, env, profile.as_ref())?;
    if let Source::Instance(endpoint) = &source
        && !instance::has_aws_role(&connector, endpoint).await
    {
        source = nothing_found(options)?;
    }
    let builder = AmazonS3Builder::new()
        .with_bucket_name(&options.bucket)
        .with_request_payer(options.requester_pays || pays)
        .with_http_connector(connector);
    let (builder, access, credentials) = with_source(builder, source, env)?;
    Ok(ConfiguredS3 {
        builder,
        bucket: options.bucket.clone(),
        settings,
        credentials,
        access,
    })
}

/// Nothing has credentials. A profile that was named on the command line must have some.
fn nothing_found(options: &CloudOptions) -> Result<Source, CredentialError> {
    if options.profile.is_none() {
        return Ok(Source::Anonymous(NOTHING_FOUND));
    }
    let problem = "this profile has no credentials; for a public bucket, give --anonymous also";
    Err(CredentialError::setting("--profile", problem))
}

/// Where credentials come from, as far as no request has to be sent.
fn source(
    options: &CloudOptions,
    env: &Environment,
    profile: Option<&Profile>,
) -> Result<Source, CredentialError> {
    if options.anonymous {
        return Ok(Source::Anonymous("anonymous, as --anonymous says"));
    }
    if options.profile.is_none() {
        for name in ["AWS_SKIP_SIGNATURE", "AWS_NO_SIGN_REQUEST"] {
            if env.flag(name)? == Some(true) {
                let message = "anonymous, as AWS_SKIP_SIGNATURE or AWS_NO_SIGN_REQUEST says";
                return Ok(Source::Anonymous(message));
            }
        }
        if let Some(keys) = keys_of_variables(env)? {
            return Ok(Source::Keys(
                keys,
                "the variable AWS_ACCESS_KEY_ID".to_owned(),
            ));
        }
    }
    if let Some(profile) = profile {
        let from = format!("the profile {}", profile.name());
        match profile.keys()? {
            Some(ProfileKeys::Keys(keys)) => return Ok(Source::Keys(keys, from)),
            Some(ProfileKeys::Program(program)) => return Ok(Source::Program(program, from)),
            Some(ProfileKeys::WebIdentity(identity)) => {
                return Ok(Source::WebIdentity(identity, from));
            }
            None => {}
        }
    }
    if let Some(token_file) = env.get("AWS_WEB_IDENTITY_TOKEN_FILE") {
        let role_arn = env.get("AWS_ROLE_ARN");
        let problem = "AWS_ROLE_ARN has to be set with it";
        let missing = || CredentialError::setting("AWS_WEB_IDENTITY_TOKEN_FILE", problem);
        let identity = WebIdentity {
            token_file,
            role_arn: role_arn.ok_or_else(missing)?,
            session_name: env.get("AWS_ROLE_SESSION_NAME"),
        };
        let from = "AWS_WEB_IDENTITY_TOKEN_FILE".to_owned();
        return Ok(Source::WebIdentity(identity, from));
    }
    if let Some(container) = container(env)? {
        return Ok(container);
    }
    if env.flag("AWS_EC2_METADATA_DISABLED")? == Some(true) {
        return nothing_found(options);
    }
    instance_endpoint(env).map(Source::Instance)
}

/// The keys in variables; `None` where there is none.
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

/// The server of a container, which variables name.
fn container(env: &Environment) -> Result<Option<Source>, CredentialError> {
    const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    if let Some(uri) = env.get(RELATIVE) {
        // Otherwise it could be another host.
        let is_path = uri.starts_with('/') && uri.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_path {
            let problem = "expected a path that begins with `/`";
            return Err(CredentialError::setting(RELATIVE, problem));
        }
        return Ok(Some(Source::RelativeUri(uri)));
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
    Ok(Some(Source::FullUri { uri, token_file }))
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

type WithSource = (AmazonS3Builder, Access, String);

fn with_source(
    builder: AmazonS3Builder,
    source: Source,
    env: &Environment,
) -> Result<WithSource, CredentialError> {
    use AmazonS3ConfigKey as Key;
    let mut access = Access::Library;
    let (builder, message) = match source {
        Source::Anonymous(message) => {
            access = Access::Anonymous;
            let builder = builder.with_skip_signature(true);
            (builder, message.to_owned())
        }
        Source::Keys(keys, from) => {
            access = Access::Fixed;
            let keys = Arc::new(StaticCredentials::new(keys));
            (builder.with_credentials(keys), format!("keys of {from}"))
        }
        Source::Program(found, from) => {
            let keys = Arc::new(process_credentials(found));
            access = Access::Renewed(keys.refusals());
            let message = format!("keys of the program (credential_process) of {from}");
            (builder.with_credentials(keys), message)
        }
        Source::WebIdentity(identity, from) => {
            let mut builder = builder
                .with_config(Key::WebIdentityTokenFile, identity.token_file)
                .with_config(Key::RoleArn, identity.role_arn);
            if let Some(name) = identity.session_name {
                builder = builder.with_config(Key::RoleSessionName, name);
            }
            if let Some(endpoint) = Endpoint::given(None, env, &["AWS_ENDPOINT_URL_STS"])? {
                builder = builder.with_config(Key::StsEndpoint, endpoint.to_string());
            }
            (builder, format!("web identity of {from}"))
        }
        Source::RelativeUri(uri) => {
            let builder = builder.with_config(Key::ContainerCredentialsRelativeUri, uri);
            (builder, "the role of this container (ECS)".to_owned())
        }
        Source::FullUri { uri, token_file } => {
            let builder = builder
                .with_config(Key::ContainerCredentialsFullUri, uri)
                .with_config(Key::ContainerAuthorizationTokenFile, token_file);
            (builder, "the role of this container (EKS)".to_owned())
        }
        Source::Instance(endpoint) => {
            let builder = builder.with_metadata_endpoint(endpoint);
            (builder, "the role of this instance (EC2)".to_owned())
        }
    };
    Ok((builder, access, message))
}

#[cfg(test)]
mod tests;
