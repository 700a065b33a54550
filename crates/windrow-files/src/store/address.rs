//! Addresses of objects: `scheme://store/key`.
//!
//! ```text
//!  s3://bucket/day=1/a b.parquet      the key as it stands, as other tools take it
//!  abfss://container@account.dfs.core.windows.net/a.parquet
//!  https://host:8443/a%20b.parquet    a path of a URL: percent signs stand for bytes
//! ```

use std::path::{Path, PathBuf};

use object_store::path::Path as Key;

use crate::error::{Error, Result};

use super::local::{Kind, parsed};

/// The address of an object, or the prefix of several.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) kind: Kind,
    /// The store: the address up to the key, without a slash at its end.
    pub(super) root: String,
    pub(super) key: String,
}

impl Address {
    /// # Errors
    /// `Usage` if no kind of store has such an address.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let refused = |what: &str| Err(Error::usage(format!("{}: {what}", path.display())));
        let (kind, scheme, rest) = parsed(path)?;
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return refused("the address names no bucket or host");
        }
        if kind == Kind::Http && key.contains(['?', '#']) {
            return refused("addresses with a query are not read; fetch it first");
        }
        Ok(Self { kind, root: format!("{scheme}://{host}"), key: key.to_owned() })
    }

    /// Returns the key in the form for store clients.
    pub(super) fn location(&self) -> Result<Key> {
        let key = match self.kind {
            Kind::Http => Key::from_url_path(&self.key),
            _ => Key::parse(self.key.trim_end_matches('/')),
        };
        key.map_err(|cause| Error::usage(format!("{}/{}: {cause}", self.root, self.key)))
    }

    /// Returns the address of another key in the same store.
    pub(super) fn with_key(&self, key: &str) -> PathBuf {
        PathBuf::from(format!("{}/{key}", self.root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_as_they_are_and_paths_of_urls_do_not() {
        let parsed = |text: &str| Address::of(Path::new(text)).unwrap();
        let address = parsed("s3://bucket/day=1/a%20b c?.parquet");
        assert_eq!((address.kind, &*address.root), (Kind::S3, "s3://bucket"));
        assert_eq!(address.location().unwrap().as_ref(), "day=1/a%20b c?.parquet");
        let address = parsed("https://host:8443/d/a%20b.csv");
        assert_eq!((address.kind, &*address.root), (Kind::Http, "https://host:8443"));
        assert_eq!(address.location().unwrap().as_ref(), "d/a b.csv");
        assert_eq!(parsed("gs://bucket").key, "");
        let azure = parsed("abfss://c@account.dfs.core.windows.net/k/");
        assert_eq!((azure.kind, azure.location().unwrap().as_ref()), (Kind::Azure, "k"));
        assert_eq!(azure.with_key("x"), Path::new("abfss://c@account.dfs.core.windows.net/x"));
        for wrong in ["ftp://host/a", "s3:///a", "https://host/a?token=1", "file:///a", "a"] {
            assert!(Address::of(Path::new(wrong)).is_err(), "{wrong}");
        }
    }
}
