//! Escape codes: nulls among the codes of numbers of four bytes and more, without a marker byte.
//!
//! With `c` the ordered code of a value, ascending, and `M` the greatest number of its width:
//!
//! ```text
//! null below the values     null -> 0     c -> c + 1     M - 1 -> M     00     M -> M     01
//! null above the values     null -> M     c -> c         M - 1 -> M - 1 00     M -> M - 1 01
//! ```
//!
//! `desc` complements all bytes, and swaps the two ways, so that nulls keep their position. Values
//! with an extra byte are the two greatest of the type, whatever the order, and so are rare.
//!
//! Invariant: the codes have the order of the values, with the null before or after the values, and
//! no code is a prefix of another. The type and the order of the column alone determine the codes.

use std::hint::select_unpredictable;
use std::ops::Range;

use super::column::Column;
use super::fixed::{Word, with_kind, with_word};
use super::lanes::validity;
use super::tile::Tile;
use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};

/// How the codes of a column leave a code for the null.
#[derive(Clone, Copy, Debug)]
pub(super) struct Escape {
    /// True if the null is below the values, before a complement.
    low: bool,
    descending: bool,
}

/// The code of a value or a null.
#[derive(Clone, Copy, Debug)]
struct Code<W> {
    code: W,
    /// True if an extra byte follows.
    is_longer: bool,
    behind: u8,
}

impl<W: Word> Code<W> {
    fn len(self) -> usize {
        W::BYTES + usize::from(self.is_longer)
    }

    /// Writes the code to the start of `out`. Bytes after the code stay unchanged.
    #[inline(always)]
    fn write(self, out: &mut [u8]) {
        match out.get_mut(..W::BYTES + 1) {
            // Longer codes are unpredictable: the extra byte is written always, and a short code
            // overwrites the byte.
            Some(out) => {
                out[W::BYTES - 1 + usize::from(self.is_longer)] = self.behind;
                self.code.write_big(&mut out[..W::BYTES]);
            }
            None => {
                assert!(!self.is_longer, "room for the code");
                self.code.write_big(&mut out[..W::BYTES]);
            }
        }
    }
}

/// A decoded code of a column's width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read<W> {
    /// Ordered code of the value, ascending; for a longer code, of the lesser of the two greatest
    /// values.
    pub(super) value: W,
    pub(super) is_null: bool,
    /// True if an extra byte selects one of the two greatest values.
    pub(super) is_longer: bool,
}

impl Escape {
    pub(super) fn of(slot: &Slot) -> Self {
        Self { low: slot.low_nulls(), descending: slot.descending }
    }

    /// Returns the code of a null.
    #[inline(always)]
    fn null<W: Word>(self) -> W {
        W::filled(!self.low).flipped(self.descending)
    }

    /// Returns the common prefix of the codes of the two greatest values, before a complement.
    #[inline(always)]
    fn longer<W: Word>(self) -> W {
        W::filled(true).less(u8::from(!self.low))
    }

    /// Returns the code of a null, or of the value with the ordered code `value`, ascending. Has no
    /// branch: nulls are unpredictable.
    #[inline(always)]
    fn code<W: Word>(self, value: W, is_valid: bool) -> Code<W> {
        let is_longer = is_longer(value) & is_valid;
        let code = select_unpredictable(is_longer, self.longer(), value.plus(u8::from(self.low)));
        let code = select_unpredictable(is_valid, code.flipped(self.descending), self.null());
        Code { code, is_longer, behind: u8::from(value == W::filled(true)) ^ self.flip() }
    }

    fn flip(self) -> u8 {
        if self.descending { 0xff } else { 0 }
    }

    /// Decodes `code`.
    #[inline(always)]
    pub(super) fn read<W: Word>(self, code: W) -> Read<W> {
        let code = code.flipped(self.descending);
        Read {
            value: code.less(u8::from(self.low)),
            is_null: code == W::filled(!self.low),
            is_longer: code == self.longer(),
        }
    }
}

