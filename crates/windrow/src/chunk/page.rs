//! Pages: chunks in memory, in a store, or in transit.
//!
//! ```text
//!            leave                 written
//! in memory ------> leaving, still -------> out ---read ahead---> in memory, and in the store
//!     ^             in memory                ^                               |
//!     |  take: the chunk itself              |  take: reads it               |  leave: at once
//! ```
//! The number of rows, their bytes, and the first and last row always stay in memory. A page that
//! is out and belongs to an index can be read in parts.
//!
//! Invariant: at any time, the rows of a page are in at least one place. A write that ends after
//! its page was taken or dropped leaves nothing in the store.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use super::elided::expand;
use super::filter::Filter;
use super::kept::Kept;
use super::listed::Listed;
use super::parts::{PartRows, Parts, Whereabouts, corrupt};
use super::resident::{Chunk, OFFSET_BYTES};
use super::times::TimeCodes;
use windrow_pool::lock;
use windrow_pool::{Buffer, Codec, Decision, Extent, Lease, Leave, Paged, Pool, SpillTo};
use windrow_rows::{Layout, Result};

/// Longest row kept in memory as an end of a page.
const LONGEST_END: usize = 1 << 10;

/// Bytes of a page beyond itself and its ends: its entries in the store, in four runs that share
/// it, and in the list of evictable pages, and the allocator's overhead for each.
const BESIDE: usize = 384;

/// A chunk in memory, in a store, or in transit.
#[derive(Debug)]
pub(crate) struct Page {
    pool: Pool,
    rows: usize,
    used: usize,
    stride: Option<usize>,
    times: Option<TimeCodes>,
    /// The first and last row, unless one is long.
    ends: Option<[Vec<u8>; 2]>,
    /// Filter of the keys, if built.
    filter: OnceLock<Arc<Filter>>,
    /// Number of merges that the rows went through.
    generation: u8,
    /// True if the page was used since the last eviction request.
    touched: AtomicBool,
    /// Bytes of parts read since the last read of the whole page.
    parted: AtomicUsize,
    place: Mutex<Place>,
    /// Notified when a read ends.
    read: Condvar,
    /// Lease of the page's metadata and ends, which stay in memory: there may be many pages.
    lease: Lease,
}

#[derive(Debug)]
enum Place {
    /// In memory; also in the store, if read from there.
    Memory(Kept, Option<Arc<Stored>>),
    /// In memory, waiting to be written to this target with this codec.
    Leaving(Kept, (SpillTo, Codec)),
    /// In memory, being written.
    Writing(Kept),
    Store(Arc<Stored>),
    /// Being read from the store.
    Reading(Arc<Stored>),
}

/// An image in a store, with its parts if it can be read in parts.
#[derive(Debug)]
struct Stored {
    extent: Extent,
    parts: Option<Parts>,
}

/// Result of a key look-up in a page.
#[derive(Debug)]
pub(crate) enum Found {
    /// The key is absent.
    Nowhere,
    /// If the key is present, its first row is among these rows.
    Within(PartRows),
    /// Unknown: the whole page must be read.
    Unread,
}

impl Page {
    /// Creates a page of a chunk in memory, whose rows went through `generation` merges.
    pub(crate) fn new(pool: &Pool, mut chunk: Kept, generation: u8) -> Self {
        chunk.write_starts();
        let ends = chunk.ends();
        let short = ends.iter().all(|row| row.len() <= LONGEST_END);
        let ends = short.then(|| ends.map(<[u8]>::to_vec));
        let bytes = size_of::<Self>() + BESIDE + ends.iter().flatten().map(Vec::len).sum::<usize>();
        Self {
            lease: pool.lease_page(bytes),
            pool: pool.clone(),
            rows: chunk.len(),
            used: chunk.bytes(),
            stride: chunk.stride(),
            times: chunk.known_times(),
            ends,
            filter: chunk.filter().map_or_else(OnceLock::new, |filter| Arc::clone(filter).into()),
            generation,
            touched: AtomicBool::new(false),
            parted: AtomicUsize::new(0),
            place: Mutex::new(Place::Memory(chunk, None)),
            read: Condvar::new(),
        }
    }

    /// Writes the chunk out to the target and with the codec of `how`, and frees its memory
    /// afterwards.
    pub(crate) fn spill(self: &Arc<Self>, how: (SpillTo, Codec)) -> Result<()> {
        let mut place = lock(&self.place);
        if let Place::Memory(chunk, None) = &*place {
            *place = Place::Leaving(chunk.clone(), how);
        }
        drop(place);
        self.pool.page_out(Arc::<Self>::clone(self))
    }

    /// Returns the whole chunk, from memory or read from the store.
    pub(crate) fn take(self: Arc<Self>) -> Result<Arc<Chunk>> {
        self.kept()?.whole()
    }

