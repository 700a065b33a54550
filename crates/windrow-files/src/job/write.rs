//! Jobs with an output file, or a directory of output files.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::arrange::Arranged;
use super::cut::{ByName, CutFiles, Cutter};
use super::decode::RowDecoder;
use super::emit::emit;
use super::finish::{Files, Out, OutFiles};
use super::in_order::may_be_in_order;
use super::pass::Passage;
use super::plan::{Output, Plan, Planned};
use super::rows::Rows;
use super::running::{Job, Running};
use super::sized::{Edges, SizedFiles};
use super::{plan, sized};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::output::{
    self, Compression, Contents, Destination, Directory, OutputOptions, Target, Uploads,
    WriteOptions, Written,
};
use crate::partition::Partitioning;
use crate::progress::Phase;
use crate::settings::{Existing, Format, Setting};
use crate::stats::{Spread, Stats};
use crate::store;
use crate::system;
use crate::verbs::{Way, sort_columns};

/// A planned output: its columns, options and memory plan.
pub(super) struct Outlined {
    pub(super) decoder: RowDecoder,
    pub(super) options: OutputOptions,
    pub(super) planned: Planned,
}

impl Outlined {
    pub(super) fn of(
        job: &Job,
        target: &Target,
        write: &WriteOptions,
        limits: &Limits,
    ) -> Result<Self> {
        limits.check()?;
        if let Target::Path(path) = target {
            job.inputs.refuse_output(path, is_many(job, write))?;
        }
        let decoder = RowDecoder::new(&job.arrangement)?;
        let mut options = options(job, target, write)?;
        options.stores = job.inputs.stores.clone();
        options.upload = uploads(job, target, limits)?;
        output::check_columns(&decoder.schema, options.format)?;
        let output = Output::Written { schema: &decoder.schema, options: &options };
        let planned = Planned::of(&job.inputs, &job.arrangement, &output, limits)?;
        Ok(Self { decoder, options, planned })
    }
}

/// Returns true if the output is a directory of files.
fn is_many(job: &Job, write: &WriteOptions) -> bool {
    job.partitioning.is_some() || write.max_file_bytes.is_some()
}

/// Returns the options for the output of `job`.
fn options(job: &Job, target: &Target, write: &WriteOptions) -> Result<OutputOptions> {
    let mut csv = write.csv.as_ref().unwrap_or(&job.inputs.csv).clone();
    let told = write.csv.is_none().then(|| job.inputs.told_delimiter()).flatten();
    let row_bytes = job.inputs.needs.row_bytes;
    let is_many = is_many(job, write);
    let is_hive = job.partitioning.as_ref().is_some_and(|partitioning| partitioning.ids.is_none());
    let needed = match write.existing {
        Existing::Error => None,
        // A single file is always replaced.
        _ if !is_many => Some(Setting::MaxFileSize),
        Existing::ReplacePartitions => Some(Setting::Hive).filter(|_| !is_hive),
        _ => None,
    };
    if let Some(needed) = needed {
        let message = format!("{} {} needs {needed}", Setting::IfExists, write.existing);
        return Err(Error::usage(message));
    }
    let sorting = match (&job.partitioning, write.max_file_bytes) {
        (Some(partitioning), None) => sort_columns(&partitioning.sorting),
        (Some(_), Some(_)) => {
            return Err(Error::usage(format!(
                "{}: partitions are files of their own, of any size",
                Setting::MaxFileSize
            )));
        }
        (None, _) => job.arrangement.sorting(),
    };
    let usual = match target {
        Target::Stdout if is_many => {
            return Err(Error::usage(
                "the output is many files: name a directory, and not standard output",
            ));
        }
        _ if is_many => Some(Format::Parquet),
        Target::Path(path) => {
            csv = csv.known_of(Some(path));
            Format::of_path(path)
        }
        Target::Stdout => None,
    };
    csv.delimiter = csv.delimiter.or(told);
    let format = write.format.or(usual).ok_or_else(|| {
        Error::usage(format!(
            "the format of {target} is not told by its extension; name it with `output_format`"
        ))
    })?;
    let mut options = write.bind(format, sorting, csv, row_bytes)?;
    if let (Target::Path(path), false) = (target, is_many) {
        options.write.compression = Compression::of_name(path, format, options.write.compression)?;
    }
    Ok(options)
}

/// Returns the settings of uploads, if the output goes to a store.
fn uploads(job: &Job, target: &Target, limits: &Limits) -> Result<Option<Uploads>> {
    match target {
        Target::Path(path) if store::is_far(path) => {
            let part = store::part_bytes(job.inputs.bytes(), limits.memory_bytes()?);
            Ok(Some(Uploads { part, many: job.partitioning.is_some() }))
        }
        _ => Ok(None),
    }
}

