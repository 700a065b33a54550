//! One job, from the files that go in to the file that comes out.
//!
//! ```text
//!            ingest (all threads)                       emit (all threads)
//! inputs --> units --> decode, transform, encode,  -->  merge a part --> decode, encode --> append
//!                      sort, spill                      (one at a time)                     (in order)
//! ```
//!
//! A verb says what to arrange ([`Arrangement`]); the plan says with how many threads and in how
//! much memory; ingest and emit do it. Nothing here depends on which thread does what: rows carry
//! their place in the input, and parts their place in the output.

mod cut;
mod decode;
mod emit;
mod file_rows;
mod finish;
mod ingest;
mod interrupt;
mod plan;
mod report;
mod sampling;
mod source;
mod tidy;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use windrow::{Batch, Batcher, Budget, Codec, Column, Finish, Layout, Pool, PoolOptions, SpillTo};

use cut::Cutter;
use decode::RowDecoder;
use finish::{Files, Out, Spread};
pub(crate) use interrupt::{check as check_interrupt, install as install_interrupt};
pub(crate) use plan::Plan;
use report::Phase;
pub(crate) use report::{Reporter, say};
pub(crate) use tidy::{room_for, tidy};

use crate::args::{self, SpillCompression};
use crate::error::{CliError, Result};
use crate::format::Format;
use crate::input::SortColumn;
use crate::input::{CsvOptions, InputOptions, Inputs};
use crate::output::{self, AtomicDirectory, Contents, OutputOptions, Target};
use crate::partition::Partitioning;
use crate::size::Size;
use crate::system;

/// What becomes of a record batch before it is arranged: its change-log format is resolved, rows
/// that do not count are dropped.
/// It also gets the place in the input of its first row, for messages.
pub(crate) type Transform = Box<dyn Fn(&RecordBatch, u64) -> Result<RecordBatch> + Send + Sync>;

/// How rows reach the arrangement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// In any order: sorted here.
    Unordered,
    /// Every file is sorted: merged as it is read.
    Sorted,
}

/// What a verb wants done.
pub(crate) struct Arrangement {
    pub(crate) way: Way,
    pub(crate) layout: Layout,
    pub(crate) transform: Option<Transform>,
    pub(crate) finish: Finish,
    /// Columns of the layout's schema to write, in this order.
    pub(crate) projection: Vec<usize>,
    /// Columns of the inputs in which a null is an error: diffs and their times.
    pub(crate) required: Vec<usize>,
}

/// The inputs that the arguments name.
pub(crate) fn open_inputs(input: &args::Input, temp: Option<&args::Limits>) -> Result<Inputs> {
    let options = input_options(input, temp)?;
    let sources = crate::input::expand(&input.files)?;
    Inputs::open(&sources, &options)
}

/// How inputs are read.
pub(crate) fn input_options(
    input: &args::Input,
    limits: Option<&args::Limits>,
) -> Result<InputOptions> {
    let schema = input.schema.as_deref().map(crate::input::parse_schema).transpose()?;
    for directory in limits.iter().flat_map(|limits| &limits.temp_dir) {
        if !directory.is_dir() {
            return Err(CliError::Usage(format!(
                "--temp-dir: there is no directory {}; create it first",
                directory.display()
            )));
        }
    }
    let delimiter = u8::try_from(input.csv_delimiter)
        .ok()
        .filter(|byte| byte.is_ascii() && !b"\"\r\n".contains(byte))
        .ok_or_else(|| {
            CliError::Usage(
                "--csv-delimiter takes one ASCII character that is no quote and ends no line"
                    .to_owned(),
            )
        })?;
    Ok(InputOptions {
        format: input.input_format,
        schema,
        batch_rows: plan::BATCH_ROWS,
        csv: CsvOptions { delimiter, has_header: !input.csv_no_header },
        temp_dir: limits.and_then(|limits| limits.temp_dir.first().cloned()),
        temp_bytes: limits.and_then(|limits| limits.max_temp_size).map_or(u64::MAX, |size| size.0),
    })
}

