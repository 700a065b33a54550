//! Arrays that store a value once for many rows: Dictionary and RunEndEncoded.
//!
//! # Invariant
//! They write what their rows stand for, nothing of how it is stored. A reader stores each distinct
//! value of a dictionary once, in the order of arrival, none of them null; and each run of equal
//! values once. It knows equal values by their bytes: this is what canonical bytes are for.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::{ArrowDictionaryKeyType, RunEndIndexType};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, RunArray};
use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef};

use super::wire::{NULL, corrupt, refused, take_byte, too_many};
use super::{ValueReader, ValueWriter, element_writer, is_zero_width, reader, writer};
use crate::error::Result;

pub(super) struct DictionaryWriter<'a, K: ArrowDictionaryKeyType> {
    keys: &'a PrimitiveArray<K>,
    /// Nothing if all values are null and write no bytes.
    values: Option<Box<dyn ValueWriter + 'a>>,
}

impl<'a, K: ArrowDictionaryKeyType> DictionaryWriter<'a, K> {
    pub(super) fn new(array: &'a DictionaryArray<K>) -> Result<Self> {
        Ok(Self { keys: array.keys(), values: element_writer(array.values())? })
    }
}

impl<K: ArrowDictionaryKeyType> ValueWriter for DictionaryWriter<'_, K> {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match &self.values {
            Some(values) if self.keys.is_valid(row) => {
                values.write(self.keys.value(row).as_usize(), out);
            }
            _ => out.push(NULL),
        }
    }
}

pub(super) struct DictionaryReader<K: ArrowDictionaryKeyType> {
    data_type: DataType,
    keys: PrimitiveBuilder<K>,
    values: Box<dyn ValueReader>,
    /// The bytes of each value that `values` holds -> its key.
    interned: HashMap<Box<[u8]>, K::Native>,
    /// All values are null.
    zero_width: bool,
}

impl<K: ArrowDictionaryKeyType> DictionaryReader<K> {
    pub(super) fn new(data_type: &DataType, values: &DataType) -> Result<Self> {
        Ok(Self {
            data_type: data_type.clone(),
            keys: PrimitiveBuilder::with_capacity(0),
            values: reader(values)?,
            interned: HashMap::new(),
            zero_width: is_zero_width(values),
        })
    }

    /// The bytes of the next value; nothing if it is null.
    fn take_value<'b>(&self, bytes: &mut &'b [u8]) -> Result<Option<&'b [u8]>> {
        if bytes.first().is_none_or(|first| *first == NULL) {
            return take_byte(bytes).map(|_| None);
        }
        if self.zero_width {
            return Err(corrupt("expected a null, got a value"));
        }
        take_extent(&*self.values, bytes).map(Some)
    }

    fn intern(&mut self, value: &[u8]) -> Result<K::Native> {
        if let Some(key) = self.interned.get(value) {
            return Ok(*key);
        }
        let key = K::Native::from_usize(self.interned.len())
            .ok_or_else(|| too_many(&self.data_type, "the distinct values"))?;
        self.values.read(&mut &*value)?;
        self.interned.insert(value.into(), key);
        Ok(key)
    }
}

impl<K: ArrowDictionaryKeyType> ValueReader for DictionaryReader<K> {
    fn read(&mut self, bytes: &mut &[u8]) -> Result<()> {
        let key = match self.take_value(bytes)? {
            Some(value) => Some(self.intern(value)?),
            None => None,
        };
        self.keys.append_option(key);
        Ok(())
    }

    fn skip(&self, bytes: &mut &[u8]) -> Result<()> {
        self.take_value(bytes).map(|_| ())
    }

    /// Placeholders stand for the first value, whatever it will be: they never use up a key.
    fn fill(&mut self, count: usize) -> Result<()> {
        self.keys.append_value_n(K::Native::default(), count);
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let keys = self.keys.finish();
        if self.interned.is_empty() && keys.null_count() < keys.len() {
            self.values.fill(1)?;
        }
        self.interned.clear();
        let array = DictionaryArray::try_new(keys, self.values.finish()?).map_err(refused)?;
        Ok(Arc::new(array))
    }
}

pub(super) struct RunWriter<'a, R: RunEndIndexType> {
    array: &'a RunArray<R>,
    values: Box<dyn ValueWriter + 'a>,
}

impl<'a, R: RunEndIndexType> RunWriter<'a, R> {
    pub(super) fn new(array: &'a RunArray<R>) -> Result<Self> {
        Ok(Self { array, values: writer(array.values())? })
    }
}

impl<R: RunEndIndexType> ValueWriter for RunWriter<'_, R> {
    /// Costs a binary search over the runs.
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        self.values.write(self.array.get_physical_index(row), out);
    }
}

pub(super) struct RunReader<R: RunEndIndexType> {
    data_type: DataType,
    /// Where the runs end; the last one is still growing.
    ends: Vec<R::Native>,
    /// Rows so far: the end of the last run, or placeholders that the first run will take in.
    len: usize,
    /// The bytes of the value of the last run.
    last: Vec<u8>,
    values: Box<dyn ValueReader>,
}

impl<R: RunEndIndexType> RunReader<R> {
    pub(super) fn new(data_type: &DataType, values: &FieldRef) -> Result<Self> {
        Ok(Self {
            data_type: data_type.clone(),
            ends: Vec::new(),
            len: 0,
            last: Vec::new(),
            values: reader(values.data_type())?,
        })
    }

    /// The length with `count` rows more, as a length and as a run end.
    fn longer(&self, count: usize) -> Result<(usize, R::Native)> {
        let len = self.len.checked_add(count);
        len.and_then(|len| Some((len, R::Native::from_usize(len)?)))
            .ok_or_else(|| too_many(&self.data_type, "the rows"))
    }
}

impl<R: RunEndIndexType> ValueReader for RunReader<R> {
    fn read(&mut self, bytes: &mut &[u8]) -> Result<()> {
        let value = take_extent(&*self.values, bytes)?;
        let (len, end) = self.longer(1)?;
        match self.ends.last_mut() {
            Some(last) if self.last == value => *last = end,
            _ => {
                self.values.read(&mut &*value)?;
                self.last.clear();
                self.last.extend_from_slice(value);
                self.ends.push(end);
            }
        }
        self.len = len;
        Ok(())
    }

    fn skip(&self, bytes: &mut &[u8]) -> Result<()> {
        self.values.skip(bytes)
    }

    /// Placeholders lengthen the run they fall into: they never cut one.
    fn fill(&mut self, count: usize) -> Result<()> {
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
            self.values.fill(1)?;
            self.ends.push(end);
        }
        self.last.clear();
        let ends = PrimitiveArray::<R>::from_iter_values(self.ends.drain(..));
        // Not `RunArray::try_new`: that one makes up names for its two fields.
        let data = ArrayData::builder(self.data_type.clone())
            .len(std::mem::take(&mut self.len))
            .child_data(vec![ends.into_data(), self.values.finish()?.into_data()])
            .build()
            .map_err(refused)?;
        Ok(Arc::new(RunArray::<R>::from(data)))
    }
}

/// The bytes of the next value of `reader`.
fn take_extent<'b>(reader: &dyn ValueReader, bytes: &mut &'b [u8]) -> Result<&'b [u8]> {
    let whole = *bytes;
    reader.skip(bytes)?;
    Ok(&whole[..whole.len() - bytes.len()])
}
