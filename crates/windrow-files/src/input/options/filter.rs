//! Parser of filter conditions.
//!
//! ```text
//!  filter     all [or all]...
//!  all        one [and one]...
//!  one        condition | not one | (filter)
//!  condition  column op value
//!           | column is [not] null
//!           | column [not] in (value, ...)
//!           | column [not] between value and value
//!           | column [not] like value          % stands for any text, _ for a character, \% for %
//!  column     name, path.to.member or "any name"
//!  op         =  ==  !=  <>  <  <=  >  >=
//!  value      text up to a blank, or 'any text'
//! ```
//! The parser resolves `not`: `not (a < 1 or b is null)` is `a >= 1 and b is not null`. Both are true for the same rows,
//! because a comparison with a null is neither true nor false.

use std::str::FromStr;

use crate::columns::unquoted;
use crate::error::{Error, Result};
use crate::settings::Setting;

/// Conditions on columns, joined by `and` and `or`.
///
/// ```
/// use windrow_files::Filter;
///
/// let filter: Filter = "amount >= 5 and \"the day\" < 2026-02-01 and note is not null".parse()?;
/// # Ok::<(), windrow_files::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(pub(crate) Tree<Condition>);

/// Conditions, and the way in which they are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree<T> {
    Is(T),
    /// One of several trees (true), or all of them (false). There is at least one.
    Join(bool, Vec<Self>),
}

impl<T> Tree<T> {
    /// Combines results of the conditions; `join` is told whether one of both suffices.
    pub(crate) fn fold<'a, R, E>(
        &'a self,
        of: &mut dyn FnMut(&'a T) -> Result<R, E>,
        join: &dyn Fn(bool, R, R) -> R,
    ) -> Result<R, E> {
        match self {
            Self::Is(condition) => of(condition),
            Self::Join(any, trees) => {
                let mut all = trees[0].fold(of, join)?;
                for tree in &trees[1..] {
                    all = join(*any, all, tree.fold(of, join)?);
                }
                Ok(all)
            }
        }
    }

    fn of(any: bool, mut trees: Vec<Self>) -> Self {
        if trees.len() == 1 { trees.remove(0) } else { Self::Join(any, trees) }
    }
}

/// A condition on one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) column: String,
    pub(crate) test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Compare(Op, String),
    /// Null (true), or not null (false).
    Null(bool),
    /// One of the values (true), or none of them (false).
    In(Vec<String>, bool),
    /// Text like a pattern (true), or unlike it (false).
    Like(String, bool),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Op {
    /// Returns the operator that holds for all other values.
    fn negated(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
        }
    }
}

impl Filter {
    /// Iterates over the columns of the conditions, as written in the filter.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        let mut columns = Vec::new();
        let mut trees = vec![&self.0];
        while let Some(tree) = trees.pop() {
            match tree {
                Tree::Is(condition) => columns.push(condition.column.as_str()),
                Tree::Join(_, more) => trees.extend(more.iter().rev()),
            }
        }
        columns.into_iter()
    }

    /// Parses a condition. The error does not name the setting.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        let mut rest = words.as_slice();
        let tree = any(&mut rest, false, 0)?;
        match rest.first() {
            None => Ok(Self(tree)),
            Some(word) => Err(format!(
                "{} where `and` or `or` is expected; put a value that holds blanks in single quotes",
                shown(word)
            )),
        }
    }
}

/// A token of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// A name, a value or a word of the language.
    Bare(String),
    /// A name in double quotes. The quotes stay, since they delimit a step of a path.
    Name(String),
    /// Text in single quotes.
    Text(String),
    Op(Op),
    Open,
    Close,
    Comma,
}

impl FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let fault = |what: String| Error::usage(format!("{}: {what}", Setting::Where));
        Self::parse(text).map_err(fault)
    }
}

/// The most brackets within each other, below what the stack of a thread holds.
const DEEPEST: usize = 100;

fn any(rest: &mut &[Word], negated: bool, depth: usize) -> Result<Tree<Condition>, String> {
    let mut trees = vec![all(rest, negated, depth)?];
    while skipped(rest, "or") {
        trees.push(all(rest, negated, depth)?);
    }
    Ok(Tree::of(!negated, trees))
}

fn all(rest: &mut &[Word], negated: bool, depth: usize) -> Result<Tree<Condition>, String> {
    let mut trees = vec![one(rest, negated, depth)?];
    while skipped(rest, "and") {
        trees.push(one(rest, negated, depth)?);
    }
    Ok(Tree::of(negated, trees))
}

fn one(rest: &mut &[Word], negated: bool, depth: usize) -> Result<Tree<Condition>, String> {
    if depth > DEEPEST {
        return Err(format!("more than {DEEPEST} brackets are within each other"));
    }
    match rest {
        [not, behind @ ..] if is(not, "not") && !matches!(behind, [Word::Op(_), ..]) => {
            *rest = behind;
            one(rest, !negated, depth + 1)
        }
        [Word::Open, behind @ ..] => {
            *rest = behind;
            let tree = any(rest, negated, depth + 1)?;
            match next(rest) {
                Some(Word::Close) => Ok(tree),
                _ => Err("a bracket without its end, `)`".to_owned()),
            }
        }
        _ => condition(rest, negated),
    }
}

