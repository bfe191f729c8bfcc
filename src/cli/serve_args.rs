//! The options of `--serve`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueHint};

use crate::serve::{Hosts, Origin};

/// How a store is served over HTTP, as typed.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// Serve what a mount of STORE would show, or what is below PATH, over HTTP at this address and port, without
    /// mounting, until Ctrl-C: 8080, 127.0.0.1:8080 or `[::1]:8080`; port 0 is any free one. The options that say what
    /// a mount shows apply
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) serve: Option<String>,

    /// With --serve: the token of clients is in this file, which only its owner may read [default: a random token,
    /// which is printed]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// With --serve: clients may call the server by this name, too; may be given several times
    #[arg(long, value_name = "NAME", action = ArgAction::Append, value_parser = Hosts::parse_name)]
    pub(crate) host: Vec<String>,

    /// With --serve: let pages of this site, such as `https://example.org`, read the answers, if they have the token;
    /// may be given several times
    #[arg(long, value_name = "ORIGIN", action = ArgAction::Append, value_parser = Origin::parse)]
    pub(crate) cors: Vec<Origin>,

    /// With --serve: encrypt connections (https) with the certificate in this PEM file, and those that it needs behind
    /// it
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub(crate) tls_cert: Option<PathBuf>,

    /// With --serve: the private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub(crate) tls_key: Option<PathBuf>,

    /// With --serve: serve other machines without encryption: anyone who can read the network traffic sees the token
    /// and the data
    #[arg(long)]
    pub(crate) insecure: bool,
}
