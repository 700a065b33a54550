//! The changes of a table: the last one of each key, sorted by key, in a temporary file.
//!
//! ```text
//!  log --compact--> unnamed file:  rows of the table | __windrow_deleted      sorted by key
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
use arrow_array::{BooleanArray, RecordBatch, new_null_array};
use arrow_row::Rows as Keys;
use arrow_schema::{Field, FieldRef, Schema, SchemaRef};

use super::hidden::Rows;
use super::homes::{Homes, Move};
use super::table::{Table, group_rows};
use crate::changelog::DELETED;
use crate::error::{Error, Result, failed};
use crate::input::{Inputs, ReadOptions, Source};
use crate::job::Job;
use crate::limits::Limits;
use crate::nested::with_rows;
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
    pub(super) keys: Keys,
    deleted: Option<BooleanArray>,
    /// The order of the changes, if the table has its columns.
    pub(super) order: Option<Keys>,
}

impl ChangeBatch {
    pub(super) fn is_delete(&self, row: usize) -> bool {
        self.deleted.as_ref().is_some_and(|deleted| deleted.value(row))
    }
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
        let fields = table.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let mut starts = vec![0];
        for unit in &inputs.units {
            // An Arrow file states the rows of each record batch.
            starts.push(starts[starts.len() - 1] + unit.rows.unwrap_or(0));
        }
        Ok((Self { _file: file, inputs, schema, starts }, stats))
    }

    /// Returns the number of changes.
    pub(super) fn len(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Reads the changes in `range`, of which only those with the file `home` in `homes` if these are
    /// given.
    pub(super) fn cursor<'a>(
        &'a self,
        table: &'a Table,
        range: Range<u64>,
        home: Option<(&'a Homes, usize)>,
        watch: &Watch,
    ) -> Cursor<'a> {
        let unit = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let units = unit..self.inputs.units.len();
        let batches = group_rows(&self.inputs, 0, units, watch);
        let next = self.starts[unit];
        Cursor { changes: self, table, range, home, next, batches, current: None, at: 0 }
    }

    /// Reads all changes.
    pub(super) fn all<'a>(&'a self, table: &'a Table, watch: &Watch) -> Cursor<'a> {
        self.cursor(table, 0..self.len(), None, watch)
    }

    /// Returns a stored record batch in the columns of the table.
    fn batch(&self, stored: &RecordBatch, first: u64, table: &Table) -> Result<ChangeBatch> {
        let rows = stored.num_rows();
        let column = |field: &FieldRef| match stored.column_by_name(field.name()) {
            Some(column) => column.clone(),
            None => new_null_array(field.data_type(), rows),
        };
        let columns = self.schema.fields().iter().map(column).collect();
        let rows = with_rows(&self.schema, columns, rows).map_err(failed)?;
        let deleted = stored.column_by_name(DELETED).map(|deleted| deleted.as_boolean().clone());
        let order = table.order.as_ref().map(|order| order.rows(&rows)).transpose()?;
        Ok(ChangeBatch { first, keys: table.code.rows(&rows)?, rows, deleted, order })
    }
}

/// A position among changes. It stands at a change, or before the next record batch, or at the end.
pub(super) struct Cursor<'a> {
    changes: &'a Changes,
    table: &'a Table,
    range: Range<u64>,
    home: Option<(&'a Homes, usize)>,
    /// The number of the first change of the next record batch.
    next: u64,
    batches: Rows<'a>,
    /// The current record batch.
    pub(super) current: Option<ChangeBatch>,
    /// The row in the current batch.
    at: usize,
}

impl Cursor<'_> {
    /// Reads the next record batch if the cursor stands before it. Returns false at the end.
    pub(super) fn settle(&mut self) -> Result<bool> {
        while self.row().is_none() {
            let last = self.current.take();
            if self.next >= self.range.end {
                return Ok(false);
            }
            let Some(stored) = self.batches.next().transpose()? else { return Ok(false) };
            let first = self.next;
            self.next += stored.num_rows() as u64;
            if self.next <= self.range.start || stored.num_rows() == 0 {
                continue;
            }
            let batch = self.changes.batch(&stored, first, self.table)?;
            in_order(last.as_ref(), &batch)?;
            self.at = usize::try_from(self.range.start.saturating_sub(first)).unwrap_or(0);
            self.current = Some(batch);
            self.skip();
        }
        Ok(true)
    }

    /// Returns the row of the change in its record batch; `None` before a record batch and at the
    /// end.
    pub(super) fn row(&self) -> Option<(&ChangeBatch, usize)> {
        let batch = self.current.as_ref()?;
        let left = self.range.end.saturating_sub(batch.first);
        let end = (batch.rows.num_rows() as u64).min(left);
        ((self.at as u64) < end).then_some((batch, self.at))
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
            && !homes.has(file, batch.first + row as u64)
        {
            self.at += 1;
        }
    }

    /// Returns whether the current change moves its row between files: away from this one, or to it.
    pub(super) fn moves(&self) -> Option<Move> {
        let (homes, file) = self.home?;
        let (batch, row) = self.row()?;
        homes.moves(file, batch.first + row as u64)
    }
}

/// Checks the order of changes: the engine sorted them, and rows of the table are compared with
/// them as bytes.
fn in_order(last: Option<&ChangeBatch>, batch: &ChangeBatch) -> Result<()> {
    let keys = &batch.keys;
    let follows = last
        .is_none_or(|last| last.keys.row(last.keys.num_rows() - 1).as_ref() < keys.row(0).as_ref());
    match follows && (1..keys.num_rows()).all(|row| keys.row(row - 1) < keys.row(row)) {
        true => Ok(()),
        false => Err(Error::usage("rows cannot be told apart by a `key` of this type")),
    }
}
