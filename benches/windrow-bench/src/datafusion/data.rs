//! The input files: `lineitem` of TPC-H, and the change log of `gen-log`.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{LineItem, LineItemGenerator};

use super::files;
use crate::Result;

const BATCH: usize = 8192;

/// Generates missing files.
pub(crate) fn make(directory: &Path, scale: f64) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let [lineitem, log] = files(directory, scale);
    if !lineitem.exists() {
        write(&lineitem, scale)?;
    }
    if !log.exists() {
        windrow_testdata::log::write(&log, 6_000_000, 1_500_000, 1)?;
    }
    Ok(())
}

/// Writes `lineitem` under a temporary name until complete.
fn write(path: &Path, scale: f64) -> Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(122_880))
        .build();
    let generator = LineItemGenerator::new(scale, 1, 1);
    let mut rows = generator.iter().peekable();
    let part = path.with_extension("part");
    let mut writer: Option<ArrowWriter<File>> = None;
    while rows.peek().is_some() {
        let rows: Vec<LineItem<'_>> = rows.by_ref().take(BATCH).collect();
        let batch = batch(&rows)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(ArrowWriter::try_new(
                File::create(&part)?,
                batch.schema(),
                Some(properties.clone()),
            )?),
        };
        writer.write(&batch)?;
    }
    writer.ok_or("no rows at this scale")?.close()?;
    std::fs::rename(part, path)?;
    Ok(())
}

fn batch(rows: &[LineItem<'_>]) -> Result<RecordBatch> {
    let longs = |of: fn(&LineItem<'_>) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
    };
    let decimals = |of: fn(&LineItem<'_>) -> TPCHDecimal| -> Result<ArrayRef> {
        let values = rows.iter().map(|row| i128::from(of(row).0));
        let values = Decimal128Array::from_iter_values(values);
        Ok(Arc::new(values.with_precision_and_scale(15, 2)?))
    };
    let dates = |of: fn(&LineItem<'_>) -> TPCHDate| -> ArrayRef {
        Arc::new(Date32Array::from_iter_values(rows.iter().map(|row| of(row).to_unix_epoch())))
    };
    fn texts<'a>(rows: &'a [LineItem<'_>], of: impl Fn(&'a LineItem<'_>) -> &'a str) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    }
    let numbers = rows.iter().map(|row| row.l_linenumber);
    let quantities =
        Decimal128Array::from_iter_values(rows.iter().map(|row| i128::from(row.l_quantity) * 100));
    Ok(RecordBatch::try_from_iter([
        ("l_orderkey", longs(|row| row.l_orderkey)),
        ("l_partkey", longs(|row| row.l_partkey)),
        ("l_suppkey", longs(|row| row.l_suppkey)),
        ("l_linenumber", Arc::new(Int32Array::from_iter_values(numbers)) as ArrayRef),
        ("l_quantity", Arc::new(quantities.with_precision_and_scale(15, 2)?)),
        ("l_extendedprice", decimals(|row| row.l_extendedprice)?),
        ("l_discount", decimals(|row| row.l_discount)?),
        ("l_tax", decimals(|row| row.l_tax)?),
        ("l_returnflag", texts(rows, |row| row.l_returnflag)),
        ("l_linestatus", texts(rows, |row| row.l_linestatus)),
        ("l_shipdate", dates(|row| row.l_shipdate)),
        ("l_commitdate", dates(|row| row.l_commitdate)),
        ("l_receiptdate", dates(|row| row.l_receiptdate)),
        ("l_shipinstruct", texts(rows, |row| row.l_shipinstruct)),
        ("l_shipmode", texts(rows, |row| row.l_shipmode)),
        ("l_comment", texts(rows, |row| row.l_comment)),
    ])?)
}
