//! The figures of a finished job.

use serde::Serialize;

/// What a job did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Rows that were read.
    pub rows_in: u64,
    /// Rows that were written.
    pub rows_out: u64,
    /// Rows that were read and not written.
    pub rows_dropped: u64,
    /// Keys whose last change was a delete.
    pub keys_deleted: u64,
    /// Keys whose last row is of a snapshot that was taken after changes of theirs.
    pub keys_renewed: u64,
    /// Bytes of the inputs, if all are files.
    pub bytes_in: Option<u64>,
    /// Bytes of the output.
    pub bytes_out: u64,
    /// Of the files of partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<Spread>,
    /// Whether Parquet inputs have Bloom filters, which Parquet that is written has not.
    pub bloom_filters_dropped: bool,
    /// Row groups that were in order already, and were written as they are.
    pub row_groups_passed: u64,
    /// Sorted runs that met in the last merge.
    pub runs: u64,
    /// Bytes of rows that went to temporary files.
    pub spilled_bytes: u64,
    /// The same, as stored: compressed.
    pub stored_bytes: u64,
    /// Pages of rows that were written to temporary files.
    pub spills: u64,
    /// Pages of rows that were read back.
    pub loads: u64,
    /// Bytes of rows that were read back.
    pub loaded_bytes: u64,
    /// Pages that were read ahead of the merge.
    pub read_ahead: u64,
    /// Of them, those that the merge came to.
    pub read_ahead_hits: u64,
    /// Chunks that stayed in memory.
    pub chunks_kept: u64,
    /// Writes that were not needed, since the page is on disk already.
    pub writes_elided: u64,
    /// Writes that were cancelled, since the chunk was needed again.
    pub writes_cancelled: u64,
    /// Chunks that left memory for others.
    pub evicted: Evicted,
    /// Chunks that left memory without a write.
    pub released_clean: u64,
    /// Buffers that were mapped anew.
    pub buffers_mapped: u64,
    /// Buffers that were used again.
    pub buffers_recycled: u64,
    /// Bytes of buffers that went back to the system.
    pub released_bytes: u64,
    /// Bytes of temporary files at their largest.
    pub temp_bytes: u64,
    /// Bytes that rows may take in memory, at the end.
    pub budget_bytes: u64,
    /// Bytes that they took at the most.
    pub peak_leased_bytes: u64,
    /// What went over the network, if anything did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Traffic>,
    /// Peak resident memory of the process so far.
    pub peak_rss_bytes: u64,
    /// The memory limit.
    pub memory_limit_bytes: Option<u64>,
    /// Wall-clock time.
    pub seconds: f64,
    /// The same, of each phase.
    pub phase_seconds: PerPhase<f64>,
    /// Seconds in which one thread at a time could work, however many there are.
    pub serial_seconds: Serial,
    /// Bytes of rows that went to temporary files, in each phase.
    pub phase_spilled_bytes: PerPhase<u64>,
    /// Bytes of rows that were read back, in each phase.
    pub phase_loaded_bytes: PerPhase<u64>,
}

/// Seconds in which one thread at a time could work, by what it did. Where there is but one, the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Serial {
    /// It merged rows, while others encoded what was merged before.
    pub merge: f64,
    /// It appended what was encoded to the output.
    pub append: f64,
    /// It did what comes before reading and behind it, and before writing and behind that.
    pub other: f64,
}

/// What went over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Requests, those that were sent again included.
    pub requests: u64,
    /// Of them, those that failed or broke off in a way that has the client send them again.
    pub retries: u64,
    /// Bytes of answers, without their heads.
    pub received_bytes: u64,
    /// Bytes of what was sent, without heads.
    pub sent_bytes: u64,
}

/// One figure of each phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PerPhase<T> {
    /// While reading.
    pub read: T,
    /// While runs were merged down.
    pub settle: T,
    /// While writing.
    pub write: T,
}

/// Chunks that left memory for others, by the number of merges behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Evicted {
    /// Sorted, never merged.
    pub generation_0: u64,
    /// Merged once.
    pub generation_1: u64,
    /// Merged more often.
    pub older: u64,
}

/// Figures of many files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Files, those without rows included.
    pub files: u64,
    /// Files that have rows.
    pub occupied: u64,
    /// Rows of the file that has most.
    pub most_rows: u64,
}
