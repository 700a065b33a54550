//! Plans: the bits of the keys in the words of one group of rows.
//!
//! ```text
//! piece of a number   | null? 1 bit | number less the group's minimum, in bits of the greatest |
//!                     | null? 1 bit | 0 below a window, 1 to w within it, w + 1 above it       |
//! piece of bytes      | null? 1 bit | up to eight bytes after the common prefix, then zeros    |
//! ```
//!
//! Invariant: if row `a` sorts before row `b` by the keys from the plan's start on, the bits of `a`
//! are at most the bits of `b`. If the bits are equal, the rows agree in all keys before `rest`.

use std::ops::Range;

use arrow_buffer::NullBuffer;

use super::key::Key;
use super::rows::Rows;
use super::sample::Sample;
use crate::rows::lanes;
use windrow_kernel::rows::{Bits, Pack, PackHeads, clamp, pack, pack_heads, shared, shared_each};

/// A position in the keys: a key, and the number of its bytes before the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) key: usize,
    pub(super) depth: usize,
}

/// The bits of one key.
#[derive(Debug)]
struct Piece {
    key: usize,
    /// True if a null bit stands in front.
    nulls: bool,
    /// Bits after the null bit.
    bits: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The number minus `least`, without its lowest `dropped` bits.
    Number { least: u64, dropped: u32 },
    /// 0 below `least`, otherwise the number minus `least - 1`, but at most `top`.
    Window { least: u64, top: u64 },
    /// The bytes from `depth` on.
    Bytes { depth: usize },
}

/// Bits of the keys, chosen once for a group.
#[derive(Debug)]
pub(super) struct Plan {
    pieces: Vec<Piece>,
    /// The number of index bits in a word, below the key bits.
    pub(super) index_bits: u32,
    /// The number of key bits in a word.
    pub(super) bits: u32,
    /// The position of the first undecided key.
    pub(super) rest: Place,
    /// True if rows with equal bits are equal.
    pub(super) complete: bool,
}

impl Plan {
    /// Makes a plan for `rows`, at least two, which agree in all keys before `from`.
    pub(super) fn new<R: Rows>(keys: &[Key], rows: &R, from: Place) -> Self {
        let index_bits = usize::BITS - (rows.len() - 1).leading_zeros();
        let mut plan =
            Self { pieces: Vec::new(), index_bits, bits: 0, rest: from, complete: false };
        while let Some(key) = keys.get(plan.rest.key) {
            let whole =
                if key.is_bytes() { plan.add_bytes(key, rows) } else { plan.add_number(key, rows) };
            if !whole {
                return plan;
            }
            plan.rest = Place { key: plan.rest.key + 1, depth: 0 };
        }
        plan.complete = true;
        plan
    }

    /// Returns the codes for several numbers each, if the plan is one window of the last key: the
    /// code below the window and the code above.
    pub(super) fn left_out(&self, keys: &[Key]) -> Option<Vec<u64>> {
        match self.pieces[..] {
            [Piece { key, what: What::Window { least, top }, .. }] if key + 1 == keys.len() => {
                Some(if least > 1 { vec![0, top] } else { vec![top] })
            }
            _ => None,
        }
    }

    /// Returns the range of sorted words that may leave rows undecided. Excludes nulls if `rows`
    /// are all rows of the record batch and no key follows.
    pub(super) fn open<R: Rows>(&self, keys: &[Key], rows: &R) -> Range<usize> {
        let count = rows.len();
        match self.pieces[..] {
            [Piece { key, what: What::Number { .. }, .. }] if key + 1 == keys.len() && R::ALL => {
                let nulls = keys[key].nulls.as_ref().map_or(0, NullBuffer::null_count);
                if keys[key].nulls_first { nulls..count } else { 0..count - nulls }
            }
            _ => 0..count,
        }
    }

    fn capacity(&self) -> u32 {
        64 - self.index_bits - self.bits
    }

    fn push(&mut self, nulls: bool, bits: u32, what: What) {
        if bits > 0 || nulls {
            self.bits += bits + u32::from(nulls);
            self.pieces.push(Piece { key: self.rest.key, nulls, bits, what });
        }
    }

