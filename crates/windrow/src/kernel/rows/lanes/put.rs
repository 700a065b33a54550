//! Columns to rows.

use std::ops::Range;

use super::lane::{Code, Lane};
use super::places::{Anywhere, Places, check_bounds};
use super::vector::{Kernel, Level, Vector};

/// Rows of a word of validity bits.
const WORD: usize = 64;

/// Adjacent columns of one width, for some number of rows.
///
/// Invariant: each lane holds a value, and a validity bit if it has any, for each row.
#[derive(Debug)]
pub(crate) struct Lanes<'a> {
    lanes: Vec<Lane<'a>>,
    width: usize,
    rows: usize,
}

impl<'a> Lanes<'a> {
    /// Columns of `width` bytes: 4, 8, or 16, where a code for 64 bits is that of the upper half.
    ///
    /// # Panics
    /// If a lane does not hold `rows` values.
    pub(crate) fn new(lanes: Vec<Lane<'a>>, width: usize, rows: usize) -> Self {
        assert!(matches!(width, 4 | 8 | 16), "numbers of 4, 8 or 16 bytes");
        let bytes = rows.checked_mul(width).expect("rows fit the address space");
        for lane in &lanes {
            assert!(lane.values.len() >= bytes, "a lane holds a value for each row");
            assert!(lane.valid.is_none_or(|bits| bits.holds(rows)), "a bit for each row");
        }
        Self { lanes, width, rows }
    }

    /// Bytes that they take in a row.
    pub(crate) fn bytes(&self) -> usize {
        self.lanes.len() * self.width
    }
}

/// Writes adjacent columns for the rows `rows`; the columns of the first of them begin at
/// `places.place(0)`. True if a value has no code of its width: the rows are then wrong.
///
/// # Panics
/// If a place lies outside of `out`, or a row outside of the lanes.
pub(crate) fn put<P: Places>(
    lanes: &Lanes<'_>,
    rows: Range<usize>,
    places: P,
    out: &mut [u8],
) -> bool {
    assert!(rows.start <= rows.end && rows.end <= lanes.rows, "lanes hold a value for each row");
    check_bounds(lanes.bytes(), rows.len(), places, out.len());
    let (places, out, level) = (places.anywhere(), out.as_mut_ptr(), Level::detected());
    // SAFETY: lanes hold the rows, whose places were checked; the level was detected.
    unsafe {
        match lanes.width {
            4 => put_of::<4>(&lanes.lanes, rows, places, out, level),
            8 => put_of::<8>(&lanes.lanes, rows, places, out, level),
            _ => put_of::<16>(&lanes.lanes, rows, places, out, level),
        }
    }
}

/// As [`put`], of lanes of `W` bytes, by a level.
///
/// # Safety
/// The level was detected; lane `i` of the `n`th of `rows` lies within `out` at `places.place(n) + i * W`; each lane
/// holds values and validity bits of all `rows`.
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
            // SAFETY: as this function's.
            escaped |= unsafe { put_block::<W, $count>(block, rows.clone(), places, out, level) };
            (lanes, places) = (behind, places.shifted($count * W));
        }};
    }
    while !lanes.is_empty() {
        match level.columns(lanes.len(), W) {
            8 if const { W == 8 } => block!(8),
            4.. => block!(4),
            2 => block!(2),
            _ => block!(1),
        }
    }
    escaped
}

