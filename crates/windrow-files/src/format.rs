//! File formats, and their detection by names.

use std::path::Path;

use crate::packing::Packing;
use crate::settings::Format;

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

    /// Returns the extension for files of this format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::ArrowStream => "arrows",
            other => other.name(),
        }
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
