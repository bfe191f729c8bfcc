//! The value of `--passthrough`.

/// Whether the kernel reads plain files of the store by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passthrough {
    /// Where nothing can change under a reader: with `--immutable`.
    Auto,
    /// Also where files may change: right for writers that replace files, as all Zarr libraries
    /// do, and wrong for those that write into them.
    Always,
    /// Never.
    Never,
}
