//! Facts about each input, found without sorting.
//!
//! ```text
//!  Source --Inputs::open--> footer --facts--> FileFacts --text--> aligned lines
//!                                                 \--serde-> an object
//! ```
//! Facts come from footers, headers and samples. Only the declared order of a Parquet file requires
//! reading it.

mod facts;
mod text;

pub use facts::FileFacts;
pub(crate) use facts::{chunks, range};

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::sync::Arc;

    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
    use arrow_schema::{DataType, Field};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::SortingColumn;
    use parquet::file::properties::WriterProperties;

    use super::*;
    use crate::input::{ReadOptions, Source};

    /// Writes rows with a declared order by id, violated only by the row at `broken`.
    fn write_parquet(path: &Path, rows: i64, group: usize, broken: Option<i64>) {
        let value = |i: i64| if Some(i) == broken { -5 } else { i - 5 };
        let id: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(value)));
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

    fn text_of(path: &Path) -> String {
        let source = Source::File(path.to_owned());
        FileFacts::of(&source, &ReadOptions::default()).unwrap().to_string()
    }

    #[test]
    fn the_facts_of_a_parquet_file_are_printed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        write_parquet(&path, 100, 40, None);
        let text = text_of(&path);
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
        write_parquet(&path, 100, 40, Some(7));
        assert!(text_of(&path).contains("broken at row 7"));
        write_parquet(&path, 100, 3, None);
        assert!(text_of(&path).contains("median"));
    }

    #[test]
    fn values_within_structs_have_a_range() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        let x: ArrayRef = Arc::new(Int64Array::from(vec![Some(6), None, Some(5), Some(7)]));
        let of = StructArray::from(vec![(Arc::new(Field::new("x", DataType::Int64, true)), x)]);
        let lists = (0..4).map(|_| Some([Some(1), Some(2)]));
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let columns: [(&str, ArrayRef); 2] = [("s", Arc::new(of)), ("l", Arc::new(lists))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let facts = FileFacts::of(&Source::File(path), &ReadOptions::default()).unwrap();
        let facts = serde_json::to_value(facts).unwrap();
        let columns = &facts["parquet"]["columns"];
        assert_eq!((&columns[0]["min"], &columns[0]["max"]), (&"5".into(), &"7".into()));
        assert_eq!(columns[0]["nulls"], 1);
        assert_eq!(columns[1]["min"], serde_json::Value::Null);
    }

    #[test]
    fn json_has_an_object_a_file() {
        let dir = tempfile::tempdir().unwrap();
        write_parquet(&dir.path().join("a.parquet"), 100, 40, Some(3));
        std::fs::write(dir.path().join("b.csv"), "x,y\n1,z\n").unwrap();
        let objects = ["a.parquet", "b.csv"].map(|name| {
            let source = Source::File(dir.path().join(name));
            serde_json::to_value(FileFacts::of(&source, &ReadOptions::default()).unwrap()).unwrap()
        });
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
