//! Encoding of arrays of any type into the bytes of a format, column by column.
//!
//! ```text
//! lengths  the bytes of each pick, part by part
//! put      a cursor for each pick; each part writes its bytes at the cursors and advances them
//!
//! List<Struct<Int64, Utf8>>    spans | 0..2 | 2..2 | 2..5 |
//!                              codes | struct | struct | struct | struct | struct |
//!                                      made once, from the trees of the fields
//! ```
//!
//! Picks select the values to write: positions in an array, any number of times and in any order.
//! So picks serve the children of unions, and leave out null rows. Three kinds of values are
//! encoded beforehand: the elements of lists, since they follow each other, and the values of runs
//! and dictionaries, since picks repeat them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, downcast_run_array};
use arrow_buffer::{NullBuffer, ScalarBuffer};

use super::super::column::Column;
use super::super::fixed::{Word, with_word};
use super::super::spans::{self, Spans};
use super::super::value::wire::unsupported;
use super::VALUE;
use super::codes::{Codes, Picks};
use super::framing::{Frame, Framing};
use crate::error::Result;
use crate::order::code::OrderedCode;
use crate::order::types::{Lists, Physical};
use windrow_kernel::rows::exact::Text;

/// An array, split into its parts.
pub(in crate::rows) struct Tree<F> {
    pub(in crate::rows) framing: F,
    nulls: Option<NullBuffer>,
    /// Code of a null; empty if no row is null.
    null: Vec<u8>,
    /// True if a marker byte precedes every value. Plain values write their markers themselves.
    marked: bool,
    body: Body<F>,
}

enum Body<F> {
    /// These bytes for every value.
    Constant(&'static [u8]),
    Plain(OrderedCode, Column),
    Struct(Vec<Tree<F>>),
    Coded(Coded),
    Union {
        ids: ScalarBuffer<i8>,
        /// Positions of the rows in their children, or `None` if the positions are the same.
        places: Option<ScalarBuffer<i32>>,
        children: Vec<(i8, Tree<F>)>,
    },
}

/// Values made of codes: lists of any kind, and the values of dictionaries and runs.
struct Coded {
    /// Range of each row's codes.
    spans: Spans,
    codes: Codes,
    end: Option<u8>,
}

impl Coded {
    /// Encodes `values`, of which each row has the value at its key.
    fn keyed<F: Framing>(
        keys: &[usize],
        values: &ArrayRef,
        framing: F,
        frame: Frame,
    ) -> Result<Self> {
        let values_of = [Tree::of(values, framing)?];
        // A slice of an array may have more values than rows.
        let is_slice = values.len() > keys.len();
        let picks = if is_slice { Picks::Keys(keys) } else { Picks::First(values.len()) };
        let key = |(row, &key)| if is_slice { row } else { key };
        let spans = keys.iter().enumerate().map(key).map(|key| (key, key + 1)).collect();
        let codes = Codes::of(&values_of, picks, frame);
        Ok(Self { spans, codes, end: None })
    }

    fn len_of(&self, row: usize) -> usize {
        let (start, end) = self.spans[row];
        self.codes.len_between(start, end) + usize::from(self.end.is_some())
    }

