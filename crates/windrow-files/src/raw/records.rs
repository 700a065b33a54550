//! Replaces each record of a JSON stream by the record's events.
//!
//! A transaction above `LONG` bytes is not held in memory: from there on its changes are replaced
//! one by one. Each change ends its own line if no line break follows it in the text.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use memchr::memchr_iter;

use super::json::{self, Scan};
use super::log::Raw;
use super::transaction::{Split, Transaction};
use super::{canal, cockroach, debezium, extended, goldengate, maxwell, wal2json};
use crate::rewrite::{Rewrite, Rewritten};
use crate::settings::Preset;

/// Maximum bytes of a record. A longer record is taken for a mistake, such as a missing bracket.
const LONGEST: usize = 1 << 30;

/// Size in bytes from which a transaction is processed change by change.
const LONG: usize = 256 << 10;

/// The description of a malformed record, as the cause of a read error.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The line on which the record begins, from 1.
    pub(crate) line: u64,
    pub(crate) what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Fault {}

/// The rewriter of records to events.
pub(super) struct Records {
    raw: Arc<Raw>,
    /// The part of the current record read so far; `scan` looks for the record's end.
    record: Vec<u8>,
    scan: Scan,
    /// Whether the current record is held whatever its length.
    is_held: bool,
    /// The current transaction, if it is processed change by change.
    transaction: Option<Transaction>,
    /// The line of the current position in the text.
    line: u64,
}

impl Records {
    pub(super) fn new(raw: Arc<Raw>) -> Self {
        let is_held = raw.format != Some(Preset::Wal2json);
        let (record, scan) = (Vec::new(), Scan::default());
        Self { raw, record, scan, is_held, transaction: None, line: 1 }
    }

    /// Writes the events of the record, then as many line breaks as the record had.
    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let record = std::mem::take(&mut self.record);
        self.raw.record(&record, out).map_err(|what| self.fault(what))?;
        let lines = memchr_iter(b'\n', &record).count();
        out.extend(std::iter::repeat_n(b'\n', lines));
        self.line += lines as u64;
        self.record = record;
        self.record.clear();
        self.is_held = self.raw.format != Some(Preset::Wal2json);
        Ok(())
    }

    /// Switches to processing change by change if the record is a transaction.
    fn let_pass(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.is_held = true;
        let Some((transaction, start)) = Transaction::begun(&self.record) else { return Ok(()) };
        self.transaction = Some(transaction);
        let record = std::mem::take(&mut self.record);
        let mut changes = &record[start..];
        while !changes.is_empty() {
            changes = self.pass(changes, out)?;
        }
        Ok(())
    }

    /// Consumes bytes of a transaction processed change by change, and returns the rest.
    fn pass<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> io::Result<&'a [u8]> {
        let Some(transaction) = &mut self.transaction else { return Ok(bytes) };
        let (taken, part) = transaction.take(bytes).map_err(|what| self.fault(what))?;
        match part {
            Split::More => {}
            Split::Change(text, lines) => {
                self.raw.record(&text, out).map_err(|what| self.fault(what))?;
                out.extend(std::iter::repeat_n(b'\n', lines.max(1) as usize));
                self.line += lines;
            }
            Split::End(lines) => {
                out.extend(std::iter::repeat_n(b'\n', lines as usize));
                self.line += lines;
                self.transaction = None;
                self.is_held = false;
            }
        }
        Ok(&bytes[taken..])
    }

    fn fault(&self, what: String) -> io::Error {
        io::Error::other(Fault { line: self.line, what })
    }
}

impl Rewrite for Records {
    fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.transaction.is_some() {
                bytes = self.pass(bytes, out)?;
                continue;
            }
            if self.record.is_empty() {
                let start = bytes.iter().position(|byte| *byte == b'{').unwrap_or(bytes.len());
                let (between, rest) = bytes.split_at(start);
                out.extend_from_slice(between);
                self.line += memchr_iter(b'\n', between).count() as u64;
                bytes = rest;
                self.scan = Scan::default();
            }
            let (part, rest, ends) = self.scan.split(bytes);
            self.record.extend_from_slice(part);
            bytes = rest;
            if ends {
                self.finish(out)?;
            } else if !self.is_held && self.record.len() > LONG {
                self.let_pass(out)?;
            } else if self.record.len() > LONGEST {
                return Err(self.fault(format!("a record of more than {LONGEST} bytes")));
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if self.transaction.is_some() {
            return Err(
                self.fault("the transaction is never closed: the log is cut short".to_owned())
            );
        }
        // The record has no end; the decoder reports the error.
        out.append(&mut self.record);
        Ok(())
    }
}

