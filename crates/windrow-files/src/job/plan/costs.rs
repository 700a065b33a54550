//! What a job takes, before anybody decides how it is done: per process, reader, file, writer and long row.
//!
//! ```text
//! Inputs, Arrangement, Output --of--> Costs --Plan::choose--> Plan
//!                                       ^
//!                        longer(row) ---/   a row that was met is longer than all that were known
//! ```
//! All of it is in bytes. Nothing here looks at the limit.

use arrow_schema::{DataType, SchemaRef};
use windrow::Codec;

use super::super::best::MOST_BYTES as MOST_BEST_BYTES;
use super::{BATCH_BYTES, BATCH_ROWS, MOST_FILES, OTHER_FILES, SIFTED_BYTES};
use crate::format::Format;
use crate::input::{FileInfo, Inputs};
use crate::output::{self, OutputOptions};
use crate::store;
use crate::system;
use crate::verbs::{Arrangement, Way};

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
/// A row of this length is a part of what is needed to sort it and to write it.
const NOTABLE_ROW: usize = 64 << 10;
/// What is resident before anything is planned differs by some pages from run to run.
const RESIDENT_SWAY: usize = 256 << 10;
/// Of code and constants it differs by more, as it depends on where they are mapped how many pages of the cache
/// come at once: of a binary that was copied 13.5 to 14.8 MiB were seen. Counts as far as that passes [`CODE`].
const CODE_SWAY: usize = 1536 << 10;
/// An array beside its values.
const ARRAY_BYTES: usize = 512;
/// What zstd takes beside its buffers to compress a chunk.
const SPILL_CONTEXT: usize = 640 << 10;
/// Allocator slack and stack of each thread more.
const THREAD_SLACK: usize = 2 << 20;
/// Bytes of rows that sorting must be able to hold, for runs to be longer than a few chunks.
const LEAST_SORTING: usize = 8 << 20;
/// Bytes that the last merge must have, for it to take some dozen runs.
const LEAST_MERGING: usize = 4 << 20;

/// What becomes of the sorted rows.
pub(in crate::job) enum Output<'a> {
    /// They are written, in parts of so many bytes.
    Written { schema: &'a SchemaRef, options: &'a OutputOptions, row_group_bytes: usize },
    /// The caller takes them, as record batches of this schema.
    Taken { schema: &'a SchemaRef },
}

/// What writing takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::job) struct Writing {
    /// An encoder of all columns at once, and one of a column after the other.
    pub(super) together: usize,
    pub(super) in_turn: usize,
    /// Times that a long row is there while it is encoded either way, and as a part that waits.
    pub(super) copies: usize,
    pub(super) copies_in_turn: usize,
    pub(super) copies_held: usize,
    /// The rows of a part.
    pub(super) held: usize,
    pub(super) footers: usize,
    pub(super) part_rows: usize,
    pub(super) part_bytes: usize,
}

