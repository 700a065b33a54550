//! Moves columns of fixed width through an order, as `plan` decides.
//!
//! ```text
//! deal       values --cursors--> their positions                 the only column
//! scatter    values in order --targets--> their positions        wide values, few partitions
//! gather     out in order <--places-- values from anywhere       all else
//!
//! chunk of a column --deal, scatter--> | p0 | p1 | p2 |          in cache
//!                                        |    |    |             run by run
//!                    out | p0 ..  v | p1 .. v | p2 .. v |
//! ```
//!
//! In a record batch that no cache holds, each partition would need a page and a line of its own,
//! read at random before each write. Rows are therefore ordered a chunk at a time, in cache, and
//! runs are appended to their partitions. Where the cache cannot hold the output, runs are written
//! by whole lines past the cache, see `lines`.

use std::ops::Range;

use super::fixed::{Place, gather, gather_any, scatter};
#[cfg(target_arch = "x86_64")]
use super::lines::{LINE as OWN_LINE, Lines};
use super::order::{Mover, Order, PAD, Planned};
use super::plan::Move;
use crate::prefetch::{Ahead, LINE, prefetch_all};

/// Rows scattered between two prefetches.
const BLOCK: usize = 256;
/// Rows ahead of which values are prefetched: a few pages, since the CPU's own prefetches end with
/// each page.
const AHEAD: usize = 512;

impl Planned<'_> {
    /// Brings values of `width` bytes into order. `out` is [`PAD`] bytes longer than the values.
    ///
    /// # Panics
    /// If a slice is too short.
    pub fn fixed(&mut self, width: usize, source: &[u8], out: &mut [u8]) {
        let len = self.rows() * width;
        assert!(source.len() >= len && out.len() >= len + PAD);
        match width {
            1 => self.fixed_of::<1>(source, out),
            2 => self.fixed_of::<2>(source, out),
            4 => self.fixed_of::<4>(source, out),
            8 => self.fixed_of::<8>(source, out),
            12 => self.fixed_of::<12>(source, out),
            16 => self.fixed_of::<16>(source, out),
            32 => self.fixed_of::<32>(source, out),
            _ => self.each_run(&mut Any { width, source, out }),
        }
    }

    fn fixed_of<const W: usize>(&mut self, source: &[u8], out: &mut [u8]) {
        let (way, ids, rows) = (self.order.way, self.ids, self.rows());
        let source = &source.as_chunks::<W>().0[..rows];
        let out = &mut out.as_chunks_mut::<W>().0[..rows];
        match way.movement(W) {
            Move::Gather => self.each_run(&mut Fixed { source, out, ahead: Ahead::default() }),
            Move::Deal if way.is_one_chunk() => {
                // SAFETY: the cursors counted `self.ids`. `source` and `out` have a value for each
                // of the `rows` ids.
                unsafe { self.order.cursors.put(self.ids, source, out.as_mut_ptr()) };
            }
            Move::Deal => self.append_chunks(source, out, |order, chunk, values, dealt| {
                let ids = &ids[chunk.rows];
                assert!(dealt.len() >= values.len() && values.len() == ids.len());
                // SAFETY: counting these ids wrote these ends. As asserted, there are as many
                // values as ids, and `dealt` has space for them.
                unsafe {
                    order.cursors.recall(order.level, ids, chunk.ends, way.is_wide());
                    order.cursors.put(ids, values, dealt.as_mut_ptr());
                }
            }),
            Move::Scatter => {
                self.target();
                if way.is_one_chunk() {
                    // SAFETY: each row has a target below the number of rows, and `source` and
                    // `out` have `rows` values.
                    return unsafe { scatter(source, &self.order.targets[..rows], out) };
                }
                self.append_chunks(source, out, |order, chunk, values, dealt| {
                    let targets = &order.targets[chunk.rows.clone()];
                    assert!(dealt.len() >= values.len());
                    let blocks = values.chunks(BLOCK).zip(targets.chunks(BLOCK));
                    for ((values, targets), row) in blocks.zip(chunk.rows.step_by(BLOCK)) {
                        let ahead = (row + AHEAD).min(rows)..(row + AHEAD + BLOCK).min(rows);
                        prefetch_all(source[ahead].as_flattened());
                        // SAFETY: each row has a target below the rows of the chunk, and `dealt` is
                        // at least as long.
                        unsafe { scatter(values, targets, dealt) };
                    }
                });
            }
        }
    }

    /// Brings the values of each chunk into order with `deal`, and appends the runs to their
    /// partitions.
    fn append_chunks<const W: usize>(
        &mut self,
        source: &[[u8; W]],
        out: &mut [[u8; W]],
        deal: impl Fn(&mut Order, Chunk<'_>, &[[u8; W]], &mut [[u8; W]]),
    ) {
        let (way, partitions) = (self.order.way, self.partitions());
        let order = &mut *self.order;
        let mut next = order.offsets[..partitions].to_vec();
        let mut ends = std::mem::take(&mut order.ends);
        let mut transit = std::mem::take(&mut order.transit);
        // `Lines::append` may read a line beyond the last run.
        transit.resize(way.chunk * W + PAD, 0);
        let (dealt, _) = transit.as_chunks_mut::<W>();
        let mut runs = Runs::of(way.goes_past_cache(W), partitions, out);
        let chunks = source.chunks(way.chunk).zip(ends.chunks_exact_mut(partitions));
        for (index, (values, ends)) in chunks.enumerate() {
            let first = index * way.chunk;
            let rows = first..first + values.len();
            deal(order, Chunk { rows, ends: &mut *ends }, values, dealt);
            runs.append(dealt, ends, &mut next);
        }
        runs.finish(&order.offsets);
        (order.ends, order.transit) = (ends, transit);
    }
}

