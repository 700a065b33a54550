//! The `inspect` verb: what is known of each input without sorting it.
//!
//! ```text
//!  Source --Inputs::open--> footer --facts--> FileFacts --text--> aligned lines
//!                                                 \------json--> one object per line
//! ```
//! Facts come from footers, headers and samples. Only the order that a Parquet file declares is checked
//! by reading it, which the caller supplies.

mod facts;
mod text;

use std::io::Write;

use crate::error::{CliError, Result};
use crate::input::{InputOptions, SortColumn, Source};

use facts::FileFacts;

/// Finds the first row of a file that is out of the order declared for it, if one is.
pub(crate) type OrderHolds<'a> = &'a dyn Fn(&Source, &[SortColumn]) -> Result<Option<u64>>;

/// Prints the facts of each of `sources`.
///
/// # Errors
/// `Data` for an input that cannot be opened, and whatever `order_holds` says.
pub(crate) fn inspect(
    sources: &[Source],
    options: &InputOptions,
    order_holds: OrderHolds<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    for (ordinal, source) in sources.iter().enumerate() {
        let facts = FileFacts::of(source, options, order_holds)?;
        if ordinal > 0 {
            writeln!(out).map_err(unwritten)?;
        }
        text::write(&facts, out).map_err(unwritten)?;
    }
    Ok(())
}

/// Prints the facts of each of `sources` as a JSON object on a line of its own.
///
/// # Errors
/// Those of [`inspect`].
pub(crate) fn inspect_json(
    sources: &[Source],
    options: &InputOptions,
    order_holds: OrderHolds<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    for source in sources {
        let facts = FileFacts::of(source, options, order_holds)?;
        serde_json::to_writer(&mut *out, &facts).map_err(|cause| unwritten(cause.into()))?;
        writeln!(out).map_err(unwritten)?;
    }
    Ok(())
}

fn unwritten(cause: std::io::Error) -> CliError {
    CliError::output("stdout".as_ref(), &cause)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::SortingColumn;
    use parquet::file::properties::WriterProperties;

    use super::*;

    fn write_parquet(path: &Path, rows: i64, group: usize) {
        let id: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i - 5)));
        let name: ArrayRef = Arc::new(StringArray::from_iter(
            (0..rows).map(|i| (i % 4 != 0).then(|| format!("n{i:04}"))),
        ));
        let batch = RecordBatch::try_from_iter([("id", id), ("name", name)]).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group))
            .set_sorting_columns(Some(vec![SortingColumn {
                column_idx: 0,
                descending: false,
                nulls_first: false,
            }]))
            .build();
        let file = File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    fn text_of(path: &Path, broken_at: Option<u64>) -> String {
        let mut out = Vec::new();
        let sources = [Source::File(path.to_owned())];
        let holds = |_: &Source, order: &[SortColumn]| {
            assert_eq!(order[0].name, "id");
            Ok(broken_at)
        };
        inspect(&sources, &InputOptions::default(), &holds, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_facts_of_a_parquet_file_are_printed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        write_parquet(&path, 100, 40);
        let text = text_of(&path, None);
        for part in [
            "format",
            "parquet",
            "100",
            "row groups",
            "Int64",
            "Utf8",
            "INT64",
            "BYTE_ARRAY",
            "-5",
            "94",
            "n0001",
            "n0099",
            "25",
            "ARROW:schema",
            "parquet-rs",
            "id asc nulls last",
            "holds",
        ] {
            assert!(text.contains(part), "no '{part}' in\n{text}");
        }
        assert!(text_of(&path, Some(7)).contains("broken at row 7"));
        write_parquet(&path, 100, 3);
        assert!(text_of(&path, None).contains("median"));
    }

    #[test]
    fn json_has_an_object_a_file() {
        let dir = tempfile::tempdir().unwrap();
        write_parquet(&dir.path().join("a.parquet"), 100, 40);
        std::fs::write(dir.path().join("b.csv"), "x,y\n1,z\n").unwrap();
        let sources = ["a.parquet", "b.csv"].map(|name| Source::File(dir.path().join(name)));
        let mut out = Vec::new();
        let holds = |_: &Source, _: &[SortColumn]| Ok(Some(3));
        inspect_json(&sources, &InputOptions::default(), &holds, &mut out).unwrap();
        let objects: Vec<serde_json::Value> = std::str::from_utf8(&out)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let parquet = &objects[0]["parquet"];
        assert_eq!(objects[0]["rows"], 100);
        assert_eq!(parquet["row_groups"][2]["rows"], 20);
        assert_eq!(parquet["columns"][0]["min"], "-5");
        assert_eq!(parquet["columns"][1]["nulls"], 25);
        assert_eq!(parquet["order"]["first_row_out_of_order"], 3);
        assert_eq!(objects[1]["format"], "csv");
        assert_eq!(objects[1]["rows"], serde_json::Value::Null);
        assert_eq!(objects[1]["schema"][0]["type"], "Int64");
    }
}
