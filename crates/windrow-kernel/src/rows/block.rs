//! Blocks of sixteen bytes, the unit in which strings are moved.
//!
//! The vector code needs only instructions of every x86-64 CPU, so it inlines into the loops over
//! strings. From the same code in Rust the compiler makes single bytes, five times slower for
//! decoding. Each function has a portable twin.

/// Bytes of a block.
pub const BLOCK: usize = 16;

/// Sixteen bytes.
pub type Block = [u8; BLOCK];

/// Adds `add` to each byte and then complements the bits of `flip`.
#[inline(always)]
pub fn sum(block: Block, add: u8, flip: u8) -> Block {
    #[cfg(target_arch = "x86_64")]
    return sse2::sum(block, add, flip);
    #[cfg(not(target_arch = "x86_64"))]
    portable::sum(block, add, flip)
}

/// Returns the first `len` bytes of `block`, followed by bytes of `behind`.
#[inline(always)]
pub fn first(block: Block, behind: Block, len: usize) -> Block {
    #[cfg(target_arch = "x86_64")]
    return sse2::first(block, behind, len);
    #[cfg(not(target_arch = "x86_64"))]
    portable::first(block, behind, len)
}

/// Returns a bit for each byte: set if the byte, XORed with `flip`, is below 2.
#[inline(always)]
pub fn ends(block: Block, flip: u8) -> u32 {
    up_to(sum(block, 0, flip), 1)
}

/// Returns a bit for each byte: set if the byte is at most `most`.
#[inline(always)]
pub(crate) fn up_to(block: Block, most: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    return sse2::up_to(block, most);
    #[cfg(not(target_arch = "x86_64"))]
    portable::up_to(block, most)
}

/// Returns the sixteen bytes of `bytes` from `at` on.
#[inline(always)]
pub(crate) fn block_at(bytes: &[u8], at: usize) -> Block {
    *bytes[at..].first_chunk().expect("a block")
}

/// Returns a bit for each byte: set if the byte is `byte`.
#[inline(always)]
pub fn equal(block: Block, byte: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    return sse2::equal(block, byte);
    #[cfg(not(target_arch = "x86_64"))]
    portable::equal(block, byte)
}

/// Interleaves groups of `OF` bytes (1, 2 or 4) of both blocks: their first halves, then their
/// second halves.
#[inline(always)]
pub fn joined<const OF: usize>(a: Block, b: Block) -> [Block; 2] {
    #[cfg(target_arch = "x86_64")]
    return sse2::joined::<OF>(a, b);
    #[cfg(not(target_arch = "x86_64"))]
    portable::joined::<OF>(a, b)
}

/// Returns a byte for each bit: all ones if the bit is set, else zero.
#[inline(always)]
pub fn spread(bits: u16) -> Block {
    #[cfg(target_arch = "x86_64")]
    return sse2::spread(bits);
    #[cfg(not(target_arch = "x86_64"))]
    portable::spread(bits)
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::*;

    use crate::rows::block::{BLOCK, Block};

    #[inline(always)]
    fn load(block: Block) -> __m128i {
        // SAFETY: both types have sixteen bytes and any bit pattern is valid.
        unsafe { std::mem::transmute::<Block, __m128i>(block) }
    }

    #[inline(always)]
    fn store(block: __m128i) -> Block {
        // SAFETY: both types have sixteen bytes and any bit pattern is valid.
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
    pub(super) fn up_to(block: Block, most: u8) -> u32 {
        let block = load(block);
        // SAFETY: SSE2 is part of the architecture.
        unsafe {
            let low = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(most as i8)), block);
            _mm_movemask_epi8(low) as u32
        }
    }

    #[inline(always)]
    pub(super) fn equal(block: Block, byte: u8) -> u32 {
        // SAFETY: SSE2 is part of the architecture.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(load(block), _mm_set1_epi8(byte as i8))) as u32 }
    }

    #[inline(always)]
    pub(super) fn joined<const OF: usize>(a: Block, b: Block) -> [Block; 2] {
        let (a, b) = (load(a), load(b));
        // SAFETY: SSE2 is part of the architecture.
        let (low, high) = unsafe {
            match OF {
                1 => (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)),
                2 => (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)),
                _ => (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)),
            }
        };
        [store(low), store(high)]
    }

    #[inline(always)]
    pub(super) fn spread(bits: u16) -> Block {
        // SAFETY: SSE2 is part of the architecture.
        unsafe {
            // Repeats each of the two bytes eight times; each copy keeps one bit.
            let bytes = _mm_cvtsi32_si128(bits.into());
            let words = _mm_shufflelo_epi16::<0b01_01_00_00>(_mm_unpacklo_epi8(bytes, bytes));
            let own = _mm_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
            let each = _mm_and_si128(_mm_shuffle_epi32::<0b01_01_00_00>(words), own);
            store(_mm_cmpeq_epi8(each, own))
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use crate::rows::block::{BLOCK, Block};

    pub(super) fn sum(block: Block, add: u8, flip: u8) -> Block {
        block.map(|byte| byte.wrapping_add(add) ^ flip)
    }

    pub(super) fn first(block: Block, behind: Block, len: usize) -> Block {
        std::array::from_fn(|at| if at < len { block[at] } else { behind[at] })
    }

    pub(super) fn up_to(block: Block, most: u8) -> u32 {
        let bits = block.iter().enumerate();
        bits.fold(0, |bits, (at, byte)| bits | u32::from(*byte <= most) << at)
    }

    pub(super) fn equal(block: Block, byte: u8) -> u32 {
        let bits = block.iter().enumerate();
        bits.fold(0, |bits, (at, own)| bits | u32::from(*own == byte) << at)
    }

    pub(super) fn joined<const OF: usize>(a: Block, b: Block) -> [Block; 2] {
        [0, BLOCK / 2].map(|half| {
            std::array::from_fn(|at| {
                let (group, byte) = (at / OF, at % OF);
                let of = if group.is_multiple_of(2) { &a } else { &b };
                of[half + group / 2 * OF + byte]
            })
        })
    }

    pub(super) fn spread(bits: u16) -> Block {
        std::array::from_fn(|at| if bits >> at & 1 == 1 { 0xff } else { 0 })
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use crate::rows::block::*;

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
                prop_assert_eq!(sse2::up_to(block, add), portable::up_to(block, add));
                prop_assert_eq!(sse2::up_to(block, 1), portable::up_to(block, 1));
                prop_assert_eq!(sse2::equal(block, add % 4), portable::equal(block, add % 4));
            }
            for (one, other) in [
                (sse2::joined::<1>(block, behind), portable::joined::<1>(block, behind)),
                (sse2::joined::<2>(block, behind), portable::joined::<2>(block, behind)),
                (sse2::joined::<4>(block, behind), portable::joined::<4>(block, behind)),
            ] {
                prop_assert_eq!(one, other);
            }
            let bits = u16::from_le_bytes([add, flip]);
            prop_assert_eq!(sse2::spread(bits), portable::spread(bits));
        }
    }
}