/// # Safety
/// As [`put_of`], of a block.
unsafe fn put_block<const W: usize, const N: usize>(
    lanes: &[Lane<'_>; N],
    rows: Range<usize>,
    places: Anywhere<'_>,
    out: *mut u8,
    level: Level,
) -> bool {
    let escapes = lanes.iter().any(|lane| lane.code.escapes);
    // A column alone is stored number by number, and only a number of its own is added to if it is of 16 bytes.
    let alone = N == 1 && places.stride() != Some(W);
    let few = rows.len() < level.rows(W);
    let level = if alone || few || (escapes && W == 16) { Level::Portable } else { level };
    // SAFETY: as this function's.
    unsafe {
        match escapes || lanes.iter().any(|lane| lane.valid.is_some()) {
            false => level.run(Put::<'_, W, N, false> { lanes, rows, places, out }),
            true => level.run(Put::<'_, W, N, true> { lanes, rows, places, out }),
        }
    }
}

/// Writes a block of columns; true if a value has no code of its width. `NULLS` if there may be some, or codes for them.
///
/// Invariant: there are as many rows as in a register of the vectors that it is run by.
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
        // SAFETY: as the trait's: rows of each group are some of these.
        unsafe {
            let mut with = [Constants::<V>::of::<W>(&self.lanes[0].code); N];
            let mut values = [self.lanes[0].values.as_ptr(); N];
            for lane in 0..N {
                with[lane] = Constants::of::<W>(&self.lanes[lane].code);
                values[lane] = self.lanes[lane].values.as_ptr().add(self.rows.start * W);
            }
            let mut edges = V::mask::<W>(0);
            // Without nulls there is nothing to look at in between.
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
                // The last rows, and some once more, where a register is not filled by them.
                let rows = count - group..count;
                let valid = self.valid(rows.start);
                self.groups::<V, NULLS>(rows, &values, &with, valid, &mut edges);
            }
            V::bits::<W>(edges) != 0
        }
    }
}

impl<const W: usize, const N: usize, const NULLS: bool> Put<'_, W, N, NULLS> {
    /// Validity of the rows from `first` on, of each lane.
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

    /// Writes rows by registers, but for those that fill none. `SOME` if not all are `valid`.
    ///
    /// # Safety
    /// As [`Kernel::run`]; they are some of these rows.
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
            // SAFETY: as this function's.
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
    /// The two values that have no code of this width.
    edges: [V; 2],
    longer: V,
    escapes: V::Mask,
    order: V::Order,
}

impl<V: Vector> Constants<V> {
    /// # Safety
    /// As [`Vector`]'s.
    #[inline(always)]
    pub(super) unsafe fn of<const W: usize>(code: &Code) -> Self {
        // What is 0 or 1, or one of the greatest numbers, is that of 16 bytes too.
        let (flip, edge) = (widened::<W>(code), code.edge as i64 as i128);
        // SAFETY: as this function's.
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

    /// Codes of values; `edges` collects those that are `valid` and have none. `ESCAPE` if the code may make room for a null's, so
    /// that there may be some; `NULLS` if not all are valid.
    ///
    /// # Safety
    /// As [`Vector`]'s.
    #[inline(always)]
    pub(super) unsafe fn code<const W: usize, const ESCAPE: bool, const NULLS: bool>(
        &self,
        value: V,
        valid: u64,
        edges: &mut V::Mask,
    ) -> V {
        // SAFETY: as this function's.
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

    /// Values of codes, a null as zero, and which are null; `longer` collects codes that are longer.
    ///
    /// # Safety
    /// As [`Vector`]'s.
    #[inline(always)]
    pub(super) unsafe fn value<const W: usize, const NULLS: bool>(
        &self,
        code: V,
        longer: &mut V::Mask,
    ) -> (V, V::Mask) {
        // SAFETY: as this function's.
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

/// The low `W` bytes.
#[inline(always)]
fn kept<const W: usize>(number: u128) -> u128 {
    number & (u128::MAX >> (128 - 8 * W))
}

/// The number of `W` bytes whose low 64 bits are these, and whose others are like the highest of them.
#[inline(always)]
fn number<const W: usize>(low: i64) -> u128 {
    kept::<W>(i128::from(low) as u128)
}

/// What complements the bits of a value: of 16 bytes the code has those of the upper half, and what complements that
/// complements the lower one too.
#[inline(always)]
fn widened<const W: usize>(code: &Code) -> u128 {
    if W < 16 {
        return code.flip.into();
    }
    let low = 0u64.wrapping_sub(code.flip & 1);
    u128::from(code.flip) << 64 | u128::from(low)
}
