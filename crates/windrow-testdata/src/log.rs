//! The synthetic change log: `id, lsn, op, payload, amount, ts`, about 105 bytes a row in Arrow.
//!
//! Events are generated in sequence order, in blocks; some stretches of a block are then shuffled,
//! like real deliveries. Only one bit per key (alive or not) grows with the number of keys, so
//! memory is constant for all purposes.
//!
//! The file has a typical Parquet layout: plain encoding, dictionary on `op` only, zstd level 1,
//! row groups of 122,880 rows, 1 MB pages.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

use crate::rng::Rng;
use crate::{Op, Result, Summary};

/// Events per block: a row group is ten of them, a shuffled stretch lies within one.
const BLOCK: usize = 12_288;
const ROW_GROUP: usize = 122_880;
const PAGE_BYTES: usize = 1 << 20;

/// Number of words in payloads; a limited vocabulary compresses like prose.
const WORDS: usize = 10_000;
/// Word ranks are a uniform number to this power: the higher, the more a few words recur.
const RANK_POWER: i32 = 2;
/// Percentages that make the log resemble the life of a table.
const DELETES: u64 = 8;
const NULL_AMOUNTS: u64 = 3;
const NULL_PAYLOADS: u64 = 1;
const SHUFFLED_BLOCKS: u64 = 30;

/// 2026-01-01T00:00:00Z, in microseconds.
const EPOCH: i64 = 1_767_225_600_000_000;

struct Event {
    id: i64,
    lsn: i64,
    ts: i64,
    op: Op,
}

/// Writes `rows` events of exactly `keys` keys (fewer if there are fewer rows).
pub fn write(file: &Path, rows: u64, keys: u64, seed: u64) -> Result<Summary> {
    if keys == 0 && rows > 0 {
        return Err("--keys must be at least 1".into());
    }
    let mut text = Text::new(seed);
    let schema = batch(&[], &mut text)?.schema();
    let mut writer = ArrowWriter::try_new(File::create(file)?, schema, Some(properties()?))?;
    let mut summary = Summary { file: file.to_owned(), rows, ..Summary::default() };
    let mut history = History::new(rows, keys, seed);
    let mut delivery = Rng::new(seed ^ 0xde11);
    let mut block = Vec::with_capacity(BLOCK);
    while history.fill(&mut block) {
        if delivery.percent(SHUFFLED_BLOCKS) {
            let start = delivery.below(block.len() as u64) as usize;
            let end = (start + delivery.between(2, 4096) as usize).min(block.len());
            delivery.shuffle(&mut block[start..end]);
        }
        block.iter().for_each(|event| summary.count(event.op));
        writer.write(&batch(&block, &mut text)?)?;
    }
    writer.close()?;
    summary.live = history.live;
    summary.bytes = std::fs::metadata(file)?.len();
    Ok(summary)
}

/// The events in the order in which they were committed.
struct History {
    rng: Rng,
    rows_left: u64,
    keys: u64,
    /// Keys `0..born` have had an event. A key's `id` is its index in a permutation.
    born: u64,
    alive: Vec<u64>,
    live: u64,
    stride: u64,
    lsn: i64,
    ts: i64,
}

impl History {
    fn new(rows: u64, keys: u64, seed: u64) -> Self {
        let keys = keys.min(rows);
        Self {
            rng: Rng::new(seed),
            rows_left: rows,
            keys,
            born: 0,
            alive: vec![0; keys.div_ceil(64) as usize],
            live: 0,
            stride: coprime_stride(keys),
            lsn: 0,
            ts: EPOCH,
        }
    }

    /// Replaces the block by the next one; returns false at the end.
    fn fill(&mut self, block: &mut Vec<Event>) -> bool {
        block.clear();
        while block.len() < BLOCK && self.rows_left > 0 {
            let event = self.event();
            block.push(event);
        }
        !block.is_empty()
    }

    fn event(&mut self) -> Event {
        // With this probability of a new key, all keys are born by the last row.
        let fresh = self.born == 0 || self.rng.below(self.rows_left) < self.keys - self.born;
        let key = if fresh {
            self.born += 1;
            self.born - 1
        } else {
            self.rng.below(self.born)
        };
        let (word, bit) = ((key / 64) as usize, 1 << (key % 64));
        let op = if self.alive[word] & bit == 0 {
            Op::Insert
        } else if self.rng.percent(DELETES) {
            Op::Delete
        } else {
            Op::Update
        };
        match op {
            Op::Insert => {
                self.alive[word] |= bit;
                self.live += 1;
            }
            Op::Delete => {
                self.alive[word] &= !bit;
                self.live -= 1;
            }
            Op::Update => {}
        }
        self.rows_left -= 1;
        // Sequence numbers have gaps, as log positions do; a commit takes up to 2 ms.
        self.lsn += self.rng.between(1, 5) as i64;
        self.ts += self.rng.below(2_000) as i64;
        let id = (u128::from(key) * u128::from(self.stride) % u128::from(self.keys)) as i64;
        Event { id, lsn: self.lsn, ts: self.ts, op }
    }
}

