//! `--verify STORE [PATH]`: whether a store is sound, without a mount; and `--warm STORE [PATH]`, which reads the same to have it
//! in the disk cache.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use glob::Pattern;
use indicatif::BinaryBytes;
use serde_json::{Value, json};

use super::config::{ShownConfig, VerifyConfig, ViewOptions};
use super::counted::counted;
use super::daemon;
use super::error::CliError;
use super::json_list::JsonList;
use super::logging::start_log_at_terminal;
use super::output::{Output, print_warnings};
use super::progress_bar::{ProgressBar, Work};
use super::store::{budget_beside, open, waiting_warning};
use crate::budget::Budget;
use crate::escape::Text;
use crate::fresh::Freshness;
use crate::hierarchy::Hierarchy;
use crate::store::{NestedForms, Prefix, Store};
use crate::verify::{Counters, Finding, Purpose, Severity, Verification};
use crate::view::View;

/// Memory budget for documents.
const BUDGET_BYTES: u64 = 64 << 20;

/// Examines the store and prints what was found.
pub(super) fn verify(config: &ShownConfig, verify: &VerifyConfig) -> Result<(), CliError> {
    let of_purpose = |error: CliError| match verify.purpose {
        Purpose::Verify => error.of_search(),
        Purpose::Warm => error,
    };
    daemon::raise_descriptor_limit();
    start_log_at_terminal(&config.log, Arc::default())?;
    match open(&config.store, &config.open, Some(NestedForms::All)) {
        Ok(store) => examine(store, config, verify).map_err(of_purpose)?.end(),
        Err(error) => {
            let error = of_purpose(error);
            if verify.json {
                report_unopened(&error, verify);
            }
            Err(error)
        }
    }
}

/// Prints the list for programs of a store that cannot be opened because of `error`.
fn report_unopened(error: &CliError, verify: &VerifyConfig) {
    let severity = match error {
        CliError::Damaged(_) => Severity::Damage,
        _ => Severity::Unread,
    };
    let mut report = Report::new(verify);
    report.add(&Finding {
        severity,
        path: Prefix::root(),
        place: None,
        bytes: None,
        problem: error.to_string(),
    });
    report.summarize(&Counters::default(), &Prefix::root(), &[]);
}

/// Examines the store and prints the findings.
fn examine(
    store: Arc<dyn Store>,
    config: &ShownConfig,
    verify: &VerifyConfig,
) -> Result<Done, CliError> {
    #[cfg(debug_assertions)]
    let store =
        crate::store::testing::inject(store, &config.injections).map_err(CliError::failed)?;
    print_warnings(waiting_warning(&config.store, &*store));
    let start = Prefix::parse(config.path.as_encoded_bytes()).map_err(CliError::failed)?;
    let budget = Budget::with_patience(BUDGET_BYTES, config.view.timeout);
    let (freshness, read_as) = (Freshness::Immutable, config.view.read_as);
    let hierarchy = Hierarchy::of_format(Arc::clone(&store), budget, freshness, read_as);
    let view = ViewOptions {
        freshness,
        cache_budget_bytes: budget_beside(&*store, config.view.cache_budget_bytes),
        ..config.view.clone()
    };
    let (asked, is_remote) = (Arc::clone(&store), config.store.is_remote());
    let at_once = || {
        if is_remote {
            // A reader of a store on a server has one request in flight, but not all the time.
            asked.useful_in_flight().saturating_mul(5) / 4 + 2
        } else {
            config.n_at_once
        }
    };
    let unused = Mutex::new(view.arrays.only.clone());
    // Only its loader and its selection of arrays are used.
    let view = View::new(store, view).map_err(CliError::failed)?;
    let selects = |path: &Prefix| {
        let mut unused = unused.lock().unwrap_or_else(PoisonError::into_inner);
        unused.retain(|pattern| !view.arrays().selects(pattern, path));
        view.arrays().is_chosen(path)
    };
    let counters = Arc::new(Counters::default());
    let work = Arc::clone(&counters);
    let bar = ProgressBar::new(verify.talk, "parts of arrays", move || Work {
        found: Some(work.found.load(Ordering::Relaxed)),
        done: work.examined.load(Ordering::Relaxed),
        bytes: work.bytes.load(Ordering::Relaxed),
        is_found: work.is_found.load(Ordering::Relaxed),
    });
    let report = Mutex::new(Report::new(verify));
    let run = Verification {
        purpose: verify.purpose,
        selects: &selects,
        start: &start,
        hierarchy: &Arc::new(hierarchy),
        loader: view.loader(),
        at_once: &at_once,
    };
    run.run(&counters, &|finding| {
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        bar.around(|| report.add(&finding));
    });
    bar.end();
    Ok(Done {
        report: report.into_inner().unwrap_or_else(PoisonError::into_inner),
        counters,
        start,
        of_store: view.loader().sources().store().statistics(),
        unused: unused.into_inner().unwrap_or_else(PoisonError::into_inner),
    })
}

/// An examination that has ended.
struct Done {
    report: Report,
    counters: Arc<Counters>,
    start: Prefix,
    of_store: Vec<(&'static str, u64)>,
    /// The patterns of `--array` that selected nothing.
    unused: Vec<Pattern>,
}

impl Done {
    /// Prints the summary, and returns what it means for the exit status.
    fn end(mut self) -> Result<(), CliError> {
        self.report
            .summarize(&self.counters, &self.start, &self.of_store);
        let found = self.report.outcome(&self.counters);
        let option = self.report.option();
        match (found, self.unused.first()) {
            (Ok(()), Some(pattern)) => Err(CliError::Unread(format!(
                "{option}: --array {pattern}: it selects no array{}",
                below(&self.start)
            ))),
            (found, _) => found,
        }
    }
}

/// Where the arrays were looked for, unless that is the whole store.
fn below(start: &Prefix) -> String {
    if start.is_root() {
        return String::new();
    }
    format!(" at or below {start}")
}

/// The findings so far.
struct Report {
    purpose: Purpose,
    list: Option<JsonList>,
    damaged: u64,
    unread: u64,
    notes: u64,
    /// The first error of standard output. The command goes on to its exit status.
    printed: io::Result<()>,
}

impl Report {
    fn new(config: &VerifyConfig) -> Report {
        Report {
            purpose: config.purpose,
            list: config.json.then(JsonList::default),
            damaged: 0,
            unread: 0,
            notes: 0,
            printed: Ok(()),
        }
    }

