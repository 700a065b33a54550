//! Samples of the rows and of the times of a run, which read nothing from a store.

use super::run::Run;
use crate::chunk::time_of;
use windrow_rows::{Layout, Time};

impl Run {
    /// Appends the times of some rows of each chunk: of the least and the greatest time alone if the
    /// rows are not in memory.
    pub(crate) fn sample_times<T: Time>(&self, layout: &Layout, times: &mut Vec<T>) {
        /// Sampled rows of a chunk.
        const ROWS: usize = 64;
        let tail = layout.tail().len();
        for piece in &self.pieces {
            // An error recurs when the rows are merged.
            if let Some(chunk) = piece.in_memory().and_then(|kept| kept.whole().ok()) {
                let rows = chunk.rows();
                let some = (0..rows.len()).step_by(rows.len().div_ceil(ROWS));
                times.extend(some.map(|row| T::decode(time_of(rows.row(row), T::WIDTH, tail))));
            } else if let Some(codes) = piece.times(layout, T::WIDTH) {
                let both = codes.iter().cycle().take(ROWS);
                times.extend(both.map(|code| code.time::<T>()));
            }
        }
    }

    /// Returns copies of up to `most` rows, evenly spread. Of a chunk that is not in memory, at most
    /// the first row is taken, if it is short.
    pub(crate) fn sample(&self, most: usize) -> Vec<Vec<u8>> {
        let step = self.rows().div_ceil(most.max(1)).max(1);
        let (mut sample, mut start, mut next) = (Vec::new(), 0, 0);
        for piece in &self.pieces {
            let wanted = (next..start + piece.rows()).step_by(step);
            next += wanted.len() * step;
            match piece.in_memory().and_then(|kept| kept.whole().ok()) {
                Some(chunk) => {
                    sample.extend(wanted.map(|at| chunk.rows().row(at - start).to_vec()))
                }
                None if wanted.len() > 0 => sample.extend(piece.first_row().map(<[u8]>::to_vec)),
                None => {}
            }
            start += piece.rows();
        }
        sample.truncate(most);
        sample
    }
}
