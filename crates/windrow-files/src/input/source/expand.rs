//! Expansion of command line arguments into inputs, in order.
//!
//! An existing file is itself, whatever characters its name contains. A directory stands for all
//! files with a known extension below it, a pattern for its matches, and `-` for standard input.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::input::options::ReadOptions;
use crate::settings::Format;
use crate::store::is_far;

use super::pattern;
use super::reader::Reader;
use super::tables::{Table, is_marked, is_version};

/// One input, before it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, or anything else with a path: a pipe, a device.
    File(PathBuf),
    /// A file found through a pattern or a directory. The file must not be the output as well.
    /// Directories `name=value` on its path are columns.
    Found {
        /// The file.
        path: PathBuf,
        /// The pattern or directory.
        by: Arc<OsStr>,
    },
    /// A file of a partition of a table.
    Partition {
        /// The file.
        path: PathBuf,
        /// Columns with the same value in all rows, as text; `None` is null. A column in the file
        /// itself has precedence.
        values: Arc<[(String, Option<String>)]>,
    },
    /// Standard input, at most once in a list.
    Stdin,
    /// Record batches of the caller; see [`Source::reader`].
    Reader(Reader),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) | Self::Found { path, .. } | Self::Partition { path, .. } => {
                path.display().fmt(f)
            }
            Self::Stdin => f.write_str("stdin"),
            Self::Reader(reader) => reader.fmt(f),
        }
    }
}

impl Source {
    /// Returns the path of a file.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Found { path, .. } | Self::Partition { path, .. } => {
                Some(path)
            }
            Self::Stdin | Self::Reader(_) => None,
        }
    }
}

/// Expands `args` into inputs, as [`expand_with`] does with default options.
///
/// # Errors
/// The same as [`expand_with`].
pub fn expand<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Result<Vec<Source>> {
    expand_with(args, &ReadOptions::default())
}

/// Expands `args` into inputs: files, patterns, directories, `-`, and addresses of objects. An
/// address with a slash at its end is a directory. `options` hold the settings of object stores.
///
/// # Errors
/// `Usage` for a pattern or a directory without a match, and for a second `-`; any error of a
/// store. A plain name of a missing file is kept: opening the file fails with the reason.
pub fn expand_with<A: AsRef<OsStr>>(
    args: impl IntoIterator<Item = A>,
    options: &ReadOptions,
) -> Result<Vec<Source>> {
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
        } else if is_far(path) {
            match in_store(path, options)? {
                Some(found) => found,
                None => {
                    sources.push(Source::File(path.to_owned()));
                    continue;
                }
            }
        } else if path.exists() || !pattern::is_pattern(arg) {
            sources.push(Source::File(path.to_owned()));
            continue;
        } else {
            matching(arg)?
        };
        let by: Arc<OsStr> = arg.into();
        sources.extend(found.into_iter().map(|path| Source::Found { path, by: Arc::clone(&by) }));
    }
    Ok(sources)
}

/// Lists the objects of an address, sorted by name, if the address is a pattern or a directory.
fn in_store(address: &Path, options: &ReadOptions) -> Result<Option<Vec<PathBuf>>> {
    let name = address.as_os_str();
    let is_pattern = pattern::is_pattern(name);
    // A bucket without a path is a directory as well.
    let is_bucket = address.components().count() <= 2;
    if !is_pattern && !is_bucket && !name.as_encoded_bytes().ends_with(b"/") {
        return Ok(None);
    }
    let shown = address.display();
    let mut found;
    if is_pattern {
        let pattern = pattern::Pattern::of(name)?;
        found = options.stores.list(&pattern.directory(), &options.cancel)?;
        found.retain(|path| pattern.matches(path.as_os_str()));
        if found.is_empty() {
            return Err(Error::input(address, "no object matches").of_kind(ErrorKind::NotFound));
        }
    } else {
        found = options.stores.list(address, &options.cancel)?;
        for path in &found {
            are_no_table(path, address)?;
        }
        found.retain(|path| {
            let below = path.strip_prefix(address).unwrap_or(path);
            let marked = below.components().any(|part| is_marked(part.as_os_str()));
            !marked && Format::of_path(path).is_some()
        });
        if found.is_empty() {
            return Err(Error::usage(format!(
                "{shown}: no object below it has a known extension ({}); name the objects themselves",
                known_extensions()
            )));
        }
    }
    found.sort();
    Ok(Some(found))
}

