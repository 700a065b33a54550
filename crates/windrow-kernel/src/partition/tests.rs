//! Tests whole orders: every level of the CPU against the portable one, and columns against a
//! stable sort.

use super::Level;
use super::bits::Scratch;
use super::order::{Load, Order, PAD, Plan};
use super::plan::UNCACHED;
use crate::rows::Bits;

const LOADS: [Load; 9] = [
    Load::Bits,
    Load::Fixed(1),
    Load::Fixed(2),
    Load::Fixed(4),
    Load::Fixed(8),
    Load::Fixed(16),
    Load::ManyWide,
    Load::Many,
    Load::ManyTexts,
];

/// Returns all columns of one record batch in the order of `ids`, and the offsets.
fn moved(
    level: Level,
    ids: &[u32],
    partitions: usize,
    load: Load,
    source: &[u8],
) -> (Vec<Vec<u8>>, Vec<usize>) {
    let mut order = Order::new(level);
    let rows = ids.len();
    let mut sorted: Vec<usize> = (0..rows).collect();
    sorted.sort_by_key(|&row| ids[row]);
    let mut out = Vec::new();
    let Plan::Ordered(mut planned) = order.plan(ids, partitions, load) else {
        return (out, order.offsets().to_vec());
    };
    let widths = match load {
        Load::Bits => vec![],
        Load::Fixed(width) => vec![width],
        _ => vec![1, 2, 3, 4, 8, 12, 16, 32],
    };
    for width in widths {
        let mut column = vec![0; rows * width + PAD];
        planned.fixed(width, &source[width..], &mut column);
        column.truncate(rows * width);
        let values = sorted.iter().flat_map(|row| &source[width + row * width..][..width]);
        assert!(column.iter().eq(values), "{level:?} {rows} {partitions} {load:?} {width}");
        out.push(column);
    }
    let many = !load.is_one();
    let bitmaps = if many { 9 } else { 1 };
    let mut scratch = Scratch::default();
    if many {
        // Several bitmaps at once, besides single bitmaps.
        let sources: Vec<Bits<'_>> = (1..8).map(|n| Bits { bytes: source, first: n * 5 }).collect();
        let mut words = vec![vec![0u64; rows.div_ceil(64) + 1]; sources.len()];
        let mut targets: Vec<&mut [u64]> = words.iter_mut().map(Vec::as_mut_slice).collect();
        planned.bits(&sources, &mut targets, &mut scratch);
        let bit = |words: &[u64], row: usize| (words[row / 64] >> (row % 64) & 1) as u8;
        out.extend(words.iter().map(|words| (0..rows).map(|row| bit(words, row)).collect()));
    }
    for start in 0..if matches!(load, Load::Fixed(_)) { 0 } else { bitmaps } {
        let mut words = vec![0u64; rows.div_ceil(64) + 1];
        let bits = Bits { bytes: source, first: start * 3 };
        planned.bits(&[bits], &mut [&mut words], &mut scratch);
        let bit = |row: usize| (words[row / 64] >> (row % 64) & 1) as u8;
        let found: Vec<u8> = (0..rows).map(bit).collect();
        let bits =
            sorted.iter().map(|row| start * 3 + row).map(|at| source[at / 8] >> (at % 8) & 1);
        assert!(found.iter().copied().eq(bits), "{level:?} {rows} {partitions} {load:?} {start}");
        out.push(found);
    }
    if many {
        let offsets: Vec<i32> = (0..=rows as i32).map(|row| row * 7 - row % 7).collect();
        let total = offsets[rows] as usize;
        let (mut ends, mut bytes) = (vec![0i32; rows + 1], vec![0; total + PAD]);
        planned.text(&offsets, source, &mut ends, &mut bytes);
        bytes.truncate(total);
        let string = |&row: &usize| &source[offsets[row] as usize..offsets[row + 1] as usize];
        assert_eq!(bytes, sorted.iter().map(string).collect::<Vec<_>>().concat());
        let lens = ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
        assert!(ends[0] == 0 && lens.eq(sorted.iter().map(|row| string(row).len())));
        out.push(bytes);
        out.push(ends.iter().flat_map(|end| end.to_le_bytes()).collect());
        let mut rows = Vec::new();
        planned.write_rows(&mut rows);
        let mut expected: Vec<u64> = (0..ids.len() as u64).collect();
        expected.sort_by_key(|&row| ids[row as usize]);
        assert_eq!(rows, expected);
    }
    (out, order.offsets().to_vec())
}

