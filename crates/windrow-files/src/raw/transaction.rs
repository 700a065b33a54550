//! Splits a long transaction of wal2json's format 1 into its changes, to bound its memory.
//!
//! ```text
//!  {"xid":7,"change":[ {"kind":"insert", ..} , {"kind":"delete", ..} ]}
//!  \_____ head ______/  {"xid":7,"change":[{"kind":"insert", ..}]}         each change as a transaction of its own
//!                       {"xid":7,"change":[{"kind":"delete", ..}]}
//! ```
//! Members after the changes would belong to all changes, and are refused: wal2json writes none.

use memchr::memchr_iter;

use super::json::{Scan, open_array};

/// Position in the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// After the opening bracket of the changes.
    Opened,
    Within,
    /// After a change.
    Behind,
    Comma,
    /// After the closing bracket of the changes.
    Closed,
}

/// A partly read transaction.
pub(super) struct Transaction {
    head: Vec<u8>,
    change: Vec<u8>,
    scan: Scan,
    at: At,
    /// Line ends since the last change.
    lines: u64,
}

/// The result of reading some bytes.
pub(super) enum Split {
    /// A change, as a transaction of its own, and the number of line ends up to its end.
    Change(Vec<u8>, u64),
    /// The end of the transaction, and the number of line ends before it.
    End(u64),
    /// More bytes are needed.
    More,
}

impl Transaction {
    /// Starts the transaction at the start of `record`. Also returns the number of bytes before its
    /// changes. Returns `None` if `record` is no transaction, or ends before its changes.
    pub(super) fn begun(record: &[u8]) -> Option<(Self, usize)> {
        let start = open_array(record, "change")?;
        let head = record[..start].to_vec();
        let lines = memchr_iter(b'\n', &head).count() as u64;
        let (change, scan, at) = (Vec::new(), Scan::default(), At::Opened);
        Some((Self { head, change, scan, at, lines }, start))
    }

    /// Takes bytes up to the end of a change, or all of them. Returns their number.
    ///
    /// # Errors
    /// A description of the fault.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(usize, Split), String> {
        let mut taken = 0;
        while let Some(&byte) = bytes.get(taken) {
            if self.at == At::Within {
                let (part, _, ends) = self.scan.split(&bytes[taken..]);
                self.change.extend_from_slice(part);
                taken += part.len();
                if ends {
                    self.at = At::Behind;
                    return Ok((taken, self.whole()));
                }
                continue;
            }
            self.at = match (self.at, byte) {
                (at, byte) if byte.is_ascii_whitespace() => {
                    self.lines += u64::from(byte == b'\n');
                    at
                }
                (At::Opened | At::Comma, b'{') => {
                    self.scan = Scan::default();
                    self.at = At::Within;
                    continue;
                }
                (At::Opened | At::Behind, b']') => At::Closed,
                (At::Behind, b',') => At::Comma,
                (At::Closed, b'}') => {
                    return Ok((taken + 1, Split::End(std::mem::take(&mut self.lines))));
                }
                (At::Closed, _) => {
                    return Err("has members behind `change`, of which a transaction this long may have none"
                        .to_owned());
                }
                (At::Behind, _) => return Err("has no comma between two changes".to_owned()),
                _ => return Err("`change` holds what is no object".to_owned()),
            };
            taken += 1;
        }
        Ok((taken, Split::More))
    }

    /// Returns the completed change.
    fn whole(&mut self) -> Split {
        let lines = self.lines + memchr_iter(b'\n', &self.change).count() as u64;
        let text = [&self.head, &self.change, &b"]}"[..]].concat();
        self.change.clear();
        self.lines = 0;
        Split::Change(text, lines)
    }
}

/// Returns the first change of the transaction at the start of `head`, as a transaction of its own.
pub(super) fn first_change(head: &[u8]) -> Option<Vec<u8>> {
    let record = &head[head.iter().position(|byte| *byte == b'{')?..];
    let (mut transaction, start) = Transaction::begun(record)?;
    match transaction.take(&record[start..]) {
        Ok((_, Split::Change(text, _))) => Some(text),
        _ => None,
    }
}