/// What a job takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::job) struct Costs {
    pub(super) way: Way,
    /// The process, in any phase, with one thread.
    pub(super) base: usize,
    /// What the process may have more of the next time.
    pub(super) sway: usize,
    /// More, while reading.
    pub(super) exact: usize,
    /// A reader, with the rows that were known.
    pub(super) reader: usize,
    /// A record batch.
    pub(super) batch: usize,
    pub(super) files: usize,
    /// Files that the system lets be open.
    pub(super) allowed: usize,
    /// Rows of a file that a merge has as rows: one, the one before it, and under a rule one that is held back.
    pub(super) rows_of_a_file: usize,
    pub(super) writing: Writing,
    /// Bytes of the longest row, in Arrow; and of the longest that `reader` has in it.
    pub(super) longest: usize,
    pub(super) known: usize,
    /// Times that a reader has a longer one.
    pub(super) copies_read: usize,
    /// How much longer a row can be in the engine.
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
        // Whoever spills has a context of its own, and so has the spill thread.
        let spilling = match codec {
            Codec::Zstd => (threads + 1) * SPILL_CONTEXT,
            Codec::None | Codec::Lz4 => 0,
        };
        // What opening the inputs has freed is there for the job.
        windrow::give_back_free_blocks();
        let (own, of_files) = system::resident();
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
        let code = bytes(of_files).max(CODE);
        let sway = RESIDENT_SWAY + (bytes(of_files) + CODE_SWAY).saturating_sub(code);
        let is_parquet = matches!(
            output,
            Output::Written { options, .. } if options.format == Format::Parquet
        );
        let tight = if arrangement.way == Way::Sorted || !is_parquet { TIGHT } else { 0 };
        let is_arrow =
            |file: &FileInfo| matches!(file.format, Format::ArrowFile | Format::ArrowStream);
        let has_arrow = inputs.files().iter().any(is_arrow);
        let schema = arrangement.layout.schema();
        let arrays = schema.fields().len() * ARRAY_BYTES;
        let batch_of = |bytes: usize| bytes + fixed_bytes(schema, bytes) + arrays;
        let batch = batch_of(BATCH_BYTES);
        let mut writing = match output {
            Output::Written { schema, options, row_group_bytes } => {
                let parts = output::part_limits(schema, options, *row_group_bytes);
                writing(inputs, arrangement, schema, options, parts)
            }
            // The array; and of threads that decode ahead each has a slab, one array in hand and one that waits.
            Output::Taken { .. } => {
                Writing { copies: 1, copies_in_turn: 1, copies_held: 2, ..Writing::default() }
            }
        };
        let mut written = batch;
        if arrangement.sifting.is_some() {
            // What a sift is given and what it leaves, while both are there, on the thread that merges.
            written = batch_of(SIFTED_BYTES);
            writing.footers = writing.footers.saturating_add(3 * written);
        }
        let copies = copies_of_a_long_row(arrangement);
        (writing.copies, writing.copies_in_turn) =
            (writing.copies + copies, writing.copies_in_turn + copies);
        if matches!(output, Output::Written { options, .. } if options.max_file_bytes.is_some()) {
            // The head of the output, by which all files are encoded, and a slab that two of them share.
            writing.footers = writing.footers.saturating_add(2 * batch);
        }
        writing.together = writing.together.saturating_add(2 * written);
        writing.in_turn = writing.in_turn.saturating_add(2 * written + (TIGHT - tight));
        let (Output::Written { schema, .. } | Output::Taken { schema }) = output;
        let least = row_bytes(inputs, arrangement);
        let longest = inputs.needs().longest_row.max(least);
        Self {
            way: arrangement.way,
            base: bytes(own) + code + tight + SLACK + spilling,
            sway,
            exact: if has_arrow { EXACT + (TIGHT - tight) } else { 0 },
            reader: inputs.needs().reader_bytes + 2 * batch + looks(inputs, arrangement, batch),
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
            copies_read: inputs.needs().copies,
            stretch: lists_stretch(schema),
        }
    }

    /// The same with a row of so many bytes in Arrow.
    pub(in crate::job) fn longer(&self, row: usize) -> Self {
        Self { longest: self.longest.max(row), ..self.clone() }
    }

    /// Bytes of a row that none is planned to be longer than.
    pub(in crate::job) fn longest(&self) -> usize {
        self.longest.max(NOTABLE_ROW)
    }

    /// A long row in the engine; nothing if all are short.
    pub(super) fn long(&self) -> usize {
        match self.longest >= NOTABLE_ROW {
            true => self.longest.saturating_mul(self.stretch),
            false => 0,
        }
    }

    /// Bytes that sorting must have.
    pub(super) fn least_sorting(&self) -> usize {
        // Of long rows one is staged, when the one before it is written out.
        LEAST_SORTING.saturating_add(self.long())
    }

    /// Bytes that merging must have.
    pub(super) fn least_merging(&self) -> usize {
        // Runs of long rows are merged into one before anything is written.
        LEAST_MERGING.saturating_add(self.long())
    }

    /// The most rows and row bytes of a part.
    pub(super) fn part(&self) -> (usize, usize) {
        (self.writing.part_rows, self.writing.part_bytes)
    }

    /// The process, with so many threads.
    pub(super) fn process(&self, threads: usize) -> usize {
        self.base + threads.saturating_sub(1) * THREAD_SLACK
    }

    /// A thread that decodes.
    pub(super) fn reader(&self) -> usize {
        let late = if self.longest > self.known { self.long() } else { 0 };
        self.reader.saturating_add(late.saturating_mul(self.copies_read))
    }

    /// A sorted file that is merged as it is read: its reader, batches read ahead, the chunk made of one. Of long
    /// rows one is encoded, the one before it is compared to it, and under a rule one is held back; the budget
    /// has the chunk of one file.
    pub(super) fn file(&self) -> usize {
        let rows = self.long().saturating_mul(self.rows_of_a_file);
        self.reader().saturating_add(2 * self.batch).saturating_add(rows)
    }

    /// Reading by so many threads, or so many files in groups.
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

    /// All files, read beside the writers.
    pub(super) fn all_files(&self) -> usize {
        let file = self.file().saturating_add(2 * self.long());
        self.files.saturating_mul(file)
    }

    /// A writer of all columns at once, or of one after the other.
    pub(super) fn writer(&self, in_turn: bool) -> usize {
        let Writing { together, in_turn: one, copies, copies_in_turn, .. } = self.writing;
        let (writer, copies) = if in_turn { (one, copies_in_turn) } else { (together, copies) };
        writer.saturating_add(self.long().saturating_mul(copies))
    }

    /// Writing by so many threads.
    pub(super) fn writing(&self, in_turn: bool, n: usize) -> usize {
        // A writer that is not alone holds the rows of its part while it encodes them.
        let waiting = self.long().saturating_mul(self.writing.copies_held);
        let part = self.writing.held.saturating_add(BATCH_BYTES).saturating_add(waiting);
        let parts = if n > 1 { n.saturating_mul(part) } else { 0 };
        let writers = n.saturating_mul(self.writer(in_turn)).saturating_add(parts);
        self.process(n).saturating_add(self.writing.footers).saturating_add(writers)
    }
}