/// Does what `arrangement` says with `inputs`.
pub(crate) fn run(
    inputs: Inputs,
    arrangement: &Arrangement,
    output: &args::Output,
    limits: &args::Limits,
    report: &args::Report,
) -> Result<()> {
    let target = Target::of(&output.output);
    let named = match &target {
        Target::File(path) => Format::of_path(path),
        Target::Within(_) | Target::Stdout => None,
    };
    let format = output.output_format.or(named).ok_or_else(|| {
        CliError::Usage(format!(
            "the format of {} is not told by its extension; name it with --output-format",
            output.output.display()
        ))
    })?;
    let mut csv = inputs.csv();
    if let Target::File(path) = &target {
        csv.delimiter = csv.delimiter_of(path);
    }
    let sorting = sorting(&arrangement.layout);
    let options = output_options(format, output, sorting, csv, &inputs)?;
    let to = Destination { target, options, partitioning: None };
    run_to(inputs, arrangement, to, output.row_group_size, limits, report)
}

/// Does what `arrangement` says with `inputs`, and writes a file for every partition.
pub(crate) fn partition(
    inputs: Inputs,
    arrangement: &Arrangement,
    partitioning: &Partitioning,
    format: Format,
    output: &args::Output,
    limits: &args::Limits,
    report: &args::Report,
) -> Result<()> {
    let sorting = sort_columns(&partitioning.sorting);
    let options = output_options(format, output, sorting, inputs.csv(), &inputs)?;
    let target = Target::File(output.output.clone());
    let to = Destination { target, options, partitioning: Some(partitioning) };
    run_to(inputs, arrangement, to, output.row_group_size, limits, report)
}

/// Where the output goes: to a file, or to those of a directory.
struct Destination<'a> {
    target: Target,
    options: OutputOptions,
    partitioning: Option<&'a Partitioning>,
}

impl Destination<'_> {
    /// Refuses what cannot be written, before there is anything to write.
    fn check(&self, schema: &SchemaRef) -> Result<()> {
        match (&self.target, self.partitioning) {
            (Target::File(directory), Some(_)) => {
                AtomicDirectory::check(directory)?;
                output::check(&Target::File("/dev/null".into()), schema, &self.options)
            }
            (target, _) => output::check(target, schema, &self.options),
        }
    }
}

fn run_to(
    inputs: Inputs,
    arrangement: &Arrangement,
    mut to: Destination<'_>,
    row_group_size: Size,
    limits: &args::Limits,
    report: &args::Report,
) -> Result<()> {
    let mut decoder = RowDecoder::new(arrangement)?;
    output::check_columns(decoder.schema(), to.options.format)?;
    let inputs = Arc::new(inputs);
    let schema = decoder.schema();
    let plan = Plan::make(&inputs, arrangement, schema, &to.options, row_group_size, limits)?;
    to.options.columns_in_turn = plan.columns_in_turn;
    if report.explain {
        let mut text = plan.explain(&inputs, arrangement, &to.options, &to.target, limits);
        if let Some(partitioning) = to.partitioning {
            text += &format!("{:<14} {partitioning}\n", "partitions");
        }
        return crate::print(text.as_bytes());
    }
    report::check(report, &inputs, &to.target)?;
    to.check(decoder.schema())?;
    if let Some(limit) = plan.limit {
        tidy::below(limit);
    }
    let reporter = Reporter::new(&inputs, plan.limit, report);
    let pool = Pool::new(Budget::bytes(plan.ingest_budget), pool_options(limits, &inputs))?;
    reporter.watch(&pool);
    if let Some(ids) = to.partitioning.and_then(|partitioning| partitioning.ids.as_deref()) {
        reporter.enter(Phase::Read);
        sampling::sample(&inputs, ids, plan.readers)?;
    }
    let batch = match arrangement.way {
        Way::Unordered => {
            reporter.enter(Phase::Read);
            let batcher = Batcher::new(&arrangement.layout, &pool);
            ingest::ingest(&inputs, arrangement, &batcher, plan.readers, &reporter)?;
            reporter.enter(Phase::Settle);
            room_for(plan.writing_bytes());
            pool.budget().set_limit(plan.settle_budget);
            batcher.finish()?
        }
        Way::Sorted => ingest::merge(&inputs, arrangement, &pool, &plan, &reporter)
            .map_err(|error| error.named(inputs.files().iter().map(|file| &*file.name)))?,
    };
    reporter.enter(Phase::Write);
    write(batch, arrangement, &to, &plan, &mut decoder, &reporter)
        .map_err(|error| error.named(inputs.files().iter().map(|file| &*file.name)))?;
    reporter.finish(&pool, report)
}

