//! Replacements for builds without object stores: addresses are refused, so that no type has a
//! value.

use std::convert::Infallible;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::settings::Setting;
use crate::stats::Traffic;
use crate::watch::Cancel;

use super::local::parsed;
use super::sizes::Look;
use super::stores::Stores;

/// Returns the error for a feature of object stores. `typed` is an address or an option.
fn lacking(typed: &str) -> Error {
    Error::usage(format!(
        "{typed}: this build of windrow reads and writes no object stores; a build with the feature `cloud` does: \
         `cargo install --path crates/windrow-cli --features cloud`, a release package, or the Python package \
         windrow-arrow"
    ))
}

/// Returns the error for an address.
fn refused<T>(address: &Path) -> Result<T> {
    parsed(address)?;
    Err(lacking(&address.display().to_string()))
}

/// Refuses all options.
pub(super) fn check(options: &[(String, String)]) -> Result<()> {
    match options.first() {
        None => Ok(()),
        Some((key, _)) => Err(lacking(&format!("{} {key}", Setting::StoreOption))),
    }
}

pub(super) struct Client(Infallible);
pub(crate) struct Object(Infallible);
pub(crate) struct Window(Infallible);
pub(crate) struct Upload(Infallible);
#[derive(Debug)]
pub(crate) struct Prefix(Infallible);

/// Declares methods of types without values.
macro_rules! never {
    ($($of:ident: $($name:ident($($argument:ty),*) -> $result:ty),*;)*) => {
        $(impl $of {
            $(pub(crate) fn $name(&self, $(_: $argument),*) -> $result {
                match self.0 {}
            })*
        })*
    };
}

never! {
    Client: traffic() -> Traffic;
    Object: len() -> u64, fault() -> Option<Error>;
    Window: read_at(&mut [u8], u64) -> io::Result<usize>, bytes(u64, usize) -> io::Result<Bytes>;
    Upload: write(&[u8]) -> io::Result<()>, finish() -> Result<()>;
    Prefix: upload(&Path) -> Result<Upload>, commit(u64) -> Result<()>;
}

impl Client {
    pub(super) fn start(_: Vec<(String, String)>) -> Result<Self> {
        Err(Error::usage("this build has no stores"))
    }
}

impl Stores {
    pub(crate) fn list(&self, address: &Path, _: &Cancel) -> Result<Vec<PathBuf>> {
        refused::<()>(address)?;
        match self.client()?.0 {}
    }

    /// Refuses the address.
    ///
    /// # Errors
    /// `Usage`.
    pub fn put_new(&self, address: &Path, _: Vec<u8>) -> Result<bool> {
        refused(address)
    }

    pub(crate) fn probe(&self, address: &Path, _: &Cancel) -> Result<()> {
        refused(address)
    }
}

impl Object {
    pub(crate) fn open(_: &Stores, address: &Path, look: Look, _: &Cancel) -> Result<Self> {
        match look {
            Look::Head(_bytes) | Look::Tail(_bytes) => refused(address),
        }
    }

    pub(crate) fn forget(&self) {
        match self.0 {}
    }
}

impl Window {
    pub(crate) fn of(object: &Arc<Object>) -> Self {
        match object.0 {}
    }

    pub(crate) fn stream(object: &Arc<Object>) -> Self {
        match object.0 {}
    }

    pub(crate) fn hold(&self, _: &[Range<u64>], _: u64) {
        match self.0 {}
    }
}

/// Returns zero: no object exists.
pub(crate) fn held_bytes(_: usize, _: u64) -> u64 {
    0
}

impl Upload {
    pub(crate) fn to(_: &Stores, address: &Path, _: usize, _: &Cancel) -> Result<Self> {
        refused(address)
    }
}

impl Prefix {
    pub(crate) fn check(_: &Stores, address: &Path, _: &Cancel) -> Result<()> {
        refused(address)
    }

    pub(crate) fn create(_: &Stores, address: &Path, _: usize, _: &Cancel) -> Result<Self> {
        refused(address)
    }
}
