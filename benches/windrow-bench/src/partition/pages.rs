//! Pages: bytes of record batches on a wire, beside streams of arrow-ipc.
//!
//! ```text
//! write, read   one record batch of 8,192 rows as a page, and back
//! exchange      400 record batches hashed into 64 partitions, gathered, and written as pages of
//!               each partition; the rival splits each with takes and writes it to the partition's
//!               stream at once
//! ```
//! Rates are of the bytes of the columns in memory. Pages are appended to recycled memory, streams
//! as well; columns that are read are fresh on both sides.

use std::hint::black_box;

use arrow::array::RecordBatch;
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use windrow::{
    IpcPages, Order, PageCodec, PageFormat, PartitionBuilder, PartitionPages, Partitioner, Pool,
    PrestoPages,
};

use super::data::{MIXED, record_batch};
use super::rivals::grouped;
use crate::Result;
use crate::harness::{Cells, Turns, timed};

const ROWS: usize = 8192;
const BATCHES: usize = 400;
const PARTITIONS: usize = 64;

pub(super) fn run(cells: &mut Cells) -> Result<()> {
    cells.unit = "ns/row";
    let batch = record_batch(MIXED, 10, ROWS, true)?;
    cells.bytes = batch.get_array_memory_size() as f64 / ROWS as f64;
    let codecs = [
        (PageCodec::None, None),
        (PageCodec::Lz4, Some(CompressionType::LZ4_FRAME)),
        (PageCodec::Zstd, Some(CompressionType::ZSTD)),
    ];
    for (codec, compression) in codecs {
        let options = IpcWriteOptions::default().try_with_compression(compression)?;
        let presto = PrestoPages::new(&batch.schema())?.codec(codec);
        let checked = presto.clone().checksum(true);
        let ipc = IpcPages::new(&batch.schema()).codec(codec);
        let of = |name: &str| Streams {
            name: format!("{name} {codec:?}"),
            batch: &batch,
            options: &options,
        };
        of("presto").measure(cells, &presto, |page| Ok(presto.read(page)?.0))?;
        of("presto checksum").measure(cells, &checked, |page| Ok(checked.read(page)?.0))?;
        of("ipc").measure(cells, &ipc, |page| Ok(ipc.read(page)?.0))?;
    }
    Ok(())
}

/// The rival: streams of arrow-ipc with the codec of the pages.
struct Streams<'a> {
    name: String,
    batch: &'a RecordBatch,
    options: &'a IpcWriteOptions,
}

impl Streams<'_> {
    fn writer(&self, out: Vec<u8>) -> Result<StreamWriter<Vec<u8>>> {
        Ok(StreamWriter::try_new_with_options(out, &self.batch.schema(), self.options.clone())?)
    }

    /// Writes the record batch as a stream.
    fn write(&self, mut out: Vec<u8>) -> Result<Vec<u8>> {
        out.clear();
        let mut writer = self.writer(out)?;
        writer.write(self.batch)?;
        Ok(writer.into_inner()?)
    }

    fn measure(
        &self,
        cells: &mut Cells,
        format: &(impl PageFormat + Clone),
        read: impl Fn(&[u8]) -> Result<RecordBatch>,
    ) -> Result<()> {
        let (mut page, mut stream) = (Vec::new(), self.write(Vec::new())?);
        format.write(self.batch, &mut page)?;
        if read(&page)? != *self.batch {
            return Err("the page does not have the rows".into());
        }
        let (ours, theirs) = (page.clone(), stream.clone());
        let turns = Turns { rounds: 20, warm: 1, calls: 8 };
        let write = [
            timed("ours", |_: &(), _| {
                page.clear();
                Ok(format.write(self.batch, &mut page)?)
            }),
            timed("arrow-ipc stream", |_: &(), _| {
                stream = self.write(std::mem::take(&mut stream))?;
                Ok(stream.len())
            }),
        ];
        let read = [
            timed("ours", |_: &(), _| read(&ours)),
            timed("arrow-ipc stream", |_: &(), _| {
                let mut batches = StreamReader::try_new(&theirs[..], None)?;
                Ok(batches.next().ok_or("a record batch")??)
            }),
        ];
        for (case, mut pair) in [("write", write), ("read", read)] {
            let case = format!("{case} {}", self.name);
            if cells.wants(&case) {
                cells.race(&case, turns, |_| Ok(((), ROWS as f64)), &mut pair)?;
            }
        }
        self.exchange(cells, format)
    }

    fn exchange(&self, cells: &mut Cells, format: &(impl PageFormat + Clone)) -> Result<()> {
        let (batch, case) = (self.batch, format!("exchange {}", self.name));
        if !cells.wants(&case) {
            return Ok(());
        }
        let layout = Order::by(["c1"]).bind(&batch.schema())?;
        let mut pair = [
            timed("ours", |_: &(), _| {
                let partitioner = Partitioner::hash(&layout, PARTITIONS);
                let pool = Pool::unlimited();
                let builder = PartitionBuilder::new(partitioner, &batch.schema(), &pool)?;
                let mut pages = PartitionPages::new(builder, format.clone());
                let mut send = |_, page: Vec<u8>| {
                    black_box(page);
                    Ok(())
                };
                for _ in 0..BATCHES {
                    pages.append(batch)?;
                    pages.flush_from(1 << 20, &mut send)?;
                }
                Ok(pages.finish(&mut send)?)
            }),
            timed("takes and arrow-ipc streams", |_: &(), _| {
                let mut partitioner = Partitioner::hash(&layout, PARTITIONS);
                let (mut ids, mut lists) = (Vec::new(), vec![Vec::new(); PARTITIONS]);
                let mut writers = Vec::new();
                for _ in 0..PARTITIONS {
                    writers.push(self.writer(Vec::new())?);
                }
                for _ in 0..BATCHES {
                    partitioner.assign(batch, &mut ids)?;
                    for (partition, columns) in grouped(&mut lists, batch, &ids) {
                        writers[partition]
                            .write(&RecordBatch::try_new(batch.schema(), columns)?)?;
                    }
                }
                writers.into_iter().try_for_each(|writer| {
                    black_box(writer.into_inner()?);
                    Ok(())
                })
            }),
        ];
        let fresh = |_| Ok(((), (ROWS * BATCHES) as f64));
        cells.race(&case, Turns { rounds: 3, warm: 0, calls: 1 }, fresh, &mut pair)
    }
}
