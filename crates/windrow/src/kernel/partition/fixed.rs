//! Columns of fixed width in a new order.

/// The row that comes at a place.
pub(crate) trait Place: Copy {
    fn new(row: usize) -> Self;
    fn row(self) -> usize;
}

impl Place for u16 {
    #[inline(always)]
    fn new(row: usize) -> Self {
        row as Self
    }

    #[inline(always)]
    fn row(self) -> usize {
        self.into()
    }
}

impl Place for u32 {
    #[inline(always)]
    fn new(row: usize) -> Self {
        row as Self
    }

    #[inline(always)]
    fn row(self) -> usize {
        self as usize
    }
}

/// Writes `source[place]` for each place to `out`. Eight at a time, so that loads overlap.
///
/// # Safety
/// Places are below the length of `source`; `out` is as long as `places`.
#[inline(always)]
pub(super) unsafe fn gather<const W: usize, P: Place>(
    source: &[[u8; W]],
    places: &[P],
    out: &mut [[u8; W]],
) {
    debug_assert_eq!(places.len(), out.len());
    debug_assert!(places.iter().all(|place| place.row() < source.len()));
    let (blocks, rest) = places.as_chunks::<8>();
    let (out_blocks, out_rest) = out.as_chunks_mut::<8>();
    // SAFETY: the caller promises that places are below the length of `source`.
    unsafe {
        for (places, out) in blocks.iter().zip(out_blocks) {
            *out = places.map(|place| *source.get_unchecked(place.row()));
        }
        for (place, out) in rest.iter().zip(out_rest) {
            *out = *source.get_unchecked(place.row());
        }
    }
}

/// As [`gather`], of values of any width.
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
        crate::kernel::copy::copy_short(out, &source[at..at + width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathers_of_any_width_agree() {
        let source: Vec<u8> = (0..16 * 300).map(|i| (i * 7 % 251) as u8).collect();
        let places: Vec<u16> = (0..300).map(|i| i * 77 % 300).collect();
        fn check<const W: usize>(source: &[u8], places: &[u16]) {
            let (source, _) = source.as_chunks::<W>();
            let mut out = vec![[0; W]; places.len()];
            // SAFETY: places are below 300, `out` is as long as they are.
            unsafe { gather(source, places, &mut out) };
            let mut any = vec![0; places.len() * W];
            gather_any(source.as_flattened(), W, places, &mut any);
            assert_eq!(out.as_flattened(), any);
            let wide: Vec<u32> = places.iter().map(|&place| place.into()).collect();
            let mut again = vec![[0; W]; places.len()];
            // SAFETY: as above.
            unsafe { gather(source, &wide, &mut again) };
            assert_eq!(out, again);
            assert!(out.iter().zip(places).all(|(v, p)| *v == source[p.row()]));
        }
        for len in [0, 1, 7, 8, 9, 300] {
            check::<1>(&source, &places[..len]);
            check::<4>(&source, &places[..len]);
            check::<12>(&source, &places[..len]);
            check::<16>(&source, &places[..len]);
        }
    }
}
