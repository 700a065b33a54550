//! From the arguments of the command line to the inputs they stand for, in order.
//!
//! An argument that exists is itself, whatever characters its name holds. Then a directory stands for
//! the files of a known extension in it, a pattern for what it matches, and `-` for standard input.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::Format;

use super::reader::Reader;

/// One input, before it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, or whatever else opens by a path: a pipe, a device.
    File(PathBuf),
    /// Standard input; at most once in a list.
    Stdin,
    /// Record batches of a caller's; see [`Source::reader`].
    Reader(Reader),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("stdin"),
            Self::Reader(reader) => reader.fmt(f),
        }
    }
}

/// The inputs that `args` stand for.
///
/// # Errors
/// `Usage` for a pattern or a directory that yields nothing, and for `-` given twice. A plain name that
/// does not exist is kept: opening it says what is wrong with it.
pub fn expand<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for arg in args {
        let arg = arg.as_ref();
        let path = Path::new(arg);
        if arg == "-" {
            if sources.contains(&Source::Stdin) {
                return Err(Error::usage("standard input (-) can be read only once"));
            }
            sources.push(Source::Stdin);
        } else if path.is_dir() {
            sources.extend(in_directory(path)?.into_iter().map(Source::File));
        } else if !path.exists() && is_pattern(arg) {
            sources.extend(matching(&arg.to_string_lossy())?.into_iter().map(Source::File));
        } else {
            sources.push(Source::File(path.to_owned()));
        }
    }
    Ok(sources)
}

/// Whether a name has a character of patterns.
fn is_pattern(name: &OsStr) -> bool {
    name.as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// The files directly in `directory` whose extension is known, sorted by name.
fn in_directory(directory: &Path) -> Result<Vec<PathBuf>> {
    let cannot_list = |cause| Error::input(directory, format!("cannot be listed: {cause}"));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(cannot_list)? {
        let path = entry.map_err(cannot_list)?.path();
        // Writers of data sets mark what is not data (`_SUCCESS`, `_metadata`, `.part.crc`) this way.
        let marked = path
            .file_name()
            .is_some_and(|name| matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_')));
        if !marked && Format::of_path(&path).is_some() && path.is_file() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Error::usage(format!(
            "{}: the directory holds no file with a known extension \
             (.parquet, .arrow, .arrows, .csv, .tsv, .ndjson, .jsonl); name the files themselves",
            directory.display()
        )));
    }
    files.sort();
    Ok(files)
}

/// The files that `pattern` matches, sorted by name.
fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    // As in a shell, a star does not stand for a hidden file.
    let options =
        glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::default() };
    let paths = glob::glob_with(pattern, options)
        .map_err(|cause| Error::usage(format!("{pattern}: not a pattern: {cause}")))?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|cause| Error::input(cause.path(), cause.error()))?;
        if !path.is_dir() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Error::usage(format!("{pattern}: no file matches")));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn directory(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(directory.path().join(name), "a\n1\n").unwrap();
        }
        directory
    }

    fn names(sources: &[Source]) -> Vec<String> {
        sources
            .iter()
            .map(|source| match source {
                Source::File(path) => path.file_name().unwrap().to_string_lossy().into_owned(),
                Source::Stdin => "-".into(),
                Source::Reader(_) => unreachable!("no argument stands for a reader"),
            })
            .collect()
    }

    fn arg(directory: &tempfile::TempDir, name: &str) -> String {
        directory.path().join(name).to_string_lossy().into_owned()
    }

    #[test]
    fn patterns_and_directories_are_sorted() {
        let dir = directory(&["b.csv", "a.csv", "c.txt", "_x.csv", ".y.csv"]);
        let found = expand(&[arg(&dir, "*.csv")]).unwrap();
        assert_eq!(names(&found), ["_x.csv", "a.csv", "b.csv"].map(String::from));
        let found = expand(&[arg(&dir, "")]).unwrap();
        assert_eq!(names(&found), ["a.csv", "b.csv"].map(String::from));
    }

    #[test]
    fn the_order_of_the_arguments_is_kept() {
        let dir = directory(&["a.csv", "b.csv"]);
        let found = expand(&[arg(&dir, "b.csv"), "-".into(), arg(&dir, "a.csv")]).unwrap();
        assert_eq!(names(&found), ["b.csv", "-", "a.csv"].map(String::from));
    }

    #[test]
    fn a_file_that_exists_is_not_a_pattern() {
        let dir = directory(&["a[1].csv", "a1.csv"]);
        let found = expand(&[arg(&dir, "a[1].csv")]).unwrap();
        assert_eq!(names(&found), ["a[1].csv".to_string()]);
    }

    #[test]
    fn what_yields_nothing_is_a_mistake_in_the_command() {
        let dir = directory(&["c.txt"]);
        for args in [
            vec![arg(&dir, "*.csv")],
            vec![arg(&dir, "")],
            vec![arg(&dir, "[")],
            vec!["-".to_string(), "-".to_string()],
        ] {
            assert!(expand(&args).is_err_and(|error| error.kind() == ErrorKind::Usage), "{args:?}");
        }
    }

    #[test]
    fn a_missing_file_is_left_to_be_opened() {
        let missing = "/nonexistent/a.csv".to_string();
        assert_eq!(expand(std::slice::from_ref(&missing)).unwrap(), [Source::File(missing.into())]);
    }
}
