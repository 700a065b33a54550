//! Ordered codes of nested types: lists, structs, maps, unions, of any depth.
//!
//! Made from the bytes of the value codec (or, where that is faster, as in `rows/parts.rs`), and read
//! back to them; so that whatever the value codec can write and build can be a key.
//!
//! ```text
//! value      = null     00 if nulls are low, 02 if they are high
//!            | 01 body
//! body       = the ordered code of the type, as in a slot
//!            | (01 value)* 00                    List, ListView, Large-, Map
//!            | value * size                      FixedSizeList
//!            | value of each field               Struct; the entries of a Map
//!            | type id + 1, value                Union, which has no marker
//! nothing:     Null
//! ```
//!
//! Invariant: codes have the order of the values - element by element, the shorter list first, nulls
//! at every level on the column's side - and none is a prefix of another. `flip` complements them all.

use super::fixed::{Word, with_word};
use super::text;
use super::value::wire::{put_len, take, take_byte, take_len};
use crate::error::{Error, Result};
use crate::order::code::{Kind, Node, OrderedCode};

pub(super) const VALUE: u8 = 1;
pub(super) const MORE: u8 = 1;
pub(super) const END: u8 = 0;

/// The marker of a null.
pub(super) fn null_marker(low: bool) -> u8 {
    if low { 0 } else { 2 }
}

/// The type id byte of a null: dictionaries over unions have them.
pub(super) fn null_id(low: bool) -> u8 {
    if low { 0 } else { 0xff }
}

/// Appends the code of the value at the start of `value`, which is then behind it.
pub(super) fn put(node: &Node, value: &mut &[u8], low: bool, out: &mut Vec<u8>) -> Result<()> {
    match node {
        Node::Nothing { marked } => take(value, usize::from(*marked)).map(|_| ()),
        Node::Union(_) => put_body(node, value, low, out),
        _ if take_byte(value)? == 0 => {
            out.push(null_marker(low));
            Ok(())
        }
        _ => {
            out.push(VALUE);
            put_body(node, value, low, out)
        }
    }
}

/// As [`put`], without the marker in front on both sides.
fn put_body(node: &Node, value: &mut &[u8], low: bool, out: &mut Vec<u8>) -> Result<()> {
    match node {
        Node::Nothing { .. } => {}
        Node::Plain(code) => match *code {
            OrderedCode::Fixed(width, kind) => put_number(take(value, width)?, width, kind, out),
            OrderedCode::Bool => out.push(take_byte(value)?),
            OrderedCode::FixedBinary(width) => out.extend_from_slice(take(value, width)?),
            _ => {
                let len = take_len(value)?;
                let bytes = take(value, len)?;
                let start = out.len();
                out.resize(start + text::encoded_len(*code, bytes), 0);
                text::encode(*code, false, bytes, &mut out[start..]);
            }
        },
        Node::List(element) => {
            for _ in 0..take_len(value)? {
                out.push(MORE);
                put(element, value, low, out)?;
            }
            out.push(END);
        }
        Node::FixedList(element, size) => {
            for _ in 0..*size {
                put(element, value, low, out)?;
            }
        }
        Node::Struct(fields) => {
            for field in fields {
                put(field, value, low, out)?;
            }
        }
        Node::Union(children) => {
            let id = take_byte(value)?;
            if id == 0 {
                out.push(null_id(low));
                return Ok(());
            }
            out.push(id);
            put(child(children, id)?, value, low, out)?;
        }
    }
    Ok(())
}

/// Little-endian in the value codec, an ordered code here.
fn put_number(value: &[u8], width: usize, kind: Kind, out: &mut Vec<u8>) {
    with_word!(width, W => {
        let mut code = [0; W::BYTES];
        W::read_native(value).code(kind, false).write_big(&mut code);
        out.extend_from_slice(&code);
    });
}

fn child(children: &[(i8, Node)], id: u8) -> Result<&Node> {
    let child = children.iter().find(|(own, _)| *own as u8 + 1 == id);
    child.map(|(_, node)| node).ok_or_else(|| corrupt("a union has no field of that type id"))
}

/// Codes being read, their bytes complemented by `flip`.
pub(super) struct Source<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) flip: u8,
    /// Whether nulls are low, before the bytes are complemented.
    pub(super) low: bool,
}

impl<'a> Source<'a> {
    fn byte(&mut self) -> Result<u8> {
        take_byte(&mut self.bytes).map(|byte| byte ^ self.flip)
    }

    /// True for a value, false for a null.
    fn marker(&mut self) -> Result<bool> {
        match self.byte()? {
            VALUE => Ok(true),
            byte if byte == null_marker(self.low) => Ok(false),
            _ => Err(corrupt("a marker that is neither null nor value")),
        }
    }

