//! Markers of nested codes, and walks over codes.

use super::super::row_ref::{Rest, RowRef};
use super::super::text;
use crate::error::{Error, Result};
use crate::order::Slot;
use crate::order::code::{Node, OrderedCode};
use windrow_kernel::rows::take_text::find_end;

pub(in crate::rows) const VALUE: u8 = 1;
pub(in crate::rows) const MORE: u8 = 1;
pub(in crate::rows) const END: u8 = 0;

/// Returns the marker of a null.
pub(in crate::rows) fn null_marker(low: bool) -> u8 {
    if low { 0 } else { 2 }
}

/// Returns the type id byte of a null: dictionaries of unions have such nulls.
pub(in crate::rows) fn null_id(low: bool) -> u8 {
    if low { 0 } else { 0xff }
}

/// Marker bytes of a null and of a value, as they stand in rows.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) struct Marked {
    pub(in crate::rows) null: u8,
    pub(in crate::rows) value: u8,
}

impl Marked {
    /// Reads the marker at the start of `row`: true for a value, false for a null.
    #[inline(always)]
    pub(in crate::rows) fn is_value(self, row: &mut RowRef<'_>) -> Result<bool> {
        match row.byte() {
            Some(byte) if byte == self.value => Ok(true),
            Some(byte) if byte == self.null => Ok(false),
            Some(_) => Err(no_marker()),
            None => Err(cut_off()),
        }
    }

    /// Returns true if all of `rows` start with the marker of a value. Reads nothing off the rows.
    ///
    /// # Errors
    /// If a row does not start with a marker.
    pub(in crate::rows) fn are_values(self, rows: &Rest<'_, '_>) -> Result<bool> {
        let (mut values, mut known) = (true, true);
        for (&cursor, &end) in rows.cursors.iter().zip(rows.ends) {
            let byte = rows.bytes.get(cursor).copied().filter(|_| cursor < end);
            let byte = byte.ok_or_else(cut_off)?;
            let is_value = byte == self.value;
            values &= is_value;
            known &= is_value | (byte == self.null);
        }
        if known { Ok(values) } else { Err(no_marker()) }
    }
}

/// The form of a column's codes in rows.
#[derive(Clone, Copy, Debug)]
pub(in crate::rows) struct Form {
    /// Complement of every byte.
    pub(in crate::rows) flip: u8,
    /// True if nulls are low, before the bytes are complemented.
    pub(in crate::rows) low: bool,
}

impl Form {
    /// Form of columns that take no part in an order.
    pub(in crate::rows) const STORED: Self = Self { flip: 0, low: true };

    pub(in crate::rows) fn of(slot: &Slot) -> Self {
        Self { flip: if slot.descending { 0xff } else { 0 }, low: slot.low_nulls() }
    }

    /// Returns the markers of values inside other values.
    pub(in crate::rows) fn marked(self) -> Marked {
        Marked { null: null_marker(self.low) ^ self.flip, value: VALUE ^ self.flip }
    }

    pub(in crate::rows) fn descending(self) -> bool {
        self.flip != 0
    }

    #[inline(always)]
    pub(in crate::rows) fn byte(self, row: &mut RowRef<'_>) -> Result<u8> {
        match row.byte() {
            Some(byte) => Ok(byte ^ self.flip),
            None => Err(cut_off()),
        }
    }

    /// Reads a marker: true for a value, false for a null.
    #[inline(always)]
    pub(in crate::rows) fn marker(self, row: &mut RowRef<'_>) -> Result<bool> {
        self.marked().is_value(row)
    }

    /// Decodes the marker at `at`: true for a value, false for a null.
    #[inline(always)]
    pub(in crate::rows) fn value_at(self, row: &RowRef<'_>, at: usize) -> Result<bool> {
        match row.get(at).map(|byte| byte ^ self.flip) {
            Some(VALUE) => Ok(true),
            Some(byte) if byte == null_marker(self.low) => Ok(false),
            Some(_) => Err(no_marker()),
            None => Err(cut_off()),
        }
    }

    /// Reads the byte in front of an element or the end: true if a list goes on, false if it ends.
    #[inline(always)]
    pub(in crate::rows) fn more(self, row: &mut RowRef<'_>) -> Result<bool> {
        let goes_on = self.more_at(row, 0)?;
        row.byte();
        Ok(goes_on)
    }

