//! Types of arrow-row, and the conversion of their codes, value by value, to the ordered codes of
//! `rows/nested`.
//!
//! ```text
//! fixed width     01 code | null and zeros               FixedSizeList   01 values | null
//! Null            02 03                                  Struct          01 fields | nulls
//! List, Map       null | 01 | (blocks of a value)* 01    Union           type id, value
//! run ends        blocks of the value                    Dictionary      the value
//! ```
//!
//! Values inside blocks ascend, and their nulls change sides if the column descends, since the
//! blocks are complemented as a whole. Values of a union are written the same way, but not
//! complemented.

use arrow_schema::{DataType, FieldRef, Fields, SortOptions};

use super::blocks;
use super::field::{NOTHING, VALUE, corrupt, flip, null_byte};
use crate::error::Result;
use crate::order::code::OrderedCode;
use crate::order::types::{Lists, Physical};
use crate::rows::nested::{END, Form, MORE, null_marker};
use crate::rows::text;
use crate::rows::value::wire::{take, take_byte};

pub(super) enum Node {
    Nothing,
    Plain(OrderedCode),
    Runs(Box<Node>),
    List(Box<Node>),
    Map(Vec<Node>),
    FixedList(Box<Node>, usize),
    Struct(Vec<Node>),
    Union(Vec<(i8, Node)>),
}

/// Returns the options of values inside blocks.
pub(super) fn inner(options: SortOptions) -> SortOptions {
    SortOptions { descending: false, nulls_first: options.nulls_first != options.descending }
}

impl Node {
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        let child = |field: &FieldRef| Self::of(field.data_type());
        let all = |fields: &Fields| fields.iter().map(child).collect::<Option<Vec<_>>>();
        Some(match Physical::of(data_type)? {
            Physical::Null => Self::Nothing,
            Physical::Boolean
            | Physical::Number(..)
            | Physical::FixedBinary(_)
            | Physical::Bytes(..) => Self::Plain(OrderedCode::of(data_type)?),
            Physical::Dictionary(_, values) => Self::of(values)?,
            Physical::Runs(_, values) => Self::Runs(Box::new(child(values)?)),
            Physical::List(Lists::Map, entries) => match Physical::of(entries.data_type())? {
                Physical::Struct(fields) => Self::Map(all(fields)?),
                _ => return None,
            },
            Physical::List(_, field) => Self::List(Box::new(child(field)?)),
            Physical::FixedList(field, size) => Self::FixedList(Box::new(child(field)?), size),
            Physical::Struct(fields) => Self::Struct(all(fields)?),
            Physical::Union(fields, _) => {
                let children = fields.iter().map(|(id, field)| Some((id, child(field)?)));
                Self::Union(children.collect::<Option<_>>()?)
            }
        })
    }

    /// Returns the bytes of every value, if all values have one length.
    pub(super) fn same_len(&self) -> Option<usize> {
        match self {
            Self::Nothing => Some(NOTHING.len()),
            Self::Plain(code) if !code.varies() => Some(1 + code.width()),
            _ => None,
        }
    }

    /// Appends the code of a null.
    pub(super) fn put_null(&self, options: SortOptions, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => out.extend(NOTHING.map(|byte| byte ^ flip(options))),
            Self::Plain(code) => {
                out.push(null_byte(options));
                out.resize(out.len() + code.width(), 0);
            }
            Self::Runs(values) => {
                let mut row = Vec::new();
                values.put_null(inner(options), &mut row);
                blocks::append(&row, flip(options), out);
            }
            Self::List(_) | Self::Map(_) | Self::FixedList(..) => out.push(null_byte(options)),
            Self::Struct(fields) => {
                out.push(null_byte(options));
                fields.iter().for_each(|field| field.put_null(options, out));
            }
            Self::Union(children) => {
                // Arrow's null union is a null of the first field.
                if let Some((id, child)) = children.first() {
                    out.push(*id as u8 ^ flip(options));
                    child.put_null(inner(options), out);
                }
            }
        }
    }

    /// Reads the value at the start of `source`. Appends its ordered code, in the form of columns
    /// that take no part in an order.
    pub(super) fn read(
        &self,
        source: &mut &[u8],
        options: SortOptions,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.walk(source, options, Some(out))
    }

    /// Returns the bytes of the code at the start of `source`. Validates lengths and markers
    /// outside of blocks.
    pub(super) fn code_len(&self, source: &[u8], options: SortOptions) -> Result<usize> {
        let mut rest = source;
        self.walk(&mut rest, options, None)?;
        Ok(source.len() - rest.len())
    }

    /// Reads a value like [`Node::read`]. Without an `out`, blocks are skipped and not decoded.
    fn walk(
        &self,
        source: &mut &[u8],
        options: SortOptions,
        mut out: Option<&mut Vec<u8>>,
    ) -> Result<()> {
        let (flip, inside) = (flip(options), inner(options));
        let mut push = |byte| out.as_deref_mut().into_iter().for_each(|out| out.push(byte));
        match self {
            Self::Nothing => return take(source, NOTHING.len()).map(|_| ()),
            Self::Runs(values) => {
                let Some(out) = out else { return blocks::skip(source, flip).map(|_| ()) };
                let mut row = Vec::new();
                blocks::read(source, flip, &mut row)?;
                let mut row = &row[..];
                values.read(&mut row, inside, out)?;
                return behind(row);
            }
            Self::Union(children) => {
                let id = take_byte(source)? ^ flip;
                let child = child(children, id)?;
                push(id + 1);
                return child.walk(source, inside, out);
            }
            _ => {}
        }
        if source.first() == Some(&null_byte(options)) {
            push(null_marker(Form::STORED.low));
            return self.skip_null(source, options);
        }
        push(VALUE);
        match (self, out) {
            (Self::Nothing | Self::Runs(_) | Self::Union(_), _) => Ok(()),
            (Self::Plain(code), out) if !code.varies() => {
                take_value(source)?;
                let code = take(source, code.width())?.iter().map(|byte| byte ^ flip);
                out.into_iter().for_each(|out| out.extend(code.clone()));
                Ok(())
            }
            (Self::Plain(_), None) => blocks::skip(source, flip).map(|_| ()),
            (Self::Plain(code), Some(out)) => read_string(*code, source, flip, out),
            (Self::List(_) | Self::Map(_), None) => {
                while blocks::skip(source, flip)? {}
                Ok(())
            }
            (Self::List(element), Some(out)) => {
                read_list(source, flip, out, |row, out| element.read(row, inside, out))
            }
            (Self::Map(fields), Some(out)) => read_list(source, flip, out, |row, out| {
                out.push(VALUE);
                fields.iter().try_for_each(|field| field.read(row, inside, out))
            }),
            (Self::FixedList(element, size), mut out) => {
                take_value(source)?;
                (0..*size).try_for_each(|_| element.walk(source, options, out.as_deref_mut()))
            }
            (Self::Struct(fields), mut out) => {
                take_value(source)?;
                let mut fields = fields.iter();
                fields.try_for_each(|field| field.walk(source, options, out.as_deref_mut()))
            }
        }
    }

    /// Skips a null.
    fn skip_null(&self, source: &mut &[u8], options: SortOptions) -> Result<()> {
        let mut null = Vec::new();
        self.put_null(options, &mut null);
        take(source, null.len()).map(|_| ())
    }
}

