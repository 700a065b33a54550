use arrow_schema::Fields;

use super::*;
use crate::input::text::named::NamedTypes;

/// Returns a schema of numbers, text, and lists and objects of both.
fn schema() -> Schema {
    let field = |name: &str, kind| Field::new(name, kind, true);
    let object: Fields = vec![
        field("n", DataType::Float64),
        field("b\"n", DataType::Int64),
        field("t", DataType::Utf8),
    ]
    .into();
    Schema::new(vec![
        field("n", DataType::Int64),
        field("t", DataType::Utf8),
        field("l", DataType::new_list(DataType::Int64, true)),
        field("o", DataType::Struct(object)),
        field("named", DataType::Int64),
    ])
}

/// Returns the fault in `text`, checked in pieces of `size` bytes.
fn look(text: &str, size: usize) -> Result<(), String> {
    let named = Arc::new(Schema::new(vec![Field::new("named", DataType::Int64, true)]));
    let named = NamedTypes::of(Some(&named), &schema(), false);
    let mut records = Records::new(&schema(), named.all());
    let mut pieces = text.as_bytes().chunks(size).peekable();
    while let Some(piece) = pieces.next() {
        let passed = records.pass(piece, pieces.peek().is_some());
        passed.map_err(|fault| fault.to_string())?;
    }
    Ok(())
}

#[test]
fn strings_where_numbers_are_due() {
    for (text, path) in [
        (r#"{"n":"5"}"#, Some("'n'")),
        (r#"{"n" : "1.10", "t":"x"}"#, Some("'n'")),
        (r#"{"n":"\u0035"}"#, Some("'n'")),
        (r#"{"\u006e":"5"}"#, Some("'n'")),
        (r#"{"t":"5","o":{"t":"7","n":"-1e3"}}"#, Some("'o.n'")),
        (r#"{"o":{"b\"n":"5"}}"#, Some("'o.b\"n'")),
        (r#"{"l":[1,[],"5"]}"#, Some("'l'")),
        (r#"{"o":null,"n":1,"l":["5"]}"#, Some("'l'")),
        (r#"{"n":5,"t":"5","o":{"t":"5","n":5},"l":[5]}"#, None),
        (r#"{"t":"\"n\":\"5","n":5}"#, None),
        (r#"{"t":"[{\\","n":5,"named":"5"}"#, None),
        (r#"{"t":"2026-01-31","o":{"n":null,"t":"n"},"n":null}"#, None),
        (r#"{"x":{"n":"5"},"5":{"5":"5"},"n":1}"#, None),
    ] {
        for size in [1, 2, 3, 7, 1000] {
            let found = look(text, size);
            match path {
                None => assert_eq!(found, Ok(()), "{text}"),
                Some(path) => {
                    let fault = found.expect_err(text);
                    assert!(fault.contains(path) && fault.contains("a string"), "{fault}");
                }
            }
        }
    }
}

#[test]
fn numbers_where_bytes_are_due() {
    let list = DataType::new_list(DataType::Binary, true);
    let fields = [("b", DataType::Binary), ("n", DataType::Int64), ("l", list)];
    let fields = fields.map(|(name, kind)| Field::new(name, kind, true));
    let schema = Schema::new(fields.to_vec());
    for (text, fits) in [
        (r#"{"b":"00","n":12,"l":["00",null]}"#, true),
        (r#"{"b":null,"n":12,"x":12}"#, true),
        (r#"{"b":12}"#, false),
        (r#"{"b": true}"#, false),
        (r#"{"l":["00",-1]}"#, false),
    ] {
        let found = Records::new(&schema, TypesAt::default()).pass(text.as_bytes(), false);
        assert_eq!(found.is_ok(), fits, "{text}");
    }
}

#[test]
fn deep_records() {
    let nested = |depth| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!("{{\"t\":\"[[{{\",\"x\":{open}{close}}}\n")
    };
    let wide = format!("{{\"x\":[{}]}}\n", "[],".repeat(1000));
    for size in [1, 100, 100_000] {
        assert_eq!(look(&nested(126), size), Ok(()));
        assert!(look(&nested(127), size).unwrap_err().contains("127 deep"));
        assert_eq!(look(&wide, size), Ok(()));
    }
    let depth = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    assert!(depth(&nested(126)) && !depth(&nested(127)), "the limit of the sample");
}
