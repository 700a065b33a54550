//! Every verb, from and to a bucket, in every format: the bytes equal those of local runs.

use std::fs;

use crate::common::{BUCKET, Verb, World, address, contents, logs, run};
use windrow_files::{
    CheckSpec, Columns, ErrorKind, FileFacts, Inputs, ReadOptions, Source, check, expand_with,
};

const FORMATS: [&str; 7] = ["parquet", "arrow", "arrows", "csv", "ndjson", "csv.gz", "ndjson.zst"];

#[test]
fn bytes_are_those_of_local_runs() {
    let world = World::new();
    for extension in FORMATS {
        let directory = format!("in-{}", extension.replace('.', "-"));
        logs(&world, &directory, extension, 4000);
        world.put_all(&directory);
        let (here, read) = (ReadOptions::default(), world.read());
        for verb in Verb::ALL {
            let output = match verb.makes_a_directory() {
                true => format!("out-{verb:?}-{directory}"),
                false => format!("out-{verb:?}.{extension}"),
            };
            let (file, object) = (world.file(&output), world.object(&output));
            let local = [format!("{}/*.{extension}", world.file(&directory).display())];
            let expected = run(verb, &local, file.to_str().unwrap(), &here).unwrap();
            let pattern = [address(&format!("{directory}/*.{extension}"))];
            let stats = run(verb, &pattern, &address(&output), &read).unwrap();
            assert_eq!(stats.rows_out, expected.rows_out, "{verb:?} {extension}");
            let network = stats.network.unwrap();
            assert!(network.requests > 3 && network.received_bytes > 0, "{network:?}");
            if verb.makes_a_directory() {
                assert_eq!(contents(&file), contents(&object), "{verb:?} {extension}");
                assert!(object.join("_SUCCESS").exists());
                // Existing outputs are neither overwritten nor extended.
                let again = run(verb, &pattern, &address(&output), &read).unwrap_err();
                assert_eq!(again.kind(), ErrorKind::Usage, "{again}");
            } else {
                let (file, object) = (fs::read(&file).unwrap(), fs::read(&object).unwrap());
                assert!(file == object, "{verb:?} {extension}");
            }
        }
        assert_eq!(world.parts(), [""; 0], "{extension}");
    }
}

