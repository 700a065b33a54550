//! The figures of a finished job.

use serde::Serialize;

/// The figures of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Rows read.
    pub rows_in: u64,
    /// Rows written.
    pub rows_out: u64,
    /// Rows read but not written.
    pub rows_dropped: u64,
    /// Keys whose last change was a delete.
    pub keys_deleted: u64,
    /// Keys whose last row comes from a snapshot taken after changes of the key.
    pub keys_renewed: u64,
    /// Bytes of the inputs, if all inputs are files.
    pub bytes_in: Option<u64>,
    /// Bytes of the output.
    pub bytes_out: u64,
    /// Figures of the files of a partitioned output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<Spread>,
    /// Whether the inputs' Bloom filters are missing from a Parquet output, which never has any.
    pub bloom_filters_dropped: bool,
    /// Row groups already in order, and copied without encoding.
    pub row_groups_passed: u64,
    /// Sorted runs in the last merge.
    pub runs: u64,
    /// Bytes of rows written to temporary files, before compression.
    pub spilled_bytes: u64,
    /// Bytes of rows written to temporary files, after compression.
    pub stored_bytes: u64,
    /// Chunks of rows written to temporary files.
    pub spills: u64,
    /// Chunks of rows, or parts of chunks, read back.
    pub loads: u64,
    /// Bytes of rows read back.
    pub loaded_bytes: u64,
    /// Chunks prefetched for the merge.
    pub read_ahead: u64,
    /// Prefetched chunks in memory when needed.
    pub read_ahead_hits: u64,
    /// Chunks kept in memory when complete.
    pub chunks_kept: u64,
    /// Chunks queued for writing, but needed or dropped before the write began.
    pub writes_elided: u64,
    /// Chunks needed or dropped during their write.
    pub writes_cancelled: u64,
    /// Chunks evicted from memory.
    pub evicted: Evicted,
    /// Chunks evicted without a write, because they were on disk already.
    pub released_clean: u64,
    /// Buffers newly mapped.
    pub buffers_mapped: u64,
    /// Buffers reused.
    pub buffers_recycled: u64,
    /// Bytes of recycled buffers returned to the system.
    pub released_bytes: u64,
    /// Peak bytes of temporary files.
    pub temp_bytes: u64,
    /// Memory budget of rows at the end, in bytes.
    pub budget_bytes: u64,
    /// Peak memory of rows, in bytes.
    pub peak_leased_bytes: u64,
    /// Network traffic, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Traffic>,
    /// Peak resident memory of the process so far.
    pub peak_rss_bytes: u64,
    /// The memory limit.
    pub memory_limit_bytes: Option<u64>,
    /// Wall-clock time, from the opening of the inputs to the end of the output.
    pub seconds: f64,
    /// Wall-clock time before the first row was read: inputs were opened, and the job was planned.
    pub planning_seconds: f64,
    /// Wall-clock time of each phase.
    pub phase_seconds: PerPhase<f64>,
    /// Seconds in which only one thread could work, whatever the number of threads.
    pub serial_seconds: Serial,
    /// Bytes of rows written to temporary files, in each phase.
    pub phase_spilled_bytes: PerPhase<u64>,
    /// Bytes of rows read back, in each phase.
    pub phase_loaded_bytes: PerPhase<u64>,
}

/// Seconds in which only one thread could work, by kind of work. The figures of a job with a single
/// thread have the same meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Serial {
    /// Merging rows, while other threads encoded rows already merged.
    pub merge: f64,
    /// Appending encoded rows to the output.
    pub append: f64,
    /// Everything before, between and after reading and writing.
    pub other: f64,
}

/// Network traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Requests, including repeated ones.
    pub requests: u64,
    /// Requests that failed or broke off and were repeated.
    pub retries: u64,
    /// Bytes of response bodies.
    pub received_bytes: u64,
    /// Bytes of request bodies.
    pub sent_bytes: u64,
}

/// One figure for each phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PerPhase<T> {
    /// While reading.
    pub read: T,
    /// While runs were merged down.
    pub settle: T,
    /// While writing.
    pub write: T,
}

/// Chunks evicted from memory, by the number of merges they went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Evicted {
    /// Sorted, never merged.
    pub generation_0: u64,
    /// Merged once.
    pub generation_1: u64,
    /// Merged more often.
    pub older: u64,
}

/// Figures of an output of many files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Files, including files without rows.
    pub files: u64,
    /// Files with rows.
    pub occupied: u64,
    /// Rows of the file with the most rows.
    pub most_rows: u64,
}