    #[inline(always)]
    fn write(&self, row: usize, out: &mut [u8]) -> usize {
        let (start, end) = self.spans[row];
        let mut at = self.codes.write(start, end, out);
        if let Some(byte) = self.end {
            out[at] = byte;
            at += 1;
        }
        at
    }
}

impl<F: Framing> Tree<F> {
    pub(in crate::rows) fn of(array: &ArrayRef, framing: F) -> Result<Self> {
        let unsupported = || unsupported(array.data_type(), F::ROLE);
        let physical = Physical::of(array.data_type()).ok_or_else(unsupported)?;
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let null = nulls.as_ref().map_or_else(Vec::new, |_| framing.null(array.data_type()));
        let (marked, body) = match physical {
            Physical::Null => (false, Body::Constant(framing.nothing())),
            Physical::Boolean
            | Physical::Number(..)
            | Physical::FixedBinary(_)
            | Physical::Bytes(..) => {
                let code = OrderedCode::of(array.data_type()).ok_or_else(unsupported)?;
                (false, Body::Plain(code, Column::plain_values(array)?))
            }
            Physical::Struct(_) => {
                let fields = array.as_struct().columns().iter();
                let fields = fields.map(|field| Self::of(field, framing));
                (true, Body::Struct(fields.collect::<Result<_>>()?))
            }
            Physical::List(lists, _) => {
                (framing.list().marked, Body::Coded(list(array, lists, framing)?))
            }
            Physical::FixedList(_, size) => {
                let values = array.as_fixed_size_list().values();
                let spans = (0..array.len()).map(|row| (row * size, (row + 1) * size)).collect();
                let fields = [Self::of(values, framing)?];
                let codes = Codes::of(&fields, Picks::First(values.len()), Frame::Bare);
                (true, Body::Coded(Coded { spans, codes, end: None }))
            }
            Physical::Union(fields, _) => {
                let array = array.as_union();
                let child = |id| Ok((id, Self::of(array.child(id), framing.inside())?));
                let body = Body::Union {
                    ids: array.type_ids().clone(),
                    places: array.offsets().cloned(),
                    children: fields.iter().map(|(id, _)| child(id)).collect::<Result<_>>()?,
                };
                (false, body)
            }
            Physical::Dictionary(..) => {
                let values = array.as_any_dictionary().values();
                let coded = Coded::keyed(&spans::of_keys(array), values, framing, Frame::Bare)?;
                (false, Body::Coded(coded))
            }
            Physical::Runs(..) => {
                let run = array.as_ref();
                let (keys, values) = downcast_run_array! {
                    run => (spans::of_runs(run), run.values()),
                    _ => return Err(unsupported()),
                };
                let coded = Coded::keyed(&keys, values, framing.inside(), framing.run())?;
                (false, Body::Coded(coded))
            }
        };
        Ok(Self { framing, nulls, null, marked, body })
    }

    /// Returns the code and the values of a column that is neither nested nor encoded.
    pub(in crate::rows) fn plain(&self) -> Option<(OrderedCode, &Column)> {
        match &self.body {
            Body::Plain(code, column) => Some((*code, column)),
            Body::Constant(_) | Body::Struct(_) | Body::Coded(_) | Body::Union { .. } => None,
        }
    }

    /// Returns the code of every value, if the type has only one code.
    pub(super) fn constant(&self) -> Option<&'static [u8]> {
        match &self.body {
            Body::Constant(bytes) => Some(bytes),
            Body::Coded(coded) => {
                let is_nothing = !self.marked && coded.end.is_none();
                (is_nothing && coded.codes.is_nothing() && self.null.is_empty()).then_some(&[])
            }
            Body::Plain(..) | Body::Struct(_) | Body::Union { .. } => None,
        }
    }

    /// Returns the bytes of every row's code, if all codes have one length.
    pub(in crate::rows) fn same_len(&self) -> Option<usize> {
        let len = match &self.body {
            Body::Constant(bytes) => Some(bytes.len()),
            Body::Plain(code, _) => (!code.varies()).then(|| 1 + code.width()),
            Body::Struct(fields) => {
                fields.iter().try_fold(1, |sum, field| Some(sum + field.same_len()?))
            }
            Body::Coded(_) | Body::Union { .. } => None,
        };
        len.filter(|&len| self.nulls.is_none() || self.null.len() == len)
    }

    /// Adds the encoded bytes of each of `picks` to its length.
    pub(in crate::rows) fn add_lengths(&self, picks: &[usize], lengths: &mut [usize]) {
        if let Some(len) = self.same_len() {
            return lengths.iter_mut().for_each(|length| *length += len);
        }
        let Some(nulls) = &self.nulls else { return self.add_value_lengths(picks, lengths) };
        let some = Subset::of(picks, |row| nulls.is_valid(row).then_some(row));
        for (&row, length) in picks.iter().zip(&mut *lengths) {
            *length += if nulls.is_null(row) { self.null.len() } else { 0 };
        }
        some.with(lengths, |picks, lengths| self.add_value_lengths(picks, lengths));
    }

    fn add_value_lengths(&self, picks: &[usize], lengths: &mut [usize]) {
        if self.marked {
            lengths.iter_mut().for_each(|length| *length += 1);
        }
        self.add_body_lengths(picks, lengths);
    }

