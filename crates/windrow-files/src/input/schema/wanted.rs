//! Selection of columns: where a job needs only some columns, inputs may differ in all others.
//!
//! ```text
//!  a: id, v, w     wanted: id, v --narrow-->  id, v
//!  b: v, x, id                                id, v      in the order of the first
//! ```
//! Invariant: inputs are narrowed only if the first input has all wanted columns. An error for a
//! missing name can thus list all existing names.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::error::Result;
use crate::facts;
use crate::input::opened::Opened;
use crate::input::options::ReadOptions;
use crate::input::options::filter::Filter;
use crate::paths::Paths;
use crate::settings::Preset;

use super::hive::Hive;
use super::unify::{Order, Unifier};

/// The common columns of inputs, which are opened one after the other.
pub(crate) struct Common<'a> {
    options: &'a ReadOptions,
    unifier: Option<Unifier>,
    wanted: Option<Wanted>,
}

impl<'a> Common<'a> {
    /// Returns the state before the first input.
    pub(crate) fn new(options: &'a ReadOptions) -> Self {
        Self { options, unifier: None, wanted: None }
    }

    /// Returns the schema of the inputs so far.
    pub(crate) fn so_far(&self) -> Option<SchemaRef> {
        self.unifier.as_ref().map(Unifier::so_far)
    }

    /// Returns the positions of the needed columns in a file of this schema; `None` if all are
    /// needed. Directories in `hive` have further columns.
    pub(crate) fn counted(&self, schema: &Schema, hive: &Hive) -> Option<Vec<usize>> {
        match &self.unifier {
            Some(_) => self.wanted.as_ref()?.places(schema),
            None => Wanted::of(self.options, schema, hive)?.places(schema),
        }
    }

    /// Returns the positions of the common columns in an opened input.
    ///
    /// # Errors
    /// `Data` if the input differs from earlier inputs.
    pub(crate) fn fit(&mut self, opened: &Opened, hive: &Hive) -> Result<Order> {
        let name = &opened.about.name;
        if self.unifier.is_none() {
            self.wanted = Wanted::of(self.options, &opened.schema, hive);
        }
        let narrowed = match &self.wanted {
            Some(wanted) => wanted.narrow(&opened.schema),
            None => Narrowed::whole(&opened.schema),
        };
        let order = match &mut self.unifier {
            Some(unifier) => unifier.fit(name, &narrowed.schema)?,
            None => {
                let first = Arc::clone(&narrowed.schema);
                let mut unifier = Unifier::new(Arc::clone(name), first, self.options.union_by_name);
                if self.options.wide_keys {
                    unifier.fit(name, &narrowed.schema)?;
                }
                self.unifier = Some(unifier);
                None
            }
        };
        Ok(narrowed.order(order))
    }
}

/// The wanted columns, by name.
struct Wanted {
    names: Vec<String>,
    preset: Option<Preset>,
}

/// The schema of a file, reduced to the wanted columns.
struct Narrowed {
    schema: SchemaRef,
    /// Positions of the wanted columns in the file; `None` if the file has no other columns.
    places: Option<Vec<usize>>,
}

impl Wanted {
    /// Returns the columns that `options` want. Returns `None`, for all columns, if `options`
    /// select none or the `schema` of the first file lacks one. Directories in `hive` have further
    /// columns.
    fn of(options: &ReadOptions, schema: &Schema, hive: &Hive) -> Option<Self> {
        let preset = options.op_preset;
        // The rows are nested in the columns of a raw event.
        if preset.is_some_and(Preset::is_raw) {
            return None;
        }
        let filtered = options.filter.iter().flat_map(Filter::columns).map(str::to_owned);
        let names: Vec<String> = options.wanted.clone()?.into_iter().chain(filtered).collect();
        let paths = Paths::of(schema);
        let is_there = |name: &String| {
            paths.find(name).is_some() || hive.names().any(|of_directories| of_directories == name)
        };
        let has_all = names.iter().all(is_there);
        has_all.then_some(Self { names, preset })
    }

    /// Returns the positions of the wanted columns in `schema`; `None` if it has no others.
    fn places(&self, schema: &Schema) -> Option<Vec<usize>> {
        let paths = Paths::of(schema);
        let found = self.names.iter().filter_map(|name| paths.find(name)?.first().copied());
        let named: HashSet<usize> = found.collect();
        let of_log = |name: &str| self.preset.is_some_and(|preset| preset.reads(name));
        let places: Vec<usize> = (0..schema.fields().len())
            .filter(|place| named.contains(place) || of_log(schema.field(*place).name()))
            .collect();
        (places.len() < schema.fields().len()).then_some(places)
    }

    /// Narrows a file of this schema.
    fn narrow(&self, schema: &SchemaRef) -> Narrowed {
        let Some(places) = self.places(schema) else { return Narrowed::whole(schema) };
        Narrowed { schema: facts::chosen(schema, &places), places: Some(places) }
    }
}

impl Narrowed {
    /// Keeps all columns of a file.
    fn whole(schema: &SchemaRef) -> Self {
        Self { schema: Arc::clone(schema), places: None }
    }

    /// Converts an `order` within the narrowed schema to positions in the file.
    fn order(&self, order: Order) -> Order {
        let Some(places) = &self.places else { return order };
        Some(match order {
            None => places.iter().copied().map(Some).collect(),
            Some(order) => order.iter().map(|place| place.map(|place| places[place])).collect(),
        })
    }
}
