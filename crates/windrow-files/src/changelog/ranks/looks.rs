//! Detection of the kind of values in an ordering column of text without a declared kind.
//!
//! All values are examined, since one word among numbers tells nothing about the other values, and
//! neither does one number among words. If the values seem to have another order than the order of
//! their bytes, the column is refused after all rows have passed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_cast::cast;
use arrow_schema::DataType;

use super::super::said::misfit;
use super::forms::{are_digits, digits, hex, lsn, time, uuid_time};
use super::gtids;
use crate::error::{Error, Result};
use crate::settings::Setting;

/// The apparent kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    /// A word, ordered by its bytes.
    Word = 1,
    Number = 1 << 1,
    Lsn = 1 << 2,
    Gtids = 1 << 3,
    Position = 1 << 4,
    Time = 1 << 5,
    /// A date that does not begin with its year, or lacks leading zeros.
    Date = 1 << 6,
    Hex = 1 << 7,
    UuidTime = 1 << 8,
    /// A number with blanks, commas or apostrophes between its digits.
    Grouped = 1 << 9,
}

/// Times had several forms.
const TIMES_DIFFER: u16 = 1 << 14;
/// Hexadecimal numbers, or numbers, had several lengths.
const LENGTHS_DIFFER: u16 = 1 << 15;

impl Looks {
    fn of(value: &str) -> Option<Self> {
        let value = value.trim();
        let first = *value.as_bytes().first()?;
        // The first letter identifies most words.
        if first.is_ascii_alphabetic() && !first.is_ascii_hexdigit() && !value.contains(':') {
            return Some(Self::Word);
        }
        Some(if digits(value).is_some() {
            Self::Number
        } else if lsn(value).is_some() {
            Self::Lsn
        } else if time(value).is_some() {
            Self::Time
        } else if let Some(has_order_of_bytes) = date(value) {
            if has_order_of_bytes { Self::Word } else { Self::Date }
        } else if uuid_time(value).is_some() {
            Self::UuidTime
        } else if value.split(',').all(is_gtid) {
            Self::Gtids
        } else if is_grouped(value) {
            Self::Grouped
        } else if is_hex(value) {
            Self::Hex
        } else if is_position(value) {
            Self::Position
        } else {
            Self::Word
        })
    }

    /// The kinds, with what a column of such values holds, and the remedy: a kind to declare, or a
    /// request.
    const ALL: [(Self, &'static str, &'static str); 10] = [
        (Self::Word, "words", ""),
        (Self::Number, "numbers as text", ":number"),
        (Self::Lsn, "log sequence numbers as text", ":lsn"),
        (Self::Gtids, "GTIDs", CONVERT),
        (
            Self::Position,
            "files and positions as text, where position 1000 is before 999",
            "order by columns of their own",
        ),
        (Self::Time, "times as text in more than one form", ":time"),
        (Self::Date, "dates as text whose order is not that of their bytes", CONVERT),
        (Self::Hex, "hexadecimal numbers of several lengths as text", ":hex"),
        (
            Self::UuidTime,
            "UUIDs of version 1 as text, which are not in the order of time",
            ":uuid-time",
        ),
        (Self::Grouped, "numbers with separators as text", CONVERT),
    ];

    /// Returns a description of a column with such values, and a remedy for the user.
    fn said(self, name: &str) -> (&'static str, String) {
        let found = Self::ALL.into_iter().find(|(looks, ..)| *looks == self);
        let (_, what, remedy) = found.unwrap_or(Self::ALL[0]);
        let remedy = match remedy.starts_with(':') {
            true => format!("say {name}{remedy}, or {name}:text for the order of bytes"),
            false => format!("{remedy}, or say {name}:text for the order of bytes"),
        };
        (what, remedy)
    }
}

const CONVERT: &str = "convert the column first";

