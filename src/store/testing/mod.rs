//! Stores for tests that intercept the requests to another store: [`Recording`] records them,
//! [`Slow`] delays them as a network does, [`Faulty`] makes them fail or hang, [`Flat`] has no
//! directories, as object stores and web servers have none.
//!
//! Each is a [`Layer`], and [`wrap`] puts it around a store. The result is a store, so that layers
//! can be nested. They exist in tests and debug builds only, where `--inject` puts them around the
//! mounted store ([`Injection`]).

mod call;
mod faulty;
mod flat;
mod gate;
mod layer;
mod recording;
mod slow;
mod spec;

pub use call::{Call, CallKind};
pub use faulty::{Failure, Fault, Faulty};
pub use flat::{Flat, Refusal};
pub use gate::Gate;
pub use layer::{Layer, Layered, wrap};
pub use recording::Recording;
pub use slow::Slow;
pub use spec::{Injection, inject};
