//! Fixed-width values to ordered codes and back.
//!
//! With `x` the value as an unsigned number: integers are `x ^ flip`, floats `x ^ (sign(x) | top) ^
//! flip`, then big-endian. `flip` holds the sign bit of signed types and all ones when descending.

use crate::order::code::Kind;

/// An unsigned number of one of the widths that values have.
pub(crate) trait Word: Copy {
    const BYTES: usize;
    fn read_native(bytes: &[u8]) -> Self;
    fn write_native(self, bytes: &mut [u8]);
    fn read_big(bytes: &[u8]) -> Self;
    fn write_big(self, bytes: &mut [u8]);
    fn code(self, kind: Kind, descending: bool) -> Self;
    fn value(self, kind: Kind, descending: bool) -> Self;
}

macro_rules! word {
    ($($unsigned:ty, $signed:ty);*) => {$(
        impl Word for $unsigned {
            const BYTES: usize = size_of::<Self>();

            #[inline(always)]
            fn read_native(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("width of the type"))
            }

            #[inline(always)]
            fn write_native(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }

            #[inline(always)]
            fn read_big(bytes: &[u8]) -> Self {
                Self::from_be_bytes(bytes.try_into().expect("width of the type"))
            }

            #[inline(always)]
            fn write_big(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_be_bytes());
            }

            #[inline(always)]
            fn code(self, kind: Kind, descending: bool) -> Self {
                const TOP: $unsigned = 1 << (<$unsigned>::BITS - 1);
                let code = match kind {
                    Kind::Unsigned => self,
                    Kind::Signed => self ^ TOP,
                    Kind::Float => {
                        self ^ ((self as $signed >> (<$unsigned>::BITS - 1)) as $unsigned | TOP)
                    }
                };
                if descending { !code } else { code }
            }

            #[inline(always)]
            fn value(self, kind: Kind, descending: bool) -> Self {
                const TOP: $unsigned = 1 << (<$unsigned>::BITS - 1);
                let code = if descending { !self } else { self };
                match kind {
                    Kind::Unsigned => code,
                    Kind::Signed => code ^ TOP,
                    Kind::Float => {
                        code ^ ((!code as $signed >> (<$unsigned>::BITS - 1)) as $unsigned | TOP)
                    }
                }
            }
        }
    )*};
}
word!(u8, i8; u16, i16; u32, i32; u64, i64; u128, i128);

/// 256 bits, the most significant half first. Only decimals are this wide.
#[derive(Clone, Copy)]
pub(crate) struct Wide(u128, u128);

impl Word for Wide {
    const BYTES: usize = 32;

    fn read_native(bytes: &[u8]) -> Self {
        // Arrow stores the less significant half first on little-endian machines, the only ones
        // whose 256-bit layout it defines.
        Self(u128::read_native(&bytes[16..]), u128::read_native(&bytes[..16]))
    }

    fn write_native(self, bytes: &mut [u8]) {
        self.0.write_native(&mut bytes[16..]);
        self.1.write_native(&mut bytes[..16]);
    }

    fn read_big(bytes: &[u8]) -> Self {
        Self(u128::read_big(&bytes[..16]), u128::read_big(&bytes[16..]))
    }

    fn write_big(self, bytes: &mut [u8]) {
        self.0.write_big(&mut bytes[..16]);
        self.1.write_big(&mut bytes[16..]);
    }

    fn code(self, kind: Kind, descending: bool) -> Self {
        Self(self.0.code(kind, descending), self.1.code(Kind::Unsigned, descending))
    }

    fn value(self, kind: Kind, descending: bool) -> Self {
        Self(self.0.value(kind, descending), self.1.value(Kind::Unsigned, descending))
    }
}

/// Runs `$body` with `$word` the number type of `$width` bytes.
macro_rules! with_word {
    ($width:expr, $word:ident => $body:expr) => {
        match $width {
            1 => {
                type $word = u8;
                $body
            }
            2 => {
                type $word = u16;
                $body
            }
            4 => {
                type $word = u32;
                $body
            }
            8 => {
                type $word = u64;
                $body
            }
            16 => {
                type $word = u128;
                $body
            }
            _ => {
                debug_assert_eq!($width, 32);
                type $word = $crate::rows::fixed::Wide;
                $body
            }
        }
    };
}
pub(crate) use with_word;
