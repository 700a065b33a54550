//! Replacements for builds without object stores: addresses are refused, so that no type has a
//! value.

use std::convert::Infallible;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::setting::Setting;
use crate::stats::Traffic;
use crate::watch::Cancel;

use super::local::refuse_local;
use super::stores::Stores;

/// Schemes of object stores' addresses.
const SCHEMES: [&str; 10] =
    ["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https"];

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
    refuse_local(address)?;
    let address = address.display().to_string();
    let scheme = address.split_once("://").map_or("", |(scheme, _)| scheme);
    if !SCHEMES.contains(&scheme) {
        return Err(Error::usage(format!(
            "{address}: is the address of no store that is known: they begin with s3, gs, az, abfss, http or https"
        )));
    }
    Err(lacking(&address))
}

/// A client type without values.
pub(super) struct Client(Infallible);

impl Client {
    pub(super) fn check(options: &[(String, String)]) -> Result<()> {
        match options.first() {
            None => Ok(()),
            Some((key, _)) => Err(lacking(&format!("{} {key}", Setting::StoreOption))),
        }
    }

    pub(super) fn start(_: Vec<(String, String)>) -> Result<Self> {
        Err(Error::usage("this build has no stores"))
    }

    pub(super) fn traffic(&self) -> Traffic {
        match self.0 {}
    }
}

impl Stores {
    pub(crate) fn list(&self, address: &Path, _: &Cancel) -> Result<Vec<PathBuf>> {
        refused::<()>(address)?;
        match self.client()?.0 {}
    }

    pub(crate) fn probe(&self, address: &Path, _: &Cancel) -> Result<()> {
        refused(address)
    }
}

/// The end of an object to read first.
#[derive(Clone, Copy)]
pub(crate) enum Look {
    Head(u64),
    Tail(u64),
}

pub(crate) struct Object(Infallible);

impl Object {
    pub(crate) fn open(_: &Stores, address: &Path, look: Look, _: &Cancel) -> Result<Self> {
        match look {
            Look::Head(_bytes) | Look::Tail(_bytes) => refused(address),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn forget(&self) {
        match self.0 {}
    }

    pub(crate) fn fault(&self) -> Option<Error> {
        match self.0 {}
    }
}

pub(crate) struct Window(Infallible);

impl Window {
    pub(crate) fn of(object: &std::sync::Arc<Object>) -> Self {
        match object.0 {}
    }

    pub(crate) fn stream(object: &std::sync::Arc<Object>) -> Self {
        match object.0 {}
    }

    pub(crate) fn hold(&self, _: &[Range<u64>], _: u64) {
        match self.0 {}
    }

    pub(crate) fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        match self.0 {}
    }

    pub(crate) fn bytes(&self, _: u64, _: usize) -> io::Result<Bytes> {
        match self.0 {}
    }
}

/// Returns zero: no object exists.
pub(crate) fn held_bytes(_: usize, _: u64) -> u64 {
    0
}

pub(crate) struct Upload(Infallible);

impl Upload {
    pub(crate) fn to(_: &Stores, address: &Path, _: usize, _: &Cancel) -> Result<Self> {
        refused(address)
    }

    pub(crate) fn write(&mut self, _: &[u8]) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn finish(self) -> Result<()> {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(crate) struct Prefix(Infallible);

impl Prefix {
    pub(crate) fn check(_: &Stores, address: &Path, _: &Cancel) -> Result<()> {
        refused(address)
    }

    pub(crate) fn create(_: &Stores, address: &Path, _: usize, _: &Cancel) -> Result<Self> {
        refused(address)
    }

    pub(crate) fn upload(&self, _: &Path) -> Result<Upload> {
        match self.0 {}
    }

    pub(crate) fn commit(&self, _: u64) -> Result<()> {
        match self.0 {}
    }
}
