//! Values of settings: parsed from text by the kind of the setting, or given by their type.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use arrow_schema::SchemaRef;

use crate::columns::{Columns, Names, OrderBy};
use crate::input::{Charset, Filter, parsed_schema};
use crate::output::Compression;
use crate::preset::OpMap;
use crate::settings::{Kind, none_of};
use crate::size::{Limit, Size};

/// Defines the values, and the conversions between a value and its type.
macro_rules! values {
    ($($(#[$doc:meta])* $variant:ident($type:ty): [$($kind:pat),+];)+) => {
        /// A value of a setting.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum Value {
            $($(#[$doc])* $variant($type),)+
        }

        impl Value {
            /// Returns true if settings of `kind` have such values.
            pub(super) fn is_of(&self, kind: Kind) -> bool {
                match self {
                    $(Self::$variant(_) => matches!(kind, $($kind)|+),)+
                }
            }
        }

        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        }

        impl TryFrom<&Value> for $type {
            type Error = ();

            fn try_from(value: &Value) -> Result<Self, ()> {
                match value {
                    Value::$variant(value) => Ok(value.clone()),
                    _ => Err(()),
                }
            }
        })+
    };
}

values! {
    /// True or false.
    Flag(bool): [Kind::Off, Kind::On];
    /// A number.
    Number(u64): [Kind::Number(..)];
    /// A name or a value.
    Text(String): [Kind::Choice(_), Kind::Column, Kind::Value, Kind::Values, Kind::Texts];
    /// Bytes.
    Size(Size): [Kind::Size];
    /// A memory limit.
    Limit(Limit): [Kind::Limit];
    /// Names of columns.
    Names(Names): [Kind::Names];
    /// Columns of an order.
    Columns(Columns): [Kind::Columns];
    /// Columns of an order, with kinds of text.
    Order(OrderBy): [Kind::Order];
    /// A condition on rows.
    Filter(Filter): [Kind::Filter];
    /// Names and types of columns.
    Schema(SchemaRef): [Kind::Schema];
    /// An encoding of text.
    Charset(Charset): [Kind::Charset];
    /// A codec.
    Compression(Compression): [Kind::Compression];
    /// Words with their meanings.
    Words(OpMap): [Kind::Words];
    /// A character, or none.
    Character(Option<char>): [Kind::Character];
    /// A file or a directory.
    Path(PathBuf): [Kind::Path, Kind::Paths];
    /// A name and a value.
    Pair((String, String)): [Kind::Pairs];
}

impl Value {
    /// Parses the text of a value.
    ///
    /// # Errors
    /// A message that does not name the setting.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, String> {
        Ok(match kind {
            Kind::Off | Kind::On => Self::Flag(parsed(text)?),
            Kind::Choice(choices) => match choices.iter().any(|choice| choice.name == text) {
                true => Self::Text(text.to_owned()),
                false => return Err(none_of(text, choices)),
            },
            Kind::Number(least, most) => Self::Number(number(text, least, most)?),
            Kind::Size => Self::Size(parsed(text)?),
            Kind::Limit => Self::Limit(parsed(text)?),
            Kind::Column | Kind::Value | Kind::Values | Kind::Texts => Self::Text(text.to_owned()),
            Kind::Names => Self::Names(parsed(text)?),
            Kind::Columns => Self::Columns(parsed(text)?),
            Kind::Order => Self::Order(parsed(text)?),
            Kind::Filter => Self::Filter(Filter::parse(text)?),
            Kind::Schema => Self::Schema(parsed_schema(text)?),
            Kind::Charset => Self::Charset(parsed(text)?),
            Kind::Compression => Self::Compression(parsed(text)?),
            Kind::Words => Self::Words(parsed(text)?),
            Kind::Character => Self::Character(character(text)?),
            Kind::Path | Kind::Paths => Self::Path(text.into()),
            Kind::Pairs => match text.split_once('=').filter(|(key, _)| !key.is_empty()) {
                Some((key, value)) => Self::Pair((key.to_owned(), value.to_owned())),
                None => return Err(format!("{text:?}: takes KEY=VALUE")),
            },
        })
    }
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|why: T::Err| why.to_string())
}

fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let range = match most {
        u64::MAX => format!("from {least} on"),
        most => format!("from {least} to {most}"),
    };
    let number = text.trim().parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("takes a number {range}, not {text}"))
}

fn character(text: &str) -> Result<Option<char>, String> {
    let mut letters = match text {
        "none" => return Ok(None),
        "tab" | "\\t" => "\t",
        text => text,
    }
    .chars();
    match (letters.next(), letters.next()) {
        (letter @ Some(_), None) => Ok(letter),
        _ => Err(format!("takes one character, not {text:?}")),
    }
}
