//! The header of a page, strictly as the `parquet` crate writes it, and the same with a checksum.

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
        let mut rest = Thrift(bytes);
        let kind = rest.next_i32()?;
        let _size = rest.next_i32()?;
        let body_bytes = rest.next_i32()?;
        let at = bytes.len() - rest.0.len();
        let crc =
            if rest.0.first() == Some(&Thrift::NEXT_I32) { Some(rest.next_i32()?) } else { None };
        // Fields 5 to 8 are for the types 0 to 3.
        let field = u8::try_from(kind).ok().filter(|kind| *kind <= 3)? + 5;
        let last = if crc.is_some() { 4 } else { 3 };
        let is_expected = rest.byte()? == ((field - last) << 4 | Thrift::STRUCT);
        rest.skip_struct(2)?;
        let is_end = rest.byte()? == Thrift::STOP && rest.0.is_empty();
        (is_expected && is_end).then_some(Self { bytes, kind, body_bytes, crc, at })
    }

    /// The same header with a checksum, if it has none.
    pub(super) fn with_crc(&self, crc: i32) -> Vec<u8> {
        let (before, after) = self.bytes.split_at_checked(self.at).unwrap_or((self.bytes, &[]));
        let mut longer = Vec::with_capacity(self.bytes.len() + 6);
        longer.extend_from_slice(before);
        longer.push(Thrift::NEXT_I32);
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

/// What is left to read of a struct in Thrift's compact protocol.
struct Thrift<'a>(&'a [u8]);

impl Thrift<'_> {
    const STOP: u8 = 0;
    const STRUCT: u8 = 12;
    /// A field of the number after that of the last one, and an i32.
    const NEXT_I32: u8 = 1 << 4 | 5;

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn next_i32(&mut self) -> Option<i32> {
        if self.byte()? != Self::NEXT_I32 {
            return None;
        }
        let zigzag = u32::try_from(self.varint()?).ok()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// Skips the fields of a struct, and of those within, `depth` deep.
    fn skip_struct(&mut self, depth: u8) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        loop {
            let field = self.byte()?;
            if field == Self::STOP {
                return Some(());
            }
            let is_numbered_by_difference = field >> 4 != 0;
            match field & 0xF {
                _ if !is_numbered_by_difference => return None,
                // True, false.
                1 | 2 => {}
                // An i32, an i64.
                5 | 6 => drop(self.varint()?),
                // Binary.
                8 => {
                    let length = usize::try_from(self.varint()?).ok()?;
                    self.0 = self.0.get(length..)?;
                }
                Self::STRUCT => self.skip_struct(depth)?,
                _ => return None,
            }
        }
    }
}
