//! The plan: how many threads, and how the memory limit is divided. Made before anything is read.
//!
//! ```text
//! limit = base (resident when planning) + slack
//!       + while reading: readers x (decoder + batch) + ingest budget (rows)
//!       | while writing: writers x (encoder + part)  + settle budget (chunks in memory, windows)
//! ```
//!
//! Threads are given up before the budget gets too small for sorting: one thread with memory beats
//! two that spill small runs. What one thread cannot do without is the floor; under it the job is
//! refused at once.

use arrow::datatypes::SchemaRef;
use windrow::{Budget, Layout, Pool};

use super::{Arrangement, Way};
use crate::args;
use crate::error::{CliError, Result};
use crate::input::Inputs;
use crate::output::{self, OutputOptions, Target};
use crate::size::{Limit, Size};
use crate::system;

/// Rows of a record batch, in and out.
pub(super) const BATCH_ROWS: usize = 8192;
/// A record batch of wide rows ends once it has this many bytes.
pub(super) const BATCH_BYTES: usize = 2 << 20;

/// What the allocator keeps beyond what is asked for, thread stacks, and the rest that nobody
/// counts. A guess that no run so far has passed, not a measurement: see `docs/memory.md`.
const SLACK: usize = 6 << 20;
/// Up to this limit the slack is all that there is to spare.
const SMALL_LIMIT: usize = 64 << 20;
/// Of what is beyond, one part in so many is kept for what nobody counts.
const UNCOUNTED: usize = 48;
/// What is resident before anything is planned differs by some pages from run to run.
const RESIDENT_SWAY: usize = 256 << 10;
/// What zstd takes beside its buffers to compress a chunk.
const SPILL_CONTEXT: usize = 640 << 10;
/// Allocator slack and stack of each thread more.
const THREAD_SLACK: usize = 2 << 20;
/// Bytes of rows that sorting must be able to hold, for runs to be longer than a few chunks.
const LEAST_SORTING: usize = 8 << 20;
/// Bytes that the last merge must have, for it to take some dozen runs.
const LEAST_MERGING: usize = 4 << 20;
/// Sorted files that are open at one time, if the system allows as many.
const MOST_FILES: usize = 512;
/// Open files that are none of the inputs: output, temporary files, streams.
pub(super) const OTHER_FILES: usize = 24;
/// Resident memory that nobody plans to use when there is no limit.
const UNLIMITED: usize = usize::MAX / 4;

/// Threads and budgets of one job.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) limit: Option<u64>,
    pub(super) readers: usize,
    pub(super) writers: usize,
    /// Bytes for rows while reading; where all sorted files are merged as they are read, beside the
    /// writers.
    pub(super) ingest_budget: usize,
    /// Bytes for chunks and windows while writing.
    pub(super) settle_budget: usize,
    /// Rows and row bytes that a part has at the most.
    pub(super) part_rows: usize,
    pub(super) part_bytes: usize,
    /// Sorted files that are merged at one time: all of them, or so many by each reader.
    pub(super) open_files: usize,
    /// Whether all of them are merged as they are written out.
    pub(super) direct: bool,
    floor: usize,
    reader_bytes: usize,
    writer_bytes: usize,
}

impl Plan {
    /// Divides the limit.
    pub(super) fn make(
        inputs: &Inputs,
        arrangement: &Arrangement,
        schema: &SchemaRef,
        options: &OutputOptions,
        row_group_size: Size,
        limits: &args::Limits,
    ) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = limits.threads.map_or(cores, usize::from);
        let limit = resolve(limits.memory_limit)?;
        let available =
            limit.map_or(UNLIMITED, |limit| usize::try_from(limit).unwrap_or(UNLIMITED));
        let row_group_bytes = usize::try_from(row_group_size.0).unwrap_or(usize::MAX);
        let (part_rows, part_bytes) = output::part_limits(options.format, row_group_bytes);

        // What nobody counts grows a little with what there is.
        let more = (available.saturating_sub(SMALL_LIMIT) / UNCOUNTED).min(SLACK);
        // Whoever spills has a context of its own, and so has the spill thread.
        let spilling = match limits.spill_compression {
            args::SpillCompression::Zstd => (threads + 1) * SPILL_CONTEXT,
            args::SpillCompression::None | args::SpillCompression::Lz4 => 0,
        };
        let base = usize::try_from(system::resident()).unwrap_or(0) + SLACK + more + spilling;
        let batch = BATCH_BYTES + batch_bytes(arrangement.layout.schema());
        let long = if options.long_rows { inputs.row_bytes() } else { 0 };
        let reader_bytes = inputs.reader_bytes() + 2 * batch;
        let held = part_bytes.min(most_bytes(inputs, arrangement));
        let writer_bytes = output::part_bytes(schema, options, part_rows, held)
            + 2 * batch
            + long * output::copies_of_a_long_row(schema, options.format);
        let waiting = long * output::copies_of_a_held_row(options.format);
        // Of long rows one is staged, when the one before it is written out; runs of them are merged into
        // one before anything is written.
        let (least_sorting, least_merging) = (LEAST_SORTING + long, LEAST_MERGING + long);

