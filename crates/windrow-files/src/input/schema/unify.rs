//! One schema for all inputs.
//!
//! The first input determines names, order, types and metadata; metadata only as far as it is [true
//! of all](crate::facts) inputs. Other inputs may have the columns in another order, and the same
//! values in another representation, which is converted to a common one:
//!
//! ```text
//!  string, large string, string view; binary alike       the first's
//!  a dictionary and another, or what is in it             what is in it
//!  decimals of another width, of as many digits           the first's
//!  lists and large lists, whatever their items are called the first's
//!  lists of fixed length and others                       lists
//!  timestamps of two zones                                the first's: the instants are the same
//!  nothing but nulls                                      the other's
//!  dictionaries with keys of 8 or 16 bits                 keys of 32 bits
//! ```
//! Nested types match if their parts match. A column is nullable if it is nullable in any input.
//! All else must agree: an error names the missing, extra or differing column and both files.
//!
//! A union by name is less strict. A column that an input lacks is null in its rows; additional
//! columns are appended; types are widened to hold the values of all inputs (see
//! [`widen`](super::widen)).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use arrow_array::{RecordBatch, new_null_array};
use arrow_cast::can_cast_types;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::facts;
use crate::facts::Pairs;
use crate::input::formats::parquet::annotations;
use crate::names::Places;
use crate::nested::{of_decimal, with_rows, with_type};
use crate::settings::Setting;

use super::widen::{nullable, widened, wider, with_wide_keys};

/// The common schema of the inputs so far.
pub(super) struct Unifier {
    first: Arc<str>,
    schema: SchemaRef,
    fields: Vec<FieldRef>,
    metadata: Pairs,
    by_name: bool,
}

/// Positions of the schema's columns in a file, `None` for a missing column. No order at all means
/// that the file has the order of the schema. Only other files have the columns after the last
/// position.
pub(crate) type Order = Option<Arc<[Option<usize>]>>;

impl Unifier {
    /// Starts with the name and the schema of the first file. With `by_name`, later files may have
    /// other columns.
    pub(super) fn new(name: Arc<str>, schema: SchemaRef, by_name: bool) -> Self {
        let (fields, metadata) = (schema.fields().to_vec(), schema.metadata().clone());
        Self { first: name, fields, metadata, schema, by_name }
    }

    /// Returns the common schema of the files so far.
    pub(super) fn so_far(&self) -> SchemaRef {
        if self.fields.as_slice() == &self.schema.fields()[..]
            && self.metadata == *self.schema.metadata()
        {
            return self.schema.clone();
        }
        Arc::new(Schema::new_with_metadata(self.fields.clone(), self.metadata.clone()))
    }

    /// Includes the file `name` with the schema `other`, and returns the positions of the columns
    /// in the file.
    ///
    /// # Errors
    /// `Data` with the names of both files and of the differing column.
    pub(super) fn fit(&mut self, name: &str, other: &Schema) -> Result<Order> {
        let same_names = self.fields.len() == other.fields().len()
            && self.fields.iter().zip(other.fields()).all(|(a, b)| a.name() == b.name());
        let order = match (same_names, self.by_name) {
            (true, _) => None,
            (false, true) => Some(self.united(name, other)?),
            (false, false) => Some(self.order_in(name, other)?),
        };
        let by_name = self.by_name;
        self.metadata = facts::joined(&self.metadata, other.metadata())
            .map_err(|what| Error::data(format!("{name}: {what}; see {}", self.first)))?;
        for (position, field) in self.fields.iter_mut().enumerate() {
            let place = order.as_ref().map_or(Some(position), |order| order[position]);
            let Some(there) = place.map(|place| other.field(place)) else {
                *field = nullable(field);
                continue;
            };
            widen_keys(field);
            let mut there = Arc::new(there.clone());
            widen_keys(&mut there);
            let there = &*there;
            *field = common_field(field, there, by_name).ok_or_else(|| {
                let remedy = match by_name {
                    true => String::new(),
                    false => format!(", or see whether {} widens it", Setting::UnionByName),
                };
                let (kind, first) = match there.data_type() == field.data_type() {
                    true => annotations::shown([there, field]),
                    false => [there, field].map(|field| field.data_type().to_string()).into(),
                };
                Error::data(format!(
                    "{name}: column '{}' is {kind}, but {first} in {}; cast it in one of them first{remedy}",
                    field.name(),
                    self.first
                ))
            })?;
        }
        Ok(order)
    }

