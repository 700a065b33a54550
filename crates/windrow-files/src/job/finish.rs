//! End of the pipeline: appends parts in order, to one file or to a sequence of files.
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
use crate::output::{
    self, Appender, Destination, Directory, Encoder, Incoming, OutputOptions, Part, Written,
};
use crate::partition::Partitioning;
use crate::stats::Spread;

/// The destination of parts.
pub(super) struct Out<'a> {
    /// Ordinal of the next part.
    pub(super) ordinal: usize,
    current: Option<Box<dyn Appender>>,
    written: Written,
    files: OutFiles<'a>,
}

/// The files of an output.
pub(super) enum OutFiles<'a> {
    /// A single file.
    One,
    /// A file for each partition.
    Partitions(Files<'a>),
    /// A number of files determined by their sizes.
    Sized(SizedFiles<'a>),
}

/// Context for writing files without rows.
pub(super) struct Files<'a> {
    pub(super) partitioning: &'a Partitioning,
    pub(super) options: &'a OutputOptions,
    pub(super) schema: &'a SchemaRef,
    pub(super) folder: &'a Directory,
    /// Number of the next file.
    pub(super) next: u32,
    /// Bytes of a file without rows, once known: all such files are equal.
    pub(super) empty: Option<Vec<u8>>,
    pub(super) spread: Spread,
}

impl<'a> Out<'a> {
    /// Makes an output of `files`. `current` is the first file, if it is open.
    pub(super) fn new(files: OutFiles<'a>, current: Option<Box<dyn Appender>>) -> Self {
        Self { ordinal: 0, current, written: Written::default(), files }
    }

    /// Starts a new file for the following parts.
    pub(super) fn open(&mut self, opened: Opened) -> Result<()> {
        self.close()?;
        if let (Some(number), OutFiles::Partitions(many)) = (opened.name.number, &mut self.files) {
            self.written.bytes += many.fill(number)?;
            many.next = number + 1;
        }
        self.current = Some(opened.appender);
        Ok(())
    }

    /// Writes the next part. If the part would exceed the file's size limit and `starts_key` is
    /// true, it goes to a new file.
    pub(super) fn append(&mut self, part: Part, starts_key: bool) -> Result<()> {
        self.ordinal += 1;
        let bytes = if let OutFiles::Sized(_) = self.files { part.bytes() } else { 0 };
        if starts_key && matches!(&self.files, OutFiles::Sized(files) if files.overflows(bytes)) {
            self.close()?;
        }
        if let OutFiles::Sized(files) = &mut self.files {
            if self.current.is_none() {
                self.current = Some(files.open()?.1);
            }
            files.bytes = files.bytes.saturating_add(bytes);
        }
        self.current()?.append(part)
    }

    /// Encodes the next part while writing it. Returns its number of rows.
    pub(super) fn encode(
        &mut self,
        encoder: &dyn Encoder,
        batches: Incoming<'_>,
        starts_key: bool,
    ) -> Result<u64> {
        if let OutFiles::Sized(_) = &self.files {
            // The length of the part decides about its file.
            let part = encoder.encode(batches)?;
            let rows = part.rows;
            self.append(part, starts_key)?;
            return Ok(rows);
        }
        self.ordinal += 1;
        self.current()?.encode(encoder, batches)
    }

    fn current(&mut self) -> Result<&mut Box<dyn Appender>> {
        let no_file = || Error::data("internal error: a part without a file");
        self.current.as_mut().ok_or_else(no_file)
    }

    /// Completes the open file.
    pub(super) fn finish(mut self) -> Result<(Written, Option<Spread>)> {
        self.close()?;
        if let OutFiles::Partitions(many) = &mut self.files
            && let Some(partitions) = many.partitioning.names.partitions()
        {
            self.written.bytes += many.fill(partitions)?;
        }
        let spread = match self.files {
            OutFiles::One => None,
            OutFiles::Partitions(many) => Some(many.spread),
            OutFiles::Sized(files) => Some(files.spread),
        };
        Ok((self.written, spread))
    }

    fn close(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let written @ Written { rows, bytes } = current.finish()?;
        self.written.rows += rows;
        self.written.bytes += bytes;
        match &mut self.files {
            OutFiles::One => {}
            OutFiles::Partitions(many) => {
                many.spread.files += 1;
                many.spread.occupied += 1;
                many.spread.most_rows = many.spread.most_rows.max(rows);
            }
            OutFiles::Sized(files) => files.closed(written),
        }
        Ok(())
    }
}

impl Files<'_> {
    /// Writes the files without rows before the file `number`. Returns their bytes.
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
