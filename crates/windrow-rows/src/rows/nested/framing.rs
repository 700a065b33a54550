//! Framing: the differences between the two formats of nested values, ordered codes and arrow-row.
//!
//! ```text
//! [1, 2]   ordered     01 | 01 01 code | 01 01 code | 00       a byte before each element, an end
//!          arrow-row   block of 01 code | block of 01 code | 01     elements in blocks, an end
//! ```

use arrow_schema::DataType;

use super::super::bytes::Bytes;
use super::super::fixed::Word;
use super::super::text;
use super::{END, MORE, VALUE, null_id, null_marker};
use crate::order::code::{Kind, Node, OrderedCode};
use windrow_kernel::rows::exact::Text;

/// The framing of single elements.
#[derive(Clone, Copy)]
pub(in crate::rows) enum Frame {
    Bare,
    /// Each after this byte.
    Behind(u8),
    /// Each as a string of arrow-row, complemented by this byte.
    Blocks(u8),
}

/// The framing of a list around its elements.
#[derive(Clone, Copy)]
pub(in crate::rows) struct ListFrame {
    /// True if a marker byte precedes every list.
    pub(in crate::rows) marked: bool,
    pub(in crate::rows) each: Frame,
    pub(in crate::rows) end: Option<u8>,
}

/// A format of nested values.
pub(in crate::rows) trait Framing: Copy {
    /// Role of the values, in errors.
    const ROLE: &'static str;
    /// True if the entries of a map are written as structs, with a marker.
    const MARKS_ENTRIES: bool;

    /// Returns the format of values inside lists, unions and runs.
    fn inside(self) -> Self;

    /// Returns the complement of Booleans and of byte strings of one length.
    fn flip(self) -> u8;

    /// Returns the code of the value of type Null.
    fn nothing(self) -> &'static [u8];

    /// Returns the code of a null of `data_type`.
    fn null(self, data_type: &DataType) -> Vec<u8>;

    /// Returns the byte in front of a union's value.
    fn id(self, id: i8) -> u8;

    /// Returns the framing of lists.
    fn list(self) -> ListFrame;

    /// Returns the framing of a run's value.
    fn run(self) -> Frame {
        Frame::Bare
    }

    /// Writes a number to `out`, which has the same length.
    fn put_number<W: Word>(self, number: W, kind: Kind, out: &mut [u8]);

    /// Counts the encoded bytes of row `row` of `strings`, marker included.
    fn string_len(self, code: OrderedCode, strings: &Bytes, row: usize) -> usize;

    /// Writes strings at the cursors, and moves the cursors past the strings. `null` is the code of
    /// a null.
    fn put_strings<'a>(
        self,
        code: OrderedCode,
        strings: impl Iterator<Item = Text<'a>>,
        null: &[u8],
        cursors: &mut [usize],
        out: &mut [u8],
    );
}

/// The ordered codes of slots, ascending: a descending column is complemented as a whole.
#[derive(Clone, Copy)]
pub(in crate::rows) struct Ordered {
    /// True if nulls have low codes.
    pub(in crate::rows) low: bool,
}

impl Framing for Ordered {
    const ROLE: &'static str = "a sort key";
    const MARKS_ENTRIES: bool = true;

    fn inside(self) -> Self {
        self
    }

    fn flip(self) -> u8 {
        0
    }

    fn nothing(self) -> &'static [u8] {
        &[]
    }

    fn null(self, data_type: &DataType) -> Vec<u8> {
        match Node::of(data_type) {
            Some(Node::Nothing) => Vec::new(),
            Some(Node::Union(_)) => vec![null_id(self.low)],
            Some(Node::Plain(_) | Node::List(_) | Node::FixedList(..) | Node::Struct(_)) | None => {
                vec![null_marker(self.low)]
            }
        }
    }

    fn id(self, id: i8) -> u8 {
        id as u8 + 1
    }

    fn list(self) -> ListFrame {
        ListFrame { marked: true, each: Frame::Behind(MORE), end: Some(END) }
    }

    #[inline(always)]
    fn put_number<W: Word>(self, number: W, kind: Kind, out: &mut [u8]) {
        number.code(kind, false).write_big(out);
    }

    fn string_len(self, code: OrderedCode, strings: &Bytes, row: usize) -> usize {
        1 + text::encoded_len(code, strings.get(row))
    }

    #[inline(always)]
    fn put_strings<'a>(
        self,
        code: OrderedCode,
        strings: impl Iterator<Item = Text<'a>>,
        null: &[u8],
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        for (string, cursor) in strings.zip(cursors) {
            let out = &mut out[*cursor..];
            *cursor += match string.valid {
                true => {
                    out[0] = VALUE;
                    1 + text::encode(code, false, string.bytes(), &mut out[1..])
                }
                false => {
                    out[..null.len()].copy_from_slice(null);
                    null.len()
                }
            };
        }
    }
}
