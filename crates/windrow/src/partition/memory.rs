//! Memory for columns in order: buffers that are taken again once the last array that uses them dropped.
//!
//! ```text
//! shelf of a length   | slot | slot | slot |     a slot is kept here whoever has it, so that nothing
//!                        |             ^         is done when an array drops
//!                       take           |
//!                        v             |
//!                      Piece --freeze--+--> Buffer (arrays, slices, other threads)
//! ```
//!
//! A fresh allocation of 128 KiB or more is a mapping, and its first touch a page fault for each
//! 4 KiB: several times the cost of the split itself. What is taken again is initialised already.
//!
//! Slots of a shelf are looked at in turn. Who keeps record batches for a while gets the oldest memory. Who
//! drops a record batch before the next one gets the same memory, the last slot first: what was written
//! last is what caches still hold. Ten columns of 16 bytes, 3.2 MB with what they come from, take 75 us to
//! copy instead of 92, where the second-level cache has 2 MiB.

use arrow_buffer::Buffer;

use crate::kernel::partition::slot::{Piece, Slot, Supply};

/// Bytes that are kept at least, unless something else is asked for.
const KEPT: usize = 32 << 20;
/// Buffers of more than this part of all that is kept are given back to the system: they are too few
/// to be worth keeping.
const LARGEST_PART: usize = 4;
/// Slots that are looked at until a fresh one is made: to look at all that are in use could take
/// longer than that.
const LOOKS: usize = 8;
/// Record batches after which slots that none of them needed are given back, if memory is wanted.
const STALE: u64 = 64;
/// What a record batch took is forgotten by this part of it with each that takes less, and its slots are given
/// back after as many.
const FORGOTTEN_PART: usize = 16;
/// The shortest slots, and what their lengths are multiples of.
const SHORTEST: usize = 64;
/// Lengths for each power of two, and one for the power itself.
const STEPS: usize = 9;

/// Slots to take memory from. A clone has its own.
#[derive(Debug)]
pub(super) struct Memory {
    /// By [`class`].
    shelves: Vec<Shelf>,
    /// Of all slots on shelves, in use or not; at the most [`Memory::most`].
    bytes: usize,
    keep: Keep,
    /// What was taken for this record batch.
    taken: usize,
    /// The number of the record batch.
    turn: u64,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
enum Keep {
    /// At most so many bytes, and of each slot at most a [`LARGEST_PART`] of that.
    Bytes(usize),
    /// What a record batch took of late, and not less than [`KEPT`].
    Latest(usize),
}

/// Slots of one length.
#[derive(Debug, Default)]
struct Shelf {
    /// `None` while a [`Piece`] has it.
    slots: Vec<Option<Slot>>,
    /// The one that was taken last.
    last: usize,
    /// Whether slots are looked at from the end to the front.
    backwards: bool,
    /// The record batch that was here last.
    turn: u64,
}

/// Keeps what the record batches of late took: to have the system supply it again would take longer than
/// the split.
impl Default for Memory {
    fn default() -> Self {
        Self::of(Keep::Latest(KEPT))
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Self::of(match self.keep {
            Keep::Bytes(most) => Keep::Bytes(most),
            Keep::Latest(_) => Keep::Latest(KEPT),
        })
    }
}

impl Memory {
    /// Keeps at most so many bytes.
    pub(super) fn keeping(most: usize) -> Self {
        Self::of(Keep::Bytes(most))
    }

    fn of(keep: Keep) -> Self {
        Self { shelves: Vec::new(), bytes: 0, keep, taken: 0, turn: 0 }
    }

    /// Keeps no more than a few record batches of common size take, unless something else was asked for.
    pub(super) fn keep_little(&mut self) {
        if let Keep::Latest(_) = self.keep {
            self.keep = Keep::Bytes(KEPT);
        }
    }

    /// To be called in front of each record batch.
    pub(super) fn next_batch(&mut self) {
        self.turn += 1;
        let taken = std::mem::take(&mut self.taken);
        if let Keep::Latest(most) = &mut self.keep {
            // What only one took that was larger is not kept for ever.
            *most = taken.max(*most - *most / FORGOTTEN_PART).max(KEPT);
            let most = *most;
            if self.bytes > most {
                self.clear(FORGOTTEN_PART as u64);
            }
        }
    }

    /// How many bytes are kept.
    fn most(&self) -> usize {
        match self.keep {
            Keep::Bytes(most) => most,
            Keep::Latest(most) => most.max(self.taken),
        }
    }

    /// Gives back the slots of lengths that no record batch needed for so many turns, but for those in use.
    fn clear(&mut self, turns: u64) {
        for shelf in self.shelves.iter_mut().filter(|shelf| shelf.turn + turns < self.turn) {
            self.bytes -= shelf.clear();
        }
    }

