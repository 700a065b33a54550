//! Memory costs of a job, independent of the plan: per process, reader, file, writer and long row.
//!
//! ```text
//! Inputs, Arrangement, Output --of--> Costs --Plan::choose--> Plan
//!                                       ^
//!                        longer(row) ---/   a row that was met is longer than all that were known
//! ```
//! All costs are in bytes. No cost depends on the limit.

use arrow_schema::{DataType, SchemaRef};
use windrow::{Codec, ColumnarMerge, Finish};

use super::super::best::MOST_BYTES as MOST_BEST_BYTES;
use super::{BATCH_BYTES, BATCH_ROWS, MOST_FILES, OTHER_FILES, SIFTED_BYTES};
use crate::input::{FileInfo, Inputs};
use crate::output::{self, OutputOptions, PartRows};
use crate::settings::Format;
use crate::store;
use crate::system;
use crate::verbs::{Arrangement, Way};

/// Resident code and constants at the end of a job, without [`TIGHT`]; 14 to 16.5 MiB were
/// measured. At planning time half of it is resident, or most of it if the page cache holds many
/// pages of the binary.
const CODE: usize = 13 << 20;
/// The rest of the resident code and constants. For jobs that write Parquet, the estimates for
/// readers and writers cover this, unless the job reads record batches of the size set by the file,
/// merges files while reading, or encodes columns in turn.
const TIGHT: usize = 3 << 20;
/// Allocator overhead, thread stacks, and other allocations that are not accounted for. A guess
/// that no run has exceeded so far, not a measurement: see `docs/memory.md`.
const SLACK: usize = 2 << 20;
/// Additional slack where the file sets the size of record batches: the estimates for other readers
/// include a reserve.
const EXACT: usize = 3 << 20;
/// Length from which a row contributes to the costs of sorting and writing.
const NOTABLE_ROW: usize = 64 << 10;
/// Variation from run to run of the memory resident before planning: some pages.
const RESIDENT_SWAY: usize = 256 << 10;
/// Variation of resident code and constants. Their address determines how many pages of the page
/// cache are mapped at once: for a copied binary 13.5 to 14.8 MiB were measured. Only the part
/// above [`CODE`] counts.
const CODE_SWAY: usize = 1536 << 10;
/// Bytes of an array without its values.
const ARRAY_BYTES: usize = 512;
/// zstd's workspace to compress a chunk, without buffers.
const SPILL_CONTEXT: usize = 640 << 10;
/// Allocator overhead and stack of each additional thread.
const THREAD_SLACK: usize = 2 << 20;
/// Minimum budget for sorting, so that runs are longer than a few chunks.
const LEAST_SORTING: usize = 8 << 20;
/// Minimum budget for the last merge, enough for some dozen runs.
const LEAST_MERGING: usize = 4 << 20;

/// The destination of the sorted rows.
pub(in crate::job) enum Output<'a> {
    /// An output file, or several.
    Written { schema: &'a SchemaRef, options: &'a OutputOptions },
    /// The caller, as record batches of this schema.
    Taken { schema: &'a SchemaRef },
}

/// Costs of writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::job) struct Writing {
    /// An encoder of all columns at once, and an encoder of one column after the other.
    pub(super) together: usize,
    pub(super) in_turn: usize,
    /// Copies of a long row while it is encoded either way, and in a part that waits.
    pub(super) copies: usize,
    pub(super) copies_in_turn: usize,
    pub(super) copies_held: usize,
    /// Bytes of the rows of a part.
    pub(super) held: usize,
    pub(super) footers: usize,
    pub(super) part_rows: usize,
    pub(super) part_bytes: usize,
}

/// Costs of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::job) struct Costs {
    pub(super) way: Way,
    /// Whether sorted files can be merged without rows.
    pub(super) by_columns: bool,
    /// The process with one thread, in any phase.
    pub(super) base: usize,
    /// Possible increase of `base` in another run.
    pub(super) sway: usize,
    /// Additional bytes while reading.
    pub(super) exact: usize,
    /// A reader, for rows up to the length `known`.
    pub(super) reader: usize,
    /// A record batch.
    pub(super) batch: usize,
    pub(super) files: usize,
    /// Limit of the system for open files.
    pub(super) allowed: usize,
    /// Rows of a file that a merge holds encoded: the current row, the previous one, and under a
    /// rule one held back.
    pub(super) rows_of_a_file: usize,
    pub(super) writing: Writing,
    /// Bytes in Arrow of the longest row, and of the longest row included in `reader`.
    pub(super) longest: usize,
    pub(super) known: usize,
    /// Copies of a longer row in a reader.
    pub(super) copies_read: usize,
    /// Factor by which a row can be longer in the engine than in Arrow: an item of a list takes 5
    /// bytes more.
    pub(super) stretch: usize,
}

