//! Parsing and formatting of sizes: `256MiB`, `1.5GB`, `4096`, `50%`, `unlimited`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// A memory limit, before the available memory is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the memory available to the process.
    Percent(f64),
    /// No limit.
    Unlimited,
}

/// Letters of units, with the power of 1000, or with an `i` of 1024.
const POWERS: [(&str, u32); 4] = [("k", 1), ("m", 2), ("g", 3), ("t", 4)];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim().to_ascii_lowercase();
        let factor = |&(letter, power): &(&str, u32)| match unit.strip_prefix(letter)? {
            "" | "b" => Some(1000_u64.pow(power)),
            "ib" => Some(1024_u64.pow(power)),
            _ => None,
        };
        let factor = match unit.as_str() {
            "" | "b" => Some(1),
            _ => POWERS.iter().find_map(factor),
        };
        let invalid = || format!("{text:?} is not a size; write 4096, 256MiB or 1.5GB");
        let factor = factor.ok_or_else(invalid)?;
        let number: f64 = number.parse().map_err(|_| invalid())?;
        Ok(Self((number * factor as f64) as u64))
    }
}

/// 60 % of the memory available to the process.
impl Default for Limit {
    fn default() -> Self {
        Self::Percent(60.0)
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

/// Units for formatting.
const SHOWN: [(u64, &str); 4] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];

impl Size {
    /// Returns the largest unit of which the size has at least ten.
    fn unit(self) -> (u64, &'static str) {
        SHOWN.into_iter().find(|(unit, _)| self.0 >= 10 * unit).unwrap_or((1, "B"))
    }

    /// Rounds up to a whole number of units.
    pub fn rounded_up(self) -> Self {
        Self(self.0.checked_next_multiple_of(self.unit().0).unwrap_or(self.0))
    }

    /// Formats the size exactly, in the largest suitable unit.
    pub fn exactly(self) -> String {
        let whole = |(unit, _): &(u64, _)| *unit <= self.unit().0 && self.0.is_multiple_of(*unit);
        let (unit, name) = SHOWN.into_iter().find(whole).unwrap_or((1, "B"));
        format!("{} {name}", self.0 / unit)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = self.unit();
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
            ("1t", 1_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "MiB", "-1", "1XB", "1.2.3M", "50%"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        let (odd, far) = (Size((39 << 20) + 1), Size(40 << 30));
        assert_eq!(
            (odd.to_string(), odd.rounded_up().to_string()),
            ("39 MiB".into(), "40 MiB".into())
        );
        assert_eq!((odd.exactly(), far.exactly()), ("40894465 B".into(), "40 GiB".into()));
        assert_eq!(Size(8 << 20).exactly(), "8192 KiB");
        assert_eq!((far.rounded_up(), Size(7).rounded_up()), (far, Size(7)));
        assert_eq!("50%".parse(), Ok(Limit::Percent(50.0)));
        assert_eq!("unlimited".parse(), Ok(Limit::Unlimited));
        assert_eq!("1GiB".parse(), Ok(Limit::Bytes(1 << 30)));
        for text in ["0", "0%", "101%", "x%"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
