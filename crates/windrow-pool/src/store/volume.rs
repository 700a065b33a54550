//! A volume: a medium and its free ranges.

use std::io::{self, ErrorKind};
use std::sync::Mutex;

use super::medium::Medium;
use super::space::Space;
use crate::lock::lock;
use windrow_rows::{Error, Result};

/// One medium of a store.
#[derive(Debug)]
pub(super) struct Volume {
    /// Index of the volume in its store; a part of every checksum.
    pub(super) index: usize,
    pub(super) medium: Box<dyn Medium>,
    pub(super) space: Mutex<Space>,
}

impl Volume {
    pub(super) fn new(index: usize, medium: Box<dyn Medium>) -> Self {
        Self { index, medium, space: Mutex::default() }
    }

    /// Frees a range that nobody reads any more.
    pub(super) fn give(&self, offset: u64, length: u64) {
        if self.medium.is_memory() {
            self.medium.discard(offset, length);
        }
        lock(&self.space).give(offset, length);
    }

    /// Writes all of `bytes` at `offset`. If the medium is full, `write` returns the volume's free
    /// ranges to the system and retries once.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.medium.make().map_err(|error| Error::TempSpace {
            dir: self.medium.name(),
            message: format!("cannot create a temporary file: {error}"),
        })?;
        let written = self.medium.write(bytes, offset).or_else(|error| {
            if is_full(&error) && self.discard_free() {
                self.medium.write(bytes, offset)
            } else {
                Err(error)
            }
        });
        written.map_err(|error| {
            if is_full(&error) || error.kind() == ErrorKind::FileTooLarge {
                return Error::TempSpace { dir: self.medium.name(), message: error.to_string() };
            }
            self.failed("writing", error)
        })
    }

    /// Fills `out` from `offset` on.
    pub(super) fn read(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.medium.read(out, offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Error::Corrupt {
                place: self.place(offset),
                message: format!("expected {} bytes, the file ends before", out.len()),
            },
            _ => self.failed("reading", error),
        })
    }

    /// Describes a position, for messages.
    pub(super) fn place(&self, offset: u64) -> String {
        format!("temporary file in {}, offset {offset}", self.medium.name())
    }

    /// Returns all free ranges to the system; false if this failed for all.
    fn discard_free(&self) -> bool {
        let space = lock(&self.space);
        space
            .holes()
            .fold(false, |any, (offset, length)| self.medium.discard(offset, length) || any)
    }

    fn failed(&self, what: &str, source: io::Error) -> Error {
        Error::Io { context: format!("{what} a temporary file in {}", self.medium.name()), source }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
