//! The merge of two inputs, a block at a time.
//!
//! ```text
//! at = length of the common prefix of all rows, which is not compared
//! while both inputs have rows and the output has capacity for the next row {
//!     rows = number of rows that fit in any case, at most BLOCK
//!     inspect the first SAMPLE rows, choose a loop, run it          (loops)
//! }
//! ```
//!
//! Rows without their tails are prefix-free: two different rows differ within both.

mod loops;
mod pair;

use super::Wrapped;
use super::bytes::differ;
use super::input::{Sorted, Strided, Target, Varying, common};
use super::rows::{Fixed, Rows, Vary, by_stride};
use loops::{LONG, led, own, streamed, summed};
use pair::{Heads, Lead, Pair};

/// Output rows of one loop: few enough to notice when a pattern ends, and enough to make the sample
/// cheap.
const BLOCK: usize = 1024;
/// Fewest rows that must fit for a loop to run; otherwise rows are merged one by one.
const LEAST: usize = 16;
/// Rows sampled to choose a loop.
const SAMPLE: usize = 16;
/// A sample with at most this many switches between the inputs has runs.
const RUNS: usize = 2;
/// A sample with more equal pairs than this has many, which are unpredictable.
const EQUALS: usize = 1;

/// The result of a merge call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Consumed rows.
    pub a: usize,
    pub b: usize,
    /// Written rows.
    pub out: usize,
}

/// Merges `a` and `b` into `out` until an input is consumed or `out` is full. With `wrapped`, equal
/// rows become one row with the sum of their diffs, or no row if the sum is zero: a call consumes
/// both or neither. Without `wrapped`, rows of `a` precede equal rows of `b`.
///
/// # Panics
/// If the inputs differ in stride or body, if a body has less than 8 bytes, or, with `wrapped`, if
/// the tail is not a diff of 8 bytes.
pub fn merge(a: Strided<'_>, b: Strided<'_>, out: &mut [u8], wrapped: Wrapped<'_>) -> Merged {
    assert!(a.stride == b.stride && a.body == b.body && a.body >= 8 && a.body <= a.stride);
    let mut none = Vec::new();
    let mut out = Target { bytes: out, used: 0, ends: &mut none, spare: 0 };
    strided(a, b, &mut out, wrapped)
}

/// Merges rows of varying lengths as [`merge`] does, after the rows in `out`.
pub fn merge_varying(
    a: Varying<'_>,
    b: Varying<'_>,
    out: &mut Target<'_>,
    wrapped: Wrapped<'_>,
) -> Merged {
    blocks::<_, _, u64>(Vary, a, b, out, wrapped)
}

fn strided(a: Strided<'_>, b: Strided<'_>, out: &mut Target<'_>, wrapped: Wrapped<'_>) -> Merged {
    if a.body < 16 {
        return blocks::<_, _, u64>(Fixed::<0>(a.stride), a, b, out, wrapped);
    }
    by_stride!(rows = (a.stride, a.stride - a.body) => {
        blocks::<_, _, u128>(rows, a, b, out, wrapped)
    })
}

/// Merges rows, with leads of type `K` where eight bytes do not decide.
fn blocks<'a, R: Rows, V: Sorted<'a>, K: Lead>(
    rows: R,
    a: V,
    b: V,
    out: &mut Target<'_>,
    mut wrapped: Wrapped<'_>,
) -> Merged {
    assert!(a.tail() == b.tail() && (wrapped.is_none() || a.tail() == 8), "rows of one layout");
    let mut done = Merged::default();
    if a.len() == 0 || b.len() == 0 {
        return done;
    }
    let (lengths, others) = (a.lengths(), b.lengths());
    let (shortest, longest) = (lengths.0.min(others.0), lengths.1.max(others.1));
    let body = shortest.saturating_sub(a.tail());
    if body < size_of::<K>() {
        return one_by_one((a, b), done, usize::MAX, out, &mut wrapped);
    }
    let (least, greatest) = {
        let ((a_first, a_last), (b_first, b_last)) = (a.ends(), b.ends());
        (a_first.min(b_first), a_last.max(b_last))
    };
    let at = common(least, greatest).min(body);
    let (at, wide_at) = (at.min(body - 8), at.min(body - size_of::<K>()));
    let stretches = [a.stretch(), b.stretch()];
    let pair = Pair {
        rows,
        bytes: stretches.map(|stretch| stretch.bytes),
        ends: stretches.map(|stretch| stretch.last.wrapping_add(rows.step())),
        base: out.bytes.as_ptr(),
        at,
        wide_at,
        tail: a.tail(),
    };
    let begun = |done: &Merged, at: &[*const u8; 2]| {
        (at[0].wrapping_add(done.a * rows.step()), at[1].wrapping_add(done.b * rows.step()))
    };
    let firsts = stretches.map(|stretch| stretch.first);
    while done.a < a.len() && done.b < b.len() {
        let room = out.room(longest);
        let most = room.min(a.len() - done.a + b.len() - done.b);
        // A rest of less than a block joins the last block.
        let count = if R::VARY || most >= 2 * BLOCK { most.min(BLOCK) } else { most };
        if R::VARY && room < LEAST {
            let before = done;
            done = one_by_one((a, b), done, LEAST, out, &mut wrapped);
            if before == done {
                break;
            }
            continue;
        }
        if count == 0 {
            break;
        }
        let written = out.ends.len();
        if R::VARY {
            out.ends.reserve(count);
        }
        let (at_a, at_b) = begun(&done, &firsts);
        // SAFETY: `room` covers `count` rows after `used`, and their ends are reserved. `out` is
        // mutable, so it overlaps no input. All cursors belong to rows, as `lengths` asserted.
        // Loops write the ends that `set_len` adds.
        unsafe {
            let to = out.bytes.as_mut_ptr().add(out.used);
            let heads = Heads { a: at_a, b: at_b, to, end: out.ends.as_mut_ptr().add(written) };
            let choice = choose::<R, K>(&pair, heads, count, wrapped.is_some());
            let end = run::<R, K>(choice, pair, heads, count, &mut wrapped);
            done.a += (end.a.addr() - heads.a.addr()) / rows.step();
            done.b += (end.b.addr() - heads.b.addr()) / rows.step();
            out.used = end.to.addr() - out.bytes.as_ptr().addr();
            if R::VARY {
                let more = end.end.offset_from(heads.end) as usize;
                out.ends.set_len(written + more);
                done.out += more;
            } else {
                done.out += (end.to.addr() - heads.to.addr()) / rows.step();
            }
        }
    }
    done
}

