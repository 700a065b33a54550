//! Benches of encoding, decoding and comparing.

use std::hint::black_box;

use arrow::array::RecordBatch;
use arrow::row::{RowConverter, SortField};
use windrow::{RowEncoder, Rows, compat};

use super::data::{Shape, codec_shapes};
use super::{Options, dropped, inputs, race};
use crate::Result;
use crate::cells::Cells;

/// Rows of one record batch.
const ROWS: usize = 8192;
/// Maximum number of record batches in rotation.
const INPUTS: usize = 8;
/// Total bytes of the record batches: more than a second-level cache. At least two batches are
/// used.
const INPUT_BYTES: usize = 4 << 20;

pub(super) fn run(options: &Options, cells: &mut Cells) -> Result<()> {
    for shape in codec_shapes() {
        measure(&shape, options, cells)?;
    }
    Ok(())
}

/// Creates arrow-row's converter for all columns of `batch`.
pub(super) fn converter(batch: &RecordBatch) -> Result<RowConverter> {
    let columns = batch.columns().iter();
    let fields = columns.map(|column| SortField::new(column.data_type().clone())).collect();
    Ok(RowConverter::new(fields)?)
}

fn measure(shape: &Shape, options: &Options, cells: &mut Cells) -> Result<()> {
    let names = ["encode", "compat", "compat decode", "decode", "compare"];
    let names = names.map(|case| format!("{case} {}", shape.name));
    let wanted = names.each_ref().map(|name| name.contains(&options.only));
    if !wanted.contains(&true) {
        return Ok(());
    }
    let one = shape.batch(0, ROWS)?.get_array_memory_size();
    let (inputs, layout) = inputs(shape, INPUT_BYTES.div_ceil(one).clamp(2, INPUTS), ROWS)?;
    let (encoder, converter) = (RowEncoder::new(&layout), converter(&inputs[0])?);
    let fields = inputs[0].schema_ref().fields().iter().map(|field| compat::SortField {
        data_type: field.data_type().clone(),
        options: Default::default(),
    });
    let compat = compat::Converter::new(fields.collect())?;
    let ours = inputs.iter().map(|batch| Ok(encoder.encode(batch)?)).collect::<Result<Vec<_>>>()?;
    let convert = |batch: &RecordBatch| Ok(converter.convert_columns(batch.columns())?);
    let theirs = inputs.iter().map(convert).collect::<Result<Vec<_>>>()?;

    let (mut recycled, mut appended) = (Rows::default(), converter.empty_rows(0, 0));
    let mut encode = |at: usize| Ok(encoder.encode_into(&inputs[at], &mut recycled)?);
    let mut append = |at: usize| {
        appended.clear();
        Ok(converter.append(&mut appended, inputs[at].columns())?)
    };
    let mut convert = |at: usize| dropped(convert(&inputs[at])?);
    let mut convert_rows = |at: usize| dropped(converter.convert_rows(&theirs[at])?);
    let rounds = if options.quick { 20 } else { 100 };
    let mut pair = |name: &str, rival: &str, ours: super::Work<'_>, theirs: super::Work<'_>| {
        let times = race(rounds, options.calls.max(1), inputs.len(), &mut [ours, theirs])?;
        cells.push(name, times[0], [(rival, times[1])]);
        Ok::<_, Box<dyn std::error::Error>>(())
    };

    let [encode_name, compat_name, compat_decode, decode, compare] = &names;
    if wanted[0] {
        pair(encode_name, "arrow-row append, recycled", &mut encode, &mut append)?;
        let mut target = vec![0; ours.iter().map(|rows| rows.bytes().len()).max().unwrap_or(0)];
        pair(encode_name, "memcpy of the rows", &mut encode, &mut |at| {
            let rows = black_box(ours[at].bytes());
            black_box(&mut target)[..rows.len()].copy_from_slice(rows);
            Ok(())
        })?;
        let mut fresh = |at: usize| dropped(encoder.encode(&inputs[at])?);
        pair(encode_name, "arrow-row convert, fresh", &mut fresh, &mut convert)?;
    }
    if wanted[1] {
        let same = compat.encode(inputs[0].columns())?;
        if same.iter().zip(theirs[0].iter()).any(|(ours, theirs)| ours != theirs.data()) {
            return Err("the bytes are not those of arrow-row".into());
        }
        let mut recycled = Rows::default();
        let mut encode = |at: usize| Ok(compat.encode_into(inputs[at].columns(), &mut recycled)?);
        pair(compat_name, "arrow-row append, recycled", &mut encode, &mut append)?;
    }
    if wanted[2] {
        let same = inputs.iter().map(|batch| Ok(compat.encode(batch.columns())?));
        let same = same.collect::<Result<Vec<Rows>>>()?;
        if compat.decode(&same[0], 0..ROWS)? != inputs[0].columns() {
            return Err("the columns are not those that were encoded".into());
        }
        let mut slab = |at: usize| dropped(compat.decode(&same[at], 0..ROWS)?);
        pair(compat_decode, "arrow-row convert_rows", &mut slab, &mut convert_rows)?;
    }
    if wanted[3] {
        let mut ours = |at: usize| dropped(encoder.decode(&ours[at], 0..ROWS)?);
        pair(decode, "arrow-row convert_rows", &mut ours, &mut convert_rows)?;
    }
    if wanted[4] {
        let mut adjacent = |at: usize| {
            let is_less = |&row: &usize| ours[at].compare(row - 1, row).is_lt();
            dropped((1..ROWS).filter(is_less).count())
        };
        pair(compare, "arrow-row Row::cmp, adjacent", &mut adjacent, &mut |at| {
            let is_less = |&row: &usize| theirs[at].row(row - 1) < theirs[at].row(row);
            dropped((1..ROWS).filter(is_less).count())
        })?;
    }
    if wanted[0] {
        let bytes: usize = theirs[0].iter().map(|row| row.data().len()).sum();
        let [ours, theirs] = [ours[0].bytes().len(), bytes].map(|all| all as f64 / ROWS as f64);
        cells.push(&format!("bytes {}", shape.name), ours, [("arrow-row", theirs)]);
    }
    Ok(())
}
