//! Where rows that vary go: the bytes of the next one, and its end.

use super::super::bytes::{copy, copy_ahead};
use super::super::steps::first;
use super::Varying;

/// Where the next row goes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) to: *mut u8,
    /// Offset of `to`, as ends have it.
    pub(super) offset: u32,
    pub(super) end: *mut u32,
}

/// What a loop did: the rows used of each input, where the next one goes, whether words agreed.
pub(super) struct Done {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) place: Place,
    pub(super) ties: bool,
}

impl Done {
    /// The rows that were written since.
    pub(super) fn rows_since(&self, start: &Place) -> usize {
        (self.place.end as usize - start.end as usize) / size_of::<u32>()
    }
}

impl Place {
    /// The offset of `to`, which is behind this place.
    #[inline(always)]
    pub(super) fn offset_of(&self, to: *mut u8) -> u32 {
        self.offset.wrapping_add(to.addr().wrapping_sub(self.to.addr()) as u32)
    }

    /// Writes a row of `len` bytes, at least 8.
    ///
    /// # Safety
    /// `row` points to as many bytes; the place has room for them and their end, in front.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, row: *const u8, len: usize) {
        // SAFETY: as the function's.
        unsafe {
            copy(row, self.to, len);
            self.to = self.to.add(len);
            self.offset += len as u32;
            self.end.write(self.offset);
            self.end = self.end.add(1);
        }
    }

    /// Writes `count` rows from row `from` on.
    ///
    /// # Safety
    /// The rows exist, and the place has room for them and their ends.
    #[inline(always)]
    pub(super) unsafe fn push_run(&mut self, rows: &Varying<'_>, from: usize, count: usize) {
        if count == 0 {
            return;
        }
        // SAFETY: the rows exist, one behind the other, and have room.
        unsafe {
            let (start, end) = (rows.at(from), rows.at(from + count));
            let len = end as usize - start as usize;
            if len >= 64 {
                copy_ahead(start, self.to, len);
            } else {
                std::ptr::copy_nonoverlapping(start, self.to, len);
            }
            let shift = self.offset.wrapping_sub(*rows.starts.get_unchecked(from));
            for at in 0..count {
                let end = rows.starts.get_unchecked(from + at + 1).wrapping_add(shift);
                self.end.add(at).write(end);
            }
            self.to = self.to.add(len);
            self.offset += len as u32;
            self.end = self.end.add(count);
        }
    }

    /// Writes rows from row `from` on, `most` at the most, until the first that does not come now; returns
    /// how many. Eight are moved for one that is looked at: what is looked at is what is moved next.
    ///
    /// # Safety
    /// As [`Place::push_run`]'s, for `most` rows. If a row comes now, so do those before it.
    #[inline(always)]
    pub(super) unsafe fn push_while(
        &mut self,
        rows: &Varying<'_>,
        from: usize,
        most: usize,
        mut comes: impl FnMut(usize) -> bool,
    ) -> usize {
        const STEP: usize = 8;
        let mut done = 0;
        // SAFETY: as the function's.
        unsafe {
            while done + STEP <= most && comes(from + done + STEP - 1) {
                self.push_run(rows, from + done, STEP);
                done += STEP;
            }
            let rest = first((most - done).min(STEP - 1), |at| comes(from + done + at));
            self.push_run(rows, from + done, rest);
            done + rest
        }
    }
}
