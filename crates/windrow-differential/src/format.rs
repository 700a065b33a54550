//! Updates as rows of the engine.
//!
//! ```text
//! row    key's columns | value's columns | time | lanes of the diff
//!        \__________ body ______________/ \______ tail ___________/
//! ```
//! Invariant: rows of one format compare by key, then value, then time.

use std::sync::Arc;

use windrow::arrow_schema::{DataType, Field, Schema};
use windrow::{Diff, Layout, Order, Result, Time};

use crate::context::done;
use crate::diff::{self, LANE};
use crate::of::Of;
use crate::row::Form;
use crate::time::{self};
use crate::{DiffCode, Row, RowCode, TimeCode};

/// The encoding of updates of these types as rows.
pub(crate) struct Format<K, V, T, R>(Of<(K, V, T, R)>);

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> Format<K, V, T, R> {
    /// Bytes of a row, if every row has the same length under every layout.
    pub(crate) const STRIDE: Option<usize> = match (K::WIDTH, V::WIDTH) {
        (Some(key), Some(value)) => Some(key + value + tail::<T, R>()),
        _ => None,
    };
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode> Format<K, V, T, R> {
    /// Returns the layout of the rows.
    pub(crate) fn layout() -> Layout {
        let named = |prefix: &str, columns: fn(&mut Vec<DataType>)| {
            let mut types = Vec::new();
            columns(&mut types);
            let field = |(at, data_type)| Field::new(format!("{prefix}{at}"), data_type, false);
            types.into_iter().enumerate().map(field).collect::<Vec<_>>()
        };
        let (key, value) = (named("key", K::columns), named("value", V::columns));
        let order = Order::by(key.iter().map(|field| field.name().clone()).collect::<Vec<_>>());
        done(layout_of::<T, R>(&Schema::new([key, value].concat()), order))
    }

    /// Appends the row of an update.
    #[inline]
    pub(crate) fn put(((key, value), time, diff): &((K, V), T, R), out: &mut Vec<u8>) {
        key.encode(Form::Column, out);
        value.encode(Form::Column, out);
        put_tail(time, diff, out);
    }
}

/// Returns the layout of the columns of `schema` by `order`, then a time and the lanes of a diff.
pub(crate) fn layout_of<T: TimeCode, R: DiffCode>(
    schema: &Schema,
    mut order: Order,
) -> Result<Layout> {
    // Rows do not contain names; a name only has to be unique.
    let free = |mut name: String| {
        while schema.fields().find(&name).is_some() {
            name.push('_');
        }
        name
    };
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    let mut add = |name: &str, data_type| fields.push(Arc::new(Field::new(name, data_type, false)));
    if let Some(data_type) = time::data_type::<T>() {
        let name = free("time".into());
        add(&name, data_type);
        order = order.time(name);
    }
    let lanes: Vec<String> = (0..R::Lanes::LANES).map(|lane| free(format!("diff{lane}"))).collect();
    lanes.iter().for_each(|lane| add(lane, DataType::Int64));
    let order = R::FOLD.into_iter().fold(order.diffs(lanes), Order::fold);
    order.bind(&Schema::new(fields))
}

/// Appends time and diff, the part after the value.
#[inline(always)]
pub(crate) fn put_tail<T: TimeCode, R: DiffCode>(time: &T, diff: &R, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + tail::<T, R>(), 0);
    let (time_bytes, lanes) = out[start..].split_at_mut(T::Code::WIDTH);
    time.code().encode(time_bytes);
    diff.lanes().encode(lanes);
}

/// Bytes after the value.
pub(crate) const fn tail<T: TimeCode, R: DiffCode>() -> usize {
    T::Code::WIDTH + R::Lanes::LANES * LANE
}

/// Decodes time and diff of a row.
#[inline(always)]
pub(crate) fn tail_of<T: TimeCode, R: DiffCode>(row: &[u8]) -> (T, R) {
    let (time, lanes) = row[row.len() - tail::<T, R>()..].split_at(T::Code::WIDTH);
    (T::of_code(T::Code::decode(time)), diff::take(lanes))
}
