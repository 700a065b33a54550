//! Memory with its lease.

use windrow_kernel::region::Region;

use crate::budget::Lease;

/// Memory and its lease.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) region: Region,
    pub(crate) _lease: Lease,
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
