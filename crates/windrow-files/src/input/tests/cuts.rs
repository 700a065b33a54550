//! Cuts between blocks have no effect: for any block size and order of decoding, rows, row numbers
//! and messages equal the result of a single block, and of a parser without blocks.

use std::thread;

use crate::input::opened::{About, Piece};
use crate::input::source::origin::Origin;
use crate::input::text::blocks::Most;
use crate::input::text::dialect::{Columns, Dialect};
use crate::input::text::file::TextFile;
use crate::input::text::named::NamedTypes;

use super::*;

/// A reproducible generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most as u64) as usize
    }
}

/// Creates a file with `text` and the columns of `schema`.
fn file(path: &Path, text: &[u8], dialect: &Dialect, schema: &Schema) -> TextFile {
    fs::write(path, text).unwrap();
    let origin = Origin::of_path(path, &ReadOptions::default()).unwrap();
    let schema = Arc::new(schema.clone());
    TextFile {
        origin: Arc::new(origin),
        dialect: dialect.clone(),
        columns: Columns { named: NamedTypes::of(Some(&schema), &schema, false), schema },
        line_bytes: 4,
        longest: 4,
        about: About::default(),
    }
}

/// Returns the rows as text, or the message. All blocks are decoded before any is finished, the
/// last block first.
fn read_in_blocks(file: &TextFile, batch_rows: usize, most: Most) -> Result<Vec<String>, String> {
    let told = |error: Error| error.to_string();
    let mut pieces = Vec::new();
    for piece in file.pieces(batch_rows, most, &Watch::default()).map_err(told)? {
        let is_fault = piece.is_err();
        pieces.push(piece);
        if is_fault {
            break;
        }
    }
    for piece in pieces.iter_mut().rev() {
        if let Ok(Piece::Text(text)) = piece {
            text.decode();
        }
    }
    let mut rows = Vec::new();
    for piece in pieces {
        let batches = match piece.map_err(told)? {
            Piece::Text(text) => text.finish().map_err(told)?,
            Piece::Rows(batch) => vec![batch],
            Piece::Left(_) => Vec::new(),
        };
        for batch in batches {
            assert!(batch.num_rows() <= batch_rows);
            rows.extend(shown(&batch));
        }
    }
    Ok(rows)
}

fn shown(batch: &RecordBatch) -> Vec<String> {
    let row = |row| {
        let values = batch.columns().iter().map(|column| {
            let text = column.as_string::<i32>();
            text.is_valid(row).then(|| text.value(row))
        });
        format!("{:?}", values.collect::<Vec<_>>())
    };
    (0..batch.num_rows()).map(row).collect()
}

fn texts(columns: &[&str]) -> Schema {
    Schema::new(
        columns.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect::<Vec<_>>(),
    )
}

fn whole() -> Most {
    Most { bytes: 1 << 20, records: usize::MAX }
}

/// Reads `text` in blocks of every size; returns the rows, or the message.
#[track_caller]
fn same_in_all_blocks(
    path: &Path,
    text: &[u8],
    dialect: &Dialect,
    schema: &Schema,
) -> Result<Vec<String>, String> {
    let file = file(path, text, dialect, schema);
    let expected = read_in_blocks(&file, 20, whole());
    for bytes in 1..=text.len().clamp(3, 20) {
        for (batch_rows, records) in [(20, usize::MAX), (2, 1), (1, 3)] {
            let found = read_in_blocks(&file, batch_rows, Most { bytes, records });
            let what = || {
                format!(
                    "{:?} {dialect:?} in blocks of {bytes}, {records}",
                    String::from_utf8_lossy(text)
                )
            };
            assert_eq!(found, expected, "{}", what());
        }
    }
    expected
}

fn dialects() -> Vec<CsvOptions> {
    let csv = CsvOptions::default;
    vec![
        csv(),
        csv().has_header(false),
        csv().escape('\\').unwrap(),
        csv().comment('#').unwrap(),
        csv().quote(None).unwrap(),
        csv().quote(Some('#')).unwrap().escape('\\').unwrap(),
        csv().skip_lines(1),
        csv().skip_lines(2).comment('#').unwrap().escape('\\').unwrap().null("a"),
    ]
}

