//! Where partitions start, of ids that may be in order already.
//!
//! ```text
//! ids        0 0 0 1 1 2 2 2 2 3
//! steps      . . . 1 . 1 . . . 1      rows of steps 3 5 9, side by side: the offsets of 1, 2 and 3
//! ```
//!
//! Ids are looked at once, 16, 32 or 64 at a time: those that differ from the one in front are
//! compressed, or the first two of them written. Where no partition is empty that is all there is
//! to do, at 0.05 to 0.1 ns a row; else, or where very few partitions start, each start is looked at.
//!
//! The portable twin is `ids::ascend` and `ids::gallop`.

use std::arch::x86_64::*;

use super::ids::Ascending;
use super::masks::{AHEAD, RANKS};

/// Partitions of fewer rows than this start so often that a block of rows has several that do.
const OFTEN: usize = 24;
/// Those of fewer than this, so often that it is worth much to guess no branch wrong where one does:
/// 64 partitions of 10,000 rows take 0.55 us instead of 0.75, and 256 0.7 instead of 1.4; 16, with their record batch, 0.62
/// instead of 0.65. To read the ids takes 0.36.
const SELDOM: usize = 1000;
/// Ids of a register, of two and of four.
const LANES: usize = 16;
const TWO: usize = 2 * LANES;
const FOUR: usize = 4 * LANES;

/// Finds where partitions start and end, if `ids` ascend.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
pub(super) fn boundaries(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) -> Ascending {
    offsets.clear();
    let found = match ids.len() {
        rows if rows < partitions * OFTEN => single_steps(ids, partitions, offsets),
        rows if rows < partitions * SELDOM => seldom_steps(ids, partitions, offsets),
        _ => None,
    };
    if found.is_some() {
        return Ascending::Yes;
    }
    offsets.clear();
    offsets.resize(partitions + 1, ids.len());
    any_steps(ids, offsets)
}

/// [`boundaries`], if every id is the one in front of it or the next, and all are below
/// `partitions`. `offsets` are empty before.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
fn single_steps(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) -> Option<()> {
    let first = *ids.first()?;
    // More than there are, so that a register of them can be written anywhere.
    offsets.resize(partitions + 1 + LANES, ids.len());
    let mut next = first as usize + 1;
    if next > partitions {
        return None;
    }
    offsets[..next].fill(0);
    // Each id beside the one in front of it, whose difference says whether a partition starts there.
    let (blocks, rest) = ids[1..].as_chunks::<FOUR>();
    let mut highest = _mm512_setzero_si512();
    // SAFETY: 64 bytes.
    let ranks = unsafe { _mm512_loadu_si512(RANKS.as_ptr().cast()) };
    for (block, row) in blocks.iter().zip((1..).step_by(FOUR)) {
        let [a, b, c, d] = [0, 16, 32, 48].map(|at| {
            // SAFETY: a block is four registers, and there is an id in front of it.
            unsafe {
                let ids = block.as_ptr().add(at);
                _mm_prefetch::<_MM_HINT_T0>(ids.wrapping_add(AHEAD).cast());
                let before = _mm512_loadu_si512(ids.sub(1).cast());
                _mm512_sub_epi32(_mm512_loadu_si512(ids.cast()), before)
            }
        });
        let most = _mm512_max_epu32(_mm512_max_epu32(a, b), _mm512_max_epu32(c, d));
        highest = _mm512_max_epu32(highest, most);
        let stepped = |steps: __m512i| _mm512_test_epi32_mask(steps, steps).into();
        let low = _mm512_kunpackw(stepped(b), stepped(a));
        let high = _mm512_kunpackw(stepped(d), stepped(c));
        let stepped = _mm512_kunpackd(high.into(), low.into());
        let starts = _mm512_castsi512_si128(_mm512_maskz_compress_epi8(stepped, ranks));
        let first = _mm512_set1_epi64(row as i64);
        let to: &mut [usize; LANES] = offsets.get_mut(next..)?.first_chunk_mut()?;
        // SAFETY: eight numbers are a register.
        unsafe {
            let low = _mm512_add_epi64(_mm512_cvtepu8_epi64(starts), first);
            let high = _mm_bsrli_si128::<{ LANES as i32 / 2 }>(starts);
            let high = _mm512_add_epi64(_mm512_cvtepu8_epi64(high), first);
            _mm512_storeu_si512(to.as_mut_ptr().cast(), low);
            _mm512_storeu_si512(to.as_mut_ptr().add(LANES / 2).cast(), high);
        }
        let count = stepped.count_ones() as usize;
        if count > LANES {
            let mut left = stepped;
            for offset in offsets.get_mut(next..next + count)? {
                *offset = row + left.trailing_zeros() as usize;
                left &= left - 1;
            }
        }
        next += count;
    }
    if _mm512_reduce_max_epu32(highest) > 1 {
        return None;
    }
    last_steps(ids, rest.len(), partitions, next, offsets)
}