    /// True if another slot of `len` bytes may be kept; it is counted then.
    fn has_room(&mut self, len: usize) -> bool {
        let most = self.most();
        if matches!(self.keep, Keep::Bytes(_)) && len > most / LARGEST_PART {
            return false;
        }
        if self.bytes + len > most {
            self.clear(STALE);
        }
        let fits = self.bytes + len <= most;
        self.bytes += if fits { len } else { 0 };
        fits
    }
}

impl Supply for Memory {
    fn take(&mut self, len: usize) -> Piece {
        let (class, len) = class(len);
        self.taken += len;
        if self.shelves.len() <= class {
            self.shelves.resize_with(class + 1, Shelf::default);
        }
        if let Some((place, slot)) = self.shelves[class].take(self.turn) {
            return Piece::new(slot, Some((class, place)));
        }
        let home = self.has_room(len).then(|| (class, self.shelves[class].add()));
        Piece::new(Slot::new(len), home)
    }

    /// The slot is taken again when the buffer dropped.
    fn freeze(&mut self, piece: Piece, len: usize) -> Buffer {
        let (buffer, slot, home) = piece.into_parts(len);
        if let Some((class, place)) = home {
            self.shelves[class].slots[place] = Some(slot);
        }
        buffer
    }
}

impl Shelf {
    /// A slot that nobody uses, and its place.
    fn take(&mut self, turn: u64) -> Option<(usize, Slot)> {
        if self.turn != turn {
            self.turn = turn;
            if let Some(slot) = self.take_at(self.last) {
                self.backwards = !self.backwards;
                return Some((self.last, slot));
            }
        }
        for _ in 0..self.slots.len().min(LOOKS) {
            self.last = self.after(self.last);
            if let Some(slot) = self.take_at(self.last) {
                return Some((self.last, slot));
            }
        }
        None
    }

    /// The place that is looked at after another; there are slots.
    fn after(&self, place: usize) -> usize {
        match self.backwards {
            true => place.checked_sub(1).unwrap_or(self.slots.len() - 1),
            false if place + 1 < self.slots.len() => place + 1,
            false => 0,
        }
    }

    /// Makes a place behind all others, for a slot that is taken.
    fn add(&mut self) -> usize {
        self.slots.push(None);
        self.last = self.slots.len() - 1;
        self.last
    }

    fn take_at(&mut self, place: usize) -> Option<Slot> {
        let slot = self.slots.get_mut(place)?;
        if slot.as_ref()?.is_idle() { slot.take() } else { None }
    }

