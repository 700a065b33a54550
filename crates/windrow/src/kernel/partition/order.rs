//! The order of a record batch by partition, and the columns that are brought into it.
//!
//! ```text
//! chunk 0         chunk 1                 runs of both, appended partition by partition
//! | p0 | p1 | p2 | p0 | p1 | p2 |  --->   | p0 p0 | p1 p1 | p2 p2 |
//!   places, as rows of their chunk
//! ```
//!
//! Invariant: the places of a chunk are its rows, each once, those of a partition in ascending
//! order; `offsets` says where partitions start in the whole, from 0 to the number of rows.

use super::fixed::{Place, gather, gather_any};
use super::ids::Ids;
#[cfg(target_arch = "x86_64")]
use super::masks::{MOST, Masks, compresses};
use super::{Level, segments};

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

/// How rows move. Keeps its memory from one record batch to the next.
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
    /// Places of a chunk of all rows.
    wide: Vec<u32>,
    /// Where partitions end in each chunk.
    ends: Vec<u32>,
    cursors: Vec<u32>,
    #[cfg(target_arch = "x86_64")]
    masks: Masks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Masks; places too, if something asked for them.
    #[cfg(target_arch = "x86_64")]
    Masks {
        placed: bool,
    },
    Chunks,
    /// One chunk of any number of rows.
    Wide,
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
            wide: Vec::new(),
            ends: Vec::new(),
            cursors: Vec::new(),
            #[cfg(target_arch = "x86_64")]
            masks: Masks::default(),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Where partitions start; behind the last, the number of rows.
    pub(crate) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Finds the order of `ids`.
    pub(crate) fn plan(&mut self, ids: Ids<'_>) {
        let partitions = ids.partitions();
        self.rows = ids.len();
        self.ends.clear();
        #[cfg(target_arch = "x86_64")]
        if self.level == Level::Avx512 && ids.len() <= LARGEST_CHUNK && partitions <= MOST {
            self.ends.resize(partitions, 0);
            // SAFETY: the level says that the CPU can; 16 partitions are fewer than 256.
            unsafe { self.masks.build(&ids, &mut self.ends) };
            self.form = Form::Masks { placed: false };
            self.chunk = LARGEST_CHUNK;
            self.find_offsets(partitions);
            return;
        }
        self.chunk = chunk_rows(ids.len(), partitions);
        if self.chunk > LARGEST_CHUNK {
            self.form = Form::Wide;
            self.wide.resize(ids.len(), 0);
            self.ends.resize(partitions, 0);
            // SAFETY: `Ids` are below the number of partitions.
            unsafe { segments::order(&ids, &mut self.cursors, &mut self.ends, &mut self.wide) };
        } else {
            self.form = Form::Chunks;
            self.places.resize(ids.len() + PAD, 0);
            self.ends.resize(partitions * ids.len().div_ceil(self.chunk).max(1), 0);
            let places = self.places.chunks_mut(self.chunk);
            let ends = self.ends.chunks_exact_mut(partitions);
            for ((ids, places), ends) in ids.chunks(self.chunk).zip(places).zip(ends) {
                // SAFETY: `Ids` are below the number of partitions; chunks are small enough.
                unsafe {
                    segments::order(ids, &mut self.cursors, ends, &mut places[..ids.len()]);
                }
            }
        }
        self.find_offsets(partitions);
    }

    /// Adds up what chunks have of each partition.
    fn find_offsets(&mut self, partitions: usize) {
        self.offsets.clear();
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
        debug_assert_eq!(self.offsets[partitions], self.rows);
    }

    /// Finds the places, if only the masks are known.
    fn place(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if self.form == (Form::Masks { placed: false }) {
            self.places.resize(self.rows + PAD, 0);
            // SAFETY: masks are built on CPUs that can, of at most 65,536 rows, each of which has
            // one id.
            unsafe { self.masks.places(&mut self.places) };
            self.form = Form::Masks { placed: true };
        }
    }

    /// True if all rows are one run.
    pub(super) fn is_one_run(&self) -> bool {
        self.form == Form::Wide || self.rows <= self.chunk
    }

    /// Calls `mover` for all runs, in order of chunks and, within, of partitions.
    pub(super) fn each_run(&mut self, mover: &mut impl Mover) {
        self.place();
        if self.form == Form::Wide {
            mover.chunk(0..self.rows);
            // SAFETY: places are rows.
            return unsafe { mover.run(0, &self.wide, 0) };
        }
        let places = &self.places[..self.rows];
        if self.is_one_run() {
            mover.chunk(0..self.rows);
            // SAFETY: places are rows.
            return unsafe { mover.run(0, places, 0) };
        }
        let partitions = self.offsets.len() - 1;
        let mut targets = self.offsets.clone();
        let chunks = places.chunks(self.chunk).zip(self.ends.chunks_exact(partitions));
        for (index, (places, ends)) in chunks.enumerate() {
            let base = index * self.chunk;
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
        let len = self.rows * width;
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
        if matches!(self.form, Form::Masks { .. }) && compresses(W, self.offsets.len() - 1) {
            // SAFETY: masks are built on CPUs that can; widths that compress are 1, 2, 4 and 8.
            return unsafe { self.masks.compress::<W>(source, out) };
        }
        let source = &source.as_chunks::<W>().0[..self.rows];
        let out = &mut out.as_chunks_mut::<W>().0[..self.rows];
        self.each_run(&mut Fixed { source, out });
    }

    /// Brings words of bits into order, if masks are known; else says no.
    pub(super) fn extract(&self, words: &[u64], out: &mut [u64]) -> bool {
        #[cfg(target_arch = "x86_64")]
        if matches!(self.form, Form::Masks { .. }) {
            // SAFETY: masks are built on CPUs that can.
            unsafe { self.masks.extract(words, out) };
            return true;
        }
        let _ = (words, out);
        false
    }

    /// The row that comes at each place, in place of what `rows` held.
    pub(crate) fn write_rows(&mut self, rows: &mut Vec<u64>) {
        rows.resize(self.rows, 0);
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
