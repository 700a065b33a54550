//! Brings columns of fixed width into a new order.
//!
//! ```text
//! gather    out[k] = source[places[k]]      reads from anywhere, writes in order
//! scatter   out[targets[row]] = source[row] reads in order, writes anywhere
//! ```

/// A gather or scatter index: the row at a place, or the target of a row.
pub(crate) trait Place: Copy {
    fn row(self) -> usize;

    /// Returns four rows with as few loads as possible: loads limit moves.
    fn rows(four: &[Self; 4]) -> [usize; 4];
}

impl Place for u16 {
    #[inline(always)]
    fn row(self) -> usize {
        self.into()
    }

    #[inline(always)]
    fn rows(four: &[Self; 4]) -> [usize; 4] {
        // SAFETY: four places are eight bytes, and the load is unaligned. A number built from four
        // places would be split again by the compiler.
        let all = unsafe { four.as_ptr().cast::<u64>().read_unaligned() }.to_le();
        [0, 16, 32, 48].map(|shift| (all >> shift) as u16 as usize)
    }
}

impl Place for u32 {
    #[inline(always)]
    fn row(self) -> usize {
        self as usize
    }

    #[inline(always)]
    fn rows(four: &[Self; 4]) -> [usize; 4] {
        four.map(Self::row)
    }
}

/// Writes `source[place]` for each place to `out`. Four at a time, so that loads overlap.
///
/// # Safety
/// Places are below the length of `source`, and `out` is as long as `places`.
#[inline(always)]
pub(super) unsafe fn gather<const W: usize, P: Place>(
    source: &[[u8; W]],
    places: &[P],
    out: &mut [[u8; W]],
) {
    debug_assert_eq!(places.len(), out.len());
    debug_assert!(places.iter().all(|place| place.row() < source.len()));
    let (blocks, rest) = places.as_chunks::<4>();
    let (out_blocks, out_rest) = out.as_chunks_mut::<4>();
    let from = source.as_ptr();
    // SAFETY: the caller promises that places are below the length of `source`.
    unsafe {
        for (places, out) in blocks.iter().zip(out_blocks) {
            // Through pointers: a copy through a local would be split into bytes.
            for (row, out) in P::rows(places).into_iter().zip(out) {
                from.add(row).copy_to_nonoverlapping(out, 1);
            }
        }
        for (place, out) in rest.iter().zip(out_rest) {
            *out = *source.get_unchecked(place.row());
        }
    }
}

/// Writes each value of `source` to `out[target]`.
///
/// # Safety
/// Targets are below the length of `out`, and `source` is as long as `targets`.
#[inline(always)]
pub(super) unsafe fn scatter<const W: usize>(
    source: &[[u8; W]],
    targets: &[u16],
    out: &mut [[u8; W]],
) {
    debug_assert_eq!(targets.len(), source.len());
    debug_assert!(targets.iter().all(|&target| usize::from(target) < out.len()));
    let (blocks, rest) = targets.as_chunks::<4>();
    let (source_blocks, source_rest) = source.as_chunks::<4>();
    let to = out.as_mut_ptr();
    // SAFETY: the caller promises that targets are below the length of `out`.
    unsafe {
        for (targets, values) in blocks.iter().zip(source_blocks) {
            for (target, value) in u16::rows(targets).into_iter().zip(values) {
                to.add(target).copy_from_nonoverlapping(value, 1);
            }
        }
        for (target, value) in rest.iter().zip(source_rest) {
            *out.get_unchecked_mut(usize::from(*target)) = *value;
        }
    }
}

/// Gathers as [`gather`] does, for values of any width.
///
/// # Panics
/// If a place is outside of `source`, or `out` is not `places.len()` values long.
pub(super) fn gather_any<P: Place>(source: &[u8], width: usize, places: &[P], out: &mut [u8]) {
    if width == 0 {
        return;
    }
    assert_eq!(places.len() * width, out.len());
    for (place, out) in places.iter().zip(out.chunks_exact_mut(width)) {
        let at = place.row() * width;
        crate::copy::copy_short(out, &source[at..at + width]);
    }
}
