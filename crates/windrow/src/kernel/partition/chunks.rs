//! The only column of a record batch that no cache holds: a chunk at a time.
//!
//! ```text
//! chunk of the column --cursors--> | p0 | p1 | p2 |          in cache
//!                                    |    |    |             run by run
//!                out | p0 ..  v | p1 .. v | p2 .. v |
//! ```
//!
//! Written row by row, every partition would be a page and a line of its own to be fetched at random;
//! run by run, lines are written whole. Few partitions are compressed to where their runs go.

#[cfg(target_arch = "x86_64")]
use super::compress::compresses;
use super::fixed::SCATTERED;
use super::order::Planned;

impl Planned<'_> {
    /// Brings values into order.
    pub(super) fn deal_chunks<const W: usize>(&mut self, source: &[[u8; W]], out: &mut [[u8; W]]) {
        #[cfg(target_arch = "x86_64")]
        let load = self.load;
        let order = &mut *self.order;
        let partitions = order.offsets.len() - 1;
        let mut next = order.offsets[..partitions].to_vec();
        order.transit.resize(order.chunk * W, 0);
        let (dealt, _) = order.transit.as_chunks_mut::<W>();
        let ends = order.ends.chunks_exact_mut(partitions);
        let values = source.chunks(order.chunk);
        for ((ids, values), ends) in self.ids.chunks(order.chunk).zip(values).zip(ends) {
            assert!(values.len() == ids.len());
            #[cfg(target_arch = "x86_64")]
            if order.masked && compresses(load, W, partitions) {
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
            // SAFETY: these ends were written when these ids were counted.
            unsafe { order.cursors.recall(ids, ends, W > SCATTERED) };
            let to = dealt.as_mut_ptr();
            // SAFETY: these ids were counted; rows and targets are below the rows of the chunk, and
            // there are as many values, and room for the values of a chunk.
            unsafe {
                order.cursors.each(ids, |row, target| {
                    to.add(target).copy_from_nonoverlapping(values.get_unchecked(row), 1);
                });
            }
            append(dealt, ends, &mut next, out);
        }
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
