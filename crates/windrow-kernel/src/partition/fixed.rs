//! Brings columns of fixed width into a new order.
//!
//! ```text
//! gather    out[k] = source[places[k]]      reads from anywhere, writes in order
//! scatter   out[targets[row]] = source[row] reads in order, writes anywhere
//! ```

/// A gather or scatter index: the row at a place, or the target of a row.
pub(crate) trait Place: Copy {
    fn row(self) -> usize;
}

impl Place for u16 {
    #[inline(always)]
    fn row(self) -> usize {
        self.into()
    }
}

impl Place for u32 {
    #[inline(always)]
    fn row(self) -> usize {
        self as usize
    }
}

/// Writes `source[place]` for each place to `out`.
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
    for (place, out) in places.iter().zip(out) {
        // SAFETY: the caller promises that places are below the length of `source`.
        // Through pointers: a copy through a local would be split into bytes.
        unsafe { source.as_ptr().add(place.row()).copy_to_nonoverlapping(out, 1) };
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
    let to = out.as_mut_ptr();
    for (target, value) in targets.iter().zip(source) {
        // SAFETY: the caller promises that targets are below the length of `out`.
        unsafe { to.add(target.row()).copy_from_nonoverlapping(value, 1) };
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
