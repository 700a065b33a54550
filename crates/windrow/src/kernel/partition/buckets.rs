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
//! belong. 0.78 ns a row of four bytes, where the loop with a count takes 1.05.
//!
//! Nor are ids looked at before: each is cut to the bits that the number of partitions has, and what
//! was cut off, or went to no partition, is seen afterwards.
//!
//! *Where it loses*: ids that are not spread evenly fill a bucket, and what lies behind it is
//! overwritten - by rows that are all still in the source. Then the split is done again, counted,
//! and the next few record batches are counted too.
//!
//! Few partitions have two buckets each, one for either half of the rows, as in `segments`.

use std::array::from_fn;

use super::order::{Form, PAD, Planned};

/// Fewer rows are not worth the copy.
const LEAST_ROWS: usize = 4096;
/// Partitions of fewer rows, of up to four bytes, take as long to copy as to count; of twice the
/// bytes, twice the rows.
const LEAST_MEAN: usize = 10;
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
    /// Lines that are copied of each, full or not: most have no more, so that where they end is
    /// seldom a branch guessed wrong.
    copied: usize,
    /// Record batches to go until the next may be tried.
    pause: u8,
}

/// What became of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dealt {
    /// They are in order, and it is known where partitions start.
    All,
    /// A bucket was too small. Ids are partitions.
    TooMany,
    /// Some id is no partition.
    Outside,
}

impl Buckets {
    /// True if `rows` values of `width` bytes, a power of two, can be dealt into buckets with profit
    /// if they are spread evenly; says how large these are.
    pub(super) fn suit(&mut self, rows: usize, partitions: usize, width: usize) -> bool {
        if rows < LEAST_ROWS || rows / (LEAST_MEAN * width.div_ceil(4)) < partitions {
            return false;
        }
        self.segments = if partitions <= SEGMENTED { 2 } else { 1 };
        let mean = rows / (partitions * self.segments) + 1;
        // A standard deviation is the root of the mean.
        self.copied = ((mean + mean.isqrt()) * width).div_ceil(LINE);
        self.lines = ((mean + 6 * (mean.isqrt() + 1)) * width).div_ceil(LINE) | 1;
        partitions * self.segments * self.lines * LINE <= MOST_BYTES
    }

    /// True unless a bucket was too small not long ago.
    pub(super) fn are_due(&mut self) -> bool {
        let due = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        due
    }
}

impl Planned<'_> {
    /// Brings values into order, and finds where partitions start. `out` is [`PAD`] bytes longer
    /// than the values.
    ///
    /// # Panics
    /// If a slice is too short, or rows do not go by buckets.
    pub(super) fn deal_into_buckets<const W: usize>(
        &mut self,
        source: &[[u8; W]],
        out: &mut [u8],
    ) -> Dealt {
        assert!(LINE.is_multiple_of(W) && PAD >= LINE);
        let order = &mut *self.order;
        let Buckets { segments, lines, copied, .. } = order.buckets;
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
        // Every id that is cut to `mask` has a cursor. Those of no partition start behind the last
        // bucket, and are there still if there was no such id.
        let mask = order.partitions.next_power_of_two() - 1;
        let end = (count * room) as u32;
        let cursors = &mut order.ends;
        cursors.clear();
        cursors.extend((0..count).map(|bucket| (bucket * room) as u32));
        cursors.resize((mask + 1) * segments, end);
        let buckets = bytes.as_mut_ptr().cast();
        let (copied, out) = (copied * LINE, &mut out[..rows * W + PAD]);
        let buckets = Buffers { room, copied, buckets, out: out.as_mut_ptr(), len: out.len() };
        order.offsets.clear();
        order.offsets.resize(order.partitions + 1, 0);
        let ends = &mut order.offsets[1..];
        // SAFETY: every number up to the mask has as many cursors as there are segments. A cursor is
        // moved on at most once a row, and starts at least as many values before the end.
        let seen = unsafe {
            match segments {
                1 => deal::<W, 1, 2>(self.ids, source, cursors, buckets.buckets, mask as u32),
                _ => deal::<W, 2, 1>(self.ids, source, cursors, buckets.buckets, mask as u32),
            }
        };
        if seen > mask as u32 || cursors[count..].iter().any(|&cursor| cursor != end) {
            return Dealt::Outside;
        }
        // SAFETY: buckets are whole lines, and cursors behind where they start. Together they were
        // moved on once a row, and `out` has room for that.
        let done = unsafe {
            match segments {
                1 => buckets.append::<1>(&cursors[..count], ends),
                _ => buckets.append::<2>(&cursors[..count], ends),
            }
        };
        if done {
            return Dealt::All;
        }
        order.buckets.pause = PAUSE;
        Dealt::TooMany
    }
}

