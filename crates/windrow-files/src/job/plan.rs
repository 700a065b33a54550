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

use std::num::NonZeroUsize;

use arrow::datatypes::SchemaRef;
use windrow::Codec;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::input::{FileInfo, Inputs};
use crate::limits::Limits;
use crate::output::{self, OutputOptions, WriteOptions};
use crate::size::Size;
use crate::system;
use crate::verbs::{Arrangement, Way};

/// Rows of a record batch, in and out.
pub(super) const BATCH_ROWS: usize = 8192;
/// A record batch of wide rows ends once it has this many bytes.
pub(super) const BATCH_BYTES: usize = 2 << 20;

/// What a job has resident of code and constants at its end, but for [`TIGHT`]: 14 to 16.5 MiB were seen. When it is
/// planned that is half, or most of it where the page cache is kind.
const CODE: usize = 13 << 20;
/// The rest of that. Jobs that write Parquet have it in what their readers and writers are estimated at, unless they read
/// record batches as large as the file says, merge files as they read them, or encode columns in turn.
const TIGHT: usize = 3 << 20;
/// What the allocator keeps beyond what is asked for, thread stacks, and the rest that nobody
/// counts. A guess that no run so far has passed, not a measurement: see `docs/memory.md`.
const SLACK: usize = 2 << 20;
/// More of it where record batches are as large as the file says: other readers are estimated with some to
/// spare.
const EXACT: usize = 3 << 20;
/// The most that it grows by with the limit.
const MORE_SLACK: usize = 6 << 20;
/// A row of this length, on average, is a part of what is needed to sort it and to write it.
const NOTABLE_ROW: usize = 64 << 10;
/// Up to this limit the slack is all that there is to spare.
const SMALL_LIMIT: usize = 64 << 20;
/// Of what is beyond, one part in so many is kept for what nobody counts.
const UNCOUNTED: usize = 48;
/// What is resident before anything is planned differs by some pages from run to run.
const RESIDENT_SWAY: usize = 256 << 10;
/// Of code and constants it differs by more, as it depends on where they are mapped how many pages of the cache
/// come at once: of a binary that was copied 13.5 to 14.8 MiB were seen. Counts as far as that passes [`CODE`].
const CODE_SWAY: usize = 1536 << 10;
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
pub(super) const UNLIMITED: usize = usize::MAX / 4;

/// Threads and budgets of one job.
#[derive(Clone, Debug)]
pub(super) struct Plan {
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
    /// Whether the columns of a part are encoded one after the other.
    pub(super) columns_in_turn: bool,
    /// Sorted files that are merged at one time: all of them, or so many by each reader.
    pub(super) open_files: usize,
    /// Whether all of them are merged as they are written out.
    pub(super) direct: bool,
    /// The least limit, as messages name it.
    pub(super) floor: Size,
    pub(super) reader_bytes: usize,
    pub(super) writer_bytes: usize,
}

impl Plan {
    /// Divides the limit for a job whose rows are read by the caller.
    pub(super) fn of_batches(
        inputs: &Inputs,
        arrangement: &Arrangement,
        limits: &Limits,
    ) -> Result<Self> {
        // What a record batch takes on its way out is what the message of a stream takes.
        let write = WriteOptions::default();
        let options =
            write.bind(Format::ArrowStream, Vec::new(), inputs.csv(), inputs.row_bytes())?;
        let schema = arrangement.layout.schema();
        let limits = Limits { threads: Some(NonZeroUsize::MIN), ..limits.clone() };
        Self::make(inputs, arrangement, schema, &options, BATCH_BYTES, &limits)
    }

    /// Divides the limit.
    pub(super) fn make(
        inputs: &Inputs,
        arrangement: &Arrangement,
        schema: &SchemaRef,
        options: &OutputOptions,
        row_group_bytes: usize,
        limits: &Limits,
    ) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = limits.threads.map_or(cores, usize::from);
        let limit = limits.memory_bytes()?;
        let available =
            limit.map_or(UNLIMITED, |limit| usize::try_from(limit).unwrap_or(UNLIMITED));
        let (part_rows, part_bytes) = output::part_limits(options.format, row_group_bytes);

