//! The only column of a record batch, dealt out without being counted first.
//!
//! ```text
//! ids  1 0 1 2 0 1      buckets | v v . . | v v v . | v . . . |  --->  out | v v | v v v | v |
//!                                   ^cursor    ^         ^             offsets 0   2      5   6
//! ```
//!
//! What bounds a split is a store for each row, of which CPUs retire one a cycle: one to count it,
//! one to put its value where it goes, one to move the cursor on. A bucket has room for the rows
//! that a partition has on average and six standard deviations more, so that the count is not
//! needed; cursors say at the end what it would have been, and buckets are copied to where they
//! belong. 0.75 ns a row of four bytes, where the loop with a count takes 1.05.
//!
//! *Where it loses*: ids that are not spread evenly fill a bucket, and what lies behind it is
//! overwritten - by rows that are all still in the source. Then the split is done again, counted,
//! and the next few record batches are counted too.
//!
//! Few partitions have two buckets each, one for either half of the rows, as in `segments`.

use super::order::{Form, PAD, Planned};

/// Fewer rows are not worth the copy.
const LEAST_ROWS: usize = 4096;
/// Partitions of fewer rows, of up to four bytes, take as long to copy as to count; of twice the
/// bytes, twice the rows.
const LEAST_MEAN: usize = 8;
/// Buckets of more bytes than this do not stay in the second-level cache with what they come from.
const MOST_BYTES: usize = 768 << 10;
/// Up to so many partitions, rows meet at cursors often enough for two segments to pay. Four take
/// more registers than there are.
const SEGMENTED: usize = 128;
/// Bytes of a line, and of a copy.
const LINE: usize = 64;
/// Record batches that are counted after a bucket was too small.
const PAUSE: u8 = 15;

/// How large buckets are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buckets {
    /// For each partition, one for each segment of the rows.
    segments: usize,
    /// Lines of a bucket: an odd number, or buckets would start in few sets of the cache.
    lines: usize,
    /// Record batches to go until the next may be tried.
    pause: u8,
}

impl Buckets {
    /// True if `rows` values of `width` bytes, a power of two, should be dealt into buckets; says
    /// how large these are.
    pub(super) fn suit(&mut self, rows: usize, partitions: usize, width: usize) -> bool {
        if rows < LEAST_ROWS || rows / (LEAST_MEAN * width.div_ceil(4)) < partitions {
            return false;
        }
        self.segments = if partitions <= SEGMENTED { 2 } else { 1 };
        let mean = rows / (partitions * self.segments) + 1;
        self.lines = ((mean + 6 * (mean.isqrt() + 1)) * width).div_ceil(LINE) | 1;
        let fits = partitions * self.segments * self.lines * LINE <= MOST_BYTES;
        let paused = self.pause > 0;
        self.pause = self.pause.saturating_sub(1);
        fits && !paused
    }
}

impl Planned<'_> {
    /// Brings values into order, and finds where partitions start. False if a bucket was too small:
    /// then nothing is known. Ids are below the number of partitions, and `out` is [`PAD`] bytes
    /// longer than the values.
    ///
    /// # Panics
    /// If a slice is too short, or rows do not go by buckets.
    pub(super) fn deal_into_buckets<const W: usize>(
        &mut self,
        source: &[[u8; W]],
        out: &mut [u8],
    ) -> bool {
        assert!(LINE.is_multiple_of(W) && PAD >= LINE);
        let order = &mut *self.order;
        let Buckets { segments, lines, .. } = order.buckets;
        let (rows, room) = (self.ids.len(), lines * LINE / W);
        assert!(source.len() == rows && out.len() >= rows * W + PAD);
        assert!(order.form == Form::Buckets && order.rows == rows, "ids were looked at");
        let count = order.partitions * segments;
        // Whatever is in one bucket: no cursor passes the end.
        let len = count * lines * LINE + rows * W + LINE;
        if order.transit.len() < len {
            order.transit.resize(len, 0);
        }
        let lead = order.transit.as_ptr().align_offset(LINE).min(LINE);
        let bytes = &mut order.transit[lead..];
        let cursors = &mut order.ends;
        cursors.clear();
        cursors.extend((0..count).map(|bucket| (bucket * room) as u32));
        let buckets = bytes.as_mut_ptr().cast();
        let buckets = Buffers { room, buckets, out: out.as_mut_ptr() };
        order.offsets.clear();
        order.offsets.resize(order.partitions + 1, 0);
        let ends = &mut order.offsets[1..];
        // SAFETY: ids are below the partitions, each of which has as many cursors as there are
        // segments. A cursor is moved on at most once a row, and starts at least as many values
        // before the end. Together they are moved on once a row, and `out` has room for that.
        let done = unsafe {
            match segments {
                1 => buckets.fill::<1>(self.ids, source, cursors, ends),
                _ => buckets.fill::<2>(self.ids, source, cursors, ends),
            }
        };
        if !done {
            order.buckets.pause = PAUSE;
        }
        done
    }
}

