//! What the two formats of nested values do differently: ordered codes, and the bytes of arrow-row.
//!
//! ```text
//! [1, 2]   ordered     01 | 01 01 code | 01 01 code | 00       a byte in front of each element, an end
//!          arrow-row   block of 01 code | block of 01 code | 01     elements in blocks, an end
//! ```

use arrow_schema::DataType;

use super::super::column::Bytes;
use super::super::fixed::Word;
use super::super::text;
use super::{END, MORE, VALUE, null_id, null_marker};
use crate::kernel::rows::exact::Text;
use crate::order::code::{Kind, Node, OrderedCode};

/// How the codes of elements stand among each other.
#[derive(Clone, Copy)]
pub(in crate::rows) enum Frame {
    Bare,
    /// Each behind this byte.
    Behind(u8),
    /// Each as a string of arrow-row, complemented by this.
    Blocks(u8),
}

/// What stands around the elements of a list.
#[derive(Clone, Copy)]
pub(in crate::rows) struct ListFrame {
    /// A byte in front says that there is a list.
    pub(in crate::rows) marked: bool,
    pub(in crate::rows) each: Frame,
    pub(in crate::rows) end: Option<u8>,
}

/// A format of nested values.
pub(in crate::rows) trait Framing: Copy {
    /// What its values are for, in errors.
    const ROLE: &'static str;
    /// Whether the entries of a map are written as structs, with a marker.
    const MARKS_ENTRIES: bool;

    /// The format of values inside of lists, unions and runs.
    fn inside(self) -> Self;

    /// What complements the bytes of Booleans and of byte strings of one length.
    fn flip(self) -> u8;

    /// The value of type Null.
    fn nothing(self) -> &'static [u8];

    /// The code of a null of `data_type`.
    fn null(self, data_type: &DataType) -> Vec<u8>;

    /// The byte in front of a union's value.
    fn id(self, id: i8) -> u8;

    /// What stands around the elements of a list.
    fn list(self) -> ListFrame;

    /// How the value of a run stands.
    fn run(self) -> Frame {
        Frame::Bare
    }

    /// Writes a number to `out`, which is as long.
    fn put_number<W: Word>(self, number: W, kind: Kind, out: &mut [u8]);

    /// Bytes of row `row` of `strings`, its marker included.
    fn string_len(self, code: OrderedCode, strings: &Bytes, row: usize) -> usize;

    /// Writes strings, each at its cursor, and moves the cursors behind them. `null` is the code of a null.
    fn put_strings<'a>(
        self,
        code: OrderedCode,
        strings: impl Iterator<Item = Text<'a>>,
        null: &[u8],
        cursors: &mut [usize],
        out: &mut [u8],
    );
}

/// The ordered codes of slots, ascending: a column that descends is complemented as a whole.
#[derive(Clone, Copy)]
pub(in crate::rows) struct Ordered {
    /// Whether nulls have low codes.
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
