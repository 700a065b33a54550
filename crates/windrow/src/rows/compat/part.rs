//! Arrays to the codes of arrow-row, column by column.
//!
//! ```text
//! lengths  how many bytes each pick takes, part by part
//! put      a cursor for each pick; each part writes its bytes at the cursors, and moves them on
//! ```
//!
//! As in `rows/nested`, what is written is told by picks: positions in an array. What stands in blocks -
//! elements of lists, values of runs - is coded beforehand, and so are the values of dictionaries.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, downcast_run_array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, SortOptions};

use super::codes::Codes;
use super::node::{Node, inner};
use super::{END, NOTHING, VALUE, blocks, flip, null_byte};
use crate::error::{Error, Result};
use crate::kernel::rows::blocks::put_blocks;
use crate::order::code::OrderedCode;
use crate::rows::column::{Bytes, Column};
use crate::rows::fixed::{Word, with_word};
use crate::rows::spans::{self, Spans};

/// An array by its parts.
pub(super) struct Part {
    options: SortOptions,
    nulls: Option<NullBuffer>,
    /// The code of a null.
    null: Vec<u8>,
    body: Body,
}

enum Body {
    Nothing,
    Plain(OrderedCode, Column),
    Struct(Vec<Part>),
    FixedList(usize, Box<Part>),
    /// Where each list begins and ends among the elements.
    List(Spans, Codes),
    /// In blocks: the value of each run.
    Runs(Vec<usize>, Codes),
    Dictionary(Vec<usize>, Codes),
    Union {
        ids: ScalarBuffer<i8>,
        places: Option<ScalarBuffer<i32>>,
        children: Vec<(i8, Part)>,
    },
}

