//! Nested values to their ordered codes, straight from the arrays of their parts.
//!
//! ```text
//! lengths  how many bytes each row takes, part by part          -> where each row begins
//! put      a cursor for each row; each part writes its bytes at the cursors, and moves them on
//!
//! list     | 01 element | 01 element | 00 |     cursors of the elements from those of the lists
//! ```
//!
//! What is written is not told by rows but by picks: positions in an array, any number of times and in
//! any order. So views, dictionaries and run ends are picks from their values, and null rows are left
//! out. The bytes are those drawn in the module, ascending.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, downcast_run_array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::super::column::{Bytes, Column};
use super::super::fixed::{Word, with_word};
use super::super::{spans, text};
use super::lists::Lists;
use super::{VALUE, null_id, null_marker};
use crate::error::{Error, Result};
use crate::kernel::rows::text::add_exact;
use crate::order::code::{Kind, Node, OrderedCode};

/// An array by its parts.
pub(super) struct Part {
    nulls: Option<NullBuffer>,
    body: Body,
}

enum Body {
    /// Values that take no bytes.
    Nothing,
    Plain(OrderedCode, Column),
    Struct(Vec<Part>),
    List(Lists),
    Union {
        ids: ScalarBuffer<i8>,
        /// Where the rows lie in their children; nothing if that is where they are.
        places: Option<ScalarBuffer<i32>>,
        children: Vec<(i8, Part)>,
    },
    /// Dictionaries and run ends: which value each row has.
    Picked(Vec<usize>, Box<Part>),
}

