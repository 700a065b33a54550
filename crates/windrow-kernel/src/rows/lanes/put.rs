//! Writes columns into rows.

use std::ops::Range;

use super::lane::{Code, Lane};
use super::level::Level;
use super::places::{Anywhere, Places, check_bounds};
use super::vector::{Kernel, Vector};

/// Rows of a word of validity bits.
const WORD: usize = 64;

/// Adjacent columns of one width, for some number of rows.
///
/// Invariant: each lane has a value for each row, and a bit for each row if it has validity bits.
#[derive(Debug)]
pub struct Lanes<'a> {
    lanes: Vec<Lane<'a>>,
    width: usize,
    rows: usize,
}

impl<'a> Lanes<'a> {
    /// Creates columns of `width` bytes: 4, 8, or 16. For 16, the constants of a code are for the
    /// upper 64 bits.
    ///
    /// # Panics
    /// If a lane does not hold `rows` values.
    pub fn new(lanes: Vec<Lane<'a>>, width: usize, rows: usize) -> Self {
        assert!(matches!(width, 4 | 8 | 16), "numbers of 4, 8 or 16 bytes");
        let bytes = rows.checked_mul(width).expect("rows fit the address space");
        for lane in &lanes {
            assert!(lane.values.len() >= bytes, "a lane holds a value for each row");
            assert!(lane.valid.is_none_or(|bits| bits.holds(rows)), "a bit for each row");
        }
        Self { lanes, width, rows }
    }

    /// Returns the bytes that the columns take in a row.
    pub fn bytes(&self) -> usize {
        self.lanes.len() * self.width
    }
}

/// Writes adjacent columns for the rows `rows`; the columns of the first row begin at
/// `places.place(0)`. Returns true if a value has no code of its width: the written rows are then
/// invalid.
///
/// # Panics
/// If a place lies outside of `out`, or a row outside of the lanes.
pub fn put<P: Places>(lanes: &Lanes<'_>, rows: Range<usize>, places: P, out: &mut [u8]) -> bool {
    assert!(rows.start <= rows.end && rows.end <= lanes.rows, "lanes hold a value for each row");
    check_bounds(lanes.bytes(), rows.len(), places, out.len());
    let (places, out, level) = (places.anywhere(), out.as_mut_ptr(), Level::detected());
    // SAFETY: the lanes hold the rows and `check_bounds` checked the places. The level was
    // detected.
    unsafe {
        match lanes.width {
            4 => put_of::<4>(&lanes.lanes, rows, places, out, level),
            8 => put_of::<8>(&lanes.lanes, rows, places, out, level),
            _ => put_of::<16>(&lanes.lanes, rows, places, out, level),
        }
    }
}