/// The rows of a chunk, and the ends of partitions among them.
struct Chunk<'a> {
    rows: Range<usize>,
    ends: &'a mut [u32],
}

/// Appends runs of chunks to their partitions.
struct Runs<'a, const W: usize> {
    out: &'a mut [[u8; W]],
    /// Set if runs are written past the cache.
    #[cfg(target_arch = "x86_64")]
    lines: Option<Lines>,
}

impl<'a, const W: usize> Runs<'a, W> {
    /// Creates the writer of runs of this many partitions to `out`. With `past_cache`, the CPU
    /// writes by lines.
    fn of(past_cache: bool, partitions: usize, out: &'a mut [[u8; W]]) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let starts_line = out.as_ptr().cast::<u8>().align_offset(OWN_LINE) == 0;
            let lines = (past_cache && starts_line).then(|| Lines::new(partitions));
            Self { out, lines }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (past_cache, partitions);
            Self { out }
        }
    }

    /// Appends the runs of a chunk, which end at `ends` of `dealt`, at the current end of each
    /// partition.
    fn append(&mut self, dealt: &[[u8; W]], ends: &[u32], next: &mut [usize]) {
        let mut start = 0;
        for (partition, (&end, next)) in ends.iter().zip(next).enumerate() {
            let run = &dealt[start..end as usize];
            let to = &mut self.out[*next..*next + run.len()];
            *next += run.len();
            start = end as usize;
            #[cfg(target_arch = "x86_64")]
            if let Some(lines) = &mut self.lines {
                let (from, len) = (run.as_ptr().cast(), run.len() * W);
                // SAFETY: `past_cache` is set only at the AVX-512 level. `dealt` has a line after
                // its last run. Runs of a partition follow each other, and `out` starts at a line.
                unsafe { lines.append(partition, from, len, to.as_mut_ptr().cast()) };
                continue;
            }
            let _ = partition;
            to.copy_from_slice(run);
        }
    }

    /// Writes the remaining partial lines, once all runs are appended.
    fn finish(self, offsets: &[usize]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(lines) = self.lines {
            let out = self.out.as_mut_ptr();
            let place = |row: usize| out.wrapping_add(row).cast::<u8>();
            let ends = offsets.windows(2).map(|pair| (place(pair[0]), place(pair[1])));
            // SAFETY: `past_cache` is set only at the AVX-512 level, and all runs were appended.
            unsafe { lines.finish(ends) };
        }
        let _ = offsets;
    }
}

struct Fixed<'a, const W: usize> {
    source: &'a [[u8; W]],
    out: &'a mut [[u8; W]],
    /// The next chunk, prefetched while runs of this one are gathered.
    ahead: Ahead<'a>,
}

impl<const W: usize> Mover for Fixed<'_, W> {
    fn chunk(&mut self, rows: Range<usize>) {
        let next = rows.end..self.source.len().min(rows.end + rows.len());
        self.ahead = Ahead::of(self.source[next].as_flattened());
    }

    unsafe fn run<P: Place>(&mut self, base: usize, places: &[P], target: usize) {
        self.ahead.ask((places.len() * W).div_ceil(LINE));
        let out = &mut self.out[target..target + places.len()];
        // SAFETY: the caller promises that `base + place` is a row, and `source` has all rows.
        unsafe { gather(&self.source[base..], places, out) };
    }
}

struct Any<'a> {
    width: usize,
    source: &'a [u8],
    out: &'a mut [u8],
}

impl Mover for Any<'_> {
    unsafe fn run<P: Place>(&mut self, base: usize, places: &[P], target: usize) {
        let out = &mut self.out[target * self.width..(target + places.len()) * self.width];
        gather_any(&self.source[base * self.width..], self.width, places, out);
    }
}
