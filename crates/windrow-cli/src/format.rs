//! The file formats that the command line reads and writes.

use std::path::Path;

/// A file format, by the name the command line gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Apache Parquet.
    #[value(name = "parquet")]
    Parquet,
    /// The Arrow IPC file format, with a footer; Feather V2 is the same.
    #[value(name = "arrow")]
    ArrowFile,
    /// The Arrow IPC stream format.
    #[value(name = "arrow-stream")]
    ArrowStream,
    /// Comma- or otherwise separated text.
    #[value(name = "csv")]
    Csv,
    /// One JSON object a line.
    #[value(name = "ndjson")]
    Ndjson,
}

impl Format {
    /// The format that the extension of a path names.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "parquet" | "pq" => Some(Self::Parquet),
            "arrow" | "feather" | "ipc" => Some(Self::ArrowFile),
            "arrows" | "stream" => Some(Self::ArrowStream),
            "csv" | "tsv" => Some(Self::Csv),
            "ndjson" | "jsonl" | "json" => Some(Self::Ndjson),
            _ => None,
        }
    }
}
