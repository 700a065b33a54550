//! Dialects of CSV: separators, quotes, nulls, commas, preambles, encodings. Each input gives the
//! expected rows, or is refused with a reason.

use std::fs::File;

use crate::common::{Ran, Work, ran};

/// Runs with a file on standard input.
fn piped(work: &Work, line: &str, name: &str) -> Ran {
    let mut command = work.command(line);
    command.stdin(File::open(work.path(name)).expect("a file"));
    ran(command.spawn().expect("started"))
}

/// The output of `sort` for a text with these options, as NDJSON.
struct Case {
    text: &'static str,
    options: &'static str,
    /// The lines, shortened; `id` is the first column.
    expected: &'static str,
}

const fn case(text: &'static str, options: &'static str, expected: &'static str) -> Case {
    Case { text, options, expected }
}

const READ: &[Case] = &[
    // Detected separators.
    case("id,v\n2,a\n1,b\n", "", r#"{"id":1,"v":"b"}{"id":2,"v":"a"}"#),
    case("id;v\n2;a,x\n1;b\n", "", r#"{"id":1,"v":"b"}{"id":2,"v":"a,x"}"#),
    case("id\tv\n2\ta;x\n1\tb\n", "", r#"{"id":1,"v":"b"}{"id":2,"v":"a;x"}"#),
    case("id|v\n2|a\n1|b\n", "", r#"{"id":1,"v":"b"}{"id":2,"v":"a"}"#),
    case("id:v\n2:a\n1:b\n", "--csv-delimiter :", r#"{"id":1,"v":"b"}{"id":2,"v":"a"}"#),
    case("id\tv\n1\ta\n", "--csv-delimiter tab", r#"{"id":1,"v":"a"}"#),
    case("sep=;\r\nid;v\r\n1;a,b\r\n", "", r#"{"id":1,"v":"a,b"}"#),
    case("sep=\t\nid\tv\n1\ta\n", "", r#"{"id":1,"v":"a"}"#),
    case("\u{feff}sep=;\nid;v\n1;a\n", "", r#"{"id":1,"v":"a"}"#),
    case("id\n\"a;b\"\n", "", r#"{"id":"a;b"}"#),
    case("id;v\n\"2;\n\";\"a\"\n1;x\n", "", r#"{"id":"1","v":"x"}{"id":"2;\n","v":"a"}"#),
    // Nulls.
    case("id,v\n2,\\N\n1,\n", r"--csv-null \N", r#"{"id":1,"v":""}{"id":2,"v":null}"#),
    case("id,v\n1,\\N\n2,9\n", r"--csv-null \N", r#"{"id":1,"v":null}{"id":2,"v":9}"#),
    case(
        "id,v\n1,NULL\n2,10\n3,NA\n4,9\n",
        "--csv-null NULL --csv-null NA",
        r#"{"id":1,"v":null}{"id":2,"v":10}{"id":3,"v":null}{"id":4,"v":9}"#,
    ),
    case(
        "id,v\n1,\n2,10\n3,-\n",
        "--csv-null -",
        r#"{"id":1,"v":null}{"id":2,"v":10}{"id":3,"v":null}"#,
    ),
    case(
        "id,v\n1,true\n2,\n3,NULL\n",
        "--csv-null NULL",
        r#"{"id":1,"v":true}{"id":2,"v":null}{"id":3,"v":null}"#,
    ),
    case(
        "id,v\n1,TRUE\n2,\n",
        "--csv-null NULL --schema v:bool",
        r#"{"id":1,"v":true}{"id":2,"v":null}"#,
    ),
    case(
        "id,v\n1,2026-01-31\n2,\n3,NULL\n",
        "--csv-null NULL",
        r#"{"id":1,"v":"2026-01-31"}{"id":2,"v":null}{"id":3,"v":null}"#,
    ),
    case(
        "id,v\n1,1.5\n2,\n3,NULL\n",
        "--csv-null NULL",
        r#"{"id":1,"v":1.5}{"id":2,"v":null}{"id":3,"v":null}"#,
    ),
    case(
        "id,v\n1,007\n2,NULL\n3,\n",
        "--csv-null NULL",
        r#"{"id":1,"v":"007"}{"id":2,"v":null}{"id":3,"v":""}"#,
    ),
    case(
        "id,v\n1,NULL\n2,\n3,x\n",
        "--csv-null NULL --csv-null=",
        r#"{"id":1,"v":null}{"id":2,"v":null}{"id":3,"v":"x"}"#,
    ),
    case(
        "id,v\n1,\n2,7\n",
        "--csv-null NULL --schema v:int32",
        r#"{"id":1,"v":null}{"id":2,"v":7}"#,
    ),
    case("id,v\n1,a.b\n2,axb\n", "--csv-null a.b", r#"{"id":1,"v":null}{"id":2,"v":"axb"}"#),
    // Decimal commas.
    case("id;v\n1;10,25\n2;9,5\n", "--csv-decimal comma", r#"{"id":1,"v":10.25}{"id":2,"v":9.5}"#),
    case(
        "id;v\n1;-1,5e3\n2;7\n3;\n",
        "--csv-decimal comma",
        r#"{"id":1,"v":-1500.0}{"id":2,"v":7.0}{"id":3,"v":null}"#,
    ),
    case("id,v\n1,\"1,5\"\n2,2\n", "--csv-decimal comma", r#"{"id":1,"v":1.5}{"id":2,"v":2.0}"#),
    case("id;v\n1;1.500\n2;2\n", "--csv-decimal comma", r#"{"id":1,"v":"1.500"}{"id":2,"v":"2"}"#),
    case(
        "id;v\n1;1,5\n2;1,2,3\n",
        "--csv-decimal comma",
        r#"{"id":1,"v":"1,5"}{"id":2,"v":"1,2,3"}"#,
    ),
    case("id;v\n1;00,5\n", "--csv-decimal comma", r#"{"id":1,"v":"00,5"}"#),
    case(
        "id;v\n1;1,50\n",
        "--csv-decimal comma --schema v:decimal128(9,2)",
        r#"{"id":1,"v":1.50}"#,
    ),
    case("id;v\n1;1,5\n", "", r#"{"id":1,"v":"1,5"}"#),
    case(
        "id;v\n1;NULL\n2;1,5\n",
        "--csv-decimal comma --csv-null NULL",
        r#"{"id":1,"v":null}{"id":2,"v":1.5}"#,
    ),
    // Quotes and escapes.
    case("id,v\n1,'a,b'\n2,'it''s'\n", "--csv-quote '", r#"{"id":1,"v":"a,b"}{"id":2,"v":"it's"}"#),
    case("id,v\n1,\"a\n2,b\"\"\n", "--csv-quote none", r#"{"id":1,"v":"\"a"}{"id":2,"v":"b\"\""}"#),
    case(
        "id,v\n1,\"a \\\"b\\\", c\"\n2,\"\\\\\"\n",
        r"--csv-escape \",
        r#"{"id":1,"v":"a \"b\", c"}{"id":2,"v":"\\"}"#,
    ),
    case("id,v\n1,\"a\"\"b\\\"\n\"\n", r"--csv-escape \", r#"{"id":1,"v":"a\"b\"\n"}"#),
    case("id,v\n1,a\\b\n", r"--csv-escape \", r#"{"id":1,"v":"a\\b"}"#),
    // Comments and preambles.
    case(
        "# x, \"y\nid,v\n#z\n1,a\n\n#\n2,#b\n",
        "--csv-comment #",
        r##"{"id":1,"v":"a"}{"id":2,"v":"#b"}"##,
    ),
    case("id,v\n1,\"\n#a\"\n#b\n", "--csv-comment #", r##"{"id":1,"v":"\n#a"}"##),
    case("of \"2026\n\nid,v\n1,a\n", "--csv-skip-lines 2", r#"{"id":1,"v":"a"}"#),
    case("of 2026\n# x\nid;v\n1;a\n", "--csv-skip-lines 1 --csv-comment #", r#"{"id":1,"v":"a"}"#),
    case("junk\n1;a\n", "--csv-skip-lines 1 --csv-no-header", r#"{"id":1,"v":"a"}"#),
    case("\u{feff}of 2026\nid,v\n1,a\n", "--csv-skip-lines 1", r#"{"id":1,"v":"a"}"#),
];

#[test]
fn options_of_inputs() {
    for Case { text, options, expected } in READ {
        for from in ["in/a.csv", "-"] {
            let work = Work::new();
            work.put("in/a.csv", text);
            let key = if options.contains("no-header") { "column_1" } else { "id" };
            let sort = format!("sort {from} --by {key} -o out/o.ndjson {options}");
            piped(&work, &sort, "in/a.csv").succeeds();
            let found = work.text("out/o.ndjson").replace("}\n", "}");
            let found = found.replace("column_1", "id").replace("column_2", "v");
            assert_eq!(&found, expected, "{text:?} {options}");
        }
    }
}

/// CSV sorted to CSV, with the same options for both.
const WRITTEN: &[Case] = &[
    case("id;v\n2;a\n1;b\n", "", "id;v\n1;b\n2;a\n"),
    case("id|v\n2|a\n1|b\n", "", "id|v\n1|b\n2|a\n"),
    case("id\tv\n2\ta\n1\tb\n", "", "id\tv\n1\tb\n2\ta\n"),
    case("id;v\n2;a\n1;b\n", "--csv-delimiter ;", "id;v\n1;b\n2;a\n"),
    case("id,v\n2,\\N\n1,\n", r"--csv-null \N", "id,v\n1,\n2,\\N\n"),
    case("id,v\n2,NA\n1,NULL\n", "--csv-null NULL --csv-null NA", "id,v\n1,NULL\n2,NULL\n"),
    case("id;v\n10,5;a\n9,25;b\n", "--csv-decimal comma", "id;v\n9,25;b\n10,5;a\n"),
    case("id,v\n\"10,5\",a\n\"9,25\",b\n", "--csv-decimal comma", "id,v\n\"9,25\",b\n\"10,5\",a\n"),
    case("id;v\n1,50;a\n", "--csv-decimal comma --schema id:decimal128(9,2)", "id;v\n1,50;a\n"),
    case("id,v\n2,'a,b'\n1,it's\n", "--csv-quote '", "id,v\n1,'it''s'\n2,'a,b'\n"),
    case("id\tv\n2\t\"a\n1\tb\n", "--csv-quote none", "id\tv\n1\tb\n2\t\"a\n"),
    case("#x\nid,v\n2,#a\n1,b\n", "--csv-comment #", "id,v\n1,b\n2,#a\n"),
    case("of 2026\nid,v\n2,a\n1,b\n", "--csv-skip-lines 1", "id,v\n1,b\n2,a\n"),
    case("id,v\n2,\"a\\\",\"\n1,b\n", r"--csv-escape \", "id,v\n1,b\n2,\"a\"\",\"\n"),
    case("sep=;\nid;v\n2;a\n1;b\n", "", "id;v\n1;b\n2;a\n"),
];

#[test]
fn options_of_outputs() {
    for Case { text, options, expected } in WRITTEN {
        let work = Work::new();
        work.put("in/a.csv", text);
        work.run(&format!("sort in/a.csv --by id -o out/o.csv {options}")).succeeds();
        assert_eq!(&work.text("out/o.csv"), expected, "{text:?} {options}");
    }
    // The extension of a name sets the separator.
    let work = Work::new();
    work.put("in/a.tsv", "id\tv\n1\ta\n");
    work.put("in/b.csv", "id;v\n1;a\n");
    for (options, expected) in [
        ("in/a.tsv -o out/o.csv", "id,v\n1,a\n"),
        ("in/b.csv -o out/o.tsv", "id\tv\n1\ta\n"),
        ("in/b.csv -o out/o.csv --csv-delimiter ;", "id;v\n1;a\n"),
    ] {
        work.run(&format!("sort --by id {options}")).succeeds();
        let name = if options.contains("tsv -o") || !options.contains(".tsv") {
            "out/o.csv"
        } else {
            "out/o.tsv"
        };
        assert_eq!(work.text(name), expected, "{options}");
    }
}

#[test]
fn what_would_be_read_back_as_something_else_is_refused() {
    let work = Work::new();
    work.put("in/a.ndjson", "{\"id\":1,\"v\":\"NULL\"}\n{\"id\":2,\"v\":null}\n");
    let sort = "sort in/a.ndjson --by id -o out/o.csv";
    work.run(&format!("{sort} --csv-null NULL")).succeeds();
    assert_eq!(work.text("out/o.csv"), "id,v\n1,\"NULL\"\n2,NULL\n");
    std::fs::remove_file(work.path("out/o.csv")).expect("removed");
    work.run(&format!("{sort} --csv-null NULL --csv-quote none"))
        .says(3, &["\"v\"", "\"NULL\"", "--csv-null"]);
    work.put("in/a.ndjson", "{\"id\":1,\"v\":\"\"}\n{\"id\":2,\"v\":null}\n");
    work.run(&format!("{sort} --csv-quote none")).says(3, &["\"v\"", "\"\"", "--csv-null"]);
    work.holds_only(&[]);
    for value in ["a,b", "a\\nb", "a\\rb"] {
        work.put("in/a.ndjson", format!("{{\"id\":1,\"v\":\"{value}\"}}\n"));
        work.run(&format!("{sort} --csv-quote none")).says(3, &["\"v\"", "quotes", "--csv-quote"]);
        work.holds_only(&[]);
    }
    work.put("in/a.ndjson", "{\"a,b\":1}\n");
    let sort = "sort in/a.ndjson --by \"a,b\" -o out/o.csv --csv-quote none";
    work.run(sort).says(2, &["a,b", "--csv-quote"]);
    work.put("in/a.ndjson", "{\"v\":null}\n{\"v\":\"x\"}\n");
    work.run("sort in/a.ndjson --by v -o out/o.csv --csv-quote none").says(3, &["\"v\"", "null"]);
}

#[test]
fn faults_are_told_with_their_line() {
    let work = Work::new();
    for (text, options, parts) in [
        ("x\ny\nid,v\n1,a\n2\n", "--csv-skip-lines 2", &["line 5", "number of fields"][..]),
        ("id,v\n#a\n1,a\n#b\n#c\n2\n", "--csv-comment #", &["line 6", "number of fields"]),
        (
            "id;v\n1;1,5\n2;1.5\n",
            "--csv-decimal comma --schema v:float64",
            &["line 3", "'v'", "point"],
        ),
        ("id,v\n1,x\n", "--csv-null NULL --schema v:bool", &["line 2", "'v'", "\"x\""]),
        ("id,v\n1,\"a\\\"\n", r"--csv-escape \", &["line 2", "never closed"]),
        ("id,v\n1,'a\n", "--csv-quote '", &["line 2", "never closed"]),
    ] {
        work.put("in/a.csv", text);
        work.run(&format!("sort in/a.csv --by id -o out/o.csv {options}")).says(3, parts);
        work.holds_only(&[]);
    }
    work.put("in/a.csv", "a\n".repeat(600_000));
    work.run("sort in/a.csv --by id -o out/o.csv --csv-skip-lines 600000")
        .says(3, &["--csv-skip-lines", "1048576"]);
    work.put("in/a.csv", b"id,v\n1,\xFF\n");
    work.run("sort in/a.csv --by id -o out/o.csv --csv-quote none")
        .says(3, &["UTF-8", "--charset"]);
    let late: String = (0..300_000).map(|row| format!("{row},abc\n")).collect();
    work.put("in/a.csv", [b"id,v\n", late.as_bytes(), b"1,\xFFa\xFF\n"].concat());
    work.run("sort in/a.csv --by id -o out/o.csv --csv-quote none")
        .says(3, &["line 300002", "UTF-8"]);
    for (options, parts) in [
        ("--csv-delimiter ab", &["--csv-delimiter", "one character"][..]),
        ("--csv-delimiter \"", &["--csv-delimiter", "--csv-quote"]),
        ("--csv-comment , --csv-delimiter ,", &["--csv-comment", "--csv-delimiter"]),
        ("--csv-quote é", &["--csv-quote", "ASCII"]),
        ("--charset klingon", &["klingon", "utf-16le"]),
    ] {
        work.run(&format!("sort in/a.csv --by id -o out/o.csv {options}")).says(2, parts);
    }
}

#[test]
fn text_of_other_encodings() {
    let work = Work::new();
    let utf16 = |text: &str, mark: bool, little: bool| -> Vec<u8> {
        let units = mark.then_some(0xFEFF).into_iter().chain(text.encode_utf16());
        units
            .flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() })
            .collect()
    };
    let text = "id,v\n2,é€\n1,日本\n";
    let sorted = "id,v\n1,日本\n2,é€\n";
    for (bytes, options) in [
        (utf16(text, true, true), ""),
        (utf16(text, true, false), ""),
        (utf16(text, true, false), "--charset utf-16"),
        (utf16(text, false, true), "--charset utf-16le"),
        (utf16(text, false, false), "--charset utf-16be"),
        (text.into(), "--charset utf-8"),
    ] {
        work.put("in/a.csv", &bytes);
        work.run(&format!("sort in/a.csv --by id -o out/o.csv {options}")).succeeds();
        assert_eq!(work.text("out/o.csv"), sorted, "{options}");
        let from_pipe = format!("sort - --by id -o out/o.csv {options}");
        piped(&work, &from_pipe, "in/a.csv").succeeds();
        assert_eq!(work.text("out/o.csv"), sorted, "{options}");
    }
    work.put("in/a.csv", b"id;v\n2;caf\xe9 \x80\n1;na\xefve\n");
    work.run("sort in/a.csv --by id -o out/o.csv --charset latin1").succeeds();
    assert_eq!(work.text("out/o.csv"), "id;v\n1;naïve\n2;café €\n");
    work.put("in/a.ndjson", utf16("{\"id\":2}\n{\"id\":1}\n", true, true));
    work.run("sort in/a.ndjson --by id -o out/o.csv").succeeds();
    assert_eq!(work.text("out/o.csv"), "id\n1\n2\n");
    // After the sample, a fault is reported with its line.
    let rows: String = (0..300_000).map(|row| format!("{row},é\n")).collect();
    let mut bytes = utf16(&format!("id,v\n{rows}"), true, true);
    work.put("in/a.csv", &bytes);
    work.run("sort in/a.csv --by id:desc -o out/o.csv --memory-limit 64MiB").succeeds();
    assert!(work.text("out/o.csv").starts_with("id,v\n299999,é\n299998,é\n"));
    bytes.extend([0x31, 0, 0x2c, 0, 0x00, 0xd8, 0x0a, 0]);
    work.put("in/a.csv", &bytes);
    work.run("sort in/a.csv --by id -o out/o.csv").says(3, &["line 300002", "UTF-16LE"]);
}

#[test]
fn empty_files_among_others() {
    let work = Work::new();
    work.put("in/a.csv", "");
    work.put("in/b.csv", "id,v\n2,b\n");
    work.put("in/c.csv", "\n");
    work.put("in/d.csv", "id,v\n1,a\n");
    for (verb, expected) in [
        ("sort in --by id", "id,v\n1,a\n2,b\n"),
        ("merge in --by id", "id,v\n1,a\n2,b\n"),
        ("compact in --key id", "id,v\n1,a\n2,b\n"),
        ("head in", "id,v\n2,b\n1,a\n"),
        ("sort in/c.csv in/b.csv in/a.csv --by id", "id,v\n2,b\n"),
        ("sort in --by id --union-by-name", "id,v\n1,a\n2,b\n"),
    ] {
        work.run(&format!("{verb} -o out/o.csv")).succeeds();
        assert_eq!(work.text("out/o.csv"), expected, "{verb}");
    }
    work.run("sort in/a.csv in/c.csv --by id -o out/p.csv").says(3, &["in/a.csv", "empty"]);
    work.run("check in --by id").succeeds();
    work.put("in/a.ndjson", "");
    work.put("in/b.ndjson", "{\"id\":2}\n");
    work.run("sort in/a.ndjson in/b.ndjson --by id -o out/o.csv").succeeds();
    assert_eq!(work.text("out/o.csv"), "id\n2\n");
    work.run("sort in/a.ndjson --by id -o out/p.csv").says(3, &["in/a.ndjson", "--schema"]);
}

#[test]
fn null_and_empty_differ_from_csv_to_parquet_and_back() {
    let work = Work::new();
    let mut text = String::from("id,v,w\n");
    for id in 0..60_000 {
        // Quotes inside of fields, quoted and unquoted.
        let v = ["", "\"\"", "\"a,\"\",b\"", "5'10\"", "\"\"\"\""][id % 5];
        text += &format!("{id},{v},{}\n", ["", "\"\"", "x"][id % 3]);
    }
    work.put("in/a.csv", &text);
    work.run("sort in/a.csv --by id -o out/o.parquet").succeeds();
    work.run("sort out/o.parquet --by id -o out/o.csv").succeeds();
    // A quote within a field is written in quotes.
    let expected = text.replace("5'10\"", "\"5'10\"\"\"");
    assert!(work.text("out/o.csv") == expected, "the rows are the same");
    work.run("sort in/a.csv --by id -o out/c.csv").succeeds();
    assert!(work.text("out/c.csv") == expected, "as text");
}

#[test]
fn empty_strings_stand_anywhere_in_long_rows() {
    let work = Work::new();
    // Rows longer than a block, so that blocks end at any byte of a row.
    let fields = 90_001;
    let names: Vec<String> = (0..fields).map(|n| format!("c{n}")).collect();
    for lead in 0..5 {
        let row = |n: usize| if n == 0 { "x".repeat(lead) + "y" } else { "\"\"".to_owned() };
        let fields: Vec<String> = (0..fields).map(row).collect();
        let text = format!("{}\n{}\n", names.join(","), fields.join(","));
        work.put("in/a.csv", &text);
        work.run("head in/a.csv --rows 1 -o out/o.csv").succeeds();
        assert!(work.text("out/o.csv") == text, "{lead}");
    }
}
