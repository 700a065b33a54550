//! Records that the walk comes through, and records that it leaves to the decoder of arrow.

use super::*;
use crate::input::text::json::decoder::Decoder;
use crate::input::text::named::NamedTypes;

fn schema() -> SchemaRef {
    let field = |name: &str, kind| Field::new(name, kind, true);
    let deeper: Fields = vec![field("t", DataType::Utf8), field("f", DataType::Float64)].into();
    let object: Fields = vec![
        field("n", DataType::Int64),
        field("t", DataType::Utf8),
        field("d", DataType::Struct(deeper)),
    ]
    .into();
    let members: Fields = vec![field("n", DataType::Int64), field("b", DataType::Boolean)].into();
    let at = DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        field("n", DataType::Int64),
        field("t", DataType::Utf8),
        field("b", DataType::Boolean),
        field("o", DataType::Struct(object)),
        field("at", at),
        field("named", DataType::Int64),
        field("l", DataType::new_list(DataType::Int64, true)),
        field("none", DataType::Null),
        field("m", DataType::new_list(DataType::Struct(members), true)),
        field("lt", DataType::new_list(DataType::new_list(DataType::Utf8, true), true)),
    ]))
}

fn decoder() -> Decoder {
    let named = Arc::new(Schema::new(vec![Field::new("named", DataType::Int64, true)]));
    let named = NamedTypes::of(Some(&named), &schema(), false);
    Decoder::new(&schema(), &named, 100).unwrap()
}

/// Decodes `text` with arrow, after the checks of each record.
fn slowly(text: &str) -> Option<RecordBatch> {
    let mut decoder = decoder();
    let taken = decoder.decode(text.as_bytes()).ok()?;
    assert_eq!(taken, text.len());
    decoder.decode(&[]).ok()?;
    let batch = decoder.flush().ok()?;
    Some(batch.unwrap_or_else(|| RecordBatch::new_empty(schema())))
}

/// Fails if the walk completes with other rows; returns whether the walk completes.
#[track_caller]
fn comes_through(decoder: &mut Decoder, text: &str) -> bool {
    let Some(batch) = decoder.decode_plain(text.as_bytes()) else { return false };
    assert_eq!(Some(batch), slowly(text), "{text}");
    true
}

#[test]
fn records_as_they_mostly_are() {
    let mut decoder = decoder();
    for text in [
        "",
        " \n",
        "{}\n{ }",
        r#"{"n":1,"t":"x","b":true,"o":{"n":-2,"t":"y","d":{"t":"","f":1.5e3}},"at":"2026-01-31T00:00:00Z"}"#,
        "{\"o\":null,\"n\":null}\n{\"t\":\"\",\"n\":0}\n",
        "{\"b\" : false ,\r\n\"t\"\t:\"a\nb\"}{\"t\":5}\n{\"t\":true}{\"t\":-0.10}",
        r#"{"t":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}"#,
        r#"{"o":{"d":{}},"named":"17"}"#,
        "{\"t\":\"é\u{1F600}\"}",
        "{\"l\":[1, 2 ,null],\"m\":[]}\n{\"l\":null}\n{\"l\":[],\"m\":[ {\"n\":1},null,{\"b\":true} ]}{}",
        "{\"none\":null,\"lt\":[null,[],[null,\"]\",5]]}\n{\"none\":null}",
    ] {
        assert!(comes_through(&mut decoder, text), "{text}");
    }
}

#[test]
fn others_are_left_to_the_decoder() {
    let mut decoder = decoder();
    for text in [
        r#"{"n":"1"}"#,
        r#"{"n":1.5}"#,
        r#"{"n":true}"#,
        r#"{"x":1}"#,
        r#"{"n":1,"n":2}"#,
        r#"{"o":{"n":1,"n":1}}"#,
        r#"{"\u006e":1}"#,
        r#"{"o":[1]}"#,
        r#"{"o":1}"#,
        r#"{"t":{"a":1}}"#,
        r#"{"t":[1]}"#,
        r#"{"b":"true"}"#,
        r#"{"b":1}"#,
        r#"{"t":"\ud800"}"#,
        r#"{"t":"x"#,
        r#"{"t":"x\"#,
        r#"{"t":1"#,
        r#"{"n":1,}"#,
        r#"{"n":1 "t":2}"#,
        r#"{"n":nulla}"#,
        r#"{"l":["1"]}"#,
        r#"{"l":[1,]}"#,
        r#"{"l":[1 2]}"#,
        r#"{"l":[1"#,
        r#"{"l":[1.5]}"#,
        r#"{"l":1}"#,
        r#"{"l":[[1]]}"#,
        r#"{"none":1}"#,
        r#"{"m":[{"x":1}]}"#,
        r#"{"m":[{"n":1,"n":2}]}"#,
        r#"{"m":[{"n":"1"}]}"#,
        r#"{"t":truer}"#,
        "[1]",
        "5",
        "{\"n\":1",
        "{",
    ] {
        assert!(!comes_through(&mut decoder, text), "{text}");
        // A failed walk leaves no values.
        assert!(comes_through(&mut decoder, "{\"n\":1}\n{\"o\":{\"t\":\"x\"}}\n"));
    }
    assert!(decoder.decode_plain(b"{\"t\":\"\xFF\"}").is_none());
    assert!(!comes_through(&mut decoder, &"{}".repeat(101)));
}

#[test]
fn bytes_that_change_make_no_other_rows() {
    let text = "{\"l\":[1,null],\"m\":[{\"n\":1}],\"none\":null,\"lt\":[[\"\"]],\"n\":12,\"t\":\"a\\\"b\",\"b\":true,\"o\":{\"n\":-2,\"d\":{\"t\":\"\",\"f\":1.5e3}}}\n{\"t\":null}\n";
    let mut decoder = decoder();
    assert!(comes_through(&mut decoder, text));
    let mut through = 0;
    for place in 0..text.len() {
        for byte in b"{}[]\",:\\ntf1-. \n\rx\xC3" {
            let mut bytes = text.as_bytes().to_vec();
            bytes[place] = *byte;
            match String::from_utf8(bytes) {
                Ok(text) => through += usize::from(comes_through(&mut decoder, &text)),
                Err(fault) => assert!(decoder.decode_plain(fault.as_bytes()).is_none()),
            }
        }
    }
    assert!(through > 100, "{through}");
}
