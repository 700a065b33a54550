//! Compressed text, in and out.

use std::fs::File;
use std::io::{Read, Write};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::common::{Work, read_parquet, write_log};

const NAMES: [&str; 5] = ["gz", "zst", "bz2", "xz", "lz4"];

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("written");
    encoder.finish().expect("finished")
}

#[test]
fn text_comes_back_through_every_compressor() {
    let work = Work::new();
    write_log(&work.path("in/log.parquet"), 60_000);
    work.run("sort in/log.parquet --by lsn -o out/plain.csv").succeeds();
    work.run("sort in/log.parquet --by lsn -o out/plain.ndjson").succeeds();
    let (csv, ndjson) = (work.read("out/plain.csv"), work.read("out/plain.ndjson"));
    for name in NAMES {
        let packed = format!("out/a.csv.{name}");
        work.run(&format!("sort in/log.parquet --by id -o {packed} --threads 2")).succeeds();
        let bytes = work.read(&packed);
        assert!(bytes.len() < csv.len(), "{name}: {}", bytes.len());
        work.run(&format!("sort in/log.parquet --by id -o {packed} --threads 1")).succeeds();
        assert!(bytes == work.read(&packed), "{name}: the bytes depend on the threads");
        work.run(&format!("sort {packed} --by lsn -o out/b.csv")).succeeds();
        assert!(work.read("out/b.csv") == csv, "{name}");
        work.run(&format!("sort {packed} --by lsn -o out/b.ndjson.{name}")).succeeds();
        work.run(&format!("check out/b.ndjson.{name} --by lsn")).succeeds();
        work.run(&format!("sort out/b.ndjson.{name} --by lsn -o out/c.ndjson")).succeeds();
        assert!(work.read("out/c.ndjson") == ndjson, "{name}");
        let pipe = format!("cat {packed} | {{}} sort - --by lsn -o out/b.csv -q");
        work.shell(&pipe).succeeds();
        assert!(work.read("out/b.csv") == csv, "{name} through a pipe");
    }
    let mut text = Vec::new();
    let file = File::open(work.path("out/a.csv.gz")).expect("there");
    MultiGzDecoder::new(file).read_to_end(&mut text).expect("gzip");
    assert_eq!(text.len(), csv.len());
    let (file, mut text) = (File::open(work.path("out/a.csv.bz2")).expect("there"), Vec::new());
    MultiBzDecoder::new(file).read_to_end(&mut text).expect("bzip2");
    assert_eq!(text.len(), csv.len());
}

