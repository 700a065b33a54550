//! Copies Parquet row groups that are already in order, without encoding them again.
//!
//! ```text
//!  footers   the leaves that this job would write, probably in order, and the ranges of files do not overlap
//!     |
//!  decode    every row, on all threads, a row group each: the order of its rows, its first key, its last
//!     |
//!  append    [file c: 0, 1, 2][file a: 0, 1]      in the order of their keys, byte by byte
//! ```
//! The footers only decide whether an attempt is worthwhile. All rows are decoded and their order
//! is checked, so that damaged data does not reach the output. If the rows are not in order, the
//! job sorts them like any other input, and the sort reports any error in the data.
//!
//! Invariant: the output has the rows of a sort, in the same order. The choice between copying and
//! sorting depends on the inputs and the settings alone.

use std::cmp::Ordering as Order;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_schema::{Schema, SchemaRef, SortOptions};
use windrow::{Layout, OrderCheck, RowEncoder, SortColumn, key_len};

use super::in_order::{ends_of_groups, may_be_in_order};
use super::ingest::share_out;
use super::running::{Job, Running};
use super::tally::timed;
use crate::error::{Error, Result, failed};
use crate::input::{FileInfo, Footer, RowGroups, Unit};
use crate::lock::{lock, unlocked};
use crate::names::Places;
use crate::output::{self, Destination, OutputOptions, Part};
use crate::progress::Phase;

/// Maximum number of row groups in a Parquet file.
const MOST_GROUPS: usize = 32_767;

/// Inputs that may be in order.
pub(super) struct Passage<'a> {
    job: &'a Job,
    /// The files in the order of their rows.
    files: Vec<usize>,
    /// The stamp of each file when its footer was read.
    stamps: Vec<Stamp>,
    /// The columns of the order, and a layout of these columns alone.
    columns: Vec<usize>,
    layout: Layout,
}

/// The length and the modification time of a file, to detect a replaced file.
type Stamp = Option<(u64, SystemTime)>;

/// The first and the last key of a row group.
type Ends = (Vec<u8>, Vec<u8>);

impl<'a> Passage<'a> {
    /// Returns a passage if `job` does not change rows and the footers declare the order.
    pub(super) fn of(
        job: &'a Job,
        schema: &SchemaRef,
        options: &OutputOptions,
    ) -> Result<Option<Self>> {
        let inputs = &job.inputs;
        let passes = options.as_usual && job.partitioning.is_none() && !inputs.are_filtered();
        if !(passes && job.arrangement.passes_rows_on()) || inputs.units.len() > MOST_GROUPS {
            return Ok(None);
        }
        let order = job.arrangement.layout.order();
        let Some((columns, layout)) = of_keys(job.arrangement.layout.schema(), order)? else {
            return Ok(None);
        };
        let (mut ranges, mut stamps) = (Vec::new(), Vec::new());
        let mut first = None;
        for (file, info) in inputs.files().iter().enumerate() {
            stamps.push(stamp(info));
            let Some(groups) = groups(job, file, schema, options)? else { return Ok(None) };
            // All files have the same leaves, and all or none an index of pages.
            let metadata = groups.footer.metadata();
            let root = metadata.file_metadata().schema_descr().root_schema_ptr();
            let indexed = (metadata.num_row_groups() > 0).then(|| has_index(&groups));
            let (root_of_first, indexed_first) =
                first.get_or_insert_with(|| (root.clone(), indexed));
            if *root_of_first != root
                || indexed.is_some_and(|is| *indexed_first.get_or_insert(is) != is)
            {
                return Ok(None);
            }
            match inputs.files().len() {
                1 => ranges.push(None),
                _ => match range(&groups, &order[0]) {
                    Some(range) => ranges.push(range),
                    None => return Ok(None),
                },
            }
        }
        let Some(files) = in_order(&ranges, &order[0])? else { return Ok(None) };
        Ok(Some(Self { job, files, stamps, columns, layout }))
    }

