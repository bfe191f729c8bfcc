//! Stores for tests, which do something around each request to another store: [`Recording`] says
//! what was asked, [`Slow`] takes as long as a network does, [`Faulty`] fails or hangs.
//!
//! Each is a [`Layer`], and [`wrap`] puts it around a store. What comes out is a store, so that layers
//! lie around layers. They are in tests and debug builds only, where `--inject` puts them around the
//! store that is mounted ([`Injection`]).

mod call;
mod faulty;
mod gate;
mod layer;
mod recording;
mod slow;
mod spec;

pub use call::{Call, Kind};
pub use faulty::{Failure, Fault, Faulty};
pub use gate::Gate;
pub use layer::{Layer, Layered, wrap};
pub use recording::Recording;
pub use slow::Slow;
pub use spec::{Injection, inject};
