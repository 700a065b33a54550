//! Addresses beside local files.

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::is_address;

/// Returns true if `path` is an address, and no local file has this name.
pub(crate) fn is_far(path: &Path) -> bool {
    is_address(path) && !path.exists()
}

/// Refuses the address of a local file.
pub(super) fn refuse_local(address: &Path) -> Result<()> {
    match address.to_str().and_then(|address| address.strip_prefix("file://")) {
        None => Ok(()),
        Some(local) => Err(Error::usage(format!(
            "{}: is an address; name the file by its path, {local}",
            address.display()
        ))),
    }
}
