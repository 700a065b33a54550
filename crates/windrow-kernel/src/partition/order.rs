//! The order of a record batch by partition: targets of rows, and rows of places.
//!
//! ```text
//! rows     0 1 2 3 4 5      places    1 4 0 2 5 3     the row at each position
//! ids      1 0 1 2 0 1      targets   2 0 3 5 1 4     the position of each row
//!
//! chunk 0         chunk 1                 runs of both, appended partition by partition
//! | p0 | p1 | p2 | p0 | p1 | p2 |  --->   | p0 p0 | p1 p1 | p2 p2 |
//!   places and targets, as rows of their chunk
//! ```
//!
//! Places and targets are found when the first column needs them, and kept; the only column of a
//! record batch mostly needs neither.
//!
//! Invariant: the places of a chunk are its rows, each once, with the rows of a partition in
//! ascending order. `offsets` are the starts of partitions in the whole, from 0 to the number of
//! rows.

use std::mem::{replace, take};

use super::Level;
use super::cursors::Cursors;
use super::fixed::Place;
use super::ids::{Ascending, ascending};
#[cfg(target_arch = "x86_64")]
use super::masks::Masks;
use super::plan::{Find, LARGEST_CHUNK, Seen, Way, plan};

pub use super::ids::PAD;
pub use super::plan::Load;

/// The order of ids; keeps its memory from one record batch to the next.
#[derive(Clone, Debug)]
pub struct Order {
    pub(super) level: Level,
    pub(super) way: Way,
    /// Starts of partitions; after the last, the number of rows.
    pub(super) offsets: Vec<usize>,
    /// Ends of partitions in each chunk.
    pub(super) ends: Vec<u32>,
    /// The row at each place of each chunk, and a pad.
    places: Vec<u16>,
    /// The target of each row in its chunk, and a pad.
    pub(super) targets: Vec<u16>,
    /// The row at each place among all rows.
    whole: Vec<u32>,
    placed: bool,
    targeted: bool,
    pub(super) cursors: Cursors,
    #[cfg(target_arch = "x86_64")]
    pub(super) masks: Masks,
    /// A chunk of a column in order, before its runs are appended.
    pub(super) transit: Vec<u8>,
}

/// The result of planning.
pub enum Plan<'a> {
    /// An id is not a partition.
    Outside,
    /// Rows are in order already.
    Ascending,
    Ordered(Planned<'a>),
}

/// The order of one record batch.
pub struct Planned<'a> {
    pub(super) order: &'a mut Order,
    pub(super) ids: &'a [u32],
}

/// A consumer of the places of runs.
pub(super) trait Mover {
    /// Announces the rows of a chunk, before its runs.
    fn chunk(&mut self, _rows: std::ops::Range<usize>) {}

    /// Moves the rows `base + place` to `target` and after.
    ///
    /// # Safety
    /// Each `base + place` is below the number of rows of the order, and so is
    /// `target + places.len() - 1`.
    unsafe fn run<P: Place>(&mut self, base: usize, places: &[P], target: usize);
}

impl Order {
    pub fn new(level: Level) -> Self {
        Self {
            level,
            way: plan(level, Load::Many, Seen::of(&[], 1)),
            offsets: vec![0],
            ends: Vec::new(),
            places: Vec::new(),
            targets: Vec::new(),
            whole: Vec::new(),
            placed: false,
            targeted: false,
            cursors: Cursors::default(),
            #[cfg(target_arch = "x86_64")]
            masks: Masks::default(),
            transit: Vec::new(),
        }
    }

