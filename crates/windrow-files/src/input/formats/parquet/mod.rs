//! Parquet files; a unit is a row group.
//!
//! A footer can be far larger than the plan made from it, so the footers of ten thousand inputs are
//! not kept. A file keeps the rows of its row groups, and a [small cache](footers) keeps the
//! footers of the files being read. Planning loads neither statistics nor page indexes; `inspect`,
//! conditions on rows and unchanged copies of row groups read the footer again.
//!
//! The column chunks of an object's row group are [held](RandomFile::hold) while the row group is
//! read, and prefetched while the row group before is read. Of the pages of an object, only the
//! facts in the footer are known in advance.

pub(crate) mod allowance;
pub(crate) mod annotations;
pub(crate) mod chosen;
pub(crate) mod dictionaries;
pub(crate) mod estimate;
pub(crate) mod footer_depth;
pub(crate) mod footers;
pub(crate) mod inside;
mod int96;
pub(crate) mod leaf;
pub(crate) mod overlaps;
pub(crate) mod pages;
pub(crate) mod profile;
pub(crate) mod segments;
mod widths;

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Schema;
use parquet::basic::ConvertedType;
use parquet::file::metadata::PageIndexPolicy::{Optional, Skip};
use parquet::file::metadata::ParquetStatisticsPolicy::{KeepAll, SkipAll};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use crate::error::Result;
use crate::input::formats::opening::{InputFormat, Opening};
use crate::input::opened::{About, Content, Opened, Pieces, Span};
use crate::input::options::ReadOptions;
use crate::input::row_groups::{Footer, RowGroups, bytes_of};
use crate::input::source::info::DeclaredColumn;
use crate::input::source::origin::Origin;
use crate::input::source::random::RandomFile;
use crate::limits::Ceiling;
use crate::lock::lock;
use crate::settings::Format;
use crate::store;
use crate::watch::Watch;

use allowance::Allowance;
use chosen::Chosen;
use footer_depth::Survey;
use footers::{
    CachedFooter, FooterCache, MOST_INDEX_BYTES, footer_bytes, has_small_index, index_bytes, load,
    parsed, survey,
};
use profile::Profile;
use segments::{Ahead, Segments, steps};

struct ParquetFile {
    origin: Origin,
    ordinal: usize,
    /// Rows of the file, to detect a replacement after opening.
    rows: u64,
    groups: usize,
    chosen: Chosen,
    encrypted: bool,
    ceiling: Ceiling,
    footers: Arc<FooterCache>,
    /// Loaded row groups of an object that are not read yet, or that are read again.
    ahead: Arc<Ahead>,
    reads_again: bool,
}

/// The format.
pub(crate) struct Parquet;

impl InputFormat for Parquet {
    fn sniff(&self, head: &[u8]) -> bool {
        head.starts_with(b"PAR1") || head.starts_with(b"PARE")
    }

    fn open(&self, origin: Origin, opening: &mut Opening<'_>) -> Result<Opened> {
        let origin = opening.at_random(origin)?;
        let (options, footers) = (opening.options, opening.footers.clone());
        open(origin, opening.ordinal, options, footers, opening.like.counted)
    }
}

