//! The `zarr-mount` command. Everything it does lives in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    zarr_mount::cli::run(std::env::args_os())
}
