//! Pages: chunks that are in memory, or in a store, or on the way.
//!
//! ```text
//!            leave                 written
//! in memory ------> leaving, still -------> out ---read ahead---> in memory, and in the store
//!     ^             in memory                ^                               |
//!     |  take: the chunk itself              |  take: reads it               |  leave: at once
//! ```
//! How many rows there are, their bytes, the first and the last of them stay in memory.
//!
//! Invariant: a page has its rows at any time, in one place at the least; a write that ends after its
//! page was taken, or died, leaves nothing in the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::elided::expand;
use super::filter::Filter;
use super::kept::Kept;
use super::listed::Listed;
use super::resident::{Chunk, OFFSET_BYTES};
use super::times::TimeCodes;
use crate::error::{Error, Result};
use crate::order::Layout;
use crate::pool::{Buffer, Codec, Decision, Extent, Lease, Leave, Paged, Pool, SpillTo};

/// A row longer than this is not kept in memory as the end of a page.
const LONGEST_END: usize = 1 << 10;

/// Bytes that a page takes beside itself and its ends: its place in the store, in four runs that share it, among those
/// that may leave, and what the allocator adds to each.
const BESIDE: usize = 384;

/// A chunk, wherever it is.
#[derive(Debug)]
pub(crate) struct Page {
    pool: Pool,
    rows: usize,
    used: usize,
    stride: Option<usize>,
    times: Option<TimeCodes>,
    /// The first row and the last, unless they are long.
    ends: Option<[Vec<u8>; 2]>,
    /// Which keys there are, once somebody had it made.
    filter: OnceLock<Arc<Filter>>,
    /// How many merges the rows went through.
    generation: u8,
    /// Used since it was last asked to leave.
    touched: AtomicBool,
    place: Mutex<Place>,
    /// Told when reading ends.
    read: Condvar,
    /// For the page itself and its ends: there may be many, and they stay.
    lease: Lease,
}

#[derive(Debug)]
enum Place {
    /// In memory; in the store too, if it was read from there.
    Memory(Kept, Option<Arc<Extent>>),
    /// In memory, to be written in this way.
    Leaving(Kept, (SpillTo, Codec)),
    /// As before, and the write has begun.
    Writing(Kept),
    Store(Arc<Extent>),
    /// On the way from the store.
    Reading(Arc<Extent>),
}

