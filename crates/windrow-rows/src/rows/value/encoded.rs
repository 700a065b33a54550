//! Arrays that store a value once for many rows: Dictionary and RunEndEncoded.
//!
//! # Invariant
//! Codes contain the values of rows, and nothing of their storage. A reader stores each distinct
//! value of a dictionary once, in the order of arrival, never null; and each run of equal values
//! once. Equal values have equal bytes, since codes are canonical.

use std::sync::Arc;

use arrow_array::types::{ArrowDictionaryKeyType, RunEndIndexType};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, RunArray};
use arrow_buffer::{ArrowNativeType, NullBufferBuilder};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::super::nested::{Form, Marked, null_id};
use super::super::row_ref::{Rest, left};
use super::interner::Interner;
use super::list::Elements;
use super::reader::ValueReader;
use super::wire::{append, refused, too_many};
use crate::error::Result;
use crate::order::code::{Node, OrderedCode};
use windrow_kernel::rows::block::{self, BLOCK};

/// First byte of a run's value, for a value and for a null; the code of a value follows.
const VALUE: u8 = 1;
const NULL: u8 = 0;

pub(super) struct DictionaryReader<K: ArrowDictionaryKeyType> {
    data_type: DataType,
    keys: Vec<K::Native>,
    nulls: NullBufferBuilder,
    values: Box<dyn ValueReader>,
    /// Bytes of each value in `values`, numbered like the keys.
    interned: Interner,
}

impl<K: ArrowDictionaryKeyType> DictionaryReader<K> {
    pub(super) fn new(data_type: &DataType, values: Box<dyn ValueReader>) -> Self {
        Self {
            data_type: data_type.clone(),
            keys: Vec::new(),
            nulls: NullBufferBuilder::new(0),
            values,
            interned: Interner::default(),
        }
    }

    #[inline(always)]
    fn key(&self, number: usize) -> Result<K::Native> {
        K::Native::from_usize(number)
            .ok_or_else(|| too_many(&self.data_type, "the distinct values"))
    }

    fn add_null(&mut self) {
        self.keys.push(K::Native::default());
        self.nulls.append_null();
    }
}

impl<K: ArrowDictionaryKeyType> ValueReader for DictionaryReader<K> {
    fn read_marked(
        &mut self,
        node: &Node,
        form: Form,
        marked: Option<Marked>,
        rows: &mut Rest<'_, '_>,
    ) -> Result<()> {
        if matches!(node, Node::Nothing) {
            if let Some(marked) = marked {
                rows.for_each(|row| marked.is_value(row).map(|_| ()))?;
            }
            return self.fill(rows.len(), false);
        }
        let is_union = matches!(node, Node::Union(_));
        let is_text = matches!(node, Node::Plain(OrderedCode::Text));
        let bytes = rows.bytes;
        let mut new = Elements::with_capacity(0);
        self.keys.reserve(rows.len());
        for (cursor, &end) in rows.cursors.iter_mut().zip(rows.ends) {
            if let Some(marked) = marked {
                let is_value = marked.is_value(&mut left(bytes, *cursor, end))?;
                *cursor += 1;
                if !is_value {
                    self.add_null();
                    continue;
                }
            }
            let start = *cursor;
            let near = bytes.get(start..).unwrap_or(&[]);
            // Most text in dictionaries is short, and ends in the first block.
            let block = near.first_chunk::<BLOCK>().filter(|_| is_text);
            let short = block.and_then(|block| {
                let len = block::ends(*block, form.flip).trailing_zeros() as usize + 1;
                (len <= BLOCK && start + len <= end).then_some((block, len))
            });
            let (len, (number, is_new)) = match short {
                Some((block, len)) => (len, self.interned.intern_short(*block, len)),
                None => {
                    let value = left(bytes, start, end);
                    let mut row = value;
                    form.skip_body(node, &mut row)?;
                    let len = value.len() - row.len();
                    if is_union && value.first() == Some(&(null_id(form.low) ^ form.flip)) {
                        *cursor += len;
                        self.add_null();
                        continue;
                    }
                    (len, self.interned.intern(near, len))
                }
            };
            *cursor += len;
            let key = self.key(number)?;
            self.keys.push(key);
            self.nulls.append_non_null();
            if is_new {
                new.push(start, start + len);
            }
        }
        self.values.read_bodies(node, form, &mut new.rest(bytes))
    }