/// The loop for a block, with leads of eight bytes (false) or whole leads (true); or with sums, by
/// whole bodies (false) or by their ends (true).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Led(bool),
    Summed(bool),
    Streamed(bool),
}

/// Chooses a loop by the first rows.
///
/// # Safety
/// `heads` are cursors of the pair.
#[inline(always)]
unsafe fn choose<R: Rows, K: Lead>(
    pair: &Pair<R>,
    mut heads: Heads,
    count: usize,
    sums: bool,
) -> Choice {
    let (mut switches, mut words, mut equals) = (0, 0, 0);
    let mut ends = !R::VARY && pair.rows.body(pair.rows.step(), pair.tail) >= LONG;
    let (mut before, mut looked) = (false, 0);
    let step = pair.rows.step();
    while looked < SAMPLE.min(count) && pair.steps(heads, 0) > 0 {
        // SAFETY: both inputs have a row left, so both heads are rows. If ends may decide, rows have
        // one length, with at least 32 bytes before the last word of the body.
        unsafe {
            let (p, q) = (pair.row::<0>(heads.a), pair.row::<1>(heads.b));
            let (take_b, equal) = pair.compare(q, p);
            equals += usize::from(equal);
            if ends && K::of(pair, p.0) == K::of(pair, q.0) {
                let between = pair.rows.body(p.1, pair.tail) - 8;
                ends = !differ(p.0, q.0, between);
            }
            words += usize::from(u64::of(pair, p.0) == u64::of(pair, q.0));
            switches += usize::from(looked > 0 && take_b != before);
            (before, looked) = (take_b, looked + 1);
            let (a_step, b_step) = if take_b { (0, step) } else { (step, 0) };
            (heads.a, heads.b) = (heads.a.add(a_step), heads.b.add(b_step));
        }
    }
    if sums && equals > EQUALS {
        Choice::Summed(ends)
    } else if switches <= RUNS || switches + 2 >= looked {
        Choice::Streamed(words > 0)
    } else {
        Choice::Led(words > 0)
    }
}

/// Runs a loop.
///
/// # Safety
/// The conditions of the chosen loop hold: rows of [`Choice::Summed`] end in a diff, and
/// have long bodies if their ends decide.
unsafe fn run<R: Rows, K: Lead>(
    choice: Choice,
    pair: Pair<R>,
    heads: Heads,
    count: usize,
    wrapped: &mut Wrapped<'_>,
) -> Heads {
    // SAFETY: the caller keeps the conditions of the chosen loop.
    unsafe {
        match choice {
            Choice::Summed(false) => own(|| summed::<R, K, false>(pair, heads, count, wrapped)),
            Choice::Summed(true) => own(|| summed::<R, K, true>(pair, heads, count, wrapped)),
            Choice::Led(false) => own(|| led::<R, u64>(pair, heads, count, wrapped)),
            Choice::Led(true) => own(|| led::<R, K>(pair, heads, count, wrapped)),
            Choice::Streamed(false) => own(|| streamed::<R, u64>(pair, heads, count, wrapped)),
            Choice::Streamed(true) => own(|| streamed::<R, K>(pair, heads, count, wrapped)),
        }
    }
}

/// Merges at most `most` rows one by one, from `done` on: rows shorter than a word, and rows that
/// barely fit.
fn one_by_one<'a, V: Sorted<'a>>(
    (a, b): (V, V),
    mut done: Merged,
    most: usize,
    out: &mut Target<'_>,
    wrapped: &mut Wrapped<'_>,
) -> Merged {
    for _ in 0..most {
        if done.a == a.len() || done.b == b.len() {
            break;
        }
        let (left, right) = (a.body(done.a), b.body(done.b));
        let equal = wrapped.is_some() && left == right;
        let take_b = right < left;
        let row = if take_b { b.row(done.b) } else { a.row(done.a) };
        if out.room(row.len()) == 0 {
            break;
        }
        done.a += usize::from(!take_b);
        done.b += usize::from(take_b || equal);
        let used = out.used + row.len();
        out.bytes[out.used..used].copy_from_slice(row);
        if let (true, Some(wrapped)) = (equal, &mut *wrapped) {
            let diff =
                |row: &[u8]| i64::from_le_bytes(row.last_chunk().copied().unwrap_or_default());
            let other = diff(b.row(done.b - 1));
            let (sum, overflow) = diff(row).overflowing_add(other);
            if overflow {
                wrapped(left, if other > 0 { 1 } else { -1 });
            }
            if sum == 0 {
                continue;
            }
            out.bytes[used - 8..used].copy_from_slice(&sum.to_le_bytes());
        }
        (out.used, done.out) = (used, done.out + 1);
        out.ends.push(used as u32);
    }
    done
}

#[cfg(test)]
mod tests;