/// Reads the footer of `origin` and plans its row groups.
fn open(
    origin: Origin,
    ordinal: usize,
    options: &ReadOptions,
    footers: Arc<FooterCache>,
    counted: &dyn Fn(&Schema) -> Option<Vec<usize>>,
) -> Result<Opened> {
    let file = origin.random()?;
    let batch_rows = options.batch_rows();
    let Survey { encrypted, .. } = survey(&origin, &file, options.ceiling)?;
    let footer = parsed(&origin, &file, SkipAll, Skip)?;
    let metadata = footer.metadata();
    let chosen = Chosen::of(&footer, counted(footer.schema()));
    let encrypted = encrypted.any(|leaf| chosen.reads(leaf));
    intervals_are_whole(metadata).map_err(|what| origin.error(what))?;
    let mut spans = Vec::with_capacity(metadata.num_row_groups());
    let mut rows = 0;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let in_group = plausible(group, file.len).map_err(|what| {
            origin.error(format!("the file is damaged: row group {index}: {what}"))
        })?;
        spans.push(Span { part: index..index + 1, first_row: rows, rows: Some(in_group) });
        rows += in_group;
    }
    overlaps::check(metadata.row_groups())
        .map_err(|what| origin.error(format!("the file is damaged: {what}")))?;
    let random = Arc::new(file);
    let mut columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let has_bloom_filters = columns.any(|column| column.bloom_filter_offset().is_some());
    let mut reader = estimate::Reader::default();
    let mut profiles: Vec<Option<Profile>> = spans.iter().map(|_| None).collect();
    // Pages of an encrypted file cannot be inspected.
    if !encrypted {
        let mut allowance = match random.is_far() {
            true => Allowance::of_footers(),
            false => Allowance::to_plan(options.ceiling),
        };
        let mut groups: Vec<_> = metadata.row_groups().iter().zip(&mut profiles).collect();
        // The largest groups come first, because the allowance may not suffice for all.
        groups.sort_by_key(|(group, _)| std::cmp::Reverse(group.total_byte_size()));
        for (group, kept) in groups {
            let profile = Profile::of(&random, group, &chosen, &mut allowance);
            reader.note(&profile, batch_rows);
            *kept = profile.kept();
        }
    }
    let opened = Opened {
        format: Format::Parquet,
        schema: chosen.schema.clone(),
        bytes: Some(random.len),
        rows: Some(rows),
        reader_bytes: reader
            .bytes(metadata, &chosen, footer_bytes(&random, metadata))
            .saturating_add(held_bytes(&random, metadata, &chosen)),
        row_bytes: estimate::mean_row(metadata, &chosen),
        longest_row: usize::try_from(reader.longest).unwrap_or(usize::MAX),
        // A page, and its values.
        copies: 2,
        about: About { has_bloom_filters, ..About::default() },
        content: Box::new(ParquetFile {
            origin,
            ordinal,
            rows,
            groups: spans.len(),
            chosen,
            encrypted,
            ceiling: options.ceiling,
            footers: footers.clone(),
            ahead: Arc::default(),
            reads_again: options.reads_again,
        }),
        spans,
    };
    footers.put(ordinal, CachedFooter { footer, profiles: profiles.into() });
    Ok(opened)
}

/// Returns the byte ranges of a row group's needed column chunks, and the sum of their lengths.
fn chunks(group: &RowGroupMetaData, chosen: &Chosen) -> (Vec<Range<u64>>, u64) {
    let chunks: Vec<Range<u64>> = chosen.chunks(group).map(bytes_of).collect();
    let total = chunks.iter().fold(0_u64, |all, chunk| all.saturating_add(chunk.end - chunk.start));
    (chunks, total)
}

/// Returns the bytes that a reader of an object holds, including the next row group.
fn held_bytes(file: &RandomFile, metadata: &ParquetMetaData, chosen: &Chosen) -> usize {
    if !file.is_far() {
        return 0;
    }
    let held = metadata.row_groups().iter().map(|group| {
        let (chunks, total) = chunks(group, chosen);
        store::held_bytes(chunks.len(), total)
    });
    usize::try_from(held.max().unwrap_or(0)).unwrap_or(usize::MAX)
}

/// Refuses intervals of writers other than Arrow. Such intervals have months, days and
/// milliseconds, and would be read without the months.
fn intervals_are_whole(metadata: &ParquetMetaData) -> Result<(), String> {
    let file = metadata.file_metadata();
    let arrow = file.key_value_metadata().is_some_and(|pairs| {
        pairs.iter().any(|pair| pair.key == parquet::arrow::ARROW_SCHEMA_META_KEY)
    });
    let mut columns = file.schema_descr().columns().iter();
    match columns.find(|column| column.converted_type() == ConvertedType::INTERVAL) {
        Some(column) if !arrow => Err(format!(
            "column '{}' is an INTERVAL, the months of which cannot be read; cast it to a number or \
             to text first",
            column.path().string()
        )),
        _ => Ok(()),
    }
}

