//! Batched look-ups of a cursor, by [hints](super::hints) for a block of keys at a time.

use super::Cursor;
use super::hints::{BLOCK, Hints, Spot, ascends};
use windrow_rows::{Result, Time};

impl<T: Time> Cursor<T> {
    /// Looks up `keys` and calls `found` as [`Cursor::probe`] does.
    pub(crate) fn probe_each<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        mut found: impl FnMut(usize, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let (mut keys, mut first) = (keys.fuse(), 0);
        let (mut block, mut hints) = (Vec::with_capacity(BLOCK), std::mem::take(&mut self.hints));
        loop {
            block.clear();
            block.extend(keys.by_ref().take(BLOCK));
            if block.is_empty() {
                self.hints = hints;
                return Ok(());
            }
            let ascend = block.is_sorted_by(|before, next| ascends(before, next));
            hints.locate(&self.readers, &block, ascend, &mut self.tested);
            for (number, key) in block.iter().enumerate() {
                if self.go_to_spots(&hints, number, key)? {
                    self.take_found(key);
                    found(first + number, self)?;
                }
            }
            first += block.len();
        }
    }

    /// Moves the readers with `key`, which has `number` in the located block, to the key, and
    /// collects them in `with_key`; false if there are none.
    pub(super) fn go_to_spots(&mut self, hints: &Hints, number: usize, key: &[u8]) -> Result<bool> {
        self.leave_keys();
        let gone = self.try_spots(hints, number, key);
        self.or_nowhere(gone).map(|()| self.has_key())
    }

    fn try_spots(&mut self, hints: &Hints, number: usize, key: &[u8]) -> Result<()> {
        let mut hash = hints.hashes[number];
        let words = &hints.may_have[number * hints.words..][..hints.words];
        // The last batches first.
        for (word, mut bits) in words.iter().copied().enumerate().rev() {
            while bits != 0 {
                let bit = bits.ilog2() as usize;
                let at = word * 64 + bit;
                bits ^= 1 << bit;
                let reader = &mut self.readers[at];
                let found = match hints.spots[at * hints.hashes.len() + number] {
                    Spot::Absent => false,
                    Spot::At(place) => reader.go_to(place).map(|()| true)?,
                    Spot::Near(place) => reader.find_near_guess(place, key)?,
                    Spot::Unknown => reader.find(key, &mut hash, &mut self.tested)?,
                };
                if found {
                    self.with_key.push((at, reader.place));
                    if self.last_only {
                        return Ok(());
                    }
                }
            }
        }
        self.with_key.reverse();
        Ok(())
    }
}