        // A sorted file that is merged as it is read: its reader, batches read ahead, the chunk made
        // of one. Files that cannot all be open beside the writers are merged into runs first, in groups
        // that are not read ahead. Of long rows one is encoded, the one before it is compared to it, and
        // under a rule one is held back; the budget has the chunk of one file.
        let rule = arrangement.layout.rule();
        let kept = if rule == windrow::Rule::Keep { 2 } else { 3 };
        let per_file = reader_bytes + 2 * batch + kept * long;
        let files = inputs.files().len();
        let reading = |n: usize| match arrangement.way {
            Way::Unordered => base + n * reader_bytes + (n - 1) * THREAD_SLACK,
            Way::Sorted => base + n * per_file + (n - 1) * long,
        };
        let writing = |n: usize| {
            // A writer that is not alone holds the rows of its part while it encodes them.
            let part = held.saturating_add(BATCH_BYTES + waiting);
            let parts = if n > 1 { n * part } else { 0 };
            base + n * writer_bytes + parts + (n - 1) * THREAD_SLACK
        };
        let floor = (reading(1) + least_sorting).max(writing(1) + least_merging);
        if available < floor {
            // A larger limit has more that nobody counts.
            let enough = floor + (floor - available) / (UNCOUNTED - 1) + RESIDENT_SWAY;
            return Err(CliError::MemoryFloor(format!(
                "a memory limit of {} is below the floor of this job, {}: {} for reading and {} for \
                 sorting, then {} for writing and {} for merging; raise --memory-limit, or lower \
                 --row-group-size",
                Size(available as u64).exactly(),
                Size(enough as u64).rounded_up(),
                Size(reading(1) as u64),
                Size(least_sorting as u64),
                Size(writing(1) as u64),
                Size(least_merging as u64),
            )));
        }
        let spare = |needed: usize| available.saturating_sub(needed);
        let most = |most: usize, needed: &dyn Fn(usize) -> usize| {
            // Another thread is worth it while sorting keeps half of what there is.
            let kept = least_sorting.max((available - base) / 3);
            (1..=most).rev().find(|&n| spare(needed(n)) >= kept).unwrap_or(1)
        };
        let mut writers = most(threads, &writing);
        let (readers, open_files, ingest_budget, direct) = match arrangement.way {
            Way::Unordered => {
                let readers = most(threads, &reading);
                (readers, 0, spare(reading(readers)), false)
            }
            Way::Sorted => {
                let all = files * (per_file + 2 * long);
                let beside = |writers: usize| writing(writers).saturating_add(all);
                let direct = (1..=writers).rev().find(|&n| spare(beside(n)) >= least_merging);
                let allowed = system::open_files().saturating_sub(OTHER_FILES).clamp(1, MOST_FILES);
                match direct.filter(|_| files <= allowed) {
                    Some(fewer) => {
                        writers = fewer;
                        (threads, files, spare(beside(fewer)), true)
                    }
                    None => {
                        let readers = most(threads.min(allowed), &reading);
                        let group = most(files.min(allowed / readers), &|n| reading(n * readers));
                        (readers, group, spare(reading(group * readers)), false)
                    }
                }
            }
        };
        Ok(Self {
            limit,
            readers,
            writers,
            ingest_budget,
            settle_budget: spare(writing(writers)),
            part_rows,
            part_bytes,
            open_files,
            direct,
            floor,
            reader_bytes,
            writer_bytes,
        })
    }

    /// The budget for runs, and how many of them meet at once in it.
    fn merging(&self, limits: &args::Limits, inputs: &Inputs) -> String {
        let text = format!("{} for runs", shown(self.settle_budget));
        let options = super::pool_options(limits, inputs);
        match Pool::new(Budget::bytes(self.ingest_budget), options) {
            Ok(pool) => {
                pool.budget().set_limit(self.settle_budget);
                format!("{text}, at most {} at once", windrow::fan_in(&pool))
            }
            Err(_) => text,
        }
    }

    /// The plan as text.
    pub(super) fn explain(
        &self,
        inputs: &Inputs,
        arrangement: &Arrangement,
        options: &OutputOptions,
        target: &Target,
        limits: &args::Limits,
    ) -> String {
        let layout = &arrangement.layout;
        let size = |bytes: usize| Size(bytes as u64).to_string();
        let limit = self.limit.map_or("none".to_owned(), |limit| Size(limit).to_string());
        let mut lines = vec![
            ("inputs", format!("{} files, {} units", inputs.files().len(), inputs.units().len())),
            ("order", describe(layout.order())),
            ("rule", format!("{:?}", layout.rule()).to_lowercase()),
            ("row", row(layout)),
            ("output", format!("{target} as {}", options.format)),
            ("memory limit", format!("{limit} (floor {})", size(self.floor))),
            ("reading", format!("{} threads, {} each", self.readers, size(self.reader_bytes))),
            match arrangement.way {
                Way::Unordered => ("sorting", format!("{} for rows", shown(self.ingest_budget))),
                Way::Sorted => ("files", format!("{} merged at a time", self.open_files)),
            },
            ("writing", format!("{} threads, {} each", self.writers, size(self.writer_bytes))),
            ("merging", self.merging(limits, inputs)),
            ("temporary", temporary(limits)),
            ("parts", format!("{} rows or {} at the most", self.part_rows, size(self.part_bytes))),
        ];
        if let Some(rows) = inputs.rows() {
            lines.insert(1, ("rows", rows.to_string()));
        }
        lines.iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect()
    }
}