/// Returns true if the inputs have Bloom filters but the output, in the same format, has none.
pub(super) fn drops_bloom_filters(job: &Job, options: &OutputOptions) -> bool {
    options.format == Format::Parquet && job.inputs.have_bloom_filters()
}

/// Refuses an unwritable target before any row is read.
fn check(job: &Job, target: &Target, schema: &SchemaRef, options: &OutputOptions) -> Result<()> {
    match (target, job.partitioning.is_some() || options.write.max_file_bytes.is_some()) {
        (Target::Path(directory), true) => {
            output::check(&Destination::Path("/dev/null".into()), schema, options)?;
            Directory::check(directory, options)
        }
        (Target::Path(path), false) if store::is_far(path) => {
            output::check(&target.into(), schema, options)?;
            options.stores.probe(path, &options.watch.cancel)
        }
        _ => output::check(&target.into(), schema, options),
    }
}

impl Job {
    /// Runs the job and writes to `target`, which appears complete or not at all.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind). A failed job leaves nothing behind, except bytes
    /// already taken by a pipe or a device.
    pub fn write(
        mut self,
        target: &Target,
        write: &WriteOptions,
        limits: &Limits,
    ) -> Result<Stats> {
        let began = Instant::now();
        if output::can_be_taken_back(&target.into()) && self.may_be_merged()? {
            self.arrangement.way = Way::Sorted;
            let outlined = Outlined::of(&self, target, write, limits);
            if let Some(outlined) = outlined.ok().filter(|all| all.planned.plan.direct) {
                match self.run(outlined, target, limits, began) {
                    // The footers were wrong, or a row is long. The sort meets all other faults, too.
                    Err(error) if is_of_rows(&error) => {}
                    done => return done,
                }
                windrow::give_back_free_blocks();
            }
            self.arrangement.way = Way::Unordered;
        }
        let outlined = Outlined::of(&self, target, write, limits)?;
        self.run(outlined, target, limits, began)
    }

    /// Returns true if the inputs are probably sorted, so that a merge of them gives the result.
    fn may_be_merged(&self) -> Result<bool> {
        let Self { inputs, arrangement, partitioning, .. } = self;
        let files = inputs.files().len();
        let is_plain = arrangement.way == Way::Unordered
            && partitioning.is_none()
            && arrangement.verify.is_none()
            && arrangement.best.is_none()
            && arrangement.head.is_none();
        if !(is_plain && (2..=plan::MOST_FILES).contains(&files)) {
            return Ok(false);
        }
        let order = arrangement.layout.order();
        // A footer of an object is a request, one after the other.
        if inputs.files().iter().any(|file| file.path().is_some_and(store::is_far)) {
            return Ok(false);
        }
        for file in 0..files {
            let footer = inputs.content(file).footer()?;
            if !footer.is_some_and(|footer| may_be_in_order(&footer, order)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs the job in its way.
    fn run(
        &self,
        outlined: Outlined,
        target: &Target,
        limits: &Limits,
        began: Instant,
    ) -> Result<Stats> {
        let job = self;
        let Outlined { mut decoder, mut options, mut planned } = outlined;
        planned.began = began;
        options.watch.cancel = job.cancel.clone();
        check(job, target, &decoder.schema, &options)?;
        loop {
            // A direct merge writes output before all input is read.
            let repeats = !planned.plan.direct || output::can_be_taken_back(&target.into());
            let running = Running::start(job, &planned, limits, repeats)?;
            options.watch = running.watch.clone();
            match attempt(job, target, &mut decoder, &mut options, &planned.plan, &running) {
                Err(error) => planned = running.met.again().ok_or(error)?,
                Ok(()) => {
                    let mut stats = running.tally.finish();
                    stats.bloom_filters_dropped = drops_bloom_filters(job, &options);
                    return Ok(stats);
                }
            }
            drop(running);
            windrow::give_back_free_blocks();
        }
    }
}

/// Returns true for an error in which the rows of the inputs play a part.
fn is_of_rows(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsorted | ErrorKind::MemoryFloor | ErrorKind::Data)
}

/// Runs `job` by `plan`.
fn attempt(
    job: &Job,
    target: &Target,
    decoder: &mut RowDecoder,
    options: &mut OutputOptions,
    plan: &Plan,
    running: &Running,
) -> Result<()> {
    if let Some(passage) = Passage::of(job, &decoder.schema, options)?
        && passage.is_in_order(plan.readers, running)
    {
        return passage.write(&target.into(), &decoder.schema, options, running);
    }
    let (arranged, plan) = job.arrange(plan, running)?;
    options.columns_in_turn = plan.columns_in_turn;
    running.tally.enter(Phase::Write);
    let emission = Emission { job, options, plan: &plan, running };
    let written = match (target, &job.partitioning) {
        (Target::Path(directory), Some(partitioning)) => {
            emission.many(arranged, directory, partitioning, decoder)
        }
        (Target::Path(directory), None) if options.write.max_file_bytes.is_some() => {
            emission.sized(arranged, directory, decoder)
        }
        _ => emission.one(arranged, &target.into(), decoder),
    };
    written.map_err(|error| job.named(error))
}

/// The last merge of a job, and the context to write its rows.
struct Emission<'a> {
    job: &'a Job,
    options: &'a OutputOptions,
    plan: &'a Plan,
    running: &'a Running,
}

impl Emission<'_> {
    /// Writes all rows to one file.
    fn one(
        &self,
        arranged: Arranged,
        target: &Destination,
        decoder: &mut RowDecoder,
    ) -> Result<()> {
        let rows = self.rows(arranged, (plan::BATCH_ROWS, plan::BATCH_BYTES), None)?;
        let sample = head(&rows, decoder)?;
        let (encoder, appender) = output::open(target, &decoder.schema, &sample, self.options)?;
        drop(sample);
        self.running.watch.room_for(self.plan.writing_bytes());
        let cutter = Cutter::new(rows, self.plan.part, CutFiles::One(encoder));
        let out = Out::new(OutFiles::One, Some(appender));
        let writers = (self.plan.writers, usize::MAX);
        let (written, _) = emit(cutter, out, self.job, writers, self.running)?;
        self.running.tally.outcome().written = written;
        Ok(())
    }

