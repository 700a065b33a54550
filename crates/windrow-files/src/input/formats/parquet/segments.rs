//! Reader of Parquet rows in segments of similar row sizes, without rows ruled out beforehand.
//!
//! ```text
//!  row group   [ 8192 rows a batch              ][ 64 rows a batch     ]      segments, by what rows take
//!  can count      [.....]           [...............................]         pages that a condition leaves
//!  steps       Leave Read   Leave   Read          Read               Leave
//! ```
//! Invariant: omitted rows are reported, so that the remaining rows keep their numbers.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection, RowSelectionPolicy,
};

use crate::error::{Error, Result};
use crate::input::opened::Piece;
use crate::input::row_groups::Footer;
use crate::input::source::random::RandomFile;
use crate::lock::lock;

use super::chosen::Chosen;
use super::int96::Seconds;
use super::profile::Segment;

/// Row groups of an object with their loaded bytes.
pub(super) type Ahead = Mutex<Vec<(usize, RandomFile)>>;

fn damaged(name: &str, cause: &dyn std::fmt::Display) -> Error {
    Error::data(format!("{name}: the file is damaged: {cause}"))
}

/// The treatment of a range of rows.
pub(super) enum Next {
    Read(Segment),
    Leave(u64),
}

/// Intersects the segments of a row group with the ranges `kept`. Gaps, up to the bounds of `all`,
/// become [`Next::Leave`].
pub(super) fn steps(segments: &[Segment], kept: &[Range<u64>], all: &Range<u64>) -> Vec<Next> {
    let (mut steps, mut at) = (Vec::new(), all.start);
    for rows in kept {
        for segment in segments {
            let within = rows.start.max(segment.rows.start)..rows.end.min(segment.rows.end);
            if within.is_empty() {
                continue;
            }
            if within.start > at {
                steps.push(Next::Leave(within.start - at));
            }
            at = within.end;
            steps.push(Next::Read(Segment { rows: within, batch_rows: segment.batch_rows }));
        }
    }
    if at < all.end {
        steps.push(Next::Leave(all.end - at));
    }
    steps
}

/// The segments of some row groups.
pub(super) struct Segments {
    name: Arc<str>,
    file: RandomFile,
    footer: Footer,
    chosen: Chosen,
    parts: VecDeque<(usize, Next)>,
    open: Option<(ParquetRecordBatchReader, Option<Seconds>)>,
    /// Whether to announce longer rows than before, by an empty batch.
    is_longer: bool,
    /// Where the bytes of a row group go if rows are left.
    pub(super) again: Option<(usize, Arc<Ahead>)>,
}

impl Drop for Segments {
    fn drop(&mut self) {
        let (group, ahead) = match self.again.take() {
            Some(again) if self.open.is_some() || !self.parts.is_empty() => again,
            _ => return,
        };
        lock(&ahead).push((group, self.file.clone()));
    }
}

impl Segments {
    /// Makes a reader of `parts`: pairs of a row group's number and the treatment of its rows.
    pub(super) fn new(
        name: Arc<str>,
        file: RandomFile,
        footer: Footer,
        chosen: Chosen,
        parts: Vec<(usize, Next)>,
        is_longer: bool,
    ) -> Self {
        Self { name, file, footer, chosen, parts: parts.into(), open: None, is_longer, again: None }
    }

    /// Returns the next piece.
    pub(super) fn advance(&mut self) -> Result<Option<Piece>> {
        if std::mem::take(&mut self.is_longer) {
            return Ok(Some(Piece::Rows(RecordBatch::new_empty(self.chosen.schema.clone()))));
        }
        loop {
            if let Some((reader, seconds)) = &mut self.open {
                if let Some(batch) = reader.next() {
                    let batch = batch.map_err(|cause| damaged(&self.name, &cause))?;
                    let checked = seconds.as_mut().map_or(Ok(()), Seconds::check);
                    return match checked {
                        Ok(()) => Ok(Some(Piece::Rows(batch))),
                        Err(fault) => Err(Error::data(format!("{}: {fault}", self.name))),
                    };
                }
                // Free its pages before the next reader loads others.
                self.open = None;
            }
            let Some((group, next)) = self.parts.pop_front() else { return Ok(None) };
            let segment = match next {
                Next::Read(segment) => segment,
                Next::Leave(rows) => return Ok(Some(Piece::Left(rows))),
            };
            self.open =
                Some(self.reader(group, &segment).map_err(|cause| damaged(&self.name, &cause))?);
        }
    }

    fn reader(
        &self,
        group: usize,
        segment: &Segment,
    ) -> parquet::errors::Result<(ParquetRecordBatchReader, Option<Seconds>)> {
        let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        let rows = self.footer.metadata().row_group(group).num_rows().unsigned_abs();
        let part = (segment.rows != (0..rows)).then(|| {
            let range = count(segment.rows.start)..count(segment.rows.end);
            RowSelection::from_consecutive_ranges(std::iter::once(range), count(rows))
        });
        let rows = ReadStep { group, rows: part, batch_rows: count(segment.batch_rows) };
        let seconds = Seconds::of(&self.file, &self.footer, &self.chosen, &rows)?;
        let file = self.file.clone();
        let all = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.footer.clone());
        let chosen = all.with_projection(self.chosen.mask.clone());
        Ok((rows.chosen(chosen).build()?, seconds))
    }
}

/// Rows of a row group, and the number of rows to read at a time.
pub(super) struct ReadStep {
    group: usize,
    /// Selected rows; `None` for all.
    pub(super) rows: Option<RowSelection>,
    batch_rows: usize,
}

impl ReadStep {
    /// Restricts `builder` to these rows.
    pub(super) fn chosen(
        &self,
        builder: ParquetRecordBatchReaderBuilder<RandomFile>,
    ) -> ParquetRecordBatchReaderBuilder<RandomFile> {
        let builder = builder.with_row_groups(vec![self.group]).with_batch_size(self.batch_rows);
        match &self.rows {
            Some(rows) => builder
                .with_row_selection(rows.clone())
                .with_row_selection_policy(RowSelectionPolicy::Selectors),
            None => builder,
        }
    }
}
