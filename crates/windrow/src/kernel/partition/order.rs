//! The order of a record batch by partition, and the columns that are brought into it.
//!
//! ```text
//! chunk 0         chunk 1                 runs of both, appended partition by partition
//! | p0 | p1 | p2 | p0 | p1 | p2 |  --->   | p0 p0 | p1 p1 | p2 p2 |
//!   places, as rows of their chunk
//! ```
//!
//! Nothing is found that no column asks for: masks, targets of rows, places - and, for the only
//! column of a record batch, none of these.
//!
//! Invariant: the places of a chunk are its rows, each once, those of a partition in ascending
//! order; `offsets` says where partitions start in the whole, from 0 to the number of rows.

use super::Level;
use super::fixed::{Place, SCATTERED, gather, gather_any, scatter};
#[cfg(target_arch = "x86_64")]
use super::ids::repeat;
use super::ids::{ascend, ascending_offsets, within};
#[cfg(target_arch = "x86_64")]
use super::masks::{Masks, compresses, pay};
use super::segments::Cursors;

/// Bytes behind the rows of a target that may be overwritten.
pub(crate) const PAD: usize = 64;
/// Rows of a chunk where a record batch has more than one: their 4- and 8-byte values stay in the
/// second-level cache with their places.
const CHUNK: usize = 32 << 10;
/// What a place of two bytes can tell apart.
const LARGEST_CHUNK: usize = 64 << 10;
/// Runs of fewer rows than this are not worth appending: chunks get larger, and in the end all rows
/// are one chunk.
const RUN: usize = 32;

/// What becomes of ids; keeps its memory from one record batch to the next.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    level: Level,
    rows: usize,
    /// Where partitions start; behind the last, the number of rows.
    offsets: Vec<usize>,
    form: Form,
    chunk: usize,
    /// Places of chunks of at most [`LARGEST_CHUNK`] rows, and a pad.
    places: Vec<u16>,
    /// Of one chunk: where each row goes.
    targets: Vec<u16>,
    /// Places of a chunk of all rows.
    wide: Vec<u32>,
    placed: bool,
    targeted: bool,
    /// Where partitions end in each chunk.
    ends: Vec<u32>,
    cursors: Cursors,
    #[cfg(target_arch = "x86_64")]
    masks: Masks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// One chunk, few partitions: masks.
    #[cfg(target_arch = "x86_64")]
    Masks,
    /// One chunk: rows are counted.
    Counted,
    /// Places of chunks.
    Chunks,
    /// Places of one chunk of any number of rows.
    Wide,
}

/// What is to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// One bitmap, and nothing else.
    Bits,
    /// One column of fixed width without nulls, and nothing else.
    Fixed,
    Many,
}

/// What ids turn out to be.
pub(crate) enum Plan<'a> {
    /// Some id is not a partition.
    Outside,
    /// Rows are in order as they are.
    Ascending,
    Ordered(Planned<'a>),
}

/// The order of one record batch.
pub(crate) struct Planned<'a> {
    order: &'a mut Order,
    ids: &'a [u32],
    load: Load,
}

/// What is done with the places of a run.
pub(super) trait Mover {
    /// Announces the rows of a chunk, before its runs.
    fn chunk(&mut self, _rows: std::ops::Range<usize>) {}

    /// Moves the rows `base + place` to `target` and behind.
    ///
    /// # Safety
    /// They are below the number of rows of the order, and so is `target + places.len() - 1`.
    unsafe fn run<P: Place>(&mut self, base: usize, places: &[P], target: usize);
}

impl Order {
    pub(crate) fn new(level: Level) -> Self {
        Self {
            level,
            rows: 0,
            offsets: vec![0],
            form: Form::Chunks,
            chunk: CHUNK,
            places: Vec::new(),
            targets: Vec::new(),
            wide: Vec::new(),
            placed: false,
            targeted: false,
            ends: Vec::new(),
            cursors: Cursors::default(),
            #[cfg(target_arch = "x86_64")]
            masks: Masks::default(),
        }
    }

