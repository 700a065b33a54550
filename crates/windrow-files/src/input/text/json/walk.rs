//! A walk over a JSON record: follows brackets, strings and keys down the schema, byte by byte, in
//! pieces of any size. Syntax errors are left to the decoder.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_schema::{ArrowError, DataType};
use memchr::memchr2;

/// Maximum nesting of lists and objects, the record included: the limit of `serde_json` in the
/// sample.
pub(super) const MOST_DEPTH: usize = 127;

/// Maximum bytes of a string in a message.
const SHOWN: usize = 80;

/// Expected kind of a value.
pub(super) enum Node {
    Any,
    /// A number: its column and type.
    Number(String, DataType),
    /// Bytes in a string: their column and type.
    Bytes(String, DataType),
    List(usize),
    /// An object with these keys.
    Object(HashMap<String, usize>),
    /// An object with any keys.
    Map(usize),
}

/// Node of values without an expectation.
pub(super) const ANY: usize = 0;

/// Node of records.
pub(super) const RECORD: usize = 1;

/// State of a walk over a record.
#[derive(Default)]
pub(super) struct Walk {
    /// Open lists and objects.
    frames: Vec<Frame>,
    text: Text,
    /// Whether the last byte was an escaping backslash.
    escaped: bool,
    /// Bytes of the current string, if it is a key, or stands where a number is expected.
    kept: Vec<u8>,
}

/// An open list or object.
struct Frame {
    node: usize,
    is_object: bool,
    /// Node of the next value in an object, set at the end of its key.
    due: Option<usize>,
}

/// Kind of the string at the current position.
#[derive(Clone, Copy, Default, PartialEq)]
enum Text {
    #[default]
    None,
    Key,
    /// A string in place of the number of a node.
    Number(usize),
    Any,
}

impl Walk {
    /// Continues the walk over `text`.
    pub(super) fn pass(&mut self, mut text: &[u8], nodes: &[Node]) -> Result<(), ArrowError> {
        while let Some((&byte, rest)) = text.split_first() {
            text = rest;
            match byte {
                _ if self.text != Text::None => text = self.string(byte, rest, nodes)?,
                b'{' | b'[' => {
                    let node = self.begin(nodes);
                    self.frames.push(Frame { node, is_object: byte == b'{', due: None });
                    if self.frames.len() > MOST_DEPTH {
                        return Err(ArrowError::JsonError(format!(
                            "lists and objects are nested more than {MOST_DEPTH} deep"
                        )));
                    }
                }
                b'}' | b']' => drop(self.frames.pop()),
                b'"' => {
                    self.text = match self.frames.last() {
                        Some(Frame { is_object: true, due: None, .. }) => Text::Key,
                        _ => match self.begin(nodes) {
                            node if matches!(nodes[node], Node::Number(..)) => Text::Number(node),
                            _ => Text::Any,
                        },
                    };
                    self.kept.clear();
                }
                b':' | b',' | b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => match &nodes[self.begin(nodes)] {
                    Node::Bytes(path, kind) if matches!(byte, b'-'..=b'9' | b't' | b'f') => {
                        return Err(ArrowError::ParseError(format!(
                            "column '{path}': a value that is no string, as {kind} is"
                        )));
                    }
                    _ => {}
                },
            }
        }
        Ok(())
    }

    /// Continues in a string at `byte`, followed by `rest`. Returns the unread part of `rest`.
    fn string<'a>(
        &mut self,
        byte: u8,
        rest: &'a [u8],
        nodes: &[Node],
    ) -> Result<&'a [u8], ArrowError> {
        if byte == b'"' && !self.escaped {
            self.end(nodes)?;
            return Ok(rest);
        }
        self.escaped = byte == b'\\' && !self.escaped;
        let plain = match self.escaped {
            true => 0,
            false => memchr2(b'"', b'\\', rest).unwrap_or(rest.len()),
        };
        if self.text != Text::Any {
            self.kept.push(byte);
            self.kept.extend_from_slice(&rest[..plain]);
        }
        Ok(&rest[plain..])
    }

    /// Handles the end of a string.
    fn end(&mut self, nodes: &[Node]) -> Result<(), ArrowError> {
        match std::mem::take(&mut self.text) {
            Text::Key => {
                let key = unescaped(&self.kept);
                if let Some(frame) = self.frames.last_mut() {
                    frame.due = Some(match &nodes[frame.node] {
                        Node::Object(keys) => keys.get(&*key).copied().unwrap_or(ANY),
                        Node::Map(of) => *of,
                        _ => ANY,
                    });
                }
            }
            Text::Number(node) => {
                if let Node::Number(path, kind) = &nodes[node] {
                    let text = unescaped(&self.kept);
                    return Err(ArrowError::ParseError(format!(
                        "column '{path}': {:?} is a string, and {kind} was inferred from numbers",
                        text.chars().take(SHOWN).collect::<String>()
                    )));
                }
            }
            Text::Any | Text::None => {}
        }
        Ok(())
    }

    /// Returns the node of the value at the current position.
    fn begin(&mut self, nodes: &[Node]) -> usize {
        match self.frames.last_mut() {
            None => RECORD,
            Some(frame) if frame.is_object => frame.due.take().unwrap_or(ANY),
            Some(frame) => match nodes[frame.node] {
                Node::List(of) => of,
                _ => ANY,
            },
        }
    }

    /// Resets the walk at the end of a record.
    pub(super) fn stop(&mut self) {
        *self = Self { kept: std::mem::take(&mut self.kept), ..Self::default() };
    }
}

/// Decodes the text between a string's quotes.
fn unescaped(text: &[u8]) -> Cow<'_, str> {
    if !text.contains(&b'\\') {
        return String::from_utf8_lossy(text);
    }
    let quoted = [b"\"", text, b"\""].concat();
    serde_json::from_slice(&quoted).map_or_else(|_| String::from_utf8_lossy(text), Cow::Owned)
}
