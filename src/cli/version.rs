//! `--version`, with further facts that distinguish builds after `-v`.

use crate::escape::Text;
use crate::{codec, fuse};

/// The version of the program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Features that the program was built with beside the defaults, and default features that it
/// lacks.
const FEATURES: [(&str, bool); 3] = [
    ("remote", cfg!(feature = "remote")),
    ("pcodec", cfg!(feature = "pcodec")),
    ("serve", cfg!(feature = "serve")),
];

/// One line, or all that is known about this build.
pub(super) fn version(is_verbose: bool) -> Text {
    let text = Text::new().line(format_args!("zarr-mount {VERSION}"));
    if !is_verbose {
        return text;
    }
    let features = FEATURES.iter().map(|(name, is_there)| {
        let sign = if *is_there { '+' } else { '-' };
        format!("{sign}{name}")
    });
    let features: Vec<_> = features.collect();
    let (major, minor) = fuse::PROTOCOL;
    let text = text
        .line(format_args!("features: {}", features.join(" ")))
        .line(format_args!("FUSE protocol: {major}.{minor} or older"))
        .line("libraries of codecs:");
    codec::libraries().iter().fold(text, |text, library| {
        let codecs = library.codecs.join(", ");
        text.line(format_args!(
            "  {} {}: {codecs}",
            library.name, library.version
        ))
    })
}
