//! Contents of a Parquet column chunk's pages, determined from their headers alone.
//!
//! ```text
//! chunk  [header][dictionary page][header][page ..][header][page ....]
//!         ^ read                   ^ read           ^ read
//! ```
//! The `parquet` crate reports the number of values of the next page, but not its bytes, so this
//! module parses the headers. For a page too long to bound its rows by its number of values,
//! [`look_into`] reads the values.
//!
//! Damage ends the walk without an error: the decoder of the pages reports it later.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page as Body, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::SerializedPageReader;

use crate::input::source::random::RandomFile;
use crate::thrift::{Thrift, kind};

/// Usual maximum of a header's bytes. Headers with minima and maxima of long values are longer.
const HEADER: usize = 256;
/// Maximum of a header's bytes.
const LONGEST_HEADER: usize = 16 << 20;

/// Kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Dictionary,
    /// Values, in any encoding, or indexes into the dictionary.
    Data {
        of_indexes: bool,
    },
    Other,
}

/// Content of a page's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) kind: Kind,
    /// Number of values, nulls included; for a list, number of items.
    pub(super) values: u64,
    /// Number of rows, if the header has it.
    pub(super) rows: Option<u64>,
    /// Bytes before compression.
    pub(super) plain: u64,
    /// Bytes in the file.
    packed: u64,
    /// Start of the header, and end of the page after it.
    at: u64,
    end: u64,
}

impl Page {
    /// Returns the page's bytes in the file.
    pub(super) fn packed(&self) -> u64 {
        self.packed
    }

    pub(super) fn is_data(&self) -> bool {
        matches!(self.kind, Kind::Data { .. })
    }
}

/// A walk over the pages of a column chunk.
pub(super) struct Pages<'a> {
    file: &'a RandomFile,
    at: u64,
    end: u64,
}

impl<'a> Pages<'a> {
    pub(super) fn of(file: &'a RandomFile, chunk: &ColumnChunkMetaData) -> Self {
        let (at, length) = chunk.byte_range();
        Self { file, at, end: at.saturating_add(length).min(file.len) }
    }

    fn header(&self) -> io::Result<Page> {
        let most = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(LONGEST_HEADER);
        let mut length = HEADER.min(most);
        loop {
            let bytes = self.file.read_exact(self.at, length)?;
            match header(&bytes) {
                Ok((page, length)) => {
                    let end = self.at + length as u64 + page.packed;
                    return Ok(Page { at: self.at, end, ..page });
                }
                Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof && length < most => {
                    length = length.saturating_mul(8).min(most);
                }
                Err(cause) => return Err(cause),
            }
        }
    }
}

impl Iterator for Pages<'_> {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        if self.at >= self.end {
            return None;
        }
        let page = self.header().ok().filter(|page| page.end <= self.end);
        self.at = page.map_or(self.end, |page| page.end);
        page
    }
}

/// Parses the header at the start of `bytes`. Returns its length, too.
fn header(bytes: &[u8]) -> io::Result<(Page, usize)> {
    let mut thrift = Thrift(bytes);
    let (mut kind, mut plain, mut packed) = (None, None, None);
    let mut about = About::default();
    let mut last = 0;
    while let Some((field, of)) = thrift.field(&mut last)? {
        match (field, of) {
            (1, kind::I16..=kind::I64) => kind = Some(thrift.integer()?),
            (2, kind::I16..=kind::I64) => plain = u64::try_from(thrift.integer()?).ok(),
            (3, kind::I16..=kind::I64) => packed = u64::try_from(thrift.integer()?).ok(),
            (5 | 7, kind::STRUCT) => about = About::read(&mut thrift, None, 2)?,
            (8, kind::STRUCT) => about = About::read(&mut thrift, Some(3), 4)?,
            (_, of) => thrift.skip(of, 0)?,
        }
    }
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let dictionary = [Encoding::PLAIN_DICTIONARY, Encoding::RLE_DICTIONARY].map(|e| e as i64);
    let kind = match kind.ok_or_else(damaged)? {
        0 | 3 => Kind::Data { of_indexes: dictionary.contains(&about.encoding) },
        2 => Kind::Dictionary,
        _ => Kind::Other,
    };
    let page = Page {
        kind,
        values: about.values,
        rows: about.rows,
        plain: plain.ok_or_else(damaged)?,
        packed: packed.ok_or_else(damaged)?,
        at: 0,
        end: 0,
    };
    Ok((page, bytes.len() - thrift.0.len()))
}