    /// Reads all rows and returns true if they are in order.
    pub(super) fn is_in_order(&self, readers: usize, running: &Running) -> bool {
        running.tally.enter(Phase::Read);
        let in_order = self.read(readers, running).is_ok_and(|ends| self.follow(&ends));
        if !in_order {
            running.tally.begin_again();
        }
        in_order
    }

    /// Reads all row groups and returns their ends. Fails if a row group is not in order.
    fn read(&self, readers: usize, running: &Running) -> Result<Vec<Option<Ends>>> {
        let units = &self.job.inputs.units;
        let ends = Mutex::new(vec![None; units.len()]);
        let work = |place: usize, unit: &Unit| {
            let found = self.ends_of(unit, running)?;
            lock(&ends)[place] = found;
            Ok(())
        };
        timed(&running.tally.together, || share_out(units, readers, work))?;
        Ok(unlocked(ends))
    }

    /// Returns the first and last key of a row group; `None` for a row group without rows.
    ///
    /// # Errors
    /// Fails also if the rows are not in order.
    fn ends_of(&self, unit: &Unit, running: &Running) -> Result<Option<Ends>> {
        let mut check = OrderCheck::new(&self.layout, unit.file);
        let encoder = RowEncoder::new(&self.layout);
        let key = |batch: &RecordBatch, row| -> Result<Vec<u8>> {
            let rows = encoder.encode(&batch.slice(row, 1))?;
            let row = rows.row(0);
            Ok(row[..key_len(&self.layout, row)].to_vec())
        };
        let mut ends: Option<Ends> = None;
        for batch in unit.read(&running.watch)? {
            running.watch.pause()?;
            let batch = batch?;
            running.tally.read(&batch);
            let Some(last) = batch.num_rows().checked_sub(1) else { continue };
            let keys = batch.project(&self.columns).map_err(failed)?;
            check.push(&keys)?;
            let last = key(&keys, last)?;
            match &mut ends {
                Some(ends) => ends.1 = last,
                None => ends = Some((key(&keys, 0)?, last)),
            }
        }
        Ok(ends)
    }

    /// Returns true if the row groups follow one another. Equal rows must keep the order of the
    /// inputs.
    fn follow(&self, ends: &[Option<Ends>]) -> bool {
        let units = &self.job.inputs.units;
        let of_file = |file: &usize| {
            let file = *file;
            let all = units.iter().zip(ends).filter(move |(unit, _)| unit.file == file);
            all.filter_map(move |(_, ends)| ends.as_ref().map(|ends| (file, ends)))
        };
        let all: Vec<_> = self.files.iter().flat_map(of_file).collect();
        all.windows(2).all(|pair| {
            let [(before, (_, last)), (behind, (first, _))] = pair else { return true };
            match last.cmp(first) {
                Order::Less => true,
                Order::Equal => before <= behind,
                Order::Greater => false,
            }
        })
    }

    /// Copies all row groups to `target`.
    pub(super) fn write(
        &self,
        target: &Destination,
        schema: &SchemaRef,
        options: &OutputOptions,
        running: &Running,
    ) -> Result<()> {
        running.tally.enter(Phase::Write);
        let empty = RecordBatch::new_empty(Arc::clone(schema));
        let mut appender = None;
        let replaced = |file: usize| {
            let name = &self.job.inputs.files()[file].name;
            Error::data(format!("{name}: the file was replaced while it was read"))
        };
        let mut passed = 0;
        for &file in &self.files {
            let groups = groups(self.job, file, schema, options)?;
            let groups = Arc::new(groups.ok_or_else(|| replaced(file))?);
            for index in 0..groups.footer.metadata().num_row_groups() {
                running.watch.pause()?;
                // Of the first file with row groups: they tell whether there is an index of pages.
                let appender = match &mut appender {
                    Some(appender) => appender,
                    none => {
                        let options =
                            OutputOptions { page_index: has_index(&groups), ..options.clone() };
                        let like = Some(&groups.footer);
                        none.insert(output::open_like(target, schema, &empty, &options, like)?.1)
                    }
                };
                let part = Part::of_row_group(&groups, index);
                running.tally.wrote(part.rows);
                appender.append(part)?;
                passed += 1;
            }
            if stamp(&self.job.inputs.files()[file]) != self.stamps[file] {
                return Err(replaced(file));
            }
        }
        let written = match appender {
            Some(appender) => appender.finish()?,
            None => output::open(target, schema, &empty, options)?.1.finish()?,
        };
        let mut outcome = running.tally.outcome();
        (outcome.written, outcome.passed) = (written, passed);
        Ok(())
    }
}

