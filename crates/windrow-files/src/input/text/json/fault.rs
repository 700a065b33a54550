//! Explanations for lines of malformed JSON, since parsers only report a position.

/// Explains the fault of `line`, if common.
pub(crate) fn fault(line: &[u8]) -> Option<String> {
    let text = line.trim_ascii();
    if text.first() == Some(&0x1E) {
        return Some(
            "begins with a record separator, 0x1E, as JSON text sequences do; take it out with \
             tr -d '\\036'"
                .into(),
        );
    }
    let lead = text.iter().position(|byte| b"{[\"".contains(byte)).unwrap_or(text.len());
    if lead > 0 && text.get(lead) == Some(&b'{') {
        let lead = String::from_utf8_lossy(&text[..lead]);
        return Some(format!(
            "has text in front of its object, {:?}; take it out, with cut or sed",
            lead.chars().take(20).collect::<String>()
        ));
    }
    if let Some(end) = end_of_value(text)
        && text[end..].first() == Some(&b'\t')
    {
        return Some(
            "has a key and a value with a tab between them; keep the values, with cut -f 2-".into(),
        );
    }
    bare_word(text).map(|word| format!("{word} is no JSON value; write null, or a string"))
}

/// Returns the end of a line's first value, if more text follows.
fn end_of_value(text: &[u8]) -> Option<usize> {
    let mut values =
        serde_json::Deserializer::from_slice(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    Some(values.byte_offset()).filter(|end| *end < text.len())
}

/// Returns the first word outside of strings that is no JSON.
fn bare_word(text: &[u8]) -> Option<String> {
    let (mut quoted, mut escaped, mut at) = (false, false, 0);
    while at < text.len() {
        let byte = text[at];
        if quoted {
            (quoted, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
        } else if byte == b'"' {
            quoted = true;
        } else if byte.is_ascii_alphabetic() {
            let of_words = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(byte);
            let start = text[..at].iter().rposition(|byte| !of_words(byte)).map_or(0, |p| p + 1);
            let end = text[at..].iter().position(|byte| !of_words(byte));
            let end = end.map_or(text.len(), |end| at + end);
            let word = String::from_utf8_lossy(&text[start..end]);
            let known = matches!(&*word, "true" | "false" | "null");
            if !known && word.parse::<serde_json::Number>().is_err() {
                return Some(word.into_owned());
            }
            at = end;
            continue;
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_have_is_told() {
        for (line, part) in [
            ("\u{1e}{\"a\":1}", "record separator"),
            ("17\t{\"a\":1}", "\"17\\t\""),
            ("data: {\"a\":1}", "in front of its object"),
            ("{\"a\":1}\tnull", "a key and a value"),
            ("\"k\"\t{\"a\":1}", "a key and a value"),
            ("{\"a\": NaN}", "NaN is no JSON"),
            ("{\"a\":1e5,\"b\":-Infinity}", "-Infinity is no JSON"),
            ("{\"a\": \"x\\\" NaN\", \"b\": True}", "True is no JSON"),
        ] {
            let told = fault(line.as_bytes()).unwrap_or_default();
            assert!(told.contains(part), "{line}: {told}");
        }
        for line in ["{\"a\":1}", "{\"a\": \"NaN\"", "", "{", "{\"a\":1.5e3,\"b\":[true,null]"] {
            assert_eq!(fault(line.as_bytes()), None, "{line}");
        }
    }
}
