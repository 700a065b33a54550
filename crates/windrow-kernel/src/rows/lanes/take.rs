//! Reads columns out of rows.

use super::lane::{LaneOut, Word};
use super::level::Level;
use super::places::{Anywhere, Places, check_bounds};
use super::put::Constants;
use super::vector::{Kernel, Vector};

/// Appends the values of `rows` rows of `bytes` to `lanes`, adjacent columns of numbers. Returns
/// false if a row has a code longer than a number: such rows cannot be read this way.
///
/// # Panics
/// If a place lies outside of `bytes`.
pub fn take<T: Word, P: Places>(
    lanes: &mut [LaneOut<'_, T>],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    take_by(lanes, rows, places.anywhere(), bytes, Level::detected())
}

/// Reads columns as [`take`] does, at a given level, which was detected.
pub(super) fn take_by<T: Word>(
    mut lanes: &mut [LaneOut<'_, T>],
    rows: usize,
    mut places: Anywhere<'_>,
    bytes: &[u8],
    level: Level,
) -> bool {
    let width = size_of::<T>();
    check_bounds(lanes.len() * width, rows, places, bytes.len());
    let mut fits = true;
    while !lanes.is_empty() {
        let count = 4.min(1 << lanes.len().ilog2());
        let (block, behind) = lanes.split_at_mut(count);
        // SAFETY: the level was detected, and `check_bounds` checked the places.
        fits &= unsafe {
            match width {
                4 => take_count::<4, T>(block, rows, places, bytes, level),
                8 => take_count::<8, T>(block, rows, places, bytes, level),
                _ => take_count::<16, T>(block, rows, places, bytes, level),
            }
        };
        (lanes, places) = (behind, places.shifted(count * width));
    }
    fits
}

/// # Safety
/// The level was detected. `T` has `W` bytes. The lanes of all rows lie within `bytes`.
unsafe fn take_count<const W: usize, T: Word>(
    lanes: &mut [LaneOut<'_, T>],
    rows: usize,
    places: Anywhere<'_>,
    bytes: &[u8],
    level: Level,
) -> bool {
    macro_rules! counts {
        ($($count:literal)*) => {
            $(if let Ok(lanes) = <&mut [LaneOut<'_, T>; $count]>::try_from(&mut *lanes) {
                // SAFETY: the caller promises the level, the width and the places.
                return unsafe { take_block::<W, $count, T>(lanes, rows, places, bytes, level) };
            })*
        };
    }
    counts!(4 2 1);
    unreachable!("a block of {} columns", lanes.len())
}

/// # Safety
/// The conditions of [`take_count`] hold.
unsafe fn take_block<const W: usize, const N: usize, T: Word>(
    lanes: &mut [LaneOut<'_, T>; N],
    rows: usize,
    places: Anywhere<'_>,
    bytes: &[u8],
    level: Level,
) -> bool {
    let escapes = lanes.iter().any(|lane| lane.code.escapes);
    // As in `put`.
    let alone = N == 1 && places.stride() != Some(W);
    let few = rows < level.rows(W);
    let level = if alone || few || (escapes && W == 16) { Level::Portable } else { level };
    let mut valid = [std::ptr::null_mut(); N];
    for (lane, valid) in lanes.iter_mut().zip(&mut valid) {
        lane.valid.clear();
        if escapes {
            lane.valid.resize(rows.div_ceil(64), 0);
            *valid = lane.valid.as_mut_ptr();
        }
    }
    let targets = lanes.each_mut().map(|lane| lane.values.room(rows).cast::<u8>());
    let codes = lanes.each_ref().map(|lane| lane.code);
    let bytes = bytes.as_ptr();
    // SAFETY: the caller promises the level, the width and the places. Each target has space for a
    // value of each row, and `valid` a bit if codes encode nulls. Unless `few`, the rows fill a
    // register of the level. The kernel wrote a value of each row before `grow`.
    unsafe {
        let block = Block { codes: &codes, targets, valid, rows, places, bytes };
        let fits = match escapes {
            false => level.run(Take::<'_, W, N, false>(block)),
            true => level.run(Take::<'_, W, N, true>(block)),
        };
        lanes.iter_mut().for_each(|lane| lane.values.grow(rows));
        fits
    }
}

/// Reads a block of columns. Returns false if a code is longer than its width. `NULLS` if codes
/// encode nulls.
///
/// Invariant: the rows lie within the bytes, and targets have space for them. The rows fill at
/// least one register of the vectors in use, or `V` is `Portable`.
struct Take<'a, const W: usize, const N: usize, const NULLS: bool>(Block<'a, N>);

/// Where the codes of a block of columns are, and where their values go.
struct Block<'a, const N: usize> {
    codes: &'a [super::lane::Code; N],
    targets: [*mut u8; N],
    /// Words of zeros for all rows, if codes encode nulls.
    valid: [*mut u64; N],
    rows: usize,
    places: Anywhere<'a>,
    bytes: *const u8,
}

impl<const W: usize, const N: usize, const NULLS: bool> Kernel for Take<'_, W, N, NULLS> {
    type Output = bool;

    #[inline(always)]
    unsafe fn run<V: Vector>(self) -> bool {
        let group = V::rows(W);
        // SAFETY: the caller keeps the conditions of `Kernel::run`. Each group consists of some of
        // these rows.
        unsafe {
            let mut with = [Constants::<V>::of::<W>(&self.0.codes[0]); N];
            for (with, code) in with.iter_mut().zip(self.0.codes) {
                *with = Constants::of::<W>(code);
            }
            let (mut longer, mut words, mut at) = (V::mask::<W>(0), [0; N], 0);
            while at < self.0.rows {
                // The last rows do not fill a register: earlier rows are read again.
                let first = at.min(self.0.rows - group);
                let bits = self.group(first, &with, &mut longer);
                if NULLS {
                    for (word, bits) in words.iter_mut().zip(bits) {
                        *word |= bits << (at % 64) >> (at - first);
                    }
                }
                at += group;
                if NULLS && (at % 64 == 0 || at >= self.0.rows) {
                    for (valid, word) in self.0.valid.iter().zip(words) {
                        valid.add((at - 1) / 64).write(word);
                    }
                    words = [0; N];
                }
            }
            V::bits::<W>(longer) == 0
        }
    }
}

impl<const W: usize, const N: usize, const NULLS: bool> Take<'_, W, N, NULLS> {
    /// # Safety
    /// The conditions of [`Kernel::run`] hold, and a register of rows begins at `first`.
    #[inline(always)]
    unsafe fn group<V: Vector>(
        &self,
        first: usize,
        with: &[Constants<V>; N],
        longer: &mut V::Mask,
    ) -> [u64; N] {
        let mut bits = [0; N];
        // SAFETY: the caller promises the CPU, and the bytes and targets of these rows.
        unsafe {
            let group = V::rows(W);
            let columns = V::load_rows::<W, N, _>(self.0.places.behind(first), self.0.bytes);
            for lane in 0..N {
                let (v, null) = with[lane].value::<W, NULLS>(columns[lane], longer);
                v.store::<W>(self.0.targets[lane].add(first * W));
                if NULLS {
                    bits[lane] = !V::bits::<W>(null) & (u64::MAX >> (64 - group));
                }
            }
        }
        bits
    }
}
