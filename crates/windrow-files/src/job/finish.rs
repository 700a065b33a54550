//! The end of the pipeline: parts in order, appended to the one file, or to one file after the other.
//!
//! ```text
//! parts   [a 0][a 1][c 0][d 0][d 1]       a new file finishes the one before it; partitions that
//! files   [ a ......][b][c ][ d ...]      have a number and no rows (b) get a file on the way
//! ```
//!
//! Invariant: one file is open here at a time.

use std::fs::{self, File};
use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::opening::Opened;
use super::sized::SizedFiles;
use crate::error::{Error, Result};
use crate::output::{self, Appender, Destination, Encoder, Folder, OutputOptions, Part, Written};
use crate::partition::Partitioning;
use crate::stats::Spread;

/// Where parts go.
pub(super) struct Out<'a> {
    /// The part that is next.
    pub(super) ordinal: usize,
    current: Option<Box<dyn Appender>>,
    written: Written,
    files: Many<'a>,
}

/// Where there are many files.
enum Many<'a> {
    No,
    /// One of each partition.
    Partitions(Files<'a>),
    /// As many as their sizes make.
    Sized(SizedFiles<'a>),
}

/// What files without rows need.
pub(super) struct Files<'a> {
    pub(super) partitioning: &'a Partitioning,
    pub(super) options: &'a OutputOptions,
    pub(super) schema: &'a SchemaRef,
    pub(super) folder: Folder,
    /// The number of the next file.
    pub(super) next: u32,
    /// The bytes of a file without rows, where they are at hand: they are all alike.
    pub(super) empty: Option<Vec<u8>>,
    pub(super) spread: Spread,
}

impl<'a> Out<'a> {
    pub(super) fn one(appender: Box<dyn Appender>) -> Self {
        Self { current: Some(appender), ..Self::new(Many::No) }
    }

    pub(super) fn many(files: Files<'a>) -> Self {
        Self::new(Many::Partitions(files))
    }

    /// Files of limited size, the first of them with this appender.
    pub(super) fn sized(files: SizedFiles<'a>, appender: Box<dyn Appender>) -> Self {
        Self { current: Some(appender), ..Self::new(Many::Sized(files)) }
    }

    fn new(files: Many<'a>) -> Self {
        Self { ordinal: 0, current: None, written: Written { rows: 0, bytes: 0 }, files }
    }

    /// A new file: what comes next goes there.
    pub(super) fn open(&mut self, opened: Opened) -> Result<()> {
        self.close()?;
        if let (Some(number), Many::Partitions(many)) = (opened.name.number, &mut self.files) {
            self.written.bytes += many.fill(number)?;
            many.next = number + 1;
        }
        self.current = Some(opened.appender);
        Ok(())
    }

    /// Writes the next part; to another file if it would make this one too large and `starts_key`.
    pub(super) fn append(&mut self, part: Part, starts_key: bool) -> Result<()> {
        self.ordinal += 1;
        if let Many::Sized(files) = &mut self.files {
            let bytes = part.bytes();
            if starts_key && files.overflows(bytes) {
                self.close()?;
            }
            let Many::Sized(files) = &mut self.files else { return Err(no_file()) };
            if self.current.is_none() {
                self.current = Some(files.open()?);
            }
            files.grow(bytes);
        }
        self.current()?.append(part)
    }

    /// Encodes the next part as it is written; returns its rows.
    pub(super) fn encode(
        &mut self,
        encoder: &dyn Encoder,
        batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
        starts_key: bool,
    ) -> Result<u64> {
        if let Many::Sized(_) = &self.files {
            // Which file it goes to depends on its length.
            let part = encoder.encode(batches)?;
            let rows = part.rows();
            self.append(part, starts_key)?;
            return Ok(rows);
        }
        self.ordinal += 1;
        self.current()?.encode(encoder, batches)
    }

    fn current(&mut self) -> Result<&mut Box<dyn Appender>> {
        self.current.as_mut().ok_or_else(no_file)
    }

    /// Completes what is open.
    pub(super) fn finish(mut self) -> Result<(Written, Option<Spread>)> {
        self.close()?;
        if let Many::Partitions(many) = &mut self.files
            && let Some(partitions) = many.partitioning.names.partitions()
        {
            self.written.bytes += many.fill(partitions)?;
        }
        let spread = match self.files {
            Many::No => None,
            Many::Partitions(many) => Some(many.spread),
            Many::Sized(files) => Some(files.spread()),
        };
        Ok((self.written, spread))
    }

    fn close(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let written @ Written { rows, bytes } = current.finish()?;
        self.written.rows += rows;
        self.written.bytes += bytes;
        match &mut self.files {
            Many::No => {}
            Many::Partitions(many) => {
                many.spread.files += 1;
                many.spread.occupied += 1;
                many.spread.most_rows = many.spread.most_rows.max(rows);
            }
            Many::Sized(files) => files.closed(written),
        }
        Ok(())
    }
}

fn no_file() -> Error {
    Error::data("internal error: a part without a file")
}

impl Files<'_> {
    /// Writes the files without rows before the one of this number; returns their bytes.
    fn fill(&mut self, number: u32) -> Result<u64> {
        let mut bytes = 0;
        for number in self.next..number {
            self.options.watch.cancel.check()?;
            let name = self.partitioning.names.numbered(number, &self.options.extension());
            let target = self.folder.file(&name.path)?;
            bytes += match (&self.empty, &target) {
                (Some(empty), Destination::Within(path)) => {
                    let written = File::create_new(path).and_then(|mut f| f.write_all(empty));
                    written.map_err(|error| Error::within(path, &error))?;
                    empty.len() as u64
                }
                _ => {
                    let none = RecordBatch::new_empty(Arc::clone(self.schema));
                    let (_, appender) = output::open(&target, self.schema, &none, self.options)?;
                    let written = appender.finish()?;
                    if let Destination::Within(path) = &target {
                        let empty = fs::read(path).map_err(|error| Error::within(path, &error))?;
                        self.empty = Some(empty);
                    }
                    written.bytes
                }
            };
            self.spread.files += 1;
        }
        Ok(bytes)
    }
}
