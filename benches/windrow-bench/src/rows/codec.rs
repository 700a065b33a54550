//! Benches of encoding, decoding and comparing. All columns are the order; in cases of `payload` the
//! first one is, and the others are carried along.

use std::cell::RefCell;
use std::hint::black_box;

use windrow::{Order, RowEncoder, Rows, compat};

use super::data::Shape;
use super::{Options, inputs};
use crate::Result;
use crate::harness::{Cells, Turns, timed};

/// Rows of one record batch.
const ROWS: usize = 8192;
/// Maximum number of record batches in rotation.
const INPUTS: usize = 8;
/// Total bytes of the record batches: more than a second-level cache. At least two batches are
/// used.
const INPUT_BYTES: usize = 4 << 20;

pub(super) fn measure(shape: &Shape, options: &Options, cells: &mut Cells) -> Result<()> {
    let name = |case: &str| format!("{case} {}", shape.name);
    let cases =
        ["encode", "compat", "compat decode", "decode", "compare", "payload", "payload decode"];
    if !cases.iter().any(|case| cells.wants(&name(case))) {
        return Ok(());
    }
    let one = shape.batch(0, ROWS)?.get_array_memory_size();
    let count = INPUT_BYTES.div_ceil(one).clamp(2, INPUTS);
    let (inputs, layout, converter) = inputs(shape, count, ROWS)?;
    let encoder = RowEncoder::new(&layout);
    // Only the first column is part of the order.
    let payload = RowEncoder::new(&Order::by(["c0"]).bind(&inputs[0].schema())?);
    let carried = inputs.iter().map(|batch| Ok(payload.encode(batch)?));
    let carried = carried.collect::<Result<Vec<_>>>()?;
    let fields = inputs[0].schema_ref().fields().iter().map(|field| compat::SortField {
        data_type: field.data_type().clone(),
        options: Default::default(),
    });
    let compat = compat::Converter::new(fields.collect())?;
    let ours = inputs.iter().map(|batch| Ok(encoder.encode(batch)?)).collect::<Result<Vec<_>>>()?;
    let convert = |at: usize| Ok(converter.convert_columns(inputs[at].columns())?);
    let theirs = (0..count).map(convert).collect::<Result<Vec<_>>>()?;
    let same = |at: usize| Ok(compat.encode(inputs[at].columns())?);
    let same = (0..count).map(same).collect::<Result<Vec<Rows>>>()?;
    if same[0].iter().zip(theirs[0].iter()).any(|(ours, theirs)| ours != theirs.data())
        || compat.decode(&same[0], 0..ROWS)? != inputs[0].columns()
    {
        return Err("the bytes are not those of arrow-row".into());
    }

    let recycled = RefCell::new((Rows::default(), converter.empty_rows(0, 0)));
    let mut target = vec![0; ours.iter().map(|rows| rows.bytes().len()).max().unwrap_or(0)];
    let encode = |at: usize| Ok(encoder.encode(&inputs[at])?);
    let encode_into =
        |at: usize| Ok(encoder.encode_into(&inputs[at], &mut recycled.borrow_mut().0)?);
    let payload_into =
        |at: usize| Ok(payload.encode_into(&inputs[at], &mut recycled.borrow_mut().0)?);
    let payload_decode = |at: usize| Ok(payload.decode(&carried[at], 0..ROWS)?);
    let compat_into =
        |at: usize| Ok(compat.encode_into(inputs[at].columns(), &mut recycled.borrow_mut().0)?);
    let append = |at: usize| {
        let appended = &mut recycled.borrow_mut().1;
        appended.clear();
        Ok(converter.append(appended, inputs[at].columns())?)
    };
    let mut copy = |at: usize| {
        let rows = black_box(ours[at].bytes());
        black_box(&mut target)[..rows.len()].copy_from_slice(rows);
        Ok(())
    };
    let decode = |at: usize| Ok(encoder.decode(&ours[at], 0..ROWS)?);
    let compat_decode = |at: usize| Ok(compat.decode(&same[at], 0..ROWS)?);
    let convert_rows = |at: usize| Ok(converter.convert_rows(&theirs[at])?);
    let compare = |at: usize| Ok(ascents(|row| ours[at].compare(row - 1, row).is_lt()));
    let rival_compare =
        |at: usize| Ok(ascents(|row| theirs[at].row(row - 1) < theirs[at].row(row)));
    // Work on the next of the inputs.
    macro_rules! pair {
        ($ours:ident, $rival:literal, $theirs:ident) => {
            [
                timed("ours", |round: &usize, call| $ours((round + call) % count)),
                timed($rival, |round: &usize, call| $theirs((round + call) % count)),
            ]
        };
    }
    let races = [
        ("encode", pair!(encode_into, "arrow-row append, recycled", append)),
        ("encode", pair!(encode_into, "memcpy of the rows", copy)),
        ("encode", pair!(encode, "arrow-row convert, fresh", convert)),
        ("compat", pair!(compat_into, "arrow-row append, recycled", append)),
        ("compat decode", pair!(compat_decode, "arrow-row convert_rows", convert_rows)),
        ("decode", pair!(decode, "arrow-row convert_rows", convert_rows)),
        ("payload", pair!(payload_into, "arrow-row append, recycled", append)),
        ("payload decode", pair!(payload_decode, "arrow-row convert_rows", convert_rows)),
        ("compare", pair!(compare, "arrow-row Row::cmp, adjacent", rival_compare)),
    ];
    let (rounds, calls) = (if options.quick { 20 } else { 100 }, options.calls.max(1));
    let turns = Turns { rounds, warm: usize::from(calls > 1), calls };
    for (case, mut pair) in races {
        if cells.wants(&name(case)) {
            cells.race(&name(case), turns, |round| Ok((round, 1.0)), &mut pair)?;
        }
    }
    let bytes: usize = theirs[0].iter().map(|row| row.data().len()).sum();
    let [ours, theirs] = [ours[0].bytes().len(), bytes].map(|all| all as f64 / ROWS as f64);
    if cells.wants(&name("encode")) {
        cells.push("bytes/row", &name("bytes"), ours, [("arrow-row", theirs)]);
    }
    Ok(())
}

/// Returns the number of rows that are greater than the row before.
fn ascents(ascends: impl Fn(usize) -> bool) -> usize {
    (1..ROWS).filter(|row| ascends(*row)).count()
}
