//! Nulls among the codes of numbers of four bytes and more, without a marker byte.
//!
//! With `c` the ordered code of a value, ascending, and `M` the greatest number of its width:
//!
//! ```text
//! null below the values     null -> 0     c -> c + 1     M - 1 -> M     00     M -> M     01
//! null above the values     null -> M     c -> c         M - 1 -> M - 1 00     M -> M - 1 01
//! ```
//!
//! `desc` complements all of it, and turns around which of the two puts nulls where they belong. The values that take
//! a byte more are the two greatest of the type, whatever the order is, so that they are rare.
//!
//! Invariant: the codes have the order of the values with the null before or behind them, and none is a prefix of
//! another. They follow from the type and the order of the column alone.

use super::column::Column;
use super::fixed::{Word, with_word};
use super::tile::Tile;
use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};

/// How the codes of a column make room for that of its null.
#[derive(Clone, Copy, Debug)]
pub(super) struct Escape {
    /// The null is below the values, before a complement.
    low: bool,
    descending: bool,
}

/// A code of a column's width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read<W> {
    /// The ordered code of the value, ascending; of the lesser of two that are longer.
    pub(super) value: W,
    pub(super) is_null: bool,
    /// A byte more says which of the two it is.
    pub(super) is_longer: bool,
}

impl Escape {
    pub(super) fn of(slot: &Slot) -> Self {
        Self { low: slot.low_nulls(), descending: slot.descending }
    }

    /// The code of a null.
    #[inline(always)]
    fn null<W: Word>(self) -> W {
        W::filled(!self.low).flipped(self.descending)
    }

    /// What the codes of the two greatest values begin with, before a complement.
    #[inline(always)]
    fn longer<W: Word>(self) -> W {
        W::filled(true).less(u8::from(!self.low))
    }

    /// The code of the value whose ordered code is `value`, ascending; and the byte behind it, if it is longer.
    #[inline(always)]
    fn put<W: Word>(self, value: W) -> (W, Option<u8>) {
        let flip = if self.descending { 0xff } else { 0 };
        let top = W::filled(true);
        let code = |code: W| code.flipped(self.descending);
        match value {
            value if value == top => (code(self.longer()), Some(1 ^ flip)),
            value if value == top.less(1) => (code(self.longer()), Some(flip)),
            value => (code(value.plus(u8::from(self.low))), None),
        }
    }

    /// What `code` stands for.
    #[inline(always)]
    pub(super) fn read<W: Word>(self, code: W) -> Read<W> {
        let code = code.flipped(self.descending);
        Read {
            value: code.less(u8::from(self.low)),
            is_null: code == W::filled(!self.low),
            is_longer: code == self.longer(),
        }
    }

    /// The byte behind a longer code: what is added to the lesser of the two values. Nothing if no encoder wrote it.
    #[inline(always)]
    fn read_tail(self, tail: u8) -> Option<u8> {
        let tail = if self.descending { !tail } else { tail };
        (tail <= 1).then_some(tail)
    }
}

/// Calls `longer` with each row of `column` that takes a byte more than most.
pub(super) fn for_each_longer(slot: &Slot, column: &Column, mut longer: impl FnMut(usize)) {
    let (OrderedCode::Fixed(width, kind), Column::Fixed { values, nulls }) = (slot.code, column)
    else {
        return;
    };
    let mut longer = |row: usize| {
        if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            longer(row);
        }
    };
    with_word!(width, W => {
        // A loop for each kind: none that asks for it.
        macro_rules! of_kind {
            ($kind:expr) => {
                for_each_top::<W>(values, |value| value.code($kind, false), &mut longer)
            };
        }
        match kind {
            Kind::Float => of_kind!(Kind::Float),
            Kind::DayTime => of_kind!(Kind::DayTime),
            Kind::MonthDayNano => of_kind!(Kind::MonthDayNano),
            Kind::Signed => of_kind!(Kind::Signed),
            Kind::Unsigned => of_kind!(Kind::Unsigned),
        }
    });
}

