//! The files of a table and the keys in them: bounds of each row group, from statistics if they
//! tell, else from the key columns.
//!
//! ```text
//!  footers   a: [1 5][7 9]   b: [10 30]         ascending: a key is in one row group, or in none
//!  footers   a: [1 5][3 9]   or no bounds       the key columns are read; if the bounds overlap still,
//!                                               the file is out of order
//! ```
//! Invariant: the bounds of a row group enclose its keys. Bounds by statistics enclose only the
//! first column of the key; the bytes of a key begin with this column.
//!
//! Statistics do not tell of NaN, the greatest float, nor where nulls stand.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::Type;

use super::table::{Table, group_rows};
use crate::error::Result;
use crate::input::{Footer, Statistics, is_of_the_first_form};
use crate::watch::Watch;

/// Bytes that follow any key in the order: no encoding of a value begins with as many.
const END: [u8; 64] = [0xff; 64];

/// The least key that there may be, and the greatest one.
pub(super) type Bounds = (Vec<u8>, Vec<u8>);

/// The rows of a page, and the bounds of keys in it.
pub(super) type Page = (Range<u64>, Bounds);

/// A row group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Ordinal in the file.
    pub(super) index: usize,
    pub(super) rows: u64,
    /// Position of the first row in the file.
    pub(super) first: u64,
    /// No key is less than the first bound, or greater than the second one.
    pub(super) bounds: Bounds,
}

/// A file of a table.
#[derive(Clone, Debug)]
pub(super) struct TableFile {
    /// Ordinal in the inputs.
    pub(super) ordinal: usize,
    /// The number of the partition; 0 without partitions.
    pub(super) partition: usize,
    /// The path of a file that is not there yet, for rows of a new partition. It is written like the file
    /// `ordinal`.
    pub(super) fresh: Option<PathBuf>,
    /// The row groups with rows.
    pub(super) groups: Vec<Group>,
    /// Whether the bounds of the row groups ascend.
    pub(super) ascends: bool,
    /// Whether the bounds enclose whole keys as closely as possible.
    is_exact: bool,
}

impl TableFile {
    pub(super) fn new(ordinal: usize, groups: Vec<Group>, is_exact: bool) -> Self {
        let ascends = groups.windows(2).all(|pair| pair[0].bounds.1 < pair[1].bounds.0);
        Self { ordinal, partition: 0, fresh: None, groups, ascends, is_exact }
    }

    /// Returns the bounds of the file; `None` for a file without rows.
    pub(super) fn bounds(&self) -> Option<(&[u8], &[u8])> {
        let least = self.groups.iter().map(|group| &*group.bounds.0).min()?;
        let most = self.groups.iter().map(|group| &*group.bounds.1).max()?;
        Some((least, most))
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }
}

/// The files of a table, by partition and least key.
pub(super) struct Extents {
    pub(super) files: Vec<TableFile>,
    /// Whether no two files of a partition can have the same key.
    pub(super) are_apart: bool,
}

impl Extents {
    /// Finds the bounds of all files of `table`.
    pub(super) fn of(table: &mut Table, watch: &Watch) -> Result<Self> {
        let mut files = Self::by_footers(table, watch)?;
        let mut partitions = table.partitions.take();
        for file in &mut files {
            watch.pause()?;
            if !file.ascends {
                *file = exact(file, table, watch)?;
            }
            if let (Some(partitions), Some(group)) = (&mut partitions, file.groups.first())
                && let Some(row) =
                    table.first_row((file.ordinal, group.index), &partitions.schema, watch)?
            {
                file.partition = partitions.number(&partitions.rows(&row)?, &row, 0)?;
            }
        }
        table.partitions = partitions;
        for place in overlapping(&mut files) {
            if !files[place].is_exact {
                files[place] = exact(&files[place], table, watch)?;
            }
        }
        let are_apart = overlapping(&mut files).is_empty();
        Ok(Self { files, are_apart })
    }

    /// Returns the files with bounds as far as footers state them.
    pub(super) fn by_footers(table: &Table, watch: &Watch) -> Result<Vec<TableFile>> {
        let mut files = Vec::new();
        for ordinal in 0..table.names.len() {
            watch.pause()?;
            let Some(footer) = table.inputs.content(ordinal).footer()? else { continue };
            files.push(TableFile::new(ordinal, by_statistics(&footer, table)?, false));
        }
        Ok(files)
    }

    /// Returns new files alone, written like the last file of `table`. The first one is for rows without a
    /// partition.
    pub(super) fn fresh(table: &Table) -> Self {
        let file = TableFile::new(table.names.len() - 1, Vec::new(), true);
        let path = Some(table.data_directory.join("part-0.parquet"));
        Self { files: vec![TableFile { fresh: path, ..file }], are_apart: true }
    }

    /// Adds a file for rows of a new partition, the last one. Returns its place.
    pub(super) fn add(&mut self, partition: usize, path: PathBuf) -> usize {
        let like = self.files.iter().find(|file| !file.groups.is_empty());
        let ordinal = like.or(self.files.first()).map_or(0, |file| file.ordinal);
        let file = TableFile::new(ordinal, Vec::new(), true);
        self.files.push(TableFile { partition, fresh: Some(path), ..file });
        self.files.len() - 1
    }

    /// Returns the places of the files of a partition.
    pub(super) fn of_partition(&self, number: usize) -> Range<usize> {
        let before =
            |partition: usize| self.files.partition_point(|file| file.partition < partition);
        before(number)..before(number + 1)
    }
}

