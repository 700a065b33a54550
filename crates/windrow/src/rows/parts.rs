//! Nested values to their ordered codes, straight from the arrays of their parts.
//!
//! Structs, lists with offsets, lists of one size and maps are taken apart; whatever else stands
//! inside - views, unions, dictionaries, run ends - is coded beforehand, by way of the value codec.
//! Both give the bytes drawn in `rows/nested.rs`.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::column::Column;
use super::fixed::{Word, with_word};
use super::nested::{END, MORE, VALUE, null_id, null_marker};
use super::{nested, text, value};
use crate::error::Result;
use crate::order::code::{Node, OrderedCode};

/// The parts of an array, and its nulls.
pub(super) struct Part {
    nulls: Option<NullBuffer>,
    body: Body,
}

enum Body {
    Plain(OrderedCode, Column),
    Struct(Vec<Part>),
    /// Where each list begins and ends among the elements.
    List(Vec<(usize, usize)>, Box<Part>),
    FixedList(usize, Box<Part>),
    /// Codes with their markers.
    Coded {
        bytes: Vec<u8>,
        offsets: Vec<usize>,
    },
}

impl Part {
    pub(super) fn of(array: &ArrayRef, node: &Node, low: bool) -> Result<Self> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let body = match (node, array.data_type()) {
            (Node::Plain(code), data_type) if !is_encoded(data_type) => {
                Body::Plain(*code, Column::plain_values(array)?)
            }
            (Node::Struct(nodes), DataType::Struct(_)) => {
                let fields = array.as_struct().columns().iter().zip(nodes);
                Body::Struct(
                    fields
                        .map(|(array, node)| Self::of(array, node, low))
                        .collect::<Result<_>>()?,
                )
            }
            (Node::List(node), DataType::List(_)) => {
                let array = array.as_list::<i32>();
                Body::List(spans(array.offsets()), Self::boxed(array.values(), node, low)?)
            }
            (Node::List(node), DataType::LargeList(_)) => {
                let array = array.as_list::<i64>();
                Body::List(spans(array.offsets()), Self::boxed(array.values(), node, low)?)
            }
            (Node::List(node), DataType::Map(_, _)) => {
                let array = array.as_map();
                let entries: ArrayRef = std::sync::Arc::new(array.entries().clone());
                Body::List(spans(array.offsets()), Self::boxed(&entries, node, low)?)
            }
            (Node::FixedList(node, size), DataType::FixedSizeList(_, _)) => {
                let array = array.as_fixed_size_list();
                Body::FixedList(*size, Self::boxed(array.values(), node, low)?)
            }
            _ => return Self::coded(array, node, low),
        };
        Ok(Self { nulls, body })
    }

    fn boxed(array: &ArrayRef, node: &Node, low: bool) -> Result<Box<Self>> {
        Self::of(array, node, low).map(Box::new)
    }

    fn coded(array: &ArrayRef, node: &Node, low: bool) -> Result<Self> {
        let writer = value::writer(array)?;
        let (mut value, mut bytes) = (Vec::new(), Vec::new());
        let mut offsets = Vec::with_capacity(array.len() + 1);
        offsets.push(0);
        for row in 0..array.len() {
            value.clear();
            writer.write(row, &mut value);
            nested::put(node, &mut &value[..], low, &mut bytes)?;
            offsets.push(bytes.len());
        }
        Ok(Self { nulls: None, body: Body::Coded { bytes, offsets } })
    }

    /// Which of `rows` rows are not the null key of a dictionary over a union.
    pub(super) fn keyed(&self, rows: usize, low: bool) -> Option<NullBuffer> {
        let Body::Coded { bytes, offsets } = &self.body else { return None };
        let valid = |row: usize| bytes.get(offsets[row]) != Some(&null_id(low));
        Some(NullBuffer::from_iter((0..rows).map(valid)))
    }

    /// Appends the code of `row`.
    pub(super) fn put(&self, row: usize, low: bool, out: &mut Vec<u8>) {
        if let Body::Coded { bytes, offsets } = &self.body {
            out.extend_from_slice(&bytes[offsets[row]..offsets[row + 1]]);
            return;
        }
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.push(null_marker(low));
            return;
        }
        out.push(VALUE);
        self.put_body(row, low, out);
    }

    /// Appends the code of `row`, which is not null, without its marker.
    pub(super) fn put_body(&self, row: usize, low: bool, out: &mut Vec<u8>) {
        match &self.body {
            Body::Plain(code, column) => put_plain(*code, column, row, out),
            Body::Struct(fields) => fields.iter().for_each(|field| field.put(row, low, out)),
            Body::List(spans, elements) => {
                let (start, end) = spans[row];
                for element in start..end {
                    out.push(MORE);
                    elements.put(element, low, out);
                }
                out.push(END);
            }
            Body::FixedList(size, elements) => {
                (row * size..(row + 1) * size).for_each(|element| elements.put(element, low, out));
            }
            Body::Coded { bytes, offsets } => {
                out.extend_from_slice(&bytes[offsets[row] + 1..offsets[row + 1]]);
            }
        }
    }
}

/// True for types whose values are not held row by row.
fn is_encoded(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
}

fn spans<O: OffsetSizeTrait>(offsets: &[O]) -> Vec<(usize, usize)> {
    offsets.windows(2).map(|ends| (ends[0].as_usize(), ends[1].as_usize())).collect()
}

fn put_plain(code: OrderedCode, column: &Column, row: usize, out: &mut Vec<u8>) {
    match (code, column) {
        (OrderedCode::Fixed(width, kind), Column::Fixed { values, .. }) => {
            with_word!(width, W => {
                let value = W::read_native(&values[row * W::BYTES..(row + 1) * W::BYTES]);
                let mut bytes = [0; W::BYTES];
                value.code(kind, false).write_big(&mut bytes);
                out.extend_from_slice(&bytes);
            });
        }
        (OrderedCode::FixedBinary(width), Column::Fixed { values, .. }) => {
            out.extend_from_slice(&values[row * width..(row + 1) * width]);
        }
        (_, Column::Bool { values, .. }) => out.push(u8::from(values.value(row))),
        (_, Column::Bytes { values, .. }) => {
            let bytes = values.get(row);
            let start = out.len();
            out.resize(start + text::encoded_len(code, bytes), 0);
            text::encode(code, false, bytes, &mut out[start..]);
        }
        _ => {}
    }
}