#[test]
fn what_the_cpu_offers_and_what_any_has_give_the_same() {
    let source: Vec<u8> = (0..160_000usize).map(|i| (i * i / 7 % 253) as u8).collect();
    for rows in [2, 63, 64, 65, 128, 512, 577, 1000, 4200] {
        for partitions in [2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 17, 32, 33, 65, 100, 500] {
            for shape in 0..3 {
                let id = |row: usize| match shape {
                    0 => row * row * 31 % partitions,
                    1 => (rows - row) % partitions,
                    _ if !row.is_multiple_of(9) => partitions - 1,
                    _ => row % partitions,
                };
                let ids: Vec<u32> = (0..rows).map(|row| id(row) as u32).collect();
                for load in LOADS {
                    let portable = moved(Level::Portable, &ids, partitions, load, &source);
                    for level in Level::all() {
                        let other = moved(level, &ids, partitions, load, &source);
                        assert!(
                            portable == other,
                            "{rows} {partitions} {shape} {load:?} {level:?}"
                        );
                    }
                }
            }
        }
    }
}

/// Strings of every length around the width of a copy, with and without bytes before and after
/// them.
#[test]
fn strings_of_every_length_are_in_order() {
    let source: Vec<u8> = (0..200_000usize).map(|at| (at * at / 3 % 251) as u8).collect();
    for (rows, partitions) in [(90, 3), (90, 40), (70_000, 5), (70_000, 600)] {
        for (first, behind) in [(0, 0), (5, 0), (0, 100), (9, 40)] {
            let mut offsets = vec![first as i64];
            let len = |row: usize| if rows > 100 { (row * 7 % 41) / 20 } else { row * 5 % 71 };
            (0..rows).for_each(|row| offsets.push(offsets[row] + len(row) as i64));
            let ids: Vec<u32> = (0..rows).map(|row| (row * row % partitions) as u32).collect();
            let mut sorted: Vec<usize> = (0..rows).collect();
            sorted.sort_by_key(|&row| ids[row]);
            let string = |&row: &usize| &source[offsets[row] as usize..offsets[row + 1] as usize];
            let expected: Vec<u8> = sorted.iter().flat_map(string).copied().collect();
            for level in Level::all() {
                let mut order = Order::new(level);
                let Plan::Ordered(mut planned) = order.plan(&ids, partitions, Load::ManyTexts)
                else {
                    panic!("ids are no order");
                };
                let (mut ends, mut out) = (vec![7i64; rows + 1], vec![0xaa; expected.len() + PAD]);
                let bytes = &source[..offsets[rows] as usize + behind];
                planned.text(&offsets, bytes, &mut ends, &mut out);
                assert!(out[..expected.len()] == expected, "{rows} {partitions} {first} {level:?}");
                let lens = ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
                assert!(ends[0] == 0 && lens.eq(sorted.iter().map(|row| string(row).len())));
            }
        }
    }
}

#[test]
fn columns_that_no_cache_holds_are_in_order() {
    const ROWS: usize = UNCACHED / 8 + 1000;
    let source: Vec<u64> =
        (0..ROWS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    // SAFETY: the bytes of numbers are valid bytes.
    let (_, bytes, _) = unsafe { source.align_to::<u8>() };
    let mut out = vec![0u64; ROWS + PAD];
    for partitions in [70u64, 700] {
        let ids: Vec<u32> =
            source.iter().map(|i| (((i >> 32) * partitions) >> 32) as u32).collect();
        let loads = [Load::Fixed(8), Load::ManyWide];
        for (level, load) in
            Level::all().into_iter().flat_map(|level| loads.map(|load| (level, load)))
        {
            let mut order = Order::new(level);
            let Plan::Ordered(mut planned) = order.plan(&ids, partitions as usize, load) else {
                panic!("ids are no order");
            };
            // Output memory that starts at a line, and one that does not.
            for start in [out.as_ptr().align_offset(64), out.as_ptr().align_offset(64) + 1] {
                // SAFETY: the bytes of numbers are valid bytes, and any bytes are valid numbers.
                let (_, out, _) = unsafe { out[start..].align_to_mut::<u8>() };
                planned.fixed(8, bytes, out);
                let (found, _) = out.as_chunks::<8>();
                let mut next = planned.order.offsets.clone();
                for (id, value) in ids.iter().zip(&source) {
                    let next = &mut next[*id as usize];
                    assert!(found[*next] == value.to_ne_bytes(), "{partitions} {level:?} {load:?}");
                    *next += 1;
                }
            }
        }
    }
}

#[test]
fn no_id_gets_past_its_partitions() {
    for level in Level::all() {
        for partitions in [1, 2, 3, 4, 5, 16, 200, 255, 256, 300, 70_000] {
            for rows in [2, 64, 70, 1000, 5000] {
                for outside in [partitions as u32, partitions as u32 + 256, u32::MAX] {
                    let mut ids: Vec<u32> =
                        (0..rows as u32).map(|row| row * row % 7 % partitions as u32).collect();
                    ids[rows / 2] = outside;
                    for load in LOADS {
                        let mut order = Order::new(level);
                        let found = order.plan(&ids, partitions, load);
                        assert!(matches!(found, Plan::Outside), "{partitions} {rows} {load:?}");
                    }
                }
            }
        }
    }
}
