//! Tells the program which versions of the crates it is built with (`zarr-mount --version -v`).

use std::{env, fs, path::Path};

/// Crates whose libraries do not say their version themselves.
const CRATES: [&str; 6] = [
    "libbz2-rs-sys",
    "libdeflate-sys",
    "liblzma-sys",
    "pco",
    "snappy_src",
    "zlib-rs",
];

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-changed=build.rs");
    let folder = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    // A crate that is used as a library has no file of its own.
    let lock = fs::read_to_string(Path::new(&folder).join("Cargo.lock")).unwrap_or_default();
    for name in CRATES {
        let begin = format!("name = \"{name}\"\nversion = \"");
        let version = lock
            .split_once(&begin)
            .and_then(|(_, rest)| rest.split('"').next());
        let variable = name.to_uppercase().replace('-', "_");
        println!(
            "cargo::rustc-env=VERSION_OF_{variable}={}",
            version.unwrap_or("unknown")
        );
    }
}
