//! The plan of a job as text.

use std::fmt;

use windrow::{Budget, Layout, Pool, Rule, SpillTo};

use super::plan::{Plan, UNLIMITED};
use super::running::Job;
use super::write::{Outlined, drops_bloom_filters};
use crate::error::Result;
use crate::limits::Limits;
use crate::names::Places;
use crate::output::{Target, WriteOptions};
use crate::size::Size;
use crate::verbs::Way;

/// Describes the plan of a job: order, threads, memory and limits. `Display` writes a line for
/// each.
#[derive(Clone, Debug)]
pub struct Explain {
    lines: Vec<(&'static str, String)>,
    floor: u64,
    limit: Option<u64>,
}

impl Explain {
    pub(crate) fn of(lines: Vec<(&'static str, String)>, floor: u64, limit: Option<u64>) -> Self {
        Self { lines, floor, limit }
    }

    /// Returns the lines, each as a topic and a value.
    pub fn lines(&self) -> &[(&'static str, String)] {
        &self.lines
    }

    /// Returns the smallest possible memory limit of the job, in bytes.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns the memory limit of the job, in bytes.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|(name, value)| writeln!(f, "{name:<14} {value}"))
    }
}

impl Job {
    /// Returns the plan of [`write`](Self::write), without writing.
    ///
    /// # Errors
    /// `MemoryFloor` if the limit is below the floor; `Usage` for an impossible output.
    pub fn explain(
        &self,
        target: &Target,
        write: &WriteOptions,
        limits: &Limits,
    ) -> Result<Explain> {
        let Outlined { options, planned, .. } = Outlined::of(self, target, write, limits)?;
        let (plan, inputs, arrangement) = (planned.plan, &self.inputs, &self.arrangement);
        let layout = &arrangement.layout;
        let size = |bytes: usize| Size(bytes as u64).to_string();
        let limit = plan.limit.map_or("none".to_owned(), |limit| Size(limit).to_string());
        let mut lines = vec![
            ("inputs", format!("{} files, {} units", inputs.files().len(), inputs.units.len())),
            ("order", describe(layout.order())),
            ("rule", rule(layout.rule()).to_owned()),
            ("row", row(layout)),
            ("output", format!("{target} as {}", options.format)),
            ("memory limit", format!("{limit} (floor {})", plan.floor)),
            ("reading", format!("{} threads, {} each", plan.readers, size(plan.reader_bytes))),
            match arrangement.way {
                Way::Unordered => ("sorting", format!("{} for rows", shown(plan.ingest_budget))),
                Way::Sorted => ("files", format!("{} merged at a time", plan.open_files)),
            },
            ("writing", format!("{} threads, {} each", plan.writers, size(plan.writer_bytes))),
            ("merging", merging(&plan, limits, inputs.temp_bytes)),
            ("temporary", temporary(limits)),
            ("parts", format!("{} rows or {} at the most", plan.part.0, size(plan.part.1))),
        ];
        if let Some(rows) = inputs.rows() {
            lines.insert(1, ("rows", rows.to_string()));
        }
        if let Some(partitioning) = &self.partitioning {
            lines.push(("partitions", partitioning.to_string()));
        }
        if drops_bloom_filters(self, &options) {
            lines.push(("not kept", "the Bloom filters of the inputs".to_owned()));
        }
        Ok(Explain { lines, floor: plan.floor.0, limit: plan.limit })
    }
}

/// Describes the budget for runs and the largest fan-in that fits the budget.
fn merging(plan: &Plan, limits: &Limits, taken: u64) -> String {
    let text = format!("{} for runs", shown(plan.settle_budget));
    match Pool::new(Budget::bytes(plan.ingest_budget), limits.pool_options(taken)) {
        Ok(pool) => {
            pool.budget().set_limit(plan.settle_budget);
            format!("{text}, at most {} at once", windrow::fan_in(&pool))
        }
        Err(_) => text,
    }
}

/// Names the rule for rows with equal keys.
fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Keep => "keep",
        Rule::First => "first",
        Rule::Last => "last",
        Rule::LastKnown => "last known",
        Rule::Sum => "sum",
    }
}

/// Describes the layout of the order's columns in a row.
fn row(layout: &Layout) -> String {
    let fields = layout.schema().fields();
    let places = Places::of(fields);
    let keys = layout.order().iter().filter_map(|column| {
        let field = &fields[places.first(&column.name)?];
        let nullable = if field.is_nullable() { " nullable" } else { "" };
        Some(format!("{} {}{nullable}", column.name, field.data_type()))
    });
    let keys: Vec<String> = keys.collect();
    let length = match layout.stride() {
        Some(bytes) => format!("{bytes} bytes each"),
        None => "of varying length".to_owned(),
    };
    format!("{} | the rest; {length}", keys.join(" | "))
}

/// Describes where rows are spilled.
fn temporary(limits: &Limits) -> String {
    let place = match limits.spill_to {
        SpillTo::Memory => "memory".to_owned(),
        SpillTo::Disk if limits.temp_dirs.is_empty() => std::env::temp_dir().display().to_string(),
        SpillTo::Disk => {
            let names: Vec<_> =
                limits.temp_dirs.iter().map(|dir| dir.display().to_string()).collect();
            names.join(", ")
        }
    };
    match limits.max_temp_bytes {
        Some(bytes) => format!("{place}, at most {}", Size(bytes)),
        None => place,
    }
}

fn shown(budget: usize) -> String {
    if budget > UNLIMITED / 2 { "unlimited".to_owned() } else { Size(budget as u64).to_string() }
}

fn describe(columns: &[windrow::SortColumn]) -> String {
    let part = |column: &windrow::SortColumn| {
        let direction = if column.descending { " desc" } else { "" };
        let nulls = if column.nulls_first { " nulls first" } else { "" };
        format!("{}{direction}{nulls}", column.name)
    };
    let parts: Vec<String> = columns.iter().map(part).collect();
    parts.join(", ")
}