/// Returns true if the value with this ordered code, ascending, takes an extra byte.
#[inline(always)]
fn is_longer<W: Word>(value: W) -> bool {
    let top = W::filled(true);
    (value == top) | (value == top.less(1))
}

/// Adds a byte to the length of each row whose value takes an extra byte. Returns true if there are
/// such rows.
pub(super) fn add_longer(slot: &Slot, column: &Column, lengths: &mut [u32]) -> bool {
    let (OrderedCode::Fixed(width, kind), Column::Fixed { values, nulls }) = (slot.code, column)
    else {
        return false;
    };
    let valid = validity(nulls);
    let mut any = 0;
    with_word!(width, W => with_kind!(kind, KIND => {
        let blocks = values.chunks(BLOCK * W::BYTES).zip(lengths.chunks_mut(BLOCK));
        for (block, (values, lengths)) in blocks.enumerate() {
            let mut valid = valid.map_or(u64::MAX, |valid| valid.word(block * BLOCK));
            for (value, length) in values.chunks_exact(W::BYTES).zip(lengths) {
                let value = W::read_native(value).code(KIND, false);
                let longer = u32::from(is_longer(value)) & (valid & 1) as u32;
                *length = length.wrapping_add(longer);
                any |= longer;
                valid >>= 1;
            }
        }
    }));
    any != 0
}

/// Rows processed together: the bits of a word.
const BLOCK: usize = 64;

/// Calls `f` with the code and the target of each row.
#[inline(always)]
fn for_each_code<W: Word, T>(
    slot: &Slot,
    column: &Column,
    rows: Range<usize>,
    kind: Kind,
    mut targets: impl Iterator<Item = T>,
    mut f: impl FnMut(Code<W>, T),
) {
    let Column::Fixed { values, nulls } = column else { return };
    let (escape, valid) = (Escape::of(slot), validity(nulls));
    let values = &values[rows.start * W::BYTES..rows.end * W::BYTES];
    with_kind!(kind, KIND => {
        for (values, first) in values.chunks(BLOCK * W::BYTES).zip(rows.step_by(BLOCK)) {
            let mut valid = valid.map_or(u64::MAX, |valid| valid.word(first));
            for (value, target) in values.chunks_exact(W::BYTES).zip(targets.by_ref()) {
                f(escape.code(W::read_native(value).code(KIND, false), valid & 1 == 1), target);
                valid >>= 1;
            }
        }
    });
}

/// Writes the codes of a tile, all of one width. Returns true if a value takes an extra byte: the
/// rows are then wrong.
pub(super) fn put(slot: &Slot, column: &Column, tile: &mut Tile<'_>) -> bool {
    let OrderedCode::Fixed(width, kind) = slot.code else { return false };
    let mut escaped = false;
    let rows = tile.rows.clone();
    {
        let (places, out) = tile.places();
        let places = places.each();
        with_word!(width, W => for_each_code(slot, column, rows, kind, places, |code: Code<W>, at| {
            code.code.write_big(&mut out[at..][..W::BYTES]);
            escaped |= code.is_longer;
        }));
    }
    tile.distance += width;
    escaped
}

/// Writes the codes of a tile, some with an extra byte, and moves the cursors past the codes.
pub(super) fn put_longer(slot: &Slot, column: &Column, tile: &mut Tile<'_>) {
    let OrderedCode::Fixed(width, kind) = slot.code else { return };
    let rows = tile.rows.clone();
    let (cursors, out) = tile.next_part();
    let cursors = cursors.iter_mut();
    with_word!(width, W => for_each_code(slot, column, rows, kind, cursors, |code: Code<W>, at| {
        code.write(&mut out[*at..]);
        *at += code.len();
    }));
}

/// Returns the end of the code at `at`, which may lie beyond the row.
#[inline]
pub(super) fn skip(slot: &Slot, row: &[u8], at: usize) -> usize {
    let end = at + slot.code.width();
    let Some([front @ .., last]) = row.get(at..end) else { return end };
    let flip = if slot.descending { 0xff } else { 0 };
    let last_of_longer = if slot.low_nulls() { 0xff } else { 0xfe };
    let is_longer = front.iter().all(|&byte| byte ^ flip == 0xff) && last ^ flip == last_of_longer;
    end + usize::from(is_longer)
}

