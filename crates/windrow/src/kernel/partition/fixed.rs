//! Columns of fixed width in a new order.
//!
//! Two ways, by what the cache likes: values of up to four bytes are *gathered*, from anywhere to
//! one place after the other; wider ones are *scattered*, read one after the other and put where
//! they go, so that the larger side is read in order.

/// The row that comes at a place, or the place where a row goes.
pub(crate) trait Place: Copy {
    fn row(self) -> usize;

    /// Four rows, by as few loads as there can be: loads are what moves are short of.
    fn rows(four: &[Self; 4]) -> [usize; 4];
}

impl Place for u16 {
    #[inline(always)]
    fn row(self) -> usize {
        self.into()
    }

    #[inline(always)]
    fn rows(four: &[Self; 4]) -> [usize; 4] {
        // SAFETY: four places are eight bytes, at any address. Made of four, compilers would take the
        // number apart again.
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

/// Values from this width on are scattered.
pub(super) const SCATTERED: usize = 8;

/// Writes `source[place]` for each place to `out`. Four at a time, so that loads overlap.
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
    let (blocks, rest) = places.as_chunks::<4>();
    let (out_blocks, out_rest) = out.as_chunks_mut::<4>();
    let from = source.as_ptr();
    // SAFETY: the caller promises that places are below the length of `source`.
    unsafe {
        for (places, out) in blocks.iter().zip(out_blocks) {
            // By pointers: a copy through a local would be taken apart into bytes.
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
/// Targets are below the length of `out`; `source` is as long as `targets`.
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

/// [`scatter`], of two columns: targets are loaded and taken apart once for both. More columns than
/// two take more registers than there are.
///
/// # Safety
/// As [`scatter`], of both.
#[inline(always)]
pub(super) unsafe fn scatter_two<const W: usize>(
    sources: [&[[u8; W]]; 2],
    targets: &[u16],
    outs: [&mut [[u8; W]]; 2],
) {
    debug_assert!(sources.iter().all(|source| source.len() == targets.len()));
    debug_assert!(targets.iter().all(|&t| outs.iter().all(|out| usize::from(t) < out.len())));
    let sources = sources.map(<[[u8; W]]>::as_ptr);
    let outs = outs.map(<[[u8; W]]>::as_mut_ptr);
    let put = |row: usize, target: usize| {
        for (source, out) in sources.into_iter().zip(outs) {
            // SAFETY: the caller promises that targets are below the length of `outs`, and that
            // there are as many values as targets.
            unsafe { out.add(target).copy_from_nonoverlapping(source.add(row), 1) };
        }
    };
    let (blocks, rest) = targets.as_chunks::<4>();
    for (block, targets) in blocks.iter().enumerate() {
        for (k, target) in u16::rows(targets).into_iter().enumerate() {
            put(block * 4 + k, target);
        }
    }
    for (row, target) in (blocks.len() * 4..).zip(rest) {
        put(row, usize::from(*target));
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
    fn gathers_and_scatters_of_any_width_agree() {
        let source: Vec<u8> = (0..16 * 300).map(|i| (i * 7 % 251) as u8).collect();
        fn check<const W: usize>(source: &[u8], len: u16) {
            let places: Vec<u16> = (0..len).map(|i| (i + 3) * 77 % 307 % len).collect();
            let (source, _) = source.as_chunks::<W>();
            let source = &source[..places.len()];
            let mut out = vec![[0; W]; places.len()];
            // SAFETY: places are below `len`, `out` is as long as they are.
            unsafe { gather(source, &places, &mut out) };
            let mut any = vec![0; places.len() * W];
            gather_any(source.as_flattened(), W, &places, &mut any);
            assert_eq!(out.as_flattened(), any);
            let wide: Vec<u32> = places.iter().map(|&place| place.into()).collect();
            let mut again = vec![[0; W]; places.len()];
            // SAFETY: as above.
            unsafe { gather(source, &wide, &mut again) };
            assert_eq!(out, again);
            assert!(out.iter().zip(&places).all(|(v, p)| *v == source[p.row()]));
            let mut expected = out.clone();
            for (value, target) in source.iter().zip(&places) {
                expected[target.row()] = *value;
            }
            // SAFETY: as above.
            unsafe { scatter(source, &places, &mut out) };
            assert_eq!(out, expected);
            let other: Vec<[u8; W]> = source.iter().rev().copied().collect();
            let [mut again, mut others] = [(); 2].map(|()| vec![[0; W]; places.len()]);
            // SAFETY: as above.
            unsafe { scatter_two([source, &other], &places, [&mut again, &mut others]) };
            let mut expected_others = vec![[0; W]; places.len()];
            // SAFETY: as above.
            unsafe { scatter(&other, &places, &mut expected_others) };
            for target in &places {
                assert_eq!(again[target.row()], expected[target.row()]);
                assert_eq!(others[target.row()], expected_others[target.row()]);
            }
        }
        for len in [1, 7, 8, 9, 300] {
            check::<1>(&source, len);
            check::<4>(&source, len);
            check::<8>(&source, len);
            check::<12>(&source, len);
            check::<16>(&source, len);
        }
    }
}
