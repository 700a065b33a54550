//! Arrays to the bytes of the value codec, by the trees of `rows/nested`.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::super::column::Bytes;
use super::super::fixed::Word;
use super::super::nested::{Codes, Frame, Framing, ListFrame, Picks, Tree, put_each};
use super::wire::{NULL, VALID, len_of_len, write_len};
use crate::error::Result;
use crate::kernel::rows::exact::Text;
use crate::order::code::{Kind, OrderedCode};

/// The bytes of all values of `array`, and where each begins and the last one ends.
pub(in crate::rows) fn write(array: &ArrayRef) -> Result<(Vec<u8>, Vec<usize>)> {
    let codes = Codes::of(&[Tree::of(array, Values)?], Picks::First(array.len()), Frame::Bare);
    Ok(codes.into_parts(array.len()))
}

/// The format of this module.
#[derive(Clone, Copy)]
struct Values;

impl Framing for Values {
    const ROLE: &'static str = super::ROLE;
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

    fn keyed_nothing(self) -> &'static [u8] {
        &[NULL]
    }

    fn null(self, _: &DataType) -> Vec<u8> {
        vec![NULL]
    }

    fn id(self, id: i8) -> u8 {
        id as u8 + 1
    }

    fn list(self) -> ListFrame {
        ListFrame { marked: true, counted: true, each: Frame::Bare, end: None }
    }

    #[inline(always)]
    fn put_number<W: Word>(self, number: W, _: Kind, out: &mut [u8]) {
        number.write_native(out);
    }

    fn string_len(self, _: OrderedCode, strings: &Bytes, row: usize) -> usize {
        let len = strings.get(row).len();
        1 + len_of_len(len) + len
    }

    #[inline(always)]
    fn put_strings<'a>(
        self,
        _: OrderedCode,
        strings: impl Iterator<Item = Text<'a>>,
        null: &[u8],
        cursors: &mut [usize],
        out: &mut [u8],
    ) {
        put_each(strings, null, cursors, out, |string, out| {
            out[0] = VALID;
            let at = 1 + write_len(string.len(), &mut out[1..]);
            out[at..at + string.len()].copy_from_slice(string);
            at + string.len()
        });
    }
}
