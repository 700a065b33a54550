//! Benches of encoding, decoding and comparing.

use std::hint::black_box;

use arrow::array::RecordBatch;
use arrow::row::{RowConverter, SortField};
use windrow::{Order, RowEncoder, Rows, compat};

use super::data::{Shape, codec_shapes};
use super::{Contender, Options, race};
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
    let rounds = if options.quick { 20 } else { 100 };
    for shape in codec_shapes() {
        let names = ["encode", "decode", "compare", "compat", "compat decode"]
            .map(|c| format!("{c} {}", shape.name));
        if names.iter().any(|name| name.contains(&options.only)) {
            measure(&shape, &names, rounds, options, cells)?;
        }
    }
    Ok(())
}

/// Creates arrow-row's converter for all columns of `batch`.
pub(super) fn converter(batch: &RecordBatch) -> Result<RowConverter> {
    let columns = batch.columns().iter();
    let fields = columns.map(|column| SortField::new(column.data_type().clone())).collect();
    Ok(RowConverter::new(fields)?)
}

fn measure(
    shape: &Shape,
    names: &[String; 5],
    rounds: usize,
    options: &Options,
    cells: &mut Cells,
) -> Result<()> {
    let sides = Sides::of(shape, rounds, options)?;
    let asked = |name: &String| name.contains(&options.only);
    let [encode, decode, compare, compat, compat_decode] = names;
    if asked(encode) {
        sides.encode_recycled(encode, cells)?;
        sides.encode_fresh(encode, cells)?;
        sides.count_bytes(&shape.name, cells);
    }
    if asked(compat) {
        sides.compat(compat, cells)?;
    }
    if asked(compat_decode) {
        sides.decode_compat(compat_decode, cells)?;
    }
    if asked(decode) {
        sides.decode(decode, cells)?;
    }
    if asked(compare) {
        sides.compare(compare, cells)?;
    }
    Ok(())
}

/// Both sides of a race, with the rotating record batches and their rows.
struct Sides {
    inputs: Vec<RecordBatch>,
    encoder: RowEncoder,
    compat: compat::Converter,
    converter: RowConverter,
    ours: Vec<Rows>,
    theirs: Vec<arrow::row::Rows>,
    rounds: usize,
    calls: usize,
}

impl Sides {
    fn of(shape: &Shape, rounds: usize, options: &Options) -> Result<Self> {
        let one = shape.batch(0, ROWS)?.get_array_memory_size();
        let count = INPUT_BYTES.div_ceil(one).clamp(2, INPUTS);
        let inputs: Vec<RecordBatch> =
            (0..count).map(|seed| shape.batch(seed as u64, ROWS)).collect::<Result<_>>()?;
        let schema = inputs[0].schema();
        let columns: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
        let encoder = RowEncoder::new(&Order::by(columns).bind(&schema)?);
        let converter = converter(&inputs[0])?;
        let fields = schema.fields().iter().map(|field| compat::SortField {
            data_type: field.data_type().clone(),
            options: Default::default(),
        });
        let compat = compat::Converter::new(fields.collect())?;
        let ours = inputs.iter().map(|batch| Ok(encoder.encode(batch)?)).collect::<Result<_>>()?;
        let theirs = inputs
            .iter()
            .map(|batch| Ok(converter.convert_columns(batch.columns())?))
            .collect::<Result<_>>()?;
        let calls = options.calls.max(1);
        Ok(Self { inputs, encoder, compat, converter, ours, theirs, rounds, calls })
    }

