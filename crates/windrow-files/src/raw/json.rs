//! A tokenizer that returns the parts of a JSON value as slices of the text, so that every digit
//! and escape is preserved.
//!
//! The tokenizer only checks the syntax needed to find the end of a value. Invalid JSON is copied,
//! and a later parser reports the error.

use std::collections::HashMap;

/// Returns the members of an object: names without their quotes, values unchanged.
pub(super) fn members(text: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut members = Vec::new();
    let mut rest = inner(text, b'{', b'}')?;
    while !rest.is_empty() {
        let name = &rest[..end_of_value(rest)?];
        let behind = rest[name.len()..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let value = &behind[..end_of_value(behind)?];
        members.push((unquoted(name)?, value));
        rest = next(&behind[value.len()..])?;
    }
    Some(members)
}

/// Returns the elements of an array.
pub(super) fn elements(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut elements = Vec::new();
    let mut rest = inner(text, b'[', b']')?;
    while !rest.is_empty() {
        let value = &rest[..end_of_value(rest)?];
        elements.push(value);
        rest = next(&rest[value.len()..])?;
    }
    Some(elements)
}

/// Returns the text of a string; `None` for any other value.
pub(super) fn string(text: &[u8]) -> Option<String> {
    serde_json::from_slice(text).ok()
}

/// Returns the text of the string in member `name`.
pub(super) fn text(members: &[(&[u8], &[u8])], name: &str) -> Option<String> {
    find(members, name).and_then(string)
}

/// Returns the elements of the array in member `name`.
pub(super) fn list<'a>(members: &[(&'a [u8], &'a [u8])], name: &str) -> Option<Vec<&'a [u8]>> {
    find(members, name).and_then(elements)
}

/// Returns the value of the member `name`.
pub(super) fn find<'a>(members: &[(&'a [u8], &'a [u8])], name: &str) -> Option<&'a [u8]> {
    members.iter().find(|(other, _)| *other == name.as_bytes()).map(|(_, value)| *value)
}

/// Returns a map of the members by name, for several lookups.
pub(super) fn by_name<'a>(members: &[(&'a [u8], &'a [u8])]) -> HashMap<&'a [u8], &'a [u8]> {
    // The first of several members with one name counts.
    members.iter().rev().copied().collect()
}

/// Returns the members of the object in member `name`.
pub(super) fn object<'a>(
    members: &[(&'a [u8], &'a [u8])],
    name: &str,
) -> Option<Vec<(&'a [u8], &'a [u8])>> {
    find(members, name).and_then(self::members)
}

/// Returns the offset of the first element of the array in member `name`. The object may continue
/// beyond `text`.
pub(super) fn open_array(text: &[u8], name: &str) -> Option<usize> {
    let mut rest = text.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start();
    loop {
        let found = &rest[..end_of_value(rest)?];
        let behind = rest[found.len()..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        if unquoted(found)? == name.as_bytes() {
            return behind.strip_prefix(b"[").map(|elements| text.len() - elements.len());
        }
        let value = end_of_value(behind)?;
        rest = behind[value..].trim_ascii_start().strip_prefix(b",")?.trim_ascii_start();
    }
}

fn inner(text: &[u8], open: u8, close: u8) -> Option<&[u8]> {
    let text = text.trim_ascii().strip_prefix(&[open])?.strip_suffix(&[close])?;
    Some(text.trim_ascii())
}

/// Returns the text after a comma, or an empty slice at the end.
fn next(rest: &[u8]) -> Option<&[u8]> {
    match rest.trim_ascii_start() {
        [] => Some(&[]),
        [b',', rest @ ..] => Some(rest.trim_ascii_start()).filter(|rest| !rest.is_empty()),
        _ => None,
    }
}

/// Removes the quotes of a name.
pub(super) fn unquoted(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// Returns the length of the value at the start of `text`.
fn end_of_value(text: &[u8]) -> Option<usize> {
    match text.first()? {
        b'"' | b'{' | b'[' => {
            let (value, _, ends) = Scan::default().split(text);
            ends.then_some(value.len())
        }
        _ => {
            let ends = |byte: &u8| b",]}: \t\r\n\"".contains(byte);
            let end = text.iter().position(ends).unwrap_or(text.len());
            (end > 0).then_some(end)
        }
    }
}

/// Finds the end of a string, an object or an array, byte by byte.
#[derive(Default)]
pub(super) struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// Splits `text` after the value. The last part of the result is false if the value goes on
    /// beyond `text`.
    pub(super) fn split<'a>(&mut self, text: &'a [u8]) -> (&'a [u8], &'a [u8], bool) {
        let end = text.iter().position(|byte| self.ends_with(*byte));
        let (part, rest) = text.split_at(end.map_or(text.len(), |last| last + 1));
        (part, rest, end.is_some())
    }

    /// Returns true if the value ends with `byte`.
    fn ends_with(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return !self.in_string && self.depth == 0;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

/// Writes an object member by member.
pub(super) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    members: usize,
}

impl<'a> ObjectWriter<'a> {
    pub(super) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, members: 0 }
    }

    /// Begins a member and returns the buffer for its value. The name is as it stands between its
    /// quotes.
    pub(super) fn member(&mut self, name: &[u8]) -> &mut Vec<u8> {
        if self.members > 0 {
            self.out.push(b',');
        }
        self.members += 1;
        self.out.push(b'"');
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub(super) fn put(&mut self, name: &[u8], value: &[u8]) {
        self.member(name).extend_from_slice(value);
    }

    pub(super) fn put_all(&mut self, members: &[(&[u8], &[u8])]) {
        members.iter().for_each(|(name, value)| self.put(name, value));
    }

    pub(super) fn end(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests;