/// Writes lanes of `W` bytes as [`put`] does, at a given level.
///
/// # Safety
/// - The level was detected.
/// - Lane `i` of the `n`th of `rows` lies within `out` at `places.place(n) + i * W`.
/// - Each lane has values and validity bits of all `rows`.
pub(super) unsafe fn put_of<const W: usize>(
    mut lanes: &[Lane<'_>],
    rows: Range<usize>,
    mut places: Anywhere<'_>,
    out: *mut u8,
    level: Level,
) -> bool {
    let mut escaped = false;
    macro_rules! block {
        ($count:literal) => {{
            let (block, behind) = lanes.split_first_chunk::<$count>().expect("as many lanes");
            // SAFETY: the caller promises the level, places and lanes of all blocks.
            escaped |= unsafe { put_block::<W, $count>(block, rows.clone(), places, out, level) };
            (lanes, places) = (behind, places.shifted($count * W));
        }};
    }
    while !lanes.is_empty() {
        match lanes.len() {
            4.. => block!(4),
            2.. => block!(2),
            _ => block!(1),
        }
    }
    escaped
}

/// # Safety
/// The conditions of [`put_of`] hold for a block.
unsafe fn put_block<const W: usize, const N: usize>(
    lanes: &[Lane<'_>; N],
    rows: Range<usize>,
    places: Anywhere<'_>,
    out: *mut u8,
    level: Level,
) -> bool {
    let escapes = lanes.iter().any(|lane| lane.code.escapes);
    // A single column is stored number by number, and only the portable register adds to numbers of
    // 16 bytes.
    let alone = N == 1 && places.stride() != Some(W);
    let few = rows.len() < level.rows(W);
    let level = if alone || few || (escapes && W == 16) { Level::Portable } else { level };
    // SAFETY: the caller promises the level, places and lanes. Unless `few`, the rows fill a
    // register of the level.
    unsafe {
        match escapes || lanes.iter().any(|lane| lane.valid.is_some()) {
            false => level.run(Put::<'_, W, N, false> { lanes, rows, places, out }),
            true => level.run(Put::<'_, W, N, true> { lanes, rows, places, out }),
        }
    }
}

/// Writes a block of columns. Returns true if a value has no code of its width. `NULLS` if there
/// may be nulls, or codes for them.
///
/// Invariant: the lanes have the rows, whose places lie within `out`. The rows fill at least one
/// register of the vectors in use, or `V` is `Portable`.
struct Put<'a, const W: usize, const N: usize, const NULLS: bool> {
    lanes: &'a [Lane<'a>; N],
    rows: Range<usize>,
    places: Anywhere<'a>,
    out: *mut u8,
}

impl<const W: usize, const N: usize, const NULLS: bool> Kernel for Put<'_, W, N, NULLS> {
    type Output = bool;

    #[inline(always)]
    unsafe fn run<V: Vector>(self) -> bool {
        let (count, group) = (self.rows.len(), V::rows(W));
        // SAFETY: the caller keeps the conditions of `Kernel::run`. Each group consists of some of
        // these rows.
        unsafe {
            let mut with = [Constants::<V>::of::<W>(&self.lanes[0].code); N];
            let mut values = [self.lanes[0].values.as_ptr(); N];
            for lane in 0..N {
                with[lane] = Constants::of::<W>(&self.lanes[lane].code);
                values[lane] = self.lanes[lane].values.as_ptr().add(self.rows.start * W);
            }
            let mut edges = V::mask::<W>(0);
            // Without nulls, no validity is read in between.
            let step = if NULLS { WORD } else { count.max(1) };
            for first in (0..count).step_by(step) {
                let rows = first..count.min(first + step);
                match self.valid(first) {
                    valid if valid == [u64::MAX; N] => {
                        self.groups::<V, false>(rows, &values, &with, valid, &mut edges);
                    }
                    valid => self.groups::<V, NULLS>(rows, &values, &with, valid, &mut edges),
                }
            }
            if !count.is_multiple_of(group) {
                // The last rows do not fill a register: earlier rows are written again.
                let rows = count - group..count;
                let valid = self.valid(rows.start);
                self.groups::<V, NULLS>(rows, &values, &with, valid, &mut edges);
            }
            V::bits::<W>(edges) != 0
        }
    }
}

impl<const W: usize, const N: usize, const NULLS: bool> Put<'_, W, N, NULLS> {
    /// Returns the validity of the rows from `first` on, for each lane.
    #[inline(always)]
    fn valid(&self, first: usize) -> [u64; N] {
        let mut words = [u64::MAX; N];
        if NULLS {
            for (word, lane) in words.iter_mut().zip(self.lanes) {
                if let Some(bits) = lane.valid {
                    *word = bits.word(self.rows.start + first);
                }
            }
        }
        words
    }

    /// Writes rows by whole registers and leaves out the rest. `SOME` if not all rows are `valid`.
    ///
    /// # Safety
    /// The conditions of [`Kernel::run`] hold, and `rows` are some of the kernel's rows.
    #[inline(always)]
    unsafe fn groups<V: Vector, const SOME: bool>(
        &self,
        rows: Range<usize>,
        values: &[*const u8; N],
        with: &[Constants<V>; N],
        mut valid: [u64; N],
        edges: &mut V::Mask,
    ) {
        let (group, mut first) = (V::rows(W), rows.start);
        while first + group <= rows.end {
            // SAFETY: the caller promises the CPU, and the values and places of these rows.
            unsafe {
                let mut columns = [V::splat::<W>(0); N];
                for lane in 0..N {
                    let v = V::load::<W>(values[lane].add(first * W));
                    columns[lane] = with[lane].code::<W, NULLS, SOME>(v, valid[lane], edges);
                    if SOME {
                        valid[lane] >>= group;
                    }
                }
                V::store_rows::<W, N, _>(columns, self.places.behind(first), self.out);
            }
            first += group;
        }
    }
}

