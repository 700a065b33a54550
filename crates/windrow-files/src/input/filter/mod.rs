//! Row filters: `amount > 5 and (country = 'nl' or note is not null)`.
//!
//! ```text
//! text --parse--> Filter --bind to the schema of the inputs--> Bound --prune--> row groups that can have rows
//!                                                                    --mask---> rows of a record batch
//! ```
//! A comparison with a null is not true, as in SQL. Among floats, NaN equals itself and is greater
//! than all other values, and -0.0 equals 0.0.

mod between;
mod prune;
#[cfg(test)]
mod tests;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, Scalar};
use arrow_buffer::BooleanBuffer;
use arrow_cast::cast;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, Schema};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;
use regex::{Regex, RegexBuilder};

use crate::equality::{one_form, plain_type};
use crate::error::{Error, Result, failed};
use crate::input::options::filter::{Condition, Filter, Op, Test, Tree};
use crate::input::text::exact::one_value;
use crate::nested::strict_cast;
use crate::paths;
use crate::paths::Steps;
use crate::settings::Setting;

use between::Between;

pub(super) use prune::{KeptRows, groups, rows};
pub(crate) use prune::{Statistics, is_of_the_first_form};

impl Filter {
    /// Binds the filter to the columns of `schema`.
    ///
    /// # Errors
    /// `Usage` for a missing column, or a literal that does not fit the type of its column.
    pub(super) fn bind(&self, schema: &Schema) -> Result<Bound> {
        let bind = &mut |condition: &Condition| condition.bind(schema).map(Tree::Is);
        let joined = self.0.fold(bind, &|any, one, other| match one {
            Tree::Join(of, mut trees) if of == any => {
                trees.push(other);
                Tree::Join(any, trees)
            }
            one => Tree::Join(any, vec![one, other]),
        });
        joined.map(Bound)
    }
}

impl Condition {
    fn bind(&self, schema: &Schema) -> Result<BoundCondition> {
        let steps = paths::find(schema, &self.column).ok_or_else(|| {
            let names = schema.fields().iter().map(|field| field.name().as_str());
            Error::missing_column(&self.column, names).of(Setting::Where)
        })?;
        let field = paths::field(schema, &steps, &self.column);
        let kind = plain_type(field.data_type());
        let value = |text: &String| match literal(text, kind) {
            Some(value) => Ok(Value::There(Scalar::new(one_form(&value)))),
            None => Between::of(text, kind).map(Value::Between).ok_or_else(|| {
                Error::usage(format!(
                    "{}: {text:?} is no value of column {:?}, which is {}",
                    Setting::Where,
                    self.column,
                    field.data_type()
                ))
            }),
        };
        let test = match &self.test {
            Test::Null(null) => BoundTest::Null(*null),
            Test::Compare(op, text) => match value(text)? {
                Value::There(value) => BoundTest::Compare(*op, value),
                Value::Between(value) => value.test(*op),
            },
            Test::In(texts, within) => {
                let values = texts.iter().map(value).collect::<Result<Vec<_>>>()?;
                let there = values.into_iter().filter_map(|value| match value {
                    Value::There(value) => Some(value),
                    Value::Between(_) => None,
                });
                BoundTest::In(there.collect(), *within)
            }
            Test::Like(pattern, within) if kind.is_string() => {
                BoundTest::Like(like(pattern)?, *within)
            }
            Test::Like(..) => {
                let message = format!("`like` takes text, and column {:?} is {kind}", self.column);
                return Err(Error::usage(message).of(Setting::Where));
            }
        };
        Ok(BoundCondition { name: self.column.clone(), steps, test })
    }
}

/// A literal: a value of the column's type, or a number between two such values.
enum Value {
    There(Scalar<ArrayRef>),
    Between(Between),
}

/// Parses `text` as a value of `kind`. Returns `None` if `text` is no such value.
pub(crate) fn literal(text: &str, kind: &DataType) -> Option<ArrayRef> {
    let plain = plain_type(kind);
    // A cast would turn text into a list with one item.
    if plain.is_nested() || plain.is_null() {
        return None;
    }
    let value = strict_cast(&one_value(text, plain).ok()?, kind).ok()?;
    (value.null_count() == 0).then_some(value)
}

/// Returns the expression of a pattern, where `%` stands for any text, `_` for a character, and `\` takes the meaning
/// from the next character.
///
/// # Errors
/// `Usage` for a pattern that takes more than [`PATTERN_BYTES`] of memory, which no plan counts.
fn like(pattern: &str) -> Result<Regex> {
    let mut expression = "(?s)^".to_owned();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => expression += ".*",
            '_' => expression += ".",
            '\\' => expression += &regex::escape(&letters.next().unwrap_or('\\').to_string()),
            letter => expression += &regex::escape(&letter.to_string()),
        }
    }
    RegexBuilder::new(&(expression + "$")).size_limit(PATTERN_BYTES).build().map_err(|_| {
        let message = "a pattern of `like` is too long: some thousand characters are possible, and fewer `%` and `_`";
        Error::usage(message).of(Setting::Where)
    })
}

/// Maximum bytes of a compiled pattern.
const PATTERN_BYTES: usize = 1 << 20;

