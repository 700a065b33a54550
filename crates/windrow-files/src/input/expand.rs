//! From the arguments of the command line to the inputs they stand for, in order.
//!
//! An argument that exists is itself, whatever characters its name holds. Then a directory stands for
//! the files of a known extension in it and in those below it, a pattern for what it matches, and `-` for standard
//! input.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::{self, Format};

use super::pattern;
use super::reader::Reader;

/// One input, before it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, or whatever else opens by a path: a pipe, a device.
    File(PathBuf),
    /// A file that a pattern or a directory stands for, and that. It cannot be the output, too. Directories on the
    /// way to it that are called `name=value` are columns.
    Found {
        /// The file.
        path: PathBuf,
        /// The argument that it was found by.
        by: Arc<OsStr>,
    },
    /// Standard input; at most once in a list.
    Stdin,
    /// Record batches of a caller's; see [`Source::reader`].
    Reader(Reader),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) | Self::Found { path, .. } => path.display().fmt(f),
            Self::Stdin => f.write_str("stdin"),
            Self::Reader(reader) => reader.fmt(f),
        }
    }
}

impl Source {
    /// The file, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Found { path, .. } => Some(path),
            Self::Stdin | Self::Reader(_) => None,
        }
    }
}

/// The inputs that `args` stand for.
///
/// # Errors
/// `Usage` for a pattern or a directory that yields nothing, for `-` given twice, and for an address such as
/// `s3://...`. A plain name that does not exist is kept: opening it says what is wrong with it.
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
            continue;
        }
        let found = if path.is_dir() {
            in_directory(path)?
        } else if path.exists() || !(pattern::is_pattern(arg) || format::is_address(path)) {
            sources.push(Source::File(path.to_owned()));
            continue;
        } else {
            refuse_address(path)?;
            matching(arg)?
        };
        let by: Arc<OsStr> = arg.into();
        sources.extend(found.into_iter().map(|path| Source::Found { path, by: Arc::clone(&by) }));
    }
    Ok(sources)
}

/// Refuses the address of what is elsewhere.
pub(super) fn refuse_address(path: &Path) -> Result<()> {
    let what = match path.to_str().and_then(|path| path.strip_prefix("file://")) {
        Some(local) => format!("is an address; name the file by its path, {local}"),
        None if format::is_address(path) => {
            "is an address, and inputs are files; fetch it first, or on the way: FETCH | windrow ... -"
                .to_owned()
        }
        None => return Ok(()),
    };
    Err(Error::usage(format!("{}: {what}", path.display())))
}

/// The files in `directory`, and in those below it, whose extension is known, sorted by name.
fn in_directory(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let cannot_list = |cause| Error::input(&directory, format!("cannot be listed: {cause}"));
        for entry in std::fs::read_dir(&directory).map_err(cannot_list)? {
            let entry = entry.map_err(cannot_list)?;
            let path = entry.path();
            // Writers of data sets mark what is not data (`_SUCCESS`, `_temporary`, `.part.crc`) this way.
            let marked = path
                .file_name()
                .is_some_and(|name| matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_')));
            if marked {
                continue;
            }
            // Links to directories are not followed: they may lead back.
            if entry.file_type().map_err(cannot_list)?.is_dir() {
                directories.push(path);
            } else if Format::of_path(&path).is_some() && path.is_file() {
                files.push(path);
            }
        }
    }
    if files.is_empty() {
        let known = Format::EXTENSIONS.map(|(extension, _)| format!(".{extension}")).join(", ");
        return Err(Error::usage(format!(
            "{}: the directory holds no file with a known extension ({known}); name the files \
             themselves",
            directory.display()
        )));
    }
    files.sort();
    Ok(files)
}

/// The files that `arg` matches, sorted by name.
fn matching(arg: &OsStr) -> Result<Vec<PathBuf>> {
    let files = pattern::files(arg)?;
    if files.is_empty() {
        let pattern = Path::new(arg).display();
        return Err(Error::usage(format!("{pattern}: no file matches")));
    }
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
                Source::Stdin => "-".into(),
                other => other.path().unwrap().file_name().unwrap().to_string_lossy().into_owned(),
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
            vec!["s3://bucket/a.csv".to_string()],
            vec!["https://host/*.csv".to_string()],
        ] {
            assert!(expand(&args).is_err_and(|error| error.kind() == ErrorKind::Usage), "{args:?}");
        }
    }

    #[test]
    fn what_was_not_named_is_known_by_what_found_it() {
        let dir = directory(&["a.csv"]);
        for (name, found) in [("a.csv", false), ("*.csv", true), ("", true)] {
            let sources = expand(&[arg(&dir, name)]).unwrap();
            assert_eq!(matches!(sources[..], [Source::Found { .. }]), found, "{name}");
        }
    }

    #[test]
    fn messages_say_what_there_is() {
        let dir = directory(&["c.txt"]);
        let said = |arg: &str| expand([arg]).unwrap_err().to_string();
        let message = said(dir.path().to_str().unwrap());
        for (extension, _) in Format::EXTENSIONS {
            assert!(message.contains(&format!(".{extension}")), "{message}");
        }
        assert!(said("file:///data/a.csv").contains("its path, /data/a.csv"));
        assert!(said("gs://data/*.parquet").contains("is an address"));
    }

    #[test]
    fn a_missing_file_is_left_to_be_opened() {
        let missing = "/nonexistent/a.csv".to_string();
        assert_eq!(expand(std::slice::from_ref(&missing)).unwrap(), [Source::File(missing.into())]);
    }
}
