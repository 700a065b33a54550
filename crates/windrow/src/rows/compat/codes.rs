//! Codes made beforehand, for what stands in blocks or is picked many times: elements of lists, values of
//! runs and dictionaries.

use super::blocks;
use super::part::Part;

/// Codes made beforehand.
pub(super) struct Codes {
    pub(super) bytes: Vec<u8>,
    offsets: Vec<usize>,
    /// Bytes of each of them, if they are the same.
    same_len: Option<usize>,
}

impl Codes {
    /// Of all values of `parts`, one behind the other for each.
    pub(super) fn of(parts: &[Part], count: usize) -> Self {
        let picks: Vec<usize> = (0..count).collect();
        let mut offsets = vec![0; count + 1];
        parts.iter().for_each(|part| part.add_lengths(&picks, &mut offsets[1..]));
        let mut end = 0;
        for offset in &mut offsets {
            end += *offset;
            *offset = end;
        }
        let mut bytes = vec![0; end];
        let mut cursors = offsets[..count].to_vec();
        parts.iter().for_each(|part| part.put(&picks, &mut cursors, &mut bytes));
        let same_len = parts.iter().try_fold(0, |sum, part| Some(sum + part.same_len()?));
        Self { bytes, offsets, same_len }
    }

    /// Bytes of the codes from `start` to `end` in blocks.
    pub(super) fn blocks_len(&self, start: usize, end: usize) -> usize {
        match self.same_len {
            Some(len) => (end - start) * blocks::encoded_len(len),
            None => (start..end).map(|at| blocks::encoded_len(self.len_of(at))).sum(),
        }
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        &self.bytes[self.offsets[at]..self.offsets[at + 1]]
    }

    pub(super) fn len_of(&self, at: usize) -> usize {
        self.offsets[at + 1] - self.offsets[at]
    }
}
