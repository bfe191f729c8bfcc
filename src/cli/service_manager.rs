//! The service manager, which may have started the program.

use sd_notify::NotifyState;

/// Tells the service manager, if it has started the program as a service of the type `notify`.
pub(super) fn tell_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        log::warn!("the service manager could not be notified: {error}");
    }
}
