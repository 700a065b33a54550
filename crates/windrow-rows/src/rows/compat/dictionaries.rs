//! Dictionaries: each distinct code is decoded once.
//!
//! ```text
//! rows     | code of fig | code of pear | code of fig |
//! keys       0             1              0               ordinals of the distinct codes
//! values   | code of fig | code of pear |                 rows of their own
//! ```

use std::sync::Arc;

use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{ArrayRef, DictionaryArray, PrimitiveArray, downcast_integer};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::{DataType, SortOptions};

use super::blocks;
use super::field::{corrupt, flip, null_byte};
use super::inner::Inner;
use super::node::Node;
use crate::error::Result;
use crate::rows::read::{Bits, Columns, Part, Tile};
use crate::rows::value::Interner;
use crate::rows::value::wire::{refused, too_many};

/// A column of a dictionary.
pub(super) struct Dictionaries<'a> {
    column: usize,
    options: SortOptions,
    node: &'a Node,
    /// Bytes of a null.
    null_len: usize,
    keys: Vec<u32>,
    /// Distinct strings, or distinct codes of other types, so far.
    interner: Interner,
    /// Buffer for longer strings.
    string: Vec<u8>,
    values: Inner<'a>,
}

impl<'a> Dictionaries<'a> {
    pub(super) fn new(
        column: usize,
        options: SortOptions,
        node: &'a Node,
        values: Inner<'a>,
    ) -> Self {
        let mut null = Vec::new();
        node.put_null(options, &mut null);
        Self {
            column,
            options,
            node,
            null_len: null.len(),
            keys: Vec::new(),
            interner: Interner::default(),
            string: Vec::new(),
            values,
        }
    }
}

impl Part for Dictionaries<'_> {
    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        let Self { column, options, node, null_len, keys, interner, string, values } = self;
        let (null, flip) = (null_byte(*options), flip(*options));
        tile.for_each_valid(&mut valid[*column], |row| {
            if row.first() == Some(&null) {
                keys.push(0);
                return Ok((*null_len, false));
            }
            let (len, (number, is_new)) = match *node {
                // Most strings in dictionaries are short. Bytes beyond the row never become part of
                // a string.
                Node::Plain(code) if code.varies() => {
                    match blocks::two_words(row.beyond(0), flip) {
                        Some(own) => (own.code_len, interner.intern_words(own.words, own.len)),
                        None => {
                            string.clear();
                            let mut rest = row.row();
                            blocks::read(&mut rest, flip, string)?;
                            (row.len() - rest.len(), interner.intern(string, string.len()))
                        }
                    }
                }
                _ => {
                    let len = node.code_len(row.row(), *options)?;
                    (len, interner.intern(row.beyond(0), len))
                }
            };
            // There are fewer than 2^32 rows, and so fewer distinct values.
            keys.push(number as u32);
            let code = row
                .get(..len)
                .ok_or_else(|| corrupt("a value that does not end within its row"))?;
            if is_new {
                values.push(code)?;
            }
            Ok((len, true))
        })
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        let nulls = columns.nulls(self.column);
        let DataType::Dictionary(key_type, _) = columns.data_type(self.column) else {
            return Err(corrupt("a dictionary of another type"));
        };
        let data_type = columns.data_type(self.column);
        let values = self.values.finish()?.into_iter().next();
        let values = values.ok_or_else(|| corrupt("a dictionary without values"))?;
        macro_rules! with_keys {
            ($key:ty) => {
                array::<$key>(data_type, &self.keys, values, nulls)?
            };
        }
        let array = downcast_integer! {
            **key_type => (with_keys),
            _ => return Err(corrupt("a dictionary whose keys are no integers")),
        };
        columns.ready[self.column] = Some(array);
        Ok(())
    }
}

fn array<K: ArrowDictionaryKeyType>(
    data_type: &DataType,
    keys: &[u32],
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    // Keys are numbered in order of arrival: the last value has the greatest key.
    let most = values.len().saturating_sub(1);
    K::Native::from_usize(most).ok_or_else(|| too_many(data_type, "the distinct values"))?;
    let keys = keys.iter().map(|&key| K::Native::usize_as(key as usize));
    let keys = PrimitiveArray::<K>::try_new(keys.collect(), nulls).map_err(refused)?;
    Ok(Arc::new(DictionaryArray::try_new(keys, values).map_err(refused)?))
}
