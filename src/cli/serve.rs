//! `--serve ADDRESS STORE [PATH]`: what a mount would show, over HTTP.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::config::{ServeConfig, ShownConfig, Talk, ViewOptions};
use super::error::CliError;
use super::export::{name_of, view_of};
use super::output::{Output, print_warnings};
use super::service_manager::tell_manager;
use super::store::useless_options;
use super::{allocator, daemon};
use crate::escape::Text;
use crate::fresh::Freshness;
use crate::serve::{Bounds, Hosts, Server, ServerOptions, Tls, Token};
use crate::view::VnodeKind;

/// How long clients may take for the answers that they have begun to read when the server ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// The clients that may come before one of them is accepted. The system may allow fewer (`net.core.somaxconn`).
const MOST_WAITING_CLIENTS: i32 = 4096;

/// The least and the most memory for bytes that clients have not taken yet.
const LEAST_WAITING_BYTES: u64 = 4 << 20;
const MOST_WAITING_BYTES: u64 = 64 << 20;

/// Serves the store until a signal comes.
pub(super) fn serve(config: &ShownConfig, serve: &ServeConfig) -> Result<(), CliError> {
    daemon::raise_descriptor_limit();
    allocator::limit_heaps();
    let token = token(serve)?;
    let tls = tls(serve)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let listener = bind(serve)?;
    let address = listener.local_addr().map_err(CliError::failed)?;
    let mut signals = signals().map_err(CliError::failed)?;
    let budget = config.view.cache_budget_bytes;
    let waiting = (budget / 8).clamp(LEAST_WAITING_BYTES, MOST_WAITING_BYTES);
    let view = view_of(&ShownConfig {
        view: ViewOptions {
            cache_budget_bytes: budget.saturating_sub(waiting).max(budget / 2),
            ..config.view.clone()
        },
        ..config.clone()
    })?;
    print_warnings(useless_options(&view, &config.store));
    let root = config.path.as_bytes();
    let problem = match view.find_path(root).map_err(CliError::failed)? {
        Some(found) if found.kind() == VnodeKind::Directory => None,
        Some(_) => Some("this is a file; --serve shows a directory of a view"),
        None => Some("no such file or directory in this view"),
    };
    if let Some(problem) = problem {
        let (path, store) = (config.path.display(), name_of(config));
        return Err(CliError::Failed(format!("{path} of {store}: {problem}")));
    }
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    let options = ServerOptions {
        store: name_of(config).to_string(),
        root: root.to_vec(),
        hosts: Hosts::new(address, &machine, &serve.hosts),
        token: token.clone(),
        origins: serve.origins.clone(),
        file_time: match config.view.freshness {
            Freshness::Immutable => Duration::MAX,
            Freshness::Checked(time) => time,
        },
        memory_bytes: waiting,
        tls,
        bounds: Bounds::default(),
    };
    let server = Server::start(Arc::clone(&view), listener, options).map_err(CliError::failed)?;
    if serve.talk == Talk::Usual {
        let host = serve.hosts.first().map_or(&*machine, String::as_str);
        let url = format!("{scheme}://{}", shown_address(address, host));
        tell(config, serve, &server, &token, &url)?;
    }
    tell_manager(NotifyState::Ready);
    signals.forever().next();
    tell_manager(NotifyState::Stopping);
    server.end(PATIENCE);
    if !view.threads().finish(PATIENCE) {
        log::warn!("the store has not answered yet; its pending requests are given up");
    }
    Ok(())
}

/// The signals that end the server. The second one ends the program at once.
fn signals() -> std::io::Result<Signals> {
    let is_ending = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 1, Arc::clone(&is_ending))?;
        flag::register(signal, Arc::clone(&is_ending))?;
    }
    Signals::new([SIGINT, SIGTERM])
}

