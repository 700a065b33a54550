//! Sizes as people write them: `256MiB`, `1.5GB`, `4096`, `50%`, `unlimited`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

/// A memory limit, before it is known how much memory there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    Bytes(u64),
    Percent(f64),
    Unlimited,
}

/// Units: the power of ten, and of two with an `i`.
const UNITS: [(&str, u64); 13] = [
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1000),
    ("kib", 1 << 10),
    ("m", 1_000_000),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("g", 1_000_000_000),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim().to_ascii_lowercase();
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, factor)| factor);
        let invalid = || format!("{text:?} is not a size; write 4096, 256MiB or 1.5GB");
        let factor = factor.ok_or_else(invalid)?;
        let number: f64 = number.parse().map_err(|_| invalid())?;
        Ok(Self((number * factor as f64) as u64))
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("unlimited") {
            return Ok(Self::Unlimited);
        }
        if let Some(number) = text.trim().strip_suffix('%') {
            let percent: Result<f64, _> = number.trim().parse();
            return match percent {
                Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Self::Percent(percent)),
                _ => Err(format!("{text:?} is not a percentage between 0 and 100")),
            };
        }
        let Size(bytes) = text.parse()?;
        if bytes == 0 {
            return Err("a limit of zero; write `unlimited` for none".to_owned());
        }
        Ok(Self::Bytes(bytes))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            bytes if bytes >= 10 << 30 => (1u64 << 30, "GiB"),
            bytes if bytes >= 10 << 20 => (1 << 20, "MiB"),
            bytes if bytes >= 10 << 10 => (1 << 10, "KiB"),
            bytes => return write!(f, "{bytes} B"),
        };
        write!(f, "{:.0} {name}", self.0 as f64 / unit as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64MiB", 64 << 20),
            ("64mib", 64 << 20),
            ("1.5 GB", 1_500_000_000),
            ("2k", 2000),
            ("10B", 10),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "MiB", "-1", "1XB", "1.2.3M", "50%"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert_eq!("50%".parse(), Ok(Limit::Percent(50.0)));
        assert_eq!("unlimited".parse(), Ok(Limit::Unlimited));
        assert_eq!("1GiB".parse(), Ok(Limit::Bytes(1 << 30)));
        for text in ["0", "0%", "101%", "x%"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