impl Costs {
    pub(in crate::job) fn of(
        inputs: &Inputs,
        arrangement: &Arrangement,
        output: &Output<'_>,
        codec: Codec,
        threads: usize,
    ) -> Self {
        // Every spilling thread has a context, and so has the spill thread.
        let spilling = match codec {
            Codec::Zstd => (threads + 1) * SPILL_CONTEXT,
            Codec::None | Codec::Lz4 => 0,
        };
        // Memory freed after opening the inputs is available to the job.
        windrow::give_back_free_blocks();
        let (own, of_files) = system::resident();
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
        let code = bytes(of_files).max(CODE);
        let sway = RESIDENT_SWAY + (bytes(of_files) + CODE_SWAY).saturating_sub(code);
        let is_parquet = matches!(
            output,
            Output::Written { options, .. } if options.format == Format::Parquet
        );
        let by_columns = by_columns(arrangement, output);
        let tight = if arrangement.way == Way::Sorted || !is_parquet { TIGHT } else { 0 };
        let is_arrow =
            |file: &FileInfo| matches!(file.format, Format::ArrowFile | Format::ArrowStream);
        let has_arrow = inputs.files().iter().any(is_arrow);
        let schema = arrangement.layout.schema();
        let arrays = schema.fields().len() * ARRAY_BYTES;
        let batch_of = |bytes: usize| bytes + fixed_bytes(schema, bytes) + arrays;
        let batch = batch_of(BATCH_BYTES);
        let mut writing = match output {
            Output::Written { schema, options } => writing(inputs, arrangement, schema, options),
            // `copies` is the array. With threads that decode ahead, each has a slab, an array in
            // work and an array that waits.
            Output::Taken { .. } => {
                Writing { copies: 1, copies_in_turn: 1, copies_held: 2, ..Writing::default() }
            }
        };
        let mut written = batch;
        if arrangement.sifting.is_some() {
            // Input and output of a sift coexist on the merging thread.
            written = batch_of(SIFTED_BYTES);
            writing.footers = writing.footers.saturating_add(3 * written);
        }
        let copies = copies_of_a_long_row(arrangement);
        (writing.copies, writing.copies_in_turn) =
            (writing.copies + copies, writing.copies_in_turn + copies);
        if matches!(output, Output::Written { options, .. } if options.write.max_file_bytes.is_some())
        {
            // The first rows of the output, from which the encoding of all files is derived, and a
            // slab shared by two files.
            writing.footers = writing.footers.saturating_add(2 * batch);
        }
        writing.together = writing.together.saturating_add(2 * written);
        writing.in_turn = writing.in_turn.saturating_add(2 * written + (TIGHT - tight));
        let (Output::Written { schema, .. } | Output::Taken { schema }) = output;
        let is_nested = schema.fields().iter().any(|field| field.data_type().is_nested());
        let least = row_bytes(inputs, arrangement);
        let longest = inputs.needs.longest_row.max(least);
        Self {
            way: arrangement.way,
            by_columns,
            base: bytes(own) + code + tight + SLACK + spilling,
            sway,
            exact: if has_arrow { EXACT + (TIGHT - tight) } else { 0 },
            reader: inputs.needs.reader_bytes + 2 * batch + looks(inputs, arrangement, batch),
            batch,
            files: inputs.files().len(),
            allowed: system::open_files().saturating_sub(OTHER_FILES).clamp(1, MOST_FILES),
            rows_of_a_file: match arrangement.layout.rule() {
                windrow::Rule::Keep => 2,
                _ => 3,
            },
            writing,
            longest,
            known: longest,
            copies_read: inputs.needs.copies,
            stretch: if is_nested { 2 } else { 1 },
        }
    }

    /// Returns the costs with a row of `row` bytes in Arrow.
    pub(in crate::job) fn longer(&self, row: usize) -> Self {
        Self { longest: self.longest.max(row), ..self.clone() }
    }

    /// Returns the maximum row length covered by the plan, in bytes.
    pub(in crate::job) fn longest(&self) -> usize {
        self.longest.max(NOTABLE_ROW)
    }

    /// Returns the length of a long row in the engine; 0 if all rows are short.
    pub(super) fn long(&self) -> usize {
        if self.longest >= NOTABLE_ROW { self.longest.saturating_mul(self.stretch) } else { 0 }
    }

    /// Returns the minimum budget for sorting.
    pub(super) fn least_sorting(&self) -> usize {
        // A long row is staged while the previous row is written out.
        LEAST_SORTING.saturating_add(self.long())
    }

    /// Returns the minimum budget for merging.
    pub(super) fn least_merging(&self) -> usize {
        // Runs of long rows are merged into one run before any row is written.
        LEAST_MERGING.saturating_add(self.long())
    }

