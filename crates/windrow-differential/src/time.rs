//! Times of a dataflow as the engine's times.

use differential_dataflow::lattice::Lattice;
use timely::progress::Timestamp;
use windrow::Time;
use windrow::arrow_schema::DataType;

/// A timestamp that can stand in rows: at most 32 bytes, in an order that goes on with that of the timestamps.
pub trait TimeCode: Timestamp + Lattice {
    /// The same as a time of the engine.
    type Code: Time;

    /// The time as the engine has it.
    fn code(&self) -> Self::Code;

    /// The timestamp of a time of the engine.
    fn of_code(code: Self::Code) -> Self;
}

impl TimeCode for u64 {
    type Code = Self;

    #[inline(always)]
    fn code(&self) -> Self {
        *self
    }

    #[inline(always)]
    fn of_code(code: Self) -> Self {
        code
    }
}

/// Bytes of a time in a row.
pub(crate) const fn width<T: TimeCode>() -> usize {
    8
}

/// The type of the column of times.
pub(crate) fn data_type<T: TimeCode>() -> DataType {
    DataType::UInt64
}

/// Adds the bytes of a time.
#[inline(always)]
pub(crate) fn put<T: TimeCode>(time: &T, out: &mut Vec<u8>) {
    out.extend_from_slice(&time.code().code().to_be_bytes());
}

/// The time of so many bytes.
#[inline(always)]
pub(crate) fn take<T: TimeCode>(bytes: &[u8]) -> T {
    T::of_code(T::Code::from_code(u64::from_be_bytes(bytes.try_into().expect("a time is whole"))))
}
