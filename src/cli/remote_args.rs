//! The options of remote stores.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::disk_cache_args::DiskCacheArgs;
use super::error::CliError;
use crate::store::{DEFAULT_REQUESTS, HeaderOption, RemoteOptions};

/// The options of remote stores, as typed.
#[derive(Debug, Clone, Args)]
pub(crate) struct RemoteArgs {
    /// Send requests without credentials, and look for none
    #[arg(long)]
    anonymous: bool,

    /// The region of an S3 bucket [default: `AWS_REGION`, the profile, or the server's answer]
    #[arg(long, value_name = "REGION")]
    region: Option<String>,

    /// The URL of the server of s3://, gs:// and az:// where it is not the provider's own
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,

    /// The profile of ~/.aws/config and ~/.aws/credentials
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// Pay for the requests to a bucket whose owner does not
    #[arg(long)]
    requester_pays: bool,

    /// A header of each request to a web server: 'NAME: @FILE' reads the value from a file; may be
    /// given several times
    #[arg(long, value_name = "NAME: VALUE", action = ArgAction::Append)]
    header: Vec<String>,

    /// Trust the certificates in this PEM file too
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// Most requests in flight to the server, 1 to 1024. There are fewer on a short link, and while it asks for fewer
    #[arg(long, value_name = "N", value_parser = requests, default_value_t = DEFAULT_REQUESTS)]
    requests: usize,

    /// Take 403 for the absence of a chunk: for buckets that hide which objects exist
    #[arg(long = "absent-403")]
    absent_403: bool,

    /// Read environment variables such as `AWS_ACCESS_KEY_ID` from this file, which only its owner
    /// may read; for fstab and autofs
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,

    #[command(flatten)]
    disk_cache: DiskCacheArgs,
}

fn requests(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=1024).contains(n));
    number.ok_or_else(|| "expected a number of requests, 1 to 1024".to_owned())
}

impl RemoteArgs {
    /// Whether no request is to be sent.
    pub(super) fn is_offline(&self) -> bool {
        self.disk_cache.is_offline()
    }

    /// The checked options, for a store that never changes if `is_immutable`. The caller fills in the options of the
    /// mount. Files get absolute paths, because the daemon changes its directory.
    pub(super) fn options(
        self,
        is_immutable: bool,
        absolute: impl Fn(&PathBuf) -> Result<PathBuf, CliError>,
    ) -> Result<RemoteOptions, CliError> {
        let headers = self.header.into_iter().map(|header| {
            // The options' parser would repeat the value, which may be secret.
            let header = header
                .parse()
                .map_err(|problem| CliError::Usage(format!("--header: {problem}")))?;
            Ok(match header {
                HeaderOption::File(name, path) => HeaderOption::File(name, absolute(&path)?),
                value @ HeaderOption::Value(..) => value,
            })
        });
        Ok(RemoteOptions {
            anonymous: self.anonymous,
            region: self.region,
            endpoint: self.endpoint,
            profile: self.profile,
            requester_pays: self.requester_pays,
            headers: headers.collect::<Result<_, CliError>>()?,
            ca_file: self.ca_file.as_ref().map(&absolute).transpose()?,
            requests: self.requests,
            absent_403: self.absent_403,
            env_file: self.env_file.as_ref().map(&absolute).transpose()?,
            disk_cache: self.disk_cache.options(is_immutable, &absolute)?,
            ..RemoteOptions::default()
        })
    }
}