    /// Adds as many bits of a number as fit. Returns true if all bits fit.
    fn add_number<R: Rows>(&mut self, key: &Key, rows: &R) -> bool {
        if let Some(sample) = Sample::of(key, rows) {
            let nulls = key.nulls.is_some();
            let room = self.capacity().saturating_sub(u32::from(nulls));
            // Wide numbers need all available bits: no pass to count bits.
            if sample.is_spread() && room > 0 && room < sample.bits() {
                self.push(nulls, room, What::Number { least: 0, dropped: u64::BITS - room });
                return false;
            }
            if !nulls && let Some((least, top)) = sample.window(room) {
                let bits = u64::BITS - top.leading_zeros();
                self.push(false, bits, What::Window { least, top });
                return false;
            }
        }
        let (mut least, mut most, mut nulls) = (u64::MAX, 0, 0);
        if let (None, true, Some((values, code))) = (&key.nulls, R::ALL, key.numbers()) {
            (least, most) = code.bounds(&values[..rows.len()]);
        } else if key.nulls.is_some() {
            key.for_each_nullable(rows, |_, number, null| {
                // No branch: which rows are null is unpredictable.
                let null = u64::from(null);
                nulls += null as usize;
                let (all, none) = (0u64.wrapping_sub(null), null.wrapping_sub(1));
                (least, most) = (least.min(number | all), most.max(number & none));
            });
        } else {
            key.for_each_number(rows, |_, number| {
                (least, most) = (least.min(number), most.max(number));
            });
        }
        let mixed = nulls > 0 && nulls < rows.len();
        let needed = u64::BITS - most.saturating_sub(least).leading_zeros();
        let Some(room) = self.capacity().checked_sub(u32::from(mixed)) else { return false };
        let bits = needed.min(room);
        self.push(mixed, bits, What::Number { least, dropped: needed - bits });
        bits == needed
    }

    /// Adds the bytes after the common prefix of the rows. Returns true if all bytes fit and all
    /// strings have one length.
    fn add_bytes<R: Rows>(&mut self, key: &Key, rows: &R) -> bool {
        let depth = self.rest.depth;
        let (shortest, longest, nulls) = match key.lengths(rows) {
            Some(found) => found,
            None => {
                let (mut shortest, mut longest, mut nulls) = (usize::MAX, 0, 0);
                for row in (0..rows.len()).map(|at| rows.get(at)) {
                    if key.is_null(row) {
                        nulls += 1;
                        continue;
                    }
                    let len = key.bytes(row).len();
                    (shortest, longest) = (shortest.min(len), longest.max(len));
                }
                (shortest, longest, nulls)
            }
        };
        if nulls == rows.len() {
            return true;
        }
        let mixed = nulls > 0;
        let depth = depth + shared_by(key, rows, depth);
        let left = longest.saturating_sub(depth);
        let Some(room) = self.capacity().checked_sub(u32::from(mixed)) else { return false };
        let needed = u8::BITS * left.min(8) as u32;
        let bits = needed.min(room);
        self.push(mixed, bits, What::Bytes { depth });
        self.rest.depth = depth + (bits / u8::BITS) as usize;
        shortest == longest && left <= 8 && bits == needed
    }

    /// Writes the words of all rows.
    pub(super) fn pack<R: Rows>(&self, keys: &[Key], rows: &R, words: &mut [u64]) {
        if self.pieces.is_empty() {
            words.iter_mut().zip(0..).for_each(|(word, place)| *word = place);
            return;
        }
        for (number, piece) in self.pieces.iter().enumerate() {
            let key = &keys[piece.key];
            // The first piece keeps nothing of the word, and the last piece adds the index.
            let width = if number == 0 { u64::BITS } else { piece.width() };
            let is_last = number + 1 == self.pieces.len();
            let place = is_last.then_some(self.index_bits);
            if R::ALL && piece.pack(key, width, place, words) {
                continue;
            }
            if is_last {
                piece.for_each(key, rows, |at, bits| {
                    let word = words[at].checked_shl(width).unwrap_or(0) | bits;
                    words[at] = word << self.index_bits | at as u64;
                });
            } else {
                piece.for_each(key, rows, |at, bits| {
                    words[at] = words[at].checked_shl(width).unwrap_or(0) | bits;
                });
            }
        }
    }

    /// Writes the bits of each row, at most 16, to `codes`.
    pub(super) fn pack_codes<R: Rows>(&self, keys: &[Key], rows: &R, codes: &mut Vec<u16>) {
        // Old values are overwritten.
        codes.resize(rows.len(), 0);
        let codes = &mut codes[..];
        if let [piece] = &self.pieces[..]
            && R::ALL
            && piece.clamp(&keys[piece.key], codes)
        {
            return;
        }
        codes.fill(0);
        for piece in &self.pieces {
            let width = piece.width();
            piece.for_each(&keys[piece.key], rows, |at, bits| {
                codes[at] = codes[at] << width | bits as u16;
            });
        }
    }
}

impl Piece {
    /// Returns the number of bits, null bit included.
    fn width(&self) -> u32 {
        self.bits + u32::from(self.nulls)
    }

