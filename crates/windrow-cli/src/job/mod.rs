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

mod emit;
mod file_rows;
mod ingest;
mod interrupt;
mod plan;
mod report;
mod source;

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use windrow::{Batch, Batcher, Budget, Codec, Decoder, Finish, Layout, Pool, PoolOptions, SpillTo};

pub(crate) use interrupt::{check as check_interrupt, install as install_interrupt};
pub(crate) use plan::Plan;
use report::Phase;
pub(crate) use report::{Reporter, say};

use crate::args::{self, SpillCompression};
use crate::error::{CliError, Result};
use crate::format::Format;
use crate::input::SortColumn;
use crate::input::{CsvOptions, InputOptions, Inputs};
use crate::output::{self, OutputOptions, Target};

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
        .map_err(|_| CliError::Usage("--csv-delimiter takes one ASCII character".to_owned()))?;
    Ok(InputOptions {
        format: input.input_format,
        schema,
        batch_rows: plan::BATCH_ROWS,
        csv: CsvOptions { delimiter, has_header: !input.csv_no_header },
        temp_dir: limits.and_then(|limits| limits.temp_dir.first().cloned()),
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
    let options = output_options(&target, output, arrangement, inputs.csv())?;
    let mut decoder = Decoder::new(&arrangement.layout, &arrangement.projection)?;
    output::check_columns(decoder.schema(), options.format)?;
    let inputs = Arc::new(inputs);
    let plan = Plan::make(
        &inputs,
        arrangement,
        decoder.schema(),
        &options,
        output.row_group_size,
        limits,
    )?;
    if report.explain {
        let text = plan.explain(&inputs, arrangement, &options, &target);
        return crate::print(text.as_bytes());
    }
    report::check(report, &inputs, &target)?;
    output::check(&target, decoder.schema(), &options)?;
    let reporter = Reporter::new(&inputs, plan.limit, report);
    let pool = Pool::new(Budget::bytes(plan.ingest_budget), pool_options(limits))?;
    reporter.watch(&pool);
    let batch = match arrangement.way {
        Way::Unordered => {
            reporter.enter(Phase::Read);
            let batcher = Batcher::new(&arrangement.layout, &pool);
            ingest::ingest(&inputs, arrangement, &batcher, plan.readers, &reporter)?;
            reporter.enter(Phase::Settle);
            pool.budget().set_limit(plan.settle_budget);
            batcher.finish()?
        }
        Way::Sorted => ingest::merge(&inputs, arrangement, &pool, &plan, &reporter)
            .map_err(|error| error.named(inputs.files().iter().map(|file| &*file.name)))?,
    };
    reporter.enter(Phase::Write);
    write(batch, arrangement, &target, &options, &plan, &mut decoder, &reporter)
        .map_err(|error| error.named(inputs.files().iter().map(|file| &*file.name)))?;
    reporter.finish(&pool, report)
}

fn write(
    batch: Batch,
    arrangement: &Arrangement,
    target: &Target,
    options: &OutputOptions,
    plan: &Plan,
    decoder: &mut Decoder,
    reporter: &Reporter,
) -> Result<()> {
    reporter.set_runs(batch.runs());
    let mut slabs = batch.slabs(arrangement.finish);
    let first = slabs.next(plan::BATCH_ROWS, plan::BATCH_BYTES)?;
    let sample = match &first {
        Some(slab) => decoder.decode(slab)?,
        None => RecordBatch::new_empty(Arc::clone(decoder.schema())),
    };
    let (encoder, appender) = output::open(target, decoder.schema(), &sample, options)?;
    drop(sample);
    let written = emit::emit(
        emit::Rows { slabs, first },
        arrangement,
        plan,
        encoder.as_ref(),
        appender,
        reporter,
    )?;
    reporter.written(written.rows, written.bytes);
    Ok(())
}

fn pool_options(limits: &args::Limits) -> PoolOptions {
    PoolOptions {
        directories: limits.temp_dir.clone(),
        max_temp_bytes: limits.max_temp_size.map_or(u64::MAX, |size| size.0),
        codec: match limits.spill_compression {
            SpillCompression::None => Codec::None,
            SpillCompression::Lz4 => Codec::Lz4,
            SpillCompression::Zstd => Codec::Zstd,
        },
        spill_to: match limits.spill_to {
            args::SpillTo::Disk => SpillTo::Disk,
            args::SpillTo::Memory => SpillTo::Memory,
        },
    }
}

fn output_options(
    target: &Target,
    output: &args::Output,
    arrangement: &Arrangement,
    csv: CsvOptions,
) -> Result<OutputOptions> {
    let named = match target {
        Target::File(path) => Format::of_path(path),
        Target::Stdout => None,
    };
    let format = output.output_format.or(named).ok_or_else(|| {
        CliError::Usage(format!(
            "the format of {} is not told by its extension; name it with --output-format",
            output.output.display()
        ))
    })?;
    let sorting = arrangement.layout.order().iter().map(|column| SortColumn {
        name: column.name.clone(),
        descending: column.descending,
        nulls_first: column.nulls_first,
    });
    let keyed = arrangement.layout.rule() != windrow::Rule::Keep;
    let keys = arrangement.layout.key().count();
    Ok(OutputOptions {
        format,
        compression: output.compression,
        // Within a key there is one row: the columns that chose it order nothing.
        sorting: if keyed { sorting.take(keys).collect() } else { sorting.collect() },
        page_bytes: usize::try_from(output.page_size.0).unwrap_or(usize::MAX),
        statistics: !output.no_statistics,
        csv_delimiter: match target {
            Target::File(path) => csv.delimiter_of(path),
            Target::Stdout => csv.delimiter,
        },
        csv_header: csv.has_header,
        ..OutputOptions::new(format)
    })
}
