//! The memory plan of rewrites: each thread merges one sorted file with changes, while it writes.

use windrow::SortColumn;

use super::plan::{BATCH_BYTES, Costs, Floor, Output, Terms};
use crate::error::Result;
use crate::input::Inputs;
use crate::limits::Limits;
use crate::output::OutputOptions;
use crate::size::Size;
use crate::verbs::MergeSpec;

/// Threads and memory of rewrites.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rewrites {
    pub(crate) limit: Option<u64>,
    pub(crate) threads: usize,
    pub(crate) columns_in_turn: bool,
    /// Rows of a row group, by the limits of rows and bytes.
    pub(crate) part_rows: usize,
    /// The smallest limit, as shown in messages.
    pub(crate) floor: Size,
    /// Bytes of a thread.
    pub(crate) thread_bytes: usize,
}

impl Rewrites {
    /// Plans the rewriting of files of `table`, sorted by `key`. `more` is the memory that all threads
    /// share.
    ///
    /// # Errors
    /// `MemoryFloor` if the limit is below the floor.
    pub(crate) fn plan(
        table: &Inputs,
        changes: Option<&Inputs>,
        key: &[SortColumn],
        options: &OutputOptions,
        limits: &Limits,
        more: usize,
    ) -> Result<Self> {
        let terms = Terms::of(limits)?;
        let arrangement = MergeSpec::by(key.to_vec()).bind(table)?;
        let schema = arrangement.schema()?;
        let output = Output::Written { schema: &schema, options };
        let costs = Costs::of(table, &arrangement, &output, limits.spill_codec, terms.readers)
            .by_file(table);
        // A record batch of changes and of merged rows, their keys, and the reader of the changes.
        let merging = 4 * BATCH_BYTES + changes.map_or(0, |all| all.needs.reader_bytes);
        let floor = Floor::of_rewrites(&costs, merging, more);
        if terms.available() < floor.bytes {
            return Err(floor.error(&costs, &terms));
        }
        let need = |in_turn, n: usize| costs.rewriting(in_turn, n, merging, more);
        let fits = |in_turn, n: usize| terms.spare(need(in_turn, n)) > 0;
        let most = |in_turn| (1..=terms.readers).rev().find(|&n| fits(in_turn, n)).unwrap_or(0);
        // Columns one after the other leave memory for more threads.
        let in_turn = costs.writer(true) < costs.writer(false)
            && (!fits(false, 1) || most(true) > most(false));
        let threads = most(in_turn).max(1);
        let (rows, bytes) = costs.part();
        let row = table.needs.row_bytes.max(1);
        Ok(Self {
            limit: terms.limit,
            threads,
            columns_in_turn: in_turn,
            part_rows: rows.min(bytes / row).max(1),
            floor: floor.named(&costs),
            thread_bytes: need(in_turn, 2) - need(in_turn, 1),
        })
    }
}