/// Parses the whole text with the parser of arrow.
fn arrow_csv(csv: &CsvOptions, text: &[u8], schema: &Schema) -> Option<Vec<String>> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let text: Vec<u8> = lines.skip(csv.skip_lines).flatten().copied().collect();
    let reader = arrow_csv::ReaderBuilder::new(Arc::new(schema.clone()))
        .with_format(csv.format(false).unwrap())
        .build(&text[..])
        .ok()?;
    let batches: Result<Vec<_>, _> = reader.collect();
    Some(batches.ok()?.iter().flat_map(shown).collect())
}

#[test]
fn csv_is_the_same_in_blocks_of_every_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    let mut random = Random(1);
    let of_one: [&[u8]; 11] =
        [b"a", b"\"", b"\"\"", b"\n", b"\r\n", b"\r", b"\\", b"#", b"\"a\n#\"", b"#\"x\n", b"\n\n"];
    let of_two: [&[u8]; 9] = [
        b"a,b\n",
        b"\"a\n,b\",c\n",
        b",\r\n",
        b"5'10\",\"\"\"\"\n",
        b"#\"x\n",
        b"a,\"\\\"\\\\\"\n",
        b"\n",
        b"\"\r\n\",#\r",
        b",",
    ];
    let mut kinds = [0; 3];
    for round in 0..1000 {
        let csv = &dialects()[round % dialects().len()];
        let (columns, pieces): (&[&str], &[&[u8]]) = match random.below(2) {
            0 => (&["x"], &of_one),
            _ => (&["x", "y"], &of_two),
        };
        let mut text: Vec<u8> = Vec::new();
        if round % 7 == 0 {
            text.extend(b"\xEF\xBB\xBF");
        }
        for _ in 0..random.below(10) {
            text.extend(pieces[random.below(pieces.len())]);
        }
        let schema = texts(columns);
        let found = same_in_all_blocks(&path, &text, &Dialect::Csv(csv.clone()), &schema);
        kinds[match &found {
            Ok(rows) if rows.is_empty() => 0,
            Ok(_) => 1,
            Err(_) => 2,
        }] += 1;
        // An unclosed quote is an error here, not in arrow.
        match (found, arrow_csv(csv, &text, &schema)) {
            (Ok(rows), expected) => {
                // Arrow takes a quoted text for null as null.
                let null = format!("Some({:?})", csv.null_text());
                let plain = |rows: Vec<String>| rows.join("\n").replace(&null, "None");
                let text = String::from_utf8_lossy(&text);
                assert_eq!(Some(plain(rows)), expected.map(plain), "{text:?}");
            }
            (Err(told), Some(_)) => assert!(told.contains("never closed"), "{told}"),
            (Err(_), None) => {}
        }
    }
    assert!(kinds.iter().all(|kind| *kind > 80), "{kinds:?}");
}

#[test]
fn every_short_csv_is_the_same_in_blocks_of_every_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    let alphabet = *b"a\"\n\r\\#";
    let schema = texts(&["x"]);
    for (csv, length) in dialects().into_iter().zip([4, 3, 3, 4, 3, 3, 3, 3]) {
        for number in 0..alphabet.len().pow(length) {
            let digits =
                (0..length).map(|place| number / alphabet.len().pow(place) % alphabet.len());
            let body: Vec<u8> = digits.map(|digit| alphabet[digit]).collect();
            let head: &[u8] = if csv.has_header { b"x\n" } else { b"" };
            let text = [head, &body].concat();
            let _either = same_in_all_blocks(&path, &text, &Dialect::Csv(csv.clone()), &schema);
        }
    }
}

