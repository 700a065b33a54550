//! Whether rows stand in order already.
//!
//! ```text
//! row i      | 16 bytes | the rest of the body | diff |       compared as one number, then the rest
//! row i + 1  | 16 bytes | the rest of the body | diff |
//! ```
//!
//! Each row is loaded once; what follows its first 16 bytes is looked at where those are the same. Rows in no
//! order are found out by the first few.

use super::{Strided, Varying};

/// Bytes that are compared as one number.
const HEAD: usize = 16;

/// True if every row sorts before the next one, and, with `diffs`, none has a diff of zero.
///
/// # Panics
/// If a body does not lie within its row, or overlaps the diff.
pub(crate) fn ascends(rows: Strided<'_>, diffs: bool) -> bool {
    let Strided { bytes, stride, body } = rows;
    assert!(body <= stride && (!diffs || body + 8 <= stride), "a body, and a diff behind it");
    // Most rows have this many bytes: known to the compiler, they are not compared by a call.
    match stride {
        32 if body == 24 => up(bytes.as_chunks::<32>().0.iter().map(|row| (&row[..24], &row[..]))),
        _ => up(bytes.chunks_exact(stride).map(|row| (&row[..body], row))),
    }
    .is_some_and(|zeros| !(diffs && zeros))
}

/// As [`ascends`], of rows that vary.
///
/// # Panics
/// If rows do not lie within their bytes, or have no tail.
pub(crate) fn ascends_varying(rows: Varying<'_>, diffs: bool) -> bool {
    assert!(!diffs || rows.tail >= 8, "a diff behind the body");
    let each = rows.starts.windows(2).map(|ends| {
        let row = &rows.bytes[ends[0] as usize..ends[1] as usize];
        (&row[..row.len() - rows.tail], row)
    });
    up(each).is_some_and(|zeros| !(diffs && zeros))
}

/// Nothing if a body does not sort before the next one; else whether the last eight bytes of any row are
/// zeros.
#[inline(always)]
fn up<'a>(mut rows: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Option<bool> {
    let Some((mut before, row)) = rows.next() else { return Some(false) };
    let (mut last, mut zeros) = (head(before), ends_in_zeros(row));
    for (body, row) in rows {
        let next = head(body);
        if last >= next && (last > next || before >= body) {
            return None;
        }
        zeros |= ends_in_zeros(row);
        (before, last) = (body, next);
    }
    Some(zeros)
}

/// The first bytes of a body, as a number that has their order; zeros behind its end.
#[inline(always)]
fn head(body: &[u8]) -> u128 {
    body.first_chunk().map_or_else(|| short_head(body), |head| u128::from_be_bytes(*head))
}

#[cold]
fn short_head(body: &[u8]) -> u128 {
    let mut head = [0; HEAD];
    head[..body.len()].copy_from_slice(body);
    u128::from_be_bytes(head)
}

#[inline(always)]
fn ends_in_zeros(row: &[u8]) -> bool {
    row.last_chunk().is_some_and(|diff| u64::from_ne_bytes(*diff) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a body and a diff, and where they start.
    fn rows<'a>(bodies: impl Iterator<Item = &'a [u8]>, diff: i64) -> (Vec<u8>, Vec<u32>) {
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        for body in bodies {
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(&diff.to_le_bytes());
            starts.push(bytes.len() as u32);
        }
        (bytes, starts)
    }

    #[test]
    fn the_first_byte_that_differs_decides() {
        for (body, differs) in (1..60).flat_map(|body| (0..body).map(move |at| (body, at))) {
            let mut bodies = [vec![7u8; body], vec![7; body], vec![7; body]];
            for (at, row) in bodies.iter_mut().enumerate() {
                row[differs] = [0x10, 0x7f, 0x80][at];
                row[differs + 1..].fill(9 - at as u8);
            }
            for (order, expected) in [([0, 1, 2], true), ([0, 2, 1], false), ([0, 1, 1], false)] {
                for (diff, diffs) in [(1, true), (0, true), (0, false)] {
                    let (bytes, starts) = rows(order.iter().map(|&at| &bodies[at][..]), diff);
                    let expected = expected && (diff != 0 || !diffs);
                    let strided = Strided { bytes: &bytes, stride: body + 8, body };
                    assert_eq!(ascends(strided, diffs), expected, "{body} bytes, {differs}");
                    let varying = Varying { bytes: &bytes, starts: &starts, tail: 8 };
                    assert_eq!(ascends_varying(varying, diffs), expected);
                }
            }
        }
    }

    #[test]
    fn lengths_vary_and_diffs_count_in_every_row() {
        let bodies = [&b"a"[..], b"ab", b"abcdefghijklmnop", b"abcdefghijklmnopq", b"b"];
        let (mut bytes, starts) = rows(bodies.into_iter(), 3);
        fn varying<'a>(bytes: &'a [u8], starts: &'a [u32]) -> Varying<'a> {
            Varying { bytes, starts, tail: 8 }
        }
        assert!(ascends_varying(varying(&bytes, &starts), true));
        assert!(ascends_varying(varying(&bytes, &starts[4..]), true));
        assert!(ascends_varying(varying(&bytes, &starts[5..]), true), "no rows");
        for end in &starts[1..] {
            bytes[*end as usize - 8] = 0;
            assert!(!ascends_varying(varying(&bytes, &starts), true));
            assert!(ascends_varying(varying(&bytes, &starts), false));
            bytes[*end as usize - 8] = 3;
        }
    }
}