    /// Returns the positions of the columns in `other`, and appends the additional columns of
    /// `other`.
    fn united(&mut self, name: &str, other: &Schema) -> Result<Arc<[Option<usize>]>> {
        // Columns with equal names are paired in order.
        let mut left: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (place, field) in other.fields().iter().enumerate() {
            left.entry(field.name()).or_default().push_back(place);
        }
        let place = |field: &FieldRef| left.get_mut(field.name().as_str())?.pop_front();
        let mut order: Vec<Option<usize>> = self.fields.iter().map(place).collect();
        let taken: HashSet<usize> = order.iter().flatten().copied().collect();
        let known = self.fields.clone();
        let mut known: HashSet<&str> = known.iter().map(|field| field.name().as_str()).collect();
        let fields = other.fields().iter().enumerate();
        for (place, field) in fields.filter(|(place, _)| !taken.contains(place)) {
            if !known.insert(field.name()) {
                return Err(self.twice(name, field.name()));
            }
            self.fields.push(nullable(field));
            order.push(Some(place));
        }
        Ok(order.into())
    }

    fn twice(&self, name: &str, column: &str) -> Error {
        Error::data(format!(
            "{name}: column '{column}' is there twice, so the order of columns must be that of {}",
            self.first
        ))
    }

    fn order_in(&self, name: &str, other: &Schema) -> Result<Arc<[Option<usize>]>> {
        let mut order = Vec::with_capacity(self.fields.len());
        let (places, known) = (Places::of(other.fields()), Places::of(&self.fields));
        for field in &self.fields {
            let Some(place) = places.first(field.name()) else {
                return Err(Error::data(format!(
                    "{name}: column '{}' is missing; {} has it; {} would have it null",
                    field.name(),
                    self.first,
                    Setting::UnionByName
                )));
            };
            if places.only(field.name()).is_none() {
                return Err(self.twice(name, field.name()));
            }
            order.push(Some(place));
        }
        for field in other.fields() {
            if !known.has(field.name()) {
                return Err(Error::data(format!(
                    "{name}: column '{}' is not in {}; {} would have it null there",
                    field.name(),
                    self.first,
                    Setting::UnionByName
                )));
            }
        }
        if order.len() != other.fields().len() {
            return Err(Error::data(format!(
                "{name}: has {} columns, but {} has {}",
                other.fields().len(),
                self.first,
                order.len()
            )));
        }
        Ok(order.into())
    }
}

/// Returns a field for the values of both fields, with the name of `first`.
fn common_field(first: &FieldRef, other: &Field, by_name: bool) -> Option<FieldRef> {
    let first = &annotations::common(first, other)?;
    let kind = common_type(first.data_type(), other.data_type(), by_name)?;
    let nullable = first.is_nullable() || other.is_nullable();
    if kind == *first.data_type() && nullable == first.is_nullable() {
        return Some(first.clone());
    }
    Some(Arc::new(Field::clone(first).with_data_type(kind).with_nullable(nullable)))
}