#[test]
fn directories_patterns_and_names_stand_for_the_same() {
    let world = World::new();
    logs(&world, "a/day=2026-01-31", "parquet", 500);
    logs(&world, "a/_temporary", "parquet", 500);
    logs(&world, "a/day=2026-02-01/b", "csv", 500);
    world.put_all("a");
    let read = world.read();
    let found = |argument: &str| -> Vec<String> {
        let sources = expand_with([address(argument)], &read).unwrap();
        sources.iter().map(|source| source.to_string().replace("s3://logs/", "")).collect()
    };
    let (parquet, csv) = ("a/day=2026-01-31/", "a/day=2026-02-01/b/");
    let named = |directory: &str, extension: &str| -> Vec<String> {
        (0..3).map(|number| format!("{directory}{number}.{extension}")).collect()
    };
    assert_eq!(found("a/"), [named(parquet, "parquet"), named(csv, "csv")].concat());
    assert_eq!(found("a/day*/*.parquet"), named(parquet, "parquet"));
    assert_eq!(found("a/**/[0-9].csv"), named(csv, "csv"));
    assert_eq!(found("a/day=2026-0?-31/1.*"), ["a/day=2026-01-31/1.parquet"]);
    assert_eq!(found("a/nothing.csv"), ["a/nothing.csv"]);
    let kinds = [ErrorKind::Usage, ErrorKind::NotFound, ErrorKind::Usage];
    for (nothing, kind) in ["b/", "a/*.csv", "a/["].into_iter().zip(kinds) {
        let error = expand_with([address(nothing)], &read).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    // Directory names become columns, as for local files.
    let inputs = Inputs::open(&expand_with([address("a/day=2026-01-31/")], &read).unwrap(), &read);
    assert!(inputs.unwrap().schema().field_with_name("day").is_ok());
    let missing = Inputs::open(&expand_with([address("a/no.csv")], &read).unwrap(), &read);
    let error = missing.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn an_output_may_be_an_input_that_is_named() {
    let world = World::new();
    for extension in ["parquet", "csv"] {
        logs(&world, "same", extension, 3000);
        world.put_all("same");
        let key = format!("same/0.{extension}");
        let (file, object) = (world.file(&key), world.object(&key));
        let out = world.file(&format!("out.{extension}"));
        let name = |path: &std::path::Path| path.to_str().unwrap().to_owned();
        run(Verb::Sort, &[name(&file)], &name(&out), &ReadOptions::default()).unwrap();
        run(Verb::Sort, &[address(&key)], &address(&key), &world.read()).unwrap();
        assert!(fs::read(&out).unwrap() == fs::read(&object).unwrap(), "{extension}");
        // An input found by a pattern is rejected as output: each run would read the previous run's
        // output.
        let found = [address(&format!("same/*.{extension}"))];
        let error = run(Verb::Sort, &found, &address(&key), &world.read()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}

#[test]
fn check_and_inspect_ask_for_what_they_need() {
    let world = World::new();
    logs(&world, "sorted", "parquet", 20_000);
    world.put_all("sorted");
    let read = world.read();
    let object = Source::File(address("sorted/0.parquet").into());
    let facts = FileFacts::of(&object, &read).unwrap();
    let text = facts.to_string();
    assert!(text.contains("20000"), "{text}");
    let seen = world.proxy.seen();
    let bytes = fs::metadata(world.object("sorted/0.parquet")).unwrap().len();
    assert!(bytes > 128 << 10, "{bytes}");
    // The end of the object is read twice: for opening and for the statistics.
    assert_eq!(seen.len(), 2, "{seen:#?}");
    let ranges: Vec<String> = seen.into_iter().filter_map(|request| request.range).collect();
    assert_eq!(
        ranges,
        ["bytes=-65536".to_owned(), format!("bytes={}-{}", bytes - 65536, bytes - 1)]
    );

    world.proxy.reset();
    let inputs = Inputs::open(&[object], &read).unwrap();
    let by: Columns = "id,lsn".parse().unwrap();
    let spec = CheckSpec::by(by.0).unique(true);
    let checked = check(&inputs, &spec, &windrow_files::Cancel::new()).unwrap();
    let checked = format!("{checked:?}");
    assert!(checked.contains("InOrder"), "{checked}");
    // The end, then a request for each row group.
    let groups = text.lines().filter(|line| line.contains("row group")).count();
    let seen = world.proxy.seen().len();
    assert!(seen >= 2 && seen <= 1 + bytes as usize / (32 << 10), "{seen} requests, {groups}");
}

#[test]
fn requests_are_as_few_as_row_groups_and_ranges() {
    let world = World::new();
    logs(&world, "few", "parquet", 30_000);
    logs(&world, "few", "csv", 30_000);
    world.put_all("few");
    let read = world.read();
    let sources = expand_with([address("few/1.parquet")], &read).unwrap();
    let facts = serde_json(&FileFacts::of(&sources[0], &read).unwrap());
    let groups = facts.matches("\"sorted_by\"").count();
    assert!(groups > 3, "{facts}");
    world.proxy.reset();
    run(Verb::Sort, &[address("few/1.parquet")], world.file("o.parquet").to_str().unwrap(), &read)
        .unwrap();
    // The end of the object, and each row group once.
    let seen = world.proxy.seen();
    assert_eq!(seen.len(), 1 + groups, "{seen:#?}");
    world.proxy.reset();
    run(Verb::Sort, &[address("few/1.csv")], world.file("o.csv").to_str().unwrap(), &read).unwrap();
    // The sample, and the rest in one range.
    assert_eq!(world.proxy.seen().len(), 2);
    // To a bucket: a check of write access, and one object that fits into a part.
    world.proxy.reset();
    run(Verb::Head, &[address("few/1.csv")], &address("head.csv"), &read).unwrap();
    let methods: Vec<String> =
        world.proxy.seen().iter().map(|request| request.method.clone()).collect();
    assert_eq!(methods.iter().filter(|method| *method == "PUT").count(), 1, "{methods:?}");
    assert_eq!(methods.len(), 2 + 2 + 1, "{methods:?}");
}

fn serde_json(facts: &FileFacts) -> String {
    serde_json::to_string(facts).unwrap()
}

#[test]
fn options_and_addresses_are_checked() {
    let world = World::new();
    let read = world.read();
    for (wrong, kind) in [
        ("ftp://host/a.csv", ErrorKind::Usage),
        ("https://127.0.0.1/*.csv", ErrorKind::Usage),
        ("file://host/a.csv", ErrorKind::Usage),
        ("s3:///a.csv", ErrorKind::Usage),
    ] {
        let inputs = expand_with([wrong], &read).and_then(|found| Inputs::open(&found, &read));
        assert_eq!(inputs.err().map(|error| error.kind()), Some(kind), "{wrong}");
    }
    fs::write(world.object("a.csv"), "id,lsn\n1,2\n").unwrap();
    // A directory's name is not an object's, and web servers accept no multipart uploads.
    for output in [format!("s3://{BUCKET}/"), format!("http://{}/x.csv", world.proxy.address())] {
        let write = run(Verb::Head, &[address("a.csv")], &output, &read);
        let error = write.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}
