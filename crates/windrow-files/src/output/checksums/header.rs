//! The header of a page, strictly as the `parquet` crate writes it, and the same with a checksum.

use crate::thrift::{Thrift, kind};

/// A page header, of which only what a checksum needs is known:
///
/// ```text
///  1 type, 2 size, 3 size as compressed,  [4 crc,]  the struct of the type, stop
///                                       ^ `at`
/// ```
#[derive(Debug)]
pub(super) struct Header<'a> {
    bytes: &'a [u8],
    pub(super) kind: i32,
    pub(super) body_bytes: i32,
    pub(super) crc: Option<i32>,
    /// Where field 4 is or would be.
    at: usize,
}

impl<'a> Header<'a> {
    pub(super) const DICTIONARY: i32 = 2;

    /// None if it is anything but exactly that.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut thrift = Thrift(bytes);
        let mut last = 0;
        let kind = number(&mut thrift, &mut last)?;
        let _size = number(&mut thrift, &mut last)?;
        let body_bytes = number(&mut thrift, &mut last)?;
        let at = bytes.len() - thrift.0.len();
        let crc = match thrift.0.first() {
            Some(&NEXT_I32) => Some(number(&mut thrift, &mut last)?),
            _ => None,
        };
        // Fields 5 to 8 are for the types 0 to 3, and numbered from the one before.
        let field = u8::try_from(kind).ok().filter(|kind| *kind <= 3)? + 5;
        let head = (field - u8::try_from(last).ok()?) << 4 | kind::STRUCT;
        if thrift.0.first() != Some(&head) {
            return None;
        }
        thrift.field(&mut last).ok()??;
        pass_fields(&mut thrift)?;
        let is_end = thrift.field(&mut last).ok()?.is_none() && thrift.0.is_empty();
        is_end.then_some(Self { bytes, kind, body_bytes, crc, at })
    }

    /// The same header with a checksum, if it has none.
    pub(super) fn with_crc(&self, crc: i32) -> Vec<u8> {
        let (before, after) = self.bytes.split_at_checked(self.at).unwrap_or((self.bytes, &[]));
        let mut longer = Vec::with_capacity(self.bytes.len() + 6);
        longer.extend_from_slice(before);
        longer.push(NEXT_I32);
        let mut zigzag = ((crc << 1) ^ (crc >> 31)).cast_unsigned();
        while zigzag > 0x7F {
            longer.push((zigzag & 0x7F) as u8 | 0x80);
            zigzag >>= 7;
        }
        longer.push(zigzag as u8);
        if let Some((field, after)) = after.split_first() {
            // Fields are numbered from the one before.
            longer.push(field.wrapping_sub(1 << 4));
            longer.extend_from_slice(after);
        }
        longer
    }
}

/// A field of the number after that of the last one, and an i32.
const NEXT_I32: u8 = 1 << 4 | kind::I32;

/// The number in the field that comes next, if it is of this form.
fn number(thrift: &mut Thrift<&[u8]>, last: &mut i64) -> Option<i32> {
    if thrift.0.first() != Some(&NEXT_I32) {
        return None;
    }
    thrift.field(last).ok()??;
    i32::try_from(thrift.integer().ok()?).ok()
}

/// Passes over the fields of a struct, if they are numbered by difference and none is a list.
fn pass_fields(thrift: &mut Thrift<&[u8]>) -> Option<()> {
    let mut last = 0;
    loop {
        let head = *thrift.0.first()?;
        match thrift.field(&mut last).ok()? {
            None => return Some(()),
            Some((_, of)) if head >> 4 > 0 && of != kind::LIST => thrift.skip(of, 0).ok()?,
            Some(_) => return None,
        }
    }
}
