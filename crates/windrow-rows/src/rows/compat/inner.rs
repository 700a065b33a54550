//! Rows inside rows: elements of lists and values of dictionaries, collected and then decoded as
//! rows.
//!
//! ```text
//! row      | .. | 02 01 a a a a .. 05 | 02 01 b b b b .. 05 | 01 | ..   a list
//! inner    | 01 a a a a | 01 b b b b |                                  elements, read by tiles
//! ```

use arrow_array::ArrayRef;
use arrow_schema::Fields;

use super::field::corrupt;
use super::node::Node;
use crate::error::Result;
use crate::rows::read::{Part, Reader, TILE};

/// Approximate bytes of collected rows: the rows are still in the first-level cache when they are
/// read.
const BYTES: usize = 16 << 10;

/// Collected rows, and the columns of all earlier rows.
pub(super) struct Inner<'a> {
    reader: Reader<'a>,
    /// Bytes of every row, if all rows have one length.
    stride: Option<usize>,
    bytes: Vec<u8>,
    /// End of each row.
    ends: Vec<u32>,
}

impl<'a> Inner<'a> {
    /// Creates a collector of rows with these `fields`, `nodes` and parts.
    pub(super) fn new(parts: Vec<Box<dyn Part + 'a>>, nodes: &[Node], fields: Fields) -> Self {
        let reader = Reader::new(parts, fields);
        let stride = nodes.iter().map(Node::same_len).sum();
        Self { reader, stride, bytes: Vec::new(), ends: Vec::new() }
    }

    /// Adds the row that `append` writes. Returns false if `append` returns false and writes no
    /// row.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        append: impl FnOnce(&mut Vec<u8>) -> Result<bool>,
    ) -> Result<bool> {
        let before = self.bytes.len();
        if !append(&mut self.bytes)? {
            return Ok(false);
        }
        if self.stride.is_some_and(|stride| self.bytes.len() != before + stride) {
            return Err(corrupt("a value inside of another that is too short, or too long"));
        }
        let end = u32::try_from(self.bytes.len());
        self.ends.push(end.map_err(|_| corrupt("a value inside of another of over 4 GiB"))?);
        if self.ends.len() == TILE
            || self.bytes.len() >= BYTES && self.ends.len().is_multiple_of(64)
        {
            self.read()?;
        }
        Ok(true)
    }

    /// Adds a copy of a row.
    #[inline(always)]
    pub(super) fn push(&mut self, row: &[u8]) -> Result<()> {
        self.add(|bytes| {
            bytes.extend_from_slice(row);
            Ok(true)
        })?;
        Ok(())
    }

    /// Reads the collected rows.
    fn read(&mut self) -> Result<()> {
        match self.stride {
            Some(stride) => self.reader.read_strided(&self.bytes, stride, self.ends.len())?,
            None => self.reader.read_ended(&self.bytes, 0, &self.ends)?,
        }
        self.bytes.clear();
        self.ends.clear();
        Ok(())
    }

    /// Builds the columns of all rows.
    pub(super) fn finish(mut self) -> Result<Vec<ArrayRef>> {
        self.read()?;
        Ok(self.reader.finish()?.into_iter().flatten().collect())
    }
}
