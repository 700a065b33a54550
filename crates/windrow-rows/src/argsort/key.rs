//! Sort keys: columns as numbers of 64 bits, or as byte strings.
//!
//! Invariant: rows compare under the order like the sequences of their keys.

use std::cmp::Ordering;

use arrow_array::RecordBatch;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use super::rows::Rows;
use crate::error::{Error, Result};
use crate::order::Layout;
use crate::order::code::{Kind, OrderedCode};
use crate::rows::bytes::Bytes;
use crate::rows::column::Column;
use crate::rows::fixed::{Word, with_word};
use crate::rows::lanes;
use windrow_kernel::compare::compare;
use windrow_kernel::rows::{Clamp, Pack, Strings, bounds};

/// One key, most significant first.
pub(super) struct Key {
    pub(super) values: Values,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
    /// `None` if no row is null.
    pub(super) nulls: Option<NullBuffer>,
    /// True if null rows have no bytes.
    bare: bool,
}

pub(super) enum Values {
    Number(Number),
    Bits(BooleanBuffer),
    Bytes(Bytes),
    FixedBytes { values: Buffer, width: usize },
    Encoded { bytes: Vec<u8>, offsets: Vec<usize> },
}

impl Values {
    /// Makes values from the ranks of strings.
    pub(super) fn ranks(ranks: Vec<u32>, descending: bool) -> Self {
        let (width, kind) = (size_of::<u32>(), Kind::Unsigned);
        let plain = PlainCode::new(width, kind, descending);
        Self::Number(Number { values: Buffer::from_vec(ranks), width, kind, part: 0, plain })
    }
}

/// 64 bits of a number of any width.
pub(super) struct Number {
    values: Buffer,
    width: usize,
    kind: Kind,
    /// Index of the 64 bits in a wider number, most significant first.
    part: usize,
    /// Branchless code, for kinds and widths that have one.
    plain: Option<PlainCode>,
}

/// Code of numbers of up to 64 bits: `v ^ (float if v is negative) ^ flip`.
#[derive(Clone, Copy)]
pub(super) struct PlainCode {
    flip: u64,
    float: u64,
    /// Shift that moves the sign bit to the top.
    shift: u32,
}

impl PlainCode {
    fn new(width: usize, kind: Kind, descending: bool) -> Option<Self> {
        if width > 8 || matches!(kind, Kind::DayTime | Kind::MonthDayNano) {
            return None;
        }
        let shift = 64 - 8 * width as u32;
        let (ones, top) = (u64::MAX >> shift, 1 << (63 - shift));
        let flip = if kind == Kind::Unsigned { 0 } else { top };
        Some(Self {
            flip: if descending { flip ^ ones } else { flip },
            float: if kind == Kind::Float { ones ^ top } else { 0 },
            shift,
        })
    }

    /// Returns the least and the greatest code of values of eight bytes.
    pub(super) fn bounds(self, values: &[[u8; 8]]) -> (u64, u64) {
        bounds(values, self.flip, self.float)
    }

    /// Returns the parameters for packing values of eight bytes into words, without the null bits.
    pub(super) fn pack(self, least: u64, dropped: u32) -> Pack {
        let Self { flip, float, .. } = self;
        Pack { flip, float, least, dropped, width: 0, place: None, front: 0, null: 0 }
    }

    /// Returns the parameters for clamping values of eight bytes to small codes.
    pub(super) fn clamp(self, below: u64, top: u16) -> Clamp {
        let Self { flip, float, .. } = self;
        Clamp { flip, float, below, top }
    }

    #[inline(always)]
    pub(super) fn code(self, value: u64) -> u64 {
        let negative = ((value << self.shift) as i64 >> 63) as u64;
        value ^ (negative & self.float) ^ self.flip
    }
}

#[inline(always)]
fn each<const W: usize, R: Rows>(
    values: &[[u8; W]],
    rows: &R,
    code: impl Fn([u8; W]) -> u64,
    mut f: impl FnMut(usize, u64),
) {
    if R::ALL {
        let values = values[..rows.len()].iter().enumerate();
        return values.for_each(|(at, value)| f(at, code(*value)));
    }
    for at in 0..rows.len() {
        f(at, code(values[rows.get(at)]));
    }
}

