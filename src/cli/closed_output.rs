//! Whether the program was started with its standard output closed (`>&-`).
//!
//! The runtime of Rust opens /dev/null in the place of a closed standard output, before `main`. Everything that is
//! written would be lost without an error. So a closed standard output is noticed earlier, when the program is loaded.

#![expect(unsafe_code, reason = "code that runs before main has no safe form")]

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, fcntl_getfd};
use rustix::stdio::stdout;

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: The loader calls the functions in this section of the program, without arguments that they must take. The
// function asks the kernel for the flags of a descriptor and writes an atomic variable; it uses nothing that the
// runtime prepares.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let flags = fcntl_getfd(stdout());
    IS_CLOSED.store(flags == Err(Errno::BADF), Ordering::Relaxed);
}

/// Whether standard output was closed when the program was loaded.
pub(super) fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}
