//! The built-in `demo:` store.
