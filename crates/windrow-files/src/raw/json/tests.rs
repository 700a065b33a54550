use super::*;

#[test]
fn objects_fall_into_their_members() {
    let text = br#" {"a" : 1.10, "b\"}":"x\\\",}", "c":{"d":[1,"]"]},"e":[ ],"f":null} "#;
    let found = members(text).unwrap();
    let expected: [(&[u8], &[u8]); 5] = [
        (b"a", b"1.10"),
        (br#"b\"}"#, br#""x\\\",}""#),
        (b"c", br#"{"d":[1,"]"]}"#),
        (b"e", b"[ ]"),
        (b"f", b"null"),
    ];
    assert_eq!(found, expected);
    assert_eq!(members(b"{}"), Some(vec![]));
    assert_eq!(elements(b"[1, {\"a\":2} ,[]]").unwrap(), [&b"1"[..], b"{\"a\":2}", b"[]"]);
    assert_eq!(string(br#""a\u0041\n""#).as_deref(), Some("aA\n"));
}

#[test]
fn arrays_are_found_in_objects_that_go_on() {
    for (text, start) in [
        ("{\"a\":1, \"change\" : [ {", Some(20)),
        ("{\"change\":[", Some(11)),
        ("{\"a\":{\"change\":[1]},\"change\":[2", Some(30)),
        ("{\"change\":", None),
        ("{\"change\":{", None),
        ("{\"a\":[1", None),
        ("{\"a\":1", None),
        ("[", None),
    ] {
        assert_eq!(open_array(text.as_bytes(), "change"), start, "{text}");
    }
}

#[test]
fn what_is_no_object_has_no_members() {
    for text in
        ["", "1", "[1]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "{\"a\":1 2}", "{\"a"]
    {
        assert_eq!(members(text.as_bytes()), None, "{text}");
    }
    for text in ["[1", "[,]", "[1,]", "{}", "[1 2]"] {
        assert_eq!(elements(text.as_bytes()), None, "{text}");
    }
}
