//! Columns of fixed width and bitmaps through an order: which way each goes.
//!
//! ```text
//! masks, few partitions     compress (values), extract (bitmaps)
//! a large cache             gather a line at a time from places
//! several of 4 to 16 bytes  scatter to targets, as records, or two at a time
//! the only column           scatter to targets; dealt into buckets; straight from its cursors
//! longer than a cache       by chunks, run by run
//! wide, or few partitions   scatter to targets
//! else                      gather from places
//! ```

#[cfg(target_arch = "x86_64")]
use super::Level;
use super::bits::Words;
#[cfg(target_arch = "x86_64")]
use super::blocks::gathers;
use super::buckets::Dealt;
#[cfg(target_arch = "x86_64")]
use super::compress::compresses;
use super::fixed::{Place, SCATTERED, gather, gather_any, scatter, scatter_two};
use super::order::{Form, Load, Mover, PAD, Planned};
#[cfg(target_arch = "x86_64")]
use super::records::arrange;
#[cfg(target_arch = "x86_64")]
use super::sweep::SWEPT;
use crate::kernel::prefetch::{Ahead, LINE};
use std::ops::Range;

/// Up to so many partitions, several columns of eight bytes or more that no cache holds are put in order chunk
/// by chunk: with 64, 1M rows of ten take 21 ms instead of 26 to 30 gathered run by run, with 1024 33 instead of 27
/// (Sapphire Rapids).
const MOST_DEALT: usize = 512;
/// Columns of one width that are moved at once.
pub(crate) const SEVERAL: usize = 4;
/// Up to so many partitions, those of four bytes are compressed faster one by one, and those of
/// eight scattered.
#[cfg(target_arch = "x86_64")]
const ONE_BY_ONE: [usize; 2] = [2, 128];

/// Up to so many partitions, one or two bytes a value are compressed faster than they are swept.
#[cfg(target_arch = "x86_64")]
const MOST_COMPRESSED: usize = 8;
/// Up to so many partitions, columns of a width are scattered two at a time: with more, the lines of
/// two are too many for the first-level cache.
const IN_PAIRS: [(usize, usize); 2] = [(8, 64), (16, 16)];
/// The same, where [`Level::Storing`] says so: ten columns of eight bytes in 16 partitions take 24.3 us, two at a
/// time 27.3, in eight the same, and in four 21.9 and 20.7. Of 16 bytes 31.5 and 30.3.
#[cfg(target_arch = "x86_64")]
const IN_PAIRS_STORING: [(usize, usize); 2] = [(8, 8), (16, 16)];