#[test]
fn ndjson_is_the_same_in_blocks_of_every_size() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.ndjson");
    let mut random = Random(2);
    // A record on one line, several records, a part of one; lines without a record; invalid JSON.
    let pieces: [&str; 16] = [
        "{\"a\":\"1\"}\n",
        "{\"a\":\"2\"}\r\n",
        "{\"a\":\"3\"}",
        "{\n\"a\"\n:\n\"4\"\n}\n",
        "{\"b\":\"}\\n{\"}\n",
        "{\"b\":\"}\n{\"}\n",
        "{\"b\":\"\\\"}\n{\\\\\"}\n",
        "null\n",
        " \n",
        "\n",
        "{}\n",
        "{\"a\":null}\n {\"a\":7}\n",
        "\u{feff}{\"a\":\"5\"}\n",
        "{\"a\":6,\n\"b\":true}\n",
        "{\"a\" 1}\n",
        "{\"a\":",
    ];
    let schema = texts(&["a", "b"]);
    let mut kinds = [0; 2];
    for round in 0..400 {
        // Faults are rare.
        let most = if round % 2 == 0 { pieces.len() } else { pieces.len() - 2 };
        let text: String = (0..random.below(8)).map(|_| pieces[random.below(most)]).collect();
        let found = same_in_all_blocks(&path, text.as_bytes(), &Dialect::Ndjson, &schema);
        kinds[usize::from(found.is_err())] += 1;
        let lines = text.split_inclusive('\n').map(|line| {
            let line = line.strip_prefix('\u{feff}').unwrap_or(line);
            if line.trim() == "null" { "\n" } else { line }
        });
        let plain: String = lines.collect();
        let reader = arrow_json::ReaderBuilder::new(Arc::new(schema.clone()))
            .with_coerce_primitive(true)
            .with_strict_mode(true)
            .build(plain.as_bytes())
            .unwrap();
        let batches: Result<Vec<_>, _> = reader.collect();
        let expected = batches.map(|batches| batches.iter().flat_map(shown).collect::<Vec<_>>());
        assert_eq!(found.ok(), expected.ok(), "{text:?}");
    }
    assert!(kinds.iter().all(|kind| *kind > 60), "{kinds:?}");
}

/// The rows or the faults of all threads, each with the first row.
type TakenBy = Result<Vec<(u64, RecordBatch)>, Vec<(u64, String)>>;

/// Reads the unit on several threads. Returns the rows in order, or the messages.
fn read_by(inputs: &Inputs, threads: usize) -> TakenBy {
    let unit = inputs.units[0].open(&Watch::default()).unwrap();
    let work = || {
        let mut reader = unit.reader();
        let mut rows = Vec::new();
        loop {
            match reader.next() {
                Ok(Step::Rows(batch, row)) => rows.push((row, batch)),
                Ok(Step::Yield) => {}
                Ok(Step::End) => return Ok(rows),
                Err((row, error)) => return Err((row, error.to_string())),
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let (mut rows, mut errors) = (Vec::new(), Vec::new());
        for worker in workers {
            match worker.join().unwrap() {
                Ok(some) => rows.extend(some),
                Err(error) => errors.push(error),
            }
        }
        rows.sort_by_key(|(row, _)| *row);
        if errors.is_empty() { Ok(rows) } else { Err(errors) }
    })
}

#[test]
fn threads_number_rows_as_one_does() {
    let dir = tempfile::tempdir().unwrap();
    let note = |i: i64| if i % 5 == 0 { format!("\"line\n{i}\"") } else { "plain".to_owned() };
    let csv: String = (0..30_000).map(|i| format!("{i},{}\n", note(i))).collect();
    fs::write(dir.path().join("a.csv"), format!("id,note\n{csv}")).unwrap();
    let json = |i: i64| match i % 9 {
        0 => format!("{{\n  \"id\": {i},\n  \"note\": \"x\"\n}}\n"),
        // Invalid JSON after the sample, but accepted.
        1 if i > 12_000 => format!("{{\"id\":{i},\"note\":\"}}\n{{\"}}\n"),
        _ => format!("{{\"id\":{i},\"note\":\"plain\"}}\n"),
    };
    let json: String = (0..30_000).map(json).collect();
    fs::write(dir.path().join("a.ndjson"), json).unwrap();
    for name in ["a.csv", "a.ndjson"] {
        let inputs = open(&dir, &[name], &options(100)).unwrap();
        let expected = read(&inputs, 100).unwrap();
        assert_eq!(expected.num_rows(), 30_000);
        for threads in [1, 2, 7] {
            let rows = read_by(&inputs, threads).unwrap();
            let mut next = 0;
            for (row, batch) in &rows {
                assert_eq!(*row, next, "{name}");
                next += batch.num_rows() as u64;
            }
            let batches = rows.iter().map(|(_, batch)| batch);
            assert_eq!(concat_batches(inputs.schema(), batches).unwrap(), expected, "{name}");
        }
    }
}

#[test]
fn the_first_of_several_faults_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let csv: String =
        (0..20_000).map(|i| if i > 15_000 { "x\n".to_owned() } else { format!("{i}\n") }).collect();
    fs::write(dir.path().join("a.csv"), format!("id\n{csv}")).unwrap();
    let inputs = open(&dir, &["a.csv"], &options(50)).unwrap();
    for _ in 0..20 {
        let errors = read_by(&inputs, 8).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].1.contains("line 15003: "), "{errors:?}");
    }
}