/// A header's facts about the page's values.
#[derive(Default)]
struct About {
    values: u64,
    rows: Option<u64>,
    encoding: i64,
}

impl About {
    /// Reads the struct at the current position, with these facts in the fields 1, `rows` and
    /// `encoding`.
    fn read(thrift: &mut Thrift<&[u8]>, rows: Option<i64>, encoding: i64) -> io::Result<Self> {
        let mut about = Self::default();
        let mut last = 0;
        while let Some((field, of)) = thrift.field(&mut last)? {
            match (field, of) {
                (1, kind::I16..=kind::I64) => {
                    about.values = u64::try_from(thrift.integer()?).unwrap_or(0);
                }
                (field, kind::I16..=kind::I64) if Some(field) == rows => {
                    about.rows = u64::try_from(thrift.integer()?).ok();
                }
                (field, kind::I16..=kind::I64) if field == encoding => {
                    about.encoding = thrift.integer()?;
                }
                (_, of) => thrift.skip(of, 1)?,
            }
        }
        Ok(about)
    }
}

/// Facts about a page, found by reading its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inside {
    pub(super) rows: u64,
    /// Bytes of the longest byte string.
    pub(super) longest: u64,
    /// Items of the longest list.
    pub(super) items: u64,
}

/// Reads `page` of `chunk`. Returns `None` if the encoding hides the lengths of the values.
pub(super) fn look_into(
    file: &Arc<RandomFile>,
    chunk: &ColumnChunkMetaData,
    page: &Page,
) -> Option<Inside> {
    let length = i32::try_from(page.end - page.at).ok()?;
    let place = PageLocation {
        offset: i64::try_from(page.at).ok()?,
        compressed_page_size: length,
        first_row_index: 0,
    };
    let mut pages = SerializedPageReader::new(file.clone(), chunk, 1, Some(vec![place])).ok()?;
    if page.at != chunk.byte_range().0 {
        // The reader takes any bytes in front of the first page for a dictionary.
        pages.skip_next_page().ok()?;
    }
    let column = chunk.column_descr();
    let (repeats, nulls) = (column.max_rep_level(), column.max_def_level());
    let (encoding, repetition, values) = match pages.get_next_page().ok()?? {
        Body::DictionaryPage { buf, .. } => {
            let longest = strings(&buf).max().unwrap_or(0);
            return Some(Inside { rows: 0, longest, items: 1 });
        }
        Body::DataPage { buf, encoding, def_level_encoding, rep_level_encoding, .. } => {
            let old = |encoding, levels| levels > 0 && encoding != Encoding::RLE;
            if old(rep_level_encoding, repeats) || old(def_level_encoding, nulls) {
                return None;
            }
            let (repetition, rest) = levels(&buf, repeats)?;
            let (_, values) = levels(&rest, nulls)?;
            (encoding, repetition, values)
        }
        Body::DataPageV2 { buf, encoding, rep_levels_byte_len, def_levels_byte_len, .. } => {
            let repetition = usize::try_from(rep_levels_byte_len).ok()?;
            let values = repetition.checked_add(usize::try_from(def_levels_byte_len).ok()?)?;
            if values > buf.len() {
                return None;
            }
            (encoding, buf.slice(..repetition), buf.slice(values..))
        }
    };
    let is_plain = encoding == Encoding::PLAIN && chunk.column_type() == Type::BYTE_ARRAY;
    let longest = if is_plain { strings(&values).max() } else { None };
    if repeats == 0 {
        return longest.map(|longest| Inside { rows: page.values, longest, items: 1 });
    }
    let (rows, items) = lists(&repetition, repeats, page.values)?;
    Some(Inside { rows, longest: longest.unwrap_or(0), items })
}