/// Rows that are looked at together.
const BLOCK: usize = 64;

/// Calls `found` with the number of each of `values` whose `code` is one of the two greatest there are.
#[inline(always)]
fn for_each_top<W: Word>(values: &[u8], code: impl Fn(W) -> W, mut found: impl FnMut(usize)) {
    let top = W::filled(true);
    let is_top = |value: &[u8]| {
        let code = code(W::read_native(value));
        (code == top) | (code == top.less(1))
    };
    for (block, values) in values.chunks(BLOCK * W::BYTES).enumerate() {
        let values = values.chunks_exact(W::BYTES);
        // Most blocks have none. No way out in the middle: several at a time.
        if values.clone().fold(false, |any, value| any | is_top(value)) {
            let tops = values.enumerate().filter(|(_, value)| is_top(value));
            tops.for_each(|(row, _)| found(block * BLOCK + row));
        }
    }
}

/// Writes the codes of a tile, all of one width. True if a value has none: the rows are then wrong.
pub(super) fn put(slot: &Slot, column: &Column, tile: &mut Tile<'_>) -> bool {
    let (OrderedCode::Fixed(width, kind), Column::Fixed { values, nulls }) = (slot.code, column)
    else {
        return false;
    };
    let (escape, mut escaped) = (Escape::of(slot), false);
    let rows = tile.rows.clone();
    let (places, out) = tile.places();
    with_word!(width, W => {
        let values = &values[rows.start * W::BYTES..rows.end * W::BYTES];
        let values = values.chunks_exact(W::BYTES).map(W::read_native);
        for ((place, row), value) in places.each().zip(rows).zip(values) {
            let target = &mut out[place..][..W::BYTES];
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                escape.null::<W>().write_big(target);
            } else {
                let (code, tail) = escape.put(value.code(kind, false));
                escaped |= tail.is_some();
                code.write_big(target);
            }
        }
    });
    tile.distance += width;
    escaped
}

/// Writes the codes of a tile, some of which are longer, and goes on to the next part.
pub(super) fn put_longer(slot: &Slot, column: &Column, tile: &mut Tile<'_>) {
    let (OrderedCode::Fixed(width, kind), Column::Fixed { values, nulls }) = (slot.code, column)
    else {
        return;
    };
    let escape = Escape::of(slot);
    let rows = tile.rows.clone();
    let (cursors, out) = tile.next_part();
    with_word!(width, W => {
        let values = &values[rows.start * W::BYTES..rows.end * W::BYTES];
        let values = values.chunks_exact(W::BYTES).map(W::read_native);
        for ((cursor, row), value) in cursors.iter_mut().zip(rows).zip(values) {
            let target = &mut out[*cursor..*cursor + W::BYTES];
            *cursor += W::BYTES;
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                escape.null::<W>().write_big(target);
                continue;
            }
            let (code, tail) = escape.put(value.code(kind, false));
            code.write_big(target);
            if let Some(tail) = tail {
                out[*cursor] = tail;
                *cursor += 1;
            }
        }
    });
}

/// One past the code at `at`, which is within the row.
#[inline]
pub(super) fn skip(slot: &Slot, row: &[u8], at: usize) -> usize {
    let end = at + slot.code.width();
    let Some([front @ .., last]) = row.get(at..end) else { return end };
    let flip = if slot.descending { 0xff } else { 0 };
    let last_of_longer = if slot.low_nulls() { 0xff } else { 0xfe };
    let is_longer = front.iter().all(|&byte| byte ^ flip == 0xff) && last ^ flip == last_of_longer;
    end + usize::from(is_longer)
}

