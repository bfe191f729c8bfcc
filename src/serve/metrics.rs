//! `/metrics`: the counters of the view and of the server, in the text of `OpenMetrics`.

use std::fmt::Write;

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};

use super::answer::{self, Answer};
use super::body::Body;
use super::counters::HttpCounters;
use super::served::Served;

/// The path of the metrics. A directory of this name is at the same path with a slash behind it.
pub(super) const PATH: &str = "/metrics";

/// The last line of the text.
const END: &str = "# EOF\n";

/// The metrics of now.
pub(super) fn answer(served: &Served) -> Answer {
    let text = text(&served.view.metrics(), &served.counters);
    let mut answer = answer::with(StatusCode::OK, Body::Whole(text.into()));
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    answer::set(&mut answer, CONTENT_TYPE, kind);
    answer::set(&mut answer, CACHE_CONTROL, "no-store");
    answer
}

/// The metrics of a view, and after them those of the server.
fn text(view: &[u8], counters: &HttpCounters) -> String {
    let mut text = String::from_utf8_lossy(view).into_owned();
    if text.ends_with(END) {
        text.truncate(text.len() - END.len());
    }
    text.push_str(
        "# TYPE zarr_mount_http_responses counter\n\
         # HELP zarr_mount_http_responses Responses of the server, by the class of their status.\n",
    );
    for (class, counter) in (1..).zip(&counters.responses) {
        let n = counter.get();
        // Writing to a string never fails.
        let _ = writeln!(
            text,
            "zarr_mount_http_responses_total{{class=\"{class}xx\"}} {n}"
        );
    }
    let _ = write!(
        text,
        "# TYPE zarr_mount_http_sent_bytes counter\n\
         # UNIT zarr_mount_http_sent_bytes bytes\n\
         # HELP zarr_mount_http_sent_bytes Bytes of files that the server has sent.\n\
         zarr_mount_http_sent_bytes_total {}\n\
         # TYPE zarr_mount_http_refused_connections counter\n\
         # HELP zarr_mount_http_refused_connections Connections that were refused, because there were too many.\n\
         zarr_mount_http_refused_connections_total {}\n\
         # TYPE zarr_mount_http_connections gauge\n\
         # HELP zarr_mount_http_connections Connections that are open.\n\
         zarr_mount_http_connections {}\n{END}",
        counters.sent_bytes.get(),
        counters.refused.get(),
        counters.n_open(),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_one_end() {
        let counters = HttpCounters::default();
        counters.add(StatusCode::NOT_FOUND);
        counters.sent_bytes.add(7);
        let text = text(b"zarr_mount_reads_total 1\n# EOF\n", &counters);
        assert!(text.starts_with("zarr_mount_reads_total 1\n# TYPE"));
        assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
        assert!(text.contains("zarr_mount_http_responses_total{class=\"4xx\"} 1\n"));
        assert!(text.contains("zarr_mount_http_sent_bytes_total 7\n"));
    }
}
