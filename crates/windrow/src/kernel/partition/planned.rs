//! Where rows go, and which row comes where: found when the first column asks, and kept.
//!
//! ```text
//! rows     0 1 2 3 4 5      places    1 4 0 2 5 3     the row that comes k-th
//! ids      1 0 1 2 0 1      targets   2 0 3 5 1 4     the place where a row goes
//! ```
//!
//! Places and targets undo each other. Those of one chunk are numbers of two bytes.

use super::Level;
use super::fixed::Place;
#[cfg(target_arch = "x86_64")]
use super::masks::MOST_EXPANDED;
use super::order::{Form, LARGEST_CHUNK, Mover, PAD, Planned};

impl Planned<'_> {
    pub(crate) fn rows(&self) -> usize {
        self.order.rows
    }

    pub(super) fn level(&self) -> Level {
        self.order.level
    }

    /// Counts the rows of the only chunk after all.
    pub(super) fn count(&mut self) {
        let order = &mut *self.order;
        let partitions = order.partitions;
        order.ends.clear();
        order.ends.resize(partitions, 0);
        assert!(order.cursors.count(self.ids, &mut order.ends, false), "ids were looked at");
        order.form = Form::Counted;
        order.find_offsets(partitions);
    }

    /// Finds which row comes at each place of the only chunk, unless that is known.
    pub(super) fn place(&mut self) {
        let order = &mut *self.order;
        if order.placed || order.form == Form::Whole {
            return;
        }
        assert!(order.form != Form::Buckets, "the only column has no places");
        // What goes straight may be longer, and has neither places nor targets.
        assert!(order.form == Form::Chunks || order.rows <= LARGEST_CHUNK);
        order.placed = true;
        order.places.resize(order.rows + PAD, 0);
        if order.form == Form::Chunks {
            return self.place_chunks();
        }
        let places = order.places.as_mut_ptr();
        #[cfg(target_arch = "x86_64")]
        if order.form == Form::Masks {
            // SAFETY: masks are built on CPUs that can, of at most 65,536 rows, each of which is
            // in one.
            return unsafe { order.masks.places(&mut order.places) };
        }
        if order.targeted {
            for (row, &target) in order.targets[..order.rows].iter().enumerate() {
                // SAFETY: targets are below the rows.
                unsafe { *places.add(usize::from(target)) = row as u16 };
            }
            return;
        }
        // SAFETY: these ids were counted; targets are below the rows.
        unsafe { order.cursors.each(self.ids, |row, target| *places.add(target) = row as u16) };
    }

    /// Finds the places of all chunks.
    fn place_chunks(&mut self) {
        let order = &mut *self.order;
        let partitions = order.offsets.len() - 1;
        let places = order.places.chunks_mut(order.chunk);
        let ends = order.ends.chunks_exact_mut(partitions);
        for ((ids, places), ends) in self.ids.chunks(order.chunk).zip(places).zip(ends) {
            let places = places.as_mut_ptr();
            // SAFETY: these ends were written when these ids were counted; targets are below the rows of the
            // chunk.
            unsafe {
                order.cursors.recall(ids, ends, false);
                order.cursors.each(ids, |row, target| *places.add(target) = row as u16);
            }
        }
    }

    /// Finds where each row of all chunks goes in its chunk, unless that is known.
    pub(super) fn target_chunks(&mut self) {
        let order = &mut *self.order;
        assert!(order.form == Form::Chunks && order.chunk <= LARGEST_CHUNK);
        if std::mem::replace(&mut order.targeted, true) {
            return;
        }
        order.targets.resize(order.rows + PAD, 0);
        let targets = order.targets[..order.rows].chunks_mut(order.chunk);
        let ends = order.ends.chunks_exact_mut(order.partitions);
        for ((ids, targets), ends) in self.ids.chunks(order.chunk).zip(targets).zip(ends) {
            // SAFETY: these ends were written when these ids were counted, of which a chunk has at most 65,536.
            unsafe {
                order.cursors.recall(ids, ends, false);
                order.cursors.targets(ids, targets);
            }
        }
    }

    /// Finds where each row of the only chunk goes, unless that is known.
    pub(super) fn target(&mut self) {
        if self.order.targeted {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if self.order.form == Form::Masks && self.order.offsets.len() <= MOST_EXPANDED + 1 {
            let order = &mut *self.order;
            order.targeted = true;
            order.targets.resize(order.rows + PAD, 0);
            // SAFETY: masks are built on CPUs that can, of these ids, at most 65,536, each of which
            // is in one.
            return unsafe { order.masks.targets(self.ids, &order.ends, &mut order.targets) };
        }
        if self.order.form != Form::Counted {
            self.place();
        }
        let order = &mut *self.order;
        assert!(order.rows <= LARGEST_CHUNK);
        order.targeted = true;
        order.targets.resize(order.rows + PAD, 0);
        let targets = &mut order.targets[..order.rows];
        if order.placed {
            for (target, place) in order.places[..order.rows].iter().enumerate() {
                targets[usize::from(*place)] = target as u16;
            }
            return;
        }
        // SAFETY: these ids were counted, at most 65,536 of them.
        unsafe { order.cursors.targets(self.ids, targets) };
    }

    /// True if all rows are one run.
    pub(super) fn is_one_run(&self) -> bool {
        self.order.form != Form::Chunks
    }

    /// Calls `mover` for all runs, in order of chunks and, within, of partitions.
    pub(super) fn each_run(&mut self, mover: &mut impl Mover) {
        self.place();
        let order = &*self.order;
        if order.form == Form::Whole {
            mover.chunk(0..order.rows);
            // SAFETY: places are rows.
            return unsafe { mover.run(0, &order.wide, 0) };
        }
        let places = &order.places[..order.rows];
        if self.is_one_run() {
            mover.chunk(0..order.rows);
            // SAFETY: places are rows.
            return unsafe { mover.run(0, places, 0) };
        }
        let partitions = order.offsets.len() - 1;
        let mut targets = order.offsets.clone();
        let chunks = places.chunks(order.chunk).zip(order.ends.chunks_exact(partitions));
        for (index, (places, ends)) in chunks.enumerate() {
            let base = index * order.chunk;
            mover.chunk(base..base + places.len());
            let mut start = 0;
            for (&end, target) in ends.iter().zip(&mut targets) {
                let run = &places[start..end as usize];
                if !run.is_empty() {
                    // SAFETY: places are rows of the chunk at `base`; targets start at the offset
                    // of their partition and are moved on by what was put there.
                    unsafe { mover.run(base, run, *target) };
                    *target += run.len();
                }
                start = end as usize;
            }
        }
    }

    /// The row that comes at each place, in place of what `rows` held.
    pub(crate) fn write_rows(&mut self, rows: &mut Vec<u64>) {
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
