//! Bytes that are read and written at a time, and the memory that they take.

/// The end of an object to read first, and the number of bytes.
#[derive(Clone, Copy)]
pub(crate) enum Look {
    Head(u64),
    Tail(u64),
}

/// Bytes of text to fetch at a time. One range is decoded while the next is in flight.
pub(crate) const RANGE: u64 = 8 << 20;

/// Maximum bytes of a Parquet row group to fetch whole. The next row group is fetched while this
/// one is decoded.
pub(crate) const HELD: u64 = 16 << 20;

/// Bytes of an upload's part. The second constant is the minimum of stores, used if memory is
/// short.
pub(super) const PART: u64 = 8 << 20;

pub(super) const LEAST_PART: u64 = 5 << 20;

/// Memory limits below this one count as short.
pub(super) const SHORT: u64 = 192 << 20;

/// Number of parts before parts grow. Stores accept at most 10,000.
pub(super) const PARTS: u64 = 5000;

/// Returns the bytes of a part, for an output of about `output` bytes inside a memory limit.
pub(crate) fn part_bytes(output: Option<u64>, limit: Option<u64>) -> usize {
    let short = limit.is_some_and(|limit| limit < SHORT);
    let least = if short { LEAST_PART } else { PART };
    // Rounded up to whole mebibytes.
    let enough = output.unwrap_or(0).div_ceil(PARTS).div_ceil(1 << 20) << 20;
    usize::try_from(least.max(enough)).unwrap_or(usize::MAX)
}

/// Returns the memory of an upload: one part being filled, and two in flight.
pub(crate) fn upload_bytes(part: usize) -> usize {
    part.saturating_mul(3)
}

/// Memory for writing to a store, beside the uploads: connections, their buffers, certificates.
pub(crate) const CLIENT_BYTES: usize = 6 << 20;
