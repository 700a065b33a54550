//! The manifest of a saved spine, as text.
//!
//! ```text
//! windrow spine 2
//! generation 7
//! layout 5752574c...                                 Layout::to_bytes, hexadecimal
//! since 1:0000000000000005                           number of times, then their codes
//! upper 1:0000000000000009
//! batch 1:00.. 1:04.. 1:00.. 4711 123456 89abcdef 5-0
//!                                                    lower, upper, since, rows, bytes, CRC-32C,
//!                                                    the generation and the number of the file
//! crc32c 01234567                                    of all lines before
//! ```

use std::fmt::Write;
use std::path::Path;

use super::{corrupt, io_error};
use windrow_rows::{Antichain, Result, Time};

const HEAD: &str = "windrow spine 2";

/// The contents of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) generation: u64,
    pub(super) layout: Vec<u8>,
    pub(super) since: Codes,
    pub(super) upper: Codes,
    pub(super) batches: Vec<Saved>,
}

/// A batch in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) lower: Codes,
    pub(super) upper: Codes,
    pub(super) since: Codes,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) crc: u32,
    /// The generation of the save that wrote the file, and the number of the file in it.
    pub(super) file: (u64, usize),
}

/// A frontier: the number of times, and their codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Codes {
    count: usize,
    bytes: Vec<u8>,
}

/// Encodes a frontier.
pub(super) fn codes<T: Time>(frontier: &Antichain<T>) -> Codes {
    let count = frontier.elements().len();
    let mut bytes = vec![0; count * T::WIDTH];
    for (at, time) in frontier.elements().iter().enumerate() {
        time.encode(&mut bytes[at * T::WIDTH..][..T::WIDTH]);
    }
    Codes { count, bytes }
}

/// Decodes a frontier of the manifest at `path`.
pub(super) fn frontier<T: Time>(path: &Path, codes: &Codes) -> Result<Antichain<T>> {
    if codes.bytes.len() != codes.count.saturating_mul(T::WIDTH) {
        return Err(corrupt(path, "times of another width"));
    }
    Ok((0..codes.count).map(|at| T::decode(&codes.bytes[at * T::WIDTH..][..T::WIDTH])).collect())
}

impl Manifest {
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\ngeneration {}\n", self.generation);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let codes = |codes: &Codes| format!("{}:{}", codes.count, hex(&codes.bytes));
        let mut line = |words: &[String]| {
            text.push_str(&words.join(" "));
            text.push('\n');
        };
        line(&["layout".into(), hex(&self.layout)]);
        line(&["since".into(), codes(&self.since)]);
        line(&["upper".into(), codes(&self.upper)]);
        for Saved { lower, upper, since, rows, bytes, crc, file } in &self.batches {
            let frontiers = [lower, upper, since].map(codes).join(" ");
            let place = format!("{}-{}", file.0, file.1);
            line(&["batch".into(), frontiers, format!("{rows} {bytes} {crc:08x} {place}")]);
        }
        let crc = crc32c::crc32c(text.as_bytes());
        // Writing to a string does not fail.
        let _ = writeln!(text, "crc32c {crc:08x}");
        text
    }

    /// Reads the manifest at `path`.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|source| io_error(path, source))?;
        let text = String::from_utf8(bytes).ok();
        let manifest = text.as_deref().and_then(Self::of_text);
        manifest.ok_or_else(|| corrupt(path, "this is not a manifest, or not as it was written"))
    }

    fn of_text(text: &str) -> Option<Self> {
        let (lines, crc) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let crc = crc.strip_prefix("crc32c ")?;
        let checked = &text[..lines.len() + 1];
        if format!("{:08x}", crc32c::crc32c(checked.as_bytes())) != crc {
            return None;
        }
        let mut lines = lines.split('\n');
        let mut word = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        if word("windrow spine")? != "2" {
            return None;
        }
        let generation = word("generation")?.parse().ok()?;
        let layout = bytes(word("layout")?)?;
        let (since, upper) = (frontier_codes(word("since")?)?, frontier_codes(word("upper")?)?);
        let batches = lines.map(batch).collect::<Option<_>>()?;
        Some(Self { generation, layout, since, upper, batches })
    }
}

fn batch(line: &str) -> Option<Saved> {
    let mut words = line.strip_prefix("batch ")?.split(' ');
    let mut next = || words.next();
    let saved = Saved {
        lower: frontier_codes(next()?)?,
        upper: frontier_codes(next()?)?,
        since: frontier_codes(next()?)?,
        rows: next()?.parse().ok()?,
        bytes: next()?.parse().ok()?,
        crc: u32::from_str_radix(next()?, 16).ok()?,
        file: super::place_of(next()?)?,
    };
    words.next().is_none().then_some(saved)
}

fn frontier_codes(word: &str) -> Option<Codes> {
    let (count, codes) = word.split_once(':')?;
    Some(Codes { count: count.parse().ok()?, bytes: bytes(codes)? })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
        .collect::<Option<_>>()
        .filter(|bytes: &Vec<u8>| bytes.len() * 2 == hex.len())
}
