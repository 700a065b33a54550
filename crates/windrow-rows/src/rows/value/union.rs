//! Unions, sparse and dense.
//!
//! # Invariant
//! A value is its type id + 1 and the value of the selected field; both modes write the same bytes.
//! Unselected children of a sparse union get placeholders at their next selection or at the end, so
//! the cost of a row does not depend on the number of children.

use std::sync::Arc;

use arrow_array::{ArrayRef, UnionArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, UnionFields, UnionMode};

use super::super::nested::{self, Form, other_node};
use super::super::row_ref::Rest;
use super::reader::ValueReader;
use super::wire::{corrupt, refused, too_many};
use crate::error::Result;
use crate::order::code::Node;

/// Positions of fields by type id.
struct Positions([Option<u8>; 128]);

impl Positions {
    fn new(fields: &UnionFields) -> Self {
        let mut positions = [None; 128];
        // `UnionFields` guarantees at most 128 fields, with distinct ids.
        for (position, (id, _)) in (0..).zip(fields.iter()) {
            positions[id as usize] = Some(position);
        }
        Self(positions)
    }

    fn get(&self, id: i8) -> Option<usize> {
        let position = usize::try_from(id).ok().and_then(|id| self.0[id]);
        position.map(usize::from)
    }
}

struct Child {
    values: Box<dyn ValueReader>,
    len: usize,
}

impl Child {
    fn read_codes(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        self.values.read_codes(node, form, rows)?;
        self.len += rows.len();
        Ok(())
    }

    fn fill_to(&mut self, len: usize) -> Result<()> {
        if len > self.len {
            self.values.fill(len - self.len, true)?;
            self.len = len;
        }
        Ok(())
    }
}

pub(super) struct UnionReader {
    data_type: DataType,
    fields: UnionFields,
    positions: Positions,
    children: Vec<Child>,
    ids: Vec<i8>,
    /// Positions of the rows in their children; `None` if the union is sparse.
    offsets: Option<Vec<i32>>,
}

impl UnionReader {
    pub(super) fn new(
        data_type: &DataType,
        fields: &UnionFields,
        mode: UnionMode,
        children: Vec<Box<dyn ValueReader>>,
    ) -> Self {
        let child = |values| Child { values, len: 0 };
        Self {
            data_type: data_type.clone(),
            fields: fields.clone(),
            positions: Positions::new(fields),
            children: children.into_iter().map(child).collect(),
            ids: Vec::new(),
            offsets: (mode == UnionMode::Dense).then(Vec::new),
        }
    }

    /// Returns the type id `byte - 1`, and the position of its field.
    fn position(&self, byte: u8) -> Result<(i8, usize)> {
        let id = byte.checked_sub(1).and_then(|id| i8::try_from(id).ok());
        id.and_then(|id| Some((id, self.positions.get(id)?)))
            .ok_or_else(|| corrupt(format!("expected a type id + 1 of the union, got {byte}")))
    }
}

impl ValueReader for UnionReader {
    fn read_bodies(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        let Node::Union(nodes) = node else { return Err(other_node()) };
        // Neighbours of one type are read at once.
        let mut first = 0;
        while first < rows.len() {
            let byte = rows.read(first, |row| form.byte(row))?;
            let (id, position) = self.position(byte)?;
            let mut run = 1;
            while first + run < rows.len()
                && rows.row(first + run).first().map(|next| next ^ form.flip) == Some(byte)
            {
                rows.read(first + run, |row| form.byte(row))?;
                run += 1;
            }
            let child = &mut self.children[position];
            match &mut self.offsets {
                Some(offsets) => {
                    for offset in child.len..child.len + run {
                        let offset = i32::try_from(offset);
                        offsets.push(offset.map_err(|_| too_many(&self.data_type, "the values"))?);
                    }
                }
                None => child.fill_to(self.ids.len())?,
            }
            let own = &mut rows.part(first..first + run);
            child.read_codes(nested::child(nodes, byte)?, form, own)?;
            self.ids.resize(self.ids.len() + run, id);
            first += run;
        }
        Ok(())
    }

    /// Appends placeholders of the first type; in a dense union, all share one slot. Arrow's unions
    /// have no nulls of their own.
    fn fill(&mut self, count: usize, valid: bool) -> Result<()> {
        if !valid {
            return Err(corrupt("a null in place of a union's value"));
        }
        let (Some((id, _)), Some(child)) = (self.fields.iter().next(), self.children.first_mut())
        else {
            return Err(corrupt("a union without fields has no values"));
        };
        let len = self.ids.len() + count;
        match &mut self.offsets {
            Some(offsets) => {
                child.fill_to(1)?;
                offsets.resize(len, 0);
            }
            None => child.fill_to(len)?,
        }
        self.ids.resize(len, id);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let ids = std::mem::take(&mut self.ids);
        let mut children = Vec::with_capacity(self.children.len());
        for child in &mut self.children {
            if self.offsets.is_none() {
                child.fill_to(ids.len())?;
            }
            children.push(child.values.finish()?);
            child.len = 0;
        }
        let offsets = (self.offsets.as_mut()).map(|offsets| std::mem::take(offsets).into());
        let array =
            UnionArray::try_new(self.fields.clone(), ScalarBuffer::from(ids), offsets, children);
        Ok(Arc::new(array.map_err(refused)?))
    }
}