    /// Gives back the slots that nobody uses; says how many bytes that is.
    fn clear(&mut self) -> usize {
        let mut bytes = 0;
        self.slots.retain_mut(|slot| {
            let idle = slot.as_ref().filter(|slot| slot.is_idle());
            bytes += idle.map_or(0, |slot| slot.len());
            idle.is_none()
        });
        bytes
    }
}

/// The shelf for `len` bytes, and the length of its slots: four for each power of two, so that they
/// fit what is asked next.
fn class(len: usize) -> (usize, usize) {
    let step = (len.next_power_of_two() / 8).max(SHORTEST);
    let steps = len.div_ceil(step);
    let power = step.ilog2() - SHORTEST.ilog2();
    (power as usize * STEPS + steps, steps * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer of `len` bytes that starts with `first`.
    fn buffer(memory: &mut Memory, len: usize, first: u64) -> Buffer {
        let mut piece = memory.take(len);
        piece.as_mut::<u64>()[0] = first;
        memory.freeze(piece, len)
    }

    #[test]
    fn memory_is_taken_again_once_nobody_uses_it() {
        let mut memory = Memory::default();
        let held = buffer(&mut memory, 1000, 7);
        let slice = held.slice(8);
        let place = held.as_ptr();
        drop(held);
        memory.next_batch();
        let other = buffer(&mut memory, 1000, 1).as_ptr();
        assert_ne!(other, place);
        assert_eq!(slice.len(), 992);
        std::thread::spawn(move || drop(slice)).join().unwrap();
        memory.next_batch();
        let again = [2, 3].map(|first| buffer(&mut memory, 990, first));
        assert_eq!(again.each_ref().map(Buffer::as_ptr), [other, place]);
        drop(memory);
        assert_eq!(again.map(|buffer| buffer.typed_data::<u8>()[0]), [2, 3]);
    }

    #[test]
    fn what_was_written_last_is_taken_first() {
        let mut memory = Memory::default();
        let mut columns = |count: usize| {
            memory.next_batch();
            let columns: Vec<Buffer> = (0..count).map(|_| buffer(&mut memory, 3000, 1)).collect();
            columns.iter().map(|column| column.as_ptr()).collect::<Vec<_>>()
        };
        let mut places = columns(10);
        for _ in 0..5 {
            places.reverse();
            assert_eq!(columns(10), places);
        }
        // Fewer columns stay where it is warm.
        places.reverse();
        assert_eq!(columns(3), places[..3]);
        assert_eq!(columns(3), [places[2], places[1], places[0]]);
    }

    #[test]
    fn the_oldest_come_first_where_some_are_in_use() {
        let mut memory = Memory::default();
        let mut window = std::collections::VecDeque::new();
        let mut places = std::collections::HashSet::new();
        for turn in 0..100 {
            memory.next_batch();
            window.push_back([0, 1].map(|_| buffer(&mut memory, 5000, turn)));
            if window.len() > 20 {
                for buffer in window.pop_front().unwrap() {
                    assert_eq!(buffer.typed_data::<u64>()[0], turn - 20);
                    places.insert(buffer.as_ptr());
                }
            }
        }
        assert!(places.len() <= 42 + 2 * LOOKS, "{} slots", places.len());
        assert_eq!(memory.bytes, places.len() * class(5000).1);
    }

    #[test]
    fn no_more_is_kept_than_was_asked_for() {
        let mut memory = Memory::keeping(KEPT);
        let largest = KEPT / LARGEST_PART;
        let held: Vec<Buffer> = (0..9).map(|_| buffer(&mut memory, largest, 1)).collect();
        drop(held);
        assert_eq!(memory.bytes, KEPT);
        let mut mapped = memory.take(largest + 1);
        assert!(mapped.as_mut::<u64>().len() * 8 > largest && memory.bytes == KEPT);
        mapped.as_mut::<u128>()[7] = 1;
        assert_eq!(memory.freeze(mapped, largest + 1).as_slice()[112], 1);
        // What nobody needed for long makes room, but for what is in use.
        let used = buffer(&mut memory, largest, 5);
        (0..=STALE).for_each(|_| memory.next_batch());
        drop(buffer(&mut memory, 1000, 1));
        assert_eq!(memory.bytes, largest + class(1000).1);
        assert_eq!(used.typed_data::<u64>()[0], 5);
        let mut none = Memory::keeping(0);
        drop(buffer(&mut none, 1000, 1));
        assert_eq!(none.bytes, 0);
        let mut much = Memory::keeping(1 << 30);
        let large = much.take(100 << 20);
        drop(much.freeze(large, 100 << 20));
        assert!(much.bytes >= 100 << 20);
    }

    #[test]
    fn what_record_batches_take_of_late_is_kept() {
        let mut memory = Memory::default();
        let large = KEPT / 2;
        let held: Vec<Buffer> = (0..5).map(|_| buffer(&mut memory, large, 1)).collect();
        let kept = memory.bytes;
        assert!(kept >= 5 * large);
        let places: Vec<_> = held.iter().map(Buffer::as_ptr).collect();
        // Beside what is in use, nothing more is kept.
        memory.next_batch();
        let others: Vec<Buffer> = (0..5).map(|_| buffer(&mut memory, large, 2)).collect();
        assert_eq!(memory.bytes, kept);
        drop((held, others));
        memory.next_batch();
        let again: Vec<Buffer> = (0..5).map(|_| buffer(&mut memory, large, 3)).collect();
        assert!(again.iter().all(|buffer| places.contains(&buffer.as_ptr())));
        drop(again);
        // Once record batches are small, it is given back.
        for _ in 0..100 {
            memory.next_batch();
            drop(buffer(&mut memory, 1000, 4));
        }
        assert_eq!(memory.bytes, class(1000).1);
        memory.keep_little();
        drop(buffer(&mut memory, large, 5));
        assert_eq!(memory.bytes, class(1000).1);
        let other = memory.clone();
        assert!(matches!((&memory.keep, &other.keep), (Keep::Bytes(KEPT), Keep::Bytes(KEPT))));
    }

    #[test]
    fn lengths_are_few_and_long_enough() {
        let mut shelves = std::collections::HashMap::new();
        for len in (0..5000).chain([(1 << 20) - 1, 1 << 20, (1 << 20) + 1, usize::MAX / 4]) {
            let (shelf, rounded) = class(len);
            assert!(rounded >= len && rounded <= len + len / 4 + 64, "{len} {rounded}");
            assert_eq!(*shelves.entry(shelf).or_insert(rounded), rounded);
        }
        assert!(shelves.len() < 40);
    }
}