/// The ordered code of the value at the start of `row`, ascending, and the bytes that it takes: no value for a null.
/// Nothing at all if the row is too short or no encoder wrote it.
#[inline]
pub(super) fn take<W: Word>(escape: Escape, row: &[u8]) -> Option<(Option<W>, usize)> {
    let Read { value, is_null, is_longer } = escape.read(W::read_big(row.get(..W::BYTES)?));
    if is_longer {
        let tail = escape.read_tail(*row.get(W::BYTES)?)?;
        return Some((Some(value.plus(tail)), W::BYTES + 1));
    }
    Some(((!is_null).then_some(value), W::BYTES))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    fn escape(descending: bool, nulls_first: bool) -> Escape {
        Escape { low: nulls_first != descending, descending }
    }

    /// The code of a value by the rule of this module.
    fn code_of<W: Word>(value: Option<W>, descending: bool, nulls_first: bool) -> Vec<u8> {
        let escape = escape(descending, nulls_first);
        let (word, tail) = match value {
            None => (escape.null(), None),
            Some(value) => escape.put(value),
        };
        let mut code = vec![0; W::BYTES];
        word.write_big(&mut code);
        code.extend(tail);
        code
    }

    /// A code of one byte, for which all pairs can be looked at.
    fn code(value: Option<u8>, descending: bool, nulls_first: bool) -> Vec<u8> {
        code_of(value, descending, nulls_first)
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
                    let (x, y) =
                        (code(a, descending, nulls_first), code(b, descending, nulls_first));
                    let expected = compare(a, b, descending, nulls_first);
                    assert_eq!(x.cmp(&y), expected, "{a:?} {b:?} {descending} {nulls_first}");
                    assert!(x == y || !y.starts_with(&x), "{a:?} {b:?}: a prefix");
                }
            }
        }
    }

    /// Codes ascend with the values and the null, none is a prefix of another, and each is read back; only the two
    /// greatest values take a byte more.
    fn check<W: Word + std::fmt::Debug>(values: impl Iterator<Item = W> + Clone, longer: usize) {
        for (descending, nulls_first) in OPTIONS {
            let mut codes: Vec<Vec<u8>> =
                values.clone().map(|value| code_of(Some(value), descending, nulls_first)).collect();
            assert_eq!(codes.iter().filter(|code| code.len() > W::BYTES).count(), longer);
            for (value, code) in values.clone().zip(&codes) {
                let read = take::<W>(escape(descending, nulls_first), &[code, &[7][..]].concat());
                assert_eq!(read, Some((Some(value), code.len())));
            }
            if descending {
                codes.reverse();
            }
            let null = code_of::<W>(None, descending, nulls_first);
            assert_eq!(take::<W>(escape(descending, nulls_first), &null), Some((None, W::BYTES)));
            codes.insert(if nulls_first { 0 } else { codes.len() }, null);
            // Of codes in order the next one is the first that could begin as another does.
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
            let longer = code(Some(255), descending, nulls_first);
            let wrong = [longer[0], if descending { 0xfd } else { 2 }];
            assert_eq!(take::<u8>(escape(descending, nulls_first), &wrong), None);
            assert_eq!(take::<u8>(escape(descending, nulls_first), &longer[..1]), None);
        }
    }

    #[test]
    fn every_pair_of_rows_of_two_columns_is_in_order() {
        // Values of both edges and the middle: those of three bits, spread over the byte.
        let values = [None, Some(0), Some(1), Some(2), Some(127), Some(253), Some(254), Some(255)];
        let rows: Vec<[Option<u8>; 2]> =
            values.iter().flat_map(|&a| values.map(|b| [a, b])).collect();
        for first in OPTIONS {
            for second in OPTIONS {
                let bytes = |row: &[Option<u8>; 2]| {
                    [code(row[0], first.0, first.1), code(row[1], second.0, second.1)].concat()
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
            let values: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            let mut rows = Vec::new();
            for_each_top(&values, |number: u32| number, |row| rows.push(row));
            let mut expected = [at, 100];
            expected.sort_unstable();
            assert_eq!(rows, expected);
        }
    }
}