    /// Where partitions start; behind the last, the number of rows.
    pub(crate) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Finds the order of `ids`, of which there are fewer than 2^32. `load` says what it is for.
    pub(crate) fn plan<'a>(
        &'a mut self,
        ids: &'a [u32],
        partitions: usize,
        load: Load,
    ) -> Plan<'a> {
        self.rows = ids.len();
        if ascend(ids) {
            if ids.last().is_some_and(|&last| last as usize >= partitions) {
                return Plan::Outside;
            }
            ascending_offsets(ids, partitions, &mut self.offsets);
            return Plan::Ascending;
        }
        self.chunk = chunk_rows(ids.len(), partitions);
        self.ends.clear();
        self.placed = false;
        self.targeted = false;
        #[cfg(target_arch = "x86_64")]
        if self.level == Level::Avx512
            && ids.len() <= LARGEST_CHUNK
            && (pay(load, partitions) || pay(Load::Many, partitions) && repeat(ids))
        {
            self.form = Form::Masks;
            self.ends.resize(partitions, 0);
            // SAFETY: the level says that the CPU can; there are fewer than 256 partitions.
            let known = unsafe { self.masks.build(ids, &mut self.ends) };
            if known != ids.len() {
                return Plan::Outside;
            }
            self.find_offsets(partitions);
            return Plan::Ordered(Planned { order: self, ids, load });
        }
        if !within(ids, partitions) {
            return Plan::Outside;
        }
        if ids.len() <= LARGEST_CHUNK {
            self.form = Form::Counted;
            self.ends.resize(partitions, 0);
            // SAFETY: ids are within the partitions.
            unsafe { self.cursors.count(ids, &mut self.ends) };
        } else if self.chunk > LARGEST_CHUNK {
            self.form = Form::Wide;
            self.wide.resize(ids.len(), 0);
            self.ends.resize(partitions, 0);
            let places = self.wide.as_mut_ptr();
            // SAFETY: ids are within the partitions; targets are below the rows.
            unsafe {
                self.cursors.count(ids, &mut self.ends);
                self.cursors.each(ids, |row, target| *places.add(target) = row as u32);
            }
        } else {
            self.form = Form::Chunks;
            self.places.resize(ids.len() + PAD, 0);
            self.ends.resize(partitions * ids.len().div_ceil(self.chunk), 0);
            let places = self.places.chunks_mut(self.chunk);
            let ends = self.ends.chunks_exact_mut(partitions);
            for ((ids, places), ends) in ids.chunks(self.chunk).zip(places).zip(ends) {
                let places = places.as_mut_ptr();
                // SAFETY: ids are within the partitions; targets are below the rows of the chunk.
                unsafe {
                    self.cursors.count(ids, ends);
                    self.cursors.each(ids, |row, target| *places.add(target) = row as u16);
                }
            }
        }
        self.find_offsets(partitions);
        Plan::Ordered(Planned { order: self, ids, load })
    }

    /// Adds up what chunks have of each partition.
    fn find_offsets(&mut self, partitions: usize) {
        self.offsets.clear();
        if let [ends] = [&self.ends[..]]
            && ends.len() == partitions
        {
            self.offsets.push(0);
            self.offsets.extend(ends.iter().map(|&end| end as usize));
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
    pub(crate) fn rows(&self) -> usize {
        self.order.rows
    }

    pub(super) fn level(&self) -> Level {
        self.order.level
    }

    /// Finds which row comes at each place of the only chunk, unless that is known.
    fn place(&mut self) {
        let order = &mut *self.order;
        if order.placed || matches!(order.form, Form::Chunks | Form::Wide) {
            return;
        }
        order.placed = true;
        order.places.resize(order.rows + PAD, 0);
        let places = order.places.as_mut_ptr();
        if order.targeted {
            for (row, &target) in order.targets.iter().enumerate() {
                // SAFETY: targets are below the rows.
                unsafe { *places.add(usize::from(target)) = row as u16 };
            }
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if order.form == Form::Masks {
            // SAFETY: masks are built on CPUs that can, of at most 65,536 rows, each of which is
            // in one.
            return unsafe { order.masks.places(&mut order.places) };
        }
        // SAFETY: these ids were counted; targets are below the rows.
        unsafe { order.cursors.each(self.ids, |row, target| *places.add(target) = row as u16) };
    }

    /// Finds where each row of the only chunk goes, unless that is known.
    fn target(&mut self) {
        if self.order.targeted {
            return;
        }
        if self.order.form != Form::Counted {
            self.place();
        }
        let order = &mut *self.order;
        order.targeted = true;
        order.targets.resize(order.rows, 0);
        let targets = order.targets.as_mut_ptr();
        if order.placed {
            for (target, place) in order.places[..order.rows].iter().enumerate() {
                // SAFETY: places are rows.
                unsafe { *targets.add(usize::from(*place)) = target as u16 };
            }
            return;
        }
        // SAFETY: these ids were counted; rows are below the rows.
        unsafe { order.cursors.each(self.ids, |row, target| *targets.add(row) = target as u16) };
    }

    /// True if all rows are one run.
    pub(super) fn is_one_run(&self) -> bool {
        self.order.form != Form::Chunks
    }

    /// Calls `mover` for all runs, in order of chunks and, within, of partitions.
    pub(super) fn each_run(&mut self, mover: &mut impl Mover) {
        self.place();
        let order = &*self.order;
        if order.form == Form::Wide {
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

    /// Brings values of `width` bytes into order. `out` is [`PAD`] bytes longer than they are.
    ///
    /// # Panics
    /// If a slice is too short.
    pub(crate) fn fixed(&mut self, width: usize, source: &[u8], out: &mut [u8]) {
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
        #[cfg(target_arch = "x86_64")]
        if self.order.form == Form::Masks && compresses(self.load, W, self.order.offsets.len() - 1)
        {
            // SAFETY: masks are built on CPUs that can; widths that compress are 1, 2, 4 and 8.
            return unsafe { self.order.masks.compress::<W>(source, out) };
        }
        let rows = self.rows();
        let source = &source.as_chunks::<W>().0[..rows];
        let out = &mut out.as_chunks_mut::<W>().0[..rows];
        if self.deals_out() {
            return self.deal_out(source, out);
        }
        if W >= SCATTERED && !matches!(self.order.form, Form::Chunks | Form::Wide) {
            self.target();
            // SAFETY: there is a target for each row, below the rows, and as many values.
            return unsafe { scatter(source, &self.order.targets, out) };
        }
        self.each_run(&mut Fixed { source, out });
    }

    /// True if rows go straight to where they belong: nothing else asks for places or targets.
    pub(super) fn deals_out(&self) -> bool {
        self.load != Load::Many && self.order.form == Form::Counted
    }

    /// Brings values into order without finding places or targets.
    ///
    /// # Panics
    /// If there are fewer values than rows, or rows do not go straight.
    pub(super) fn deal_out<const W: usize>(&mut self, source: &[[u8; W]], out: &mut [[u8; W]]) {
        assert!(self.deals_out());
        assert!(source.len() >= self.rows() && out.len() >= self.rows());
        let out = out.as_mut_ptr();
        // SAFETY: these ids were counted; rows and targets are below the rows, and `source` and
        // `out` have as many values.
        unsafe {
            self.order.cursors.each(self.ids, |row, target| {
                out.add(target).copy_from_nonoverlapping(source.get_unchecked(row), 1);
            });
        }
    }

    /// True if that many bitmaps are cheaper by masks than as bytes: a pass for each partition and
    /// bitmap, or one over the rows for up to eight bitmaps.
    pub(super) fn extracts(&self, bitmaps: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.order.form == Form::Masks {
            let partitions = self.order.offsets.len() - 1;
            return self.load == Load::Bits || bitmaps * partitions <= 24;
        }
        let _ = bitmaps;
        false
    }

    /// Brings words of bits into order by masks.
    ///
    /// # Panics
    /// If there are no masks.
    pub(super) fn extract(&self, words: &[u64], out: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if self.order.form == Form::Masks {
            // SAFETY: masks are built on CPUs that can.
            return unsafe { self.order.masks.extract(words, out) };
        }
        unreachable!("{} words and {} have no masks", words.len(), out.len());
    }

    /// The row that comes at each place, in place of what `rows` held.
    pub(crate) fn write_rows(&mut self, rows: &mut Vec<u64>) {
        rows.resize(self.rows(), 0);
        self.each_run(&mut Rows { out: rows });
    }
}

/// Rows of a chunk: as few as cache well, unless runs would be too short.
fn chunk_rows(rows: usize, partitions: usize) -> usize {
    if rows <= LARGEST_CHUNK {
        return LARGEST_CHUNK;
    }
    let chunk = CHUNK.max((partitions * RUN).next_power_of_two());
    if chunk <= LARGEST_CHUNK {
        chunk
    } else if partitions <= LARGEST_CHUNK / 8 {
        LARGEST_CHUNK
    } else {
        rows
    }
}

struct Fixed<'a, const W: usize> {
    source: &'a [[u8; W]],
    out: &'a mut [[u8; W]],
}

impl<const W: usize> Mover for Fixed<'_, W> {
    unsafe fn run<P: Place>(&mut self, base: usize, places: &[P], target: usize) {
        let out = &mut self.out[target..target + places.len()];
        // SAFETY: `base + place` is a row, and `source` has all rows.
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