impl Part {
    pub(super) fn of(array: &ArrayRef, node: &Node) -> Result<Self> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let list = |framed, spans, elements: &ArrayRef, node: &Node| {
            Lists::new(framed, spans, elements, node).map(Body::List)
        };
        let body = match (node, array.data_type()) {
            (_, DataType::Dictionary(..)) => {
                let dictionary = array.as_any_dictionary();
                let values = Self::of(dictionary.values(), node)?;
                // A dictionary may have no values, but not if there is a key that is not null.
                let keys = match dictionary.values().is_empty() {
                    true => vec![0; array.len()],
                    false => dictionary.normalized_keys(),
                };
                Body::Picked(keys, Box::new(values))
            }
            (_, DataType::RunEndEncoded(..)) => {
                let run = array.as_ref();
                let (keys, values) = downcast_run_array! {
                    run => (spans::of_runs(run), run.values()),
                    _ => return Err(unsupported(array)),
                };
                Body::Picked(keys, Box::new(Self::of(values, node)?))
            }
            (Node::Nothing, _) => Body::Nothing,
            (Node::Plain(code), _) => Body::Plain(*code, Column::plain_values(array)?),
            (Node::Struct(nodes), DataType::Struct(_)) => {
                let fields = array.as_struct().columns().iter().zip(nodes);
                Body::Struct(
                    fields.map(|(array, node)| Self::of(array, node)).collect::<Result<_>>()?,
                )
            }
            (Node::List(node), DataType::List(_)) => {
                let array = array.as_list::<i32>();
                list(true, spans::of_offsets(array.offsets()), array.values(), node)?
            }
            (Node::List(node), DataType::LargeList(_)) => {
                let array = array.as_list::<i64>();
                list(true, spans::of_offsets(array.offsets()), array.values(), node)?
            }
            (Node::List(node), DataType::ListView(_)) => {
                let array = array.as_list_view::<i32>();
                list(true, spans::of_views(array.offsets(), array.sizes()), array.values(), node)?
            }
            (Node::List(node), DataType::LargeListView(_)) => {
                let array = array.as_list_view::<i64>();
                list(true, spans::of_views(array.offsets(), array.sizes()), array.values(), node)?
            }
            (Node::List(node), DataType::Map(_, _)) => {
                let array = array.as_map();
                let entries: ArrayRef = std::sync::Arc::new(array.entries().clone());
                list(true, spans::of_offsets(array.offsets()), &entries, node)?
            }
            (Node::FixedList(node, size), DataType::FixedSizeList(_, _)) => {
                let spans = (0..array.len()).map(|row| (row * size, (row + 1) * size)).collect();
                list(false, spans, array.as_fixed_size_list().values(), node)?
            }
            (Node::Union(nodes), DataType::Union(..)) => {
                let array = array.as_union();
                let child = |(id, node): &(i8, Node)| Ok((*id, Self::of(array.child(*id), node)?));
                Body::Union {
                    ids: array.type_ids().clone(),
                    places: array.offsets().cloned(),
                    children: nodes.iter().map(child).collect::<Result<_>>()?,
                }
            }
            _ => return Err(unsupported(array)),
        };
        Ok(Self { nulls, body })
    }

    /// True if values take no bytes.
    pub(super) fn is_nothing(&self) -> bool {
        match &self.body {
            Body::Nothing => true,
            Body::Picked(_, values) => values.is_nothing(),
            _ => false,
        }
    }

    pub(super) fn is_union(&self) -> bool {
        match &self.body {
            Body::Union { .. } => true,
            Body::Picked(_, values) => values.is_union(),
            _ => false,
        }
    }

    /// Whether `row` is null: by itself, or by the value that is picked for it.
    pub(super) fn is_null(&self, row: usize) -> bool {
        match &self.body {
            _ if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) => true,
            Body::Picked(keys, values) => values.is_null(keys[row]),
            _ => false,
        }
    }

    /// The values, their width and kind, if these are numbers without nulls.
    pub(super) fn numbers(&self) -> Option<(&[u8], usize, Kind)> {
        match &self.body {
            Body::Plain(OrderedCode::Fixed(width, kind), Column::Fixed { values, .. })
                if self.nulls.is_none() =>
            {
                Some((values, *width, *kind))
            }
            _ => None,
        }
    }

    /// Bytes of the code of every row, if they are all the same.
    pub(super) fn same_len(&self) -> Option<usize> {
        match &self.body {
            Body::Nothing => Some(0),
            _ if self.nulls.is_some() => None,
            Body::Plain(code, _) => (!code.varies()).then(|| 1 + code.width()),
            Body::Struct(fields) => {
                fields.iter().try_fold(1, |sum, field| Some(sum + field.same_len()?))
            }
            Body::List(_) | Body::Union { .. } | Body::Picked(..) => None,
        }
    }

    /// Adds the bytes of the code of each of `picks` to its length.
    pub(super) fn add_lengths(&self, picks: &[usize], lengths: &mut [usize]) {
        if self.is_nothing() {
            return;
        }
        if let Some(len) = self.same_len() {
            lengths.iter_mut().for_each(|length| *length += len);
            return;
        }
        if !self.is_union() {
            lengths.iter_mut().for_each(|length| *length += 1);
        }
        let Some(nulls) = &self.nulls else { return self.add_body_lengths(picks, lengths) };
        let valid = Valid::of(nulls, picks);
        let mut bodies = vec![0; valid.picks.len()];
        self.add_body_lengths(&valid.picks, &mut bodies);
        valid.at.iter().zip(bodies).for_each(|(&at, body)| lengths[at] += body);
        if self.is_union() {
            // The null key of a dictionary.
            for (&row, length) in picks.iter().zip(lengths) {
                *length += usize::from(nulls.is_null(row));
            }
        }
    }

    /// As [`Part::add_lengths`], for rows that are not null, without their markers.
    pub(super) fn add_body_lengths(&self, picks: &[usize], lengths: &mut [usize]) {
        let pairs = picks.iter().zip(&mut *lengths);
        match &self.body {
            Body::Nothing => {}
            Body::Plain(code, Column::Bytes { values, .. }) => {
                let len = |row| text::encoded_len(*code, values.get(row));
                pairs.for_each(|(&row, length)| *length += len(row));
            }
            Body::Plain(code, _) => pairs.for_each(|(_, length)| *length += code.width()),
            Body::Struct(fields) => {
                fields.iter().for_each(|field| field.add_lengths(picks, lengths));
            }
            Body::List(lists) => pairs.for_each(|(&row, length)| *length += lists.len_of(row)),
            Body::Union { ids, places, children } => {
                for (id, child) in children {
                    let picked = OfChild::new(*id, ids, places.as_ref(), picks);
                    let mut values = vec![1; picked.picks.len()];
                    child.add_lengths(&picked.picks, &mut values);
                    picked.at.iter().zip(values).for_each(|(&at, value)| lengths[at] += value);
                }
            }
            Body::Picked(keys, values) => {
                let mut keys = picks.iter().map(|&row| keys[row]).collect::<Vec<_>>();
                // The marker is that of the value, and counted by now.
                values.add_unmarked_lengths(&mut keys, lengths);
            }
        }
    }

    /// Lengths of picks that may be null, without their markers.
    fn add_unmarked_lengths(&self, picks: &mut [usize], lengths: &mut [usize]) {
        let mut codes = vec![0; picks.len()];
        self.add_lengths(picks, &mut codes);
        let marker = usize::from(!self.is_union() && !self.is_nothing());
        lengths.iter_mut().zip(codes).for_each(|(length, code)| *length += code - marker);
    }

    /// Writes the code of each of `picks` at its cursor, and moves the cursor behind it.
    pub(super) fn put(&self, picks: &[usize], low: bool, cursors: &mut [usize], out: &mut [u8]) {
        match &self.body {
            Body::Nothing => return,
            Body::Plain(code, column) => {
                let null = null_marker(low);
                return put_plain(*code, column, self.nulls.as_ref(), null, picks, cursors, out);
            }
            _ if self.is_nothing() => return,
            _ => {}
        }
        let is_picked = matches!(self.body, Body::Picked(..));
        let null = if self.is_union() { null_id(low) } else { null_marker(low) };
        if let Some(nulls) = &self.nulls {
            let valid = Valid::of(nulls, picks);
            for (&row, cursor) in picks.iter().zip(&mut *cursors) {
                if nulls.is_null(row) {
                    out[*cursor] = null;
                    *cursor += 1;
                }
            }
            let mut inner: Vec<usize> = valid.at.iter().map(|&at| cursors[at]).collect();
            if !is_picked && !self.is_union() {
                put_markers(&mut inner, out);
            }
            self.put_value(&valid.picks, low, &mut inner, out);
            valid.at.iter().zip(inner).for_each(|(&at, cursor)| cursors[at] = cursor);
            return;
        }
        if !is_picked && !self.is_union() {
            put_markers(cursors, out);
        }
        self.put_value(picks, low, cursors, out);
    }

    /// Writes bodies; where rows are picked from values, with the markers of those.
    fn put_value(&self, picks: &[usize], low: bool, cursors: &mut [usize], out: &mut [u8]) {
        match &self.body {
            Body::Picked(keys, values) => {
                let keys: Vec<usize> = picks.iter().map(|&row| keys[row]).collect();
                values.put(&keys, low, cursors, out);
            }
            _ => self.put_body(picks, low, cursors, out),
        }
    }

    /// As [`Part::put`], for rows that are not null, without their markers.
    pub(super) fn put_body(
        &self,
        picks: &[usize],
        low: bool,
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        match &self.body {
            // Plain values have their markers written with them.
            Body::Nothing | Body::Plain(..) => {}
            Body::Struct(fields) => {
                fields.iter().for_each(|field| field.put(picks, low, cursors, out));
            }
            Body::List(lists) => lists.put(picks, low, cursors, out),
            Body::Union { ids, places, children } => {
                for (id, child) in children {
                    let picked = OfChild::new(*id, ids, places.as_ref(), picks);
                    let mut inner: Vec<usize> = Vec::with_capacity(picked.at.len());
                    for &at in &picked.at {
                        out[cursors[at]] = *id as u8 + 1;
                        inner.push(cursors[at] + 1);
                    }
                    child.put(&picked.picks, low, &mut inner, out);
                    picked.at.iter().zip(inner).for_each(|(&at, cursor)| cursors[at] = cursor);
                }
            }
            Body::Picked(keys, values) => {
                let keys: Vec<usize> = picks.iter().map(|&row| keys[row]).collect();
                values.put_body(&keys, low, cursors, out);
            }
        }
    }
}