/// Returns the rows of `group`, if its declared positions and lengths are possible in a file of
/// `len` bytes.
fn plausible(group: &RowGroupMetaData, len: u64) -> Result<u64, String> {
    let rows = u64::try_from(group.num_rows()).map_err(|_| "a negative number of rows")?;
    for column in group.columns() {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let end = u64::try_from(start)
            .ok()
            .zip(u64::try_from(column.compressed_size()).ok())
            .and_then(|(start, length)| start.checked_add(length));
        if end.is_none_or(|end| end > len) || column.uncompressed_size() < 0 {
            return Err(format!(
                "column '{}' lies outside the file, which has {len} bytes; copy it again",
                column.column_path().string()
            ));
        }
    }
    Ok(rows)
}

/// Returns the declared sort columns of `group`.
pub(crate) fn declared_order(group: &RowGroupMetaData) -> Vec<DeclaredColumn> {
    let columns = group.sorting_columns().into_iter().flatten();
    columns
        .map(|sorting| DeclaredColumn {
            name: usize::try_from(sorting.column_idx)
                .ok()
                .filter(|leaf| *leaf < group.num_columns())
                .map_or_else(
                    || format!("(no column {})", sorting.column_idx),
                    |leaf| group.column(leaf).column_path().string(),
                ),
            descending: sorting.descending,
            nulls_first: sorting.nulls_first,
        })
        .collect()
}

/// Returns the declared order of all row groups; empty if the orders differ.
pub(crate) fn common_order(metadata: &ParquetMetaData) -> Vec<DeclaredColumn> {
    let mut orders = metadata.row_groups().iter().map(declared_order);
    let Some(first) = orders.next() else {
        return Vec::new();
    };
    if orders.all(|order| order == first) { first } else { Vec::new() }
}

impl ParquetFile {
    /// Returns the file with a row group that was prefetched earlier, or is requested now.
    fn holding(&self, footer: &Footer, part: &Range<usize>) -> Result<RandomFile> {
        let mut ahead = lock(&self.ahead);
        if let Some(place) = ahead.iter().position(|(group, _)| *group == part.start) {
            return Ok(ahead.swap_remove(place).1);
        }
        drop(ahead);
        let file = self.origin.random()?;
        if file.is_far() {
            let (chunks, total) = chunks(footer.metadata().row_group(part.start), &self.chosen);
            file.hold(&chunks, total);
        }
        Ok(file)
    }

    /// Returns the rows of some row groups. With `rows`, returns only these rows of a single row
    /// group, and reports the omitted rows.
    fn segments(
        &self,
        part: Range<usize>,
        rows: Option<&[Range<u64>]>,
        batch_rows: usize,
        watch: &Watch,
    ) -> Result<Pieces> {
        if self.encrypted {
            return Err(self
                .origin
                .error("columns of it are encrypted, though its footer is not; decrypt it first"));
        }
        let CachedFooter { footer, profiles } = match self.footers.get(self.ordinal) {
            Some(known) => known,
            None => {
                let file = self.origin.random()?;
                let footer = load(&self.origin, &file, SkipAll, Skip)?;
                let groups = footer.metadata().row_groups();
                let rows: i64 = groups.iter().map(RowGroupMetaData::num_rows).sum();
                if groups.len() != self.groups || rows as u64 != self.rows {
                    return Err(self.origin.error("the file was replaced while it was read"));
                }
                let known = CachedFooter { footer, profiles: Arc::default() };
                self.footers.put(self.ordinal, known.clone());
                known
            }
        };
        let file = self.holding(&footer, &part)?;
        let is_held = |group| !file.is_far() || chunks(group, &self.chosen).1 <= store::HELD;
        let group = footer.metadata().row_group(part.start);
        let again = (self.reads_again && file.is_far() && is_held(group))
            .then(|| (part.start, Arc::clone(&self.ahead)));
        let random = Arc::new(file.clone());
        let mut parts = Vec::new();
        let mut is_longer = false;
        for index in part {
            let group = footer.metadata().row_group(index);
            let found;
            let profile = match profiles.get(index) {
                Some(Some(profile)) => profile,
                _ => {
                    // A row group that is not held whole cannot be inspected before reading.
                    let mut allowance = match is_held(group) {
                        true => Allowance::to_read(self.ceiling),
                        false => Allowance::of_footers(),
                    };
                    found = Profile::of(&random, group, &self.chosen, &mut allowance);
                    &found
                }
            };
            is_longer |= watch.longest.admit(profile.longest).map_err(|need| {
                let (rows, name) = (&profile.longest_in, self.origin.name());
                need.error(name, &format!("one of the rows {} to {}", rows.start, rows.end - 1))
                    .at_row(rows.start)
            })?;
            let all = 0..group.num_rows().unsigned_abs();
            let kept = rows.unwrap_or(std::slice::from_ref(&all));
            let steps = steps(&profile.segments(batch_rows), kept, &all);
            parts.extend(steps.into_iter().map(|step| (index, step)));
        }
        let name = self.origin.name().clone();
        let chosen = self.chosen.clone();
        let mut segments = Segments::new(name, file, footer, chosen, parts, is_longer);
        segments.again = again;
        Ok(Box::new(std::iter::from_fn(move || segments.advance().transpose())))
    }
}