    /// Returns the starts of partitions; after the last, the number of rows.
    #[cfg(test)]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Takes the starts of partitions out of the order.
    pub fn take_offsets(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.offsets)
    }

    /// Finds the order of `ids`, fewer than 2^32, for the columns of `load`.
    pub fn plan<'a>(&'a mut self, ids: &'a [u32], partitions: usize, load: Load) -> Plan<'a> {
        match ascending(ids, partitions, &mut self.offsets) {
            Ascending::Yes => return Plan::Ascending,
            Ascending::Outside => return Plan::Outside,
            Ascending::No => {}
        }
        self.way = plan(self.level, load, Seen::of(ids, partitions));
        (self.placed, self.targeted) = (false, false);
        if !self.count(ids, partitions) {
            return Plan::Outside;
        }
        self.find_offsets(partitions);
        Plan::Ordered(Planned { order: self, ids })
    }

    /// Counts the rows of each chunk. Returns false if an id is no partition.
    fn count(&mut self, ids: &[u32], partitions: usize) -> bool {
        let Way { find, chunk, rows, .. } = self.way;
        let (level, wide) = (self.level, self.way.is_wide());
        self.ends.clear();
        self.ends.resize(partitions * rows.div_ceil(chunk), 0);
        let chunks = ids.chunks(chunk).zip(self.ends.chunks_exact_mut(partitions));
        for (ids, ends) in chunks {
            let known = match find {
                // SAFETY: `plan` uses masks only at the AVX-512 level, and for fewer than 255
                // partitions.
                #[cfg(target_arch = "x86_64")]
                Find::Masks => unsafe { self.masks.build(ids, ends) },
                _ => self.cursors.count(level, ids, ends, wide),
            };
            if !known {
                return false;
            }
        }
        if find == Find::Whole {
            self.whole.resize(rows, 0);
            let places = self.whole.as_mut_ptr();
            // SAFETY: these ids were counted as one chunk, successfully. Targets are below the
            // rows, and `whole` has an entry for each row.
            unsafe { self.cursors.each(ids, |row, target| *places.add(target) = row as u32) };
        }
        true
    }

    /// Adds up the rows of each partition over all chunks.
    fn find_offsets(&mut self, partitions: usize) {
        self.offsets.clear();
        self.offsets.reserve_exact(partitions + 1);
        self.offsets.push(0);
        if self.way.is_one_chunk() {
            self.offsets.extend(self.ends.iter().map(|&end| end as usize));
            return;
        }
        self.offsets.resize(partitions + 1, 0);
        for ends in self.ends.chunks_exact(partitions) {
            let mut start = 0;
            for (count, &end) in self.offsets[1..].iter_mut().zip(ends) {
                *count += (end - start) as usize;
                start = end;
            }
        }
        for partition in 0..partitions {
            self.offsets[partition + 1] += self.offsets[partition];
        }
    }
}

