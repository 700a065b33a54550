//! `floor`: a job of the tool on one Parquet file, beside reading and writing this file alone.
//!
//! ```text
//! ours    file --tool--> output
//! floor   file --row group by row group, on as many threads--> files with the output's encodings
//! ```
//! The floor uses the same library, with the encodings and the compression of the tool's output.
//! Its rows stay where they are, so a job cannot take less unless it passes row groups on.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Args;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Encoding;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::Result;
use crate::harness::{Cells, Turns, timed};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The tool, as it is released
    #[arg(long, default_value = "target/dist/windrow")]
    tool: PathBuf,
    /// Threads of both
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// The Parquet file
    #[arg(long)]
    input: PathBuf,
    /// The job: the verb, and its options
    #[arg(last = true, required = true)]
    job: Vec<String>,
}

/// Measures and writes the table.
pub(crate) fn run(options: &Options, mut cells: Cells) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("ours.parquet");
    let job = || {
        let mut tool = Command::new(&options.tool);
        tool.args(&options.job).arg(&options.input).arg("-o").arg(&output);
        tool.args(["--quiet", "--threads"]);
        match tool.arg(options.threads.to_string()).status()?.success() {
            true => Ok(()),
            false => Err("the tool failed".into()),
        }
    };
    job()?;
    let properties = settings(&output)?;
    let copy = || {
        let next = AtomicUsize::new(0);
        let one = |out: PathBuf| {
            copied(&options.input, &out, &properties, &next).map_err(|error| error.to_string())
        };
        thread::scope(|scope| {
            let names = (0..options.threads).map(|at| folder.path().join(format!("{at}.parquet")));
            let one = &one;
            let threads: Vec<_> = names.map(|out| scope.spawn(move || one(out))).collect();
            let mut ends = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
            });
            Ok(ends.try_for_each(|end| end)?)
        })
    };
    let turns = Turns { rounds: 5, warm: 0, calls: 1 };
    let ours = timed("ours", |(): &(), _| job());
    let floor = timed("reading and writing alone", |(): &(), _| copy());
    cells.race(&options.job.join(" "), turns, |_| Ok(((), 1.0)), &mut [ours, floor])?;
    cells.finish()
}

/// Returns the settings of the columns of a file.
fn settings(path: &Path) -> Result<WriterProperties> {
    let file = SerializedFileReader::new(File::open(path)?)?;
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_data_page_size_limit(512 << 10)
        .set_data_page_row_count_limit(usize::MAX >> 1)
        .set_dictionary_page_size_limit(128 << 10);
    for chunk in file.metadata().row_group(0).columns() {
        let path = chunk.column_path();
        let is_plain =
            |encoding: &Encoding| !matches!(encoding, Encoding::RLE | Encoding::RLE_DICTIONARY);
        let dictionary = chunk.dictionary_page_offset().is_some();
        properties = properties
            .set_compression(chunk.compression())
            .set_column_dictionary_enabled(path.clone(), dictionary);
        if let Some(encoding) = chunk.encodings().find(is_plain).filter(|_| !dictionary) {
            properties = properties.set_column_encoding(path.clone(), encoding);
        }
    }
    Ok(properties.build())
}

/// Copies the row groups that `next` hands out.
fn copied(
    input: &Path,
    out: &Path,
    properties: &WriterProperties,
    next: &AtomicUsize,
) -> Result<()> {
    let mut writer = None;
    loop {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(input)?)?;
        let group = next.fetch_add(1, Ordering::Relaxed);
        if group >= reader.metadata().num_row_groups() {
            break;
        }
        let schema = reader.schema().clone();
        let writer = match &mut writer {
            Some(writer) => writer,
            None => {
                let file = File::create(out)?;
                writer.insert(ArrowWriter::try_new(file, schema, Some(properties.clone()))?)
            }
        };
        for batch in reader.with_row_groups(vec![group]).with_batch_size(8192).build()? {
            writer.write(&batch?)?;
        }
        writer.flush()?;
    }
    if let Some(writer) = writer {
        writer.close()?;
    }
    Ok(())
}
