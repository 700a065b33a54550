//! The rows of files that a table hides: rows that were deleted or replaced without rewriting their
//! file.
//!
//! Sets of positions have the portable form of 64-bit Roaring bitmaps, which deletion vectors of Delta
//! and Iceberg contain, too.

use std::mem;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use roaring::RoaringTreemap;

use crate::error::{Error, Result, failed};

/// Rows as record batches.
pub(super) type Rows<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + Send + 'a>;

/// Positions of hidden rows of each file, by its ordinal.
#[derive(Default)]
pub(super) struct Hidden(Vec<Arc<RoaringTreemap>>);

impl Hidden {
    /// Decodes the positions of hidden rows of files, which have these names.
    ///
    /// # Errors
    /// `Data` for damaged positions.
    pub(super) fn of<'a>(files: impl Iterator<Item = (&'a Path, &'a [u8])>) -> Result<Self> {
        let of_file = |(name, bytes): (&Path, &[u8])| {
            if bytes.is_empty() {
                return Ok(Arc::default());
            }
            RoaringTreemap::deserialize_from(bytes).map(Arc::new).map_err(|error| {
                let name = name.display();
                Error::data(format!("{name}: the positions of hidden rows are damaged: {error}"))
            })
        };
        files.map(of_file).collect::<Result<_>>().map(Self)
    }

    /// Returns the hidden rows of a file; `None` if there are none.
    pub(super) fn of_file(&self, ordinal: usize) -> Option<&Arc<RoaringTreemap>> {
        self.0.get(ordinal).filter(|rows| !rows.is_empty())
    }

    /// Returns true if one of the rows in `range` of a file is hidden.
    pub(super) fn has(&self, ordinal: usize, range: Range<u64>) -> bool {
        self.of_file(ordinal).is_some_and(|rows| rows.range_cardinality(range) > 0)
    }

    /// Returns the number of hidden rows of all files.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|rows| rows.len()).sum()
    }

    /// Leaves out the hidden rows of a file, of which `rows` begin at the row `first`.
    pub(super) fn without<'a>(&self, ordinal: usize, rows: Rows<'a>, first: u64) -> Rows<'a> {
        match self.of_file(ordinal) {
            Some(hidden) => without(rows, Arc::clone(hidden), first),
            None => rows,
        }
    }
}

fn without(rows: Rows<'_>, hidden: Arc<RoaringTreemap>, first: u64) -> Rows<'_> {
    let mut next = first;
    Box::new(rows.map(move |batch| {
        let batch = batch?;
        let end = next + batch.num_rows() as u64;
        let range = mem::replace(&mut next, end)..end;
        if hidden.range_cardinality(range.clone()) == 0 {
            return Ok(batch);
        }
        let stays = range.map(|row| !hidden.contains(row)).collect::<Vec<_>>();
        filter_record_batch(&batch, &BooleanArray::from(stays)).map_err(failed)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_other_libraries_write_them() {
        // Written by CRoaring (pyroaring 1.2): {1, 3, 5, 70000, 2^32 + 7} and {0..=99999}, run-optimised.
        let few = "0200000000000000000000003a300000020000000000020001000000180000001e000000\
                   0100030005007011010000003a3000000100000000000000100000000700";
        let many = "0100000000000000000000003b300100030000ffff01009f8601000000ffff01000000\
                    9f86";
        let bytes = |text: &str| -> Vec<u8> {
            let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
            (0..text.len()).step_by(2).map(byte).collect()
        };
        let given = [bytes(many), bytes(few), Vec::new()];
        let hidden = Hidden::of(given.iter().map(|bytes| (Path::new("a"), bytes.as_slice())));
        let hidden = hidden.expect("valid");
        let rows = |file| hidden.of_file(file).expect("has hidden rows").iter().collect::<Vec<_>>();
        assert_eq!(rows(1), [1, 3, 5, 70_000, (1 << 32) + 7]);
        assert_eq!((rows(0).len(), hidden.len()), (100_000, 100_005));
        assert!(hidden.has(1, 4..6) && !hidden.has(1, 6..70_000) && hidden.of_file(2).is_none());
        let mut written = Vec::new();
        hidden.0[1].serialize_into(&mut written).expect("a vector grows");
        assert_eq!(written, given[1]);
        let damaged = std::iter::once((Path::new("a"), [1, 0, 0].as_slice()));
        assert!(Hidden::of(damaged).is_err());
    }
}