/// [`single_steps`], where most blocks of rows have two steps at the most: these are written whether
/// they are there or not, since a branch for each would be guessed wrong. Ids that differ from the one
/// in front are steps; whether these are steps of one is asked where they start.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
fn seldom_steps(ids: &[u32], partitions: usize, offsets: &mut Vec<usize>) -> Option<()> {
    let first = *ids.first()?;
    offsets.resize(partitions + 1 + 2, ids.len());
    let start = first as usize + 1;
    if start > partitions {
        return None;
    }
    offsets[..start].fill(0);
    let (blocks, rest) = ids.as_chunks::<FOUR>();
    let (mut next, mut last) = (start, _mm512_set1_epi32(first as i32));
    for (block, row) in blocks.iter().zip((0..).step_by(FOUR)) {
        let [a, b, c, d] = [0, 16, 32, 48].map(|at| {
            let from = block.as_ptr().wrapping_add(at);
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
            // SAFETY: a block is four registers.
            unsafe { _mm512_loadu_si512(from.cast()) }
        });
        let stepped = |ids: __m512i, before: __m512i| {
            _mm512_cmpneq_epu32_mask(ids, _mm512_alignr_epi32::<15>(ids, before)).into()
        };
        let low = _mm512_kunpackw(stepped(b, a), stepped(a, last));
        let high = _mm512_kunpackw(stepped(d, c), stepped(c, b));
        let stepped = _mm512_kunpackd(high.into(), low.into());
        last = d;
        let mut left = stepped & stepped.wrapping_sub(1);
        let to: &mut [usize; 2] = offsets.get_mut(next..)?.first_chunk_mut()?;
        *to = [stepped, left].map(|steps| row + steps.trailing_zeros() as usize);
        let mut more = next + 2;
        left &= left.wrapping_sub(1);
        while left != 0 {
            *offsets.get_mut(more)? = row + left.trailing_zeros() as usize;
            more += 1;
            left &= left - 1;
        }
        next += stepped.count_ones() as usize;
    }
    let mut starts = offsets.get(start..next)?.iter().zip(start as u32..);
    if starts.any(|(&row, id)| ids[row] != id) {
        return None;
    }
    last_steps(ids, rest.len(), partitions, next, offsets)
}

/// The steps of the last `rows`, the first of which starts partition `next`, and what is behind them.
fn last_steps(
    ids: &[u32],
    rows: usize,
    partitions: usize,
    mut next: usize,
    offsets: &mut Vec<usize>,
) -> Option<()> {
    for row in ids.len() - rows..ids.len() {
        match ids[row].wrapping_sub(ids[row.saturating_sub(1)]) {
            0 => {}
            1 => {
                *offsets.get_mut(next)? = row;
                next += 1;
            }
            _ => return None,
        }
    }
    if next > partitions {
        return None;
    }
    offsets[next..].fill(ids.len());
    offsets.truncate(partitions + 1);
    Some(())
}

/// Writes where partitions start to all of `offsets` that are not behind the last id: ids that
/// differ from the one in front are boundaries, or falls.
#[target_feature(enable = "avx512f,avx512vl,popcnt")]
fn any_steps(ids: &[u32], offsets: &mut [usize]) -> Ascending {
    let Some(&first) = ids.first() else { return Ascending::Yes };
    if first as usize >= offsets.len() - 1 {
        return Ascending::Outside;
    }
    offsets[..=first as usize].fill(0);
    let mut boundaries = Boundaries { ids, offsets, before: first as usize };
    let (blocks, rest) = ids.as_chunks::<TWO>();
    let mut last = _mm512_set1_epi32(first as i32);
    for (index, block) in blocks.iter().enumerate() {
        // SAFETY: a block is two registers.
        let (low, high) = unsafe {
            let block = block.as_ptr();
            (_mm512_loadu_si512(block.cast()), _mm512_loadu_si512(block.add(16).cast()))
        };
        let low_changed = _mm512_cmpneq_epu32_mask(low, _mm512_alignr_epi32::<15>(low, last));
        let high_changed = _mm512_cmpneq_epu32_mask(high, _mm512_alignr_epi32::<15>(high, low));
        last = high;
        let mut changed = u32::from(low_changed) | u32::from(high_changed) << 16;
        while changed != 0 {
            match boundaries.start(index * TWO + changed.trailing_zeros() as usize) {
                Ascending::Yes => changed &= changed - 1,
                other => return other,
            }
        }
    }
    for row in ids.len() - rest.len()..ids.len() {
        if row > 0 && ids[row] != ids[row - 1] {
            match boundaries.start(row) {
                Ascending::Yes => {}
                other => return other,
            }
        }
    }
    Ascending::Yes
}

/// Where partitions start, as far as ids were looked at.
struct Boundaries<'a> {
    ids: &'a [u32],
    offsets: &'a mut [usize],
    /// The id that starts last.
    before: usize,
}

impl Boundaries<'_> {
    #[inline(always)]
    fn start(&mut self, row: usize) -> Ascending {
        let (before, id) = (self.before, self.ids[row] as usize);
        if id >= self.offsets.len() - 1 {
            return Ascending::Outside;
        }
        if id < before {
            return Ascending::No;
        }
        // One partition starts here, seldom more.
        self.offsets[before + 1] = row;
        if id > before + 1 {
            self.offsets[before + 2..=id].fill(row);
        }
        self.before = id;
        Ascending::Yes
    }
}