    /// Returns the chunk as kept, shortened or whole, from memory or read from the store.
    fn kept(self: Arc<Self>) -> Result<Kept> {
        let mut place = lock(&self.place);
        while let Place::Reading(_) = &*place {
            place = self.read.wait(place).unwrap_or_else(PoisonError::into_inner);
        }
        self.touched.store(true, Ordering::Relaxed);
        match &*place {
            Place::Memory(chunk, stored) => {
                if stored.is_some() {
                    self.pool.read_ahead_hit();
                }
                Ok(chunk.clone())
            }
            Place::Leaving(chunk, _) | Place::Writing(chunk) => Ok(chunk.clone()),
            Place::Store(stored) | Place::Reading(stored) => {
                let stored = Arc::clone(stored);
                drop(place);
                let extent = &stored.extent;
                let chunk = self.restored(extent, self.pool.load(extent, self.used)?)?;
                Ok(Arc::new(chunk).into())
            }
        }
    }

    /// Looks for the first row with `key` in a page in a store, reading only a part of the page.
    /// `near` is the part read for the previous, lesser key. Returns [`Found::Unread`] for pages in
    /// memory, for a key in the part `near` or in the next part, and once the parts read exceed the
    /// whole page.
    pub(crate) fn find(&self, key: &[u8], near: Option<usize>) -> Result<Found> {
        let stored = match &*lock(&self.place) {
            Place::Store(stored) => Arc::clone(stored),
            _ => return Ok(Found::Unread),
        };
        let Some(parts) = &stored.parts else { return Ok(Found::Unread) };
        let number = match parts.find(key) {
            Whereabouts::Nowhere => return Ok(Found::Nowhere),
            Whereabouts::Unknown => return Ok(Found::Unread),
            Whereabouts::Part(number) => number,
        };
        let bytes = parts.bytes(number).len();
        let follows = near.is_some_and(|near| number == near || number == near + 1);
        if follows || self.parted.fetch_add(bytes, Ordering::Relaxed) > stored.extent.len() {
            self.parted.store(0, Ordering::Relaxed);
            return Ok(Found::Unread);
        }
        parts.read(&self.pool, &stored.extent, number).map(Found::Within)
    }

    /// Returns the chunk as kept, if it is in memory.
    pub(crate) fn in_memory(&self) -> Option<Kept> {
        match &*lock(&self.place) {
            Place::Memory(chunk, _) | Place::Leaving(chunk, _) | Place::Writing(chunk) => {
                Some(chunk.clone())
            }
            Place::Store(_) | Place::Reading(_) => None,
        }
    }

    /// Starts reading the part of the page that a look-up of `key` needs, if the page is in a
    /// store.
    pub(crate) fn prefetch_part(&self, key: &[u8]) {
        let stored = match &*lock(&self.place) {
            Place::Store(stored) => Arc::clone(stored),
            _ => return,
        };
        if let Some(parts) = &stored.parts
            && let Whereabouts::Part(number) = parts.find(key)
        {
            let ranges = parts.ends(number).into_iter().chain([parts.bytes(number)]);
            ranges.for_each(|range| stored.extent.prefetch_part(&range));
        }
    }

    /// Returns the chunk as kept, shortened or whole. A chunk read from the store stays in memory
    /// for later readers, if it fits into the budget.
    pub(crate) fn read(self: &Arc<Self>) -> Result<Kept> {
        Arc::clone(self).read_in();
        Arc::clone(self).kept()
    }

    /// Reads the chunk ahead, if it fits into the budget: it is needed soon.
    pub(crate) fn prefetch(self: &Arc<Self>) {
        self.touched.store(true, Ordering::Relaxed);
        if let Place::Store(stored) = &*lock(&self.place) {
            stored.extent.prefetch();
        } else {
            return;
        }
        self.pool.read_ahead(Arc::<Self>::clone(self));
    }

    /// Returns the chunk whose image is in `buffer`.
    fn restored(&self, extent: &Extent, mut buffer: Buffer) -> Result<Chunk> {
        let chunk = if let Some(stride) = self.stride {
            let len = extent.len();
            if len > self.used || len < self.used && !expand(&mut buffer, len, self.used, stride) {
                return Err(corrupt("more or fewer bytes than rows"));
            }
            Chunk::strided(&self.pool, buffer, self.used, stride)
        } else {
            if extent.len() != self.used + self.rows * OFFSET_BYTES {
                return Err(corrupt("more or fewer bytes than rows and their ends"));
            }
            let starts = Listed::read(&self.pool, &buffer[self.used..extent.len()]);
            if !starts.is_sorted() || starts.last() != Some(&(self.used as u32)) {
                return Err(corrupt("row ends that do not ascend to the end"));
            }
            Chunk::listed(&self.pool, buffer, starts)
        };
        Ok(chunk.knowing(self.times, self.filter.get()))
    }

