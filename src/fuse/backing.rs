//! Files that the kernel has open for passthrough.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use fuser::BackingId;

/// A file that the kernel reads by itself. It is closed when this is dropped.
#[derive(Debug)]
pub(super) enum Backing {
    /// `fuser` opened the file for a request that came through the device.
    OfLibrary(BackingId),
    /// This program opened the file for a request that came through a ring.
    Own(OwnBacking),
}

/// A file that was opened without a reply of `fuser`.
#[derive(Debug)]
pub(super) struct OwnBacking {
    number: u32,
    device: Arc<OwnedFd>,
}

impl OwnBacking {
    /// Makes the kernel behind `device` open `file`.
    ///
    /// # Errors
    /// Those of the kernel.
    pub(super) fn open(device: &Arc<OwnedFd>, file: impl AsFd) -> std::io::Result<OwnBacking> {
        Ok(OwnBacking {
            number: BackingId::create_raw(device, file)?,
            device: Arc::clone(device),
        })
    }

    /// The number by which the kernel knows it.
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for OwnBacking {
    fn drop(&mut self) {
        // FUSE_DEV_IOC_BACKING_CLOSE: `_IOW(229, 2, uint32_t)`.
        const CLOSE: libc::Ioctl = 0x4004_e502;
        // SAFETY: the kernel reads one number of 32 bits.
        #[allow(unsafe_code, reason = "no library has this call")]
        let closed = unsafe { libc::ioctl(self.device.as_raw_fd(), CLOSE, &raw const self.number) };
        if closed != 0 {
            let error = std::io::Error::last_os_error();
            log::debug!("the kernel did not close a file of passthrough: {error}");
        }
    }
}
