//! The result of changes to a table.

use std::path::PathBuf;

use serde::Serialize;

/// What became of the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Rows with a new key.
    pub inserted: u64,
    /// Rows replaced by a row with another value.
    pub updated: u64,
    /// Rows deleted.
    pub deleted: u64,
    /// Changes equal to the row in the table.
    pub unchanged: u64,
    /// Changes older than the row in the table.
    pub stale: u64,
    /// Deletes of keys that the table does not have.
    pub absent: u64,
    /// Rows that left a file for one of another partition, where they are counted as updated.
    #[serde(skip)]
    pub(super) left: u64,
}

impl Counts {
    /// Returns the number of changed rows.
    pub fn changed(&self) -> u64 {
        self.inserted + self.updated + self.deleted + self.left
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.deleted += other.deleted;
        self.unchanged += other.unchanged;
        self.stale += other.stale;
        self.absent += other.absent;
        self.left += other.left;
    }
}

/// How changed rows of a table are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteMode {
    /// Row groups with a change are written anew.
    #[default]
    Copy,
    /// Files stay: their changed rows are hidden, and new rows are written to new files. Only the
    /// columns of the key and of the order are read, so that a change that is equal to its row counts
    /// as an update.
    Vectors,
    /// The mode that writes fewer bytes, by an estimate.
    Auto,
}

/// The files of a table after changes, and the figures of the job.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Applied {
    /// Rows of the change log.
    pub rows_in: u64,
    /// Whether the changes were only counted, and nothing was changed.
    pub dry_run: bool,
    /// How rows were replaced.
    pub write_mode: WriteMode,
    /// Keys with a change.
    pub keys: u64,
    /// What became of the changes.
    #[serde(flatten)]
    pub counts: Counts,
    /// Rows of the table afterwards.
    pub rows_out: u64,
    /// The files replaced.
    pub files_removed: Vec<PathBuf>,
    /// The new files.
    pub files_added: Vec<AddedFile>,
    /// The files that stay.
    pub files_left: Vec<PathBuf>,
    /// Those of them with rows that are hidden from now on.
    pub vectors: Vec<HiddenRows>,
    /// Row groups with a change, or with few rows and beside such a row group.
    pub row_groups_rewritten: u64,
    /// Row groups copied into new files without encoding.
    pub row_groups_copied: u64,
    /// Row groups of files that stay.
    pub row_groups_left: u64,
    /// Bytes of the new files.
    pub bytes_out: u64,
    /// Bytes of the changes in a temporary file, sorted by key.
    pub bytes_of_changes: u64,
    /// Bytes of rows written to temporary files while the changes were sorted.
    pub spilled_bytes: u64,
    /// Peak resident memory of the process so far.
    pub peak_rss_bytes: u64,
    /// The memory limit.
    pub memory_limit_bytes: Option<u64>,
    /// Wall-clock time.
    pub seconds: f64,
}

/// The hidden rows of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HiddenRows {
    /// The path of the file, below the directory of the table.
    pub path: PathBuf,
    /// Rows of the file.
    pub of: u64,
    /// Rows that were not hidden before.
    pub rows: u64,
    /// All hidden rows.
    pub hidden: u64,
    /// The positions of all hidden rows, as a 64-bit Roaring bitmap in its portable form.
    #[serde(skip)]
    pub bitmap: Vec<u8>,
}

/// A new file of a table.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AddedFile {
    /// The path of the file, below the directory of the table.
    pub path: PathBuf,
    /// Rows of the file.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// The columns, each leaf by its path.
    pub columns: Vec<ColumnFigures>,
    /// The value of each column of the table's partitions in the first row, as text, if the value itself is
    /// common to all rows.
    pub partition: Vec<Option<String>>,
}

/// The values of a column in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ColumnFigures {
    /// Path of the column; dotted for a member of a struct.
    pub name: String,
    /// Number of nulls, if every row group states it.
    pub nulls: Option<u64>,
    /// The least value, as text; or a lesser one, for long values.
    pub min: Option<String>,
    /// The greatest value, as text; or a greater one, for long values.
    pub max: Option<String>,
}