/// Sorts files by their least key, files without rows first. Returns the places of the files that
/// overlap with another one.
fn overlapping(files: &mut [TableFile]) -> BTreeSet<usize> {
    let by = |file: &TableFile| (file.partition, file.bounds().map(|bounds| bounds.0.to_vec()));
    files.sort_by_cached_key(by);
    let mut found = BTreeSet::new();
    // The file so far with the greatest key.
    let mut last: Option<(usize, &[u8])> = None;
    for (place, file) in files.iter().enumerate() {
        let Some((least, most)) = file.bounds() else { continue };
        last = last.filter(|(before, _)| files[*before].partition == file.partition);
        if let Some((before, end)) = last
            && end >= least
        {
            found.extend([before, place]);
        }
        if last.is_none_or(|(_, end)| most > end) {
            last = Some((place, most));
        }
    }
    found
}

/// Returns the bounds of the row groups as far as the footer states them.
fn by_statistics(footer: &Footer, table: &Table) -> Result<Vec<Group>> {
    let known = converter(footer, table)
        .and_then(|column| Statistics::of_groups(&column, table.code.leading(), footer));
    let (mut groups, mut first) = (Vec::new(), 0);
    for (index, group) in footer.metadata().row_groups().iter().enumerate() {
        let rows = group.num_rows().unsigned_abs();
        if rows == 0 {
            continue;
        }
        let unknown = || Ok((Vec::new(), END.to_vec()));
        let bounds = known.as_ref().map_or_else(unknown, |known| bounds(known, index, table))?;
        groups.push(Group { index, rows, first, bounds });
        first += rows;
    }
    Ok(groups)
}

/// Returns the bounds of the keys in a row group or page.
fn bounds(known: &Statistics, index: usize, table: &Table) -> Result<Bounds> {
    let (by, floats) = (&table.key[0], table.code.leading().is_floating());
    let mut bounds = (Vec::new(), END.to_vec());
    let ends = [&known.least, &known.most].map(|ends| ends.slice(index, 1));
    let [least, most] = if by.descending { [&ends[1], &ends[0]] } else { [&ends[0], &ends[1]] };
    let has_nulls = known.nulls.is_null(index) || known.nulls.value(index) > 0;
    // The greatest float is unknown: it may be NaN. Nulls stand at an end.
    let no_least = floats && by.descending || has_nulls && by.nulls_first;
    let no_most = floats && !by.descending || has_nulls && !by.nulls_first;
    if !no_least && is_bound(least) {
        bounds.0 = table.code.of_leading(least)?.row(0).as_ref().to_vec();
    }
    if !no_most && is_bound(most) {
        bounds.1 = table.code.of_leading(most)?.row(0).as_ref().to_vec();
        bounds.1.extend(END);
    }
    Ok(bounds)
}

/// Returns the rows of the pages of the first key column in a row group, and the bounds of keys in them, by
/// the page index; `None` if that does not tell, or bounds do not ascend.
pub(super) fn pages(footer: &Footer, table: &Table, group: usize) -> Result<Option<Vec<Page>>> {
    let known = converter(footer, table)
        .and_then(|column| Statistics::of_pages(&column, table.code.leading(), footer, group));
    let Some(known) = known else { return Ok(None) };
    let page =
        |(index, rows): (usize, &Range<u64>)| Ok((rows.clone(), bounds(&known, index, table)?));
    let pages: Vec<_> = known.rows.iter().enumerate().map(page).collect::<Result<_>>()?;
    let ascend = pages.windows(2).all(|pair| pair[0].1.0 <= pair[1].1.0);
    Ok(ascend.then_some(pages))
}

/// Returns true if the value of a statistic is a bound. Some writers state NaN.
fn is_bound(value: &ArrayRef) -> bool {
    let is_nan = || {
        let number = cast(value, &DataType::Float64);
        number.map_or(true, |number| number.as_primitive::<Float64Type>().value(0).is_nan())
    };
    value.is_valid(0) && !(value.data_type().is_floating() && is_nan())
}

/// Returns the reader of statistics of the first key column; `None` if they tell no order.
fn converter<'a>(footer: &'a Footer, table: &'a Table) -> Option<StatisticsConverter<'a>> {
    let metadata = footer.metadata();
    let parquet = metadata.file_metadata().schema_descr();
    let column = StatisticsConverter::try_new(&table.key[0].name, footer.schema(), parquet).ok()?;
    let column = column.with_missing_null_counts_as_zero(false);
    let leaf = column.parquet_column_index()?;
    // The order of statistics of INT96 is undefined.
    let is_int96 = parquet.column(leaf).physical_type() == Type::INT96;
    let is_nested = table.code.leading().is_nested();
    let tells = !is_int96 && !is_nested && !is_of_the_first_form(metadata, leaf);
    tells.then_some(column)
}

/// Returns `file` with bounds found by reading the key columns.
fn exact(file: &TableFile, table: &Table, watch: &Watch) -> Result<TableFile> {
    let inputs = table.keys_of(file.ordinal)?;
    let mut groups = file.groups.clone();
    for group in &mut groups {
        let mut bounds: Option<(Vec<u8>, Vec<u8>)> = None;
        let rows = group_rows(&inputs, 0, std::iter::once(group.index), watch);
        for keys in table.keys_in(rows) {
            watch.pause()?;
            let (keys, _) = keys?;
            let Some((least, most)) = keys.iter().min().zip(keys.iter().max()) else { continue };
            let (least, most) = (least.as_ref().to_vec(), most.as_ref().to_vec());
            bounds = Some(match bounds.take() {
                None => (least, most),
                Some((before, after)) => (before.min(least), after.max(most)),
            });
        }
        group.bounds = bounds.unwrap_or_else(|| group.bounds.clone());
    }
    let exact = TableFile::new(file.ordinal, groups, true);
    Ok(TableFile { partition: file.partition, ..exact })
}