/// The constants of a lane in every number of a register.
#[derive(Clone, Copy)]
pub(super) struct Constants<V: Vector> {
    flip: V,
    float: V,
    delta: V,
    null: V,
    /// The two values without a code of this width.
    edges: [V; 2],
    longer: V,
    escapes: V::Mask,
    order: V::Order,
}

impl<V: Vector> Constants<V> {
    /// # Safety
    /// The CPU has the instruction set of `V`.
    #[inline(always)]
    pub(super) unsafe fn of<const W: usize>(code: &Code) -> Self {
        // Sign extension to 16 bytes preserves 0, 1 and the greatest numbers.
        let (flip, edge) = (widened::<W>(code), code.edge as i64 as i128);
        // SAFETY: the caller promises the instruction set of `V`.
        unsafe {
            Self {
                flip: V::splat::<W>(flip),
                float: V::splat::<W>(code.float.into()),
                delta: V::splat::<W>(number::<W>(code.delta as i64)),
                null: V::splat::<W>(number::<W>(code.null as i64)),
                edges: [
                    V::splat::<W>(number::<W>(code.edge as i64)),
                    V::splat::<W>(kept::<W>(edge.wrapping_add(1) as u128)),
                ],
                longer: V::splat::<W>(number::<W>(code.longer as i64)),
                escapes: V::mask::<W>(if code.escapes { u64::MAX } else { 0 }),
                order: V::order::<W>(code.big && cfg!(target_endian = "little")),
            }
        }
    }

    /// Returns the codes of values; `edges` collects `valid` values without a code. `ESCAPE` if
    /// values may have no code; `NULLS` if not all values are valid.
    ///
    /// # Safety
    /// The CPU has the instruction set of `V`.
    #[inline(always)]
    pub(super) unsafe fn code<const W: usize, const ESCAPE: bool, const NULLS: bool>(
        &self,
        value: V,
        valid: u64,
        edges: &mut V::Mask,
    ) -> V {
        // SAFETY: the caller promises the instruction set of `V`.
        unsafe {
            let mut v = value.turned::<W>(self.float).xor(self.flip);
            let mut edge = V::mask::<W>(0);
            if ESCAPE {
                v = v.add::<W>(self.delta);
                edge = v.is_either::<W>(self.edges) & self.escapes;
            }
            if NULLS {
                let valid = V::mask::<W>(valid);
                edge = edge & valid;
                v = V::select::<W>(valid, v, self.null);
            }
            if ESCAPE {
                *edges = *edges | edge;
            }
            v.ordered::<W>(self.order)
        }
    }

    /// Returns the values of codes, with nulls as zeros, and the mask of nulls; `longer` collects
    /// codes longer than the width.
    ///
    /// # Safety
    /// The CPU has the instruction set of `V`.
    #[inline(always)]
    pub(super) unsafe fn value<const W: usize, const NULLS: bool>(
        &self,
        code: V,
        longer: &mut V::Mask,
    ) -> (V, V::Mask) {
        // SAFETY: the caller promises the instruction set of `V`.
        unsafe {
            let mut v = code.ordered::<W>(self.order);
            let mut null = V::mask::<W>(0);
            if NULLS {
                null = v.equal::<W>(self.null) & self.escapes;
                *longer = *longer | (v.equal::<W>(self.longer) & self.escapes);
                v = v.sub::<W>(self.delta);
            }
            v = v.xor(self.flip).turned::<W>(self.float);
            if NULLS {
                v = V::select::<W>(null, V::splat::<W>(0), v);
            }
            (v, null)
        }
    }
}

/// Returns the low `W` bytes.
#[inline(always)]
fn kept<const W: usize>(number: u128) -> u128 {
    number & (u128::MAX >> (128 - 8 * W))
}

/// Sign-extends or truncates 64 bits to a number of `W` bytes.
#[inline(always)]
fn number<const W: usize>(low: i64) -> u128 {
    kept::<W>(i128::from(low) as u128)
}

/// Returns the mask that complements a value. For 16 bytes the code has the upper half; the lower
/// half is complemented with it.
#[inline(always)]
fn widened<const W: usize>(code: &Code) -> u128 {
    if W < 16 {
        return code.flip.into();
    }
    let low = 0u64.wrapping_sub(code.flip & 1);
    u128::from(code.flip) << 64 | u128::from(low)
}
