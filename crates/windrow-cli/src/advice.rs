//! How a run fails: what is said, in the words of the command line, and the exit code.

use std::fmt;
use std::io::{self, Write};

use windrow_files::{Error, ErrorKind, Setting};

/// The result of everything that the command line does.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a run ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A job failed.
    Job(Error),
    /// `check` found a row out of place; the message is empty if nothing is to be said.
    Check(String),
    /// The command line asks for what cannot be.
    Usage(String),
    /// What was to be said beside the output cannot be written.
    Report(String),
}

impl Failure {
    /// The exit code of the process, as the help lists them.
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
                // That of SIGPIPE.
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

    /// What is said of it. A reader that went away has no use for a message about it; a quiet check has none.
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

/// The option that stands for a setting.
fn flag(setting: Setting) -> String {
    format!("--{}", setting.name().replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_setting_is_an_option_of_some_verb() {
        let command = crate::args::Cli::command();
        let options: Vec<String> = command
            .get_subcommands()
            .flat_map(|verb| verb.get_arguments())
            .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
            .collect();
        for setting in Setting::ALL {
            assert!(options.contains(&flag(*setting)), "{setting}");
        }
    }
}
