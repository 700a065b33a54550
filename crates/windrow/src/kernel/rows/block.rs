//! Sixteen bytes at a time: what strings are moved in.
//!
//! Of the instructions that every x86-64 has, so that they are inlined into the loops over strings; the
//! compiler makes single bytes of the same in Rust, which is five times slower for decoding. Each has a
//! portable twin.

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;

/// Sixteen bytes.
pub(crate) type Block = [u8; BLOCK];

/// Each byte plus `add`, and then with the bits of `flip` complemented.
#[inline(always)]
pub(crate) fn sum(block: Block, add: u8, flip: u8) -> Block {
    #[cfg(target_arch = "x86_64")]
    return sse2::sum(block, add, flip);
    #[cfg(not(target_arch = "x86_64"))]
    portable::sum(block, add, flip)
}

/// The first `len` bytes of `block`, and then those of `behind`.
#[inline(always)]
pub(crate) fn first(block: Block, behind: Block, len: usize) -> Block {
    #[cfg(target_arch = "x86_64")]
    return sse2::first(block, behind, len);
    #[cfg(not(target_arch = "x86_64"))]
    portable::first(block, behind, len)
}

/// A bit for each byte: whether it is below 2 once the bits of `flip` are complemented.
#[inline(always)]
pub(crate) fn ends(block: Block, flip: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    return sse2::ends(block, flip);
    #[cfg(not(target_arch = "x86_64"))]
    portable::ends(block, flip)
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::*;

    use super::{BLOCK, Block};

    #[inline(always)]
    fn load(block: Block) -> __m128i {
        // SAFETY: both are sixteen bytes, of which every pattern is a value.
        unsafe { std::mem::transmute::<Block, __m128i>(block) }
    }

    #[inline(always)]
    fn store(block: __m128i) -> Block {
        // SAFETY: both are sixteen bytes, of which every pattern is a value.
        unsafe { std::mem::transmute::<__m128i, Block>(block) }
    }

    #[inline(always)]
    pub(super) fn sum(block: Block, add: u8, flip: u8) -> Block {
        // SAFETY: SSE2 is part of the architecture.
        unsafe {
            let sums = _mm_add_epi8(load(block), _mm_set1_epi8(add as i8));
            store(_mm_xor_si128(sums, _mm_set1_epi8(flip as i8)))
        }
    }

    #[inline(always)]
    pub(super) fn first(block: Block, behind: Block, len: usize) -> Block {
        // SAFETY: SSE2 is part of the architecture.
        unsafe {
            let places = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let own = _mm_cmpgt_epi8(_mm_set1_epi8(len.min(BLOCK) as i8), places);
            let (block, behind) = (load(block), load(behind));
            store(_mm_or_si128(_mm_and_si128(own, block), _mm_andnot_si128(own, behind)))
        }
    }

    #[inline(always)]
    pub(super) fn ends(block: Block, flip: u8) -> u32 {
        // SAFETY: SSE2 is part of the architecture.
        unsafe {
            let bytes = _mm_xor_si128(load(block), _mm_set1_epi8(flip as i8));
            let low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(1)), bytes);
            _mm_movemask_epi8(low) as u32
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::Block;

    pub(super) fn sum(block: Block, add: u8, flip: u8) -> Block {
        block.map(|byte| byte.wrapping_add(add) ^ flip)
    }

    pub(super) fn first(block: Block, behind: Block, len: usize) -> Block {
        std::array::from_fn(|at| if at < len { block[at] } else { behind[at] })
    }

    pub(super) fn ends(block: Block, flip: u8) -> u32 {
        let bits = block.iter().enumerate();
        bits.fold(0, |ends, (at, byte)| ends | u32::from(byte ^ flip < 2) << at)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_do_the_same(block: Block, behind: Block, add: u8, flip: u8, len in 0usize..40) {
            let small = block.map(|byte| byte % 4);
            for (block, flip) in [(block, flip), (small, 0), (small.map(|byte| !byte), 0xff)] {
                prop_assert_eq!(sse2::sum(block, add, flip), portable::sum(block, add, flip));
                prop_assert_eq!(
                    sse2::first(block, behind, len),
                    portable::first(block, behind, len)
                );
                prop_assert_eq!(sse2::ends(block, flip), portable::ends(block, flip));
            }
        }
    }
}
