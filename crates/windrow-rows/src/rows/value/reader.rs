//! The trait of readers.

use arrow_array::ArrayRef;

use super::super::nested::{Form, Marked};
use super::super::row_ref::Rest;
use crate::error::Result;
use crate::order::code::Node;

/// Reads values, and builds an array of the same type.
///
/// After an error a reader holds part of a value: drop the reader. (`finish` then reports an error
/// or returns a meaningless array, but does not panic.)
pub(crate) trait ValueReader: Send {
    /// Reads the ordered code of a value, without its marker, from each of `rows`, and advances the
    /// rows. No value is null. Text is not validated before the end. A reader implements this method
    /// or [`ValueReader::read_marked`].
    fn read_bodies(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        self.read_marked(node, form, None, rows)
    }

    /// Reads values inside other values like [`ValueReader::read_bodies`], with their markers.
    fn read_codes(&mut self, node: &Node, form: Form, rows: &mut Rest<'_, '_>) -> Result<()> {
        match node {
            Node::Nothing | Node::Union(_) => self.read_bodies(node, form, rows),
            _ => self.read_marked(node, form, Some(form.marked()), rows),
        }
    }

    /// Reads nullable values like [`ValueReader::read_bodies`], each after a marker if `marked`.
    fn read_marked(
        &mut self,
        node: &Node,
        form: Form,
        marked: Option<Marked>,
        rows: &mut Rest<'_, '_>,
    ) -> Result<()> {
        let Some(marked) = marked else { return self.read_bodies(node, form, rows) };
        if marked.are_values(rows)? {
            rows.cursors.iter_mut().for_each(|cursor| *cursor += 1);
            return self.read_bodies(node, form, rows);
        }
        let mut first = 0;
        for at in 0..rows.len() {
            if !rows.read(at, |row| marked.is_value(row))? {
                self.read_bodies(node, form, &mut rows.part(first..at))?;
                self.fill(1, false)?;
                first = at + 1;
            }
        }
        self.read_bodies(node, form, &mut rows.part(first..rows.len()))
    }

    /// Reads lists of values that each follow two marker bytes. Stops at the first list to be read
    /// one by one: one of its values is null, or the type has no path for lists. Writes the number
    /// of values of each list to `counts`, which has an entry for each of `rows`; returns the
    /// number of lists read.
    fn read_lists(
        &mut self,
        _node: &Node,
        _form: Form,
        _rows: &mut Rest<'_, '_>,
        _counts: &mut [usize],
    ) -> usize {
        0
    }

    /// Appends `count` nulls. If `valid` and if the type allows, appends placeholders for unused
    /// slots: the fields of a null struct, the other children of a sparse union.
    fn fill(&mut self, count: usize, valid: bool) -> Result<()>;

    /// Builds the array of all values read since the last call, and empties the reader.
    fn finish(&mut self) -> Result<ArrayRef>;
}
