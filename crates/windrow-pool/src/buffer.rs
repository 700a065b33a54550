//! Memory with its lease.

use windrow_kernel::region::Region;
use windrow_rows::{Error, Result};

use crate::budget::Lease;

/// Memory and its lease.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) region: Region,
    pub(crate) _lease: Lease,
}

impl Buffer {
    /// Maps `len` bytes, which `lease` counts.
    pub(crate) fn mapped(len: usize, lease: Lease) -> Result<Self> {
        let context = || format!("cannot map {len} bytes of memory");
        let region = Region::new(len);
        let region = region.map_err(|source| Error::Io { context: context(), source })?;
        Ok(Self { region, _lease: lease })
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.region
    }
}

/// Allows sharing a buffer as `Bytes`.
impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.region
    }
}