/// Returns whether the bytes of a date have the order of dates, or `None` if `value` is no date.
/// `2026/01/31` has it; `31.1.2026`, `1/31/2026`, `2026-1-31`, `31-JAN-26` and `2026-01-31 9:00` do
/// not.
fn date(value: &str) -> Option<bool> {
    let end = value.find([' ', 'T', ',']).unwrap_or(value.len());
    let separator = value[..end].find(['.', '/', '-']).map(|at| &value[at..=at])?;
    let parts: Vec<&str> = value[..end].split(separator).collect();
    let [a, b, c] = parts[..] else { return None };
    let day = |part: &str| are_digits(part) && part.len() <= 2;
    let year = |part: &str| are_digits(part) && matches!(part.len(), 2 | 4);
    let month = |part: &str| {
        day(part) || (part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_alphabetic()))
    };
    let is_ordered = a.len() == 4 && b.len() == 2 && c.len() == 2;
    let has_order_of_bytes = is_ordered && are_digits(b);
    // Versions have points too: `1.2.10`.
    let is_version = separator == "." && a.len() != 4 && c.len() != 4;
    let is_some =
        (day(a) && month(b) && year(c)) || (year(a) && a.len() == 4 && month(b) && day(c));
    // The time of an ordered date may still lack leading zeros.
    let has_short_time = has_order_of_bytes
        && value[end..]
            .split(':')
            .next()
            .is_some_and(|hour| hour.trim_start_matches([' ', 'T']).len() == 1)
        && value[end..].contains(':');
    (is_some && !is_version).then_some(has_order_of_bytes && !has_short_time)
}

/// Returns true for `1B374D84800/10` or `F7`. Values with colons are excluded: times of day, or SQL
/// Server's numbers of one length. `bead` is a word.
fn is_hex(value: &str) -> bool {
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    has_digit && !value.contains(':') && hex(value).is_some()
}

/// Returns true for `1 000 000`, `1,000,000.5`, `1'000` or `-1_000`.
fn is_grouped(value: &str) -> bool {
    let value = value.strip_prefix(['-', '+']).unwrap_or(value);
    let Some(separator) = value.find([' ', ',', '\'', '_', '\u{a0}', '\u{202f}']) else {
        return false;
    };
    let separator = value[separator..].chars().next().unwrap_or(' ');
    let whole = value.split_once('.').map_or(value, |(whole, _)| whole);
    let mut groups = whole.split(separator);
    let first = groups.next().is_some_and(|group| are_digits(group) && group.len() <= 3);
    first && groups.all(|group| are_digits(group) && group.len() == 3)
}

/// Returns true for `UUID:1-5:7`, a member of a GTID set.
fn is_gtid(text: &str) -> bool {
    let Some((uuid, intervals)) = text.trim().split_once(':') else { return false };
    uuid.len() == 36
        && uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
        && intervals.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b':'))
}

/// Returns true for `master.000006:800911`, a file and a position in it.
fn is_position(value: &str) -> bool {
    value.rsplit_once(':').is_some_and(|(file, place)| {
        are_digits(place) && file.rsplit_once('.').is_some_and(|(_, number)| are_digits(number))
    })
}

/// A text column ordered by its bytes.
#[derive(Default)]
pub(super) struct Plain {
    pub(super) column: usize,
    name: String,
    /// Kinds of the values so far, as bits of [`Looks`] and the two further bits.
    seen: AtomicU16,
    /// Form of the first time, and length of the first number; 0 before the first.
    time_shape: AtomicU64,
    length: AtomicU64,
    /// The first row with a word, and the word.
    word: Mutex<Option<(u64, String)>>,
}

impl Plain {
    pub(super) fn new(column: usize, name: String) -> Self {
        Self { column, name, ..Self::default() }
    }

