use super::*;
use crate::settings::{Group, Kind};

/// Returns the request of settings by name, written as `by=a limit=3`.
fn request(verb: Verb, text: &str) -> Result<Request> {
    let mut settings = Settings::new(verb);
    for (name, value) in text.split_whitespace().filter_map(|pair| pair.split_once('=')) {
        let setting = Setting::ALL.iter().find(|setting| setting.name() == name);
        settings.set(*setting.unwrap_or_else(|| panic!("no {name}")), value)?;
    }
    settings.build()
}

/// What each verb needs.
fn needed(verb: Verb) -> &'static str {
    match verb {
        Verb::Sort | Verb::Merge | Verb::Check => "by=a",
        Verb::Compact | Verb::Apply | Verb::Diff => "key=a",
        Verb::Partition => "by=a into=2 output=o",
        _ => "",
    }
}

#[test]
fn defaults_are_those_of_the_library() {
    for verb in Verb::ALL {
        let usual = request(verb, needed(verb)).unwrap();
        for setting in verb.settings() {
            let Some(default) = setting.default_of(verb) else { continue };
            let given = format!("{} {}={default}", needed(verb), setting.name());
            let given = format!("{:?}", request(verb, &given).unwrap());
            assert_eq!(given, format!("{usual:?}"), "{verb}: {setting}");
        }
    }
}

#[test]
fn every_choice_is_understood() {
    for setting in Setting::ALL {
        let (Kind::Choice(choices), Some(verb)) =
            (setting.kind(), Verb::ALL.into_iter().find(|verb| setting.is_of(*verb)))
        else {
            continue;
        };
        let mut seen = Vec::new();
        for choice in choices {
            let given = format!("{} {}={}", needed(verb), setting.name(), choice.name);
            seen.push(format!("{:?}", request(verb, &given).unwrap()));
            assert!(!choice.about.is_empty() && !choice.about.starts_with(' '), "{choice:?}");
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), choices.len(), "{setting} has choices without effect");
        assert!(request(verb, &format!("{}=x", setting.name())).is_err());
    }
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    for (verb, given, part) in [
        (Verb::Sort, "", "`by` is missing"),
        (Verb::Check, "", "`by` is missing"),
        (Verb::Diff, "", "`key` is missing"),
        (Verb::Compact, "", "`key` or `diff` is missing"),
        (Verb::Compact, "key=a diff=d order_by=b", "`diff` and `order_by` exclude each other"),
        (Verb::Compact, "diff=d op_preset=dms", "`diff` and `op_preset`"),
        (Verb::Compact, "diff=d op_column=op", "`diff` and `op_column`"),
        (Verb::Compact, "diff=d op_map=I=insert", "`diff` and `op_map`"),
        (Verb::Compact, "diff=d table=t", "`diff` and `table`"),
        (Verb::Compact, "key=a time=t", "`time` t needs `diff`"),
        (Verb::Merge, "by=a time=t", "`time` t needs `diff`"),
        (Verb::Merge, "by=a diff=d", "`diff` d needs `consolidate`"),
        (Verb::Merge, "by=a consolidate=true", "`consolidate` needs `diff`"),
        (Verb::Merge, "by=a unique=true diff=d consolidate=true", "`unique` and `diff`"),
        (Verb::Merge, "by=a unique=true float_order=sql", "`unique` and `float_order`"),
        (Verb::Check, "by=a unique=true float_order=sql", "`unique` and `float_order`"),
        (Verb::Partition, "by=a output=o", "`into` or `range_at` or `hive` is missing"),
        (Verb::Partition, "by=a into=2", "`output` is missing"),
        (Verb::Partition, "by=a into=2 hive=true output=o", "`hive` and `into`"),
        (Verb::Partition, "by=a range_at=2 hive=true output=o", "`hive` and `range_at`"),
        (Verb::Partition, "by=a range_at=2 into=2 output=o", "`range_at` and `into`"),
        (Verb::Partition, "by=a range_at=2 range=true output=o", "`range` needs `into`"),
        (Verb::Sort, "by=a:down", "`by`: \"down\""),
        (Verb::Sort, "by=a threads=0", "`threads`: takes a number from 1 to 4096"),
        (Verb::Sort, "by=a csv_delimiter=none", "`csv_delimiter`: takes one character"),
        (Verb::Sort, "by=a store_option=region", "`store_option`: \"region\": takes KEY=VALUE"),
        (Verb::Sort, "by=a hive_types=a:x", "`hive_types`: 'a:x': unknown type"),
        (Verb::Sort, "by=a where=a", "`where`: nothing behind a"),
        (Verb::Head, "by=a", "head takes no `by`"),
    ] {
        match request(verb, given) {
            Err(error) => assert!(error.to_string().contains(part), "{verb} {given}: {error}"),
            Ok(_) => panic!("{verb} {given} is taken"),
        }
    }
    // A switch that is off is not given.
    assert!(request(Verb::Merge, "by=a unique=false float_order=sql").is_ok());
    assert!(Settings::new(Verb::Sort).put(Setting::By, true).is_err());
}

#[test]
fn settings_reach_their_options() {
    let Request { spec: Spec::Compact(spec), read, limits, .. } = request(
        Verb::Compact,
        "key=a,b order_by=c:lsn table=s.* table=t op_map==insert csv_null=\\N csv_null=- \
         csv_delimiter=tab csv_header=false temp_dir=x temp_dir=y spill_to=memory memory_limit=1k",
    )
    .unwrap() else {
        panic!("no compaction")
    };
    assert_eq!((spec.key.len(), spec.order_texts.len(), spec.tables.len()), (2, 1, 2));
    assert_eq!((read.csv.nulls.len(), read.csv.delimiter), (2, Some(b'\t')));
    assert!(!read.csv.has_header && limits.temp_dirs.len() == 2);
    assert_eq!(limits.memory, crate::size::Limit::Bytes(1000));
    let ranges = |given: &str| match request(Verb::Partition, given).unwrap().spec {
        Spec::Partition(spec) => spec.partitions,
        other => panic!("{other:?}"),
    };
    let two = NonZeroU32::new(2).unwrap();
    assert_eq!(ranges("by=a output=o into=2"), Partitions::Hash(two));
    assert_eq!(ranges("by=a output=o into=2 range=true"), Partitions::Ranges(two));
    assert_eq!(ranges("by=a output=o hive=true"), Partitions::Hive);
    let at = ["-1", "2"].map(str::to_owned).to_vec();
    assert_eq!(ranges("by=a output=o range_at=-1 range_at=2"), Partitions::RangesAt(at));
}

#[test]
fn sentences_are_whole() {
    for (setting, verb) in
        Setting::ALL.iter().flat_map(|setting| Verb::ALL.map(|verb| (*setting, verb)))
    {
        let about = setting.about(verb, &|setting: Setting| setting.name().to_uppercase());
        if !setting.is_of(verb) {
            assert_eq!(about, "");
            continue;
        }
        assert!(about.ends_with('.') && !about.starts_with(' '), "{setting}: {about}");
        assert!(setting.group() != Group::Csv || setting.name().starts_with("csv_"), "{setting}");
    }
}
