//! Heads of strings: words to sort made of their first bytes.

use std::arch::x86_64::*;

use super::super::heads::{PackHeads, Strings};
use super::GROUP;

/// Loads eight heads at a time.
#[derive(Clone, Copy)]
struct Heads<'a> {
    strings: Strings<'a>,
    /// Bytes before each head.
    depth: __m512i,
    /// Start of the last eight bytes of the data.
    last: __m512i,
    /// Shuffle to big-endian order.
    order: __m512i,
}

impl<'a> Heads<'a> {
    /// Creates the loader. Returns `None` if the data have fewer than eight bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(strings: Strings<'a>, depth: usize) -> Option<Self> {
        let last = strings.data.len().checked_sub(GROUP)?;
        let order = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
        Some(Self {
            strings,
            depth: _mm512_set1_epi64(depth as i64),
            last: _mm512_set1_epi64(last as i64),
            order: _mm512_broadcast_i32x4(order),
        })
    }

    /// Returns the first bytes of eight strings from `at` on, with the bytes after them in the
    /// buffer, and a mask of ones for the latter. Returns `None` if eight bytes of a head are not
    /// readable.
    ///
    /// # Safety
    /// The strings have nine offsets from `at` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn load(&self, at: usize) -> Option<(__m512i, __m512i)> {
        // SAFETY: the caller promises nine offsets from `at` on. Reads of the data begin at `last`
        // at the latest.
        unsafe {
            let offsets = self.strings.offsets.as_ptr().add(at);
            let start = _mm512_cvtepi32_epi64(_mm256_loadu_si256(offsets.cast()));
            let end = _mm512_cvtepi32_epi64(_mm256_loadu_si256(offsets.add(1).cast()));
            let from = _mm512_min_epi64(_mm512_add_epi64(start, self.depth), end);
            if _mm512_cmple_epu64_mask(from, self.last) != 0xff {
                return None;
            }
            let left =
                _mm512_min_epi64(_mm512_sub_epi64(end, from), _mm512_set1_epi64(GROUP as i64));
            let behind = _mm512_srlv_epi64(_mm512_set1_epi64(-1), _mm512_slli_epi64::<3>(left));
            let bytes = _mm512_i64gather_epi64::<1>(from, self.strings.data.as_ptr().cast());
            Some((_mm512_shuffle_epi8(bytes, self.order), behind))
        }
    }
}

/// Packs heads as `pack_heads` of the module does, for whole groups of strings, as long as eight
/// bytes of each are readable. Returns their number.
///
/// Benefit: 2.8x the portable twin, which is a fifth of a sort of 8,192 strings.
///
/// # Safety
/// The CPU has AVX-512 F and BW. There are more offsets than words.
#[target_feature(enable = "avx512f,avx512bw")]
pub(in crate::rows) unsafe fn pack_heads(
    strings: Strings<'_>,
    with: PackHeads,
    words: &mut [u64],
) -> usize {
    let Some(heads) = Heads::new(strings, with.depth) else { return 0 };
    let every = |constant: u64| _mm512_set1_epi64(constant as i64);
    let (flip, most) = (every(with.flip), every(GROUP as u64));
    let dropped = _mm_cvtsi32_si128(with.dropped as i32);
    let width = _mm_cvtsi32_si128(with.width as i32);
    let (shift, kept) = with.place.map_or((0, 0), |shift| (shift, u64::MAX));
    let (shift, kept) = (_mm_cvtsi32_si128(shift as i32), every(kept));
    let mut places = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    let end = words.len() / GROUP * GROUP;
    for at in (0..end).step_by(GROUP) {
        // SAFETY: there are nine offsets and eight words from `at` on.
        unsafe {
            let Some((head, behind)) = heads.load(at) else { return at };
            let v = _mm512_andnot_si512(behind, head);
            let v = _mm512_srl_epi64(_mm512_xor_si512(v, flip), dropped);
            let word: *mut __m512i = words.as_mut_ptr().add(at).cast();
            let v =
                _mm512_or_si512(_mm512_sll_epi64(_mm512_loadu_si512(word.cast_const()), width), v);
            let place = _mm512_and_si512(places, kept);
            _mm512_storeu_si512(word, _mm512_or_si512(_mm512_sll_epi64(v, shift), place));
        }
        places = _mm512_add_epi64(places, most);
    }
    end
}
