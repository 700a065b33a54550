//! Key-value metadata of files. Metadata about rows and columns must also hold for the output.
//!
//! ```text
//!  key                      several inputs                                other columns than the input's
//!  geo (GeoParquet)         boxes left out; another projection: an error  without the columns that are gone
//!  pandas                   as all others                                 without the columns that are gone
//!  schemas of writers       as all others                                 left out
//!  all others               kept if all inputs have the same              kept
//! ```
//! A range of row labels is removed from the `pandas` metadata, because the output has another
//! order.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use serde_json::{Map, Value};

use crate::names::Places;

/// Metadata of a schema.
pub(crate) type Pairs = HashMap<String, String>;

const GEO: &str = "geo";
const PANDAS: &str = "pandas";

/// Keys of schema descriptions, in which writers list all columns.
const SCHEMAS: [&str; 9] = [
    "org.apache.spark.sql.parquet.row.metadata",
    "org.apache.spark.legacyDateTime.schema",
    "parquet.avro.schema",
    "avro.schema",
    "iceberg.schema",
    "parquet.proto.descriptor",
    "parquet.proto.class",
    "thrift.descriptor",
    "thrift.class",
];

/// Returns the metadata that holds for the rows of both inputs.
///
/// # Errors
/// Fails if the inputs disagree on the meaning of a geometry column's values.
pub(crate) fn joined(one: &Pairs, other: &Pairs) -> Result<Pairs, String> {
    let mut joined = Pairs::with_capacity(one.len());
    for (key, value) in one {
        let Some(theirs) = other.get(key) else { continue };
        let value = match key.as_str() {
            GEO => Some(joined_geo(value, theirs)?),
            PANDAS => {
                let (ours, theirs) = (without_range(value), without_range(theirs));
                ours.filter(|ours| Some(ours) == theirs.as_ref()).map(Some)
            }
            _ => (value == theirs).then(|| Some(value.clone())),
        };
        if let Some(value) = value.flatten() {
            joined.insert(key.clone(), value);
        }
    }
    Ok(joined)
}

/// Returns the columns of `schema` at `places`, with the metadata that still holds for them.
pub(crate) fn chosen(schema: &Schema, places: &[usize]) -> SchemaRef {
    let fields: Vec<_> = places.iter().map(|&place| schema.fields()[place].clone()).collect();
    let narrow = Schema::new(fields);
    let metadata = kept(schema, &narrow);
    Arc::new(narrow.with_metadata(metadata))
}

/// Returns the metadata of `input` that still holds for rows with the columns of `output`.
pub(crate) fn kept(input: &Schema, output: &Schema) -> Pairs {
    let is_same = input.fields() == output.fields();
    let value = |(key, value): (&String, &String)| {
        let value = match key.as_str() {
            GEO if !is_same => geo_of(value, output),
            PANDAS if !is_same => pandas_of(value, output),
            PANDAS => without_range(value),
            key if !is_same && SCHEMAS.contains(&key) => None,
            _ => Some(value.clone()),
        };
        Some((key.clone(), value?))
    };
    input.metadata().iter().filter_map(value).collect()
}

