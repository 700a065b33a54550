//! Which columns are written.

use arrow::datatypes::Schema;

use crate::error::{CliError, Result};

/// Positions in `schema` of the columns named by `--select`, or of all that are not `hidden`.
pub(super) fn projection(
    schema: &Schema,
    select: Option<&[String]>,
    hidden: &[String],
) -> Result<Vec<usize>> {
    let Some(select) = select else {
        let shown = |&index: &usize| !hidden.contains(schema.field(index).name());
        return Ok((0..schema.fields().len()).filter(shown).collect());
    };
    let mut columns = Vec::new();
    for name in select {
        let index = schema.index_of(name).map_err(|_| {
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            CliError::Usage(format!(
                "--select: no column named {name:?}; the columns are {}",
                names.join(", ")
            ))
        })?;
        if columns.contains(&index) {
            return Err(CliError::Usage(format!("--select: {name:?} is named twice")));
        }
        columns.push(index);
    }
    Ok(columns)
}
