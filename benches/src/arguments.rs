//! The arguments of the command line.

use std::io;

/// Argument `n` of the program; its name is number 0.
///
/// # Errors
/// When there are fewer.
pub fn argument(n: usize) -> io::Result<String> {
    let found = std::env::args().nth(n);
    found.ok_or_else(|| io::Error::other(format!("argument {n} is missing")))
}

/// Argument `n` of the program, a number.
///
/// # Errors
/// When there are fewer, or it is no number.
pub fn number(n: usize) -> io::Result<usize> {
    argument(n)?.parse().map_err(io::Error::other)
}
