//! The changes of a table: the last one of each key, sorted by key, in a temporary file.
//!
//! ```text
//!  log --compact--> unnamed file:  rows of the table | order | __windrow_deleted      sorted by key
//!                        |
//!                     Cursor      any range of changes, one record batch at a time
//! ```
//! Changes are numbered from 0 in the order of their keys.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_row::Rows;
use arrow_schema::{Field, FieldRef, Schema, SchemaRef};

use super::homes::Homes;
use super::keys::{KeyCode, OrderCode};
use crate::changelog::DELETED;
use crate::error::{Error, Result, failed};
use crate::input::{Inputs, ReadOptions, Source};
use crate::job::Job;
use crate::limits::Limits;
use crate::output::{Target, WriteOptions};
use crate::settings::Format;
use crate::stats::Stats;
use crate::watch::Watch;

/// The last change of each key.
pub(super) struct Changes {
    /// The file that `inputs` read; it has no name.
    _file: File,
    pub(super) inputs: Inputs,
    /// The columns of the table, all nullable: a delete has only its key.
    schema: SchemaRef,
    /// The number of the first change of each unit, and of all changes.
    starts: Vec<u64>,
}

/// A record batch of changes.
pub(super) struct ChangeBatch {
    /// The number of the first change.
    pub(super) first: u64,
    /// The columns of the table.
    pub(super) rows: RecordBatch,
    pub(super) keys: Rows,
    deleted: Option<BooleanArray>,
    /// The order of the changes, if the table has its columns.
    pub(super) order: Option<Rows>,
}

impl ChangeBatch {
    pub(super) fn is_delete(&self, row: usize) -> bool {
        self.deleted.as_ref().is_some_and(|deleted| deleted.value(row))
    }
}

/// The encoders of a table's keys and order.
pub(super) struct Codes {
    pub(super) key: KeyCode,
    pub(super) order: Option<OrderCode>,
}

impl Changes {
    /// Runs `job`, which reduces a log to the last change of each key.
    pub(super) fn of(job: Job, table: &SchemaRef, limits: &Limits) -> Result<(Self, Stats)> {
        let directory = limits.temp_dirs.first().cloned().unwrap_or_else(std::env::temp_dir);
        let failed = |error: std::io::Error| Error::output(&directory, &error);
        let file = tempfile::tempfile_in(&directory).map_err(failed)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let write = WriteOptions::default().format(Format::ArrowFile);
        let stats = job.write(&Target::Path(path.clone()), &write, limits)?;
        let read = ReadOptions::default().format(Format::ArrowFile);
        let inputs = Inputs::open(&[Source::File(path)], &read)?;
        let fields = table
            .fields()
            .iter()
            .map(|field| Field::new(field.name(), field.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let mut starts = vec![0];
        for unit in inputs.units() {
            let rows = match unit.rows {
                Some(rows) => rows,
                None => {
                    let mut rows = 0;
                    for batch in unit.read(&Watch::default())? {
                        rows += batch?.num_rows() as u64;
                    }
                    rows
                }
            };
            starts.push(starts.last().copied().unwrap_or(0) + rows);
        }
        Ok((Self { _file: file, inputs, schema, starts }, stats))
    }

    /// Returns the number of changes.
    pub(super) fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Reads the changes in `range`, of which only those at `home` if it is given.
    pub(super) fn cursor<'a>(
        &'a self,
        range: Range<u64>,
        home: Option<(&'a Homes, usize)>,
        codes: &'a Codes,
        watch: &Watch,
    ) -> Cursor<'a> {
        let unit = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let next = self.starts[unit];
        let watch = watch.clone();
        Cursor {
            changes: self,
            codes,
            range,
            home,
            unit,
            next,
            batches: None,
            current: None,
            at: 0,
            watch,
        }
    }

    /// Returns a stored record batch in the columns of the table.
    fn batch(&self, stored: &RecordBatch, first: u64, codes: &Codes) -> Result<ChangeBatch> {
        let rows = stored.num_rows();
        let column = |field: &FieldRef| match stored.column_by_name(field.name()) {
            Some(column) => column.clone(),
            None => new_null_array(field.data_type(), rows),
        };
        let columns = self.schema.fields().iter().map(column).collect();
        let count = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = SchemaRef::clone(&self.schema);
        let rows = RecordBatch::try_new_with_options(schema, columns, &count).map_err(failed)?;
        let deleted = stored.column_by_name(DELETED).map(|deleted| deleted.as_boolean().clone());
        let deleted = deleted.filter(|deleted| deleted.has_true());
        let order =
            codes.order.as_ref().map(|order| order.of_changes(&rows, stored)).transpose()?;
        Ok(ChangeBatch { first, keys: codes.key.codes(&rows)?, rows, deleted, order })
    }
}

/// A position among changes. It stands at a change, or before the next record batch, or at the end.
pub(super) struct Cursor<'a> {
    changes: &'a Changes,
    codes: &'a Codes,
    range: Range<u64>,
    home: Option<(&'a Homes, usize)>,
    /// The unit being read, or to be read next.
    unit: usize,
    /// The number of the first change of the next record batch.
    next: u64,
    batches: Option<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>>,
    current: Option<ChangeBatch>,
    /// The row in the current batch.
    at: usize,
    watch: Watch,
}

impl Cursor<'_> {
    /// Reads the next record batch if the cursor stands before it. Returns false at the end.
    pub(super) fn settle(&mut self) -> Result<bool> {
        loop {
            if self.row().is_some() {
                return Ok(true);
            }
            let last = self.current.take();
            if self.next >= self.range.end {
                return Ok(false);
            }
            let Some(stored) = self.stored()? else { return Ok(false) };
            let first = self.next;
            self.next += stored.num_rows() as u64;
            if self.next <= self.range.start || stored.num_rows() == 0 {
                continue;
            }
            let batch = self.changes.batch(&stored, first, self.codes)?;
            in_order(last.as_ref(), &batch)?;
            self.at = usize::try_from(self.range.start.saturating_sub(first)).unwrap_or(0);
            self.current = Some(batch);
            self.skip();
        }
    }