        // What nobody counts grows a little with what there is.
        let more = (available.saturating_sub(SMALL_LIMIT) / UNCOUNTED).min(MORE_SLACK);
        // Whoever spills has a context of its own, and so has the spill thread.
        let spilling = match limits.spill_codec {
            Codec::Zstd => (threads + 1) * SPILL_CONTEXT,
            Codec::None | Codec::Lz4 => 0,
        };
        let (own, of_files) = system::resident();
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
        let code = bytes(of_files).max(CODE);
        let sway = RESIDENT_SWAY + (bytes(of_files) + CODE_SWAY).saturating_sub(code);
        let is_tight = arrangement.way == Way::Sorted || options.format != Format::Parquet;
        let tight = if is_tight { TIGHT } else { 0 };
        let is_arrow =
            |file: &FileInfo| matches!(file.format, Format::ArrowFile | Format::ArrowStream);
        let has_arrow = inputs.files().iter().any(is_arrow);
        let exact = if has_arrow { EXACT + (TIGHT - tight) } else { 0 };
        let base = bytes(own) + code + tight + SLACK + more + spilling;
        let batch = BATCH_BYTES + batch_bytes(arrangement.layout.schema());
        let row = row_bytes(inputs, arrangement);
        let long = if row >= NOTABLE_ROW { row.saturating_mul(lists_stretch(schema)) } else { 0 };
        let reader_bytes = inputs.reader_bytes() + 2 * batch;
        // A part has a slab at the least.
        let held = part_bytes.max(BATCH_BYTES).min(most_bytes(inputs, arrangement));
        let rows_held = part_rows.min(held / row + 1);
        let writer_of = |options: &OutputOptions| {
            output::part_bytes(schema, options, rows_held, held)
                + 2 * batch
                + long * output::copies_of_a_long_row(schema, options)
        };
        let footers = footers(inputs, arrangement, schema, options, (part_rows, part_bytes));
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
            Way::Unordered => base + exact + n * reader_bytes + (n - 1) * THREAD_SLACK,
            Way::Sorted => base + exact + n * per_file + (n - 1) * long,
        };
        let writing_by = |writer: usize, n: usize| {
            // A writer that is not alone holds the rows of its part while it encodes them.
            let part = held.saturating_add(BATCH_BYTES + waiting);
            let parts = if n > 1 { n.saturating_mul(part) } else { 0 };
            let writers = n.saturating_mul(writer).saturating_add(parts);
            (base + (n - 1) * THREAD_SLACK).saturating_add(footers).saturating_add(writers)
        };
        let spare = |needed: usize| available.saturating_sub(needed);
        let most = |most: usize, needed: &dyn Fn(usize) -> usize| {
            // Another thread is worth it while sorting keeps half of what there is.
            let kept = least_sorting.max(available.saturating_sub(base) / 3);
            (1..=most).rev().find(|&n| spare(needed(n)) >= kept).unwrap_or(1)
        };
        // Columns in turn only where that lets the job run, or run on more threads.
        let in_turn = OutputOptions { columns_in_turn: true, ..options.clone() };
        let (together, in_turn) = (writer_of(options), writer_of(&in_turn) + (TIGHT - tight));
        let fits = |writer: usize| match spare(writing_by(writer, 1)) >= least_merging {
            true => most(threads, &|n| writing_by(writer, n)),
            false => 0,
        };
        let columns_in_turn = in_turn < together && fits(together) < fits(in_turn).max(1);
        let writer_bytes = if columns_in_turn { in_turn } else { together };
        let writing = |n: usize| writing_by(writer_bytes, n);
        let needed = (reading(1) + least_sorting).max(writing(1) + least_merging) - more;
        // At the floor itself there is as much more as the floor has above a small limit.
        let floor = needed + (needed.saturating_sub(SMALL_LIMIT) / (UNCOUNTED - 1)).min(MORE_SLACK);
        // As a limit it is to be enough also for a process that is a little larger from the start.
        let named = Size(floor.saturating_add(sway) as u64).rounded_up();
        if available < floor {
            let message = format!(
                "a memory limit of {} is below the floor of this job, {}: {} for reading and {} for \
                 sorting, then {} for writing and {} for merging; raise `memory_limit`, or {} \
                 `row_group_size`",
                Size(available as u64).exactly(),
                named,
                Size(reading(1) as u64),
                Size(least_sorting as u64),
                Size(writing(1) as u64),
                Size(least_merging as u64),
                // Smaller row groups are more of them, and the footer has all.
                if footers > writer_bytes { "raise" } else { "lower" },
            );
            let floor = floor.saturating_add(sway) as u64;
            return Err(Error::memory_floor(message, floor, available as u64));
        }
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
            columns_in_turn,
            open_files,
            direct,
            floor: named,
            reader_bytes,
            writer_bytes,
        })
    }

    /// What all writers take.
    pub(super) fn writing_bytes(&self) -> usize {
        self.writers.saturating_mul(self.writer_bytes)
    }
}

/// Bytes of a row, as far as the inputs tell.
fn row_bytes(inputs: &Inputs, arrangement: &Arrangement) -> usize {
    let widths = arrangement.layout.schema().fields().iter();
    let least: usize = widths.map(|field| field.data_type().primitive_width().unwrap_or(1)).sum();
    arrangement.layout.stride().unwrap_or(inputs.row_bytes().max(least)).max(1)
}

/// How much longer a row can be in the engine than in Arrow: an item of a list has 5 bytes more.
fn lists_stretch(schema: &SchemaRef) -> usize {
    let nested = schema.fields().iter().any(|field| field.data_type().is_nested());
    if nested { 2 } else { 1 }
}

/// What the footers of the output take, as far as the inputs tell how many rows there are.
fn footers(
    inputs: &Inputs,
    arrangement: &Arrangement,
    schema: &SchemaRef,
    options: &OutputOptions,
    (part_rows, part_bytes): (usize, usize),
) -> usize {
    let row = row_bytes(inputs, arrangement);
    let lines = || inputs.bytes().map(|bytes| bytes / inputs.row_bytes().max(1) as u64);
    let rows = inputs.rows().or_else(lines).unwrap_or(0);
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let slab = BATCH_ROWS.min(BATCH_BYTES / row + 1);
    let part = part_rows.min(part_bytes / row).max(slab);
    output::footer_bytes(schema, options, rows / part + 1, rows.saturating_mul(row))
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