impl Part {
    pub(super) fn of(array: &ArrayRef, node: &Node, options: SortOptions) -> Result<Self> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let part = |array: &ArrayRef, node: &Node, options| Self::of(array, node, options);
        let codes = |array: &ArrayRef, node: &Node, options| {
            Ok::<_, Error>(Codes::of(&[part(array, node, options)?], array.len()))
        };
        let elements = |spans: &mut Spans, array: &ArrayRef, node: &Node| {
            codes(&spans::used(spans, array), node, inner(options))
        };
        let body = match (node, array.data_type()) {
            (_, DataType::Dictionary(..)) => {
                let dictionary = array.as_any_dictionary();
                let codes = codes(dictionary.values(), node, options)?;
                let keys = match dictionary.values().is_empty() {
                    true => vec![0; array.len()],
                    false => dictionary.normalized_keys(),
                };
                Body::Dictionary(keys, codes)
            }
            (Node::Runs(node), DataType::RunEndEncoded(..)) => {
                let run = array.as_ref();
                let (keys, values) = downcast_run_array! {
                    run => (spans::of_runs(run), run.values()),
                    _ => return Err(other(array)),
                };
                Body::Runs(keys, codes(values, node, inner(options))?)
            }
            (Node::Nothing { .. }, _) => Body::Nothing,
            (Node::Plain(code), _) => Body::Plain(*code, Column::plain_values(array)?),
            (Node::List(node), DataType::List(_)) => {
                let array = array.as_list::<i32>();
                let mut spans = spans::of_offsets(array.offsets());
                let codes = elements(&mut spans, array.values(), node)?;
                Body::List(spans, codes)
            }
            (Node::List(node), DataType::LargeList(_)) => {
                let array = array.as_list::<i64>();
                let mut spans = spans::of_offsets(array.offsets());
                let codes = elements(&mut spans, array.values(), node)?;
                Body::List(spans, codes)
            }
            (Node::List(node), DataType::ListView(_)) => {
                let array = array.as_list_view::<i32>();
                let mut spans = spans::of_views(array.offsets(), array.sizes());
                let codes = elements(&mut spans, array.values(), node)?;
                Body::List(spans, codes)
            }
            (Node::List(node), DataType::LargeListView(_)) => {
                let array = array.as_list_view::<i64>();
                let mut spans = spans::of_views(array.offsets(), array.sizes());
                let codes = elements(&mut spans, array.values(), node)?;
                Body::List(spans, codes)
            }
            (Node::Map(nodes), DataType::Map(_, _)) => {
                let array = array.as_map();
                let mut spans = spans::of_offsets(array.offsets());
                let entries: ArrayRef = std::sync::Arc::new(array.entries().clone());
                let entries = spans::used(&mut spans, &entries);
                let fields = entries.as_struct().columns().iter().zip(nodes);
                let parts = fields.map(|(array, node)| part(array, node, inner(options)));
                Body::List(spans, Codes::of(&parts.collect::<Result<Vec<_>>>()?, entries.len()))
            }
            (Node::FixedList(node, size), DataType::FixedSizeList(_, _)) => {
                let values = array.as_fixed_size_list().values();
                Body::FixedList(*size, Box::new(part(values, node, options)?))
            }
            (Node::Struct(nodes), DataType::Struct(_)) => {
                let fields = array.as_struct().columns().iter().zip(nodes);
                let fields = fields.map(|(array, node)| part(array, node, options));
                Body::Struct(fields.collect::<Result<_>>()?)
            }
            (Node::Union(nodes), DataType::Union(..)) => {
                let array = array.as_union();
                let child = |(id, node): &(i8, Node)| {
                    Ok((*id, part(array.child(*id), node, inner(options))?))
                };
                Body::Union {
                    ids: array.type_ids().clone(),
                    places: array.offsets().cloned(),
                    children: nodes.iter().map(child).collect::<Result<_>>()?,
                }
            }
            _ => return Err(other(array)),
        };
        let mut null = Vec::new();
        node.put_null(options, &mut null);
        Ok(Self { options, nulls, null, body })
    }

    /// The code and the values of a column that is neither nested nor a dictionary.
    pub(super) fn plain(&self) -> Option<(OrderedCode, &Column)> {
        match &self.body {
            Body::Plain(code, column) => Some((*code, column)),
            _ => None,
        }
    }

    pub(super) fn options(&self) -> SortOptions {
        self.options
    }

    /// Bytes of every value, if they are the same.
    pub(super) fn same_len(&self) -> Option<usize> {
        match &self.body {
            Body::Nothing => Some(NOTHING.len()),
            Body::Plain(code, _) if !code.varies() => Some(1 + code.width()),
            _ => None,
        }
    }

    /// Adds the bytes of the code of each of `picks` to its length.
    pub(super) fn add_lengths(&self, picks: &[usize], lengths: &mut [usize]) {
        if let Some(len) = self.same_len() {
            return lengths.iter_mut().for_each(|length| *length += len);
        }
        let Some(nulls) = &self.nulls else { return self.add_body_lengths(picks, lengths) };
        let valid = picks.iter().enumerate().filter(|(_, row)| nulls.is_valid(**row));
        let (at, valid): (Vec<usize>, Vec<usize>) = valid.map(|(at, &row)| (at, row)).unzip();
        let mut bodies = vec![0; valid.len()];
        self.add_body_lengths(&valid, &mut bodies);
        lengths.iter_mut().zip(picks).for_each(|(length, &row)| {
            *length += if nulls.is_null(row) { self.null.len() } else { 0 };
        });
        at.iter().zip(bodies).for_each(|(&at, body)| lengths[at] += body);
    }

    fn add_body_lengths(&self, picks: &[usize], lengths: &mut [usize]) {
        let pairs = picks.iter().zip(&mut *lengths);
        match &self.body {
            Body::Plain(_, Column::Bytes { values: Bytes::Small { offsets, .. }, .. }) => {
                for (&row, length) in pairs {
                    *length += blocks::encoded_len((offsets[row + 1] - offsets[row]) as usize);
                }
            }
            Body::Plain(_, Column::Bytes { values, .. }) => pairs.for_each(|(&row, length)| {
                *length += blocks::encoded_len(values.get(row).len());
            }),
            // Of one length.
            Body::Nothing | Body::Plain(..) => {}
            Body::Struct(fields) => {
                pairs.for_each(|(_, length)| *length += 1);
                fields.iter().for_each(|field| field.add_lengths(picks, lengths));
            }
            Body::FixedList(size, elements) => {
                let all: Vec<usize> =
                    picks.iter().flat_map(|row| row * size..(row + 1) * size).collect();
                let mut each = vec![0; all.len()];
                elements.add_lengths(&all, &mut each);
                let sums = each.chunks(usize::max(*size, 1)).map(|each| each.iter().sum::<usize>());
                lengths.iter_mut().for_each(|length| *length += 1);
                lengths.iter_mut().zip(sums).for_each(|(length, sum)| *length += sum);
            }
            Body::List(spans, codes) => pairs.for_each(|(&row, length)| {
                let (start, end) = spans[row];
                *length += 1 + codes.blocks_len(start, end);
            }),
            Body::Runs(keys, codes) => pairs.for_each(|(&row, length)| {
                *length += blocks::encoded_len(codes.len_of(keys[row]));
            }),
            Body::Dictionary(keys, codes) => {
                pairs.for_each(|(&row, length)| *length += codes.len_of(keys[row]));
            }
            Body::Union { ids, places, children } => {
                for (id, child) in children {
                    let (at, own) = of_child(*id, ids, places.as_ref(), picks);
                    let mut values = vec![1; own.len()];
                    child.add_lengths(&own, &mut values);
                    at.iter().zip(values).for_each(|(&at, value)| lengths[at] += value);
                }
            }
        }
    }

    /// Writes the code of each of `picks` at its cursor, and moves the cursor behind it.
    pub(super) fn put(&self, picks: &[usize], cursors: &mut [usize], out: &mut [u8]) {
        let nulls = self.nulls.as_ref();
        let flip = flip(self.options);
        let put_each = Each { nulls, null: &self.null };
        match &self.body {
            Body::Nothing => cursors.iter_mut().for_each(|cursor| {
                out[*cursor..*cursor + 2].copy_from_slice(&NOTHING.map(|byte| byte ^ flip));
                *cursor += 2;
            }),
            Body::Plain(code, column) => {
                self.put_plain(*code, column, put_each, picks, cursors, out);
            }
            Body::List(spans, codes) => put_each.put(picks, cursors, out, |row, out, at| {
                let (start, end) = spans[row];
                let mut to = at;
                for element in start..end {
                    to += blocks::put(codes.get(element), flip, &mut out[to..]);
                }
                out[to] = END ^ flip;
                to + 1 - at
            }),
            Body::Runs(keys, codes) => put_each.put(picks, cursors, out, |row, out, at| {
                blocks::put(codes.get(keys[row]), flip, &mut out[at..])
            }),
            Body::Dictionary(keys, codes) => put_each.put(picks, cursors, out, |row, out, at| {
                let code = codes.get(keys[row]);
                crate::kernel::copy::copy_short(&mut out[at..], code);
                code.len()
            }),
            Body::Struct(_) | Body::FixedList(..) | Body::Union { .. } => match nulls {
                None => self.put_body(picks, cursors, out),
                Some(nulls) => {
                    let (mut at, mut valid) = (Vec::new(), Vec::new());
                    for (index, &row) in picks.iter().enumerate() {
                        if nulls.is_valid(row) {
                            at.push(index);
                            valid.push(row);
                        } else {
                            let end = cursors[index] + self.null.len();
                            out[cursors[index]..end].copy_from_slice(&self.null);
                            cursors[index] = end;
                        }
                    }
                    let mut places: Vec<usize> = at.iter().map(|&at| cursors[at]).collect();
                    self.put_body(&valid, &mut places, out);
                    at.iter().zip(places).for_each(|(&at, place)| cursors[at] = place);
                }
            },
        }
    }

    /// Values that are made of others, none of them null.
    fn put_body(&self, picks: &[usize], cursors: &mut [usize], out: &mut [u8]) {
        let flip = flip(self.options);
        if !matches!(self.body, Body::Union { .. }) {
            for cursor in &mut *cursors {
                out[*cursor] = VALUE;
                *cursor += 1;
            }
        }
        match &self.body {
            Body::Struct(fields) => fields.iter().for_each(|field| field.put(picks, cursors, out)),
            Body::FixedList(size, elements) => {
                for (&row, cursor) in picks.iter().zip(cursors) {
                    // One after the other: each begins where the one before has ended.
                    for element in row * size..(row + 1) * size {
                        elements.put(&[element], std::slice::from_mut(cursor), out);
                    }
                }
            }
            Body::Union { ids, places, children } => {
                for (id, child) in children {
                    let (at, own) = of_child(*id, ids, places.as_ref(), picks);
                    let mut values: Vec<usize> = Vec::with_capacity(at.len());
                    for &at in &at {
                        out[cursors[at]] = *id as u8 ^ flip;
                        values.push(cursors[at] + 1);
                    }
                    child.put(&own, &mut values, out);
                    at.iter().zip(values).for_each(|(&at, value)| cursors[at] = value);
                }
            }
            _ => {}
        }
    }

    fn put_plain(
        &self,
        code: OrderedCode,
        column: &Column,
        put_each: Each<'_>,
        picks: &[usize],
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        let (flip, descending) = (flip(self.options), self.options.descending);
        match (code, column) {
            (OrderedCode::Fixed(width, kind), Column::Fixed { values, .. }) => {
                with_word!(width, W => {
                    let (values, _) = values.as_chunks::<{ W::BYTES }>();
                    put_each.put(picks, cursors, out, |row, out, at| {
                        let cell = &mut out[at..at + 1 + W::BYTES];
                        cell[0] = VALUE;
                        W::read_native(&values[row]).code(kind, descending).write_big(&mut cell[1..]);
                        1 + W::BYTES
                    });
                });
            }
            (OrderedCode::FixedBinary(width), Column::Fixed { values, .. }) => {
                put_each.put(picks, cursors, out, |row, out, at| {
                    let cell = &mut out[at..at + 1 + width];
                    cell[0] = VALUE;
                    let value = &values[row * width..(row + 1) * width];
                    cell[1..].iter_mut().zip(value).for_each(|(cell, byte)| *cell = byte ^ flip);
                    1 + width
                });
            }
            (_, Column::Bool { values, .. }) => {
                put_each.put(picks, cursors, out, |row, out, at| {
                    out[at..at + 2].copy_from_slice(&[VALUE, u8::from(values.value(row)) ^ flip]);
                    2
                })
            }
            (_, Column::Bytes { values, .. }) => {
                let valid = |row| put_each.nulls.is_none_or(|nulls| nulls.is_valid(row));
                let null = null_byte(self.options);
                if let Bytes::Small { offsets, data } = values {
                    let own = |row| &data[offsets[row] as usize..offsets[row + 1] as usize];
                    let strings = picks.iter().map(|&row| (own(row), valid(row)));
                    return put_blocks(strings, null, flip, cursors, out);
                }
                let strings = picks.iter().map(|&row| (values.get(row), valid(row)));
                put_blocks(strings, null, flip, cursors, out);
            }
            _ => {}
        }
    }
}

