//! Contents of a Parquet column chunk's pages, determined from their headers alone.
//!
//! ```text
//! chunk  [header][dictionary page][header][page ..][header][page ....]
//!         ^ read                   ^ read           ^ read
//! ```
//! The `parquet` crate reports the number of values of the next page, but not its bytes, so this
//! module parses the headers. [`inside`](super::inside) reads the values of a page.
//!
//! Damage ends the walk without an error: the decoder of the pages reports it later.

use std::io;
use std::ops::Range;

use parquet::basic::Encoding;
use parquet::file::metadata::ColumnChunkMetaData;

use crate::input::row_groups::bytes_of;
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

    /// Returns the positions of the header and the page in the file.
    pub(super) fn place(&self) -> Range<u64> {
        self.at..self.end
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
        let Range { start: at, end } = bytes_of(chunk);
        Self { file, at, end: end.min(file.len) }
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
    thrift.fields(|thrift, field, of| {
        match (field, of) {
            (1, kind::I16..=kind::I64) => kind = Some(thrift.integer()?),
            (2, kind::I16..=kind::I64) => plain = u64::try_from(thrift.integer()?).ok(),
            (3, kind::I16..=kind::I64) => packed = u64::try_from(thrift.integer()?).ok(),
            (5 | 7, kind::STRUCT) => about = About::read(thrift, None, 2)?,
            (8, kind::STRUCT) => about = About::read(thrift, Some(3), 4)?,
            (_, of) => thrift.skip(of, 0)?,
        }
        Ok(())
    })?;
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
        thrift.fields(|thrift, field, of| {
            if !(kind::I16..=kind::I64).contains(&of) {
                return thrift.skip(of, 1);
            }
            let number = thrift.integer()?;
            match field {
                1 => about.values = u64::try_from(number).unwrap_or(0),
                field if Some(field) == rows => about.rows = u64::try_from(number).ok(),
                field if field == encoding => about.encoding = number,
                _ => {}
            }
            Ok(())
        })?;
        Ok(about)
    }
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
    let mut firsts = Vec::new();
    thrift.fields(|thrift, field, of| {
        if (field, of) != (1, kind::LIST) {
            return thrift.skip(of, 0);
        }
        let (pages, _) = thrift.list()?;
        (0..pages).try_for_each(|_| {
            thrift.fields(|thrift, field, of| match (field, of) {
                (3, kind::I16..=kind::I64) => {
                    let first = thrift.integer()?;
                    firsts.push(u64::try_from(first).unwrap_or(0));
                    Ok(())
                }
                (_, of) => thrift.skip(of, 1),
            })
        })
    })?;
    Ok(firsts)
}
