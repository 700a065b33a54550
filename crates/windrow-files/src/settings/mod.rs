//! The settings of all verbs, in one table: name, kind, group, default, verbs, a sentence.
//!
//! ```text
//!  choices, kinds --> table, rules --> Settings: text to a request (module `request`)
//!                                 \--> the command line: arguments and help
//!                                 \--> Python: arguments, documentation, stubs
//! ```
//!
//! Messages are worded once, but reach users through several interfaces: the memory limit is
//! `--memory-limit` on the command line, and `memory=` in Python. Messages and sentences therefore
//! contain a setting's name in this library, in back quotes, and
//! [`Error::worded`](crate::Error::worded) replaces it by the name in the interface.

mod choices;
mod kind;
mod rules;
mod table;

use std::fmt;

pub(crate) use choices::none_of;
pub use choices::{
    Choice, Decimal, Encodings, Existing, FloatOrder, Format, Group, Kept, Mode, Preset, Shown,
    SpillCompression, SpillPlace, Unchanged, Verb,
};
pub use kind::Kind;
pub(crate) use rules::{RULES, Rule};
pub use table::Setting;
pub(crate) use windrow::setters;

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name())
    }
}

/// Replaces the names of settings in back quotes in `message` by an interface's names.
pub fn worded(message: &str, word: &dyn Fn(Setting) -> String) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, behind)) = rest.split_once('`') {
        text.push_str(before);
        let named = behind.split_once('`').and_then(|(name, behind)| {
            Some((Setting::ALL.iter().find(|setting| setting.name() == name)?, behind))
        });
        let (said, behind) =
            named.map_or(("`".to_owned(), behind), |(setting, behind)| (word(*setting), behind));
        text.push_str(&said);
        rest = behind;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_worded_and_other_quotes_stay() {
        let flag = |setting: Setting| format!("--{}", setting.name().replace('_', "-"));
        let message = format!("{} or {}: `after` is no `x", Setting::Select, Setting::MemoryLimit);
        assert_eq!(worded(&message, &flag), "--select or --memory-limit: `after` is no `x");
        assert_eq!(worded("`x``by`", &flag), "`x`--by");
        assert_eq!(worded("", &flag), "");
    }
}
