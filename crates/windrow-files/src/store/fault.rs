//! Errors of object stores, and their messages.

use std::error::Error as _;
use std::path::Path;

use object_store::Error as Cause;

use crate::error::{Error, ErrorKind};

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum Fault {
    Store(Cause),
    /// The response belongs to another version of the object.
    Replaced,
    /// The response has too few bytes.
    Short,
    Cancelled,
}

impl From<Cause> for Fault {
    fn from(cause: Cause) -> Self {
        Self::Store(cause)
    }
}

/// Formats a cause on one line, and truncates text from the server.
pub(super) fn told(cause: &Cause) -> String {
    const MOST: usize = 400;
    let text = match cause {
        Cause::Generic { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(MOST) {
        line.truncate(end);
        line.push_str(" ...");
    }
    line
}

/// Finds the innermost store error among the causes of `cause`.
fn innermost(cause: &Cause) -> &Cause {
    let mut found = cause;
    let mut next = cause.source();
    while let Some(source) = next {
        if let Some(inner) = source.downcast_ref::<Cause>() {
            found = inner;
        }
        next = source.source();
    }
    found
}

impl Fault {
    /// Returns the error of an input. `known` tells whether the input was read before.
    pub(super) fn of_input(&self, address: &Path, known: bool) -> Error {
        let input = |what: String| Error::input(address, what);
        let replaced = || input("was replaced while it was read; run the job again".to_owned());
        match self {
            Self::Cancelled => Error::interrupted(),
            Self::Replaced => replaced(),
            Self::Short => input("cannot be read: fewer bytes came than it has".to_owned()),
            Self::Store(cause) => match innermost(cause) {
                Cause::NotFound { .. } if known => {
                    input("was removed while it was read; run the job again".to_owned())
                }
                Cause::NotFound { .. } => {
                    let what = "no such object; check the name, and end that of a directory with /";
                    input(what.to_owned()).of_kind(ErrorKind::NotFound)
                }
                Cause::Precondition { .. } => replaced(),
                inner => input(failed(cause, "read")).caused(kind(inner)),
            },
        }
    }

    /// Returns the error of an output.
    pub(super) fn of_output(&self, address: &Path) -> Error {
        let output = |what: String| {
            let address = address.display().to_string();
            Error::space(format!("{address}: {what}")).in_file(address)
        };
        match self {
            Self::Cancelled => Error::interrupted(),
            Self::Replaced | Self::Short => output("cannot be written".to_owned()),
            Self::Store(cause) => match innermost(cause) {
                Cause::NotImplemented { .. } | Cause::NotSupported { .. } => Error::usage(format!(
                    "{}: such a server takes no object in parts; write to a store or a file",
                    address.display()
                )),
                inner => output(failed(cause, "written")).caused(kind(inner)),
            },
        }
    }
}

/// Returns the kind of an error of a store.
fn kind(cause: &Cause) -> std::io::ErrorKind {
    match cause {
        Cause::PermissionDenied { .. } | Cause::Unauthenticated { .. } => {
            std::io::ErrorKind::PermissionDenied
        }
        Cause::Generic { .. } => std::io::ErrorKind::NotConnected,
        _ => std::io::ErrorKind::Other,
    }
}

/// Tells why an object cannot be read or written.
fn failed(cause: &Cause, done: &str) -> String {
    match innermost(cause) {
        Cause::PermissionDenied { .. } | Cause::Unauthenticated { .. } => format!(
            "permission denied: {}; check the credentials, which may have expired, or read anonymously with \
             skip_signature=true",
            told(cause)
        ),
        _ => format!("cannot be {done}: {}", told(cause)),
    }
}
