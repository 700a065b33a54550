//! The files of changes, where the bounds of files do not tell them.
//!
//! ```text
//!  change   0  1  2  3          1 goes to file 2; its row moves there from file 0
//!  to       0  2  -  1          2 is a delete of a key that no file has
//!  from     -  0  -  -
//! ```

/// No file.
const NONE: u32 = u32::MAX;

/// The file of each change.
pub(super) struct Homes {
    to: Vec<u32>,
    /// The files that rows leave; empty if no row moves.
    from: Vec<u32>,
}

/// A change of a row that is in a file of another partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// The old row is in this file.
    Away,
    /// The new row goes to this file.
    Here,
}

impl Homes {
    /// Returns the files of so many changes, none known so far.
    pub(super) fn new(changes: u64, rows_move: bool) -> Self {
        let changes = usize::try_from(changes).unwrap_or(usize::MAX);
        Self { to: vec![NONE; changes], from: vec![NONE; if rows_move { changes } else { 0 }] }
    }

    /// Returns the file that a change goes to.
    pub(super) fn get(&self, change: u64) -> Option<usize> {
        known(&self.to, change)
    }

    pub(super) fn set(&mut self, change: u64, file: usize) {
        self.to[change as usize] = file as u32;
    }

    /// Sets the file that has a newer row than the change: the row stays there.
    pub(super) fn keep(&mut self, change: u64, file: usize) {
        self.set(change, file);
        if let Some(from) = self.from.get_mut(change as usize) {
            *from = file as u32;
        }
    }

    /// Makes a change have no row in any file.
    pub(super) fn drop(&mut self, change: u64) {
        self.from[change as usize] = 0;
    }

    /// Returns true once for a change that is older than its row.
    pub(super) fn is_kept(&mut self, change: u64) -> bool {
        let from = self.from.get_mut(change as usize);
        from.is_some_and(|from| std::mem::replace(from, NONE) != NONE)
    }

    /// Makes the row of a change leave its file for another one.
    pub(super) fn move_to(&mut self, change: u64, file: usize) {
        self.from[change as usize] = std::mem::replace(&mut self.to[change as usize], file as u32);
    }

    /// Returns true if a change concerns this file.
    pub(super) fn has(&self, file: usize, change: u64) -> bool {
        self.get(change) == Some(file) || known(&self.from, change) == Some(file)
    }

    /// Returns whether a change moves its row away from this file, or to it.
    pub(super) fn moves(&self, file: usize, change: u64) -> Option<Move> {
        let from = known(&self.from, change)?;
        Some(if from == file { Move::Away } else { Move::Here })
    }

    /// Returns the bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        (self.to.len() + self.from.len()) * size_of::<u32>()
    }
}

fn known(files: &[u32], change: u64) -> Option<usize> {
    files.get(change as usize).filter(|file| **file != NONE).map(|file| *file as usize)
}
