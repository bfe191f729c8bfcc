//! A client of a cloud with its credentials.

use std::fmt;

use object_store::RetryConfig;

use crate::store::remote::credentials::access::Access;

/// A client that only needs to be built, perhaps with further settings.
pub(crate) struct Configured<B> {
    /// The client.
    pub(crate) builder: B,
    /// How its requests prove who asks.
    pub(crate) access: Access,
    /// Which credentials are used, as a message.
    pub(crate) credentials: String,
}

impl<B> Configured<B> {
    /// The client of `builder`.
    pub(crate) fn new(builder: B, access: Access, credentials: impl Into<String>) -> Configured<B> {
        Configured {
            builder,
            access,
            credentials: credentials.into(),
        }
    }

    /// The same access and credentials with the client that `change` makes of this one.
    pub(crate) fn map<C>(self, change: impl FnOnce(B) -> C) -> Configured<C> {
        Configured {
            builder: change(self.builder),
            access: self.access,
            credentials: self.credentials,
        }
    }
}

impl<B> fmt::Debug for Configured<B> {
    /// Leaves the client out, which would show secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configured")
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

/// The client library repeats no request: that is done where all requests are sent.
pub(crate) fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    }
}
