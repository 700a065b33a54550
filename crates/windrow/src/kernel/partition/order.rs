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
use super::buckets::Buckets;
#[cfg(target_arch = "x86_64")]
use super::digits::Digits;
use super::fixed::{Place, SCATTERED};
use super::ids::{Ascending, Pattern, ascending, pattern};
#[cfg(target_arch = "x86_64")]
use super::masks::{Masks, pay};
#[cfg(target_arch = "x86_64")]
use super::ranks::{Ranks, suit};
use super::segments::Cursors;
#[cfg(target_arch = "x86_64")]
use super::sweep::Sweep;

/// Bytes behind the rows of a target that may be overwritten.
pub(crate) const PAD: usize = 64;
/// Rows of a chunk where a record batch has more than one: their 4- and 8-byte values stay in the
/// second-level cache with their places.
const CHUNK: usize = 32 << 10;
/// What a place of two bytes can tell apart.
pub(super) const LARGEST_CHUNK: usize = 64 << 10;
/// Up to so many partitions, the only column of a long record batch is not taken apart in chunks.
const STRAIGHT: usize = 64;
/// The same, where [`Level::Gathering`] says so: with 64 partitions, 32M values of four bytes take 4.0 ns each in
/// chunks, by lines past the cache, and 5.8 straight; with 32, 4.0 and 3.8.
#[cfg(target_arch = "x86_64")]
const STRAIGHT_GATHERING: usize = 32;
/// The same, with AVX-512 otherwise. On Zen 5 64M values of four bytes in 64 partitions, to memory that is used again, take
/// 0.94 ns each in chunks and 1.57 straight, of eight bytes 1.10 and 2.51; in 16 0.98 and 1.05, 1.20 and 1.30. On Zen 4 1.55
/// and 1.56, 1.53 and 1.88; in 16 1.7 and 1.67, 1.59 and 1.96.
#[cfg(target_arch = "x86_64")]
const STRAIGHT_BY_LINES: usize = 4;
/// Bytes of a column that no cache holds until somebody reads them.
pub(super) const UNCACHED: usize = 48 << 20;
/// Up to so many partitions, masks are faster even where rows take turns and no cursor is waited
/// for.
#[cfg(target_arch = "x86_64")]
const FEW: usize = 4;
/// Up to so many partitions, the only bitmap is faster by targets than straight.
#[cfg(target_arch = "x86_64")]
const MOST_RANKED: usize = 256;
/// From so many partitions on, short values are gathered faster than they are scattered; where rows
/// take turns or are ranked, beyond so many.
const GATHERED: usize = 32;
const MOST_SPREAD: usize = 512;
/// Runs of fewer rows than this are not worth appending: chunks get larger, and in the end all rows
/// are one chunk.
const RUN: usize = 32;

/// What becomes of ids; keeps its memory from one record batch to the next.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(super) level: Level,
    pub(super) rows: usize,
    pub(super) partitions: usize,
    /// Where partitions start; behind the last, the number of rows.
    pub(super) offsets: Vec<usize>,
    pub(super) form: Form,
    pub(super) chunk: usize,
    /// Places of chunks of at most [`LARGEST_CHUNK`] rows, and a pad.
    pub(super) places: Vec<u16>,
    /// Of one chunk: where each row goes.
    pub(super) targets: Vec<u16>,
    /// In what order lines of the only chunk are gathered.
    #[cfg(target_arch = "x86_64")]
    pub(super) sweep: Sweep,
    /// Values on their way: of a chunk, in buckets, as records.
    pub(super) transit: Vec<u8>,
    /// Places of a chunk of all rows.
    pub(super) wide: Vec<u32>,
    pub(super) placed: bool,
    pub(super) targeted: bool,
    /// Whether the rows of a partition are in as many lines as there are: to gather them one
    /// partition after the other would read everything as often.
    pub(super) spread: bool,
    /// Where partitions end in each chunk.
    pub(super) ends: Vec<u32>,
    pub(super) cursors: Cursors,
    pub(super) buckets: Buckets,
    /// Whether an id turned out to be no partition as its row was dealt into a bucket.
    pub(super) outside: bool,
    /// Whether the only column goes by masks in each chunk.
    #[cfg(target_arch = "x86_64")]
    pub(super) masked: bool,
    #[cfg(target_arch = "x86_64")]
    pub(super) masks: Masks,
    #[cfg(target_arch = "x86_64")]
    ranks: Ranks,
    #[cfg(target_arch = "x86_64")]
    digits: Digits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One chunk, few partitions: masks.
    #[cfg(target_arch = "x86_64")]
    Masks,
    /// One chunk of one column: nothing is counted, nor are offsets known before it is moved.
    Buckets,
    /// One chunk: places are found as rows are counted.
    #[cfg(target_arch = "x86_64")]
    Placed,
    /// One chunk: targets are found as rows are counted.
    #[cfg(target_arch = "x86_64")]
    Ranked,
    /// One chunk: rows are counted.
    Counted,
    /// Places of chunks.
    Chunks,
    /// Places of one chunk of any number of rows.
    Whole,
}

