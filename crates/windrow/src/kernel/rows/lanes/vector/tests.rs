//! Every operation of the vectors of every level, against numbers one by one.

use super::super::places::{Anywhere, Scattered, Strided};
use super::*;

/// Bytes of the widest register.
const WIDEST: usize = 64;
/// Numbers at the edges of their types, and one whose bytes all differ.
const EDGES: [u128; 9] = [
    0,
    1,
    0x7fff_ffff,
    0x8000_0000,
    u64::MAX as u128 >> 1,
    1 << 63,
    u128::MAX >> 1,
    u128::MAX,
    0x1122_3344_5566_7788_99aa_bbcc_ddee_ff00,
];

type Register = [u8; WIDEST];

/// A register of numbers of `W` bytes: edges, from the one at `first` on.
fn edges<const W: usize>(first: usize) -> Register {
    let mut register = [0; WIDEST];
    for (at, number) in register.chunks_exact_mut(W).enumerate() {
        number.copy_from_slice(&EDGES[(first + at) % EDGES.len()].to_le_bytes()[..W]);
    }
    register
}

fn numbers<const W: usize>(register: &Register, rows: usize) -> Vec<u128> {
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte));
    register.chunks_exact(W).take(rows).map(number).collect()
}

/// All operations on two registers.
struct Each<const W: usize> {
    a: Register,
    b: Register,
    bits: u64,
}

/// What is in registers, and bits of masks, in the order of the operations.
type Found = (usize, Vec<Register>, Vec<u64>);

impl<const W: usize> Kernel for Each<W> {
    type Output = Found;

    unsafe fn run<V: Vector>(self) -> Found {
        // SAFETY: as the trait's; registers have room for the widest.
        unsafe {
            let (a, b) = (V::load::<W>(self.a.as_ptr()), V::load::<W>(self.b.as_ptr()));
            let mask = V::mask::<W>(self.bits);
            let all = [
                a.xor(b),
                a.add::<W>(b),
                a.sub::<W>(b),
                a.turned::<W>(b),
                a.turned::<W>(V::splat::<W>(0)),
                a.ordered::<W>(V::order::<W>(true)),
                a.ordered::<W>(V::order::<W>(false)),
                V::select::<W>(mask, a, b),
                V::splat::<W>(EDGES[8] & (u128::MAX >> (128 - 8 * W))),
            ];
            let stored = all.map(|v| {
                let mut register = [0xaa; WIDEST];
                v.store::<W>(register.as_mut_ptr());
                register
            });
            let other = V::mask::<W>(self.bits >> 1);
            let masks = [a.equal::<W>(b), mask, mask & other, mask | other];
            (V::rows(W), stored.to_vec(), masks.map(|mask| V::bits::<W>(mask)).to_vec())
        }
    }
}

fn operations<const W: usize>() {
    let ones = u128::MAX >> (128 - 8 * W);
    for level in Level::all() {
        for (first, second, bits) in (0..9 * 9).map(|n| (n / 9, n % 9, (n as u64) * 0x2545_f491)) {
            let (a, b) = (edges::<W>(first), edges::<W>(second));
            // SAFETY: the level was detected.
            let (rows, found, masks) = unsafe { level.run(Each::<W> { a, b, bits }) };
            assert_eq!(rows, level.rows(W));
            let (a, b) = (numbers::<W>(&a, rows), numbers::<W>(&b, rows));
            let of = |f: &dyn Fn(usize, u128, u128) -> u128| -> Vec<u128> {
                a.iter().zip(&b).enumerate().map(|(at, (a, b))| f(at, *a, *b) & ones).collect()
            };
            // Numbers of 16 bytes are added by one level only, and there are no floats of them.
            let adds = W < 16 || level == Level::Portable;
            let is_set = |at: usize| bits >> at & 1 == 1;
            let expected = [
                of(&|_, a, b| a ^ b),
                of(&|_, a, b| if adds { a.wrapping_add(b) } else { a }),
                of(&|_, a, b| if adds { a.wrapping_sub(b) } else { a }),
                of(&|_, a, b| if W < 16 && a >> (8 * W - 1) == 1 { a ^ b } else { a }),
                of(&|_, a, _| a),
                of(&|_, a, _| a.swap_bytes() >> (128 - 8 * W)),
                of(&|_, a, _| a),
                of(&|at, a, b| if is_set(at) { a } else { b }),
                of(&|_, _, _| EDGES[8]),
            ];
            for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                let what = format!("operation {at} of {W} bytes, {first} and {second}, {level:?}");
                assert_eq!(numbers::<W>(found, rows), expected, "{what}");
                // A register is stored, and nothing behind it.
                assert!(found[rows * W..].iter().all(|&byte| byte == 0xaa), "{what}");
            }
            let low = u64::MAX >> (64 - rows);
            let equal =
                a.iter().zip(&b).rev().fold(0, |bits, (a, b)| bits << 1 | u64::from(a == b));
            let expected = [equal, bits, bits & bits >> 1, bits | bits >> 1].map(|bits| bits & low);
            assert_eq!(masks, expected, "masks of {W} bytes, {first} and {second}, {level:?}");
        }
    }
}