/// Refuses an object below `address` if it belongs to the log of a table.
fn are_no_table(object: &Path, address: &Path) -> Result<()> {
    let file = object.file_name().unwrap_or_default().as_encoded_bytes();
    let directories =
        object.ancestors().skip(1).take_while(|directory| directory.starts_with(address));
    for directory in directories.filter(|directory| *directory != address) {
        let name = directory.file_name().unwrap_or_default().as_encoded_bytes();
        if let Some(table) = Table::of_entry(name, || is_version(file)) {
            return table.refused(directory.parent().unwrap_or(address));
        }
    }
    Ok(())
}

fn known_extensions() -> String {
    Format::EXTENSIONS.map(|(extension, _)| format!(".{extension}")).join(", ")
}

/// Lists the files with a known extension below `directory`, sorted by name.
fn in_directory(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let cannot_list = |cause: io::Error| {
            Error::input(&directory, format!("cannot be listed: {cause}")).caused(cause.kind())
        };
        for entry in std::fs::read_dir(&directory).map_err(cannot_list)? {
            let entry = entry.map_err(cannot_list)?;
            let path = entry.path();
            let name = entry.file_name();
            let has_versions = || {
                let mut within = std::fs::read_dir(&path).into_iter().flatten().flatten();
                within.any(|file| is_version(file.file_name().as_encoded_bytes()))
            };
            if let Some(table) = Table::of_entry(name.as_encoded_bytes(), has_versions) {
                return table.refused(&directory);
            }
            if is_marked(&name) {
                continue;
            }
            // Links to directories are not followed, since they may form a cycle.
            if entry.file_type().map_err(cannot_list)?.is_dir() {
                directories.push(path);
            } else if Format::of_path(&path).is_some() && path.is_file() {
                files.push(path);
            }
        }
    }
    if files.is_empty() {
        let known = known_extensions();
        return Err(Error::usage(format!(
            "{}: the directory holds no file with a known extension ({known}); name the files \
             themselves",
            directory.display()
        )));
    }
    files.sort();
    Ok(files)
}

/// Lists the matches of the pattern `arg`, sorted by name.
fn matching(arg: &OsStr) -> Result<Vec<PathBuf>> {
    let files = pattern::files(arg)?;
    if files.is_empty() {
        let error = Error::input(Path::new(arg), "no file matches; check the pattern");
        return Err(error.of_kind(ErrorKind::NotFound));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn tables_are_refused_as_directories() {
        for (log, name) in [
            ("_delta_log/0.json", "a Delta table"),
            (".hoodie/hoodie.properties", "a Hudi table"),
            ("metadata/v1.metadata.json", "an Iceberg table"),
        ] {
            let dir = directory(&["a.csv"]);
            let log = dir.path().join("t").join(log);
            std::fs::create_dir_all(log.parent().unwrap()).unwrap();
            std::fs::write(log, "").unwrap();
            std::fs::write(dir.path().join("t/b.csv"), "a\n1\n").unwrap();
            for table in ["", "t"] {
                let error = expand(&[arg(&dir, table)]).unwrap_err();
                assert!(error.to_string().contains(name), "{error}");
            }
            assert_eq!(names(&expand(&[arg(&dir, "t/*.csv")]).unwrap()), ["b.csv".to_string()]);
        }
        let dir = directory(&["a.csv"]);
        std::fs::create_dir(dir.path().join("metadata")).unwrap();
        std::fs::write(dir.path().join("metadata/c.csv"), "a\n1\n").unwrap();
        assert_eq!(names(&expand(&[arg(&dir, "")]).unwrap()), ["a.csv", "c.csv"].map(String::from));
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
            vec![arg(&dir, "")],
            vec![arg(&dir, "[")],
            vec!["-".to_string(), "-".to_string()],
            vec!["https://host/*.csv".to_string()],
        ] {
            assert!(expand(&args).is_err_and(|error| error.kind() == ErrorKind::Usage), "{args:?}");
        }
        let none = expand([arg(&dir, "*.csv")]);
        assert!(none.is_err_and(|error| error.kind() == ErrorKind::NotFound));
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
    }

    #[test]
    fn a_missing_file_is_left_to_be_opened() {
        let missing = "/nonexistent/a.csv".to_string();
        assert_eq!(expand(std::slice::from_ref(&missing)).unwrap(), [Source::File(missing.into())]);
    }
}