    /// Examines the values of a record batch. `row` maps an index in the batch to the row of the
    /// input.
    pub(super) fn look(&self, column: &ArrayRef, row: impl Fn(usize) -> u64) -> Result<()> {
        let text = cast(column, &DataType::Utf8).map_err(misfit)?;
        let (mut seen, mut word) = (0, None);
        for (i, value) in text.as_string::<i32>().iter().enumerate() {
            let Some((value, looks)) = value.and_then(|value| Some((value, Looks::of(value)?)))
            else {
                continue;
            };
            seen |= looks as u16 | self.differs(value, looks);
            if looks == Looks::Word && word.is_none() {
                word = Some((i, value));
            }
        }
        self.seen.fetch_or(seen, Ordering::Relaxed);
        if let Some((i, value)) = word {
            let mut first = self.word.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if first.as_ref().is_none_or(|(before, _)| row(i) < *before) {
                *first = Some((row(i), value.to_owned()));
            }
        }
        Ok(())
    }

    /// Examines a constant that rows are compared with.
    pub(super) fn look_at(&self, value: &str) {
        if let Some(looks) = Looks::of(value).filter(|looks| *looks != Looks::Word) {
            self.seen.fetch_or(self.differs(value, looks), Ordering::Relaxed);
        }
    }

    /// Returns a bit if the value's form differs from earlier values of its kind.
    fn differs(&self, value: &str, looks: Looks) -> u16 {
        let is_other = |first: &AtomicU64, form: u64| {
            let found = first.compare_exchange(0, form, Ordering::Relaxed, Ordering::Relaxed);
            found.is_err_and(|first| first != form)
        };
        match looks {
            Looks::Time => {
                let form = time(value).map_or(0, |time| time.shape);
                u16::from(is_other(&self.time_shape, form)) * TIMES_DIFFER
            }
            Looks::Number | Looks::Hex => {
                let lengths = value.trim().split(['/', ':']).fold(1, |all: u64, section| {
                    all.wrapping_mul(64).wrapping_add(section.len() as u64)
                });
                u16::from(is_other(&self.length, lengths)) * LENGTHS_DIFFER
            }
            _ => 0,
        }
    }

    /// Refuses the column if its values seem to have another order than the order of their bytes.
    pub(super) fn check(&self) -> Result<()> {
        let seen = self.seen.load(Ordering::Relaxed);
        let saw = |looks: Looks| seen & looks as u16 != 0;
        if saw(Looks::Gtids) {
            return Err(gtids(&self.name));
        }
        let mut kinds: Vec<Looks> =
            Looks::ALL.map(|(looks, ..)| looks).into_iter().filter(|looks| saw(*looks)).collect();
        // Words may consist of hexadecimal digits, and numbers may be hexadecimal.
        if saw(Looks::Hex) {
            let other = if saw(Looks::Word) { Looks::Hex } else { Looks::Number };
            kinds.retain(|looks| *looks != other);
        }
        let name = &self.name;
        let what = match kinds[..] {
            [] | [Looks::Word] => return Ok(()),
            [Looks::Time] if seen & TIMES_DIFFER == 0 => return Ok(()),
            [Looks::Hex] if seen & LENGTHS_DIFFER == 0 => return Ok(()),
            [looks] => {
                let (what, remedy) = looks.said(name);
                format!("holds {what}; {remedy}")
            }
            [Looks::Word, looks, ..] => self.mixed(looks),
            [first, second, ..] => {
                let (first, second) = (first.said(name).0, second.said(name).0);
                format!("holds {first}, and {second}; say {name}:text for the order of bytes")
            }
        };
        Err(Error::usage(format!("column {name:?} {what}")).of(Setting::OrderBy).in_column(name))
    }

