//! Several columns of four bytes a value as records, so that a row is put where it goes once.
//!
//! ```text
//! a  a0 a1 a2 ..                                  row 2 | a2 b2 c2 d2 |            a  a2 a0 ..
//! b  b0 b1 b2 ..   --transpose, put to targets--> row 0 | a0 b0 c0 d0 | --back-->  b  b2 b0 ..
//! c  c0 c1 c2 ..                                        |     ..      |            c  c2 c0 ..
//! ```
//!
//! What bounds a scatter is a store for each value, of which CPUs retire one a cycle. Four columns
//! as records take one for all of them; eight rows are transposed in registers on the way in, and
//! on the way out, where stores are of whole registers: 0.16 ns a value instead of 0.3, with two
//! columns 0.22. Records of eight columns are no faster, since they fill the cache; nor are records
//! of values of eight bytes, since the way out costs what the way in saves.
//!
//! AVX2 will do. The portable twin is a scatter of each column.

use std::arch::x86_64::*;

/// Rows that are transposed at once.
const ROWS: usize = 8;

/// Bytes of a value.
const W: usize = 4;

/// Brings two, three or four columns into order by way of `records`: value `i` comes at
/// `targets[i]`.
///
/// # Safety
/// The CPU has AVX2; targets are below their number.
///
/// # Panics
/// If a column is too short.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn arrange<const N: usize>(
    from: [&[u8]; N],
    to: [&mut [u8]; N],
    targets: &[u16],
    records: &mut Vec<u8>,
) {
    let rows = targets.len();
    let size = if N == 2 { 8 } else { 16 };
    assert!(from.iter().all(|from| from.len() >= rows * W));
    assert!(to.iter().all(|to| to.len() >= rows * W));
    debug_assert!(targets.iter().all(|&target| usize::from(target) < rows));
    if records.len() < rows * size {
        records.resize(rows * size, 0);
    }
    let from = from.map(<[u8]>::as_ptr);
    let to = to.map(<[u8]>::as_mut_ptr);
    let records = records.as_mut_ptr();
    let (blocks, rest) = targets.as_chunks::<ROWS>();
    let mut row = 0;
    for targets in blocks {
        let at = |k: usize| records.wrapping_add(usize::from(targets[k]) * size);
        // SAFETY: rows and targets are below `rows`, of which columns and records have as many.
        unsafe { put::<N>(from.map(|from| from.add(row * W)), at) };
        row += ROWS;
    }
    for target in rest {
        for (column, from) in from.iter().enumerate() {
            let at = usize::from(*target) * size + column * W;
            // SAFETY: as above.
            unsafe { records.add(at).copy_from_nonoverlapping(from.add(row * W), W) };
        }
        row += 1;
    }
    for row in (0..blocks.len() * ROWS).step_by(ROWS) {
        // SAFETY: as above.
        unsafe { take::<N>(records.add(row * size), to.map(|to| to.add(row * W))) };
    }
    for row in blocks.len() * ROWS..rows {
        for (column, to) in to.iter().enumerate() {
            let at = row * size + column * W;
            // SAFETY: as above.
            unsafe { to.add(row * W).copy_from_nonoverlapping(records.add(at), W) };
        }
    }
}

/// Writes the next eight values of all columns to the records that `at` says.
///
/// # Safety
/// The CPU has AVX2; there are eight values at each of `from`, and a record at what `at` gives.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn put<const N: usize>(from: [*const u8; N], at: impl Fn(usize) -> *mut u8) {
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

/// Writes the values of eight records to all columns: undoes [`put`].
///
/// # Safety
/// The CPU has AVX2; there are eight records, and room for eight values at each of `to`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn take<const N: usize>(records: *const u8, to: [*mut u8; N]) {
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