#[test]
fn operations_are_those_of_numbers() {
    operations::<4>();
    operations::<8>();
    operations::<16>();
}

/// Columns to rows, and back.
struct Turn<'a, const W: usize, const N: usize> {
    columns: [Register; N],
    places: Anywhere<'a>,
    out: &'a mut [u8],
}

impl<const W: usize, const N: usize> Kernel for Turn<'_, W, N> {
    type Output = [Register; N];

    unsafe fn run<V: Vector>(self) -> [Register; N] {
        // SAFETY: as the trait's; there is room for the rows of a register at these places.
        unsafe {
            let columns = self.columns.map(|column| V::load::<W>(column.as_ptr()));
            V::store_rows::<W, N, _>(columns, self.places, self.out.as_mut_ptr());
            V::load_rows::<W, N, _>(self.places, self.out.as_ptr()).map(|column| {
                let mut register = [0; WIDEST];
                column.store::<W>(register.as_mut_ptr());
                register
            })
        }
    }
}

fn turns<const W: usize, const N: usize>(gap: usize) {
    for level in Level::all().into_iter().filter(|level| level.columns(N, W) >= N) {
        let (rows, stride) = (level.rows(W), N * W + gap);
        let columns: [Register; N] = std::array::from_fn(|column| {
            std::array::from_fn(|at| (at + column * WIDEST).wrapping_mul(37) as u8)
        });
        let mut cursors: Vec<usize> = (0..rows).map(|row| row * stride).collect();
        if gap > 0 {
            cursors.reverse();
        }
        let strided = Anywhere::Strided(Strided { first: 3, stride });
        let scattered = Anywhere::Scattered(Scattered { cursors: &cursors, distance: 3 });
        for places in [strided, scattered] {
            let mut expected = vec![0xaa; 3 + rows * stride + 5];
            for (column, row) in (0..N).flat_map(|column| (0..rows).map(move |row| (column, row))) {
                let value = &columns[column][row * W..][..W];
                expected[places.place(row) + column * W..][..W].copy_from_slice(value);
            }
            let mut out = vec![0xaa; expected.len()];
            // SAFETY: the level was detected, and has as many columns; the rows lie within `out`.
            let back = unsafe { level.run(Turn::<W, N> { columns, places, out: &mut out }) };
            assert_eq!(out, expected, "{N} columns of {W} bytes, {level:?}");
            for (back, column) in back.iter().zip(&columns) {
                assert_eq!(back[..rows * W], column[..rows * W], "{N} of {W} bytes, {level:?}");
            }
        }
    }
}

#[test]
fn columns_become_rows_and_nothing_between_them_is_written() {
    // Of one column rows are adjacent.
    turns::<4, 1>(0);
    turns::<8, 1>(0);
    turns::<16, 1>(0);
    for gap in [0, 1, 9] {
        turns::<4, 2>(gap);
        turns::<4, 4>(gap);
        turns::<8, 2>(gap);
        turns::<8, 4>(gap);
        turns::<8, 8>(gap);
        turns::<16, 2>(gap);
        turns::<16, 4>(gap);
    }
}

#[test]
fn as_many_columns_as_there_are_and_no_more() {
    for level in Level::all() {
        for (left, width) in (1..40).flat_map(|left| [(left, 4), (left, 8), (left, 16)]) {
            let count = level.columns(left, width);
            let most = if width == 8 { level.columns(8, 8) } else { 4 };
            assert!(count.is_power_of_two() && count <= left && count <= most);
            assert!(2 * count > left || count == most, "{left} of {width} bytes, {level:?}");
        }
    }
}
