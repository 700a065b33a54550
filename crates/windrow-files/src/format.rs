//! File formats, and their detection by names.

use std::path::Path;

use crate::error::{Error, Result};
use crate::packing::Packing;

/// A file format. All are read, and all but Avro are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// The Arrow IPC file format, also called Feather version 2.
    ArrowFile,
    /// The Arrow IPC streaming format.
    ArrowStream,
    /// Delimited text with a record on each line.
    Csv,
    /// A JSON object on each line.
    Ndjson,
    /// Avro object container files, read only.
    Avro,
}

impl Format {
    /// Returns the format of `path` by its extension. The extension of a compressor may follow.
    pub fn of_path(path: &Path) -> Option<Self> {
        if let Some((_, path)) = Packing::of_path(path) {
            return Self::of_path(&path);
        }
        let extension = path.extension()?;
        let known =
            Self::EXTENSIONS.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known));
        known.map(|&(_, format)| format)
    }

    /// Known extensions, in any case.
    pub(crate) const EXTENSIONS: [(&'static str, Self); 13] = [
        ("parquet", Self::Parquet),
        ("pq", Self::Parquet),
        ("arrow", Self::ArrowFile),
        ("feather", Self::ArrowFile),
        ("ipc", Self::ArrowFile),
        ("arrows", Self::ArrowStream),
        ("stream", Self::ArrowStream),
        ("csv", Self::Csv),
        ("tsv", Self::Csv),
        ("ndjson", Self::Ndjson),
        ("jsonl", Self::Ndjson),
        ("json", Self::Ndjson),
        ("avro", Self::Avro),
    ];

    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::Parquet, Self::ArrowFile, Self::ArrowStream, Self::Csv, Self::Ndjson, Self::Avro];

    /// Formats of outputs.
    pub const WRITTEN: [Self; 5] =
        [Self::Parquet, Self::ArrowFile, Self::ArrowStream, Self::Csv, Self::Ndjson];

    /// Returns the name, the extension and a short description.
    fn told(self) -> [&'static str; 3] {
        match self {
            Self::Parquet => ["parquet", "parquet", "Apache Parquet"],
            Self::ArrowFile => {
                ["arrow", "arrow", "The Arrow IPC file format, also called Feather version 2"]
            }
            Self::ArrowStream => ["arrow-stream", "arrows", "The Arrow IPC streaming format"],
            Self::Csv => ["csv", "csv", "Delimited text with a record a line"],
            Self::Ndjson => ["ndjson", "ndjson", "A JSON object a line"],
            Self::Avro => ["avro", "avro", "Avro object files, of inputs"],
        }
    }

    /// Returns the name, in the syntax of the parser.
    pub fn name(self) -> &'static str {
        self.told()[0]
    }

    /// Returns the extension for files of this format.
    pub fn extension(self) -> &'static str {
        self.told()[1]
    }

    /// Returns a short description.
    pub fn about(self) -> &'static str {
        self.told()[2]
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::usage(format!("{text:?} is none of the formats: {names}"))
        })
    }
}

/// Returns true if `name` is the address of an object, such as `s3://bucket/name`, and not a path.
pub(crate) fn is_address(name: &Path) -> bool {
    let scheme = name.to_str().and_then(|name| name.split_once("://")).map(|(scheme, _)| scheme);
    let in_schemes = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.is_some_and(|scheme| {
        scheme.len() > 1
            && scheme.as_bytes()[0].is_ascii_alphabetic()
            && scheme.bytes().all(in_schemes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_known_in_any_case() {
        for (name, format) in [
            ("a.parquet", Format::Parquet),
            ("a.PQ", Format::Parquet),
            ("a.arrow", Format::ArrowFile),
            ("a.feather", Format::ArrowFile),
            ("a.arrows", Format::ArrowStream),
            ("a.tsv", Format::Csv),
            ("a.b.jsonl", Format::Ndjson),
            ("a.csv.gz", Format::Csv),
            ("a.json.ZST", Format::Ndjson),
            ("a.avro", Format::Avro),
        ] {
            assert_eq!(Format::of_path(Path::new(name)), Some(format), "{name}");
        }
        assert_eq!(Format::of_path(Path::new("a.txt")), None);
        assert_eq!(Format::of_path(Path::new("parquet")), None);
    }

    #[test]
    fn addresses_are_no_paths() {
        for (name, is) in [
            ("s3://b/x", true),
            ("file:///a", true),
            ("abfs+ssl://x", true),
            ("a/b://c", false),
            ("c:/x", false),
            ("://", false),
            ("a.csv", false),
        ] {
            assert_eq!(is_address(Path::new(name)), is, "{name}");
        }
    }
}