    /// Describes words among values with another order than the order of their bytes.
    fn mixed(&self, looks: Looks) -> String {
        let name = &self.name;
        let word = self.word.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (row, word) = word.clone().unwrap_or_default();
        let what = match looks {
            Looks::Time => "times as text",
            looks => looks.said(name).0,
        };
        let remedy = looks.said(name).1;
        format!(
            "holds {what}, and in row {row} {word:?}; {remedy}, or, if that is a null of CSV, say so with {}",
            Setting::CsvNull
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;

    use super::*;

    #[test]
    fn text_looks_like_what_it_is() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        for (text, looks) in [
            ("12", Looks::Number),
            ("1.5", Looks::Number),
            ("0/16B2D80", Looks::Lsn),
            (&format!("{uuid}:1-5,\n{uuid}:7"), Looks::Gtids),
            (uuid, Looks::UuidTime),
            ("3e11fa47-71ca-41e1-9e33-c80aa9429562", Looks::Word),
            ("master.000006:800911", Looks::Position),
            ("2026-01-31", Looks::Time),
            ("2026-01-31T10:00:00.5Z", Looks::Time),
            ("2026-1-31", Looks::Date),
            ("2026-01-31 9:05:00", Looks::Date),
            ("31.01.2026", Looks::Date),
            ("1/31/2026", Looks::Date),
            ("1/31/2026 10:00", Looks::Date),
            ("02-FEB-26", Looks::Date),
            ("2026/01/31", Looks::Word),
            ("1.2.10", Looks::Word),
            ("12:30", Looks::Word),
            ("0000002b:000003f8:0003", Looks::Word),
            ("1B374D84800/10", Looks::Hex),
            ("10/0/0", Looks::Hex),
            ("1 000 000", Looks::Grouped),
            ("-1,000.5", Looks::Grouped),
            ("1,5", Looks::Word),
            ("N/A", Looks::Word),
            ("\\N", Looks::Word),
            ("-", Looks::Word),
            ("café", Looks::Word),
            ("bead", Looks::Word),
        ] {
            assert_eq!(Looks::of(text), Some(looks), "{text}");
        }
        assert_eq!(Looks::of(" "), None);
    }

    #[test]
    fn columns_whose_bytes_have_another_order_are_refused() {
        let refused = |values: &[&str]| {
            let plain = Plain::new(0, "seq".to_owned());
            let column: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
            plain.look(&column, |i| i as u64).expect("text");
            plain.check().err().map(|error| error.to_string())
        };
        for (values, part) in [
            (&["10", "9"][..], "seq:number"),
            (&["10", "9", "\\N"], "row 2 \"\\\\N\""),
            (&["N/A", "9"], "row 0 \"N/A\""),
            (&["0/10000000", "initial"], "log sequence numbers as text, and in row 1"),
            (&["0/10000000", "9"], "numbers as text, and log sequence"),
            (&["2026-03-01T12:00:00.15Z", "2026-03-01T12:00:00.1Z"], "seq:time"),
            (&["2026-03-01T12:00:00.5Z", "2026-03-01T12:00:00Z"], "seq:time"),
            (&["2026-03-01T08:00:00Z", "2026-03-01T09:30:00+02:00"], "seq:time"),
            (&["2026-03-01T08:00:00Z", "never"], "times as text, and in row 1 \"never\""),
            (&["01/02/2026", "12/31/2025"], "dates"),
            (&["2026-01-01 10:00:00", "2026-01-01 9:05:00"], "dates"),
            (&["1B374D84800/10", "1B374D84800/F"], "seq:hex"),
            (&["100", "FF1"], ""),
            (&["100", "F1"], "seq:hex"),
            (&["00000010-1235-11ee-8000-000000000001"], "seq:uuid-time"),
            (&["1 000", "999"], "numbers with separators"),
        ] {
            match refused(values) {
                Some(message) => {
                    assert!(!part.is_empty() && message.contains(part), "{values:?}: {message}")
                }
                None => assert!(part.is_empty(), "{values:?} pass"),
            }
        }
        for values in [
            &["a", "b"][..],
            &["a1", "b22", "xyz"],
            &["2026-03-01T12:00:00.1Z", "2027-03-01T12:00:00.2Z"],
            &["0000002b:000003f8:0003", "0000002c:000003f8:0003"],
            &["2026/01/31", "2026/02/01"],
            &[],
        ] {
            assert_eq!(refused(values), None, "{values:?}");
        }
    }
}