/// Buckets, and where they are copied to.
struct Buffers<const W: usize> {
    /// Values of a bucket.
    room: usize,
    buckets: *mut [u8; W],
    out: *mut u8,
}

impl<const W: usize> Buffers<W> {
    /// Deals `source` out, and copies it to where it belongs. False if a bucket ran over.
    ///
    /// # Safety
    /// As [`deal`] and [`Buffers::append`].
    unsafe fn fill<const S: usize>(
        &self,
        ids: &[u32],
        source: &[[u8; W]],
        cursors: &mut [u32],
        ends: &mut [usize],
    ) -> bool {
        // SAFETY: as the caller promised.
        unsafe {
            deal::<W, S>(ids, source, cursors, self.buckets);
            self.append::<S>(cursors, ends)
        }
    }

    /// Copies what buckets have up to `cursors` to where they belong, and writes to `ends` where
    /// partitions end there. False if a bucket ran over.
    ///
    /// # Safety
    /// There are whole lines for each of `cursors`, none of which is in front of its
    /// bucket; there is room for the values in front of all of them, and [`PAD`] bytes.
    unsafe fn append<const S: usize>(&self, cursors: &[u32], ends: &mut [usize]) -> bool {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2; else as the caller promised.
            return unsafe { self.append_avx2::<S>(cursors, ends) };
        }
        // SAFETY: as the caller promised.
        unsafe { self.append_portable::<S>(cursors, ends) }
    }

    /// A line by two registers, not by four: three quarters of the time.
    ///
    /// # Safety
    /// As [`Buffers::append`], and the CPU has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn append_avx2<const S: usize>(&self, cursors: &[u32], ends: &mut [usize]) -> bool {
        // SAFETY: as the caller promised.
        unsafe { self.append_portable::<S>(cursors, ends) }
    }

    /// # Safety
    /// As [`Buffers::append`].
    #[inline(always)]
    unsafe fn append_portable<const S: usize>(&self, cursors: &[u32], ends: &mut [usize]) -> bool {
        // SAFETY: as the caller promised. A line is written whether it is full or not: at most as
        // much too much as the pad has.
        let copy_line = |from: *const u8, to: *mut u8, at: usize| unsafe {
            let line = from.add(at).cast::<[u8; LINE]>().read_unaligned();
            to.add(at).cast::<[u8; LINE]>().write_unaligned(line);
        };
        let (mut start, mut done) = (0, 0);
        for (cursors, end) in cursors.as_chunks::<S>().0.iter().zip(ends) {
            for &cursor in cursors {
                let len = cursor as usize - start;
                if len > self.room {
                    return false;
                }
                // SAFETY: as the caller promised.
                let (from, to) = unsafe { (self.buckets.add(start), self.out.add(done * W)) };
                // Most of many partitions have no more than one: then nothing is guessed.
                copy_line(from.cast(), to, 0);
                for at in (LINE..len * W).step_by(LINE) {
                    copy_line(from.cast(), to, at);
                }
                done += len;
                start += self.room;
            }
            *end = done;
        }
        true
    }
}

/// Puts each value of `source` to the cursor of its id and segment, and moves that on; `S` segments
/// in lock step.
///
/// # Safety
/// Ids are below the number of cursors divided by `S`; there are as many values, and `buckets` has
/// room behind every cursor for all of them.
#[inline(never)]
unsafe fn deal<const W: usize, const S: usize>(
    ids: &[u32],
    source: &[[u8; W]],
    cursors: &mut [u32],
    buckets: *mut [u8; W],
) {
    let len = ids.len() / S / 2 * 2;
    let cursors = cursors.as_mut_ptr();
    let put = |id: u32, segment: usize, row: usize| {
        // SAFETY: as the caller promised.
        unsafe {
            let cursor = cursors.add(id as usize * S + segment);
            let at = *cursor;
            buckets.add(at as usize).copy_from_nonoverlapping(source.get_unchecked(row), 1);
            *cursor = at + 1;
        }
    };
    for step in (0..len).step_by(2) {
        // Two ids of each segment by one load: loads are what comes next after stores.
        let two: [u64; S] = std::array::from_fn(|segment| {
            // SAFETY: two ids are eight bytes, at any address; `step + 2` is at most `len`.
            unsafe { ids.as_ptr().add(segment * len + step).cast::<u64>().read_unaligned() }
        });
        for (segment, two) in two.into_iter().enumerate() {
            put(id_of(two, false), segment, segment * len + step);
        }
        for (segment, two) in two.into_iter().enumerate() {
            put(id_of(two, true), segment, segment * len + step + 1);
        }
    }
    for (row, &id) in ids.iter().enumerate().skip(S * len) {
        put(id, S - 1, row);
    }
}

/// The id that comes first or second in memory.
#[inline(always)]
fn id_of(two: u64, second: bool) -> u32 {
    let high = second == cfg!(target_endian = "little");
    (if high { two >> 32 } else { two }) as u32
}