impl Raw {
    /// Returns a reader of the events in `text`.
    pub(crate) fn events(self: &Arc<Self>, text: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        Box::new(Rewritten::new(text, Records::new(Arc::clone(self))))
    }

    /// Appends the events of a record. `Err` holds the description of a malformed record.
    fn record(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let Some(members) = json::members(text) else {
            out.extend_from_slice(text);
            return Ok(());
        };
        match self.format {
            // In format 1, format 2, or flattened.
            Some(Preset::Wal2json) => wal2json::events(&members, self, out),
            Some(Preset::Maxwell) => maxwell::event(&members, self, out),
            Some(Preset::Canal) => canal::events(&members, self, out),
            // With rows as text, decimals as bytes, a choice of tables, or the operations of
            // another producer.
            Some(Preset::Debezium) => debezium::event(&members, self, out),
            Some(Preset::GoldenGate) => goldengate::event(&members, self, out),
            Some(Preset::Cockroach) => cockroach::events(&members, self, out),
            Some(other) => Err(format!("internal error: no decoder of {}", other.name())),
            None => {
                extended::plain(text, out);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::raw::{Asked, tell};
    use crate::rewrite::{Drops, Rewritten};

    fn events(text: impl Read + Send, told: &str) -> io::Result<String> {
        let told = tell(Preset::Auto, &Asked::default(), told.as_bytes()).expect("told");
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
        // A record without an end is passed on, for the decoder to refuse.
        let cut = &text[..text.len() - 4];
        let events = events(Drops(cut.as_bytes()), text).unwrap();
        assert!(events.ends_with("\n\n{\"change\":"), "{events}");
    }

    #[test]
    fn long_transactions_pass_change_by_change() {
        let change = |id: usize| {
            format!(
                "{{\"kind\":\"insert\",\"columnnames\":[\"id\"],\"columnvalues\":[{id}],\"x\":\"],[{{\"}}"
            )
        };
        let event = |id: usize| {
            format!(
                "{{\"xid\":1,\"kind\":\"insert\",\"x\":\"],[{{\",\"after\":{{\"id\":{id}}},\"before\":null,\
                 \"__windrow_carried\":\"\"}} \n"
            )
        };
        let count = 2 * LONG / change(0).len();
        let expected: String = (0..count).map(event).collect();
        for (between, open, close) in [(",", "", ""), (" ,\n ", "\n", "\n")] {
            let changes: Vec<_> = (0..count).map(change).collect();
            let changes = changes.join(between);
            let text = format!("{{\"xid\":1,\"change\":[{open}{changes}{close}]}}\n");
            let all = format!("{text}{{\"xid\":1,\"change\":[{}]}}\n", change(7));
            let lines = |text: &str| -> Vec<String> {
                let lines = text.lines().map(|line| line.trim().to_owned());
                lines.filter(|line| !line.is_empty()).collect()
            };
            let found = events(all.as_bytes(), &all).unwrap();
            assert_eq!(lines(&found), lines(&format!("{expected}\n{}", event(7))));
            let faults = [
                (format!("{{\"change\":[{changes}"), "never closed"),
                (format!("{{\"change\":[{changes}],\"a\":1}}"), "behind `change`"),
                (format!("{{\"change\":[{changes}{}]}}", change(1)), "no comma"),
                (format!("{{\"change\":[{changes},1]}}"), "no object"),
            ];
            for (text, part) in faults {
                let error = events(text.as_bytes(), &all).unwrap_err().to_string();
                assert!(error.contains(part), "{error}");
            }
        }
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