/// Returns the row groups of a file if they may be passed on: they are as this job would write them, or
/// readers take them as well, and the footer suggests that they are in order.
fn groups(
    job: &Job,
    file: usize,
    schema: &SchemaRef,
    options: &OutputOptions,
) -> Result<Option<RowGroups>> {
    let order = job.arrangement.layout.order();
    let is_alike = |footer: &Footer| output::is_alike(footer, schema, options);
    let is_wanted =
        |footer: &Footer| is_alike(footer) || output::are_passable(footer, schema, options);
    let groups = job.inputs.row_groups(file, &is_wanted)?;
    Ok(groups.filter(|groups| is_alike(&groups.footer) || may_be_in_order(&groups.footer, order)))
}

fn has_index(groups: &RowGroups) -> bool {
    let metadata = groups.footer.metadata();
    metadata.num_row_groups() == 0 || metadata.offset_index().is_some()
}

/// Returns the columns of `order`, each once, and a layout of these columns alone; `None` if the
/// order names parts of columns.
fn of_keys(schema: &SchemaRef, order: &[SortColumn]) -> Result<Option<(Vec<usize>, Layout)>> {
    let (places, mut seen) = (Places::of(schema.fields()), HashSet::new());
    let mut columns = Vec::new();
    for column in order {
        match places.first(&column.name) {
            Some(place) if seen.insert(place) => columns.push(place),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    if columns.is_empty() {
        return Ok(None);
    }
    let fields: Vec<_> = columns.iter().map(|&place| schema.fields()[place].clone()).collect();
    let layout = windrow::Order::by(order.to_vec()).bind(&Arc::new(Schema::new(fields)))?;
    Ok(Some((columns, layout)))
}

fn stamp(file: &FileInfo) -> Stamp {
    let metadata = std::fs::metadata(file.path()?).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// Bounds of the first column of the order in a file: no row sorts before the first bound or after
/// the second one. `None` for a file without rows.
type Range = Option<(ArrayRef, ArrayRef)>;

/// Returns the bounds of a file; `None` if the footer does not state them.
fn range(groups: &RowGroups, first: &SortColumn) -> Option<Range> {
    let count = groups.footer.metadata().num_row_groups();
    let Some(last) = count.checked_sub(1) else { return Some(None) };
    let (firsts, lasts) = ends_of_groups(&groups.footer, first)?;
    Some(Some((firsts.slice(0, 1), lasts.slice(last, 1))))
}

/// Returns the files ordered by their bounds; `None` if the bounds overlap.
fn in_order(ranges: &[Range], first: &SortColumn) -> Result<Option<Vec<usize>>> {
    let options = SortOptions { descending: first.descending, nulls_first: first.nulls_first };
    let compare = |a: &ArrayRef, b: &ArrayRef| -> Result<Order> {
        let compared: DynComparator = make_comparator(a, b, options).map_err(failed)?;
        Ok(compared(0, 0))
    };
    let mut files: Vec<usize> = (0..ranges.len()).collect();
    let mut failed = Ok(());
    files.sort_by(|&a, &b| match (&ranges[a], &ranges[b]) {
        (Some(a), Some(b)) => compare(&a.0, &b.0).unwrap_or_else(|error| {
            failed = Err(error);
            Order::Equal
        }),
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    failed?;
    let known: Vec<_> = files.iter().filter_map(|&file| ranges[file].as_ref()).collect();
    for pair in known.windows(2) {
        if compare(&pair[0].1, &pair[1].0)?.is_gt() {
            return Ok(None);
        }
    }
    Ok(Some(files))
}
