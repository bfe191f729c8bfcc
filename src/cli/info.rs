//! `--info STORE [PATH]`: describes the hierarchy and each array, without a mount.
//!
//! For people, it prints a tree with a line for each node, or the details of one array. For programs (`--json`), it
//! prints a list of JSON objects (`cli::json_list`), which has everything that people see. Nodes are found,
//! described and printed one after the other, so that memory does not grow with their number.
//!
//! | file | contents |
//! |---|---|
//! | `command` | what is asked of the store: all nodes, one element, or one byte |
//! | `describe` | what is said about one node, from `facts`, `attributes`, `fill_text`, `stored`, `other_version` and `omissions` |
//! | `node_report`, `words`, `chunk_words` | what was gathered about one node, and the words for it |
//! | `disk_cache` | what is said of the disk cache |
//! | `tree`, `node_row`, `details`, `totals` | the form for people, over `table` and `fit` |

mod attributes;
mod chunk_words;
mod command;
mod counters;
mod describe;
mod details;
mod disk_cache;
mod facts;
mod fill_text;
mod fit;
mod node_report;
mod node_row;
mod omissions;
mod other_version;
mod stored;
mod table;
mod totals;
mod tree;
mod words;

use std::io;
use std::sync::Arc;

use super::config::InfoConfig;
use super::json_list::JsonList;
use super::output::{Output, print_warnings};
use super::progress_bar::ProgressBar;
use super::store::{budget_beside, useless_options, waiting_in};
use crate::budget::Budget;
use crate::escape::Text;
use crate::fresh::Freshness;
use crate::hierarchy::{Hierarchy, Walk};
use crate::store::{Prefix, Store};
use crate::view::{View, ViewKind, ViewOptions};
pub(super) use command::print;
use counters::InfoCounters;
use describe::Describer;
use node_report::NodeReport;
use omissions::SaidOmissions;
use tree::Tree;

/// Memory budget for documents.
const BUDGET_BYTES: u64 = 64 << 20;

/// Writes the nodes at and below `start` to `out`. Returns whether there were any.
///
/// # Errors
/// [`io::Error`] of `out`; [`Error`] of the store, wrapped.
fn report(
    store: &Arc<dyn Store>,
    start: &Prefix,
    config: &InfoConfig,
    out: &mut Output,
) -> io::Result<bool> {
    let budget = Budget::with_patience(BUDGET_BYTES, config.timeout);
    let arrays = config.arrays.clone().map(|arrays| {
        let options = ViewOptions {
            views: vec![ViewKind::Arrays],
            read_as: config.read_as,
            arrays,
            freshness: Freshness::Immutable,
            // The strings for the files of groups are read within the budget that a mount would have.
            cache_budget_bytes: budget_beside(&**store, config.cache_budget_bytes),
            max_chunk_bytes: config.max_chunk_bytes,
            timeout: config.timeout,
            // The lines of the nodes have the omissions.
            logs_omissions: false,
            ..ViewOptions::default()
        };
        View::new(Arc::clone(store), options).map_err(io::Error::other)
    });
    let of_store = if config.json {
        members_of(&**store)
    } else {
        Vec::new()
    };
    let counters = Arc::new(InfoCounters::default());
    let (work, sizes) = (Arc::clone(&counters), config.sizes);
    let things = if sizes { "stored objects" } else { "nodes" };
    let mut report = InfoReport {
        describer: Describer {
            arrays: arrays.transpose()?,
            waiting: waiting_in(&**store),
            hierarchy: Hierarchy::of_format(
                Arc::clone(store),
                budget,
                Freshness::Immutable,
                config.read_as,
            )
            .into(),
            config,
            said: SaidOmissions::default(),
            counters,
        },
        progress: ProgressBar::new(config.talk, things, move || work.work(sizes)),
        form: if config.json {
            Form::Json(JsonList::default())
        } else {
            Form::Tree(Tree::new(start, out.page()))
        },
        of_store,
    };
    report.visit(start, out)?;
    report.progress.end();
    out.print(&match report.form {
        Form::Json(list) => list.end(),
        Form::Tree(tree) => tree.end(),
    })?;
    if !config.json
        && let Some(cache) = disk_cache::described(&**store)
    {
        out.print(&Text::new().line(cache))?;
    }
    if let Some(view) = &report.describer.arrays {
        print_warnings(useless_options(view, &config.store));
    }
    Ok(report.describer.counters.n_nodes() > 0)
}

/// The facts about `store` as a whole, which become members of the first node of the list for programs.
fn members_of(store: &dyn Store) -> Vec<(&'static str, String)> {
    let description = store.description().map(str::to_owned);
    let description = description.map(|text| ("store", text));
    let snapshot = store.snapshot().map(|text| ("snapshot", text));
    let cache = disk_cache::described(store).map(|text| ("disk_cache", text));
    let members = description.into_iter().chain(snapshot);
    members.chain(cache).collect()
}

struct InfoReport<'c> {
    describer: Describer<'c>,
    progress: ProgressBar,
    form: Form,
    /// The facts about the store as a whole, until they are members of the first node that is written.
    of_store: Vec<(&'static str, String)>,
}

/// The form of the report.
enum Form {
    /// For programs.
    Json(JsonList),
    /// For people.
    Tree(Tree),
}

impl InfoReport<'_> {
    fn visit(&mut self, start: &Prefix, out: &mut Output) -> io::Result<()> {
        let hierarchy = Arc::clone(&self.describer.hierarchy);
        for (prefix, found) in Walk::new(&hierarchy, start) {
            match found {
                Ok(found) => {
                    if let Some(report) = self.describer.describe(&prefix, &found.node) {
                        self.write(report, out)?;
                    }
                }
                // The other nodes are still reported.
                Err(error) => self.write(Describer::unreadable(&prefix, &error), out)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, report: NodeReport, out: &mut Output) -> io::Result<()> {
        self.describer.counters.add_node();
        let text = match &mut self.form {
            Form::Json(list) => {
                let NodeReport {
                    prefix, mut facts, ..
                } = report;
                facts["path"] = prefix.to_text().into();
                for (name, text) in self.of_store.drain(..) {
                    facts[name] = text.into();
                }
                Some(list.push(facts))
            }
            Form::Tree(tree) => tree.push(&report),
        };
        match text {
            Some(text) => self.progress.around(|| out.print(&text)),
            None => Ok(()),
        }
    }
}