    fn add(&mut self, finding: &Finding) {
        *match finding.severity {
            Severity::Damage => &mut self.damaged,
            Severity::Unread => &mut self.unread,
            Severity::Note => &mut self.notes,
        } += 1;
        let text = match &mut self.list {
            Some(list) => list.push(as_json(finding)),
            None => Text::new().line(as_line(finding)),
        };
        self.print(&text);
    }

    fn option(&self) -> &'static str {
        match self.purpose {
            Purpose::Verify => "--verify",
            Purpose::Warm => "--warm",
        }
    }

    fn print(&mut self, text: &Text) {
        if self.printed.is_ok() {
            self.printed = Output::standard().print(text);
        }
    }

    /// Prints a summary.
    fn summarize(&mut self, counters: &Counters, start: &Prefix, of_store: &[(&'static str, u64)]) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let n_nodes = of(&counters.nodes);
        let text = if let Some(mut list) = self.list.take() {
            let mut summary = json!({
                "severity": "summary",
                "path": start.to_text(),
                "nodes": n_nodes,
                "arrays": of(&counters.arrays),
                "chunks": of(&counters.chunks),
                "damaged": self.damaged,
                "not_examined": self.unread,
                "notes": self.notes,
            });
            let bytes = match self.purpose {
                Purpose::Verify => "decoded_bytes",
                Purpose::Warm => "read_bytes",
            };
            summary[bytes] = of(&counters.bytes).into();
            let of_cache = of_store
                .iter()
                .filter(|(name, _)| name.starts_with("disk_"));
            for (name, value) in of_cache.filter(|_| self.purpose == Purpose::Warm) {
                summary[*name] = (*value).into();
            }
            let text = list.push(summary);
            text.and(&list.end())
        } else if self.purpose == Purpose::Warm {
            Text::new().line(format_args!(
                "{}, {}, {}, {}: {} not read",
                counted(n_nodes, "node", "nodes"),
                counted(of(&counters.arrays), "array", "arrays"),
                counted(of(&counters.chunks), "chunk", "chunks"),
                BinaryBytes(of(&counters.bytes)),
                self.damaged + self.unread,
            ))
        } else {
            Text::new().line(format_args!(
                "{}, {}, {} decoded to {}: {} damaged, {} not examined, {}",
                counted(n_nodes, "node", "nodes"),
                counted(of(&counters.arrays), "array", "arrays"),
                counted(of(&counters.chunks), "chunk", "chunks"),
                BinaryBytes(of(&counters.bytes)),
                self.damaged,
                self.unread,
                counted(self.notes, "note", "notes"),
            ))
        };
        self.print(&text);
    }

    /// The error that decides the exit status; none if everything is sound.
    fn outcome(&self, counters: &Counters) -> Result<(), CliError> {
        match &self.printed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let problem = format!("standard output: {error}");
                return Err(if self.purpose == Purpose::Verify && self.damaged == 0 {
                    CliError::Unread(problem)
                } else {
                    CliError::Failed(problem)
                });
            }
            _ => {}
        }
        let n_problems = self.damaged + self.unread;
        if counters.nodes.load(Ordering::Relaxed) == 0 && n_problems == 0 {
            let problem = format!("{}: no Zarr node is here or below", self.option());
            return Err(CliError::Unread(problem));
        }
        if self.purpose == Purpose::Warm && n_problems > 0 {
            let parts = counted(n_problems, "part", "parts");
            let problem = format!("--warm: {parts} could not be read; see above");
            return Err(CliError::Failed(problem));
        }
        match (self.damaged, self.unread) {
            (0, 0) => Ok(()),
            (0, unread) => {
                let parts = counted(unread, "part", "parts");
                let problem = format!("--verify: {parts} of the store not examined; see above");
                Err(CliError::Unread(problem))
            }
            (damaged, _) => {
                let parts = counted(damaged, "part", "parts");
                let problem = format!("--verify: {parts} of the store damaged; see above");
                Err(CliError::Failed(problem))
            }
        }
    }
}

/// A finding in one line.
fn as_line(finding: &Finding) -> String {
    let place = finding.place.as_ref();
    let place = place.map(|place| format!("{}: {place}: ", finding.path));
    let place = place.unwrap_or_default();
    format!("{}: {place}{}", finding.severity.name(), finding.problem)
}

/// A finding for programs.
fn as_json(finding: &Finding) -> Value {
    let mut value = json!({
        "severity": finding.severity.name().replace(' ', "_"),
        "path": finding.path.to_text(),
        "problem": finding.problem,
    });
    if let Some(place) = &finding.place {
        if let Some(chunk) = &place.chunk {
            value["chunk"] = chunk.as_slice().into();
        }
        value["region"] = json!(place.region);
        if let Some(shard) = &place.shard {
            value["shard"] = shard.as_slice().into();
        }
    }
    if let Some((key, start, end)) = &finding.bytes {
        value["key"] = key.as_str().into();
        value["bytes"] = json!([start, end]);
    }
    value
}