/// Returns a stride that visits every residue of `keys` once, in a random-looking order.
fn coprime_stride(keys: u64) -> u64 {
    fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    // The golden ratio spreads multiples evenly (Knuth 6.4).
    let start = (keys as f64 * 0.618_033_988_749_895) as u64;
    (start.max(1)..).find(|&stride| gcd(stride, keys) == 1).unwrap_or(1)
}

/// Payloads and amounts: the columns besides key, sequence number and time.
struct Text {
    rng: Rng,
    words: Vec<String>,
}

impl Text {
    fn new(seed: u64) -> Self {
        const ONSETS: [&str; 16] =
            ["b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pl"];
        const VOWELS: [&str; 6] = ["a", "e", "i", "o", "u", "ea"];
        let mut rng = Rng::new(seed ^ 0x7e87);
        let words = (0..WORDS)
            .map(|_| {
                let mut word = String::new();
                for _ in 0..rng.between(2, 4) {
                    word.push_str(ONSETS[rng.below(16) as usize]);
                    word.push_str(VOWELS[rng.below(6) as usize]);
                }
                word
            })
            .collect();
        Self { rng, words }
    }

    /// A JSON object of 56 to 72 bytes.
    fn payload(&mut self) -> String {
        const STATES: [&str; 4] = ["new", "open", "held", "done"];
        let length = self.rng.between(56, 72) as usize;
        let state = STATES[self.rng.below(4) as usize];
        let mut text = format!("{{\"state\":\"{state}\",\"note\":\"");
        while text.len() < length - 2 {
            // A few words are frequent and most are rare, as in prose.
            let uniform = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let rank = (uniform.powi(RANK_POWER) * WORDS as f64) as usize;
            text.extend([&self.words[rank], " "]);
        }
        text.truncate(length - 2);
        text + "\"}"
    }
}

/// A record batch of `events`, whose texts and amounts are drawn here.
fn batch(events: &[Event], text: &mut Text) -> Result<RecordBatch> {
    let values = |_| {
        let payload = (!text.rng.percent(NULL_PAYLOADS)).then(|| text.payload());
        let has_amount = !text.rng.percent(NULL_AMOUNTS);
        (payload, has_amount.then(|| text.rng.between(100, 99_999) as f64 / 100.0))
    };
    let (payloads, amounts): (Vec<_>, Vec<_>) = events.iter().map(values).unzip();
    let id = Int64Array::from_iter_values(events.iter().map(|event| event.id));
    let lsn = Int64Array::from_iter_values(events.iter().map(|event| event.lsn));
    let op = StringArray::from_iter_values(events.iter().map(|event| event.op.as_str()));
    let ts = TimestampMicrosecondArray::from_iter_values(events.iter().map(|event| event.ts));
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(id) as ArrayRef, false),
        ("lsn", Arc::new(lsn), false),
        ("op", Arc::new(op), false),
        ("payload", Arc::new(StringArray::from(payloads)), true),
        ("amount", Arc::new(Float64Array::from(amounts)), true),
        ("ts", Arc::new(ts), false),
    ])?)
}

fn properties() -> Result<WriterProperties> {
    Ok(WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled(ColumnPath::from("op"), true)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_data_page_size_limit(PAGE_BYTES)
        // The default of 20,000 rows a page would end most pages long before 1 MB.
        .set_data_page_row_count_limit(usize::MAX)
        .build())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Event, History, Op};

    fn events(rows: u64, keys: u64) -> (Vec<Event>, u64) {
        let mut history = History::new(rows, keys, 3);
        let (mut all, mut block) = (Vec::new(), Vec::new());
        while history.fill(&mut block) {
            all.append(&mut block);
        }
        (all, history.live)
    }

    #[test]
    fn every_key_is_born_once_and_lives_as_rows_do() {
        let (events, live) = events(40_000, 10_000);
        let mut alive: HashMap<i64, bool> = HashMap::new();
        let mut last = 0;
        for event in &events {
            assert!(event.lsn > last, "sequence numbers ascend");
            last = event.lsn;
            let was = alive.insert(event.id, event.op != Op::Delete);
            assert_eq!(was == Some(true), event.op != Op::Insert);
        }
        assert_eq!(events.len(), 40_000);
        assert_eq!(alive.len(), 10_000);
        assert!(alive.keys().all(|id| (0..10_000).contains(id)));
        assert_eq!(alive.values().filter(|&&alive| alive).count() as u64, live);
    }

    #[test]
    fn fewer_rows_than_keys_are_all_inserts() {
        let (events, live) = events(5, 100);
        assert!(events.iter().all(|event| event.op == Op::Insert));
        assert_eq!(live, 5);
        assert!(History::new(0, 100, 3).alive.is_empty());
    }
}
