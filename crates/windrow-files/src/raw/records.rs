//! A stream of JSON records, each of which is replaced by its events.

use std::fmt;
use std::io;
use std::sync::Arc;

use memchr::memchr_iter;

use super::Raw;
use super::json::Scan;
use crate::rewrite::Rewrite;

/// The longest record: what is longer is taken for a mistake, such as a bracket that is never closed.
const LONGEST: usize = 1 << 30;

/// What is wrong with a record, as the cause of an error of reading.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The line that the record begins on, from 1.
    pub(crate) line: u64,
    pub(crate) what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Fault {}

/// The events of records.
pub(super) struct Records {
    raw: Arc<Raw>,
    /// The record that has begun, as far as it was read; where it ends is looked for by `scan`.
    record: Vec<u8>,
    scan: Scan,
    /// The line that the text is on.
    line: u64,
}

impl Records {
    pub(super) fn new(raw: Arc<Raw>) -> Self {
        Self { raw, record: Vec::new(), scan: Scan::default(), line: 1 }
    }

    /// Passes on the events of the record, and as many ends of lines as it had.
    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let record = std::mem::take(&mut self.record);
        self.raw.record(&record, out).map_err(|what| self.fault(what))?;
        let lines = memchr_iter(b'\n', &record).count();
        out.extend(std::iter::repeat_n(b'\n', lines));
        self.line += lines as u64;
        self.record = record;
        self.record.clear();
        Ok(())
    }

    fn fault(&self, what: String) -> io::Error {
        io::Error::other(Fault { line: self.line, what })
    }
}

impl Rewrite for Records {
    fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.record.is_empty() {
                let start = bytes.iter().position(|byte| *byte == b'{').unwrap_or(bytes.len());
                let (between, rest) = bytes.split_at(start);
                out.extend_from_slice(between);
                self.line += memchr_iter(b'\n', between).count() as u64;
                bytes = rest;
                self.scan = Scan::default();
            }
            let scan = &mut self.scan;
            let end = bytes.iter().position(|byte| scan.ends_with(*byte));
            let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |last| last + 1));
            self.record.extend_from_slice(part);
            bytes = rest;
            if end.is_some() {
                self.finish(out)?;
            } else if self.record.len() > LONGEST {
                return Err(self.fault(format!("a record of more than {LONGEST} bytes")));
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        // It has no end, which its decoder tells.
        out.append(&mut self.record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::preset::Preset;
    use crate::raw::tell;
    use crate::rewrite::{Drops, Rewritten};

    fn events(text: impl Read + Send, told: &str) -> io::Result<String> {
        let told = tell(Preset::Auto, None, told.as_bytes()).expect("told");
        let mut events = String::new();
        Rewritten::new(text, Records::new(told.raw.expect("raw"))).read_to_string(&mut events)?;
        Ok(events)
    }

    #[test]
    fn records_fall_into_events_wherever_they_are_cut() {
        let text = "{\"change\":[\n{\"kind\":\"insert\",\"columnnames\":[\"a}\"],\"columnvalues\":[\"\\\"{\"]},\n\
                    {\"kind\":\"delete\",\"oldkeys\":{\"keynames\":[\"a}\"],\"keyvalues\":[1.10]}}]}\n\n{\"change\":[]}\n";
        let expected = "{\"kind\":\"insert\",\"after\":{\"a}\":\"\\\"{\"},\"before\":null,\"__windrow_carried\":\"\"} \
                        {\"kind\":\"delete\",\"after\":null,\"before\":{\"a}\":1.10},\"__windrow_carried\":\"\"} \
                        \n\n\n\n\n";
        assert_eq!(events(text.as_bytes(), text).unwrap(), expected);
        assert_eq!(events(Drops(text.as_bytes()), text).unwrap(), expected);
        // What has no end is passed on, for the decoder to refuse.
        let cut = &text[..text.len() - 4];
        let events = events(Drops(cut.as_bytes()), text).unwrap();
        assert!(events.ends_with("\n\n{\"change\":"), "{events}");
    }

    #[test]
    fn faults_name_the_line_that_the_record_begins_on() {
        let good = "{\"change\":[\n]}\n\n";
        let text = format!("{good}{{\"a\":\n1}}\n");
        let error = events(Drops(text.as_bytes()), good).unwrap_err();
        let fault = error.get_ref().and_then(|cause| cause.downcast_ref::<Fault>());
        assert_eq!(fault.map(|fault| fault.line), Some(4), "{error}");
    }
}