impl Content for ParquetFile {
    fn forget(&self) {
        lock(&self.ahead).clear();
    }

    fn ask_for(&self, part: Range<usize>) {
        // A prefetch does not load a missing footer.
        if self.origin.is_far()
            && !self.encrypted
            && let Some(CachedFooter { footer, .. }) = self.footers.get(self.ordinal)
            && lock(&self.ahead).iter().all(|(group, _)| *group != part.start)
            && let Ok(file) = self.holding(&footer, &part)
        {
            lock(&self.ahead).push((part.start, file));
        }
    }

    fn read(&self, part: Range<usize>, batch_rows: usize, watch: &Watch) -> Result<Pieces> {
        self.segments(part, None, batch_rows, watch)
    }

    fn read_some(
        &self,
        part: Range<usize>,
        rows: &[Range<u64>],
        batch_rows: usize,
        watch: &Watch,
    ) -> Result<Pieces> {
        self.segments(part, Some(rows), batch_rows, watch)
    }

    fn page_index(&self) -> Result<Option<Footer>> {
        let known = self.footers.get(self.ordinal);
        let has_index = |known: CachedFooter| has_small_index(known.footer.metadata());
        if self.encrypted || self.origin.is_far() || !known.is_some_and(has_index) {
            return Ok(None);
        }
        load(&self.origin, &self.origin.random()?, SkipAll, Optional).map(Some)
    }

    fn row_groups(&self, wanted: &dyn Fn(&Footer) -> bool) -> Result<Option<RowGroups>> {
        if self.encrypted || self.origin.is_far() {
            return Ok(None);
        }
        let file = self.origin.random()?;
        let footer = match self.footers.get(self.ordinal) {
            Some(known) => known.footer,
            None => load(&self.origin, &file, SkipAll, Skip)?,
        };
        let metadata = footer.metadata();
        if index_bytes(metadata) > MOST_INDEX_BYTES || !wanted(&footer) {
            return Ok(None);
        }
        drop(footer);
        let footer = load(&self.origin, &file, KeepAll, Optional)?;
        Ok(Some(RowGroups { file, footer, has_bloom_filters: false }))
    }

    fn whole_row_groups(&self) -> Result<Option<RowGroups>> {
        if self.encrypted {
            return Ok(None);
        }
        let file = self.origin.random()?;
        let footer = load(&self.origin, &file, KeepAll, Optional)?;
        Ok(Some(RowGroups { file, footer, has_bloom_filters: true }))
    }

    fn footer(&self) -> Result<Option<Footer>> {
        load(&self.origin, &self.origin.random()?, KeepAll, Skip).map(Some)
    }
}