/// Those of some picks that are not null.
struct Valid {
    /// Where they stand among the picks.
    at: Vec<usize>,
    picks: Vec<usize>,
}

impl Valid {
    fn of(nulls: &NullBuffer, picks: &[usize]) -> Self {
        let valid = picks.iter().enumerate().filter(|(_, row)| nulls.is_valid(**row));
        let (at, picks) = valid.map(|(at, &row)| (at, row)).unzip();
        Self { at, picks }
    }
}

/// Those of some picks from a union that are of one type.
struct OfChild {
    at: Vec<usize>,
    /// Their rows in the child.
    picks: Vec<usize>,
}

impl OfChild {
    fn new(id: i8, ids: &[i8], places: Option<&ScalarBuffer<i32>>, picks: &[usize]) -> Self {
        let own = picks.iter().enumerate().filter(|(_, row)| ids[**row] == id);
        let place = |row: usize| places.map_or(row, |places| places[row] as usize);
        let (at, picks) = own.map(|(at, &row)| (at, place(row))).unzip();
        Self { at, picks }
    }
}

fn put_markers(cursors: &mut [usize], out: &mut [u8]) {
    for cursor in cursors {
        out[*cursor] = VALUE;
        *cursor += 1;
    }
}

fn put_plain(
    code: OrderedCode,
    column: &Column,
    nulls: Option<&NullBuffer>,
    null: u8,
    picks: &[usize],
    cursors: &mut [usize],
    out: &mut [u8],
) {
    match (code, column) {
        (OrderedCode::Fixed(width, kind), Column::Fixed { values, .. }) => {
            with_word!(width, W => {
                let (values, _) = values.as_chunks::<{ W::BYTES }>();
                put_each(nulls, null, picks, cursors, out, |row, out, at| {
                    let value = W::read_native(&values[row]);
                    value.code(kind, false).write_big(&mut out[at..at + W::BYTES]);
                    W::BYTES
                });
            });
        }
        (OrderedCode::FixedBinary(width), Column::Fixed { values, .. }) => {
            put_each(nulls, null, picks, cursors, out, |row, out, at| {
                out[at..at + width].copy_from_slice(&values[row * width..(row + 1) * width]);
                width
            });
        }
        (_, Column::Bool { values, .. }) => {
            put_each(nulls, null, picks, cursors, out, |row, out, at| {
                out[at] = u8::from(values.value(row));
                1
            });
        }
        (OrderedCode::Text, Column::Bytes { values: Bytes::Small { offsets, data }, .. }) => {
            put_each(nulls, null, picks, cursors, out, |row, out, at| {
                let span = (offsets[row] as usize, offsets[row + 1] as usize);
                let len = span.1 - span.0;
                add_exact(out, at, data, span, text::SHIFT, 0);
                out[at + len] = text::END;
                len + 1
            });
        }
        (_, Column::Bytes { values, .. }) => {
            put_each(nulls, null, picks, cursors, out, |row, out, at| {
                text::encode(code, false, values.get(row), &mut out[at..])
            });
        }
        _ => {}
    }
}

/// Writes markers, and values by `put`, which is given a row and where it goes and returns its bytes.
#[inline(always)]
fn put_each(
    nulls: Option<&NullBuffer>,
    null: u8,
    picks: &[usize],
    cursors: &mut [usize],
    out: &mut [u8],
    put: impl Fn(usize, &mut [u8], usize) -> usize,
) {
    for (&row, cursor) in picks.iter().zip(cursors) {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            out[*cursor] = null;
            *cursor += 1;
            continue;
        }
        out[*cursor] = VALUE;
        *cursor += 1 + put(row, out, *cursor + 1);
    }
}

fn unsupported(array: &ArrayRef) -> Error {
    Error::UnsupportedColumn {
        column: array.data_type().to_string(),
        data_type: array.data_type().clone(),
        role: "a sort key",
    }
}