impl Planned<'_> {
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
        if self.order.form == Form::Masks {
            let partitions = self.order.partitions;
            let (starts, ends) = (&self.order.offsets[..], &self.order.offsets[1..]);
            if self.compresses(W) {
                // SAFETY: masks are built on CPUs that can; widths that compress are 1, 2, 4 and 8;
                // from one offset to the next there are as many rows as in a mask.
                return unsafe { self.order.masks.compress::<W>(source, out, starts, ends) };
            }
            if gathers(self.load, W, partitions) {
                // SAFETY: as above; values that are gathered have eight bytes.
                return unsafe {
                    if self.order.level >= Level::Gathering {
                        self.order.masks.gather(source, out, starts, ends)
                    } else {
                        self.order.masks.compress::<W>(source, out, starts, ends)
                    }
                };
            }
        }
        let rows = self.rows();
        let source = &source.as_chunks::<W>().0[..rows];
        if W <= 8 && self.order.form == Form::Buckets {
            match self.deal_into_buckets(source, out) {
                Dealt::All => return,
                Dealt::Outside => {
                    self.order.outside = true;
                    // Zeros are a value of any type.
                    return out.fill(0);
                }
                Dealt::TooMany => self.count(),
            }
        }
        let out = &mut out.as_chunks_mut::<W>().0[..rows];
        if self.deals_out() {
            return self.deal_out(source, out);
        }
        if self.goes_by_chunks(W) {
            return self.deal_chunks(source, out);
        }
        #[cfg(target_arch = "x86_64")]
        if self.sweeps() && W <= 16 && W.is_power_of_two() {
            return self.sweep([source], [out]);
        }
        if self.scatters(W) {
            self.target();
            // SAFETY: there is a target for each row, below the rows, and as many values.
            return unsafe { scatter(source, &self.order.targets[..rows], out) };
        }
        self.each_run(&mut Fixed { source, out, ahead: Ahead::default() });
    }

    /// True if values of `width` bytes are put in order in each chunk, and runs appended.
    fn goes_by_chunks(&self, width: usize) -> bool {
        let (order, load) = (&*self.order, self.load);
        let dealt = load.scatters(width, order.spread)
            && (width < SCATTERED || order.partitions <= MOST_DEALT);
        order.form == Form::Chunks && (load.is_one() || dealt)
    }

    /// True if values of `width` bytes are put to targets, not gathered from places.
    fn scatters(&self, width: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.sweeps() {
            return false;
        }
        self.load.scatters(width, self.order.spread)
            && !matches!(self.order.form, Form::Chunks | Form::Whole)
    }

    /// True if values of `width` bytes are compressed by masks.
    #[cfg(target_arch = "x86_64")]
    fn compresses(&self, width: usize) -> bool {
        let partitions = self.order.partitions;
        let only = self.order.level >= Level::Gathering && self.load.is_one();
        if self.order.form != Form::Masks || !compresses(width, partitions, only) {
            return false;
        }
        // Places are worth their while for several columns of eight bytes, and for all once partitions are many.
        let gathered = match (width, self.load) {
            (8, Load::ManyTargeted(columns)) => columns >= SWEPT,
            (8, _) => true,
            _ => partitions > MOST_COMPRESSED,
        };
        !(gathered && self.sweeps())
    }

    /// True if columns are gathered a line at a time.
    #[cfg(target_arch = "x86_64")]
    fn sweeps(&self) -> bool {
        let (order, load) = (&*self.order, self.load);
        match order.form {
            Form::Placed => true,
            _ if order.level < Level::Gathering => false,
            // Masks give places sooner than targets.
            Form::Masks => match load {
                Load::Bits => false,
                Load::Fixed(width) => {
                    width >= 4
                        && !compresses(width, order.partitions, true)
                        && !gathers(load, width, order.partitions)
                }
                _ => true,
            },
            Form::Ranked | Form::Counted => {
                matches!(load, Load::ManyTargeted(SWEPT..) | Load::ManyTexts)
            }
            _ => false,
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn sweep<const N: usize, const W: usize>(
        &mut self,
        sources: [&[[u8; W]]; N],
        outs: [&mut [[u8; W]]; N],
    ) {
        self.place();
        let order = &mut *self.order;
        let places = &order.places[..order.rows];
        let columns = match self.load {
            Load::ManyTargeted(columns) => columns,
            Load::Many | Load::ManyTexts => SWEPT,
            _ => 1,
        };
        // SAFETY: the level says that the CPU can; places are rows; widths that are swept are powers of
        // two up to 16.
        unsafe { order.sweep.gather(columns, &order.offsets, places, sources, outs) };
    }

    /// True if there is one column or bitmap, and nothing else.
    pub(crate) fn moves_one(&self) -> bool {
        self.load.is_one()
    }

    /// True if rows go straight to where they belong: nothing else asks for places or targets.
    pub(super) fn deals_out(&self) -> bool {
        self.load.is_one() && self.order.form == Form::Counted
    }

    /// Brings values into order without finding places or targets.
    ///
    /// # Panics
    /// If there are fewer values than rows, or rows do not go straight.
    pub(super) fn deal_out<const W: usize>(&mut self, source: &[[u8; W]], out: &mut [[u8; W]]) {
        assert!(self.deals_out());
        assert!(source.len() >= self.rows() && out.len() >= self.rows());
        // SAFETY: these ids were counted, and `source` and `out` have as many values.
        unsafe { self.order.cursors.put(self.ids, source, out.as_mut_ptr()) };
    }

    /// True if columns of `width` bytes a value are moved several at once, by [`Planned::several`].
    pub(crate) fn takes_several(&self, width: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.sweeps() {
            return width == 8 && self.takes_pairs(width);
        }
        self.takes_pairs(width) || self.takes_records(width)
    }

    /// True if columns of `width` bytes a value are scattered, or gathered, two at a time.
    fn takes_pairs(&self, width: usize) -> bool {
        let (order, partitions) = (&*self.order, self.order.partitions);
        #[cfg(target_arch = "x86_64")]
        if self.compresses(width) {
            return false;
        }
        #[cfg(target_arch = "x86_64")]
        let in_pairs = if order.level == Level::Storing { IN_PAIRS_STORING } else { IN_PAIRS };
        #[cfg(not(target_arch = "x86_64"))]
        let in_pairs = IN_PAIRS;
        let most = in_pairs.iter().find(|(other, _)| *other == width).map_or(0, |(_, most)| *most);
        let targeted = !matches!(order.form, Form::Chunks | Form::Whole);
        matches!(self.load, Load::ManyTargeted(_)) && targeted && partitions <= most
    }

    /// True if columns of `width` bytes a value go as records.
    fn takes_records(&self, width: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.order.level >= Level::Avx2
            && matches!(self.load, Load::ManyTargeted(_) | Load::ManyTexts)
            && matches!(self.order.form, Form::Counted | Form::Ranked | Form::Masks)
        {
            return match width {
                4 => self.order.form != Form::Masks || self.order.partitions > ONE_BY_ONE[0],
                8 => self.order.partitions > ONE_BY_ONE[1],
                _ => false,
            };
        }
        let _ = width;
        false
    }

    /// Brings columns of `width` bytes a value into order, at most [`SEVERAL`] of them. `outs` are
    /// [`PAD`] bytes longer than they are.
    ///
    /// # Panics
    /// If there are more columns, or not as many targets, or a slice is too short.
    pub(crate) fn several(&mut self, width: usize, sources: &[&[u8]], outs: &mut [&mut [u8]]) {
        assert!(sources.len() == outs.len() && sources.len() <= SEVERAL);
        if self.takes_pairs(width) {
            match width {
                8 => return self.pairs::<8>(sources, outs),
                16 => return self.pairs::<16>(sources, outs),
                _ => {}
            }
        }
        #[cfg(target_arch = "x86_64")]
        if self.takes_records(width) {
            match (width, sources, &mut *outs) {
                (4, &[a, b], [c, d]) => return self.records::<2, 4>([a, b], [c, d]),
                (4, &[a, b, c], [d, e, f]) => return self.records::<3, 4>([a, b, c], [d, e, f]),
                (4, &[a, b, c, d], [e, f, g, h]) => {
                    return self.records::<4, 4>([a, b, c, d], [e, f, g, h]);
                }
                (8, &[a, b, c], [d, e, f]) => return self.records::<3, 8>([a, b, c], [d, e, f]),
                (8, &[a, b, c, d], [e, f, g, h]) => {
                    return self.records::<4, 8>([a, b, c, d], [e, f, g, h]);
                }
                _ => {}
            }
        }
        for (source, out) in sources.iter().zip(outs) {
            self.fixed(width, source, out);
        }
    }

    fn pairs<const W: usize>(&mut self, sources: &[&[u8]], outs: &mut [&mut [u8]]) {
        let rows = self.order.rows;
        for (sources, outs) in sources.chunks(2).zip(outs.chunks_mut(2)) {
            let (&[a, b], [c, d]) = (sources, &mut *outs) else {
                for (source, out) in sources.iter().zip(outs) {
                    self.fixed(W, source, out);
                }
                continue;
            };
            let sources = [a, b].map(|source| &source.as_chunks::<W>().0[..rows]);
            let outs = [c, d].map(|out| &mut out.as_chunks_mut::<W>().0[..rows]);
            #[cfg(target_arch = "x86_64")]
            if self.sweeps() {
                self.sweep(sources, outs);
                continue;
            }
            self.target();
            // SAFETY: there is a target for each row, below the rows, and as many values.
            unsafe { scatter_two(sources, &self.order.targets[..rows], outs) };
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn records<const N: usize, const W: usize>(
        &mut self,
        sources: [&[u8]; N],
        outs: [&mut [u8]; N],
    ) {
        assert!(self.order.level >= Level::Avx2);
        self.target();
        let order = &mut *self.order;
        let targets = &order.targets[..order.rows];
        // SAFETY: the level says that the CPU has AVX2; there is a target for each row, below the
        // rows; slices are as long, or this panics; two columns of eight bytes are not asked for.
        unsafe { arrange::<N, W>(sources, outs, targets, &mut order.transit) };
    }

    /// True if that many bitmaps are cheaper by masks than as bytes.
    pub(super) fn extracts(&self, bitmaps: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.order.form == Form::Masks {
            // Both ways cost so much for each partition, but bytes cost it once for all bitmaps.
            let most = if self.order.partitions < 12 { 2 } else { 1 };
            return self.load == Load::Bits || bitmaps <= most;
        }
        let _ = bitmaps;
        false
    }

    /// Brings bits into order by masks. `out` has a word more than they need.
    ///
    /// # Panics
    /// If there are no masks, or a slice is too short.
    pub(super) fn extract(&self, source: Words<'_>, out: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if self.order.form == Form::Masks {
            // SAFETY: masks are built on CPUs that can, and every row is in one.
            return unsafe { self.order.masks.extract(source, out) };
        }
        unreachable!("{} words and {} have no masks", source.whole.len(), out.len());
    }
}

struct Fixed<'a, const W: usize> {
    source: &'a [[u8; W]],
    out: &'a mut [[u8; W]],
    /// The next chunk, asked for as runs of this one are gathered.
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