/// A code that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken<W> {
    /// Ordered code of the value, ascending; arbitrary for a null.
    pub(super) value: W,
    pub(super) is_null: bool,
    /// Bytes of the code.
    pub(super) len: usize,
    /// True if an encoder can have written the code.
    pub(super) fits: bool,
}

/// Reads the code at the start of `near`, which may reach beyond the row. Returns `None` if `near`
/// is shorter than any code. Has no branch: nulls and longer codes are unpredictable.
#[inline(always)]
pub(super) fn take<W: Word>(escape: Escape, near: &[u8]) -> Option<Taken<W>> {
    let Read { value, is_null, is_longer } = escape.read(W::read_big(near.get(..W::BYTES)?));
    // If no byte follows, an invalid byte stands in.
    let tail = near.get(W::BYTES).map_or(2, |tail| tail ^ escape.flip());
    let value = value.plus(select_unpredictable(is_longer, tail, 0));
    let len = W::BYTES + usize::from(is_longer);
    Some(Taken { value, is_null, len, fits: !is_longer | (tail <= 1) })
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use arrow_buffer::{NullBuffer, ScalarBuffer};

    use super::*;

    fn escape(descending: bool, nulls_first: bool) -> Escape {
        Escape { low: nulls_first != descending, descending }
    }

    /// Returns the code of a value by the rule of this module.
    fn code_of<W: Word>(value: Option<W>, descending: bool, nulls_first: bool) -> Vec<u8> {
        let escape = escape(descending, nulls_first);
        let code = escape.code(value.unwrap_or(W::filled(true)), value.is_some());
        let mut out = vec![0; code.len()];
        code.write(&mut out);
        out
    }

    /// Returns the value at the start of `near`, if any, and the bytes of its code.
    fn taken<W: Word>(escape: Escape, near: &[u8]) -> Option<(Option<W>, usize)> {
        let taken = take::<W>(escape, near).filter(|taken| taken.fits)?;
        Some(((!taken.is_null).then_some(taken.value), taken.len))
    }

    fn compare(a: Option<u8>, b: Option<u8>, descending: bool, nulls_first: bool) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) if descending => b.cmp(&a),
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) if nulls_first => a.is_some().cmp(&b.is_some()),
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    }

    const OPTIONS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

    #[test]
    fn every_pair_of_values_and_nulls_is_in_order_and_free_of_prefixes() {
        let values = || std::iter::once(None).chain((0..=u8::MAX).map(Some));
        for (descending, nulls_first) in OPTIONS {
            for a in values() {
                for b in values() {
                    let code = |value| code_of::<u8>(value, descending, nulls_first);
                    let (x, y) = (code(a), code(b));
                    let expected = compare(a, b, descending, nulls_first);
                    assert_eq!(x.cmp(&y), expected, "{a:?} {b:?} {descending} {nulls_first}");
                    assert!(x == y || !y.starts_with(&x), "{a:?} {b:?}: a prefix");
                }
            }
        }
    }

    /// Checks that codes ascend with the values and the null, that no code is a prefix of another,
    /// and that each code is read back. Only the two greatest values take an extra byte.
    fn check<W: Word + std::fmt::Debug>(values: impl Iterator<Item = W> + Clone, longer: usize) {
        for (descending, nulls_first) in OPTIONS {
            let mut codes: Vec<Vec<u8>> =
                values.clone().map(|value| code_of(Some(value), descending, nulls_first)).collect();
            assert_eq!(codes.iter().filter(|code| code.len() > W::BYTES).count(), longer);
            for (value, code) in values.clone().zip(&codes) {
                let read = taken::<W>(escape(descending, nulls_first), &[code, &[7][..]].concat());
                assert_eq!(read, Some((Some(value), code.len())));
            }
            if descending {
                codes.reverse();
            }
            let null = code_of::<W>(None, descending, nulls_first);
            assert_eq!(taken::<W>(escape(descending, nulls_first), &null), Some((None, W::BYTES)));
            codes.insert(if nulls_first { 0 } else { codes.len() }, null);
            // In sorted codes, only the next code can start with the current one.
            for pair in codes.windows(2) {
                assert!(pair[0] < pair[1] && !pair[1].starts_with(&pair[0]), "{pair:x?}");
            }
        }
    }

    #[test]
    fn every_value_of_16_bits_is_in_order_and_comes_back() {
        check(0..=u8::MAX, 2);
        check(0..=u16::MAX, 2);
    }

    #[test]
    fn values_of_any_width_are_in_order_and_come_back() {
        let near = |middle: u128| (0..5u128).map(move |by| middle.wrapping_add(by).wrapping_sub(2));
        let middles = [2u128, 1 << 31, 1 << 32, 1 << 63, 1 << 64, 1 << 127];
        let mut values: Vec<u128> = middles.into_iter().flat_map(near).collect();
        values.extend([u128::MAX - 3, u128::MAX - 2]);
        check(values.iter().copied(), 0);
        check(values.iter().copied().chain([u128::MAX - 1, u128::MAX]), 2);
        check([0, 1, 2, u64::MAX - 2, u64::MAX - 1, u64::MAX].into_iter(), 2);
        check([0, 1, 2, u32::MAX - 2, u32::MAX - 1, u32::MAX].into_iter(), 2);
    }

    #[test]
    fn bytes_behind_longer_codes_that_nobody_wrote_are_told() {
        for (descending, nulls_first) in OPTIONS {
            let longer = code_of(Some(255u8), descending, nulls_first);
            let wrong = [longer[0], if descending { 0xfd } else { 2 }];
            assert_eq!(taken::<u8>(escape(descending, nulls_first), &wrong), None);
            assert_eq!(taken::<u8>(escape(descending, nulls_first), &longer[..1]), None);
        }
    }

    #[test]
    fn every_pair_of_rows_of_two_columns_is_in_order() {
        // Values of both edges and the middle: three bits, spread over the byte.
        let values = [None, Some(0), Some(1), Some(2), Some(127), Some(253), Some(254), Some(255)];
        let rows: Vec<[Option<u8>; 2]> =
            values.iter().flat_map(|&a| values.map(|b| [a, b])).collect();
        for first in OPTIONS {
            for second in OPTIONS {
                let bytes = |row: &[Option<u8>; 2]| {
                    [code_of(row[0], first.0, first.1), code_of(row[1], second.0, second.1)]
                        .concat()
                };
                for a in &rows {
                    for b in &rows {
                        let expected = compare(a[0], b[0], first.0, first.1)
                            .then(compare(a[1], b[1], second.0, second.1));
                        assert_eq!(bytes(a).cmp(&bytes(b)), expected, "{a:?} {b:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn greatest_values_are_found_in_every_block_and_at_its_ends() {
        for at in [0, 62, 63, 64, 65, 127, 128, 130] {
            let mut numbers = vec![7u32; 131];
            numbers[at] = u32::MAX;
            numbers[100] = u32::MAX - 1;
            numbers[99] = 0;
            // The value of a null is ignored.
            numbers[70] = u32::MAX;
            let values = ScalarBuffer::from(numbers).into_inner();
            let nulls = Some(NullBuffer::from_iter((0..131).map(|row| row != 70)));
            let slot = Slot::of_number(0, OrderedCode::Fixed(4, Kind::Unsigned));
            let mut lengths = vec![4; 131];
            assert!(add_longer(&slot, &Column::Fixed { values, nulls }, &mut lengths));
            let longer = |row: &usize| lengths[*row] == 5;
            let mut expected = [at, 100];
            expected.sort_unstable();
            assert!((0..131).filter(longer).eq(expected));
        }
    }
}