    /// Writes all rows to a sequence of files with limited sizes.
    fn sized(&self, arranged: Arranged, directory: &Path, decoder: &mut RowDecoder) -> Result<()> {
        let keys = sized::keys_of(&self.job.arrangement);
        let rows = self.rows(arranged, sized::slab(self.plan.part), keys.as_deref())?;
        let sample = head(&rows, decoder)?;
        let directory = Directory::create(directory, self.options)?;
        let schema = &decoder.schema;
        let mut files = SizedFiles::new(self.options, schema, &directory, sample);
        let (encoder, appender) = files.open()?;
        self.running.watch.room_for(self.plan.writing_bytes());
        let edges = Edges::new(keys, self.plan.part);
        let cutter = Cutter::new(rows, self.plan.part, CutFiles::Sized(encoder, edges));
        let out = Out::new(OutFiles::Sized(files), Some(appender));
        let writers = (self.plan.writers, usize::MAX);
        let (written, spread) = emit(cutter, out, self.job, writers, self.running)?;
        self.commit(directory, written, spread)
    }

    /// Writes the rows of each partition to its own file.
    fn many(
        &self,
        arranged: Arranged,
        directory: &Path,
        partitioning: &Partitioning,
        decoder: &RowDecoder,
    ) -> Result<()> {
        let rows = self.rows(arranged, (plan::BATCH_ROWS, plan::BATCH_BYTES), None)?;
        let directory = Directory::create(directory, self.options)?;
        let (options, folder) = (self.options, &directory);
        let by_name = ByName { partitioning, options, folder, current: None };
        let cutter = Cutter::new(rows, self.plan.part, CutFiles::ByName(by_name));
        let (schema, spread) = (&decoder.schema, Spread::default());
        let files = Files { partitioning, options, schema, folder, next: 0, empty: None, spread };
        let out = Out::new(OutFiles::Partitions(files), None);
        // Each writer and each waiting part has at most one open file, and one more file is being
        // finished.
        let allowed = system::open_files().saturating_sub(plan::OTHER_FILES).max(1);
        let threads = self.plan.writers.min(allowed);
        let writers = (threads, allowed - threads);
        let (written, spread) = emit(cutter, out, self.job, writers, self.running)?;
        self.commit(directory, written, spread)
    }

    /// Moves the finished directory into place.
    fn commit(&self, directory: Directory, written: Written, spread: Option<Spread>) -> Result<()> {
        let files = spread.map_or(0, |spread| spread.files);
        self.running.watch.kept()?;
        directory.commit(Contents { files, bytes: written.bytes })?;
        let mut outcome = self.running.tally.outcome();
        (outcome.written, outcome.spread) = (written, spread);
        Ok(())
    }

    /// Opens the sorted rows, and reads the first of them ahead.
    fn rows(
        &self,
        arranged: Arranged,
        ahead: (usize, usize),
        keys: Option<&[usize]>,
    ) -> Result<Rows> {
        Rows::open(arranged, &self.job.arrangement, ahead, keys, self.plan.writers)
    }
}

/// Decodes the first rows, which determine the encoding of all rows.
fn head(rows: &Rows, decoder: &mut RowDecoder) -> Result<RecordBatch> {
    match &rows.first {
        Some(first) => first.decode(decoder),
        None => Ok(RecordBatch::new_empty(Arc::clone(&decoder.schema))),
    }
}
