//! A walk over a record of JSON: it follows brackets, strings and keys down the schema, byte by byte, and in
//! pieces of any size. What it finds of syntax is the decoder's to tell.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_schema::ArrowError;
use arrow_schema::DataType;
use memchr::memchr2;

/// Lists and objects within each other, the record among them: what `serde_json` reads in the sample.
pub(super) const MOST_DEPTH: usize = 127;

/// Bytes of a string that a message shows.
const SHOWN: usize = 80;

/// What a value is to be.
pub(super) enum Node {
    Any,
    /// A number, of the column and the type.
    Number(String, DataType),
    /// Bytes, written as a string, of the column and the type.
    Bytes(String, DataType),
    List(usize),
    /// An object of these keys.
    Object(HashMap<String, usize>),
    /// An object of any keys.
    Map(usize),
}

/// The node of values that may be anything.
pub(super) const ANY: usize = 0;

/// The node of records.
pub(super) const RECORD: usize = 1;

/// Where a walk over a record is.
#[derive(Default)]
pub(super) struct Walk {
    /// The lists and objects that are open.
    frames: Vec<Frame>,
    text: Text,
    /// Whether a backslash was passed last.
    escaped: bool,
    /// What is kept of a key, or of a string that is to be a number.
    kept: Vec<u8>,
}

/// A list or an object.
struct Frame {
    node: usize,
    is_object: bool,
    /// Behind the colon of a key: the node of its value.
    due: Option<usize>,
}

/// Which string the walk is in.
#[derive(Clone, Copy, Default, PartialEq)]
enum Text {
    #[default]
    None,
    Key,
    /// One that is to be the number of a node.
    Number(usize),
    Any,
}

impl Walk {
    /// Goes on over `text`.
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

    /// Goes on from `byte` of a string, before `rest`; returns what of that is left.
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

    /// The end of a string.
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

    /// The node of the value that begins here.
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

    /// The record is at its end.
    pub(super) fn stop(&mut self) {
        *self = Self { kept: std::mem::take(&mut self.kept), ..Self::default() };
    }
}

/// What is between the quotes of a string, without its escapes.
fn unescaped(text: &[u8]) -> Cow<'_, str> {
    if !text.contains(&b'\\') {
        return String::from_utf8_lossy(text);
    }
    let quoted = [b"\"", text, b"\""].concat();
    serde_json::from_slice(&quoted).map_or_else(|_| String::from_utf8_lossy(text), Cow::Owned)
}
