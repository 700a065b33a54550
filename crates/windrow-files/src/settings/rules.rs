//! Settings that need or exclude each other.

use super::choices::Verb;
use super::table::Setting;

/// A condition on the settings that are given.
#[derive(Debug)]
pub(crate) enum Rule {
    /// One of these is given.
    OneOf(&'static [Setting]),
    /// The first is given only with the second.
    Needs(Setting, Setting),
    /// The first is given with none of the others.
    Alone(Setting, &'static [Setting]),
}

/// The rules of the verbs.
pub(crate) const RULES: &[(&[Verb], Rule)] = {
    use Setting::*;
    &[
        (&[Verb::Sort, Verb::Merge, Verb::Partition, Verb::Check], Rule::OneOf(&[By])),
        (&[Verb::Diff, Verb::Apply], Rule::OneOf(&[Key])),
        (&[Verb::Compact], Rule::OneOf(&[Key, Diff])),
        (&[Verb::Compact], Rule::Alone(Diff, &[OrderBy, OpPreset, OpColumn, OpMap, Table])),
        (&[Verb::Compact, Verb::Merge], Rule::Needs(Time, Diff)),
        (&[Verb::Merge], Rule::Alone(Unique, &[Diff, FloatOrder])),
        (&[Verb::Merge], Rule::Needs(Diff, Consolidate)),
        (&[Verb::Merge], Rule::Needs(Consolidate, Diff)),
        (&[Verb::Check], Rule::Alone(Unique, &[FloatOrder])),
        (&[Verb::Partition], Rule::OneOf(&[Into, RangeAt, Hive])),
        (&[Verb::Partition], Rule::Alone(Hive, &[Into, Range, RangeAt])),
        (&[Verb::Partition], Rule::Alone(RangeAt, &[Into])),
        (&[Verb::Partition], Rule::Needs(Range, Into)),
        (&[Verb::Partition], Rule::OneOf(&[Output])),
    ]
};