fn token(serve: &ServeConfig) -> Result<Token, CliError> {
    match &serve.token_file {
        None if serve.talk == Talk::Quiet => Err(CliError::Usage(
            "--quiet prints no token, so that --token-file has to name one".to_owned(),
        )),
        None => Token::new().map_err(CliError::failed),
        Some(path) => Token::read(path)
            .map_err(|error| CliError::Failed(format!("--token-file {}: {error}", path.display()))),
    }
}

fn tls(serve: &ServeConfig) -> Result<Option<Tls>, CliError> {
    let Some((certificate, key)) = &serve.tls else {
        return Ok(None);
    };
    let read = Tls::read(certificate, key);
    read.map(Some)
        .map_err(|error| CliError::Failed(format!("--tls-cert, --tls-key: {error}")))
}

/// A socket at the address, if clients may be served there.
fn bind(serve: &ServeConfig) -> Result<TcpListener, CliError> {
    let typed = &serve.address;
    let failed =
        |error: &dyn std::fmt::Display| CliError::Failed(format!("--serve {typed}: {error}"));
    let addresses = resolve(typed).ok_or_else(|| {
        failed(&"expected a port, or an address and a port, such as 127.0.0.1:8080")
    })?;
    let mut problem = None;
    for address in addresses {
        if !address.ip().is_loopback() && !serve.is_insecure && serve.tls.is_none() {
            return Err(failed(
                &"other machines reach this address, and anyone who can read the network traffic would see the token and \
                  the data; --tls-cert and --tls-key encrypt it, and --insecure allows it",
            ));
        }
        match listen(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => problem = Some(error),
        }
    }
    Err(problem.map_or_else(|| failed(&"no such address"), |error| failed(&error)))
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    // The standard library has room for 128 connections that come at once. The kernel drops the packets of further
    // clients, which repeat them after ever longer pauses, some of a minute.
    rustix::net::listen(&listener, MOST_WAITING_CLIENTS)?;
    Ok(listener)
}

/// The addresses that `typed` stands for. A port alone is one that only this machine reaches.
fn resolve(typed: &str) -> Option<Vec<SocketAddr>> {
    if let Ok(port) = typed.parse::<u16>() {
        return Some(vec![SocketAddr::from(([127, 0, 0, 1], port))]);
    }
    Some(typed.to_socket_addrs().ok()?.collect())
}

/// The part of a URL that names this server: its address, or `host` where it has many.
fn shown_address(address: SocketAddr, host: &str) -> String {
    if address.ip().is_unspecified() {
        format!("{host}:{}", address.port())
    } else {
        address.to_string()
    }
}

/// Prints where the server is and how to get in. This goes to standard output alone: no log gets it.
fn tell(
    config: &ShownConfig,
    serve: &ServeConfig,
    server: &Server,
    token: &Token,
    url: &str,
) -> Result<(), CliError> {
    let link = server.link().unwrap_or_default();
    let mut text = Text::new().line(format_args!(
        "{} at {url}/ until Ctrl-C; a browser gets in by this link, once: {url}{link}",
        name_of(config)
    ));
    if serve.token_file.is_none() {
        text = text.line(format_args!(
            "token for other programs, as the password of any user or as a bearer: {}",
            token.reveal()
        ));
    }
    Output::standard().print(&text).map_err(CliError::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_for_this_machine() {
        for (typed, expected) in [
            ("8080", Some("127.0.0.1:8080")),
            ("127.0.0.1:0", Some("127.0.0.1:0")),
            ("[::1]:80", Some("[::1]:80")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("127.0.0.1", None),
            ("", None),
            ("65536", None),
            (":80:", None),
        ] {
            let found = resolve(typed).map(|found| found.iter().map(ToString::to_string).collect());
            assert_eq!(
                found,
                expected.map(|expected| vec![expected.to_owned()]),
                "{typed}"
            );
        }
    }

    #[test]
    fn an_address_in_a_link_can_be_opened() {
        for (address, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("0.0.0.0:80", "node:80"),
            ("[::]:80", "node:80"),
        ] {
            assert_eq!(shown_address(address.parse().unwrap(), "node"), expected);
        }
    }
}
