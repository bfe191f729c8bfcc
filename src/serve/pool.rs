//! Work that may wait for the store, on the threads of the view.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::Error;
use crate::threads::Class;
use crate::view::View;

/// The result of `job`, which may wait for the store.
pub(super) async fn on_pool<T: Send + 'static>(
    view: &Arc<View>,
    job: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (sender, receiver) = oneshot::channel();
    // The client may have gone before its turn comes.
    let run = move || {
        if !sender.is_closed() {
            drop(sender.send(job()));
        }
    };
    view.threads().submit(Class::Names, run);
    receiver.await.map_err(|_| Error::GivenUp("a request"))?
}