    fn text(&mut self, code: OrderedCode) -> Result<&'a [u8]> {
        let end = text::end_of(code, self.flip != 0, self.bytes, 0);
        take(&mut self.bytes, end)
    }
}

/// Appends the value codec's bytes of the code at the start of `source`, which is then behind it.
fn read(node: &Node, source: &mut Source<'_>, out: &mut Vec<u8>) -> Result<()> {
    match node {
        Node::Nothing { marked } => {
            out.extend(marked.then_some(0));
            Ok(())
        }
        Node::Union(_) => read_body(node, source, out),
        _ => {
            let valid = source.marker()?;
            out.push(u8::from(valid));
            if valid { read_body(node, source, out) } else { Ok(()) }
        }
    }
}

/// Puts a length at `start`, where a byte was left for it.
fn set_len(out: &mut Vec<u8>, start: usize, len: usize) {
    if len < 0x80 {
        out[start] = len as u8;
        return;
    }
    let mut bytes = Vec::new();
    put_len(len, &mut bytes);
    out.splice(start..=start, bytes);
}

/// As [`read`], without the marker in front on both sides.
pub(super) fn read_body(node: &Node, source: &mut Source<'_>, out: &mut Vec<u8>) -> Result<()> {
    match node {
        Node::Nothing { .. } => {}
        Node::Plain(code) => match *code {
            OrderedCode::Fixed(width, kind) => {
                let bytes = take(&mut source.bytes, width)?;
                with_word!(width, W => {
                    let mut value = [0; W::BYTES];
                    W::read_big(bytes).value(kind, source.flip != 0).write_native(&mut value);
                    out.extend_from_slice(&value);
                });
            }
            OrderedCode::Bool => out.push(source.byte()?),
            OrderedCode::FixedBinary(width) => {
                let bytes = take(&mut source.bytes, width)?;
                out.extend(bytes.iter().map(|byte| byte ^ source.flip));
            }
            _ => {
                let encoded = source.text(*code)?;
                let start = out.len();
                out.push(0);
                text::decode(*code, source.flip != 0, encoded, out);
                set_len(out, start, out.len() - start - 1);
            }
        },
        Node::List(element) => {
            let (mut count, start) = (0, out.len());
            out.push(0);
            loop {
                match source.byte()? {
                    END => break,
                    MORE => read(element, source, out)?,
                    _ => return Err(corrupt("a list that neither goes on nor ends")),
                }
                count += 1;
            }
            set_len(out, start, count);
        }
        Node::FixedList(element, size) => {
            for _ in 0..*size {
                read(element, source, out)?;
            }
        }
        Node::Struct(fields) => {
            for field in fields {
                read(field, source, out)?;
            }
        }
        Node::Union(children) => {
            let id = source.byte()?;
            if id == null_id(source.low) {
                out.push(0);
                return Ok(());
            }
            out.push(id);
            read(child(children, id)?, source, out)?;
        }
    }
    Ok(())
}

/// One past the body that starts at `at`; the row's end if it is damaged.
pub(super) fn end_of(node: &Node, flip: u8, low: bool, row: &[u8], at: usize) -> usize {
    let bytes = row.get(at..).unwrap_or(&[]);
    let mut source = Source { bytes, flip, low };
    match skip_body(node, &mut source) {
        Ok(()) => row.len() - source.bytes.len(),
        Err(_) => row.len(),
    }
}

fn skip(node: &Node, source: &mut Source<'_>) -> Result<()> {
    match node {
        Node::Nothing { .. } => Ok(()),
        Node::Union(_) => skip_body(node, source),
        _ => {
            if source.marker()? {
                skip_body(node, source)
            } else {
                Ok(())
            }
        }
    }
}

fn skip_body(node: &Node, source: &mut Source<'_>) -> Result<()> {
    match node {
        Node::Nothing { .. } => Ok(()),
        Node::Plain(code) if code.varies() => source.text(*code).map(|_| ()),
        Node::Plain(code) => take(&mut source.bytes, code.width()).map(|_| ()),
        Node::List(element) => {
            while source.byte()? == MORE {
                skip(element, source)?;
            }
            Ok(())
        }
        Node::FixedList(element, size) => (0..*size).try_for_each(|_| skip(element, source)),
        Node::Struct(fields) => fields.iter().try_for_each(|field| skip(field, source)),
        Node::Union(children) => match source.byte()? {
            id if id == null_id(source.low) => Ok(()),
            id => skip(child(children, id)?, source),
        },
    }
}

fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "a nested key of a row".into(), message: message.into() }
}
