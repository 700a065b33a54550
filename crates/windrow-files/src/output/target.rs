//! Where a job writes, and where one of its files goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use super::atomic::LINKS;
use crate::store::Prefix;

/// The destination of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file or the address of an object, replaced as a whole at the end of the job; or a device
    /// or FIFO, written continuously. For partitions, a directory that must be new or empty, or an
    /// unused prefix of object names.
    Path(PathBuf),
    /// The standard output, written continuously.
    Stdout,
}

impl Target {
    /// Returns the target named by a path; `-` is the standard output.
    pub fn of(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let is_stdout = path == Path::new("-") || descriptor(path) == Some(1);
        if is_stdout { Self::Stdout } else { Self::Path(path.to_owned()) }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Stdout => f.write_str("standard output"),
        }
    }
}

/// The destination of one output file.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// A file that appears complete, a device or a FIFO.
    Path(PathBuf),
    /// A new file in an unpublished directory, see [`directory`].
    Within(PathBuf),
    /// An object below a prefix; all objects of the prefix appear together.
    Below(Arc<Prefix>, PathBuf),
    Stdout,
}

impl From<&Target> for Destination {
    fn from(target: &Target) -> Self {
        match target {
            Target::Path(path) => Self::Path(path.clone()),
            Target::Stdout => Self::Stdout,
        }
    }
}

/// Returns true if an output at `target` appears at the end, complete, or not at all.
pub(crate) fn can_be_taken_back(target: &Destination) -> bool {
    match target {
        Destination::Path(path) => {
            let other = path.exists() && !path.is_file() && !path.is_dir();
            !other && descriptor(path).is_none()
        }
        Destination::Within(_) | Destination::Below(..) | Destination::Stdout => false,
    }
}

/// Returns the descriptor of this process that `path` names, such as `/dev/stdout` or `/dev/fd/3`.
pub(super) fn descriptor(path: &Path) -> Option<u32> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = fs::canonicalize(parent.unwrap_or(Path::new("."))).ok()?;
        if directory.starts_with("/proc") && directory.ends_with("fd") {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = directory.join(fs::read_link(&path).ok()?);
    }
    None
}
