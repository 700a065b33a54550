//! Conversion of fixed-width values to ordered codes and back.
//!
//! With `x` the value as an unsigned number: integers are `x ^ flip`, floats `x ^ (sign(x) | top) ^
//! flip`, then big-endian. `flip` holds the sign bit of signed types and all ones when descending.

use arrow_buffer::{ArrowNativeType, i256};

use crate::order::code::Kind;

/// An unsigned number of one of the widths of values.
pub(crate) trait Word: Copy + PartialEq {
    const BYTES: usize;
    /// The number as a value of Arrow.
    type Native: ArrowNativeType;
    fn native(self) -> Self::Native;
    fn read_native(bytes: &[u8]) -> Self;
    fn write_native(self, bytes: &mut [u8]);
    fn read_big(bytes: &[u8]) -> Self;
    fn write_big(self, bytes: &mut [u8]);
    fn code(self, kind: Kind, descending: bool) -> Self;
    fn value(self, kind: Kind, descending: bool) -> Self;
    /// Returns the number with all bits set if `ones`, else 0.
    fn filled(ones: bool) -> Self;
    /// Returns the number if `keep`, else 0.
    fn and_if(self, keep: bool) -> Self;
    /// Adds `count`; wraps around.
    fn plus(self, count: u8) -> Self;
    /// Subtracts `count`; wraps around.
    fn less(self, count: u8) -> Self;
    /// Complements all bits if `flip`.
    fn flipped(self, flip: bool) -> Self;
    /// Returns 64 bits of the number, the most significant being part 0; all bits of a narrower
    /// number.
    fn part(self, index: usize) -> u64;
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
            type Native = Self;

            #[inline(always)]
            fn native(self) -> Self {
                self
            }

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
            fn and_if(self, keep: bool) -> Self {
                self & (0 as Self).wrapping_sub(Self::from(keep))
            }

            #[inline(always)]
            fn plus(self, count: u8) -> Self {
                self.wrapping_add(Self::from(count))
            }

            #[inline(always)]
            fn less(self, count: u8) -> Self {
                self.wrapping_sub(Self::from(count))
            }

            #[inline(always)]
            fn flipped(self, flip: bool) -> Self {
                self ^ Self::filled(flip)
            }

            #[inline(always)]
            fn part(self, index: usize) -> u64 {
                const PARTS: u32 = <$unsigned>::BITS.div_ceil(64);
                (self as u128 >> (64 * (PARTS - 1 - index as u32))) as u64
            }
        }
    )*};
}
word!(u8, i8; u16, i16; u32, i32; u64, i64; u128, i128);

/// 256 bits, the most significant half first. Only decimals are this wide.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Wide(u128, u128);

impl Word for Wide {
    const BYTES: usize = 32;
    type Native = i256;

    #[inline(always)]
    fn native(self) -> i256 {
        i256::from_parts(self.1, self.0 as i128)
    }

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

    fn filled(ones: bool) -> Self {
        Self(u128::filled(ones), u128::filled(ones))
    }

    fn and_if(self, keep: bool) -> Self {
        Self(self.0.and_if(keep), self.1.and_if(keep))
    }

    fn plus(self, count: u8) -> Self {
        let (low, carries) = self.1.overflowing_add(count.into());
        Self(self.0.wrapping_add(carries.into()), low)
    }

    fn less(self, count: u8) -> Self {
        let (low, carries) = self.1.overflowing_sub(count.into());
        Self(self.0.wrapping_sub(carries.into()), low)
    }

    fn flipped(self, flip: bool) -> Self {
        Self(self.0.flipped(flip), self.1.flipped(flip))
    }

    fn part(self, index: usize) -> u64 {
        if index < 2 { self.0.part(index) } else { self.1.part(index - 2) }
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
