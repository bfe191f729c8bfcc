//! The options for reaching remote stores.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::kept::DiskCacheOptions;

/// How a remote store is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Whether no credentials are looked for (`--anonymous`).
    pub anonymous: bool,
    /// The region of the bucket (`--region`).
    pub region: Option<String>,
    /// The URL of the server, if it is not the provider's own (`--endpoint`).
    pub endpoint: Option<String>,
    /// The profile of AWS's configuration files (`--profile`).
    pub profile: Option<String>,
    /// Whether the caller pays for requests (`--requester-pays`).
    pub requester_pays: bool,
    /// Headers for a web server (`--header`).
    pub headers: Vec<HeaderOption>,
    /// Certificates that are trusted beside those of the system (`--ca-file`).
    pub ca_file: Option<PathBuf>,
    /// Most requests in flight (`--requests`), if the memory budget is large enough.
    pub requests: usize,
    /// Whether 403 counts as absence (`--absent-403`).
    pub absent_403: bool,
    /// A file of environment variables (`--env-file`).
    pub env_file: Option<PathBuf>,
    /// How long a request may take with its repetitions (`--timeout`).
    pub timeout: Duration,
    /// The memory budget of the mount, of which answers in flight take a part.
    pub budget_bytes: u64,
    /// The longest object that is read whole if the server cannot send parts (`--max-chunk`).
    pub most_whole_bytes: u64,
    /// How long answers of the server are trusted; `None` if the store never changes.
    pub time_to_live: Option<Duration>,
    /// The cache on disk (`--disk-cache`).
    pub disk_cache: Option<DiskCacheOptions>,
    /// Which private addresses the name of a web server may stand for.
    pub private_addresses: PrivateAddresses,
}

/// The private addresses, such as those of this machine and its network, that a name may stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// Any: the user has named the server.
    All,
    /// These alone: the name comes from elsewhere.
    Only(Vec<IpAddr>),
}

/// The most requests in flight, unless `--requests` is given.
pub const DEFAULT_REQUESTS: usize = 256;

impl Default for RemoteOptions {
    fn default() -> RemoteOptions {
        RemoteOptions {
            anonymous: false,
            region: None,
            endpoint: None,
            profile: None,
            requester_pays: false,
            headers: Vec::new(),
            ca_file: None,
            requests: DEFAULT_REQUESTS,
            absent_403: false,
            env_file: None,
            timeout: Duration::from_secs(30),
            budget_bytes: 256 << 20,
            most_whole_bytes: 1 << 30,
            time_to_live: Some(Duration::from_secs(60)),
            disk_cache: None,
            private_addresses: PrivateAddresses::All,
        }
    }
}

/// One request may be in flight for each this many bytes of the memory budget.
const BUDGET_OF_REQUEST_BYTES: u64 = 256 << 10;

/// This many requests may be in flight with any memory budget.
const LEAST_MOST_REQUESTS: usize = 16;

impl RemoteOptions {
    /// Whether no request is sent.
    pub(in crate::store) fn is_offline(&self) -> bool {
        self.disk_cache
            .as_ref()
            .is_some_and(|cache| cache.is_offline)
    }

    /// The most requests in flight, and idle connections. Each connection reads into up to 400 KiB of
    /// memory beside the budget, so there are fewer where the budget is small.
    pub(in crate::store) fn most_requests(&self) -> usize {
        let by_budget = usize::try_from(self.budget_bytes / BUDGET_OF_REQUEST_BYTES);
        let most = by_budget.unwrap_or(usize::MAX).max(LEAST_MOST_REQUESTS);
        self.requests.min(most)
    }
}

/// A header of each request to a web server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderOption {
    /// `NAME: VALUE`
    Value(String, String),
    /// `NAME: @FILE`
    File(String, PathBuf),
}

/// Headers whose values are not secret, so that they may be seen in the list of processes.
const PUBLIC_HEADERS: [&str; 6] = [
    "accept",
    "accept-language",
    "origin",
    "referer",
    "user-agent",
    "x-requested-with",
];

impl std::str::FromStr for HeaderOption {
    type Err = String;

    /// Parses `NAME: VALUE` or `NAME: @FILE`. The message does not have the value.
    fn from_str(text: &str) -> Result<HeaderOption, String> {
        let expected = || "expected 'NAME: VALUE' or 'NAME: @FILE'".to_owned();
        let (name, value) = text.split_once(':').ok_or_else(expected)?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_token) {
            return Err(expected());
        }
        if let Some(path) = value.strip_prefix('@') {
            return Ok(HeaderOption::File(name, PathBuf::from(path)));
        }
        if !PUBLIC_HEADERS.contains(&&*name) {
            return Err(format!(
                "the value of {name} may be a secret, which other users would see in the list of \
                 processes: put it into a file, and give '{name}: @FILE'"
            ));
        }
        Ok(HeaderOption::Value(name, value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_budget_allows_few_requests() {
        for (requests, budget_bytes, most) in [
            (256, 64 << 20, 256),
            (256, 16 << 20, 64),
            (256, 0, 16),
            (8, 0, 8),
            (1024, u64::MAX, 1024),
        ] {
            let options = RemoteOptions {
                requests,
                budget_bytes,
                ..RemoteOptions::default()
            };
            assert_eq!(options.most_requests(), most, "{requests}, {budget_bytes}");
        }
    }

    #[test]
    fn secrets_are_taken_from_files_alone() {
        let parse = |text: &str| text.parse::<HeaderOption>();
        assert_eq!(
            parse("Referer: https://h/").unwrap(),
            HeaderOption::Value("referer".to_owned(), "https://h/".to_owned())
        );
        assert_eq!(
            parse("Authorization: @/run/secret").unwrap(),
            HeaderOption::File("authorization".to_owned(), "/run/secret".into())
        );
        for text in ["Authorization: Bearer hunter2", "X-Api-Key: hunter2"] {
            let message = parse(text).unwrap_err();
            assert!(
                message.contains("@FILE") && !message.contains("hunter2"),
                "{message}"
            );
        }
        assert!(parse("no colon").is_err() && parse(": x").is_err());
    }
}
