//! Encoding of the header's numbers, texts and options.

use super::corrupt;
use crate::error::Result;

#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Writes a count below 2^32.
    pub(super) fn count(&mut self, count: usize) {
        self.raw(&(count as u32).to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.raw(text.as_bytes());
    }

    pub(super) fn option(&mut self, text: Option<&str>) {
        self.byte(u8::from(text.is_some()));
        text.into_iter().for_each(|text| self.text(text));
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn raw(&mut self, len: usize) -> Result<&'a [u8]> {
        let (head, rest) = self
            .0
            .split_at_checked(len)
            .ok_or_else(|| corrupt(format!("expected {len} more bytes, got {}", self.0.len())))?;
        self.0 = rest;
        Ok(head)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.raw(1).map(|byte| byte[0])
    }

    pub(super) fn flag(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(corrupt(format!("expected 0 or 1, got {other}"))),
        }
    }

    pub(super) fn number(&mut self) -> Result<i32> {
        let bytes = self.raw(4)?;
        Ok(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads a count of items of at least a byte each. Fails if the count exceeds the remaining
    /// bytes.
    pub(super) fn count(&mut self) -> Result<usize> {
        let count = self.number()? as u32 as usize;
        if count > self.0.len() {
            return Err(corrupt(format!("{count} things in {} bytes", self.0.len())));
        }
        Ok(count)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        let len = self.count()?;
        let bytes = self.raw(len)?.to_vec();
        String::from_utf8(bytes).map_err(|error| corrupt(error.to_string()))
    }

    pub(super) fn option(&mut self) -> Result<Option<String>> {
        if self.flag()? { self.text().map(Some) } else { Ok(None) }
    }

    /// Reads the number of texts from a byte, then the texts.
    pub(super) fn texts(&mut self) -> Result<Vec<String>> {
        let count = self.byte()?;
        (0..count).map(|_| self.text()).collect()
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(corrupt("bytes behind the schema")) }
    }
}
