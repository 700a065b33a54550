//! Framing of arrow-row: the bytes around the values in the trees of `rows/nested`.

use arrow_schema::{DataType, SortOptions};

use super::blocks;
use super::field::{END, NOTHING, NOTHING_DESCENDING, flip, null_byte};
use super::node::{Node, inner};
use crate::order::code::{Kind, OrderedCode};
use crate::rows::bytes::Bytes;
use crate::rows::fixed::Word;
use crate::rows::nested::{Frame, Framing, ListFrame};
use windrow_kernel::rows::blocks::put_blocks;
use windrow_kernel::rows::exact::Text;

/// The format of arrow-row under these options.
#[derive(Clone, Copy)]
pub(super) struct ArrowRow(pub(super) SortOptions);

impl Framing for ArrowRow {
    const ROLE: &'static str = super::field::ROLE;
    const MARKS_ENTRIES: bool = false;

    fn inside(self) -> Self {
        Self(inner(self.0))
    }

    fn flip(self) -> u8 {
        flip(self.0)
    }

    fn nothing(self) -> &'static [u8] {
        if self.0.descending { &NOTHING_DESCENDING } else { &NOTHING }
    }

    fn null(self, data_type: &DataType) -> Vec<u8> {
        let mut null = Vec::new();
        if let Some(node) = Node::of(data_type) {
            node.put_null(self.0, &mut null);
        }
        null
    }

    fn id(self, id: i8) -> u8 {
        id as u8 ^ self.flip()
    }

    fn list(self) -> ListFrame {
        let (each, end) = (Frame::Blocks(self.flip()), Some(END ^ self.flip()));
        ListFrame { marked: false, each, end }
    }

    fn run(self) -> Frame {
        Frame::Blocks(self.flip())
    }

    #[inline(always)]
    fn put_number<W: Word>(self, number: W, kind: Kind, out: &mut [u8]) {
        number.code(kind, self.0.descending).write_big(out);
    }

    fn string_len(self, _: OrderedCode, strings: &Bytes, row: usize) -> usize {
        blocks::encoded_len(strings.get(row).len())
    }

    #[inline(always)]
    fn put_strings<'a>(
        self,
        _: OrderedCode,
        strings: impl Iterator<Item = Text<'a>>,
        _: &[u8],
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        put_blocks(strings, null_byte(self.0), self.flip(), cursors, out);
    }
}
