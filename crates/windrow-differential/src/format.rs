//! Updates as rows of the engine.
//!
//! ```text
//! row    key's columns | value's columns | time | lanes of the diff
//!        \__________ body ______________/ \______ tail ___________/
//! ```
//! Invariant: rows of one format compare by key, then value, then time.

use std::sync::Arc;

use windrow::arrow_schema::{DataType, Field, Schema};
use windrow::{Diff, Layout, Order};

use crate::context::done;
use crate::diff::{self, DiffCode, LANE};
use crate::of::Of;
use crate::row::{Form, Row, RowCode};
use crate::time::{self, TimeCode};

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
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        K::columns(&mut keys);
        V::columns(&mut values);
        let named = |prefix: &str, types: Vec<DataType>| -> Vec<Field> {
            let field = |(at, data_type)| Field::new(format!("{prefix}{at}"), data_type, false);
            types.into_iter().enumerate().map(field).collect()
        };
        let key = named("key", keys);
        let order = Order::by(key.iter().map(|field| field.name().clone()).collect::<Vec<_>>());
        let mut fields = [key, named("value", values)].concat();
        let time = time::data_type::<T>().map(|data_type| Field::new("time", data_type, false));
        let order = if time.is_some() { order.time("time") } else { order };
        let lanes = 0..R::Lanes::LANES;
        let lanes: Vec<_> =
            lanes.map(|lane| Field::new(format!("diff{lane}"), DataType::Int64, false)).collect();
        let order = order.diffs(lanes.iter().map(|lane| lane.name().clone()));
        let order = R::FOLD.into_iter().fold(order, Order::fold);
        fields.extend(time.into_iter().chain(lanes));
        done(order.bind(&Arc::new(Schema::new(fields))))
    }

    /// Appends the row of an update.
    #[inline]
    pub(crate) fn put(((key, value), time, diff): &((K, V), T, R), out: &mut Vec<u8>) {
        key.encode(Form::Column, out);
        value.encode(Form::Column, out);
        put_tail(time, diff, out);
    }
}

/// Appends time and diff, the part after the value.
#[inline(always)]
pub(crate) fn put_tail<T: TimeCode, R: DiffCode>(time: &T, diff: &R, out: &mut Vec<u8>) {
    time::put(time, out);
    diff::put(diff, out);
}

/// Bytes after the value.
pub(crate) const fn tail<T: TimeCode, R: DiffCode>() -> usize {
    time::width::<T>() + R::Lanes::LANES * LANE
}

/// Decodes time and diff of a row.
#[inline(always)]
pub(crate) fn tail_of<T: TimeCode, R: DiffCode>(row: &[u8]) -> (T, R) {
    let (time, lanes) = row[row.len() - tail::<T, R>()..].split_at(time::width::<T>());
    (time::take(time), diff::take(lanes))
}
