//! Benches of encoding, decoding and comparing.

use std::cell::RefCell;
use std::hint::black_box;

use windrow::{RowEncoder, Rows, compat};

use super::data::Shape;
use super::{Options, inputs};
use crate::Result;
use crate::harness::{Cells, Contender, Turns, timed};

/// Rows of one record batch.
const ROWS: usize = 8192;
/// Maximum number of record batches in rotation.
const INPUTS: usize = 8;
/// Total bytes of the record batches: more than a second-level cache. At least two batches are
/// used.
const INPUT_BYTES: usize = 4 << 20;

pub(super) fn measure(shape: &Shape, options: &Options, cells: &mut Cells) -> Result<()> {
    let [encode, compat, compat_decode, decode, compare] =
        ["encode", "compat", "compat decode", "decode", "compare"]
            .map(|case| Some(format!("{case} {}", shape.name)).filter(|name| cells.wants(name)));
    if [&encode, &compat, &compat_decode, &decode, &compare].iter().all(|name| name.is_none()) {
        return Ok(());
    }
    let one = shape.batch(0, ROWS)?.get_array_memory_size();
    let count = INPUT_BYTES.div_ceil(one).clamp(2, INPUTS);
    let (inputs, layout, converter) = inputs(shape, count, ROWS)?;
    let encoder = RowEncoder::new(&layout);
    let fields = inputs[0].schema_ref().fields().iter().map(|field| compat::SortField {
        data_type: field.data_type().clone(),
        options: Default::default(),
    });
    let arrow_rows = compat::Converter::new(fields.collect())?;
    let ours = inputs.iter().map(|batch| Ok(encoder.encode(batch)?)).collect::<Result<Vec<_>>>()?;
    let convert = |at: usize| Ok(converter.convert_columns(inputs[at].columns())?);
    let theirs = (0..count).map(convert).collect::<Result<Vec<_>>>()?;
    let same = |at: usize| Ok(arrow_rows.encode(inputs[at].columns())?);
    let same = (0..count).map(same).collect::<Result<Vec<Rows>>>()?;
    if same[0].iter().zip(theirs[0].iter()).any(|(ours, theirs)| ours != theirs.data())
        || arrow_rows.decode(&same[0], 0..ROWS)? != inputs[0].columns()
    {
        return Err("the bytes are not those of arrow-row".into());
    }

    let rounds = if options.quick { 20 } else { 100 };
    let calls = options.calls.max(1);
    let turns = Turns { rounds, warm: usize::from(calls > 1), calls };
    let recycled = RefCell::new((Rows::default(), converter.empty_rows(0, 0)));
    let encode_into =
        |at: usize| Ok(encoder.encode_into(&inputs[at], &mut recycled.borrow_mut().0)?);
    let append = |at: usize| {
        let appended = &mut recycled.borrow_mut().1;
        appended.clear();
        Ok(converter.append(appended, inputs[at].columns())?)
    };
    let convert_rows = |at: usize| Ok(converter.convert_rows(&theirs[at])?);
    let mut race = |name: &str, mut pair: [Contender<'_, usize>; 2]| {
        cells.race(name, turns, |round| Ok((round, 1.0)), &mut pair)
    };
    // The work on the next of the inputs.
    macro_rules! next {
        ($name:expr, $work:expr) => {
            timed($name, |round: &usize, call| $work((round + call) % count))
        };
    }
    if let Some(name) = &encode {
        race(name, [next!("ours", encode_into), next!("arrow-row append, recycled", append)])?;
        let mut target = vec![0; ours.iter().map(|rows| rows.bytes().len()).max().unwrap_or(0)];
        let copy = next!("memcpy of the rows", |at: usize| {
            let rows = black_box(ours[at].bytes());
            black_box(&mut target)[..rows.len()].copy_from_slice(rows);
            Ok(())
        });
        race(name, [next!("ours", encode_into), copy])?;
        let fresh = next!("ours", |at: usize| Ok(encoder.encode(&inputs[at])?));
        race(name, [fresh, next!("arrow-row convert, fresh", convert)])?;
    }
    if let Some(name) = &compat {
        let ours = next!("ours", |at: usize| {
            Ok(arrow_rows.encode_into(inputs[at].columns(), &mut recycled.borrow_mut().0)?)
        });
        race(name, [ours, next!("arrow-row append, recycled", append)])?;
    }
    if let Some(name) = &compat_decode {
        let ours = next!("ours", |at: usize| Ok(arrow_rows.decode(&same[at], 0..ROWS)?));
        race(name, [ours, next!("arrow-row convert_rows", convert_rows)])?;
    }
    if let Some(name) = &decode {
        let ours = next!("ours", |at: usize| Ok(encoder.decode(&ours[at], 0..ROWS)?));
        race(name, [ours, next!("arrow-row convert_rows", convert_rows)])?;
    }
    if let Some(name) = &compare {
        let adjacent = |at: usize| {
            let is_less = |&row: &usize| ours[at].compare(row - 1, row).is_lt();
            Ok((1..ROWS).filter(is_less).count())
        };
        let theirs = |at: usize| {
            let is_less = |&row: &usize| theirs[at].row(row - 1) < theirs[at].row(row);
            Ok((1..ROWS).filter(is_less).count())
        };
        race(name, [next!("ours", adjacent), next!("arrow-row Row::cmp, adjacent", theirs)])?;
    }
    if encode.is_some() {
        let bytes: usize = theirs[0].iter().map(|row| row.data().len()).sum();
        let [ours, theirs] = [ours[0].bytes().len(), bytes].map(|all| all as f64 / ROWS as f64);
        cells.push("bytes/row", &format!("bytes {}", shape.name), ours, [("arrow-row", theirs)]);
    }
    Ok(())
}