/// Rows one after the other, some of which may be null.
struct Each<'a> {
    nulls: Option<&'a NullBuffer>,
    null: &'a [u8],
}

impl Each<'_> {
    /// Writes each pick by `put`, which is given a row and where it goes and returns its bytes.
    #[inline(always)]
    fn put(
        &self,
        picks: &[usize],
        cursors: &mut [usize],
        out: &mut [u8],
        put: impl Fn(usize, &mut [u8], usize) -> usize,
    ) {
        for (&row, cursor) in picks.iter().zip(cursors) {
            if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
                out[*cursor..*cursor + self.null.len()].copy_from_slice(self.null);
                *cursor += self.null.len();
                continue;
            }
            *cursor += put(row, out, *cursor);
        }
    }
}

/// Of some picks from a union, those of type `id`, and their rows in the child.
fn of_child(
    id: i8,
    ids: &[i8],
    places: Option<&ScalarBuffer<i32>>,
    picks: &[usize],
) -> (Vec<usize>, Vec<usize>) {
    let own = picks.iter().enumerate().filter(|(_, row)| ids[**row] == id);
    let place = |row: usize| places.map_or(row, |places| places[row] as usize);
    own.map(|(at, &row)| (at, place(row))).unzip()
}

fn other(array: &ArrayRef) -> Error {
    Error::UnsupportedColumn {
        column: array.data_type().to_string(),
        data_type: array.data_type().clone(),
        role: "a row of arrow-row",
    }
}