    fn fill(&mut self, count: usize, valid: bool) -> Result<()> {
        self.keys.resize(self.keys.len() + count, K::Native::default());
        append(&mut self.nulls, count, valid);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let keys = std::mem::take(&mut self.keys).into();
        let keys = PrimitiveArray::<K>::try_new(keys, self.nulls.finish()).map_err(refused)?;
        if self.interned.is_empty() && keys.null_count() < keys.len() {
            self.values.fill(1, true)?;
        }
        self.interned.clear();
        let array = DictionaryArray::try_new(keys, self.values.finish()?).map_err(refused)?;
        Ok(Arc::new(array))
    }
}

pub(super) struct RunReader<R: RunEndIndexType> {
    data_type: DataType,
    /// Ends of the runs; the last run is still growing.
    ends: Vec<R::Native>,
    /// Rows so far: the end of the last run, or the number of placeholders before the first run.
    len: usize,
    /// Bytes of the last run's value.
    last: Vec<u8>,
    values: Box<dyn ValueReader>,
}

impl<R: RunEndIndexType> RunReader<R> {
    pub(super) fn new(data_type: &DataType, values: Box<dyn ValueReader>) -> Self {
        Self { data_type: data_type.clone(), ends: Vec::new(), len: 0, last: Vec::new(), values }
    }

    /// Returns the length with `count` more rows, as a length and as a run end.
    fn longer(&self, count: usize) -> Result<(usize, R::Native)> {
        let len = self.len.checked_add(count);
        len.and_then(|len| Some((len, R::Native::from_usize(len)?)))
            .ok_or_else(|| too_many(&self.data_type, "the rows"))
    }

    /// Adds a row. Returns true if its value starts a run and must be added.
    fn extend<'b>(&mut self, value: impl Iterator<Item = &'b u8> + Clone) -> Result<bool> {
        let (len, end) = self.longer(1)?;
        self.len = len;
        if let Some(last) = self.ends.last_mut()
            && self.last.iter().eq(value.clone())
        {
            *last = end;
            return Ok(false);
        }
        self.last.clear();
        self.last.extend(value);
        self.ends.push(end);
        Ok(true)
    }
}

impl<R: RunEndIndexType> ValueReader for RunReader<R> {
    fn read_bodies(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        let mut new = Elements::with_capacity(0);
        for at in 0..rows.len() {
            let (start, value) = (rows.cursors[at], rows.row(at));
            rows.read(at, |row| form.skip_body(node, row))?;
            let end = rows.cursors[at];
            let bytes = &value.row()[..end - start];
            if self.extend([VALUE].iter().chain(bytes))? {
                new.push(start, end);
            }
        }
        self.values.read_bodies(node, form, &mut new.rest(rows.bytes))
    }

    /// Appends placeholders to the current run, without a new run. Nulls are a run of their own.
    fn fill(&mut self, count: usize, valid: bool) -> Result<()> {
        if !valid {
            let null = |_| match self.extend([NULL].iter())? {
                true => self.values.fill(1, false),
                false => Ok(()),
            };
            return (0..count).try_for_each(null);
        }
        let (len, end) = self.longer(count)?;
        if let Some(last) = self.ends.last_mut() {
            *last = end;
        }
        self.len = len;
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        if self.ends.is_empty() && self.len > 0 {
            let (_, end) = self.longer(0)?;
            self.values.fill(1, true)?;
            self.ends.push(end);
        }
        self.last.clear();
        let ends = PrimitiveArray::<R>::from_iter_values(self.ends.drain(..));
        // `RunArray::try_new` would make up names for its two fields.
        let data = ArrayData::builder(self.data_type.clone())
            .len(std::mem::take(&mut self.len))
            .child_data(vec![ends.into_data(), self.values.finish()?.into_data()])
            .build()
            .map_err(refused)?;
        Ok(Arc::new(RunArray::<R>::from(data)))
    }
}
