//! Output files of limited size: finds their boundaries and opens them in sequence.
//!
//! ```text
//! keys     a a a a b b b b b b b b b b c d d e f f g ...
//! parts    [         ][         ][    ][        ][ ...        a part ends at an edge between two keys, once it is
//! edges    |                          |         |             three quarters full; in a key where there is none
//! files    [ part-00000               ][ part-00001 ...       the part that does not fit begins a file, if it
//!                                                             begins a key
//! ```
//!
//! A part is cut before it is encoded, by rows and row bytes. The part's file is chosen after
//! encoding, by encoded bytes. Parts come in order, so the files depend on the rows and the
//! settings alone, not on the threads.
//!
//! Invariant: rows that are equal in the order are in one file, so the ranges of files do not
//! overlap. A file exceeds its limit only by rows of one key.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_ord::partition::partition;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take_record_batch;
use windrow::Rule;

use super::plan::{BATCH_BYTES, BATCH_ROWS};
use crate::error::{Result, failed};
use crate::names::Places;
use crate::output::{self, Appender, Directory, Encoder, OutputOptions, Written};
use crate::partition::numbered;
use crate::stats::Spread;
use crate::verbs::Arrangement;

/// Returns the rows and bytes of a slab, given those of a part. A part ends between two slabs,
/// unless it is cut at an edge.
pub(super) fn slab((rows, bytes): (usize, usize)) -> (usize, usize) {
    const SLABS: usize = 8;
    ((rows / SLABS).clamp(1, BATCH_ROWS), (bytes / SLABS).clamp(1, BATCH_BYTES))
}

/// Returns the columns of the layout's schema by which rows stay together in one file, if they have
/// equal values there; `None` if every row may be separated from the others.
pub(super) fn keys_of(arrangement: &Arrangement) -> Option<Vec<usize>> {
    let layout = &arrangement.layout;
    let is_limit = arrangement.best.is_some() || arrangement.head.is_some();
    let columns: Vec<usize> = match layout.rule() {
        // A sift outputs one row of each key, except a sift that ends early.
        Rule::Keep if arrangement.sifting.is_some() && !is_limit => return None,
        Rule::Keep => {
            let places = Places::of(layout.schema().fields());
            layout.order().iter().filter_map(|by| places.first(&by.name)).collect()
        }
        Rule::Sum => layout.key().collect(),
        _ => return None,
    };
    (!columns.is_empty()).then_some(columns)
}

/// Finds edges between keys.
pub(super) struct Edges {
    pub(super) keys: Option<Vec<usize>>,
    /// Rows and row bytes from which a part ends at the next edge.
    full: (usize, usize),
    /// Whether the part began within a key; the part then ends with that key.
    pub(super) within_key: bool,
    /// The last key examined; `None` at the start and before rows that need no examination.
    last: Option<RecordBatch>,
    is_start: bool,
}

impl Edges {
    pub(super) fn new(keys: Option<Vec<usize>>, (rows, bytes): (usize, usize)) -> Self {
        let full = (rows - rows / 4, bytes - bytes / 4);
        Self { keys, full, within_key: false, last: None, is_start: true }
    }

    /// Returns true if a part of this size ends at the next edge.
    pub(super) fn ends_at_edge(&self, (rows, bytes): (usize, usize)) -> bool {
        self.within_key || rows >= self.full.0 || bytes >= self.full.1
    }

    /// Returns the first row among the next ones to begin a key. `extent` is the size of the part
    /// including all these rows. Edges at which no part can end are not searched.
    pub(super) fn first(
        &mut self,
        extent: (usize, usize),
        keys: impl FnOnce() -> Result<Option<RecordBatch>>,
    ) -> Result<Option<usize>> {
        if self.keys.is_none() {
            return Ok(Some(0));
        }
        let near = self.ends_at_edge(extent);
        let is_start = std::mem::take(&mut self.is_start);
        if !near && self.last.is_none() {
            return Ok(is_start.then_some(0));
        }
        let Some(keys) = keys()? else { return Ok(None) };
        let edge = match (&self.last, is_start) {
            (_, true) => Some(0),
            (last, false) => first_edge(last.as_ref(), &keys).map_err(failed)?,
        };
        // The rows after these are examined too if the part may end after or among these rows.
        let end = keys.num_rows().saturating_sub(1);
        self.last = match near || edge.is_none() {
            // A slice would keep the whole batch in memory.
            true => Some(
                take_record_batch(&keys, &UInt32Array::from(vec![end as u32])).map_err(failed)?,
            ),
            false => None,
        };
        Ok(edge)
    }
}

/// Returns the first row that differs from the row before it; `last` comes before the first row.
fn first_edge(last: Option<&RecordBatch>, keys: &RecordBatch) -> Result<Option<usize>, ArrowError> {
    let edge = |columns: &[ArrayRef]| {
        let ranges = partition(columns)?.ranges();
        Ok::<_, ArrowError>(ranges.get(1).map(|range| range.start))
    };
    if let Some(last) = last {
        let first = keys.slice(0, 1);
        let pairs = last.columns().iter().zip(first.columns());
        let pairs =
            pairs.map(|(last, first)| concat(&[last, first])).collect::<Result<Vec<_>, _>>()?;
        if edge(&pairs)?.is_some() {
            return Ok(Some(0));
        }
    }
    edge(keys.columns())
}

/// The sequence of files, with one file open.
pub(super) struct SizedFiles<'a> {
    options: &'a OutputOptions,
    schema: &'a SchemaRef,
    folder: &'a Directory,
    /// The first rows of the output, from which the encoding of all files is derived.
    sample: RecordBatch,
    /// Bytes of a file: the size without rows, and the size of the open file.
    frame: u64,
    pub(super) bytes: u64,
    pub(super) spread: Spread,
}

impl<'a> SizedFiles<'a> {
    pub(super) fn new(
        options: &'a OutputOptions,
        schema: &'a SchemaRef,
        folder: &'a Directory,
        sample: RecordBatch,
    ) -> Self {
        let (frame, spread) = (output::frame_bytes(schema, options), Spread::default());
        Self { options, schema, folder, sample, frame, bytes: frame, spread }
    }

    /// Returns true if `bytes` more would make the open file too large.
    pub(super) fn overflows(&self, bytes: u64) -> bool {
        let most = self.options.write.max_file_bytes.unwrap_or(u64::MAX);
        self.bytes > self.frame && self.bytes.saturating_add(bytes) > most
    }

    /// Opens the next file. All files have the same encoder.
    pub(super) fn open(&mut self) -> Result<(Arc<dyn Encoder>, Box<dyn Appender>)> {
        let number = u32::try_from(self.spread.files).unwrap_or(u32::MAX);
        let name = numbered(number, 1, &self.options.extension());
        let target = self.folder.file(&name.path)?;
        self.bytes = self.frame;
        self.spread.files += 1;
        output::open(&target, self.schema, &self.sample, self.options)
    }

    /// Records a complete file.
    pub(super) fn closed(&mut self, written: Written) {
        self.spread.occupied += u64::from(written.rows > 0);
        self.spread.most_rows = self.spread.most_rows.max(written.rows);
    }
}