/// A [`Filter`] bound to the columns of a schema.
pub(crate) struct Bound(Tree<BoundCondition>);

struct BoundCondition {
    name: String,
    steps: Steps,
    test: BoundTest,
}

enum BoundTest {
    Compare(Op, Scalar<ArrayRef>),
    Null(bool),
    In(Vec<Scalar<ArrayRef>>, bool),
    Like(Regex, bool),
}

impl BoundTest {
    const NEVER: Self = Self::In(Vec::new(), true);
    const NOT_NULL: Self = Self::Null(false);
}

impl Bound {
    /// Returns whether the filter excludes all rows of a file. `value` returns the value of a
    /// column that is constant in the file.
    pub(super) fn excludes<'a>(
        &self,
        schema: &Schema,
        value: impl Fn(&str) -> Option<&'a ArrayRef>,
    ) -> bool {
        let is_excluded = &mut |condition: &BoundCondition| {
            let [column] = condition.steps[..] else { return Ok::<_, ()>(false) };
            let met = value(schema.field(column).name()).map(|value| condition.met(value));
            Ok(met.is_some_and(|met| met.is_ok_and(|met| met.count_set_bits() == 0)))
        };
        let joined = self.0.fold(is_excluded, &|any, a, b| if any { a && b } else { a || b });
        joined.unwrap_or(false)
    }

    /// Returns a mask of the rows of `batch` that pass the filter; `None` if all rows pass.
    pub(crate) fn mask(&self, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
        let met = &mut |condition: &BoundCondition| {
            condition.mask(batch).map_err(|fault| {
                Error::data(format!("{}: column {:?}: {fault}", Setting::Where, condition.name))
            })
        };
        let mask = self.0.fold(met, &|any, a, b| if any { &a | &b } else { &a & &b })?;
        Ok(Some(mask).filter(|mask| mask.count_set_bits() < mask.len()))
    }
}

/// Returns the rows of `batch` selected by `mask`.
pub(super) fn chosen(batch: &RecordBatch, mask: &BooleanBuffer) -> Result<RecordBatch> {
    filter_record_batch(batch, &BooleanArray::new(mask.clone(), None)).map_err(failed)
}

impl BoundCondition {
    fn mask(&self, batch: &RecordBatch) -> Result<BooleanBuffer, ArrowError> {
        self.met(&paths::values(batch, &self.steps)?)
    }

    /// Returns a mask of the `values` that meet the condition.
    fn met(&self, values: &ArrayRef) -> Result<BooleanBuffer, ArrowError> {
        match &self.test {
            BoundTest::Null(null) => {
                let there = match values.logical_nulls() {
                    Some(nulls) => nulls.into_inner(),
                    None => BooleanBuffer::new_set(values.len()),
                };
                Ok(if *null { !&there } else { there })
            }
            BoundTest::Compare(op, value) => Ok(certain(&compare(values, *op, value)?)),
            BoundTest::In(list, within) => {
                let mut found = BooleanBuffer::new_unset(values.len());
                for value in list {
                    found = &found | &certain(&compare(values, Op::Equal, value)?);
                }
                Ok(if *within { found } else { others(values, &found) })
            }
            BoundTest::Like(pattern, within) => {
                let found = certain(&plainly(values, &|values| {
                    let texts = cast(values, &DataType::Utf8View)?;
                    let texts = texts.as_string_view().iter();
                    Ok(texts.map(|text| text.map(|text| pattern.is_match(text))).collect())
                })?);
                Ok(if *within { found } else { others(values, &found) })
            }
        }
    }
}

/// Returns a mask of the values that are not in `found`, and not null.
fn others(values: &ArrayRef, found: &BooleanBuffer) -> BooleanBuffer {
    match values.logical_nulls() {
        None => !found,
        Some(nulls) => &!found & nulls.inner(),
    }
}

/// Returns `mask` with nulls as false.
fn certain(mask: &BooleanArray) -> BooleanBuffer {
    match mask.nulls() {
        Some(nulls) => mask.values() & nulls.inner(),
        None => mask.values().clone(),
    }
}

/// Tests `values`, in any encoding, by a test of plain values.
fn plainly(
    values: &ArrayRef,
    test: &dyn Fn(&ArrayRef) -> Result<BooleanArray, ArrowError>,
) -> Result<BooleanArray, ArrowError> {
    match values.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = values.as_any_dictionary();
            let of_values = plainly(dictionary.values(), test)?;
            Ok(take(&of_values, dictionary.keys(), None)?.as_boolean().clone())
        }
        DataType::RunEndEncoded(_, of) => plainly(&cast(values, of.data_type())?, test),
        _ => test(values),
    }
}

/// Compares `values`, in any encoding, to `value`, which has the type of the values.
fn compare(
    values: &ArrayRef,
    op: Op,
    value: &Scalar<ArrayRef>,
) -> Result<BooleanArray, ArrowError> {
    let compare = match op {
        Op::Equal => cmp::eq,
        Op::NotEqual => cmp::neq,
        Op::Less => cmp::lt,
        Op::LessOrEqual => cmp::lt_eq,
        Op::Greater => cmp::gt,
        Op::GreaterOrEqual => cmp::gt_eq,
    };
    plainly(values, &|values| compare(&one_form(values), value))
}