/// Returns the keys of the order of `layout`, most significant first.
pub(super) fn keys(layout: &Layout, batch: &RecordBatch) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    // The slots of a layout begin with those of its order.
    for (by, slot) in layout.order().iter().zip(layout.slots()) {
        let (at, field) = (slot.column, layout.schema().field(slot.column));
        let array = batch.column(at);
        if !field.is_nullable() && array.logical_null_count() > 0 {
            return Err(Error::Value {
                column: by.name.clone(),
                message: "a null in a column that must not have one".into(),
            });
        }
        let (descending, nulls_first) = (by.descending, by.nulls_first);
        let mut push = |values, nulls| {
            let bare = are_bare(&values, &nulls);
            keys.push(Key { values, descending, nulls_first, nulls, bare });
        };
        match (slot.code, Column::ordered(array, slot)?) {
            (OrderedCode::Fixed(width, kind), Column::Fixed { values, nulls }) => {
                for part in 0..width.div_ceil(8) {
                    let values = values.clone();
                    let plain = PlainCode::new(width, kind, descending);
                    let number = Number { values, width, kind, part, plain };
                    push(Values::Number(number), nulls.clone());
                }
            }
            (OrderedCode::FixedBinary(width), Column::Fixed { values, nulls }) => {
                push(Values::FixedBytes { values, width }, nulls);
            }
            (_, Column::Bool { values, nulls }) => push(Values::Bits(values), nulls),
            (_, Column::Bytes { values, nulls }) => push(Values::Bytes(values), nulls),
            (_, Column::Nested(nested)) => {
                let (bytes, offsets) = nested.codes();
                push(Values::Encoded { bytes, offsets }, nested.nulls().cloned());
            }
            (_, Column::Null | Column::Fixed { .. } | Column::Value { .. }) => {}
        }
    }
    Ok(keys)
}

/// Returns true if null rows have no bytes, as in strings built by Arrow's builders.
fn are_bare(values: &Values, nulls: &Option<NullBuffer>) -> bool {
    let Some(nulls) = nulls else { return true };
    let Values::Bytes(Bytes::Small { offsets, .. }) = values else { return false };
    let own = nulls.valid_slices().map(|(start, end)| offsets[end] - offsets[start]);
    own.sum::<i32>() == offsets[nulls.len()] - offsets[0]
}

impl Key {
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Returns true if values are byte strings.
    pub(super) fn is_bytes(&self) -> bool {
        !matches!(self.values, Values::Number(_) | Values::Bits(_))
    }

    /// Calls `f` with the number of each of `rows`, in sequence. The number of a null is arbitrary.
    #[inline(always)]
    pub(super) fn for_each_number<R: Rows>(&self, rows: &R, mut f: impl FnMut(usize, u64)) {
        match &self.values {
            Values::Number(Number { values, width, plain: Some(plain), .. }) => {
                let plain = *plain;
                with_word!(*width, W => {
                    let code = |value: [u8; W::BYTES]| plain.code(W::read_native(&value).part(0));
                    each(values.as_chunks::<{ W::BYTES }>().0, rows, code, f);
                });
            }
            Values::Number(number) => {
                let (kind, part) = (number.kind, number.part);
                with_word!(number.width, W => {
                    let (values, _) = number.values.as_chunks::<{ W::BYTES }>();
                    for at in 0..rows.len() {
                        let value = W::read_native(&values[rows.get(at)]);
                        f(at, value.code(kind, self.descending).part(part));
                    }
                });
            }
            Values::Bits(bits) => {
                for at in 0..rows.len() {
                    f(at, u64::from(bits.value(rows.get(at)) != self.descending));
                }
            }
            _ => {}
        }
    }

    /// Calls `f` like [`Key::for_each_number`], also with true for nulls.
    #[inline(always)]
    pub(super) fn for_each_nullable<R: Rows>(&self, rows: &R, mut f: impl FnMut(usize, u64, bool)) {
        if let (true, Some((values, code)), Some(nulls)) = (R::ALL, self.numbers(), &self.nulls) {
            let valid = lanes::bits(nulls);
            for (block, values) in values[..rows.len()].chunks(64).enumerate() {
                let word = valid.word(block * 64);
                for (bit, value) in values.iter().enumerate() {
                    let number = code.code(u64::from_ne_bytes(*value));
                    f(block * 64 + bit, number, word >> bit & 1 == 0);
                }
            }
            return;
        }
        self.for_each_number(rows, |at, number| f(at, number, self.is_null(rows.get(at))));
    }

    /// Returns the values and the code of a key of numbers of eight bytes.
    pub(super) fn numbers(&self) -> Option<(&[[u8; 8]], PlainCode)> {
        match &self.values {
            Values::Number(Number { values, width: 8, plain: Some(plain), .. }) => {
                Some((values.as_chunks::<8>().0, *plain))
            }
            _ => None,
        }
    }

    #[inline]
    pub(super) fn number(&self, row: usize) -> u64 {
        match self.numbers() {
            Some((values, code)) => code.code(u64::from_ne_bytes(values[row])),
            None => self.any_number(row),
        }
    }

    /// Returns the number of a row like [`Key::number`], for numbers of any width.
    #[inline(never)]
    fn any_number(&self, row: usize) -> u64 {
        let mut number = 0;
        self.for_each_number(&super::Picked(&[row as u32]), |_, code| number = code);
        number
    }