/// Returns a type for the values of both, in the representation of `first` where possible. Returns
/// `None` if the types have no common type; without `by_name`, only representations may differ.
fn common_type(first: &DataType, other: &DataType, by_name: bool) -> Option<DataType> {
    use DataType as D;
    let common = match (first, other) {
        (first, other) if first == other => return Some(first.clone()),
        (D::Null, kind) | (kind, D::Null) => kind.clone(),
        (D::Dictionary(_, values), D::Dictionary(_, others)) => {
            common_type(values, others, by_name)?
        }
        (D::Dictionary(_, values), kind) => common_type(values, kind, by_name)?,
        (kind, D::Dictionary(_, values)) => common_type(kind, values, by_name)?,
        (D::Timestamp(unit, Some(_)), D::Timestamp(other, Some(_))) if unit == other => {
            first.clone()
        }
        (D::List(of), D::List(other) | D::LargeList(other) | D::FixedSizeList(other, _))
        | (D::FixedSizeList(of, _), D::List(other)) => D::List(common_field(of, other, by_name)?),
        (D::LargeList(of), D::List(other) | D::LargeList(other)) => {
            D::LargeList(common_field(of, other, by_name)?)
        }
        (D::FixedSizeList(of, length), D::FixedSizeList(other, same)) if length == same => {
            D::FixedSizeList(common_field(of, other, by_name)?, *length)
        }
        (D::Map(of, sorted), D::Map(other, same)) if sorted == same => {
            // The keys of a map are identified by position alone.
            D::Map(common_entries(of, other, by_name)?, *sorted)
        }
        (D::Struct(fields), D::Struct(others)) if by_name => {
            return Some(D::Struct(united_members(fields, others)?));
        }
        (D::Struct(fields), D::Struct(others)) => {
            let named_alike =
                fields.iter().map(|field| field.name()).eq(others.iter().map(|field| field.name()));
            let pairs = fields.iter().zip(others);
            let fields = pairs.map(|(field, other)| common_field(field, other, by_name));
            D::Struct(fields.collect::<Option<_>>().filter(|_| named_alike)?)
        }
        (first, other) if first.is_decimal() && of_decimal(first) == of_decimal(other) => {
            first.clone()
        }
        (first, other) if first.is_string() && other.is_string() => first.clone(),
        (first, other) if is_binary(first) && is_binary(other) => first.clone(),
        // Bytes outside of UTF-8 are an error at conversion.
        (text, binary) | (binary, text) if by_name && text.is_string() && is_binary(binary) => {
            text.clone()
        }
        (first, other) if by_name => return wider(first, other),
        _ => return None,
    };
    if by_name && common.is_nested() {
        return Some(common);
    }
    [first, other].iter().all(|kind| can_cast_types(kind, &common)).then_some(common)
}

/// Widens the dictionary keys of a column, for the values of many inputs.
fn widen_keys(field: &mut FieldRef) {
    let kind = with_wide_keys(field.data_type());
    if kind != *field.data_type() {
        *field = with_type(field, kind);
    }
}

fn common_entries(first: &FieldRef, other: &Field, by_name: bool) -> Option<FieldRef> {
    let (DataType::Struct(fields), DataType::Struct(others)) =
        (first.data_type(), other.data_type())
    else {
        return None;
    };
    let pairs = fields.iter().zip(others);
    let fields =
        pairs.map(|(field, other)| common_field(field, other, by_name)).collect::<Option<_>>()?;
    Some(Arc::new(Field::clone(first).with_data_type(DataType::Struct(fields))))
}

/// Returns the members of both structs, by name; `None` if a struct has two members of one name.
fn united_members(fields: &Fields, others: &Fields) -> Option<Fields> {
    let (here, there) = (Places::of(fields), Places::of(others));
    let is_twice = |places: &Places<'_>, field: &FieldRef| places.only(field.name()).is_none();
    if fields.iter().any(|field| is_twice(&here, field))
        || others.iter().any(|field| is_twice(&there, field))
    {
        return None;
    }
    let own = fields.iter().map(|field| match there.first(field.name()) {
        Some(place) => common_field(field, &others[place], true),
        None => Some(nullable(field)),
    });
    let more = others.iter().filter(|field| !here.has(field.name()));
    own.chain(more.map(|field| Some(nullable(field)))).collect()
}

fn is_binary(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Returns `batch` with its columns in `order`, as rows of `schema`.
pub(crate) fn conform(
    batch: RecordBatch,
    order: &Order,
    schema: &SchemaRef,
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    if order.is_none() && Arc::ptr_eq(batch.schema_ref(), schema) {
        return Ok(batch);
    }
    let columns = schema.fields().iter().enumerate().map(|(place, field)| {
        let at = match order {
            Some(order) => order.get(place).copied().flatten(),
            None => (place < batch.num_columns()).then_some(place),
        };
        match at {
            Some(at) => widened(batch.column(at), field.data_type()),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        }
    });
    with_rows(schema, columns.collect::<Result<_, _>>()?, batch.num_rows())
}
