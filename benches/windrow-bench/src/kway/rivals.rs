//! A textbook merge: a loser tree (Knuth, volume 3, 5.4.1) over records of fixed length.

use super::data::Record;

/// Sorted runs, each read from front to back.
struct Runs<'a, T> {
    runs: Vec<std::slice::Iter<'a, Record<T>>>,
    heads: Vec<Option<&'a Record<T>>>,
}

impl<'a, T: Ord> Runs<'a, T> {
    fn new(runs: &'a [Vec<Record<T>>]) -> Self {
        let mut runs: Vec<_> = runs.iter().map(|run| run.iter()).collect();
        Self { heads: runs.iter_mut().map(Iterator::next).collect(), runs }
    }

    #[inline(always)]
    fn advance(&mut self, run: usize) {
        self.heads[run] = self.runs[run].next();
    }

    #[inline(always)]
    fn head(&self, run: usize) -> Option<&'a Record<T>> {
        self.heads.get(run).copied().flatten()
    }

    /// Returns true if the head of run `a` comes before the head of run `b`. Ties go to the earlier
    /// run, and an exhausted run loses.
    #[inline(always)]
    fn before(&self, a: usize, b: usize) -> bool {
        match (self.head(a), self.head(b)) {
            (Some(x), Some(y)) => x.cmp(y).then(a.cmp(&b)).is_lt(),
            (head, _) => head.is_some(),
        }
    }
}

/// Merges runs with a loser tree into `out`, and returns the number of records. Equal records
/// become one, and none if their diffs cancel.
pub(super) fn merge<T: Ord + Copy>(runs: &[Vec<Record<T>>], out: &mut [Record<T>]) -> usize {
    let mut len = 0;
    loser_tree(Runs::new(runs), |record| {
        if len > 0 && out[len - 1].0 == record.0 {
            out[len - 1].1 += record.1;
            len -= usize::from(out[len - 1].1 == 0);
        } else {
            out[len] = *record;
            len += 1;
        }
    });
    len
}

fn loser_tree<T: Ord>(mut runs: Runs<'_, T>, mut put: impl FnMut(&Record<T>)) {
    let leaves = runs.runs.len().next_power_of_two();
    let mut losers = vec![0; leaves];
    // The leaves are at the end.
    let mut winners: Vec<usize> = (0..leaves).chain(0..leaves).collect();
    for node in (1..leaves).rev() {
        let (a, b) = (winners[2 * node], winners[2 * node + 1]);
        (winners[node], losers[node]) = if runs.before(a, b) { (a, b) } else { (b, a) };
    }
    let mut winner = winners[1];
    while let Some(record) = runs.head(winner) {
        put(record);
        runs.advance(winner);
        let mut node = (leaves + winner) / 2;
        while node > 0 {
            if runs.before(losers[node], winner) {
                std::mem::swap(&mut losers[node], &mut winner);
            }
            node /= 2;
        }
    }
}