fn write(
    batch: Batch,
    arrangement: &Arrangement,
    to: &Destination<'_>,
    plan: &Plan,
    decoder: &mut RowDecoder,
    reporter: &Reporter,
) -> Result<()> {
    reporter.set_runs(batch.runs());
    let limits = (plan.part_rows, plan.part_bytes);
    let mut slabs = batch.slabs(arrangement.finish);
    let first = slabs.next(plan::BATCH_ROWS, plan::BATCH_BYTES)?;
    let options = &to.options;
    let (Target::File(directory), Some(partitioning)) = (&to.target, to.partitioning) else {
        let sample = match &first {
            Some(slab) => decoder.decode(slab)?,
            None => RecordBatch::new_empty(Arc::clone(decoder.schema())),
        };
        let (encoder, appender) = output::open(&to.target, decoder.schema(), &sample, options)?;
        drop(sample);
        room_for(plan.writing_bytes());
        let cutter = Cutter::one(cut::Rows { slabs, first }, limits, encoder);
        let out = Out::one(appender);
        let (written, _) = emit::emit(cutter, out, arrangement, None, plan.writers, reporter)?;
        reporter.written(written, None);
        return Ok(());
    };
    let directory = AtomicDirectory::create(directory)?;
    let rows = cut::Rows { slabs, first };
    let cutter = Cutter::many(rows, limits, partitioning, options, directory.path());
    let out = Out::many(Files {
        partitioning,
        options,
        schema: decoder.schema(),
        directory: directory.path(),
        next: 0,
        empty: None,
        spread: Spread::default(),
    });
    // Each writer has a file open at the most, and one is being finished.
    let allowed = system::open_files().saturating_sub(plan::OTHER_FILES).max(1);
    let writers = plan.writers.min(allowed);
    let (written, spread) =
        emit::emit(cutter, out, arrangement, to.partitioning, writers, reporter)?;
    let files = spread.map_or(0, |spread| spread.files);
    directory.commit(Contents { files, bytes: written.bytes })?;
    reporter.written(written, spread);
    Ok(())
}

fn pool_options(limits: &args::Limits, inputs: &Inputs) -> PoolOptions {
    PoolOptions {
        directories: limits.temp_dir.clone(),
        max_temp_bytes: limits
            .max_temp_size
            .map_or(u64::MAX, |size| size.0.saturating_sub(inputs.temp_bytes())),
        codec: match limits.spill_compression {
            SpillCompression::None => Codec::None,
            SpillCompression::Lz4 => Codec::Lz4,
            SpillCompression::Zstd => Codec::Zstd,
        },
        spill_to: match limits.spill_to {
            args::SpillTo::Disk => SpillTo::Disk,
            args::SpillTo::Memory => SpillTo::Memory,
        },
        direct_io: limits.spill_direct,
        ..PoolOptions::default()
    }
}

fn output_options(
    format: Format,
    output: &args::Output,
    sorting: Vec<SortColumn>,
    csv: CsvOptions,
    inputs: &Inputs,
) -> Result<OutputOptions> {
    /// A page has a header, a row group a footer's worth of figures for every column: smaller ones are
    /// mostly those.
    const LEAST: [(&str, u64); 2] = [("--page-size", 4 << 10), ("--row-group-size", 64 << 10)];
    let given = [output.page_size, output.row_group_size];
    if let Some((Size(size), (option, least))) =
        given.into_iter().zip(LEAST).find(|(Size(size), (_, least))| size < least)
    {
        let least = Size(least);
        return Err(CliError::Usage(format!("{option} {size}: takes {least} at the least")));
    }
    Ok(OutputOptions {
        format,
        compression: output.compression,
        sorting,
        page_bytes: usize::try_from(output.page_size.0).unwrap_or(usize::MAX),
        statistics: !output.no_statistics,
        columns_in_turn: false,
        long_rows: inputs.row_bytes() >= output::LONG_ROW,
        csv_delimiter: csv.delimiter,
        csv_header: csv.has_header,
    })
}

/// The order of rows that are arranged by `layout`.
fn sorting(layout: &Layout) -> Vec<SortColumn> {
    let mut sorting = sort_columns(layout.order());
    if layout.rule() != windrow::Rule::Keep {
        // Within a key there is one row: the columns that chose it order nothing.
        sorting.truncate(layout.key().count());
    }
    sorting
}

fn sort_columns(columns: &[Column]) -> Vec<SortColumn> {
    let column = |column: &Column| SortColumn {
        name: column.name.clone(),
        descending: column.descending,
        nulls_first: column.nulls_first,
    };
    columns.iter().map(column).collect()
}
