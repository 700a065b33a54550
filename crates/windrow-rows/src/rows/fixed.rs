//! Conversion of fixed-width values to ordered codes and back.
//!
//! With `x` the value as an unsigned number: integers are `x ^ flip`, floats `x ^ (sign(x) | top) ^
//! flip`, then big-endian. `flip` holds the sign bit of signed types and all ones when descending.

use std::ops::{BitAnd, BitXor};

use arrow_buffer::{ArrowNativeType, i256};

use crate::order::code::Kind;

/// An unsigned number of one of the widths of values.
pub(crate) trait Word:
    ArrowNativeType + BitAnd<Output = Self> + BitXor<Output = Self>
{
    const BYTES: usize;
    fn read_native(bytes: &[u8]) -> Self;
    fn write_native(self, bytes: &mut [u8]);
    fn read_big(bytes: &[u8]) -> Self;
    fn write_big(self, bytes: &mut [u8]);
    fn code(self, kind: Kind, descending: bool) -> Self;
    fn value(self, kind: Kind, descending: bool) -> Self;
    /// Returns the number with all bits set if `ones`, else 0.
    fn filled(ones: bool) -> Self;
    /// Returns the number if `keep`, else 0.
    #[inline(always)]
    fn and_if(self, keep: bool) -> Self {
        self & Self::filled(keep)
    }
    /// Adds `count`; wraps around.
    fn plus(self, count: u8) -> Self;
    /// Subtracts `count`; wraps around.
    fn less(self, count: u8) -> Self;
    /// Complements all bits if `flip`.
    #[inline(always)]
    fn flipped(self, flip: bool) -> Self {
        self ^ Self::filled(flip)
    }
}

/// Swaps the parts of an interval, which Arrow holds least significant first.
fn swap_day_time(value: u64) -> u64 {
    value.rotate_left(32)
}

/// Moves months, days and nanoseconds, which Arrow holds in this order, to most significant first;
/// or back.
fn swap_month_day_nano(value: u128, back: bool) -> u128 {
    let part = |shift: u32, bits: u32| value >> shift & ((1 << bits) - 1);
    if back {
        part(96, 32) | part(64, 32) << 32 | part(0, 64) << 64
    } else {
        part(0, 32) << 96 | part(32, 32) << 64 | part(64, 64)
    }
}

/// Sign bits of the parts.
const DAY_TIME: u64 = 1 << 63 | 1 << 31;
const MONTH_DAY_NANO: u128 = 1 << 127 | 1 << 95 | 1 << 63;

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
                    // Called only for the widths of these types: the casts change nothing.
                    Kind::DayTime => (swap_day_time(self as u64) ^ DAY_TIME) as Self,
                    Kind::MonthDayNano => {
                        (swap_month_day_nano(self as u128, false) ^ MONTH_DAY_NANO) as Self
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
                    Kind::DayTime => swap_day_time(code as u64 ^ DAY_TIME) as Self,
                    Kind::MonthDayNano => {
                        swap_month_day_nano(code as u128 ^ MONTH_DAY_NANO, true) as Self
                    }
                }
            }

            #[inline(always)]
            fn filled(ones: bool) -> Self {
                if ones { Self::MAX } else { 0 }
            }

            #[inline(always)]
            fn plus(self, count: u8) -> Self {
                self.wrapping_add(Self::from(count))
            }

            #[inline(always)]
            fn less(self, count: u8) -> Self {
                self.wrapping_sub(Self::from(count))
            }
        }
    )*};
}
word!(u8, i8; u16, i16; u32, i32; u64, i64; u128, i128);

/// Only decimals are this wide.
impl Word for i256 {
    const BYTES: usize = 32;

    fn read_native(bytes: &[u8]) -> Self {
        // Arrow stores the less significant half first on little-endian machines, the only ones
        // whose 256-bit layout it defines.
        Self::from_le_bytes(bytes.try_into().expect("width of the type"))
    }

    fn write_native(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.to_le_bytes());
    }

    fn read_big(bytes: &[u8]) -> Self {
        Self::from_be_bytes(bytes.try_into().expect("width of the type"))
    }

    fn write_big(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.to_be_bytes());
    }

    fn code(self, kind: Kind, descending: bool) -> Self {
        let top = if kind == Kind::Signed { Self::MIN } else { Self::ZERO };
        (self ^ top).flipped(descending)
    }

    fn value(self, kind: Kind, descending: bool) -> Self {
        self.code(kind, descending)
    }

    fn filled(ones: bool) -> Self {
        if ones { Self::MINUS_ONE } else { Self::ZERO }
    }

    fn plus(self, count: u8) -> Self {
        self.wrapping_add(Self::from_i128(count.into()))
    }

    fn less(self, count: u8) -> Self {
        self.wrapping_sub(Self::from_i128(count.into()))
    }
}

/// Runs `$body` with `$word` the number type of `$width` bytes.
macro_rules! with_word {
    ($width:expr, $word:ident => $body:expr) => {{
        macro_rules! of {
            ($of:ty) => {{
                type $word = $of;
                $body
            }};
        }
        match $width {
            1 => of!(u8),
            2 => of!(u16),
            4 => of!(u32),
            8 => of!(u64),
            16 => of!(u128),
            _ => {
                debug_assert_eq!($width, 32);
                of!(arrow_buffer::i256)
            }
        }
    }};
}
pub(crate) use with_word;

/// Runs `$body` with `$constant` as the kind: compiles one loop for each kind, without a test
/// inside.
macro_rules! with_kind {
    ($kind:expr, $constant:ident => $body:expr) => {{
        use $crate::order::code::Kind;
        macro_rules! of {
            ($of:expr) => {{
                const $constant: Kind = $of;
                $body
            }};
        }
        match $kind {
            Kind::Float => of!(Kind::Float),
            Kind::DayTime => of!(Kind::DayTime),
            Kind::MonthDayNano => of!(Kind::MonthDayNano),
            Kind::Signed => of!(Kind::Signed),
            Kind::Unsigned => of!(Kind::Unsigned),
        }
    }};
}
pub(super) use with_kind;