    /// Shifts `words` left by `width` and adds the bits of all rows; then adds the
    /// positions below the bits, if `place` is given. Returns false if no kernel
    /// supports the piece.
    fn pack(&self, key: &Key, width: u32, place: Option<u32>, words: &mut [u64]) -> bool {
        if let (&What::Bytes { depth }, Some(strings)) = (&self.what, key.strings()) {
            if self.bits == 0 {
                return false;
            }
            let width = match &key.nulls {
                Some(nulls) if self.nulls => {
                    let valid = lanes::bits(nulls);
                    add_nulls(valid, key.nulls_first, width, words);
                    self.bits
                }
                _ => width,
            };
            let flip = if key.descending { u64::MAX } else { 0 };
            let dropped = u64::BITS - self.bits;
            pack_heads(strings, PackHeads { depth, flip, dropped, width, place }, words);
            return true;
        }
        let (What::Number { least, dropped }, Some((values, code))) = (&self.what, key.numbers())
        else {
            return false;
        };
        if *dropped >= 64 || self.nulls != key.nulls.is_some() {
            return false;
        }
        // Set for nulls if nulls come last, and for values if nulls come first.
        let front = |is_null: bool| {
            let is_last = self.nulls && is_null != key.nulls_first;
            u64::from(is_last) << (self.bits & 63)
        };
        let (front, null) = (front(false), front(true));
        let with = Pack { width, place, front, null, ..code.pack(*least, *dropped) };
        let valid = key.nulls.as_ref().map(lanes::bits);
        pack(&values[..words.len()], valid, with, words);
        true
    }

    /// Writes the bits, at most 16, for all rows of a record batch. Returns false if no kernel
    /// supports the piece.
    fn clamp(&self, key: &Key, codes: &mut [u16]) -> bool {
        let (below, top) = match self.what {
            What::Number { least, dropped: 0 } if !self.nulls => (least, u16::MAX),
            What::Window { least, top } => (least - 1, top as u16),
            _ => return false,
        };
        let Some((values, code)) = key.numbers() else { return false };
        clamp(&values[..codes.len()], code.clamp(below, top), codes);
        true
    }

    /// Calls `f` with the bits of each row, null bit included.
    #[inline(always)]
    fn for_each<R: Rows>(&self, key: &Key, rows: &R, mut f: impl FnMut(usize, u64)) {
        let (bits, first) = (self.bits, key.nulls_first);
        // The null bit is set for nulls if nulls come last, and for values otherwise.
        let with_null = |null: bool, code: u64| {
            // With a null bit, at most 63 bits remain for the value.
            let own = if self.nulls { u64::from(null != first) << (bits & 63) } else { 0 };
            own | code & u64::from(null).wrapping_sub(1)
        };
        match self.what {
            What::Number { least, dropped } if self.nulls => {
                // With all bits dropped, only the null bit remains.
                let (kept, dropped) = (u64::from(dropped < 64).wrapping_neg(), dropped & 63);
                key.for_each_nullable(rows, |at, number, null| {
                    f(at, with_null(null, number.wrapping_sub(least) >> dropped & kept));
                });
            }
            What::Window { least, top } => key.for_each_number(rows, |at, number| {
                let code = number.saturating_sub(least - 1);
                f(at, code.min(top));
            }),
            // Without a null bit, a piece keeps at least one bit, so the shift is below 64.
            What::Number { least, dropped } => key.for_each_number(rows, |at, number| {
                f(at, number.wrapping_sub(least) >> (dropped & 63));
            }),
            What::Bytes { depth } => {
                let flip = if key.descending { u64::MAX } else { 0 };
                for at in 0..rows.len() {
                    let row = rows.get(at);
                    let word = key.word(row, depth) ^ flip;
                    let code = word.checked_shr(64 - bits).unwrap_or(0);
                    f(at, with_null(self.nulls && key.is_null(row), code));
                }
            }
        }
    }
}

/// Shifts `words` left by one and adds the null bit, set for rows that come last. Clears the words
/// first if `width` is 64.
fn add_nulls(valid: Bits<'_>, nulls_first: bool, width: u32, words: &mut [u64]) {
    let kept = u64::from(width < u64::BITS).wrapping_neg();
    for (block, words) in words.chunks_mut(64).enumerate() {
        let valid = valid.word(block * 64);
        let last = if nulls_first { valid } else { !valid };
        for (bit, word) in words.iter_mut().enumerate() {
            *word = (*word & kept) << 1 | last >> bit & 1;
        }
    }
}

/// Counts the bytes from `depth` on that all of `rows` share. Not all rows may be null.
fn shared_by<R: Rows>(key: &Key, rows: &R, depth: usize) -> usize {
    if let (Some(strings), true, None) = (key.strings(), R::ALL, &key.nulls) {
        return shared(strings, depth, rows.len());
    }
    let valid = (0..rows.len()).map(|at| rows.get(at)).filter(|&row| !key.is_null(row));
    shared_each(valid.map(|row| key.bytes(row).get(depth..).unwrap_or(&[])))
}