/// Returns the metadata that still holds after some rows of a file have other values.
pub(crate) fn of_changed_rows(mut pairs: Pairs) -> Pairs {
    if let Some(mut geo) = pairs.remove(GEO).and_then(|geo| object(&geo)) {
        let columns = geo.get_mut("columns").and_then(Value::as_object_mut);
        let columns = columns.into_iter().flat_map(Map::values_mut);
        for column in columns.filter_map(Value::as_object_mut) {
            column.remove("bbox");
            // An empty list declares the types as unknown.
            column.insert("geometry_types".to_owned(), Value::Array(Vec::new()));
        }
        pairs.insert(GEO.to_owned(), text(geo));
    }
    pairs
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

fn text(object: Map<String, Value>) -> String {
    Value::Object(object).to_string()
}

/// Joins GeoParquet metadata; returns `None` if one side has no columns.
fn joined_geo(one: &str, other: &str) -> Result<Option<String>, String> {
    let (Some(mut geo), Some(mut other)) = (object(one), object(other)) else { return Ok(None) };
    let (Some(Value::Object(ours)), Some(Value::Object(theirs))) =
        (geo.get_mut("columns"), other.get_mut("columns"))
    else {
        return Ok(None);
    };
    for (name, column) in ours.iter_mut() {
        let (Value::Object(column), Some(Value::Object(theirs))) = (column, theirs.remove(name))
        else {
            continue;
        };
        // The part of the metadata that holds for the column of both sides.
        for key in ["encoding", "crs", "edges", "epoch"] {
            if column.get(key) != theirs.get(key) {
                return Err(format!(
                    "the geometry column '{name}' has another `{key}` in its metadata than before; bring the files to \
                     one, or leave the column out with `select`"
                ));
            }
        }
        column.retain(|key, value| {
            key != "bbox" && (key == "geometry_types" || theirs.get(key) == Some(value))
        });
        if column.get("geometry_types") != theirs.get("geometry_types") {
            // An empty list declares the types as unknown.
            column.insert("geometry_types".to_owned(), Value::Array(Vec::new()));
        }
    }
    // Columns only found in `other`.
    ours.extend(std::mem::take(theirs));
    Ok(Some(text(geo)))
}

/// Reduces GeoParquet metadata to the columns in `columns`.
fn geo_of(value: &str, columns: &Schema) -> Option<String> {
    let mut geo = object(value)?;
    let places = Places::of(columns.fields());
    let there = |name: &str| places.has(name);
    let of = geo.get_mut("columns")?.as_object_mut()?;
    of.retain(|name, _| there(name));
    for column in of.values_mut().filter_map(Value::as_object_mut) {
        // The paths of the columns with each row's bounding box.
        let is_covered = column.get("covering").is_none_or(|covering| {
            let paths = covering.as_object().into_iter().flat_map(Map::values);
            let mut paths = paths.filter_map(Value::as_object).flat_map(Map::values);
            paths.all(|path| path.get(0).and_then(Value::as_str).is_some_and(there))
        });
        if !is_covered {
            column.remove("covering");
        }
    }
    let first = of.keys().next()?.clone();
    if !geo.get("primary_column").and_then(Value::as_str).is_some_and(there) {
        geo.insert("primary_column".to_owned(), Value::String(first));
    }
    Some(text(geo))
}

/// Returns pandas metadata without row labels given as a range.
fn without_range(value: &str) -> Option<String> {
    let mut pandas = object(value)?;
    let index = pandas.get_mut("index_columns")?.as_array_mut()?;
    if !index.iter().any(Value::is_object) {
        return Some(value.to_owned());
    }
    index.retain(|column| !column.is_object());
    Some(text(pandas))
}

/// Reduces pandas metadata to the columns in `columns`.
fn pandas_of(value: &str, columns: &Schema) -> Option<String> {
    let mut pandas = object(&without_range(value)?)?;
    let places = Places::of(columns.fields());
    let there =
        |name: Option<&Value>| name.and_then(Value::as_str).is_some_and(|name| places.has(name));
    pandas.get_mut("index_columns")?.as_array_mut()?.retain(|name| there(Some(name)));
    let about = |column: &Value| column.get("field_name").or_else(|| column.get("name")).cloned();
    pandas.get_mut("columns")?.as_array_mut()?.retain(|column| there(about(column).as_ref()));
    Some(text(pandas))
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field};

    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn boxes_and_types_of_changed_geometries_are_left_out() {
        let geo = r#"{"columns":{"g":{"bbox":[0,1],"encoding":"WKB","geometry_types":["Point"]}}}"#;
        let left = r#"{"columns":{"g":{"encoding":"WKB","geometry_types":[]}}}"#;
        let (old, new) = (pairs(&[(GEO, geo), ("a", "1")]), pairs(&[(GEO, left), ("a", "1")]));
        assert_eq!(of_changed_rows(old), new);
    }

    fn schema(names: &[&str], metadata: Pairs) -> Schema {
        let field = |name: &&str| Field::new(*name, DataType::Binary, true);
        Schema::new_with_metadata(names.iter().map(field).collect::<Vec<_>>(), metadata)
    }

    fn geo(column: &str) -> String {
        format!(r#"{{"version":"1.0.0","primary_column":"g","columns":{{"g":{column}}}}}"#)
    }

    #[test]
    fn boxes_of_one_input_are_not_those_of_all() {
        let one = geo(r#"{"encoding":"WKB","geometry_types":["Point"],"bbox":[1,1,1,1]}"#);
        let other = geo(r#"{"encoding":"WKB","geometry_types":["Polygon"],"bbox":[5,5,5,5]}"#);
        let joined_pairs = joined(&pairs(&[("geo", &one)]), &pairs(&[("geo", &other)])).unwrap();
        let expected: Value =
            serde_json::from_str(&geo(r#"{"encoding":"WKB","geometry_types":[]}"#)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&joined_pairs["geo"]).unwrap(), expected);
        let none = joined(&pairs(&[("geo", &one)]), &Pairs::new()).unwrap();
        assert_eq!(none, Pairs::new());
        let turned = geo(r#"{"encoding":"WKB","geometry_types":["Point"],"crs":null}"#);
        let fault = joined(&pairs(&[("geo", &one)]), &pairs(&[("geo", &turned)])).unwrap_err();
        assert!(fault.contains("'g'") && fault.contains("`crs`"), "{fault}");
    }

    #[test]
    fn others_stay_if_all_have_the_same() {
        let one = pairs(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let other = pairs(&[("a", "1"), ("b", "2"), ("d", "1")]);
        assert_eq!(joined(&one, &other), Ok(pairs(&[("a", "1")])));
    }

    #[test]
    fn what_is_said_of_columns_that_are_gone_goes() {
        let covered = geo(
            r#"{"encoding":"WKB","covering":{"bbox":{"xmin":["box","xmin"],"ymin":["box","ymin"]}}}"#,
        );
        let spark = ("org.apache.spark.sql.parquet.row.metadata", "{}");
        let input = schema(&["id", "g", "box"], pairs(&[("geo", &covered), ("a", "1"), spark]));
        assert_eq!(kept(&input, &input), input.metadata().clone());
        assert_eq!(kept(&input, &schema(&["id"], Pairs::new())), pairs(&[("a", "1")]));
        let left = kept(&input, &schema(&["g"], Pairs::new()));
        let expected: Value = serde_json::from_str(&geo(r#"{"encoding":"WKB"}"#)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&left["geo"]).unwrap(), expected);
    }

    #[test]
    fn labels_of_rows_are_no_range_of_others() {
        let of = |index: &str| {
            format!(
                r#"{{"columns":[{{"field_name":"id"}},{{"field_name":"l"}}],"index_columns":{index}}}"#
            )
        };
        let range = of(r#"[{"kind":"range","start":0,"stop":3}]"#);
        let input = |value: &str| schema(&["id", "l"], pairs(&[("pandas", value)]));
        let parsed = |pairs: &Pairs| serde_json::from_str::<Value>(&pairs["pandas"]).unwrap();
        let found = kept(&input(&range), &input(&range));
        assert_eq!(parsed(&found), serde_json::from_str::<Value>(&of("[]")).unwrap());
        let other = of(r#"[{"kind":"range","start":3,"stop":9}]"#);
        let found = joined(input(&range).metadata(), input(&other).metadata()).unwrap();
        assert_eq!(parsed(&found), serde_json::from_str::<Value>(&of("[]")).unwrap());
        let named = of(r#"["l"]"#);
        assert_eq!(kept(&input(&named), &input(&named))["pandas"], named);
        let found = parsed(&kept(&input(&named), &schema(&["id"], Pairs::new())));
        assert_eq!(found["index_columns"], Value::Array(Vec::new()));
        assert_eq!(found["columns"].as_array().map(Vec::len), Some(1));
    }
}