/// Buckets, and where they are copied to.
struct Buffers<const W: usize> {
    /// Values of a bucket.
    room: usize,
    /// Bytes of a bucket that are copied whatever it has.
    copied: usize,
    buckets: *mut [u8; W],
    out: *mut u8,
    /// Bytes of `out`.
    len: usize,
}

impl<const W: usize> Buffers<W> {
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
        // SAFETY: as the caller promised: lines of `out`, and of a bucket or behind the last one.
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
                // At the end of `out`, only what a bucket has, and of its last line what the pad has.
                let fits = done * W + self.copied <= self.len;
                let copied = if fits { self.copied } else { 0 };
                for at in (0..copied.max(len * W)).step_by(LINE) {
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
/// in lock step, `PAIRS` of rows at a time. Returns the bits that ids have.
///
/// # Safety
/// There are `S` cursors for each number up to `mask`, which is a power of two less one; as many
/// values as ids; and room in `buckets` behind every cursor for all of them.
#[inline(never)]
unsafe fn deal<const W: usize, const S: usize, const PAIRS: usize>(
    ids: &[u32],
    source: &[[u8; W]],
    cursors: &mut [u32],
    buckets: *mut [u8; W],
    mask: u32,
) -> u32 {
    debug_assert!(cursors.len() == (mask as usize + 1) * S && source.len() >= ids.len());
    let len = ids.len() / S / (2 * PAIRS) * (2 * PAIRS);
    let cursors = cursors.as_mut_ptr();
    let put = |id: u32, segment: usize, row: usize| {
        // SAFETY: as the caller promised, of ids that are cut to the mask.
        unsafe {
            let cursor = cursors.add(id as usize * S + segment);
            let at = *cursor;
            buckets.add(at as usize).copy_from_nonoverlapping(source.get_unchecked(row), 1);
            *cursor = at + 1;
        }
    };
    let both = u64::from(mask) | u64::from(mask) << 32;
    let mut seen = 0;
    for step in (0..len).step_by(2 * PAIRS) {
        let row = |pair: usize, segment: usize| segment * len + step + 2 * pair;
        // Two ids by one load: loads are what comes next after stores.
        let pairs: [[u64; S]; PAIRS] = from_fn(|pair| {
            from_fn(|segment| {
                // SAFETY: two ids are eight bytes, at any address, and both are below `S * len`.
                unsafe { ids.as_ptr().add(row(pair, segment)).cast::<u64>().read_unaligned() }
            })
        });
        for (pair, two) in pairs.into_iter().enumerate() {
            for (segment, two) in two.into_iter().enumerate() {
                seen |= two;
                put(id_of(two & both, false), segment, row(pair, segment));
            }
            for (segment, two) in two.into_iter().enumerate() {
                put(id_of(two & both, true), segment, row(pair, segment) + 1);
            }
        }
    }
    for (row, &id) in ids.iter().enumerate().skip(S * len) {
        seen |= u64::from(id);
        put(id & mask, S - 1, row);
    }
    seen as u32 | (seen >> 32) as u32
}

/// The id that comes first or second in memory.
#[inline(always)]
fn id_of(two: u64, second: bool) -> u32 {
    let high = second == cfg!(target_endian = "little");
    (if high { two >> 32 } else { two }) as u32
}
