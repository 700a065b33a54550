//! The specification of any verb.

use crate::apply::ApplySpec;
use crate::error::{Error, Result};
use crate::input::{Inputs, ReadOptions};
use crate::job::Job;
use crate::output::{Target, WriteOptions};
use crate::verbs::{
    CheckSpec, CompactSpec, DedupeSpec, DiffSpec, HeadSpec, MergeSpec, PartitionSpec, SortSpec,
};

/// The specification of a verb.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Spec {
    /// Sorts rows.
    Sort(SortSpec),
    /// Reduces a change log.
    Compact(CompactSpec),
    /// Applies a change log to a table; see [`Apply`](crate::Apply).
    Apply(ApplySpec),
    /// Merges sorted inputs.
    Merge(MergeSpec),
    /// Splits rows into files.
    Partition(PartitionSpec),
    /// Removes duplicates.
    Dedupe(DedupeSpec),
    /// Compares two sides.
    Diff(DiffSpec),
    /// Returns the first rows.
    Head(HeadSpec),
    /// Checks an order; see [`check`](crate::check).
    Check(CheckSpec),
    /// Describes inputs; see [`FileFacts`](crate::FileFacts).
    Inspect,
}

impl Spec {
    /// Binds the specification to the schema of `inputs`. Differences need an
    /// [opened pair](Inputs::open_pair).
    ///
    /// # Errors
    /// As of the functions of [`Job`]. `Usage` for a verb without output.
    pub fn job(&self, inputs: Inputs) -> Result<Job> {
        match self {
            Self::Sort(spec) => Job::sort(inputs, spec),
            Self::Compact(spec) => Job::compact(inputs, spec),
            Self::Merge(spec) => Job::merge(inputs, spec),
            Self::Partition(spec) => Job::partition(inputs, spec),
            Self::Dedupe(spec) => Job::dedupe(inputs, spec),
            Self::Diff(spec) => Job::diff(inputs, spec),
            Self::Head(spec) => Job::head(inputs, spec),
            Self::Apply(_) | Self::Check(_) | Self::Inspect => {
                Err(Error::usage("the verb has no output"))
            }
        }
    }

    /// Adapts the options for inputs to the verb and to the output: formats of change logs are
    /// extracted, columns that no one needs are not read, and columns that the verb does not
    /// compare stay text between CSV and CSV.
    pub fn reading(
        &self,
        read: ReadOptions,
        write: &WriteOptions,
        target: Option<&Target>,
    ) -> ReadOptions {
        let (compared, select) = match self {
            Self::Sort(spec) => (spec.compared(), &spec.select),
            Self::Compact(spec) => (spec.compared(), &spec.select),
            Self::Merge(spec) => (spec.compared(), &spec.select),
            Self::Partition(spec) => (spec.compared(), &spec.select),
            Self::Dedupe(spec) => (spec.compared(), &spec.select),
            Self::Head(spec) => (spec.compared(), &spec.select),
            Self::Apply(spec) => return spec.changes.reading(read),
            Self::Diff(_) | Self::Check(_) | Self::Inspect => return read,
        };
        let read = if let Self::Compact(spec) = self { spec.reading(read) } else { read };
        let format = target.and_then(|target| match self {
            Self::Partition(_) => write.format,
            _ => write.format_of(target),
        });
        read.selecting(compared.clone(), select.as_deref()).carried_as_text(compared, format)
    }
}
