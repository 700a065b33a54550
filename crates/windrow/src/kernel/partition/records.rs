//! Several columns of numbers as records, so that a row is put where it goes once.
//!
//! ```text
//! a  a0 a1 a2 ..                                  row 2 | a2 b2 c2 d2 |            a  a2 a0 ..
//! b  b0 b1 b2 ..   --transpose, put to targets--> row 0 | a0 b0 c0 d0 | --back-->  b  b2 b0 ..
//! c  c0 c1 c2 ..                                        |     ..      |            c  c2 c0 ..
//! ```
//!
//! What bounds a scatter is a store for each value, of which CPUs retire one a cycle, and with many
//! partitions a line for each that is not in the first-level cache. Four columns as records take
//! one store and one line for all of them; rows are transposed in registers on the way in, and on
//! the way out, where stores are of whole registers. Values of four bytes take 0.16 ns instead of
//! 0.3, with two columns 0.22. Those of eight take 0.33 to 0.39, and a scatter 0.32 with 16
//! partitions, 0.48 with 1024.
//!
//! Records of eight columns are no faster, since they fill the cache; nor are those of two columns
//! of eight bytes, or of any of 16, since the way out costs what the way in saves. See
//! `docs/decisions/017-what-bounds-a-split.md`.
//!
//! AVX2 will do. The portable twin is a scatter of each column.

use std::arch::x86_64::*;

use super::fixed::Place;

/// Bytes of a register, at whose multiples records start: a store that crosses one takes twice as
/// long.
const REGISTER: usize = 32;

/// Brings two, three or four columns of `W` bytes a value into order by way of `transit`: value `i`
/// comes at `targets[i]`.
///
/// # Safety
/// The CPU has AVX2; targets are below their number; `W` is 4, or 8 and there are more than two
/// columns.
///
/// # Panics
/// If a column is too short.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn arrange<const N: usize, const W: usize>(
    from: [&[u8]; N],
    to: [&mut [u8]; N],
    targets: &[u16],
    transit: &mut Vec<u8>,
) {
    let rows = targets.len();
    let size = if N == 2 { 2 * W } else { 4 * W };
    debug_assert!(W == 4 || W == 8 && N > 2);
    assert!(from.iter().all(|from| from.len() >= rows * W));
    assert!(to.iter().all(|to| to.len() >= rows * W));
    debug_assert!(targets.iter().all(|&target| usize::from(target) < rows));
    if transit.len() < rows * size + REGISTER {
        transit.resize(rows * size + REGISTER, 0);
    }
    let lead = transit.as_ptr().align_offset(REGISTER).min(REGISTER);
    let from = from.map(<[u8]>::as_ptr);
    let to = to.map(<[u8]>::as_mut_ptr);
    let records = transit[lead..].as_mut_ptr();
    // A register of each column.
    let step = REGISTER / W;
    let whole = rows / step * step;
    for (block, targets) in targets.chunks_exact(step).enumerate() {
        let fours = targets.as_chunks::<4>().0;
        let at = |k: usize| records.wrapping_add(u16::rows(&fours[k / 4])[k % 4] * size);
        // SAFETY: rows and targets are below `rows`, of which columns and records have as many.
        unsafe {
            let from = from.map(|from| from.add(block * REGISTER));
            if W == 4 { put_eight(from, at) } else { put_four(from, at) }
        }
    }
    for (row, target) in targets.iter().enumerate().skip(whole) {
        for (column, from) in from.iter().enumerate() {
            let at = usize::from(*target) * size + column * W;
            // SAFETY: as above.
            unsafe { records.add(at).copy_from_nonoverlapping(from.add(row * W), W) };
        }
    }
    for row in (0..whole).step_by(step) {
        // SAFETY: as above.
        unsafe {
            let (records, to) = (records.add(row * size), to.map(|to| to.add(row * W)));
            if W == 4 { take_eight(records, to) } else { take_four(records, to) }
        }
    }
    for row in whole..rows {
        for (column, to) in to.iter().enumerate() {
            let at = row * size + column * W;
            // SAFETY: as above.
            unsafe { to.add(row * W).copy_from_nonoverlapping(records.add(at), W) };
        }
    }
}

