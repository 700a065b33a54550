//! Detects a missing standard output.
//!
//! If a program is started without a standard output, as by `>&-`, Rust opens `/dev/null` in its
//! place before `main`: rows would be written, and lost. Rust opens the file for reading and
//! writing, shells for writing only. Known limit: some parent processes that want to discard output
//! also open it for reading and writing (Python's `DEVNULL`, Node's `ignore`). They can name
//! `/dev/null` as the output.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, stat};
use windrow_files::Error;

use crate::advice::Result;

/// Returns an error if the standard output is missing.
pub(crate) fn is_open() -> Result<()> {
    if is_stand_in(io::stdout().as_fd()) {
        let closed = "it is closed, and the rows would be lost; to discard them, name /dev/null as the output";
        return Err(Error::output(Path::new("standard output"), &io::Error::other(closed)).into());
    }
    Ok(())
}

/// Returns true if `descriptor` was opened by Rust in place of a closed one.
fn is_stand_in(descriptor: BorrowedFd<'_>) -> bool {
    let null = stat("/dev/null").map(|null| null.st_rdev);
    let is_null = fstat(descriptor).is_ok_and(|own| {
        FileType::from_raw_mode(own.st_mode).is_char_device() && null == Ok(own.st_rdev)
    });
    is_null && fcntl_getfl(descriptor).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}
