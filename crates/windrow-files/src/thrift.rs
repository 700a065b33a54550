//! Thrift's compact protocol, as far as Parquet's footers and page headers need it
//! (thrift/doc/specs/thrift-compact-protocol.md). Avro has the same numbers.
//!
//! ```text
//! struct = (field: 4 bits since the last | 4 bits type, value)* 0        numbers are zigzag varints
//! ```

use std::io::{self, Read};

/// Maximum nesting of structs. Parquet has four levels.
const MOST_STRUCTS: usize = 16;

/// The types of the compact protocol.
pub(crate) mod kind {
    pub(crate) const TRUE: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const BYTE: u8 = 3;
    pub(crate) const I16: u8 = 4;
    pub(crate) const I32: u8 = 5;
    pub(crate) const I64: u8 = 6;
    pub(crate) const DOUBLE: u8 = 7;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const SET: u8 = 10;
    pub(crate) const MAP: u8 = 11;
    pub(crate) const STRUCT: u8 = 12;
}

/// A reader of values from bytes.
pub(crate) struct Thrift<R>(pub(crate) R);

impl<R: Read> Thrift<R> {
    /// Reads the head of a struct's next field, after the field `last`. Returns number and type.
    pub(crate) fn field(&mut self, last: &mut i64) -> io::Result<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        *last = match head >> 4 {
            0 => self.integer()?,
            more => last.saturating_add(i64::from(more)),
        };
        Ok(Some((*last, head & 0xf)))
    }

    /// Reads a struct. `each` gets the number and the type of each field, and reads its value.
    pub(crate) fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i64, u8) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut last = 0;
        while let Some((field, kind)) = self.field(&mut last)? {
            each(self, field, kind)?;
        }
        Ok(())
    }

    /// Reads a list's length, and the type of its elements.
    pub(crate) fn list(&mut self) -> io::Result<(u64, u8)> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.number()?,
            length => u64::from(length),
        };
        Ok((length, head & 0xf))
    }

    /// Skips a value of the type `kind`, nested in `within` others.
    pub(crate) fn skip(&mut self, kind: u8, within: usize) -> io::Result<()> {
        if within > MOST_STRUCTS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match kind {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.pass(1),
            kind::I16..=kind::I64 => self.number().map(drop),
            kind::DOUBLE => self.pass(8),
            kind::BINARY => {
                let length = self.number()?;
                self.pass(length)
            }
            kind::LIST | kind::SET => {
                let (length, of) = self.list()?;
                (0..length).try_for_each(|_| match of {
                    // In a list, booleans have a byte each.
                    kind::TRUE | kind::FALSE => self.pass(1),
                    of => self.skip(of, within + 1),
                })
            }
            kind::STRUCT => self.fields(|thrift, _, kind| thrift.skip(kind, within + 1)),
            // The format has no maps.
            kind::MAP.. | 0 => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.0.by_ref().take(bytes), &mut io::sink())?;
        if passed < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Reads a number in zigzag encoding.
    pub(crate) fn integer(&mut self) -> io::Result<i64> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Reads a number of seven bits in each byte.
    pub(crate) fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for place in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << place;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.0.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

/// Appends a number in zigzag encoding.
pub(crate) fn put_integer(value: i64, bytes: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}