/// Writes the next eight values of four bytes of all columns to the records that `at` says.
///
/// # Safety
/// The CPU has AVX2; there are eight values at each of `from`, and a record at what `at` gives.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn put_eight<const N: usize>(from: [*const u8; N], at: impl Fn(usize) -> *mut u8) {
    // With three columns, the third is the fourth as well: nobody looks there.
    // SAFETY: eight values are a register.
    let load = |column: usize| unsafe { _mm256_loadu_si256(from[column.min(N - 1)].cast()) };
    if N == 2 {
        let (a, b) = (load(0), load(1));
        let four = [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)];
        for (k, four) in four.into_iter().enumerate() {
            let (front, back) = (_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four));
            for (k, two) in [(2 * k, front), (2 * k + 4, back)] {
                // SAFETY: a record is eight bytes.
                unsafe {
                    at(k).cast::<i64>().write_unaligned(_mm_cvtsi128_si64(two));
                    at(k + 1).cast::<i64>().write_unaligned(_mm_extract_epi64::<1>(two));
                }
            }
        }
        return;
    }
    for (k, two) in transposed([load(0), load(1), load(2), load(3)]).into_iter().enumerate() {
        // SAFETY: a record is 16 bytes.
        unsafe {
            _mm_storeu_si128(at(k).cast(), _mm256_castsi256_si128(two));
            _mm_storeu_si128(at(k + 4).cast(), _mm256_extracti128_si256::<1>(two));
        }
    }
}

/// Writes the values of eight records to all columns: undoes [`put_eight`].
///
/// # Safety
/// The CPU has AVX2; there are eight records, and room for eight values at each of `to`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn take_eight<const N: usize>(records: *const u8, to: [*mut u8; N]) {
    // SAFETY: eight values are a register.
    let store = |column: usize, values: __m256i| unsafe {
        _mm256_storeu_si256(to[column].cast(), values);
    };
    // Two halves of a register.
    let load = |low: usize, high: usize| {
        // SAFETY: eight records are 128 bytes, or 64.
        unsafe {
            let low = _mm_loadu_si128(records.add(low * 16).cast());
            let high = _mm_loadu_si128(records.add(high * 16).cast());
            _mm256_set_m128i(high, low)
        }
    };
    if N == 2 {
        let (a, b) = (_mm256_castsi256_ps(load(0, 1)), _mm256_castsi256_ps(load(2, 3)));
        let columns = [_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xdd>(a, b)];
        for (column, values) in columns.into_iter().enumerate() {
            store(column, _mm256_permute4x64_epi64::<0xd8>(_mm256_castps_si256(values)));
        }
        return;
    }
    let columns = transposed([load(0, 4), load(1, 5), load(2, 6), load(3, 7)]);
    for (column, values) in columns.into_iter().enumerate().take(N) {
        store(column, values);
    }
}

/// Each half of the registers as a matrix of four by four, transposed.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
    let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// Writes the next four values of eight bytes of all columns to the records that `at` says.
///
/// # Safety
/// The CPU has AVX2; there are four values at each of `from`, and a record, at a multiple of its
/// size, at what `at` gives.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn put_four<const N: usize>(from: [*const u8; N], at: impl Fn(usize) -> *mut u8) {
    // With three columns, the third is the fourth as well: nobody looks there.
    // SAFETY: four values are a register.
    let load = |column: usize| unsafe { _mm256_loadu_si256(from[column.min(N - 1)].cast()) };
    let (a, b, c, d) = (load(0), load(1), load(2), load(3));
    let front = [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)];
    let back = [_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d)];
    for (k, (front, back)) in front.into_iter().zip(back).enumerate() {
        let low = _mm256_inserti128_si256::<1>(front, _mm256_castsi256_si128(back));
        let high = _mm256_permute2x128_si256::<0x31>(front, back);
        // SAFETY: a record is 32 bytes.
        unsafe {
            _mm256_store_si256(at(k).cast(), low);
            _mm256_store_si256(at(k + 2).cast(), high);
        }
    }
}

/// Writes the values of four records to all columns: undoes [`put_four`].
///
/// # Safety
/// The CPU has AVX2; there are four records at a multiple of their size, and room for four values at
/// each of `to`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn take_four<const N: usize>(records: *const u8, to: [*mut u8; N]) {
    for pair in 0..2 {
        let half = |record: usize| {
            // SAFETY: half of one of four records.
            unsafe { _mm_load_si128(records.add(record * 32 + pair * 16).cast()) }
        };
        let even = _mm256_set_m128i(half(2), half(0));
        let odd = _mm256_set_m128i(half(3), half(1));
        let columns = [_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd)];
        for (to, values) in to.iter().skip(pair * 2).zip(columns) {
            // SAFETY: four values are a register.
            unsafe { _mm256_storeu_si256(to.cast(), values) };
        }
    }
}