    fn race(&self, contenders: &mut [Contender<'_>]) -> Result<Vec<f64>> {
        race(self.rounds, self.calls, self.inputs.len(), contenders)
    }

    /// Measures encoding into used memory.
    fn encode_recycled(&self, name: &str, cells: &mut Cells) -> Result<()> {
        let Self { inputs, encoder, converter, ours, .. } = self;
        let (mut recycled, mut appended) = (Rows::default(), converter.empty_rows(0, 0));
        let mut target = vec![0; ours.iter().map(|rows| rows.bytes().len()).max().unwrap_or(0)];
        let mut contenders: [Contender<'_>; 2] = [
            ("ours", Box::new(|at| Ok(encoder.encode_into(&inputs[at], &mut recycled)?))),
            (
                "append",
                Box::new(|at| {
                    appended.clear();
                    Ok(converter.append(&mut appended, inputs[at].columns())?)
                }),
            ),
        ];
        let times = self.race(&mut contenders)?;
        cells.push(name, times[0], "arrow-row append, recycled", times[1]);
        drop(contenders);
        let mut contenders: [Contender<'_>; 2] = [
            ("ours", Box::new(|at| Ok(encoder.encode_into(&inputs[at], &mut recycled)?))),
            (
                "memcpy",
                Box::new(|at| {
                    let rows = black_box(ours[at].bytes());
                    black_box(&mut target)[..rows.len()].copy_from_slice(rows);
                    Ok(())
                }),
            ),
        ];
        let times = self.race(&mut contenders)?;
        cells.push(name, times[0], "memcpy of the rows", times[1]);
        Ok(())
    }

    /// Measures encoding against arrow-row into fresh memory.
    fn encode_fresh(&self, name: &str, cells: &mut Cells) -> Result<()> {
        let Self { inputs, encoder, converter, .. } = self;
        let mut recycled = Rows::default();
        let mut contenders: [Contender<'_>; 2] = [
            (
                "ours",
                Box::new(|at| {
                    black_box(encoder.encode(&inputs[at])?);
                    Ok(())
                }),
            ),
            (
                "convert_columns",
                Box::new(|at| {
                    black_box(converter.convert_columns(inputs[at].columns())?);
                    Ok(())
                }),
            ),
        ];
        let times = self.race(&mut contenders)?;
        cells.push(name, times[0], "arrow-row convert, fresh", times[1]);
        let mut contenders: [Contender<'_>; 2] = [
            ("ours, recycled", Box::new(|at| Ok(encoder.encode_into(&inputs[at], &mut recycled)?))),
            (
                "convert_columns",
                Box::new(|at| {
                    black_box(converter.convert_columns(inputs[at].columns())?);
                    Ok(())
                }),
            ),
        ];
        let times = self.race(&mut contenders)?;
        cells.push(name, times[0], "arrow convert; ours recycled", times[1]);
        Ok(())
    }

    fn count_bytes(&self, shape: &str, cells: &mut Cells) {
        let Self { ours, theirs, .. } = self;
        let bytes = |rows: &[u8]| rows.len() as f64 / ROWS as f64;
        let their_bytes: usize = theirs[0].iter().map(|row| row.data().len()).sum();
        let per_row = their_bytes as f64 / ROWS as f64;
        cells.push(&format!("bytes {shape}"), bytes(ours[0].bytes()), "arrow-row", per_row);
    }

    /// Measures encoding to arrow-row's bytes.
    fn compat(&self, name: &str, cells: &mut Cells) -> Result<()> {
        let Self { inputs, compat, converter, theirs, .. } = self;
        let same = compat.encode(inputs[0].columns())?;
        if same.iter().zip(theirs[0].iter()).any(|(ours, theirs)| ours != theirs.data()) {
            return Err("the bytes are not those of arrow-row".into());
        }
        let (mut recycled, mut appended) = (Rows::default(), converter.empty_rows(0, 0));
        let mut contenders: [Contender<'_>; 2] = [
            (
                "ours, recycled",
                Box::new(|at| Ok(compat.encode_into(inputs[at].columns(), &mut recycled)?)),
            ),
            (
                "append, recycled",
                Box::new(|at| {
                    appended.clear();
                    Ok(converter.append(&mut appended, inputs[at].columns())?)
                }),
            ),
        ];
        let times = self.race(&mut contenders)?;
        cells.push(name, times[0], "arrow-row append, recycled", times[1]);
        Ok(())
    }

    /// Measures decoding of arrow-row's bytes.
    fn decode_compat(&self, name: &str, cells: &mut Cells) -> Result<()> {
        let Self { inputs, compat, converter, theirs, .. } = self;
        let convert_rows = |at: usize| {
            black_box(converter.convert_rows(&theirs[at])?);
            Ok(())
        };
        let same = inputs.iter().map(|batch| Ok(compat.encode(batch.columns())?));
        let same = same.collect::<Result<Vec<Rows>>>()?;
        if compat.decode(&same[0], 0..ROWS)? != inputs[0].columns() {
            return Err("the columns are not those that were encoded".into());
        }
        let mut contenders: [Contender<'_>; 3] = [
            (
                "ours",
                Box::new(|at| {
                    black_box(compat.decode(&same[at], 0..ROWS)?);
                    Ok(())
                }),
            ),
            (
                "ours, anywhere",
                Box::new(|at| {
                    black_box(compat.decode_rows(theirs[at].iter().map(|row| row.data()))?);
                    Ok(())
                }),
            ),
            ("convert_rows", Box::new(convert_rows)),
        ];
        let times = self.race(&mut contenders)?;
        cells.push(name, times[0], "arrow-row convert_rows", times[2]);
        cells.push(name, times[1], "convert_rows; ours anywhere", times[2]);
        Ok(())
    }

    /// Measures decoding of rows.
    fn decode(&self, name: &str, cells: &mut Cells) -> Result<()> {
        let Self { encoder, converter, ours, theirs, .. } = self;
        let convert_rows = |at: usize| {
            black_box(converter.convert_rows(&theirs[at])?);
            Ok(())
        };
        let mut contenders: [Contender<'_>; 2] = [
            (
                "ours",
                Box::new(|at| {
                    black_box(encoder.decode(&ours[at], 0..ROWS)?);
                    Ok(())
                }),
            ),
            ("convert_rows", Box::new(convert_rows)),
        ];
        let times = self.race(&mut contenders)?;
        cells.push(name, times[0], "arrow-row convert_rows", times[1]);
        Ok(())
    }

    /// Measures comparisons of adjacent rows.
    fn compare(&self, name: &str, cells: &mut Cells) -> Result<()> {
        let Self { ours, theirs, .. } = self;
        let mut contenders: [Contender<'_>; 2] = [
            (
                "ours",
                Box::new(|at| {
                    let rows = &ours[at];
                    let count = (1..ROWS).filter(|&row| rows.compare(row - 1, row).is_lt()).count();
                    black_box(count);
                    Ok(())
                }),
            ),
            (
                "Row::cmp",
                Box::new(|at| {
                    let rows = &theirs[at];
                    let count = (1..ROWS).filter(|&row| rows.row(row - 1) < rows.row(row)).count();
                    black_box(count);
                    Ok(())
                }),
            ),
        ];
        let times = self.race(&mut contenders)?;
        cells.push(name, times[0], "arrow-row Row::cmp, adjacent", times[1]);
        Ok(())
    }
}