/// Returns the field of a union with this type id.
fn child(children: &[(i8, Node)], id: u8) -> Result<&Node> {
    let child = children.iter().find(|(own, _)| *own as u8 == id);
    child.map(|(_, child)| child).ok_or_else(|| corrupt("no field of that type id"))
}

/// Takes the marker of a value.
pub(super) fn take_value(source: &mut &[u8]) -> Result<()> {
    match take_byte(source)? {
        VALUE => Ok(()),
        _ => Err(corrupt("a marker that is neither null nor value")),
    }
}

fn behind(rest: &[u8]) -> Result<()> {
    if rest.is_empty() { Ok(()) } else { Err(corrupt("bytes behind a value")) }
}

fn read_string(code: OrderedCode, source: &mut &[u8], flip: u8, out: &mut Vec<u8>) -> Result<()> {
    let mut bytes = Vec::new();
    blocks::read(source, flip, &mut bytes)?;
    // Ordered codes of text require UTF-8.
    if code == OrderedCode::Text && std::str::from_utf8(&bytes).is_err() {
        return Err(corrupt("a text that is not UTF-8"));
    }
    let start = out.len();
    out.resize(start + text::encoded_len(code, &bytes), 0);
    text::encode(code, false, &bytes, &mut out[start..]);
    Ok(())
}

fn read_list(
    source: &mut &[u8],
    flip: u8,
    out: &mut Vec<u8>,
    mut element: impl FnMut(&mut &[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut row = Vec::new();
    while blocks::read(source, flip, &mut row)? {
        out.push(MORE);
        let mut rest = &row[..];
        element(&mut rest, out)?;
        behind(rest)?;
        row.clear();
    }
    out.push(END);
    Ok(())
}
