//! Failures of a run: the message, in the words of the command line, and the exit code.

use std::fmt;
use std::io::{self, Write};

use windrow_files::{Error, ErrorKind};

use crate::args::flag;

/// The result of the command line's functions.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The reason for a run's failure.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A job failed.
    Job(Error),
    /// `check` found a row out of place. Nothing is printed if the message is empty.
    Check(String),
    /// The command line is invalid.
    Usage(String),
    /// A report beside the output cannot be written.
    Report(String),
}

impl Failure {
    /// Returns the exit code of the process, as listed in the help.
    fn exit_code(&self) -> i32 {
        match self {
            Self::Check(_) => 1,
            Self::Usage(_) => 2,
            Self::Report(_) => 5,
            Self::Job(error) => match error.kind() {
                ErrorKind::Usage => 2,
                ErrorKind::MemoryFloor => 4,
                ErrorKind::Space => 5,
                ErrorKind::Corrupt => 6,
                ErrorKind::Interrupted => 130,
                // The exit code of SIGPIPE.
                ErrorKind::BrokenPipe => 141,
                _ => 3,
            },
        }
    }

    /// Ends the process with the message and the exit code.
    pub(crate) fn end(&self) -> ! {
        if let Some(message) = self.message() {
            let _reported = writeln!(io::stderr(), "windrow: {message}");
        }
        std::process::exit(self.exit_code())
    }

    /// Returns the message, if any. A broken pipe has no reader for a message, and a quiet check
    /// prints none.
    fn message(&self) -> Option<String> {
        match self {
            Self::Check(message) if message.is_empty() => None,
            Self::Job(error) if error.kind() == ErrorKind::BrokenPipe => None,
            other => Some(other.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(error) => f.write_str(&error.worded(&flag)),
            Self::Check(message) | Self::Usage(message) | Self::Report(message) => {
                f.write_str(message)
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Job(error)
    }
}
