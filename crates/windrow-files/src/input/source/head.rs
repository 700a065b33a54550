//! The first bytes of an input, which reveal its compression, encoding, format and columns.

use std::ops::Deref;
use std::sync::Arc;

/// The first bytes of an input. Clones share the bytes.
#[derive(Clone, Default)]
pub(crate) struct Head {
    bytes: Arc<Vec<u8>>,
    /// Requested bytes. An input with fewer bytes ends after `bytes`.
    limit: usize,
}

impl Head {
    /// Creates the result of a read of up to `limit` bytes.
    pub(crate) fn new(bytes: Vec<u8>, limit: usize) -> Self {
        Self { bytes: Arc::new(bytes), limit }
    }

    /// Returns the first bytes up to `limit`, if the read went as far.
    pub(crate) fn up_to(&self, limit: usize) -> Option<Self> {
        let is_whole = self.bytes.len() < self.limit;
        (limit <= self.limit || is_whole).then(|| Self { limit, ..self.clone() })
    }
}

impl Deref for Head {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.bytes.len().min(self.limit)]
    }
}

impl AsRef<[u8]> for Head {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_serves_those_that_go_no_further() {
        let up_to = |bytes: &[u8], asked: usize, limit: usize| {
            Head::new(bytes.to_vec(), asked).up_to(limit).map(|head| head.to_vec())
        };
        assert_eq!(up_to(b"abcd", 4, 2).as_deref(), Some(&b"ab"[..]));
        assert_eq!(up_to(b"abcd", 4, 4).as_deref(), Some(&b"abcd"[..]));
        assert_eq!(up_to(b"abcd", 4, 5), None);
        // The input ends.
        assert_eq!(up_to(b"abc", 4, 100).as_deref(), Some(&b"abc"[..]));
        assert!(Head::default().up_to(1).is_none());
    }
}
