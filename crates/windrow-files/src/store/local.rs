//! Addresses beside local files.

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::is_address;

/// Returns true if `path` is an address, and no local file has this name.
pub(crate) fn is_far(path: &Path) -> bool {
    is_address(path) && !path.exists()
}

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    S3,
    Google,
    Azure,
    Http,
}

/// Returns the kind of an address, its scheme, and the rest.
///
/// # Errors
/// `Usage` for the address of a local file, and if no kind of store has such an address.
pub(super) fn parsed(address: &Path) -> Result<(Kind, &str, &str)> {
    let refused = |what: &str| Err(Error::usage(format!("{}: {what}", address.display())));
    let Some((scheme, rest)) = address.to_str().and_then(|text| text.split_once("://")) else {
        return refused("is no address");
    };
    let kind = match scheme {
        "s3" | "s3a" => Kind::S3,
        "gs" => Kind::Google,
        "az" | "azure" | "adl" | "abfs" | "abfss" => Kind::Azure,
        "http" | "https" => Kind::Http,
        "file" => return refused(&format!("is an address; name the file by its path, {rest}")),
        _ => {
            return refused(
                "is the address of no store that is known: they begin with s3, gs, az, abfss, http or https",
            );
        }
    };
    Ok((kind, scheme, rest))
}