/// What is to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// One bitmap, and nothing else.
    Bits,
    /// One column of up to eight bytes a value, so many, without nulls, and nothing else.
    Fixed(usize),
    /// The same, of more bytes.
    Wide,
    /// More than that, and values of eight bytes or more, or several columns of four, among it:
    /// so many columns are put to targets, or gathered.
    ManyTargeted(usize),
    /// More than that, of shorter values.
    Many,
    /// The same, and strings or what is taken row by row among it.
    ManyTexts,
}

impl Load {
    /// True for one column or bitmap, and nothing else.
    pub(super) fn is_one(self) -> bool {
        matches!(self, Self::Bits | Self::Fixed(_) | Self::Wide)
    }

    /// True if values of `width` are scattered to targets, not gathered from places: for wide ones
    /// that is faster, for others as fast, and to find both costs more than either saves. `spread`
    /// rows are far apart from the next of their partition.
    pub(super) fn scatters(self, width: usize, spread: bool) -> bool {
        match self {
            Self::Bits | Self::Fixed(_) | Self::ManyTargeted(_) => true,
            Self::Many if spread => true,
            _ => width >= SCATTERED,
        }
    }
}

/// What ids turn out to be.
pub(crate) enum Plan<'a> {
    /// Some id is not a partition. Not all such ids are found here: see [`Order::is_outside`].
    Outside,
    /// Rows are in order as they are.
    Ascending,
    Ordered(Planned<'a>),
}