    /// Returns the bytes of a row, empty for a null.
    #[inline(always)]
    pub(super) fn bytes(&self, row: usize) -> &[u8] {
        match &self.values {
            _ if self.is_null(row) => &[],
            Values::Bytes(values) => values.get(row),
            Values::FixedBytes { values, width } => &values[row * width..(row + 1) * width],
            Values::Encoded { bytes, offsets } => &bytes[offsets[row]..offsets[row + 1]],
            Values::Number(_) | Values::Bits(_) => &[],
        }
    }

    /// Returns the least and the greatest length of all rows, with length 0 for nulls, and the
    /// number of nulls. Returns `None` unless offsets alone give the lengths.
    pub(super) fn lengths<R: Rows>(&self, rows: &R) -> Option<(usize, usize, usize)> {
        let Strings { offsets, .. } = self.strings().filter(|_| R::ALL)?;
        let offsets = &offsets[..=rows.len()];
        let lens = offsets.iter().zip(&offsets[1..]).map(|(start, end)| end - start);
        let ends = lens.fold((i32::MAX, 0), |(least, most), len| (least.min(len), most.max(len)));
        let nulls = self.nulls.as_ref().map_or(0, NullBuffer::null_count);
        Some((ends.0 as usize, ends.1 as usize, nulls))
    }

    /// Returns true if values are strings that kernels cannot read directly.
    pub(super) fn is_apart(&self) -> bool {
        matches!(self.values, Values::Bytes(_)) && self.strings().is_none()
    }

    /// Replaces the values by equal values in another form.
    pub(super) fn replace(&mut self, values: Values) {
        self.bare = are_bare(&values, &self.nulls);
        self.values = values;
    }

    /// Returns an upper bound for the number of distinct keys in `rows`, from their least and
    /// greatest numbers.
    pub(super) fn spread<R: Rows>(&self, rows: &R) -> u64 {
        if self.is_bytes() {
            return u64::MAX;
        }
        let (mut least, mut most) = (u64::MAX, 0);
        self.for_each_number(rows, |_, number| {
            (least, most) = (least.min(number), most.max(number))
        });
        most.saturating_sub(least).saturating_add(1 + u64::from(self.nulls.is_some()))
    }

    /// Returns the strings, if they have offsets of 32 bits and nulls are empty.
    #[inline(always)]
    pub(super) fn strings(&self) -> Option<Strings<'_>> {
        match &self.values {
            Values::Bytes(Bytes::Small { offsets, data }) if self.bare => {
                Some(Strings { offsets, data })
            }
            _ => None,
        }
    }

    /// Returns the eight bytes of a row from `at` on, most significant first, with zeros after the
    /// end.
    #[inline(always)]
    pub(super) fn word(&self, row: usize, at: usize) -> u64 {
        match self.strings() {
            Some(strings) => strings.head(row, at).0,
            None => word(self.bytes(row), at),
        }
    }

    #[inline]
    pub(super) fn compare(&self, a: usize, b: usize) -> Ordering {
        if self.nulls.is_some()
            && let Some(order) = self.compare_nulls(a, b)
        {
            return order;
        }
        if !self.is_bytes() {
            return self.number(a).cmp(&self.number(b));
        }
        let order = match &self.values {
            Values::Bytes(Bytes::Small { offsets, data }) if self.nulls.is_none() => {
                let place = |row: usize| {
                    let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                    (&data[start..], end - start)
                };
                let ((a, len_a), (b, len_b)) = (place(a), place(b));
                compare(a, len_a, b, len_b)
            }
            _ => self.bytes(a).cmp(self.bytes(b)),
        };
        if self.descending { order.reverse() } else { order }
    }

    /// Compares two rows of which at least one is null; returns `None` if neither is null.
    fn compare_nulls(&self, a: usize, b: usize) -> Option<Ordering> {
        match (self.is_null(a), self.is_null(b)) {
            (true, true) => Some(Ordering::Equal),
            (true, false) if self.nulls_first => Some(Ordering::Less),
            (true, false) => Some(Ordering::Greater),
            (false, true) if self.nulls_first => Some(Ordering::Greater),
            (false, true) => Some(Ordering::Less),
            (false, false) => None,
        }
    }
}

/// Returns the eight bytes from `at` on, most significant first, with zeros after the end.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    if let Some(bytes) = bytes.get(at..at + 8) {
        return u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    }
    // A loop over the rest: a copy of unknown length would be a call.
    let rest = bytes.get(at..).unwrap_or(&[]);
    let number = rest.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    if rest.is_empty() { 0 } else { number << (64 - 8 * rest.len()) }
}
