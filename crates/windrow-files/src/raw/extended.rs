//! MongoDB's extended JSON.
//!
//! A document becomes plain JSON: `{"$oid": "6a"}` becomes "6a", `{"$numberLong": "5"}` becomes 5,
//! `{"$date": ..}` its inner value, and `{"$numberDecimal": "1.10"}` the text with all digits. A
//! document with such a field has no other fields.

use super::json::{ObjectWriter, elements, members, string};

/// Depth of nesting that is converted: the depth limit of JSON.
const DEEPEST: usize = 127;

/// Writes a value of extended JSON as a plain one.
pub(super) fn plain(value: &[u8], out: &mut Vec<u8>) {
    plain_at(value, out, 0);
}

fn plain_at(value: &[u8], out: &mut Vec<u8>, depth: usize) {
    if depth < DEEPEST
        && let Some(fields) = members(value)
    {
        if let [(name, inner)] = fields[..]
            && let Some(name) = name.strip_prefix(b"$")
            && special(name, inner, out, depth)
        {
            return;
        }
        let mut object = ObjectWriter::begin(out);
        for (name, value) in fields {
            plain_at(value, object.member(name), depth + 1);
        }
        object.end();
        return;
    }
    if depth < DEEPEST
        && let Some(values) = elements(value)
    {
        out.push(b'[');
        for (place, value) in values.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            plain_at(value, out, depth + 1);
        }
        out.push(b']');
        return;
    }
    out.extend_from_slice(value.trim_ascii());
}

/// Writes an object with one member as the plain value. Returns false if the member has no special
/// meaning.
fn special(name: &[u8], value: &[u8], out: &mut Vec<u8>, depth: usize) -> bool {
    match name {
        b"oid" | b"numberDecimal" | b"symbol" | b"uuid" => out.extend_from_slice(value),
        b"numberInt" | b"numberLong" | b"numberDouble" => match string(value) {
            Some(text) if serde_json::from_str::<serde_json::Number>(&text).is_ok() => {
                out.extend_from_slice(text.as_bytes());
            }
            // Not a number, or infinite: JSON has neither.
            _ => out.extend_from_slice(value),
        },
        b"date" => plain_at(value, out, depth + 1),
        _ => return false,
    }
    true
}
