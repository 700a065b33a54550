//! Readers of values of any Arrow type: decode the ordered codes of `rows/nested`, many rows at
//! once.
//!
//! ```text
//! codes    | 01 code | 00 | 01 code |  --read_codes-->  reader  --finish-->  array of its type
//! ```
//!
//! Keys are read this way, and so are columns that take no part in the order: their codes are the
//! codes of an ascending key with nulls first.
//!
//! Invariant: values come back with the same bits, elements, and nulls at every level. Codes
//! contain neither the values under nulls, nor the slots of dictionary values, nor the boundaries
//! of runs. Readers choose these anew: each distinct value once, in the order of arrival; each run
//! of equal values once.

mod bytes;
mod encoded;
mod flat;
mod interner;
mod list;
mod record;
#[cfg(test)]
mod tests;
mod union;
pub(super) mod wire;

pub(crate) use interner::Interner;
pub(super) use list::{add_ends, list_array};

use arrow_array::{ArrayRef, downcast_integer, downcast_run_end_index};
use arrow_schema::DataType;

use super::nested::{Form, Marked};
use super::row_ref::Rest;
use crate::error::Result;
use crate::order::code::Node;
use crate::order::types::{Lists, Physical};

/// Reads values, and builds an array of the same type.
///
/// After an error a reader holds part of a value: drop the reader. (`finish` then reports an error
/// or returns a meaningless array, but does not panic.)
pub(crate) trait ValueReader: Send {
    /// Reads the ordered code of a value, without its marker, from each of `rows`, and advances the
    /// rows. No value is null. Text is not validated before the end.
    fn read_bodies(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()>;

    /// Reads values inside other values like [`ValueReader::read_bodies`], with their markers.
    fn read_codes(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        match node {
            Node::Nothing | Node::Union(_) => self.read_bodies(node, form, rows),
            _ => self.read_marked(node, form, form.marked(), rows),
        }
    }

    /// Reads nullable values like [`ValueReader::read_bodies`], each after a marker.
    fn read_marked(
        &mut self,
        node: &Node,
        form: Form,
        marked: Marked,
        rows: &mut Rest<'_, '_>,
    ) -> Result<()> {
        if marked.are_values(rows)? {
            rows.cursors.iter_mut().for_each(|cursor| *cursor += 1);
            return self.read_bodies(node, form, rows);
        }
        let mut first = 0;
        for at in 0..rows.len() {
            if !rows.read(at, |row| marked.is_value(row))? {
                self.read_bodies(node, form, &mut rows.part(first..at))?;
                self.fill(1, false)?;
                first = at + 1;
            }
        }
        self.read_bodies(node, form, &mut rows.part(first..rows.len()))
    }

    /// Reads lists of values that each follow two marker bytes. Stops at the first list to be read
    /// one by one: one of its values is null, or the type has no path for lists. Writes the number
    /// of values of each list to `counts`, which has an entry for each of `rows`; returns the
    /// number of lists read.
    fn read_lists(
        &mut self,
        _node: &Node,
        _form: Form,
        _rows: &mut Rest<'_, '_>,
        _counts: &mut [usize],
    ) -> usize {
        0
    }

    /// Appends `count` nulls. If `valid` and if the type allows, appends placeholders for unused
    /// slots: the fields of a null struct, the other children of a sparse union.
    fn fill(&mut self, count: usize, valid: bool) -> Result<()>;

    /// Builds the array of all values read since the last call, and empties the reader.
    fn finish(&mut self) -> Result<ArrayRef>;
}

/// Creates a reader of values of type `data_type`, for arrays of exactly this type.
pub(crate) fn reader(data_type: &DataType) -> Result<Box<dyn ValueReader>> {
    macro_rules! dictionary {
        ($t:ty, $values:ident) => {
            Box::new(encoded::DictionaryReader::<$t>::new(data_type, $values)?)
        };
    }
    macro_rules! runs {
        ($t:ty, $values:ident) => {
            Box::new(encoded::RunReader::<$t>::new(data_type, $values)?)
        };
    }
    let unsupported = || wire::unsupported(data_type, "held in a row");
    let physical = Physical::of(data_type).ok_or_else(unsupported)?;
    Ok(match physical {
        Physical::Null => Box::<flat::NullReader>::default(),
        Physical::Boolean => Box::new(flat::BooleanReader::new()),
        Physical::Number(width, _) | Physical::FixedBinary(width) => {
            Box::new(flat::FixedReader::new(data_type, width))
        }
        Physical::Bytes(..) => Box::new(bytes::BytesReader::new(data_type)),
        Physical::List(Lists::Small | Lists::SmallViews | Lists::Map, field) => {
            Box::new(list::ListReader::<i32>::new(data_type, field)?)
        }
        Physical::List(Lists::Large | Lists::LargeViews, field) => {
            Box::new(list::ListReader::<i64>::new(data_type, field)?)
        }
        Physical::FixedList(field, size) => {
            Box::new(record::FixedListReader::new(data_type, field, size)?)
        }
        Physical::Struct(fields) => Box::new(record::StructReader::new(fields)?),
        Physical::Union(fields, mode) => {
            Box::new(union::UnionReader::new(data_type, fields, mode)?)
        }
        Physical::Dictionary(key, values) => downcast_integer! {
            key => (dictionary, values),
            _ => return Err(unsupported()),
        },
        Physical::Runs(ends, values) => downcast_run_end_index! {
            ends.data_type() => (runs, values),
            _ => return Err(unsupported()),
        },
    })
}
