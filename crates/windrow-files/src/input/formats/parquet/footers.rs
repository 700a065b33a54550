//! The footers of Parquet files: how they are read, and a cache of footers with the page profiles
//! found while planning.

use std::collections::VecDeque;
use std::io::BufReader;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetStatisticsPolicy, RowGroupMetaData,
};

use crate::error::Result;
use crate::input::row_groups::Footer;
use crate::input::source::origin::{Origin, TAIL};
use crate::input::source::random::RandomFile;
use crate::limits::Ceiling;

use super::footer_depth::Survey;
use super::profile::Profile;
use super::{annotations, dictionaries, int96};

/// Maximum size of a page index that is examined. The larger index of thousands of columns would be
/// a burden on the plan.
pub(super) const MOST_INDEX_BYTES: u64 = 1 << 20;

/// Bytes that a job takes for each byte of a large footer of an object. Such a footer is checked
/// before its survey, because a survey would hold all of the footer.
const FAR_TIMES: u64 = 12;

/// Bytes that a job takes for a column besides its data.
const COLUMN: u64 = 8 << 10;

/// Bytes of the Arrow field of a column in a parsed footer.
const ARROW_COLUMN: u64 = 512;

/// Bytes of the allocator for the page counts of a column chunk in a parsed footer.
const CHUNK_SLACK: u64 = 32;

/// Bytes of the parsed page index of a column chunk.
const INDEX_BYTES: u64 = 1 << 10;

/// Maximum number of cached footers: one for each reading thread, and some more for a merge of few
/// files.
const CACHED: usize = 8;

/// A footer, and the profiles of its row groups.
#[derive(Clone)]
pub(super) struct CachedFooter {
    pub(super) footer: Footer,
    /// Profile of each row group whose pages were all examined. The profiles together have at most
    /// as many steps as [planning](super::allowance::Allowance::to_plan) may examine pages.
    pub(super) profiles: Arc<[Option<Profile>]>,
}

/// The files used last, by ordinal.
#[derive(Default)]
pub(crate) struct FooterCache(Mutex<VecDeque<(usize, CachedFooter)>>);

impl FooterCache {
    pub(super) fn get(&self, file: usize) -> Option<CachedFooter> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = files.iter().position(|(key, _)| *key == file)?;
        let found = files.remove(place)?;
        let known = found.1.clone();
        files.push_back(found);
        Some(known)
    }

    pub(super) fn put(&self, file: usize, known: CachedFooter) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(key, _)| *key != file);
        if files.len() == CACHED {
            files.pop_front();
        }
        files.push_back((file, known));
    }
}

/// Surveys the footer of `origin`.
///
/// # Errors
/// `MemoryFloor` if the footer takes too much memory.
pub(super) fn survey(origin: &Origin, file: &RandomFile, ceiling: Ceiling) -> Result<Survey> {
    let ask_from = |start: u64| {
        file.hold(std::slice::from_ref(&(start..file.len)), file.len - start);
    };
    ask_from(file.len.saturating_sub(TAIL));
    let Some(start) = footer_start(file) else { return Ok(Survey::default()) };
    let length = file.len - start;
    let admit = |bytes: u64, later: u64| ceiling.admit(bytes, later, origin.name(), "its footer");
    if length > TAIL && file.is_far() {
        admit(length, length.saturating_mul(FAR_TIMES))?;
        ask_from(start);
    }
    let footer = BufReader::new(file.reader_at(start));
    let survey = Survey::of(footer).map_err(|what| origin.error(what))?;
    let bytes = length.saturating_add(survey.bytes());
    // The footer during planning, and read once more; and the readers of the columns.
    admit(bytes, bytes.saturating_mul(2).saturating_add(survey.columns().saturating_mul(COLUMN)))?;
    Ok(survey)
}

pub(super) fn load(
    origin: &Origin,
    file: &RandomFile,
    statistics: ParquetStatisticsPolicy,
    pages: PageIndexPolicy,
) -> Result<Footer> {
    survey(origin, file, Ceiling::default())?;
    parsed(origin, file, statistics, pages)
}

/// Parses a footer that was surveyed.
pub(super) fn parsed(
    origin: &Origin,
    file: &RandomFile,
    statistics: ParquetStatisticsPolicy,
    pages: PageIndexPolicy,
) -> Result<Footer> {
    let options = ArrowReaderOptions::new()
        .with_column_stats_policy(statistics)
        .with_page_index_policy(pages)
        // The counts of pages tell how large a page is.
        .with_encoding_stats_as_mask(false);
    ArrowReaderMetadata::load(file, options)
        .and_then(dictionaries::settled)
        .and_then(int96::settled)
        .and_then(annotations::settled)
        .map_err(|cause| origin.error(unreadable(file, &cause)))
}

/// Bytes of another look at the footer: the footer as in the file and as parsed, and the page index
/// with the statistics if the index is small.
pub(super) fn footer_bytes(file: &RandomFile, metadata: &ParquetMetaData) -> u64 {
    let length = footer_start(file).map_or(0, |start| file.len - start);
    let groups = metadata.row_groups().iter();
    let chunks: u64 = groups.map(|group| group.num_columns() as u64).sum();
    let (again, index) = if has_small_index(metadata) { (2, INDEX_BYTES) } else { (1, 0) };
    let columns = metadata.file_metadata().schema_descr().num_columns() as u64;
    let parsed = metadata.memory_size() as u64 + columns * ARROW_COLUMN;
    parsed + again * length + chunks * (CHUNK_SLACK + index)
}

/// Returns whether the file has a page index, and a small one.
pub(super) fn has_small_index(metadata: &ParquetMetaData) -> bool {
    (1..=MOST_INDEX_BYTES).contains(&index_bytes(metadata))
}

/// Returns the bytes of the page index in the file.
pub(super) fn index_bytes(metadata: &ParquetMetaData) -> u64 {
    let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let bytes = columns.map(|column| {
        let parts = [column.column_index_length(), column.offset_index_length()];
        parts.into_iter().flatten().map(|length| i64::from(length).unsigned_abs()).sum::<u64>()
    });
    bytes.sum()
}

/// Returns the start of the footer, if the file ends with Parquet's magic number.
fn footer_start(file: &RandomFile) -> Option<u64> {
    let end = file.len.checked_sub(8)?;
    let tail = file.read_exact(end, 8).ok()?;
    let (length, magic) = tail.split_first_chunk::<4>()?;
    end.checked_sub(u64::from(u32::from_le_bytes(*length))).filter(|_| magic == b"PAR1")
}

/// Arrow's message for a schema in a footer that nests too deep.
const TOO_DEEP: &str = "DepthLimitReached";

/// Returns the message for a file with an unreadable footer.
fn unreadable(file: &RandomFile, cause: &dyn std::fmt::Display) -> String {
    let magic = |at| file.read_exact(at, 4).unwrap_or_default();
    let starts = magic(0) == b"PAR1";
    let ends = magic(file.len.saturating_sub(4)) == b"PAR1";
    if file.len == 0 {
        "the file is empty, so it is not Parquet".into()
    } else if starts && !ends {
        format!(
            "the Parquet file is cut short, at {} bytes: its footer is missing; \
             copy it again, or let its writer finish",
            file.len
        )
    } else if magic(0) == b"PARE" {
        "the file is encrypted, which is not read; decrypt it first".into()
    } else if !starts && !ends {
        "not a Parquet file; name its format with `input_format`".into()
    } else if cause.to_string().contains(TOO_DEEP) {
        "its columns are nested too deep to be read: types of Arrow nest 61 deep at the most".into()
    } else {
        format!("the Parquet footer is damaged: {cause}")
    }
}
