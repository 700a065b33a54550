//! The least and the greatest code of a column of numbers.

/// Of `values`, as [`super::Code`] has them without nulls: `v ^ (float if v is negative) ^ flip`. The
/// greatest number and 0 if there are none.
pub(crate) fn bounds(values: &[[u8; 8]], flip: u64, float: u64) -> (u64, u64) {
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected.
        let (least, most, done) = unsafe { super::avx512::bounds::bounds(values, flip, float) };
        let (rest_least, rest_most) = portable(&values[done..], flip, float);
        return (least.min(rest_least), most.max(rest_most));
    }
    portable(values, flip, float)
}

/// The portable twin, and the last few values.
fn portable(values: &[[u8; 8]], flip: u64, float: u64) -> (u64, u64) {
    values.iter().fold((u64::MAX, 0), |(least, most), value| {
        let value = u64::from_ne_bytes(*value);
        let negative = (value as i64 >> 63) as u64;
        let code = value ^ (negative & float) ^ flip;
        (least.min(code), most.max(code))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_find_the_same(values: Vec<[u8; 8]>, flip: u64, shift in 0u32..64, float: bool) {
            let float = if float { u64::MAX >> 1 } else { 0 };
            let small: Vec<[u8; 8]> =
                values.iter().map(|v| (u64::from_ne_bytes(*v) >> shift).to_ne_bytes()).collect();
            for values in [values, small] {
                let twin = portable(&values, flip, float);
                prop_assert_eq!(bounds(&values, flip, float), twin);
            }
        }
    }
}
