//! Serves the files of a view over HTTP/1.1, without a mount.
//!
//! A request passes these files in turn:
//!
//! * `server`, `connection`, `tls`: the threads, the sockets, and the bounds of what a client may take;
//! * `host`, `token`, `session`, `door`, `origin`, `cors`: whether the client may ask at all;
//! * `path`: the names in a URL;
//! * `routes`: which of the following answers; `served`: what they share; `found`, `opened`: what is at a path;
//! * `file`, with `conditions`, `range`, `parts`, `content_type`, `gzip` and `pieces`: the bytes of a file;
//! * `directory`, `stream`: the names in a directory; `pages`: the same for people;
//! * `webdav`, `properties`: the same for file managers;
//! * `metrics`: counters;
//! * `answer`, `body`: a response with the headers that all have; `error`: the status for an error of the view.
//!
//! All other layers are synchronous, and so is the view. A request for names or attributes is a job of the view's pool of
//! threads (`pool`), and a read calls back when its bytes have come, so that no thread of the server ever waits for a
//! store. Nothing that a client sends is a name on a disk: names are looked up in the view, one after the other.

mod answer;
mod body;
mod conditions;
mod connection;
mod content_type;
mod cors;
mod counters;
mod directory;
mod door;
mod error;
mod file;
mod found;
mod gzip;
mod host;
mod metrics;
mod opened;
mod origin;
mod pages;
mod parts;
mod path;
mod pieces;
mod pool;
mod properties;
mod range;
mod routes;
mod sending;
mod served;
mod server;
mod session;
mod stream;
mod tls;
mod token;
mod webdav;

pub use connection::Bounds;
pub use host::Hosts;
pub use origin::Origin;
pub use server::{ServeError, Server, ServerOptions};
pub use tls::{Tls, TlsError};
pub use token::{Token, TokenError};

#[cfg(test)]
mod tests;