fn condition(rest: &mut &[Word], negated: bool) -> Result<Tree<Condition>, String> {
    let column = match next(rest) {
        Some(Word::Bare(name)) => name,
        Some(Word::Name(name)) => unquoted(&name),
        Some(other) => return Err(format!("{} where a column is expected", shown(&other))),
        None => return Err("a condition is missing; write column op value".to_owned()),
    };
    let compared = |op: Op, value| Test::Compare(if negated { op.negated() } else { op }, value);
    let is_not = !matches!(rest.first(), Some(Word::Op(_))) && skipped(rest, "not");
    let within = negated == is_not;
    let test = match next(rest) {
        Some(Word::Op(op)) if !is_not => compared(op, value(rest)?),
        Some(word) if is(&word, "is") && !is_not => {
            let not = skipped(rest, "not");
            match next(rest) {
                Some(word) if is(&word, "null") => Test::Null(negated == not),
                _ => return Err(format!("`{column} is` goes on with null or not null")),
            }
        }
        Some(word) if is(&word, "in") => Test::In(values(rest)?, within),
        Some(word) if is(&word, "like") => Test::Like(value(rest)?, within),
        Some(word) if is(&word, "between") => {
            let least = value(rest)?;
            if !skipped(rest, "and") {
                return Err(format!("`{column} between` goes on with A and B"));
            }
            let ops = [(Op::GreaterOrEqual, least), (Op::LessOrEqual, value(rest)?)];
            let test = |(op, value): (Op, _)| {
                let op = if within { op } else { op.negated() };
                Tree::Is(Condition { column: column.clone(), test: Test::Compare(op, value) })
            };
            return Ok(Tree::Join(!within, ops.map(test).into()));
        }
        Some(other) => {
            return Err(format!(
                "{} behind {column} is none of = != < <= > >= is in between like; put a name that holds \
                 blanks in double quotes",
                shown(&other)
            ));
        }
        None => return Err(format!("nothing behind {column}; write column op value")),
    };
    Ok(Tree::Is(Condition { column, test }))
}

/// Skips a word of the language, if it is next.
fn skipped(rest: &mut &[Word], keyword: &str) -> bool {
    let found = rest.first().is_some_and(|word| is(word, keyword));
    if found {
        *rest = &rest[1..];
    }
    found
}

fn value(rest: &mut &[Word]) -> Result<String, String> {
    match next(rest) {
        Some(Word::Bare(text) | Word::Text(text)) => Ok(text),
        Some(Word::Name(text)) => Err(format!("{text} is a name; put a text in single quotes")),
        Some(other) => Err(format!("{} where a value is expected", shown(&other))),
        None => Err("a value is missing at the end".to_owned()),
    }
}

fn values(rest: &mut &[Word]) -> Result<Vec<String>, String> {
    let expected = || "`in` goes on with values in brackets: (1, 2, 3)".to_owned();
    let mut values = Vec::new();
    if next(rest) != Some(Word::Open) {
        return Err(expected());
    }
    loop {
        values.push(value(rest)?);
        match next(rest) {
            Some(Word::Comma) => {}
            Some(Word::Close) => return Ok(values),
            _ => return Err(expected()),
        }
    }
}

fn next(rest: &mut &[Word]) -> Option<Word> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    Some(first.clone())
}

fn is(word: &Word, keyword: &str) -> bool {
    matches!(word, Word::Bare(text) if text.eq_ignore_ascii_case(keyword))
}

fn shown(word: &Word) -> String {
    match word {
        Word::Bare(text) | Word::Name(text) => text.clone(),
        Word::Text(text) => format!("'{text}'"),
        Word::Op(_) => "an operator".to_owned(),
        Word::Open => "(".to_owned(),
        Word::Close => ")".to_owned(),
        Word::Comma => "a comma".to_owned(),
    }
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, length) = match first {
            '(' => (Word::Open, 1),
            ')' => (Word::Close, 1),
            ',' => (Word::Comma, 1),
            '\'' => {
                let (inner, length) = text_in_quotes(rest)?;
                (Word::Text(inner), length)
            }
            '=' | '!' | '<' | '>' => {
                let (op, length) = op(rest)?;
                (Word::Op(op), length)
            }
            _ => bare(rest)?,
        };
        words.push(word);
        rest = rest[length..].trim_start();
    }
    Ok(words)
}

fn op(rest: &str) -> Result<(Op, usize), String> {
    let ops = [
        ("==", Op::Equal),
        ("!=", Op::NotEqual),
        ("<>", Op::NotEqual),
        ("<=", Op::LessOrEqual),
        (">=", Op::GreaterOrEqual),
        ("=", Op::Equal),
        ("<", Op::Less),
        (">", Op::Greater),
    ];
    let found = ops.into_iter().find(|(text, _)| rest.starts_with(text));
    let (text, op) = found.ok_or("`!` is no operator; write !=")?;
    Ok((op, text.len()))
}

/// Returns the text between single quotes, and its length with the quotes. Two quotes stand for
/// one.
fn text_in_quotes(rest: &str) -> Result<(String, usize), String> {
    let mut inner = String::new();
    let mut at = 1;
    while let Some(end) = rest[at..].find('\'') {
        inner.push_str(&rest[at..at + end]);
        at += end + 1;
        if !rest[at..].starts_with('\'') {
            return Ok((inner, at));
        }
        inner.push('\'');
        at += 1;
    }
    Err(format!("a quote without its end in {rest:?}"))
}

/// Returns a name or a value: all text up to a blank, a bracket, a comma or an operator outside of
/// double quotes.
fn bare(rest: &str) -> Result<(Word, usize), String> {
    let mut quoted = false;
    let mut has_quotes = false;
    let mut end = rest.len();
    for (at, c) in rest.char_indices() {
        if c == '"' {
            quoted = !quoted;
            has_quotes = true;
        } else if !quoted && (c.is_whitespace() || "(),=!<>'".contains(c)) {
            end = at;
            break;
        }
    }
    if quoted {
        return Err(format!("a quote without its end in {rest:?}"));
    }
    let text = rest[..end].to_owned();
    Ok((if has_quotes { Word::Name(text) } else { Word::Bare(text) }, end))
}
