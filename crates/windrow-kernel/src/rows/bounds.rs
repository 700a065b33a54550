//! The least and the greatest code of a column of numbers.

use super::pack::{coded, prefetch_ahead};
use crate::cpu::compiled_for;

/// Numbers read between two prefetches.
const BLOCK: usize = 64;

compiled_for! {
    ["avx512f" "avx512dq" "avx512vl"]
    /// Returns the least and the greatest code of `values` without nulls:
    /// `v ^ (float if v is negative) ^ flip`, see [`super::Code`]. Returns the greatest number and
    /// 0 if there are no values.
    pub fn bounds(values: &[[u8; 8]], flip: u64, float: u64) -> (u64, u64) = bounds_of
}

#[inline(always)]
fn bounds_of(values: &[[u8; 8]], flip: u64, float: u64) -> (u64, u64) {
    let mut bounds = (u64::MAX, 0);
    for values in values.chunks(BLOCK) {
        prefetch_ahead(values);
        for value in values {
            let code = coded(*value, flip, float);
            bounds = (code.min(bounds.0), code.max(bounds.1));
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_those_of_all_codes(values: Vec<[u8; 8]>, flip: u64, shift in 0u32..64, float: bool) {
            let float = if float { u64::MAX >> 1 } else { 0 };
            let small: Vec<[u8; 8]> =
                values.iter().map(|v| (u64::from_ne_bytes(*v) >> shift).to_ne_bytes()).collect();
            for values in [values, small] {
                let codes = values.iter().map(|value| {
                    let value = u64::from_ne_bytes(*value);
                    if value >> 63 == 1 { value ^ float ^ flip } else { value ^ flip }
                });
                let expected = (codes.clone().min().unwrap_or(u64::MAX), codes.max().unwrap_or(0));
                prop_assert_eq!(bounds(&values, flip, float), expected);
            }
        }
    }
}
