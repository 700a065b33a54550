//! Whether there is a standard output.
//!
//! A program that is started without one, as by `>&-`, gets `/dev/null` in its place from Rust, before `main`:
//! rows would be written, and lost. That it is open to be read, too, gives it away; shells open it to be
//! written alone. Known limit: some parents that want output to be discarded open it so (Python's `DEVNULL`,
//! Node's `ignore`). They can name `/dev/null` as the output.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, stat};
use windrow_files::Error;

use crate::advice::Result;

/// Refuses to write rows to a standard output that there is not.
pub(crate) fn is_open() -> Result<()> {
    if is_stand_in(io::stdout().as_fd()) {
        let closed = "it is closed, and the rows would be lost; to discard them, name /dev/null as the output";
        return Err(Error::output(Path::new("standard output"), &io::Error::other(closed)).into());
    }
    Ok(())
}

/// Whether `descriptor` is what Rust opens in place of a closed one.
fn is_stand_in(descriptor: BorrowedFd<'_>) -> bool {
    let null = stat("/dev/null").map(|null| null.st_rdev);
    let is_null = fstat(descriptor).is_ok_and(|own| {
        FileType::from_raw_mode(own.st_mode).is_char_device() && null == Ok(own.st_rdev)
    });
    is_null && fcntl_getfl(descriptor).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}