/// The order of one record batch.
pub(crate) struct Planned<'a> {
    pub(super) order: &'a mut Order,
    pub(super) ids: &'a [u32],
    pub(super) load: Load,
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
            partitions: 0,
            offsets: vec![0],
            form: Form::Chunks,
            chunk: CHUNK,
            places: Vec::new(),
            targets: Vec::new(),
            #[cfg(target_arch = "x86_64")]
            sweep: Sweep::default(),
            transit: Vec::new(),
            wide: Vec::new(),
            placed: false,
            targeted: false,
            spread: false,
            ends: Vec::new(),
            cursors: Cursors::default(),
            buckets: Buckets::default(),
            outside: false,
            #[cfg(target_arch = "x86_64")]
            masked: false,
            #[cfg(target_arch = "x86_64")]
            masks: Masks::default(),
            #[cfg(target_arch = "x86_64")]
            ranks: Ranks::default(),
            #[cfg(target_arch = "x86_64")]
            digits: Digits::default(),
        }
    }

    /// Where partitions start; behind the last, the number of rows.
    #[cfg(test)]
    pub(crate) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The same, to be kept: they are gone from here.
    pub(crate) fn take_offsets(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.offsets)
    }

    /// Finds the order of `ids`, of which there are fewer than 2^32. `load` says what it is for.
    pub(crate) fn plan<'a>(
        &'a mut self,
        ids: &'a [u32],
        partitions: usize,
        load: Load,
    ) -> Plan<'a> {
        (self.rows, self.partitions) = (ids.len(), partitions);
        match ascending(ids, partitions, &mut self.offsets) {
            Ascending::Yes => return Plan::Ascending,
            Ascending::Outside => return Plan::Outside,
            Ascending::No => {}
        }
        self.chunk = chunk_rows(ids.len(), partitions);
        self.ends.clear();
        self.placed = false;
        self.targeted = false;
        self.outside = false;
        self.form = self.choose(ids, load);
        // What is counted is in runs, or takes turns, or there are too many partitions.
        #[cfg(target_arch = "x86_64")]
        self.sweep.clear(self.form != Form::Counted);
        // What is dealt into buckets is looked at on the way.
        if self.form != Form::Buckets {
            if !self.look_at(ids, load) {
                return Plan::Outside;
            }
            self.find_offsets(partitions);
        }
        Plan::Ordered(Planned { order: self, ids, load })
    }

    /// The form that is cheapest.
    fn choose(&mut self, ids: &[u32], load: Load) -> Form {
        let partitions = self.partitions;
        #[cfg(target_arch = "x86_64")]
        if self.goes_by_digits(load) && pattern(ids) != Pattern::Turns {
            return Form::Placed;
        }
        if self.goes_by_buckets(ids, load) {
            return Form::Buckets;
        }
        self.spread = load == Load::Many
            && (partitions < GATHERED || partitions <= MOST_SPREAD && self.scatters_short(ids));
        #[cfg(target_arch = "x86_64")]
        if self.level >= Level::Avx512 && ids.len() <= LARGEST_CHUNK {
            let by_masks = partitions <= FEW || load == Load::Bits;
            if pay(load, partitions) && (by_masks || pattern(ids) != Pattern::Turns) {
                return Form::Masks;
            }
            let targeted = match load {
                Load::Bits => partitions <= MOST_RANKED,
                Load::Fixed(_) | Load::Wide | Load::ManyTargeted(_) => true,
                _ => self.spread,
            };
            // Rows of a partition that are neighbours would wait for each other's count.
            if targeted && suit(partitions) && pattern(ids) == Pattern::Any {
                return Form::Ranked;
            }
        }
        if ids.len() <= LARGEST_CHUNK || self.goes_straight(partitions, load) {
            Form::Counted
        } else if self.chunk > LARGEST_CHUNK {
            Form::Whole
        } else {
            Form::Chunks
        }
    }

    /// Finds what the form says of `ids`, and where partitions end. False if an id is no partition.
    fn look_at(&mut self, ids: &[u32], load: Load) -> bool {
        let (partitions, wide) = (self.partitions, load == Load::Wide);
        let chunks = if self.form == Form::Chunks { ids.len().div_ceil(self.chunk) } else { 1 };
        self.ends.resize(partitions * chunks, 0);
        match self.form {
            // SAFETY: the level says that the CPU can; there are fewer than 255 partitions.
            #[cfg(target_arch = "x86_64")]
            Form::Masks => unsafe { self.masks.build(ids, &mut self.ends) },
            #[cfg(target_arch = "x86_64")]
            Form::Placed => {
                self.placed = true;
                self.places.resize(self.rows + PAD, 0);
                // SAFETY: the level says that the CPU can; there are at most 65,536 ids.
                unsafe { self.digits.places(ids, &mut self.ends, &mut self.places) }
            }
            #[cfg(target_arch = "x86_64")]
            Form::Ranked => {
                self.targeted = true;
                self.targets.resize(self.rows + PAD, 0);
                let targets = &mut self.targets[..self.rows];
                // SAFETY: the level says that the CPU can; there are at most 65,536 ids.
                unsafe { self.ranks.targets(ids, &mut self.ends, targets) }
            }
            Form::Counted => self.cursors.count(ids, &mut self.ends, wide),
            Form::Whole => {
                if !self.cursors.count(ids, &mut self.ends, wide) {
                    return false;
                }
                self.wide.resize(ids.len(), 0);
                let places = self.wide.as_mut_ptr();
                // SAFETY: these ids were counted; targets are below the rows.
                unsafe { self.cursors.each(ids, |row, target| *places.add(target) = row as u32) };
                true
            }
            Form::Chunks => {
                #[cfg(target_arch = "x86_64")]
                {
                    self.masked = self.level >= Level::Avx512
                        && matches!(load, Load::Fixed(_))
                        && partitions <= FEW;
                }
                let ends = self.ends.chunks_exact_mut(partitions);
                ids.chunks(self.chunk).zip(ends).all(|(ids, ends)| {
                    #[cfg(target_arch = "x86_64")]
                    if self.masked {
                        // SAFETY: as above.
                        return unsafe { self.masks.build(ids, ends) };
                    }
                    self.cursors.count(ids, ends, wide)
                })
            }
            Form::Buckets => unreachable!("they are found as rows are dealt"),
        }
    }

    /// True if an id turned out to be no partition when the only column was moved, which then is all
    /// zeros: what is dealt into buckets is not looked at before.
    pub(crate) fn is_outside(&self) -> bool {
        self.outside
    }

    /// True if places are found by digits, and columns gathered from them.
    #[cfg(target_arch = "x86_64")]
    fn goes_by_digits(&self, load: Load) -> bool {
        // Below, masks are faster; above, buckets and ranks, for which no places have to be found.
        let suited = match load {
            Load::Bits => 25..=64,
            Load::Fixed(1 | 2) => 17..=64,
            Load::Fixed(8) => 12..=128,
            Load::Fixed(_) | Load::Wide => 12..=64,
            Load::ManyTargeted(_) | Load::Many | Load::ManyTexts => 12..=256,
        };
        self.level >= Level::Gathering
            && self.rows <= LARGEST_CHUNK
            && suited.contains(&self.partitions)
    }

    /// True if the only column is dealt into buckets: of ids that look evenly spread.
    fn goes_by_buckets(&mut self, ids: &[u32], load: Load) -> bool {
        let Load::Fixed(width) = load else { return false };
        #[cfg(target_arch = "x86_64")]
        if self.level >= Level::Avx512 && pay(load, self.partitions) {
            return false;
        }
        width.is_power_of_two()
            && ids.len() <= LARGEST_CHUNK
            && self.buckets.suit(ids.len(), self.partitions, width)
            && pattern(ids) == Pattern::Any
            && self.buckets.are_due()
    }

    /// True if short values are scattered to targets even with many partitions: where rows take
    /// turns, or targets are found by ranks.
    fn scatters_short(&self, ids: &[u32]) -> bool {
        #[cfg(target_arch = "x86_64")]
        let ranked = self.level >= Level::Avx512;
        #[cfg(not(target_arch = "x86_64"))]
        let ranked = false;
        match pattern(ids) {
            Pattern::Turns => true,
            Pattern::Any => ranked,
            Pattern::Runs => false,
        }
    }

    /// True if the only column is dealt out to where it belongs however long it is: with few
    /// partitions, each has a line and a page at hand. By masks in chunks is faster for the fewest.
    fn goes_straight(&self, partitions: usize, load: Load) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.level >= Level::Avx512 && partitions <= FEW && matches!(load, Load::Fixed(_)) {
            return false;
        }
        #[cfg(target_arch = "x86_64")]
        let most = match self.level {
            Level::Gathering => STRAIGHT_GATHERING,
            Level::Avx512 | Level::Storing => STRAIGHT_BY_LINES,
            _ => STRAIGHT,
        };
        #[cfg(not(target_arch = "x86_64"))]
        let most = STRAIGHT;
        partitions <= most && matches!(load, Load::Fixed(_) | Load::Wide)
    }

    /// True if columns of values of `width` bytes are written by lines past the cache.
    pub(super) fn past_cache(&self, width: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        let can = self.level >= Level::Avx512;
        #[cfg(not(target_arch = "x86_64"))]
        let can = false;
        can && self.rows.saturating_mul(width) > UNCACHED
    }

    /// Adds up what chunks have of each partition.
    pub(super) fn find_offsets(&mut self, partitions: usize) {
        self.offsets.clear();
        if let [ends] = [&self.ends[..]]
            && ends.len() == partitions
        {
            self.offsets.reserve_exact(partitions + 1);
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