    /// Adds lengths like [`Tree::add_lengths`], for rows that are not null. Counts no markers,
    /// except those of plain values.
    pub(in crate::rows) fn add_body_lengths(&self, picks: &[usize], lengths: &mut [usize]) {
        let pairs = picks.iter().zip(&mut *lengths);
        match &self.body {
            Body::Constant(bytes) => pairs.for_each(|(_, length)| *length += bytes.len()),
            Body::Plain(code, Column::Bytes { values, .. }) => pairs.for_each(|(&row, length)| {
                *length += self.framing.string_len(*code, values, row);
            }),
            Body::Plain(code, _) => pairs.for_each(|(_, length)| *length += 1 + code.width()),
            Body::Struct(fields) => {
                fields.iter().for_each(|field| field.add_lengths(picks, lengths));
            }
            Body::Coded(coded) => pairs.for_each(|(&row, length)| *length += coded.len_of(row)),
            Body::Union { ids, places, children } => {
                lengths.iter_mut().for_each(|length| *length += 1);
                for (id, child) in children {
                    let some = Subset::of_child(*id, ids, places.as_ref(), picks);
                    some.with(lengths, |picks, lengths| child.add_lengths(picks, lengths));
                }
            }
        }
    }

    /// Writes the code of each of `picks` at its cursor, and moves the cursor past the code.
    pub(in crate::rows) fn put(&self, picks: &[usize], cursors: &mut [usize], out: &mut [u8]) {
        match &self.body {
            Body::Constant(_) => return self.put_bodies(picks, cursors, out),
            Body::Plain(code, column) => return self.put_plain(*code, column, picks, cursors, out),
            Body::Coded(coded) => {
                return self.put_each(picks, cursors, out, |row, out| {
                    let front = usize::from(self.marked);
                    if self.marked {
                        out[0] = VALUE;
                    }
                    front + coded.write(row, &mut out[front..])
                });
            }
            Body::Struct(_) | Body::Union { .. } => {}
        }
        let put_values = |picks: &[usize], cursors: &mut [usize], out: &mut [u8]| {
            if self.marked {
                for cursor in &mut *cursors {
                    out[*cursor] = VALUE;
                    *cursor += 1;
                }
            }
            self.put_bodies(picks, cursors, out);
        };
        let Some(nulls) = &self.nulls else { return put_values(picks, cursors, out) };
        let some = Subset::of(picks, |row| nulls.is_valid(row).then_some(row));
        for (&row, cursor) in picks.iter().zip(&mut *cursors) {
            if nulls.is_null(row) {
                out[*cursor..*cursor + self.null.len()].copy_from_slice(&self.null);
                *cursor += self.null.len();
            }
        }
        some.with(cursors, |picks, cursors| put_values(picks, cursors, out));
    }

    /// Writes codes like [`Tree::put`], for rows that are not null. Writes no markers, except those
    /// of plain values.
    pub(in crate::rows) fn put_bodies(
        &self,
        picks: &[usize],
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        match &self.body {
            Body::Constant(bytes) => {
                for cursor in cursors {
                    out[*cursor..*cursor + bytes.len()].copy_from_slice(bytes);
                    *cursor += bytes.len();
                }
            }
            // Plain values include their markers.
            Body::Plain(code, column) => self.put_plain(*code, column, picks, cursors, out),
            Body::Struct(fields) => fields.iter().for_each(|field| field.put(picks, cursors, out)),
            Body::Coded(coded) => {
                for (&row, cursor) in picks.iter().zip(cursors) {
                    *cursor += coded.write(row, &mut out[*cursor..]);
                }
            }
            Body::Union { ids, places, children } => {
                for (id, child) in children {
                    let some = Subset::of_child(*id, ids, places.as_ref(), picks);
                    some.with(cursors, |picks, cursors| {
                        for cursor in &mut *cursors {
                            out[*cursor] = self.framing.id(*id);
                            *cursor += 1;
                        }
                        child.put(picks, cursors, out);
                    });
                }
            }
        }
    }