    /// Decodes the byte at `at` like [`Form::more`], and reads nothing off the row.
    #[inline(always)]
    pub(in crate::rows) fn more_at(self, row: &RowRef<'_>, at: usize) -> Result<bool> {
        match row.get(at).map(|byte| byte ^ self.flip) {
            Some(MORE) => Ok(true),
            Some(END) => Ok(false),
            Some(_) => Err(corrupt("a list that neither goes on nor ends")),
            None => Err(cut_off()),
        }
    }

    /// Returns true if `code` is a value and not a null; for a union, if its field is a value.
    /// Returns false for a damaged code.
    pub(in crate::rows) fn is_value(self, node: &Node, mut code: RowRef<'_>) -> bool {
        match node {
            Node::Nothing => false,
            Node::Union(children) => match self.byte(&mut code) {
                Ok(id) if id == null_id(self.low) => false,
                Ok(id) => child(children, id).is_ok_and(|node| self.is_value(node, code)),
                Err(_) => false,
            },
            _ => self.value_at(&code, 0).unwrap_or(false),
        }
    }

    /// Skips a value.
    #[inline]
    pub(in crate::rows) fn skip(self, node: &Node, row: &mut RowRef<'_>) -> Result<()> {
        match node {
            Node::Nothing => Ok(()),
            Node::Union(_) => self.skip_body(node, row),
            _ if self.marker(row)? => self.skip_body(node, row),
            _ => Ok(()),
        }
    }

    /// Skips a value without a marker.
    pub(in crate::rows) fn skip_body(self, node: &Node, row: &mut RowRef<'_>) -> Result<()> {
        match node {
            Node::Nothing => Ok(()),
            Node::Plain(code) if code.varies() => self.skip_text(*code, row),
            Node::Plain(code) => row.take(code.width()).map(|_| ()).ok_or_else(cut_off),
            Node::List(element) => {
                while self.more(row)? {
                    self.skip(element, row)?;
                }
                Ok(())
            }
            // Elements without bytes need no loop.
            Node::FixedList(element, _) if matches!(**element, Node::Nothing) => Ok(()),
            Node::FixedList(element, size) => (0..*size).try_for_each(|_| self.skip(element, row)),
            Node::Struct(fields) => fields.iter().try_for_each(|field| self.skip(field, row)),
            Node::Union(children) => match self.byte(row)? {
                id if id == null_id(self.low) => Ok(()),
                id => self.skip(child(children, id)?, row),
            },
        }
    }

    fn skip_text(self, code: OrderedCode, row: &mut RowRef<'_>) -> Result<()> {
        let end = match code {
            OrderedCode::Text => find_end(row.beyond(0), self.flip).map(|end| end + 1),
            _ => Some(text::end_of(code, self.descending(), row.row(), 0)),
        };
        end.and_then(|end| row.take(end)).map(|_| ()).ok_or_else(cut_off)
    }
}

/// Returns the field of a union with the type id `id - 1`.
pub(in crate::rows) fn child(children: &[(i8, Node)], id: u8) -> Result<&Node> {
    let child = children.iter().find(|(own, _)| *own as u8 + 1 == id);
    child.map(|(_, node)| node).ok_or_else(|| corrupt("a union has no field of that type id"))
}

/// Returns the end of the body that starts at `at`; the end of the row if the body is damaged.
pub(in crate::rows) fn end_of(slot: &Slot, node: &Node, row: &[u8], at: usize) -> usize {
    let mut rest = RowRef::exact(row).from(at);
    match Form::of(slot).skip_body(node, &mut rest) {
        Ok(()) => row.len() - rest.len(),
        Err(_) => row.len(),
    }
}

/// Returns the error for a type that does not fit its tree. Never occurs: both come from one field.
pub(in crate::rows) fn other_node() -> Error {
    corrupt("a nested value of another type")
}

fn no_marker() -> Error {
    corrupt("a marker that is neither null nor value")
}

pub(in crate::rows) fn cut_off() -> Error {
    corrupt("a nested value is cut off")
}

pub(in crate::rows) fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "a nested key of a row".into(), message: message.into() }
}