    fn stored(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.batches.as_mut().and_then(Iterator::next) {
                return batch.map(Some);
            }
            let Some(unit) = self.changes.inputs.units().get(self.unit) else { return Ok(None) };
            self.unit += 1;
            self.batches = Some(unit.read(&self.watch)?);
        }
    }

    /// Returns the row of the change in its record batch; `None` before a record batch and at the
    /// end.
    pub(super) fn row(&self) -> Option<(&ChangeBatch, usize)> {
        let batch = self.current.as_ref()?;
        let left = self.range.end.saturating_sub(batch.first);
        let end = (batch.rows.num_rows() as u64).min(left);
        ((self.at as u64) < end).then_some((batch, self.at))
    }

    /// Returns the current record batch.
    pub(super) fn batch(&self) -> Option<&ChangeBatch> {
        self.current.as_ref()
    }

    /// Goes to the next change of the record batch.
    pub(super) fn advance(&mut self) {
        self.at += 1;
        self.skip();
    }

    /// Skips changes of other files.
    fn skip(&mut self) {
        let Some((homes, file)) = self.home else { return };
        while let Some((batch, row)) = self.row()
            && homes.of(batch.first + row as u64) != Some(file)
        {
            self.at += 1;
        }
    }
}

/// Checks the order of changes: the engine sorted them, and rows of the table are compared with
/// them as bytes.
fn in_order(last: Option<&ChangeBatch>, batch: &ChangeBatch) -> Result<()> {
    let keys = &batch.keys;
    let ascend = |row: usize| keys.row(row - 1) < keys.row(row);
    let follows = last.is_none_or(|last| {
        let end = last.keys.num_rows() - 1;
        last.keys.row(end).as_ref() < keys.row(0).as_ref()
    });
    match follows && (1..keys.num_rows()).all(ascend) {
        true => Ok(()),
        false => Err(Error::usage("rows cannot be told apart by a `key` of this type")),
    }
}
