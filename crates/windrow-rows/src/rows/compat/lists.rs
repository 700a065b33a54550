//! Lists, maps and lists of one size: the elements are rows of their own.
//!
//! ```text
//! list       null | blocks of an element .. 01       a map's elements are its entries, unmarked
//! of a size  null | 01 element element ..            elements without blocks
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, OffsetSizeTrait, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, FieldRef, SortOptions};

use super::blocks;
use super::field::{corrupt, flip, null_byte};
use super::inner::Inner;
use super::node::{Node, take_value};
use crate::error::Result;
use crate::rows::read::{Bits, Columns, Part, Tile};
use crate::rows::value::wire::{refused, take};
use crate::rows::value::{add_ends, list_array};

/// A column of lists or of maps.
pub(super) struct Lists<'a> {
    column: usize,
    options: SortOptions,
    /// Number of elements of each list.
    counts: Vec<usize>,
    elements: Inner<'a>,
}

impl<'a> Lists<'a> {
    pub(super) fn new(column: usize, options: SortOptions, elements: Inner<'a>) -> Self {
        Self { column, options, counts: Vec::new(), elements }
    }

    fn array<O: OffsetSizeTrait>(
        data_type: &DataType,
        counts: &[usize],
        values: ArrayRef,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let mut offsets = Vec::with_capacity(counts.len() + 1);
        offsets.push(O::default());
        add_ends(data_type, counts, &mut offsets)?;
        list_array(data_type, offsets, values, nulls)
    }
}

impl Part for Lists<'_> {
    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let Self { column, options, counts, elements } = self;
        let (null, flip) = (null_byte(*options), flip(*options));
        tile.for_each_valid(&mut valid[*column], |row| {
            if row.first() == Some(&null) {
                counts.push(0);
                return Ok((1, false));
            }
            let (mut code, mut count) = (row.row(), 0);
            while elements.add(|bytes| blocks::read(&mut code, flip, bytes))? {
                count += 1;
            }
            counts.push(count);
            Ok((row.len() - code.len(), true))
        })
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        let nulls = columns.nulls(self.column);
        let data_type = columns.data_type(self.column);
        let own = self.elements.finish()?;
        let values = match data_type {
            DataType::Map(entries, _) => {
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(corrupt("a map whose entries are no structs"));
                };
                Arc::new(StructArray::try_new(fields.clone(), own, None).map_err(refused)?)
            }
            _ => own.into_iter().next().ok_or_else(|| corrupt("lists without elements"))?,
        };
        let array = match data_type {
            DataType::LargeList(_) | DataType::LargeListView(_) => {
                Self::array::<i64>(data_type, &self.counts, values, nulls)?
            }
            _ => Self::array::<i32>(data_type, &self.counts, values, nulls)?,
        };
        columns.ready[self.column] = Some(array);
        Ok(())
    }
}

/// A column of lists of one size.
pub(super) struct FixedLists<'a> {
    column: usize,
    options: SortOptions,
    field: &'a FieldRef,
    size: usize,
    node: &'a Node,
    /// Code of a null element: the elements of a null list.
    null: Vec<u8>,
    elements: Inner<'a>,
}

impl<'a> FixedLists<'a> {
    /// Maximum size of lists that are read this way: a null list takes as many elements.
    pub(super) const MOST: usize = 1024;

    pub(super) fn new(
        column: usize,
        options: SortOptions,
        (field, size): (&'a FieldRef, usize),
        node: &'a Node,
        elements: Inner<'a>,
    ) -> Self {
        let mut null = Vec::new();
        node.put_null(options, &mut null);
        Self { column, options, field, size, node, null, elements }
    }
}

impl Part for FixedLists<'_> {
    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let Self { column, options, size, node, null, elements, .. } = self;
        let marker_of_null = null_byte(*options);
        tile.for_each_valid(&mut valid[*column], |row| {
            if row.first() == Some(&marker_of_null) {
                (0..*size).try_for_each(|_| elements.push(null))?;
                return Ok((1, false));
            }
            let mut code = row.row();
            take_value(&mut code)?;
            for _ in 0..*size {
                let len = node.code_len(code, *options)?;
                elements.push(take(&mut code, len)?)?;
            }
            Ok((row.len() - code.len(), true))
        })
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        let (nulls, rows) = (columns.nulls(self.column), columns.rows);
        let values = self.elements.finish()?.into_iter().next();
        let values = values.ok_or_else(|| corrupt("lists without elements"))?;
        let (field, size) = (Arc::clone(self.field), self.size as i32);
        let array = FixedSizeListArray::try_new_with_length(field, size, values, nulls, rows);
        columns.ready[self.column] = Some(Arc::new(array.map_err(refused)?));
        Ok(())
    }
}
