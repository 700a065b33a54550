//! Pages from a wire that nobody wrote, or that lost or changed bytes on their way: errors or record
//! batches, never a panic, and what is read as a record batch is written as a page that reads the same.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use windrow::arrow_array::types::{Int32Type, Int64Type};
use windrow::arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, Float64Array,
    Int16Array, ListArray, RecordBatch, StringArray, StructArray,
};
use windrow::arrow_schema::{DataType, Field};
use windrow::{IpcPages, PageCodec, PrestoPages};

/// The most bytes that a page may make of few: memory is not what is sought.
const MOST: usize = 1 << 20;

/// A record batch of the types that pages hold, for damage to start from.
static BATCH: LazyLock<RecordBatch> = LazyLock::new(|| {
    let rows = 0..20i16;
    let numbers: Int16Array = rows.clone().map(|row| (row % 3 > 0).then_some(row)).collect();
    let words: Vec<_> =
        rows.clone().map(|row| (row % 5 > 0).then(|| "word".repeat(row as usize % 4))).collect();
    let lists = rows.clone().map(|row| (row % 4 > 0).then(|| vec![Some(i64::from(row)), None]));
    let inner = Field::new("inner", DataType::Int16, true);
    let parts = StructArray::new(vec![inner].into(), vec![Arc::new(numbers.clone())], None);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.clone().map(|row| Some(row % 2 > 0)).collect::<BooleanArray>()),
        Arc::new(numbers),
        Arc::new(rows.clone().map(f64::from).collect::<Float64Array>()),
        Arc::new(rows.clone().map(|row| Some(i128::from(row) << 70)).collect::<Decimal128Array>()),
        Arc::new(StringArray::from(words.clone())),
        Arc::new(
            words.iter().map(|word| word.as_ref().map(String::as_bytes)).collect::<BinaryArray>(),
        ),
        Arc::new(words.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>()),
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
        Arc::new(parts),
    ];
    let columns =
        columns.into_iter().enumerate().map(|(index, column)| (format!("c{index}"), column, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
});

/// `page`, with the bytes that `changes` name changed (two bytes of a place, one of a value), and cut.
fn damaged(mut page: Vec<u8>, changes: &[u8]) -> Vec<u8> {
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % page.len();
        page[at] ^= change[2];
    }
    if let [cut] = changes.chunks_exact(3).remainder() {
        page.truncate(page.len() - usize::from(*cut) % page.len());
    }
    page
}

// Reading an Arrow page catches panics of the library below, at which the fuzzer would stop.
fuzz_target!(init: drop(std::panic::take_hook()), |data: &[u8]| {
    let Some((&shape, bytes)) = data.split_first() else { return };
    let codec = match shape / 4 % 3 {
        0 => PageCodec::None,
        1 => PageCodec::Lz4,
        _ => PageCodec::Zstd,
    };
    let batch = &*BATCH;
    let checksum = shape & 128 > 0;
    let columns: Vec<usize> = (0..batch.num_columns()).filter(|at| shape & 64 == 0 || *at == usize::from(shape) % 9).collect();
    let batch = batch.project(&columns).expect("columns that there are");
    let schema = batch.schema();
    let presto = PrestoPages::new(&schema).expect("types that have a block");
    let presto = presto.codec(codec).checksum(checksum).most_bytes(MOST);
    let ipc = IpcPages::new(&schema).codec(codec).checksum(checksum).most_bytes(MOST);
    let is_presto = shape & 1 == 0;
    let write = |batch: &RecordBatch| {
        let mut page = Vec::new();
        let written = match is_presto {
            true => presto.write(batch, &mut page),
            false => ipc.write(batch, &mut page),
        };
        assert_eq!(written.expect("a page for every record batch"), page.len());
        page
    };
    let read = |page: &[u8]| if is_presto { presto.read(page) } else { ipc.read(page) };
    let wire = if shape & 2 == 0 { bytes.to_vec() } else { damaged(write(&batch), bytes) };
    if let Ok((batch, _)) = read(&wire) {
        let page = write(&batch);
        assert_eq!(read(&page).expect("a page that was written"), (batch, page.len()));
    }
});