impl Planned<'_> {
    pub fn rows(&self) -> usize {
        self.order.way.rows
    }

    pub(super) fn level(&self) -> Level {
        self.order.level
    }

    pub(super) fn partitions(&self) -> usize {
        self.order.offsets.len() - 1
    }

    /// Returns whether the load is one column or bitmap only.
    pub fn moves_one(&self) -> bool {
        self.order.way.moves_one()
    }

    /// Finds the row at each place of each chunk, unless found before.
    fn place(&mut self) {
        let Way { find, rows, .. } = self.order.way;
        if find == Find::Whole || replace(&mut self.order.placed, true) {
            return;
        }
        let mut places = take(&mut self.order.places);
        places.resize(rows + PAD, 0);
        match find {
            #[cfg(target_arch = "x86_64")]
            Find::Masks => {
                assert!(self.is_one_run(), "masks of long record batches have no places");
                // SAFETY: `plan` uses masks only at the AVX-512 level. They have at most 65,536
                // rows, each of which is in one mask.
                unsafe { self.order.masks.places(&mut places) };
            }
            _ => self.each_chunk(&mut places[..rows], |cursors, ids, places| {
                let places = places.as_mut_ptr();
                // SAFETY: `each_chunk` provides the counted ids of a chunk. Targets are below the
                // rows of the chunk, at most 65,536, and `places` has an entry for each of them.
                unsafe { cursors.each(ids, |row, target| *places.add(target) = row as u16) };
            }),
        }
        self.order.places = places;
    }

    /// Finds the target of each row in its chunk, unless found before.
    pub(super) fn target(&mut self) {
        let Way { find, rows, .. } = self.order.way;
        if replace(&mut self.order.targeted, true) {
            return;
        }
        let mut targets = take(&mut self.order.targets);
        targets.resize(rows + PAD, 0);
        match find {
            #[cfg(target_arch = "x86_64")]
            Find::Masks => {
                assert!(self.is_one_run(), "masks of long record batches have no targets");
                // SAFETY: `plan` uses masks only at the AVX-512 level. The masks are of these ids,
                // at most 65,536, each of which is in one mask, and partitions end at `ends`.
                unsafe { self.order.masks.targets(self.ids, &self.order.ends, &mut targets) };
            }
            _ => self.each_chunk(&mut targets[..rows], |cursors, ids, targets| {
                // SAFETY: `each_chunk` provides the counted ids of a chunk, at most 65,536.
                unsafe { cursors.targets(ids, targets) };
            }),
        }
        self.order.targets = targets;
    }

    /// Calls `find` with the cursors of each chunk, its ids and its part of `found`.
    fn each_chunk(&mut self, found: &mut [u16], find: impl Fn(&mut Cursors, &[u32], &mut [u16])) {
        let (one, partitions) = (self.is_one_run(), self.partitions());
        let order = &mut *self.order;
        assert!(
            order.way.chunk <= LARGEST_CHUNK,
            "a long column is dealt without places or targets"
        );
        let ends = order.ends.chunks_exact_mut(partitions);
        let parts = found.chunks_mut(order.way.chunk);
        for ((ids, part), ends) in self.ids.chunks(order.way.chunk).zip(parts).zip(ends) {
            if !one {
                // SAFETY: counting these ids wrote these ends.
                unsafe { order.cursors.recall(order.level, ids, ends, false) };
            }
            find(&mut order.cursors, ids, part);
        }
    }

    /// Returns whether all rows are one run.
    pub(super) fn is_one_run(&self) -> bool {
        self.order.way.is_one_chunk()
    }

    /// Calls `mover` for all runs, by chunk and, within a chunk, by partition.
    pub(super) fn each_run(&mut self, mover: &mut impl Mover) {
        self.place();
        let order = &*self.order;
        let Way { find, chunk, rows, .. } = order.way;
        if order.way.is_one_chunk() {
            mover.chunk(0..rows);
            // SAFETY: places are rows of the order, one for each row, from target 0 on.
            return unsafe {
                match find {
                    Find::Whole => mover.run(0, &order.whole, 0),
                    _ => mover.run(0, &order.places[..rows], 0),
                }
            };
        }
        let mut targets = order.offsets.clone();
        let places = order.places[..rows].chunks(chunk);
        for (index, (places, ends)) in
            places.zip(order.ends.chunks_exact(order.offsets.len() - 1)).enumerate()
        {
            let base = index * chunk;
            mover.chunk(base..base + places.len());
            let mut start = 0;
            for (&end, target) in ends.iter().zip(&mut targets) {
                let run = &places[start..end as usize];
                if !run.is_empty() {
                    // SAFETY: places are rows of the chunk at `base`. A partition's target starts
                    // at its offset and advances by the rows moved there.
                    unsafe { mover.run(base, run, *target) };
                    *target += run.len();
                }
                start = end as usize;
            }
        }
    }

    /// Replaces the contents of `rows` by the row at each place.
    pub fn write_rows(&mut self, rows: &mut Vec<u64>) {
        rows.resize(self.rows(), 0);
        self.each_run(&mut Rows { out: rows });
    }
}

struct Rows<'a> {
    out: &'a mut [u64],
}

impl Mover for Rows<'_> {
    unsafe fn run<P: Place>(&mut self, base: usize, places: &[P], target: usize) {
        for (out, place) in self.out[target..].iter_mut().zip(places) {
            *out = (base + place.row()) as u64;
        }
    }
}