impl Page {
    /// A page of a chunk in memory, whose rows went through `generation` merges.
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
            place: Mutex::new(Place::Memory(chunk, None)),
            read: Condvar::new(),
        }
    }

    /// Has the chunk written out in the way of `how`; its memory is free when that is done.
    pub(crate) fn spill(self: &Arc<Self>, how: (SpillTo, Codec)) -> Result<()> {
        let mut place = self.place();
        if let Place::Memory(chunk, None) = &*place {
            *place = Place::Leaving(chunk.clone(), how);
        }
        drop(place);
        self.pool.page_out(Arc::<Self>::clone(self))
    }

    /// The chunk, whole: the one in memory, or read from the store.
    pub(crate) fn take(self: Arc<Self>) -> Result<Arc<Chunk>> {
        self.kept()?.whole()
    }

    /// The chunk as it is kept, or read from the store.
    fn kept(self: Arc<Self>) -> Result<Kept> {
        let mut place = self.place();
        while let Place::Reading(_) = &*place {
            place = self.read.wait(place).unwrap_or_else(PoisonError::into_inner);
        }
        self.touched.store(true, Ordering::Relaxed);
        match &*place {
            Place::Memory(chunk, extent) => {
                if extent.is_some() {
                    self.pool.read_ahead_hit();
                }
                Ok(chunk.clone())
            }
            Place::Leaving(chunk, _) | Place::Writing(chunk) => Ok(chunk.clone()),
            Place::Store(extent) | Place::Reading(extent) => {
                let extent = Arc::clone(extent);
                drop(place);
                let chunk = self.restored(&extent, self.pool.load(&extent, self.used)?)?;
                Ok(Arc::new(chunk).into())
            }
        }
    }

    /// The chunk as it is kept; what is read from the store stays in memory for the next one who asks, if the budget has
    /// room for it.
    pub(crate) fn read(self: &Arc<Self>) -> Result<Kept> {
        Arc::clone(self).read_in();
        Arc::clone(self).kept()
    }

    /// The chunk is asked for soon: reads it ahead, if the budget has room for it.
    pub(crate) fn prefetch(self: &Arc<Self>) {
        self.touched.store(true, Ordering::Relaxed);
        if let Place::Store(extent) = &*self.place() {
            self.pool.prefetch(extent);
        } else {
            return;
        }
        self.pool.read_ahead(Arc::<Self>::clone(self));
    }

    /// The chunk that `buffer` has the image of.
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
        Ok(chunk.with_times(self.times).with_filter(self.filter.get()))
    }

    /// Has a filter made of the keys, unless there is one or the rows are few. With `reading` they are read if they are
    /// not in memory; else there is none then.
    pub(crate) fn make_filter(self: &Arc<Self>, layout: &Layout, reading: bool) -> Result<()> {
        if self.filter.get().is_some() {
            return Ok(());
        }
        let chunk = match &*self.place() {
            Place::Memory(chunk, _) | Place::Leaving(chunk, _) | Place::Writing(chunk) => {
                Some(chunk.clone())
            }
            Place::Store(_) | Place::Reading(_) => None,
        };
        let chunk = match chunk {
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

    /// The filter, if it was made.
    pub(crate) fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.get()
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Bytes that the rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.used
    }

    /// Bytes of memory that the page holds and is not about to give up.
    pub(crate) fn resident_bytes(&self) -> usize {
        match &*self.place() {
            Place::Memory(chunk, None) => chunk.leased_bytes(),
            _ => 0,
        }
    }

    /// The first row and the last, unless they are long.
    pub(crate) fn ends(&self) -> Option<[&[u8]; 2]> {
        self.ends.as_ref().map(|[first, last]| [&first[..], &last[..]])
    }

    /// The least and the greatest time code, if they are known without reading the rows.
    pub(crate) fn times(&self, layout: &Layout, width: usize) -> Option<TimeCodes> {
        match &*self.place() {
            Place::Memory(chunk, _) => Some(chunk.times(layout, width)),
            _ => self.times,
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spared(&self, begun: bool) {
        self.pool.write_spared(self.used, begun);
    }
}

impl Paged for Page {
    fn write_out(self: Arc<Self>) -> Result<()> {
        let (chunk, how) = {
            let mut place = self.place();
            let Place::Leaving(chunk, how) = &*place else { return Ok(()) };
            let (chunk, how) = (chunk.clone(), *how);
            *place = Place::Writing(chunk.clone());
            (chunk, how)
        };
        // An index stays where it is for long, and its pages are read one by one.
        let shorter = if self.pool.is_for_index() { chunk.elided() } else { None };
        let written = match &shorter {
            Some(image) => self.pool.store(image, how),
            None => self.pool.store(&chunk.image(), how),
        };
        let mut place = self.place();
        let extent = match written {
            Ok(extent) => extent,
            Err(error) => {
                *place = Place::Memory(chunk, None);
                return Err(error);
            }
        };
        if Arc::strong_count(&self) == 1 {
            // Nobody is left to read it.
            self.spared(true);
        } else {
            *place = Place::Store(Arc::new(extent));
        }
        Ok(())
    }

    fn read_in(self: Arc<Self>) {
        let extent = {
            let mut place = self.place();
            let Place::Store(extent) = &*place else { return };
            let extent = Arc::clone(extent);
            *place = Place::Reading(Arc::clone(&extent));
            extent
        };
        let loaded = self.pool.load_ahead(&extent, self.used);
        // Whoever takes the page meets an error again, and reports it.
        let chunk = loaded.and_then(|buffer| self.restored(&extent, buffer.ok()?).ok());
        *self.place() = match chunk {
            Some(chunk) => Place::Memory(Arc::new(chunk).into(), Some(extent)),
            None => Place::Store(extent),
        };
        self.read.notify_all();
        let generation = self.generation;
        self.pool.clone().at_rest(self, generation);
    }

    fn leave(&self) -> Leave {
        let mut place = self.place();
        let Place::Memory(chunk, extent) = &*place else { return Leave::Cannot };
        if chunk.is_shared() || self.touched.swap(false, Ordering::Relaxed) {
            return Leave::Later;
        }
        if let Some(extent) = extent {
            *place = Place::Store(Arc::clone(extent));
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
        if let Place::Leaving(..) = place {
            self.pool.write_spared(self.used, false);
        }
        self.pool.page_is_gone(&self.lease);
    }
}

fn corrupt(message: &str) -> Error {
    Error::Corrupt { place: "spilled chunk".into(), message: message.into() }
}