    /// Builds the filter of the keys, unless it exists or the rows are few. Rows in the store are
    /// read if `reading` is true; otherwise the page stays without a filter.
    pub(crate) fn make_filter(self: &Arc<Self>, layout: &Layout, reading: bool) -> Result<()> {
        if self.filter.get().is_some() {
            return Ok(());
        }
        let chunk = match self.in_memory() {
            Some(chunk) => chunk,
            None if reading => self.read()?,
            None => return Ok(()),
        };
        chunk.make_filter(layout);
        if let Some(filter) = chunk.filter() {
            let _first = self.filter.set(Arc::clone(filter));
        }
        Ok(())
    }

    /// Returns the filter, if built.
    pub(crate) fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.get()
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Returns the bytes of the rows.
    pub(crate) fn bytes(&self) -> usize {
        self.used
    }

    /// Returns the bytes of memory of the page, or 0 if its rows are in the store or on the way to
    /// it.
    pub(crate) fn resident_bytes(&self) -> usize {
        match &*lock(&self.place) {
            Place::Memory(chunk, None) => chunk.leased_bytes(),
            _ => 0,
        }
    }

    /// Returns the first and last row, unless one is long.
    pub(crate) fn ends(&self) -> Option<[&[u8]; 2]> {
        self.ends.as_ref().map(|[first, last]| [&first[..], &last[..]])
    }

    /// Returns the least and greatest time code, if known without reading the rows.
    pub(crate) fn times(&self, layout: &Layout, width: usize) -> Option<TimeCodes> {
        match &*lock(&self.place) {
            Place::Memory(chunk, _) => Some(chunk.times(layout, width)),
            _ => self.times,
        }
    }
}

impl Paged for Page {
    fn write_out(self: Arc<Self>) -> Result<()> {
        let (chunk, how) = {
            let mut place = lock(&self.place);
            let Place::Leaving(chunk, how) = &*place else { return Ok(()) };
            let (chunk, how) = (chunk.clone(), *how);
            *place = Place::Writing(chunk.clone());
            (chunk, how)
        };
        // Index pages are stored for long and read one by one.
        let shorter = if self.pool.is_for_index() { chunk.elided() } else { None };
        let image = shorter.map_or_else(|| chunk.image(), Cow::Owned);
        let written = self.pool.store(&image, how).map(|extent| {
            let ends = self.ends().filter(|_| extent.has_parts());
            let parts = ends.and_then(|ends| Parts::of(&self.pool, &chunk, ends, &image));
            Stored { extent, parts }
        });
        drop(image);
        let mut place = lock(&self.place);
        let stored = match written {
            Ok(stored) => stored,
            Err(error) => {
                *place = Place::Memory(chunk, None);
                drop(place);
                // Makes the page evictable, for when the disk has space again.
                let generation = self.generation;
                self.pool.clone().at_rest(self, generation);
                return Err(error);
            }
        };
        if Arc::strong_count(&self) == 1 {
            // No reader is left.
            self.pool.write_spared(self.used, true);
        } else {
            *place = Place::Store(Arc::new(stored));
        }
        Ok(())
    }

    fn read_in(self: Arc<Self>) {
        let stored = {
            let mut place = lock(&self.place);
            let Place::Store(stored) = &*place else { return };
            let stored = Arc::clone(stored);
            *place = Place::Reading(Arc::clone(&stored));
            stored
        };
        let loaded = catch_unwind(AssertUnwindSafe(|| {
            let buffer = self.pool.load_ahead(&stored.extent, self.used)?;
            self.restored(&stored.extent, buffer.ok()?).ok()
        }));
        // A caller that takes the page meets the same error or panic and reports it.
        *lock(&self.place) = match loaded.ok().flatten() {
            Some(chunk) => Place::Memory(Arc::new(chunk).into(), Some(stored)),
            None => Place::Store(stored),
        };
        self.read.notify_all();
        let generation = self.generation;
        self.pool.clone().at_rest(self, generation);
    }

    fn leave(&self) -> Leave {
        let mut place = lock(&self.place);
        let Place::Memory(chunk, stored) = &*place else { return Leave::Cannot };
        if chunk.is_shared() || self.touched.swap(false, Ordering::Relaxed) {
            return Leave::Later;
        }
        if let Some(stored) = stored {
            *place = Place::Store(Arc::clone(stored));
            drop(place);
            self.pool.released(self.used);
            return Leave::Left;
        }
        let Decision::Spill { to, codec } = self.pool.decide(self.used, self.generation, false)
        else {
            return Leave::Cannot;
        };
        *place = Place::Leaving(chunk.clone(), (to, codec));
        Leave::Write
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let place = self.place.get_mut().unwrap_or_else(PoisonError::into_inner);
        match place {
            Place::Leaving(..) => self.pool.write_spared(self.used, false),
            Place::Memory(..) => self.pool.released(self.used),
            Place::Writing(_) | Place::Store(_) | Place::Reading(_) => {}
        }
        self.pool.page_is_gone(&self.lease);
    }
}
