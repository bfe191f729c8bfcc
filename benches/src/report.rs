//! Results, as one line of JSON on standard output.

use std::time::Duration;

use serde_json::{Value, json};

/// Seconds and bytes of one reading.
pub fn reading(elapsed: Duration, bytes: u64) -> Value {
    json!({ "seconds": elapsed.as_secs_f64(), "bytes": bytes })
}

/// Microseconds of many operations: how many, median, 99th percentile, and all of them together.
pub fn latencies(mut each: Vec<Duration>) -> Value {
    each.sort_unstable();
    let micros = |d: Option<&Duration>| d.map(|d| d.as_secs_f64() * 1e6);
    json!({
        "count": each.len(),
        "p50": micros(each.get(each.len() / 2)),
        "p99": micros(each.get(each.len() * 99 / 100)),
        "seconds": each.iter().sum::<Duration>().as_secs_f64(),
    })
}

/// Prints `value`. Panics if the reader of the output has gone away.
#[expect(clippy::print_stdout, reason = "this is what the programs are for")]
pub fn tell(value: &Value) {
    println!("{value}");
}