/// Splits a page of version 1 into the levels at its start and the rest.
fn levels(bytes: &Bytes, most: i16) -> Option<(Bytes, Bytes)> {
    if most == 0 {
        return Some((Bytes::new(), bytes.clone()));
    }
    let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let end = length.checked_add(4).filter(|&end| end <= bytes.len())?;
    Some((bytes.slice(4..end), bytes.slice(end..)))
}

/// Returns the lengths of byte strings in plain encoding.
fn strings(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length);
        rest = behind.get(length as usize..)?;
        Some(u64::from(length))
    })
}

/// Returns the number of rows in `values` repetition levels, and the items of the longest row.
fn lists(levels: &[u8], most: i16, values: u64) -> Option<(u64, u64)> {
    let width = 16 - most.leading_zeros() as usize;
    let (mut rows, mut items, mut longest, mut left) = (0, 0_u64, 0, values);
    let mut pass = |level_is_0: bool, count: u64| {
        if level_is_0 {
            rows += count;
            longest = longest.max(items).max(u64::from(count > 1));
            items = 1;
        } else {
            items += count;
        }
    };
    let mut rest = levels;
    while left > 0 {
        let head = varint(&mut rest)?;
        if head & 1 == 0 {
            let bytes = rest.get(..width.div_ceil(8))?;
            rest = &rest[bytes.len()..];
            let count = left.min(head >> 1);
            pass(bytes.iter().all(|byte| *byte == 0), count);
            left -= count;
            if count == 0 {
                return None;
            }
        } else {
            let length = usize::try_from(head >> 1).ok()?.checked_mul(width)?;
            let packed = rest.get(..length.min(rest.len()))?;
            rest = &rest[packed.len()..];
            let count = left.min((packed.len() * 8 / width) as u64);
            for place in 0..count as usize {
                let bits = (place * width..(place + 1) * width)
                    .any(|bit| packed[bit / 8] >> (bit % 8) & 1 != 0);
                pass(!bits, 1);
            }
            left -= count;
            if count == 0 {
                return None;
            }
        }
    }
    Some((rows, longest.max(items)))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in (0..63).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << place;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Returns the number of rows in each data page of `chunk`, if the file has an offset index.
pub(super) fn rows_of_index(
    file: &RandomFile,
    chunk: &ColumnChunkMetaData,
    rows: u64,
) -> Option<Vec<u64>> {
    let start = u64::try_from(chunk.offset_index_offset()?).ok()?;
    let length = usize::try_from(chunk.offset_index_length()?).ok()?;
    let bytes = file.read_exact(start, length.min(LONGEST_HEADER)).ok()?;
    let mut firsts = first_rows(&bytes).ok()?;
    firsts.push(rows);
    Some(firsts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect())
}

/// Parses an offset index. Returns the first row of each page.
fn first_rows(bytes: &[u8]) -> io::Result<Vec<u64>> {
    let mut thrift = Thrift(bytes);
    let (mut last, mut firsts) = (0, Vec::new());
    while let Some((field, of)) = thrift.field(&mut last)? {
        if (field, of) != (1, kind::LIST) {
            thrift.skip(of, 0)?;
            continue;
        }
        let (pages, _) = thrift.list()?;
        for _ in 0..pages {
            let mut last = 0;
            while let Some((field, of)) = thrift.field(&mut last)? {
                match (field, of) {
                    (3, kind::I16..=kind::I64) => {
                        firsts.push(u64::try_from(thrift.integer()?).unwrap_or(0));
                    }
                    (_, of) => thrift.skip(of, 1)?,
                }
            }
        }
    }
    Ok(firsts)
}
