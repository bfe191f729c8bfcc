//! The libraries that do the work of codecs, and their versions.

#![expect(unsafe_code, reason = "two C libraries are asked for their versions")]

use std::ffi::CStr;

/// A library, as it is linked into the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The name of the library or of its crate.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// The codecs that it is for, by their names of Zarr v3.
    pub codecs: &'static [&'static str],
}

/// All libraries of compressors. Other codecs are this program's own, or call small crates (checksums, `base64`).
pub fn libraries() -> Vec<Library> {
    let built = |name, version: &str, codecs| Library {
        name,
        version: version.to_owned(),
        codecs,
    };
    let mut found = vec![
        built("C-Blosc", &blosc_version(), &["blosc"] as &[_]),
        built("libzstd", zstd_safe::version_string(), &["zstd"]),
        built("LZ4", &lz4_version(), &["lz4"]),
        built(
            "libdeflate-sys",
            env!("VERSION_OF_LIBDEFLATE_SYS"),
            &["zlib", "gzip"],
        ),
        built("zlib-rs", env!("VERSION_OF_ZLIB_RS"), &["zlib", "gzip"]),
        built("libbz2-rs-sys", env!("VERSION_OF_LIBBZ2_RS_SYS"), &["bz2"]),
        built("liblzma-sys", env!("VERSION_OF_LIBLZMA_SYS"), &["lzma"]),
        built("snappy_src", env!("VERSION_OF_SNAPPY_SRC"), &["snappy"]),
    ];
    if cfg!(feature = "pcodec") {
        found.push(built("pco", env!("VERSION_OF_PCO"), &["pcodec"]));
    }
    found
}

fn blosc_version() -> String {
    // SAFETY: the function takes nothing and returns a text of the library that is never changed.
    let text = unsafe { CStr::from_ptr(blosc_src::blosc_get_version_string()) };
    text.to_string_lossy().into_owned()
}

fn lz4_version() -> String {
    // SAFETY: the function takes nothing and returns a number.
    let number = unsafe { lz4_sys::LZ4_versionNumber() };
    format!(
        "{}.{}.{}",
        number / 10_000,
        number / 100 % 100,
        number % 100
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_says_its_version() {
        for library in libraries() {
            let numbers: Vec<&str> = library.version.split('.').collect();
            let is_number = |part: &&str| part.chars().next().is_some_and(|c| c.is_ascii_digit());
            assert!(
                numbers.len() >= 3 && numbers.iter().all(is_number),
                "{library:?}"
            );
        }
    }
}