    fn put_plain(
        &self,
        code: OrderedCode,
        column: &Column,
        picks: &[usize],
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        let (framing, flip) = (self.framing, self.framing.flip());
        match (code, column) {
            (OrderedCode::Fixed(width, kind), Column::Fixed { values, .. }) => {
                with_word!(width, W => {
                    let (values, _) = values.as_chunks::<{ W::BYTES }>();
                    self.put_each(picks, cursors, out, |row, out| {
                        let cell = &mut out[..1 + W::BYTES];
                        cell[0] = VALUE;
                        framing.put_number(W::read_native(&values[row]), kind, &mut cell[1..]);
                        1 + W::BYTES
                    });
                });
            }
            (OrderedCode::FixedBinary(width), Column::Fixed { values, .. }) => {
                self.put_each(picks, cursors, out, |row, out| {
                    let cell = &mut out[..1 + width];
                    cell[0] = VALUE;
                    let value = &values[row * width..(row + 1) * width];
                    cell[1..].iter_mut().zip(value).for_each(|(cell, byte)| *cell = byte ^ flip);
                    1 + width
                });
            }
            (_, Column::Bool { values, .. }) => {
                self.put_each(picks, cursors, out, |row, out| {
                    out[..2].copy_from_slice(&[VALUE, u8::from(values.value(row)) ^ flip]);
                    2
                });
            }
            (_, Column::Bytes { values, .. }) => {
                let valid = |row| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                let strings = picks.iter().map(|&row| Text::from((values.get(row), valid(row))));
                framing.put_strings(code, strings, &self.null, cursors, out);
            }
            // No plain column has another combination.
            _ => {}
        }
    }

    /// Writes each pick with `put`, or as a null. `put` receives a row and the output, and returns
    /// the bytes written.
    #[inline(always)]
    fn put_each(
        &self,
        picks: &[usize],
        cursors: &mut [usize],
        out: &mut [u8],
        put: impl Fn(usize, &mut [u8]) -> usize,
    ) {
        let (nulls, null) = (self.nulls.as_ref(), &self.null[..]);
        for (&row, cursor) in picks.iter().zip(cursors) {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                out[*cursor..*cursor + null.len()].copy_from_slice(null);
                *cursor += null.len();
                continue;
            }
            *cursor += put(row, &mut out[*cursor..]);
        }
    }
}

/// Encodes lists of any length.
fn list<F: Framing>(array: &ArrayRef, lists: Lists, framing: F) -> Result<Coded> {
    let (mut spans, elements) = match lists {
        Lists::Small => spans::of_list(array.as_list::<i32>()),
        Lists::Large => spans::of_list(array.as_list::<i64>()),
        Lists::SmallViews => spans::of_views(array.as_list_view::<i32>()),
        Lists::LargeViews => spans::of_views(array.as_list_view::<i64>()),
        Lists::Map => {
            let map = array.as_map();
            (spans::of_offsets(map.offsets()), Arc::new(map.entries().clone()) as ArrayRef)
        }
    };
    let elements = spans::used(&mut spans, &elements);
    let (count, inside) = (elements.len(), framing.inside());
    let fields: Vec<Tree<F>> = match lists {
        Lists::Map if !F::MARKS_ENTRIES => {
            let fields = elements.as_struct().columns().iter();
            fields.map(|field| Tree::of(field, inside)).collect::<Result<_>>()?
        }
        _ => vec![Tree::of(&elements, inside)?],
    };
    let frame = framing.list();
    let codes = Codes::of(&fields, Picks::First(count), frame.each);
    Ok(Coded { spans, codes, end: frame.end })
}

/// Some of the picks. Their cursors or lengths are copied out of the list of all, and back.
struct Subset {
    /// Positions among the picks.
    at: Vec<usize>,
    picks: Vec<usize>,
}

impl Subset {
    /// Selects the picks for which `pick` returns a row.
    fn of(picks: &[usize], pick: impl Fn(usize) -> Option<usize>) -> Self {
        let own = picks.iter().enumerate().filter_map(|(at, &row)| Some((at, pick(row)?)));
        let (at, picks) = own.unzip();
        Self { at, picks }
    }

    /// Selects the picks of a union with type `id`, by their rows in the child.
    fn of_child(id: i8, ids: &[i8], places: Option<&ScalarBuffer<i32>>, picks: &[usize]) -> Self {
        let place = |row: usize| places.map_or(row, |places| places[row] as usize);
        Self::of(picks, |row| (ids[row] == id).then(|| place(row)))
    }

    /// Calls `f` with the selected picks and their part of `all`.
    fn with(&self, all: &mut [usize], f: impl FnOnce(&[usize], &mut [usize])) {
        let mut own: Vec<usize> = self.at.iter().map(|&at| all[at]).collect();
        f(&self.picks, &mut own);
        self.at.iter().zip(own).for_each(|(&at, own)| all[at] = own);
    }
}
