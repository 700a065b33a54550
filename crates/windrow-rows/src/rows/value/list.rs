//! Lists of any length: List, ListView, their Large forms, and Map.
//!
//! # Invariant
//! A list is its length and its elements, in sequence. A reader stores elements one after another,
//! so views that overlapped or ran backwards come back without overlap. A map is a list of its
//! entries.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, GenericListArray, GenericListViewArray, MapArray, OffsetSizeTrait};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};

use super::super::nested::{Form, other_node};
use super::super::row_ref::{Rest, RowRef};
use super::reader::ValueReader;
use super::wire::{append, refused, too_many};
use crate::error::Result;
use crate::order::code::Node;

/// Lists to read one by one after a list without a fast path.
const STRETCH: usize = 64;

/// Positions of the elements of lists in rows.
pub(super) struct Elements {
    starts: Vec<usize>,
    ends: Vec<usize>,
}

impl Elements {
    pub(super) fn with_capacity(count: usize) -> Self {
        Self { starts: Vec::with_capacity(count), ends: Vec::with_capacity(count) }
    }

    fn len(&self) -> usize {
        self.starts.len()
    }

    #[inline(always)]
    pub(super) fn push(&mut self, start: usize, end: usize) {
        self.starts.push(start);
        self.ends.push(end);
    }

    /// Adds the element at the read position of row `at`. `skip` moves the row past the element.
    pub(super) fn add(
        &mut self,
        rows: &mut Rest<'_, '_>,
        at: usize,
        skip: impl FnOnce(&mut RowRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let start = rows.cursors[at];
        rows.read(at, skip)?;
        self.push(start, rows.cursors[at]);
        Ok(())
    }

    /// Returns all elements as rows to read.
    pub(super) fn rest<'a>(&mut self, bytes: &'a [u8]) -> Rest<'a, '_> {
        Rest { bytes, cursors: &mut self.starts, ends: &self.ends }
    }
}

/// Appends the ends of lists of `data_type` to `offsets`. `counts` are the numbers of elements.
///
/// # Errors
/// If the end does not fit an offset.
pub(in crate::rows) fn add_ends<O: OffsetSizeTrait>(
    data_type: &DataType,
    counts: &[usize],
    offsets: &mut Vec<O>,
) -> Result<()> {
    let mut end = offsets.last().map_or(0, |end| end.as_usize());
    for count in counts {
        end = end.saturating_add(*count);
        offsets.push(O::from_usize(end).ok_or_else(|| too_many(data_type, "the elements"))?);
    }
    Ok(())
}

/// Builds the array of lists, or maps, of `data_type`, with offsets of type `O`.
///
/// # Errors
/// If `values` have another type, or nulls where the type has none.
pub(in crate::rows) fn list_array<O: OffsetSizeTrait>(
    data_type: &DataType,
    offsets: Vec<O>,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let build = || -> Result<ArrayRef, ArrowError> {
        Ok(match data_type {
            DataType::ListView(field) | DataType::LargeListView(field) => {
                let sizes = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
                let starts = ScalarBuffer::from(offsets).slice(0, ScalarBuffer::len(&sizes));
                let field = Arc::clone(field);
                Arc::new(GenericListViewArray::<O>::try_new(field, starts, sizes, values, nulls)?)
            }
            DataType::Map(entries, ordered) => {
                // Maps have offsets of 32 bits.
                let offsets = offsets.iter().map(|end| end.as_usize() as i32).collect();
                let (entries, values) = (Arc::clone(entries), values.as_struct().clone());
                let offsets = OffsetBuffer::new(offsets);
                Arc::new(MapArray::try_new(entries, offsets, values, nulls, *ordered)?)
            }
            DataType::List(field) | DataType::LargeList(field) => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                let field = Arc::clone(field);
                Arc::new(GenericListArray::<O>::try_new(field, offsets, values, nulls)?)
            }
            other => return Err(ArrowError::SchemaError(format!("{other} has no lists"))),
        })
    };
    build().map_err(refused)
}

pub(super) struct ListReader<O: OffsetSizeTrait> {
    data_type: DataType,
    /// Ends of the lists, after a first 0.
    offsets: Vec<O>,
    nulls: NullBufferBuilder,
    values: Box<dyn ValueReader>,
}

impl<O: OffsetSizeTrait> ListReader<O> {
    pub(super) fn new(data_type: &DataType, values: Box<dyn ValueReader>) -> Self {
        Self {
            data_type: data_type.clone(),
            offsets: vec![O::default()],
            nulls: NullBufferBuilder::new(0),
            values,
        }
    }

    /// Reads lists one by one, and counts the elements of each.
    fn read_each(
        &mut self,
        element: &Node,
        form: Form,
        rows: &mut Rest<'_, '_>,
        counts: &mut [usize],
    ) -> Result<()> {
        // Positions of the elements: all elements are read at once.
        let mut elements = Elements::with_capacity(2 * rows.len());
        let width = match element {
            Node::Plain(code) if !code.varies() => Some(code.width()),
            _ => None,
        };
        for (at, count) in (0..rows.len()).zip(counts) {
            let before = elements.len();
            match width {
                Some(width) => {
                    // By offsets within the row: elements are short and many.
                    let (row, first) = (rows.row(at), rows.cursors[at]);
                    let mut own = 0;
                    while form.more_at(&row, own)? {
                        let len = if form.value_at(&row, own + 1)? { 1 + width } else { 1 };
                        elements.push(first + own + 1, first + own + 1 + len);
                        own += 1 + len;
                    }
                    rows.cursors[at] = first + own + 1;
                }
                None => {
                    while rows.read(at, |row| form.more(row))? {
                        elements.add(rows, at, |row| form.skip(element, row))?;
                    }
                }
            }
            *count = elements.len() - before;
        }
        self.values.read_codes(element, form, &mut elements.rest(rows.bytes))
    }
}

impl<O: OffsetSizeTrait> ValueReader for ListReader<O> {
    fn read_bodies(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        let Node::List(element) = node else { return Err(other_node()) };
        self.nulls.append_n_non_nulls(rows.len());
        self.offsets.reserve(rows.len());
        let (mut first, mut counts) = (0, vec![0; rows.len()]);
        while first < rows.len() {
            let left = &mut rows.part(first..rows.len());
            let read = self.values.read_lists(element, form, left, &mut counts[first..]);
            // A list stopped the fast path: if few were read, the next lists are likely to stop it,
            // too.
            let stopped = first + read;
            let behind = match read {
                0 if first == 0 => rows.len(),
                _ => rows.len().min(stopped + STRETCH),
            };
            let own = &mut rows.part(stopped..behind);
            self.read_each(element, form, own, &mut counts[stopped..behind])?;
            add_ends(&self.data_type, &counts[first..behind], &mut self.offsets)?;
            first = behind;
        }
        Ok(())
    }

    fn fill(&mut self, count: usize, valid: bool) -> Result<()> {
        let end = self.offsets.last().copied().unwrap_or_default();
        self.offsets.resize(self.offsets.len() + count, end);
        append(&mut self.nulls, count, valid);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let offsets = std::mem::replace(&mut self.offsets, vec![O::default()]);
        list_array(&self.data_type, offsets, self.values.finish()?, self.nulls.finish())
    }
}
