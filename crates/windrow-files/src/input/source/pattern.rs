//! Search for files by a pattern.
//!
//! ```text
//!  day/**/a?[0-9]*.csv
//!  |   |  \- a part: ? is a character, * any number of them, [0-9] one of these, [!0-9] one of the others
//!  |   \- directories, any number of them within each other
//!  \- a name as it stands
//! ```
//! Patterns and names are bytes, as on disk. A character is a UTF-8 character where the bytes are
//! valid, or else one byte. Hidden names need a part with a dot in front, and `**` skips them, as
//! well as directories such as `_temporary`. Links are followed; `**` skips links to a directory
//! around it. The crate `globset` takes `?` for one byte, and braces for alternatives. The search of the
//! crate `glob` takes text alone.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::error::{Error, Result};

use super::tables::is_marked;

/// Returns true for a name with a special character of patterns.
pub(super) fn is_pattern(name: &OsStr) -> bool {
    name.as_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// Returns the files with a name like `pattern`, sorted by name.
///
/// # Errors
/// `Usage` for a malformed pattern, `Data` for a directory that cannot be listed.
pub(super) fn files(pattern: &OsStr) -> Result<Vec<PathBuf>> {
    let parts = Pattern::of(pattern)?.parts;
    let root = if pattern.as_bytes().starts_with(b"/") { "/" } else { "" };
    let mut walk = Walk::default();
    walk.go(Path::new(root), &parts)?;
    walk.found.sort();
    // Several `**` can find a file in two ways.
    walk.found.dedup();
    Ok(walk.found)
}

/// A pattern for names from any listing.
pub(super) struct Pattern {
    parts: Vec<PathPart>,
}

impl Pattern {
    /// # Errors
    /// `Usage` for a malformed pattern.
    pub(super) fn of(pattern: &OsStr) -> Result<Self> {
        let parts = parts(pattern.as_bytes()).map_err(|why| {
            Error::usage(format!("{}: not a pattern: {why}", Path::new(pattern).display()))
        })?;
        Ok(Self { parts })
    }

    /// Returns the common directory of all matches. The first part is the scheme of an address.
    pub(super) fn directory(&self) -> PathBuf {
        let names = self.parts.iter().map_while(|part| match part {
            PathPart::Name(name) => Some(name.as_bytes()),
            PathPart::Directories | PathPart::Like(_) => None,
        });
        let mut directory = Vec::new();
        for (place, name) in names.enumerate() {
            directory.extend_from_slice(name);
            directory.extend_from_slice(if place == 0 { b"//" } else { b"/" });
        }
        OsString::from_vec(directory).into()
    }

    pub(super) fn matches(&self, name: &OsStr) -> bool {
        let names = name.as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        let names: Vec<&OsStr> = names.map(OsStr::from_bytes).collect();
        are_like(&names, &self.parts)
    }
}

fn are_like(names: &[&OsStr], parts: &[PathPart]) -> bool {
    match (parts.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((PathPart::Directories, rest)), first) => {
            let further = first.filter(|(name, _)| !is_marked(name));
            are_like(names, rest) || further.is_some_and(|(_, names)| are_like(names, parts))
        }
        (Some((PathPart::Name(own), rest)), Some((name, names))) => {
            own == name && are_like(names, rest)
        }
        (Some((PathPart::Like(own), rest)), Some((name, names))) => {
            is_like(name, own) && are_like(names, rest)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// The text between two slashes of a pattern.
enum PathPart {
    Name(OsString),
    /// `**`
    Directories,
    Like(glob::Pattern),
}

fn parts(pattern: &[u8]) -> Result<Vec<PathPart>, &'static str> {
    let mut parts = Vec::new();
    for text in pattern.split(|byte| *byte == b'/').filter(|text| !text.is_empty()) {
        let part = match text {
            b"**" if matches!(parts.last(), Some(PathPart::Directories)) => continue,
            b"**" => PathPart::Directories,
            _ if !is_pattern(OsStr::from_bytes(text)) => {
                PathPart::Name(OsString::from_vec(text.to_vec()))
            }
            _ => PathPart::Like(like(text)?),
        };
        parts.push(part);
    }
    if pattern.ends_with(b"/") || matches!(parts.last(), Some(PathPart::Directories)) {
        return Err("it ends with directories; go on with what their files are called: **/*.csv");
    }
    Ok(parts)
}

fn like(part: &[u8]) -> Result<glob::Pattern, &'static str> {
    glob::Pattern::new(&characters(part)).map_err(|error| match error.msg {
        "invalid range pattern" => "a bracket is not closed, or nothing is in it",
        _ => "** stands for directories, and so between slashes alone",
    })
}

/// Returns the characters of a name. An invalid byte becomes one of the last private characters.
fn characters(name: &[u8]) -> String {
    let private = |byte: &u8| char::from_u32(0x10_FF00 | u32::from(*byte));
    let chunks = name.utf8_chunks();
    chunks.flat_map(|c| c.valid().chars().chain(c.invalid().iter().filter_map(private))).collect()
}

/// Returns true if `name` matches. A hidden name also needs a dot in front of the pattern.
fn is_like(name: &OsStr, like: &glob::Pattern) -> bool {
    let hidden = name.as_bytes().starts_with(b".") && !like.as_str().starts_with('.');
    !hidden && like.matches(&characters(name.as_bytes()))
}

#[derive(Default)]
struct Walk {
    found: Vec<PathBuf>,
    /// Directories for `**` on the current path, by device and inode.
    within: Vec<Option<(u64, u64)>>,
}

impl Walk {
    /// Searches the existing `directory` for matches of `parts`.
    fn go(&mut self, directory: &Path, parts: &[PathPart]) -> Result<()> {
        match parts.split_first() {
            None => Ok(()),
            Some((PathPart::Name(name), rest)) => {
                let path = directory.join(name);
                // Existence is enough: a directory may forbid listing and still allow access to its
                // entries.
                if fs::symlink_metadata(&path).is_ok() { self.meet(path, rest) } else { Ok(()) }
            }
            Some((PathPart::Like(own), rest)) => {
                for path in children(directory)? {
                    if path.file_name().is_some_and(|name| is_like(name, own)) {
                        self.meet(path, rest)?;
                    }
                }
                Ok(())
            }
            Some((PathPart::Directories, rest)) => {
                let about = fs::metadata(here(directory));
                let identity = about.map(|about| (about.dev(), about.ino())).ok();
                if self.within.contains(&identity) {
                    return Ok(());
                }
                self.within.push(identity);
                self.go(directory, rest)?;
                for path in children(directory)? {
                    if !path.file_name().is_some_and(is_marked) && path.is_dir() {
                        self.go(&path, parts)?;
                    }
                }
                self.within.pop();
                Ok(())
            }
        }
    }

    /// Takes the file `path` if no parts are left, or searches the directory `path` for `rest`.
    fn meet(&mut self, path: PathBuf, rest: &[PathPart]) -> Result<()> {
        match (path.is_dir(), rest) {
            (true, rest) => self.go(&path, rest),
            // A dangling link fails when it is opened.
            (false, []) => {
                self.found.push(path);
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }
}

/// Returns a name for the directory of a relative path, whose own is empty.
fn here(directory: &Path) -> &Path {
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}

/// Lists the entries of `directory`, with paths as the pattern starts.
fn children(directory: &Path) -> Result<Vec<PathBuf>> {
    let cannot_list = |cause: io::Error| {
        let error = Error::input(here(directory), format!("cannot be listed: {cause}"));
        error.caused(cause.kind())
    };
    let entries = fs::read_dir(here(directory)).map_err(cannot_list)?;
    entries.map(|entry| Ok(directory.join(entry.map_err(cannot_list)?.file_name()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deterministic pseudorandom generator.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as usize % end
        }

        fn text(&mut self, of: &[&str], longest: usize) -> String {
            let pieces = self.below(longest + 1);
            (0..pieces).map(|_| of[self.below(of.len())]).collect()
        }
    }

    #[test]
    fn parts_match_as_those_of_the_glob_crate_do() {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let pieces = ["a", "b", "é", ".", "-", "!", "]", "*", "?", "[ab]", "[!a]", "[a-é]", "["];
        let (mut patterns, mut matches) = (0, 0);
        while patterns < 20_000 {
            let text = random.text(&pieces, 6);
            let (own, other) = (like(text.as_bytes()), glob::Pattern::new(&text));
            // For two stars in a row, `glob` has a special pattern if nothing else is in a part.
            if text.contains("**") {
                continue;
            }
            assert_eq!(own.is_ok(), other.is_ok(), "{text}");
            let (Ok(own), Ok(other)) = (own, other) else { continue };
            patterns += 1;
            for _ in 0..10 {
                let name = random.text(&["a", "b", "é", ".", "-", "!", "]", "[", "c"], 5);
                let seen = !name.starts_with('.') || text.starts_with('.');
                let expected = other.matches(&name) && seen;
                assert_eq!(is_like(name.as_ref(), &own), expected, "{text} and {name}");
                matches += u32::from(expected);
            }
        }
        assert!(matches > 1000, "{matches}");
    }

    #[test]
    fn trees_are_walked_as_by_the_glob_crate() {
        let mut random = Random(0xD1B5_4A32_D192_ED03);
        let dir = tempfile::tempdir().expect("a directory");
        let names = ["a", "b", "ab", "a.csv", "b.csv", ".h", "x_"];
        for _ in 0..80 {
            let path: PathBuf =
                (0..1 + random.below(4)).map(|_| names[random.below(names.len())]).collect();
            let path = dir.path().join(path);
            // A file may already be in the place of a directory.
            if fs::create_dir_all(path.parent().expect("one")).is_ok() && !path.exists() {
                fs::write(path, "").expect("written");
            }
        }
        let options = glob::MatchOptions {
            require_literal_leading_dot: true,
            ..glob::MatchOptions::default()
        };
        let mut found = 0;
        for _ in 0..500 {
            let parts = ["*", "**", "a", "b", "*b", "?", "*.csv", "[ab]", "a*", "[!a]*"];
            let parts: Vec<&str> =
                (0..1 + random.below(4)).map(|_| parts[random.below(parts.len())]).collect();
            if parts.last() == Some(&"**") {
                continue;
            }
            let pattern = dir.path().join(parts.join("/"));
            let paths = glob::glob_with(pattern.to_str().expect("UTF-8"), options);
            let mut expected: Vec<PathBuf> = paths
                .expect("a pattern")
                .map(|path| path.expect("listed"))
                .filter(|path| !path.is_dir())
                .collect();
            expected.sort();
            expected.dedup();
            assert_eq!(files(pattern.as_os_str()).expect("found"), expected, "{parts:?}");
            found += expected.len();
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn names_that_are_no_text() {
        let dir = tempfile::tempdir().expect("a directory");
        let odd = |name: &[u8]| dir.path().join(OsStr::from_bytes(name));
        fs::create_dir(odd(b"d\xe9")).expect("created");
        for name in [&b"d\xe9/a.csv"[..], b"caf\xe9.csv", b"caf\xe9.txt", b"caf\xc3\xa9.csv"] {
            fs::write(odd(name), "").expect("written");
        }
        let found = |pattern: &[u8]| files(odd(pattern).as_os_str()).expect("found");
        assert_eq!(found(b"*.csv"), [odd(b"caf\xc3\xa9.csv"), odd(b"caf\xe9.csv")]);
        assert_eq!(found(b"caf?.csv"), [odd(b"caf\xc3\xa9.csv"), odd(b"caf\xe9.csv")]);
        assert_eq!(found(b"caf\xe9.*").len(), 2);
        assert_eq!(found(b"caf[\xe9].csv"), [odd(b"caf\xe9.csv")]);
        assert_eq!(found(b"*/a.csv"), [odd(b"d\xe9/a.csv")]);
        assert_eq!(found(b"**/*.csv").len(), 3);
    }

    #[test]
    fn links_round_and_hidden_names() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("d/.h")).expect("created");
        for name in ["d/a.csv", "d/.a.csv", "d/.csv", "d/.h/a.csv"] {
            fs::write(at(name), "").expect("written");
        }
        std::os::unix::fs::symlink(".", at("d/round")).expect("linked");
        std::os::unix::fs::symlink("nowhere", at("d/b.csv")).expect("linked");
        let found = |pattern: &str| files(at(pattern).as_os_str()).expect("found");
        assert_eq!(found("d/*.csv"), [at("d/a.csv"), at("d/b.csv")]);
        assert_eq!(found("d/.*.csv"), [at("d/.a.csv")]);
        assert_eq!(found("d/.h/*"), [at("d/.h/a.csv")]);
        assert_eq!(found("**/a.csv"), [at("d/a.csv")]);
        fs::create_dir_all(at("e/_temporary")).expect("created");
        fs::create_dir_all(at("e/_c0=1")).expect("created");
        for name in ["e/_temporary/c.csv", "e/_c0=1/c.csv"] {
            fs::write(at(name), "").expect("written");
        }
        assert_eq!(found("e/**/c.csv"), [at("e/_c0=1/c.csv")]);
        assert_eq!(found("e/_temporary/*.csv"), [at("e/_temporary/c.csv")]);
        assert_eq!(found("d/round/*.csv"), [at("d/round/a.csv"), at("d/round/b.csv")]);
        for pattern in ["d/", "*/", "**", "d/**", "a**", "[", "a[]", "[!]"] {
            assert!(files(at(pattern).as_os_str()).is_err(), "{pattern}");
        }
    }
}