/// How the columns of the order lie in a row.
fn row(layout: &Layout) -> String {
    let keys = layout.order().iter().filter_map(|column| {
        let field = layout.schema().field_with_name(&column.name).ok()?;
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

/// Where rows go that do not fit.
fn temporary(limits: &args::Limits) -> String {
    let place = match limits.spill_to {
        args::SpillTo::Memory => "memory".to_owned(),
        args::SpillTo::Disk if limits.temp_dir.is_empty() => {
            std::env::temp_dir().display().to_string()
        }
        args::SpillTo::Disk => {
            let names: Vec<_> =
                limits.temp_dir.iter().map(|dir| dir.display().to_string()).collect();
            names.join(", ")
        }
    };
    match limits.max_temp_size {
        Some(size) => format!("{place}, at most {size}"),
        None => place,
    }
}

fn shown(budget: usize) -> String {
    if budget > UNLIMITED / 2 { "unlimited".to_owned() } else { Size(budget as u64).to_string() }
}

fn describe(columns: &[windrow::Column]) -> String {
    let part = |column: &windrow::Column| {
        let direction = if column.descending { " desc" } else { "" };
        let nulls = if column.nulls_first { " nulls first" } else { "" };
        format!("{}{direction}{nulls}", column.name)
    };
    let parts: Vec<String> = columns.iter().map(part).collect();
    parts.join(", ")
}

/// The limit in bytes; `None` if there is none.
fn resolve(limit: Limit) -> Result<Option<u64>> {
    match limit {
        Limit::Unlimited => Ok(None),
        Limit::Bytes(bytes) => Ok(Some(bytes)),
        Limit::Percent(percent) => {
            let all = system::available_memory().ok_or_else(|| {
                CliError::Usage(
                    "how much memory there is cannot be found out; give --memory-limit in bytes"
                        .to_owned(),
                )
            })?;
            Ok(Some((all as f64 * percent / 100.0) as u64))
        }
    }
}

/// Bytes that all rows take together at the most, where the inputs tell.
fn most_bytes(inputs: &Inputs, arrangement: &Arrangement) -> usize {
    let widths = arrangement.layout.schema().fields().iter();
    let row: Option<usize> = widths.map(|field| field.data_type().primitive_width()).sum();
    match (inputs.rows(), row) {
        // A diff can make many rows of one.
        (Some(rows), Some(width)) if arrangement.layout.rule() != windrow::Rule::Sum => {
            usize::try_from(rows).unwrap_or(usize::MAX).saturating_mul(width)
        }
        _ => usize::MAX,
    }
}

/// Bytes of the fixed-width part of a record batch, which ends at [`BATCH_BYTES`] of rows.
fn batch_bytes(schema: &SchemaRef) -> usize {
    let widths = || schema.fields().iter().map(|field| field.data_type().primitive_width());
    // A varying value takes a byte of a row at the least.
    let least_row: usize = widths().map(|width| width.unwrap_or(1)).sum();
    let rows = BATCH_ROWS.min(BATCH_BYTES / least_row.max(1) + 1);
    rows * widths().map(|width| width.unwrap_or(16)).sum::<usize>()
}
