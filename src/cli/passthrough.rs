//! The value of `--passthrough`.

/// Whether the kernel reads plain files of the store by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passthrough {
    /// With `--immutable` only, where no file changes under a reader.
    Auto,
    /// Also where files may change. This suits writers that replace files, as all Zarr libraries
    /// do, and not those that write into them.
    Always,
    /// Never.
    Never,
}
