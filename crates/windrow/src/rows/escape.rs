//! Nulls among the codes of numbers of four bytes and more, without a marker byte.
//!
//! With `c` the ordered code of a value and `M` the greatest number of its width:
//!
//! ```text
//! nulls first   null -> 0     c <= M - 2 -> c + 1     M - 1 -> M 00     M -> M 01
//! nulls last    null -> M     c >= 2     -> c - 1     0     -> 0 00     1 -> 0 01
//! ```
//!
//! Two of all values take a byte more. Invariant: the codes have the order of the values with the
//! null before or behind them, and none is a prefix of another.

use super::column::Column;
use super::fixed::{Word, with_word};
use super::tile::Tile;
use crate::order::Slot;
use crate::order::code::{Kind, OrderedCode};

/// Calls `longer` with each row of `column` that takes a byte more than most.
pub(super) fn for_each_longer(slot: &Slot, column: &Column, mut longer: impl FnMut(usize)) {
    let (OrderedCode::Fixed(width, kind), Column::Fixed { values, nulls }) = (slot.code, column)
    else {
        return;
    };
    let (descending, up) = (slot.descending, slot.nulls_first);
    let mut longer = |row: usize| {
        if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
            longer(row);
        }
    };
    with_word!(width, W => {
        // A loop for each kind: none that asks for it.
        macro_rules! of_kind {
            ($kind:expr) => {
                for_each_edge::<W>(values, |value| value.code($kind, descending).step(up), &mut longer)
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

/// Calls `found` with the number of each of `values` whose `code` is the least or the greatest there is.
#[inline(always)]
fn for_each_edge<W: Word>(values: &[u8], code: impl Fn(W) -> W, mut found: impl FnMut(usize)) {
    let is_edge = |value: &[u8]| code(W::read_native(value)).is_edge();
    for (block, values) in values.chunks(BLOCK * W::BYTES).enumerate() {
        let values = values.chunks_exact(W::BYTES);
        // Most blocks have none. No way out in the middle: several at a time.
        if values.clone().fold(false, |any, value| any | is_edge(value)) {
            let edges = values.enumerate().filter(|(_, value)| is_edge(value));
            edges.for_each(|(row, _)| found(block * BLOCK + row));
        }
    }
}

/// Writes the codes of a tile, all of one width. True if a value has none: the rows are then wrong.
pub(super) fn put(slot: &Slot, column: &Column, tile: &mut Tile<'_>) -> bool {
    let (OrderedCode::Fixed(width, kind), Column::Fixed { values, nulls }) = (slot.code, column)
    else {
        return false;
    };
    let (up, mut escaped) = (slot.nulls_first, false);
    let rows = tile.rows.clone();
    let (places, out) = tile.places();
    with_word!(width, W => {
        let values = &values[rows.start * W::BYTES..rows.end * W::BYTES];
        let values = values.chunks_exact(W::BYTES).map(W::read_native);
        for ((place, row), value) in places.each().zip(rows).zip(values) {
            let target = &mut out[place..][..W::BYTES];
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                W::filled(!up).write_big(target);
            } else {
                let code = value.code(kind, slot.descending).step(up);
                escaped |= code.is_edge();
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
    let up = slot.nulls_first;
    let rows = tile.rows.clone();
    let (cursors, out) = tile.next_part();
    with_word!(width, W => {
        let values = &values[rows.start * W::BYTES..rows.end * W::BYTES];
        let values = values.chunks_exact(W::BYTES).map(W::read_native);
        for ((cursor, row), value) in cursors.iter_mut().zip(rows).zip(values) {
            let target = &mut out[*cursor..*cursor + W::BYTES];
            *cursor += W::BYTES;
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                W::filled(!up).write_big(target);
                continue;
            }
            let code = value.code(kind, slot.descending).step(up);
            if !code.is_edge() {
                code.write_big(target);
                continue;
            }
            W::filled(up).write_big(target);
            out[*cursor] = u8::from(code.is_zero());
            *cursor += 1;
        }
    });
}

/// One past the code at `at`, which is within the row.
#[inline]
pub(super) fn skip(slot: &Slot, row: &[u8], at: usize) -> usize {
    let end = at + slot.code.width();
    let escape = if slot.nulls_first { 0xff } else { 0 };
    let longer = row.get(at..end).is_some_and(|code| code.iter().all(|&byte| byte == escape));
    end + usize::from(longer)
}

/// The ordered code of the value at the start of `row` and the bytes that it takes: nothing for a null.
/// Nothing at all if the row is too short or no encoder wrote it.
#[inline]
pub(super) fn take<W: Word>(up: bool, row: &[u8]) -> Option<(Option<W>, usize)> {
    let code = row.get(..W::BYTES)?;
    let word = W::read_big(code);
    if !word.is_edge() {
        return Some((Some(word.step(!up)), W::BYTES));
    }
    if word.is_zero() == up {
        return Some((None, W::BYTES));
    }
    let shifted = match row.get(W::BYTES)? {
        0 => W::filled(true),
        1 => W::filled(false),
        _ => return None,
    };
    Some((Some(shifted.step(!up)), W::BYTES + 1))
}

/// As [`take`], of the longest code and what may be behind it: the value, zero for a null; whether there
/// is one; the bytes of the code; and whether an encoder can have written it. Without a branch: which
/// values are null, and which longer, is not to be predicted.
#[inline(always)]
pub(super) fn take_within<W: Word>(
    up: bool,
    kind: Kind,
    descending: bool,
    code: &[u8],
) -> (W, bool, usize, bool) {
    let (word, behind) = (W::read_big(&code[..W::BYTES]), code[W::BYTES]);
    let edge = word.is_edge();
    let is_null = edge & (word.is_zero() == up);
    let longer = edge & !is_null;
    let shifted = word.and_if(!longer).or(W::filled(longer & (behind == 0)));
    let value = shifted.step(!up).value(kind, descending).and_if(!is_null);
    (value, !is_null, W::BYTES + usize::from(longer), !longer | (behind <= 1))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    /// A code of one byte by the rule of this module, for which all pairs can be looked at.
    fn code(value: Option<u8>, descending: bool, nulls_first: bool) -> Vec<u8> {
        let up = nulls_first;
        let Some(value) = value else { return vec![u8::filled(!up)] };
        let shifted = value.code(Kind::Unsigned, descending).step(up);
        match shifted.is_edge() {
            true => vec![u8::filled(up), u8::from(shifted.is_zero())],
            false => vec![shifted],
        }
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
    fn edges_are_found_in_every_block_and_at_its_ends() {
        for at in [0, 62, 63, 64, 65, 127, 128, 130] {
            let mut numbers = vec![7u32; 131];
            numbers[at] = u32::MAX;
            numbers[100] = 0;
            let values: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            let mut rows = Vec::new();
            for_each_edge(&values, |number: u32| number, |row| rows.push(row));
            let mut expected = [at, 100];
            expected.sort_unstable();
            assert_eq!(rows, expected);
        }
    }
}