/// Times that a long row is there beside the merge and what is written.
fn copies_of_a_long_row(arrangement: &Arrangement) -> usize {
    // A row that is filled and what it is filled to, each of the long values of two.
    let filled = if arrangement.layout.rule() == windrow::Rule::LastKnown { 4 } else { 0 };
    filled + arrangement.sifting.as_ref().map_or(0, |sifting| sifting.copies)
}

/// What a reader takes to look at rows before they are rows: a record batch of those that count, the orders of the
/// best and of a batch.
fn looks(inputs: &Inputs, arrangement: &Arrangement, batch: usize) -> usize {
    let filtered = if inputs.are_filtered() { batch } else { 0 };
    let best = arrangement.best.map_or(0, |rows| {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let orders = rows.saturating_mul(row_bytes(inputs, arrangement) + 64);
        batch + orders.min(MOST_BEST_BYTES)
    });
    filtered + best
}

/// What an output of files takes, without the record batches at hand.
fn writing(
    inputs: &Inputs,
    arrangement: &Arrangement,
    schema: &SchemaRef,
    options: &OutputOptions,
    (part_rows, part_bytes): (usize, usize),
) -> Writing {
    let row = row_bytes(inputs, arrangement);
    // A part has a slab at the least.
    let held = part_bytes.max(BATCH_BYTES).min(most_bytes(inputs, arrangement));
    let rows = part_rows.min(held / row + 1);
    let in_turn = OutputOptions { columns_in_turn: true, ..options.clone() };
    // Where it is the mean, nothing is known.
    let longest = Some(inputs.needs().longest_row).filter(|&longest| longest > row);
    // Each writer has an upload, or there is one; and one of many is being finished.
    let upload = options.upload.map_or(0, |upload| store::upload_bytes(upload.part));
    let of_writer = if options.upload.is_some_and(|upload| upload.many) { upload } else { 0 };
    let client = if options.upload.is_some() { upload + store::CLIENT_BYTES } else { 0 };
    let footers = footers(inputs, arrangement, schema, options, (part_rows, part_bytes));
    Writing {
        together: output::part_bytes(schema, options, rows, held, longest) + of_writer,
        in_turn: output::part_bytes(schema, &in_turn, rows, held, longest) + of_writer,
        copies: output::copies_of_a_long_row(schema, options),
        copies_in_turn: output::copies_of_a_long_row(schema, &in_turn),
        copies_held: output::copies_of_a_held_row(options.format),
        held,
        footers: footers.saturating_add(client),
        part_rows,
        part_bytes,
    }
}

/// Bytes of a row, as far as the inputs tell.
fn row_bytes(inputs: &Inputs, arrangement: &Arrangement) -> usize {
    let widths = arrangement.layout.schema().fields().iter();
    let least: usize = widths.map(|field| field.data_type().primitive_width().unwrap_or(1)).sum();
    arrangement.layout.stride().unwrap_or(inputs.needs().row_bytes.max(least)).max(1)
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
    let lines = || inputs.text_bytes().map(|bytes| bytes / inputs.needs().row_bytes.max(1) as u64);
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

/// Bytes of the fixed-width part of a record batch that ends at so many bytes of rows.
fn fixed_bytes(schema: &SchemaRef, bytes: usize) -> usize {
    let kinds = || schema.fields().iter().map(|field| field.data_type());
    // A varying value takes a byte of a row at the least.
    let least_row: usize = kinds().map(|kind| kind.primitive_width().unwrap_or(1)).sum();
    let rows = BATCH_ROWS.min(bytes / least_row.max(1) + 1);
    let place = |kind: &DataType| match kind {
        // An offset of four bytes, in a buffer that grows by doubling.
        DataType::Utf8 | DataType::Binary => 8,
        kind => kind.primitive_width().unwrap_or(16),
    };
    rows * kinds().map(place).sum::<usize>()
}