    /// Returns the cost of the process with `threads` threads.
    pub(super) fn process(&self, threads: usize) -> usize {
        self.base + threads.saturating_sub(1) * THREAD_SLACK
    }

    /// Returns the cost of a decoding thread.
    pub(super) fn reader(&self) -> usize {
        let late = if self.longest > self.known { self.long() } else { 0 };
        self.reader.saturating_add(late.saturating_mul(self.copies_read))
    }

    /// Returns the cost of a sorted file that is merged while it is read: the reader, batches read
    /// ahead, and the chunk made of one batch. With long rows, one row is encoded, the previous row
    /// is kept for comparison, and under a rule one row is held back; the budget covers the chunk
    /// of one file.
    pub(super) fn file(&self) -> usize {
        let rows = self.long().saturating_mul(self.rows_of_a_file);
        self.reader().saturating_add(2 * self.batch).saturating_add(rows)
    }

    /// Returns the cost of reading by `n` threads, or of `n` files in groups.
    pub(super) fn reading(&self, n: usize) -> usize {
        let process = self.process(n) + self.exact;
        match self.way {
            Way::Unordered => process.saturating_add(n.saturating_mul(self.reader())),
            Way::Sorted => {
                let process = self.process(1) + self.exact;
                let chunks = (n - 1).saturating_mul(self.long());
                process.saturating_add(n.saturating_mul(self.file())).saturating_add(chunks)
            }
        }
    }

    /// Returns the cost of all files, read while the writers run.
    pub(super) fn all_files(&self) -> usize {
        let file = self.file().saturating_add(2 * self.long());
        self.files.saturating_mul(file)
    }

    /// Returns the bytes of record batches and of their keys, which may be all columns, from which a
    /// merge of all files has picked rows that `writers` writers have not written yet, beside the
    /// rows of their parts.
    pub(super) fn picked(&self, writers: usize) -> usize {
        let batch = self.batch.saturating_add(self.long()).saturating_mul(2);
        self.files.saturating_mul(batch).saturating_mul(writers + 1)
    }

    /// Returns the cost of a writer, of all columns at once or of one after the other.
    pub(in crate::job) fn writer(&self, in_turn: bool) -> usize {
        let Writing { together, in_turn: one, copies, copies_in_turn, .. } = self.writing;
        let (writer, copies) = if in_turn { (one, copies_in_turn) } else { (together, copies) };
        writer.saturating_add(self.long().saturating_mul(copies))
    }

    /// Returns the costs of a job that writes one of the files at a time, by the share of the largest
    /// one in all rows.
    pub(in crate::job) fn by_file(mut self, inputs: &Inputs) -> Self {
        let rows = |file: &FileInfo| file.rows.unwrap_or(0);
        let (all, most) = inputs.files().iter().fold((0, 0), |(all, most): (u64, u64), file| {
            (all.saturating_add(rows(file)), most.max(rows(file)))
        });
        let share = most as f64 / all.max(1) as f64;
        self.writing.footers = (self.writing.footers as f64 * share) as usize;
        self
    }

    /// Returns the maximum rows and row bytes of a part.
    pub(in crate::job) fn part(&self) -> (usize, usize) {
        (self.writing.part_rows, self.writing.part_bytes)
    }

    /// Returns the cost of `n` threads, each of which rewrites a sorted file. `merging` is the cost
    /// of a thread's merge, and `more` a cost of all threads together.
    pub(in crate::job) fn rewriting(
        &self,
        in_turn: bool,
        n: usize,
        merging: usize,
        more: usize,
    ) -> usize {
        // A row group may be a quarter larger than usual. The old file has a footer, too.
        let part = (self.writing.held / 4).saturating_add(2 * self.writing.footers);
        let thread = self.file().saturating_add(merging).saturating_add(part);
        self.writing(in_turn, n).saturating_add(n.saturating_mul(thread)).saturating_add(more)
    }

    /// Returns the cost of writing by `n` threads.
    pub(super) fn writing(&self, in_turn: bool, n: usize) -> usize {
        // One of several writers holds the rows of its part while it encodes them.
        let waiting = self.long().saturating_mul(self.writing.copies_held);
        let part = self.writing.held.saturating_add(BATCH_BYTES).saturating_add(waiting);
        let parts = if n > 1 { n.saturating_mul(part) } else { 0 };
        let writers = n.saturating_mul(self.writer(in_turn)).saturating_add(parts);
        self.process(n).saturating_add(self.writing.footers).saturating_add(writers)
    }
}

/// Returns the copies of a long row in addition to those of the merge and the encoder.
fn copies_of_a_long_row(arrangement: &Arrangement) -> usize {
    // The row being filled and the resulting row, each with the long values of two rows.
    let filled = if arrangement.layout.rule() == windrow::Rule::LastKnown { 4 } else { 0 };
    filled + arrangement.sifting.as_ref().map_or(0, |sifting| sifting.copies)
}

