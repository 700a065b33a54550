//! Columns of a record batch that no cache holds: a chunk at a time.
//!
//! ```text
//! chunk of a column --cursors, targets--> | p0 | p1 | p2 |   in cache
//!                                           |    |    |      run by run
//!                       out | p0 ..  v | p1 .. v | p2 .. v |
//! ```
//!
//! Written row by row, every partition would be a page and a line of its own to be fetched at random;
//! run by run, lines are written whole - past the cache, where it could not hold them anyway. The only
//! column goes by its cursors, and few partitions are compressed to where their runs go; several columns
//! go by targets, which are found once.

use super::fixed::{SCATTERED, scatter};
#[cfg(target_arch = "x86_64")]
use super::lines::{LINE, Lines};
use super::order::Planned;
use crate::kernel::prefetch::{self, Ahead};

/// Rows that are put to targets between two requests for what is ahead.
const BLOCK: usize = 256;
/// Rows that values are asked for ahead.
const AHEAD: usize = 512;
/// Bytes behind a chunk that may be read with its last run.
const PAD: usize = 64;

impl Planned<'_> {
    /// Brings values into order.
    pub(super) fn deal_chunks<const W: usize>(&mut self, source: &[[u8; W]], out: &mut [[u8; W]]) {
        let by_targets = !self.load.is_one();
        if by_targets {
            self.target_chunks();
        }
        let order = &mut *self.order;
        let partitions = order.offsets.len() - 1;
        let mut next = order.offsets[..partitions].to_vec();
        order.transit.resize(order.chunk * W + PAD, 0);
        #[cfg(target_arch = "x86_64")]
        let by_lines = order.past_cache(W) && out.as_ptr().cast::<u8>().align_offset(LINE) == 0;
        #[cfg(target_arch = "x86_64")]
        let mut lines = by_lines.then(|| Lines::new(partitions));
        let (dealt, _) = order.transit.as_chunks_mut::<W>();
        let ends = order.ends.chunks_exact_mut(partitions);
        let mut ahead = Ahead::of(source[source.len().min(AHEAD)..].as_flattened());
        let values = source.chunks(order.chunk);
        let chunks = self.ids.chunks(order.chunk).zip(values).zip(ends);
        for (index, ((ids, values), ends)) in chunks.enumerate() {
            assert!(values.len() == ids.len());
            #[cfg(target_arch = "x86_64")]
            if order.masked {
                // SAFETY: chunks are masked on CPUs that can; there are fewer than 255 partitions.
                assert!(unsafe { order.masks.build(ids, ends) }, "ids were looked at before");
                let (values, out) = (values.as_flattened(), out.as_flattened_mut());
                // SAFETY: as above; widths that compress are 1, 2, 4 and 8; offsets are apart by what
                // all chunks have of a partition, and `next` is behind those before.
                unsafe { order.masks.compress::<W>(values, out, &next, &order.offsets[1..]) };
                let mut start = 0;
                for (&mut end, next) in ends.iter_mut().zip(&mut next) {
                    *next += (end - std::mem::replace(&mut start, end)) as usize;
                }
                continue;
            }
            if by_targets {
                let targets = &order.targets[index * order.chunk..][..ids.len()];
                for (values, targets) in values.chunks(BLOCK).zip(targets.chunks(BLOCK)) {
                    ahead.ask((BLOCK * W).div_ceil(prefetch::LINE));
                    // SAFETY: targets are below the rows of the chunk, and there is room for as many values.
                    unsafe { scatter(values, targets, dealt) };
                }
            } else {
                // SAFETY: these ends were written when these ids were counted; there are as many values, and
                // room for those of a chunk.
                unsafe {
                    order.cursors.recall(ids, ends, W > SCATTERED);
                    order.cursors.put(ids, values, dealt.as_mut_ptr());
                }
            }
            #[cfg(target_arch = "x86_64")]
            if let Some(lines) = &mut lines {
                // SAFETY: the level says that the CPU can; the transit has a pad behind the chunk;
                // `out` starts with a line.
                unsafe { append_lines(lines, dealt, ends, &mut next, out) };
                continue;
            }
            append(dealt, ends, &mut next, out);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(lines) = &lines {
            let out = out.as_mut_ptr();
            let place = |row: usize| out.wrapping_add(row).cast::<u8>();
            let ends = order.offsets.windows(2).map(|pair| (place(pair[0]), place(pair[1])));
            // SAFETY: as above; the runs of all chunks were appended.
            unsafe { lines.finish(ends) };
        }
    }
}

/// [`append`], by lines.
///
/// # Safety
/// The CPU has AVX-512F and BW; [`PAD`] bytes behind the runs can be read; runs of earlier chunks
/// were appended by the same lines; `out` starts with one.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn append_lines<const W: usize>(
    lines: &mut Lines,
    dealt: &[[u8; W]],
    ends: &[u32],
    next: &mut [usize],
    out: &mut [[u8; W]],
) {
    let mut start = 0;
    for (partition, (&end, next)) in ends.iter().zip(next).enumerate() {
        let run = dealt[start..end as usize].as_flattened();
        let to = out[*next..*next + (end as usize - start)].as_flattened_mut();
        *next += end as usize - start;
        start = end as usize;
        // SAFETY: as the caller promised.
        unsafe { lines.append(partition, run.as_ptr(), run.len(), to.as_mut_ptr()) };
    }
}

/// Appends the runs of a chunk, which end at `ends`, to their partitions.
fn append<const W: usize>(
    dealt: &[[u8; W]],
    ends: &[u32],
    next: &mut [usize],
    out: &mut [[u8; W]],
) {
    let mut start = 0;
    for (&end, next) in ends.iter().zip(next) {
        let run = &dealt[start..end as usize];
        out[*next..*next + run.len()].copy_from_slice(run);
        *next += run.len();
        start = end as usize;
    }
}