#[test]
fn small_files_of_each_kind() {
    let work = Work::new();
    work.put("in/a.csv.gz", gzip("id,v\n2,b\n"));
    work.put("in/b.csv.gz", [gzip("id,v\n"), gzip("1,a\n"), gzip(""), gzip("3,c\n")].concat());
    work.put("in/c.tsv.GZ", gzip("id\tv\n9\tz\n"));
    work.put("in/d.ndjson", gzip("{\"id\":7,\"v\":\"x\"}\n"));
    work.put("in/e.gz", gzip("id,v\n5,e\n"));
    work.put("in/none.csv.gz", gzip("id,v\n"));
    work.put("in/text.csv", "BZh9,v\n2,b\n1,a\n");
    for (inputs, expected) in [
        ("in/a.csv.gz", "2,b\n"),
        ("in/b.csv.gz", "1,a\n3,c\n"),
        ("in/a.csv.gz in/b.csv.gz", "1,a\n2,b\n3,c\n"),
        ("in/*.csv.gz", "1,a\n2,b\n3,c\n"),
        ("in/b.csv.gz in/c.tsv.GZ", "1,a\n3,c\n9,z\n"),
        ("in/d.ndjson", "7,x\n"),
        ("in/d.ndjson in/a.csv.gz", "2,b\n7,x\n"),
        ("in/e.gz --input-format csv", "5,e\n"),
        ("in/none.csv.gz", ""),
        ("in/none.csv.gz in/a.csv.gz", "2,b\n"),
    ] {
        work.run(&format!("sort {inputs} --by id -o out/o.csv")).succeeds();
        assert_eq!(work.text("out/o.csv"), format!("id,v\n{expected}"), "{inputs}");
    }
    work.run("sort in/text.csv --by BZh9 -o out/o.csv").succeeds();
    assert_eq!(work.text("out/o.csv"), "BZh9,v\n1,a\n2,b\n");
    for name in NAMES {
        work.run(&format!("sort in/none.csv.gz --by id -o out/n.csv.{name}")).succeeds();
        work.run(&format!("sort out/n.csv.{name} in/a.csv.gz --by id -o out/o.csv")).succeeds();
        assert_eq!(work.text("out/o.csv"), "id,v\n2,b\n", "{name}");
        work.run(&format!("head in/a.csv.gz -n 0 -o out/n.ndjson.{name}")).succeeds();
        assert!(!work.read(&format!("out/n.ndjson.{name}")).is_empty());
    }
    // Compressed Parquet is read; compressed partitions are written and read.
    work.run("sort in/a.csv.gz --by id -o out/a.parquet").succeeds();
    assert_eq!(read_parquet(&work.path("out/a.parquet")).num_rows(), 1);
    work.put("in/p.parquet.gz", {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&work.read("out/a.parquet")).expect("written");
        encoder.finish().expect("finished")
    });
    work.run("sort in/p.parquet.gz --by id -o out/o.csv").succeeds();
    assert_eq!(work.text("out/o.csv"), "id,v\n2,b\n");
    let line = "partition in/b.csv.gz --by id --into 2 -o out/d --output-format csv";
    work.run(&format!("{line} --compression gzip")).succeeds();
    assert_eq!(work.names("out/d"), ["part-00000.csv.gz", "part-00001.csv.gz"]);
    work.run("sort out/d --by id -o out/o.csv").succeeds();
    assert_eq!(work.text("out/o.csv"), "id,v\n1,a\n3,c\n");
}

#[test]
fn what_is_damaged_or_cannot_be_is_told() {
    let work = Work::new();
    let text = "id,v\n".to_owned() + &"123456,some text\n".repeat(200_000);
    let whole = gzip(&text);
    work.put("in/cut.csv.gz", &whole[..whole.len() / 2]);
    work.put("in/tail.csv.gz", &whole[..whole.len() - 4]);
    work.put(
        "in/bad.csv.gz",
        [&gzip("id,v\n1,a\n")[..], b"garbage that is longer than a header"].concat(),
    );
    work.put("in/late.csv.gz", gzip(&(text.clone() + "x,late\n")));
    work.put("in/a.csv", "id,v\n1,a\n");
    let sort = |input: &str| work.run(&format!("sort {input} --by id -o out/o.csv"));
    sort("in/cut.csv.gz").says(3, &["in/cut.csv.gz", "gzip", "cut short"]);
    sort("in/tail.csv.gz").says(3, &["in/tail.csv.gz", "gzip", "cut short"]);
    sort("in/bad.csv.gz").says(3, &["in/bad.csv.gz", "gzip", "damaged"]);
    sort("in/late.csv.gz").says(3, &["in/late.csv.gz", "line 200002"]);
    for (line, parts) in [
        ("-o out/o.parquet.gz", ["compressed within", "--compression"]),
        ("-o out/o.csv.gz --compression zstd", ["gzip", "--compression"]),
        ("-o out/o.csv.gz --compression none", ["gzip", "--compression"]),
        ("-o out/o.csv --compression snappy", ["snappy", "gzip, zstd"]),
        ("-o out/o.parquet --compression xz", ["xz", "zstd"]),
        ("-o out/o.arrow --compression bzip2", ["bzip2", "zstd"]),
        ("-o out/o.csv --compression zip", ["zip", "bzip2[:LEVEL]"]),
    ] {
        work.run(&format!("sort in/a.csv --by id {line}")).says(2, &parts);
    }
    work.holds_only(&[]);
    work.run("sort in/a.csv --by id -o out/o.csv --compression gzip:9").succeeds();
    assert!(work.read("out/o.csv").starts_with(b"\x1f\x8b"));
    work.run("sort in/a.csv --by id -o - --output-format csv --compression zstd").succeeds();
}