/// Returns the cost of examining rows before they are encoded: a record batch of the filtered rows,
/// the orders of the best rows and of a batch.
fn looks(inputs: &Inputs, arrangement: &Arrangement, batch: usize) -> usize {
    let filtered = if inputs.are_filtered() { batch } else { 0 };
    let best = arrangement.best.map_or(0, |rows| {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let orders = rows.saturating_mul(row_bytes(inputs, arrangement) + 64);
        batch + orders.min(MOST_BEST_BYTES)
    });
    filtered + best
}

/// Returns the costs of writing, without the record batches in work.
fn writing(
    inputs: &Inputs,
    arrangement: &Arrangement,
    schema: &SchemaRef,
    options: &OutputOptions,
) -> Writing {
    let (part_rows, part_bytes) = output::part_limits(schema, options);
    let row = row_bytes(inputs, arrangement);
    // A part has at least one slab.
    let held = part_bytes.max(BATCH_BYTES).min(most_bytes(inputs, arrangement));
    let rows = part_rows.min(held / row + 1);
    let in_turn = OutputOptions { columns_in_turn: true, ..options.clone() };
    // If both are equal, the longest row is unknown.
    let longest = Some(inputs.needs.longest_row).filter(|&longest| longest > row);
    let part = PartRows { rows, bytes: held, longest };
    // Each writer may have an upload, or the job has a single one; among many uploads one is being
    // completed.
    let upload = options.upload.map_or(0, |upload| store::upload_bytes(upload.part));
    let of_writer = if options.upload.is_some_and(|upload| upload.many) { upload } else { 0 };
    let client = if options.upload.is_some() { upload + store::CLIENT_BYTES } else { 0 };
    // The number of all rows, as far as the inputs show it.
    let lines = || inputs.text_bytes().map(|bytes| bytes / inputs.needs.row_bytes.max(1) as u64);
    let all = usize::try_from(inputs.rows().or_else(lines).unwrap_or(0)).unwrap_or(usize::MAX);
    let slab = BATCH_ROWS.min(BATCH_BYTES / row + 1);
    let parts = all / part_rows.min(part_bytes / row).max(slab) + 1;
    let footers = output::footer_bytes(schema, options, parts, all.saturating_mul(row));
    Writing {
        together: output::part_bytes(schema, options, part) + of_writer,
        in_turn: output::part_bytes(schema, &in_turn, part) + of_writer,
        copies: output::copies_of_a_long_row(schema, options),
        copies_in_turn: output::copies_of_a_long_row(schema, &in_turn),
        copies_held: output::copies_of_a_held_row(options.format),
        held,
        footers: footers.saturating_add(client),
        part_rows,
        part_bytes,
    }
}

/// Returns whether sorted files can be merged without rows.
fn by_columns(arrangement: &Arrangement, output: &Output<'_>) -> bool {
    // Arrow files show values under nulls, which rows do not keep.
    let shows_all =
        |options: &OutputOptions| matches!(options.format, Format::ArrowFile | Format::ArrowStream);
    arrangement.way == Way::Sorted
        && arrangement.sifting.is_none()
        && matches!(arrangement.finish, Finish::Log)
        && ColumnarMerge::serves(&arrangement.layout)
        && !matches!(output, Output::Written { options, .. } if shows_all(options))
}

/// Returns the mean bytes of a row, as far as the inputs show.
fn row_bytes(inputs: &Inputs, arrangement: &Arrangement) -> usize {
    let widths = arrangement.layout.schema().fields().iter();
    let least: usize = widths.map(|field| field.data_type().primitive_width().unwrap_or(1)).sum();
    arrangement.layout.stride().unwrap_or(inputs.needs.row_bytes.max(least)).max(1)
}

/// Returns the maximum bytes of all rows; `usize::MAX` if the inputs do not show it.
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

/// Returns the bytes of the fixed-width buffers of a record batch with `bytes` of rows.
fn fixed_bytes(schema: &SchemaRef, bytes: usize) -> usize {
    let kinds = || schema.fields().iter().map(|field| field.data_type());
    // A variable-length value takes at least one byte of a row.
    let least_row: usize = kinds().map(|kind| kind.primitive_width().unwrap_or(1)).sum();
    let rows = BATCH_ROWS.min(bytes / least_row.max(1) + 1);
    let place = |kind: &DataType| match kind {
        // An offset of four bytes, in a buffer that grows by doubling.
        DataType::Utf8 | DataType::Binary => 8,
        kind => kind.primitive_width().unwrap_or(16),
    };
    rows * kinds().map(place).sum::<usize>()
}
