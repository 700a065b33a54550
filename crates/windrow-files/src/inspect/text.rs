//! Display of facts as aligned text.

use std::fmt::{self, Result, Write};

use crate::input::DeclaredColumn;

use super::facts::{FileFacts, GroupFacts, LeafFacts, OrderFacts, ParquetFacts};

/// Maximum number of row groups to list. For more, the text has minimum, median and maximum.
const LISTED_GROUPS: usize = 12;

/// Text for an unknown fact.
const UNKNOWN: &str = "-";

impl fmt::Display for FileFacts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> Result {
        let facts = self;
        writeln!(out, "{}", facts.file)?;
        let mut head = vec![
            pair("format", facts.format.clone()),
            pair("size", facts.bytes.map_or(UNKNOWN.into(), size)),
            pair("rows", facts.rows.map_or(UNKNOWN.into(), |rows| rows.to_string())),
        ];
        if let Some(parquet) = &facts.parquet {
            head.push(pair("row groups", parquet.row_groups.len().to_string()));
            let writer = parquet.created_by.clone().unwrap_or(UNKNOWN.into());
            head.push(pair("created by", writer));
            head.push(pair("version", parquet.version.to_string()));
        }
        if !facts.metadata_keys.is_empty() {
            head.push(pair("metadata", facts.metadata_keys.join(", ")));
        }
        if let Some(parquet) = &facts.parquet {
            head.push(pair("declared order", declared(parquet)));
        }
        table(&head, &[], out)?;
        writeln!(out, "\nschema")?;
        let mut rows = vec![line(["column", "type", "nullable"])];
        rows.extend(facts.schema.iter().map(|field| {
            let nullable = if field.nullable { "yes" } else { "no" };
            line([&field.name, &field.kind, nullable])
        }));
        table(&rows, &[], out)?;
        if let Some(parquet) = &facts.parquet {
            writeln!(out, "\ncolumns")?;
            columns(&parquet.columns, out)?;
            writeln!(out, "\nrow groups")?;
            groups(&parquet.row_groups, out)?;
        }
        Ok(())
    }
}

fn declared(parquet: &ParquetFacts) -> String {
    match &parquet.order {
        Some(OrderFacts { columns, holds, first_row_out_of_order }) => {
            let verdict = match (holds, first_row_out_of_order) {
                (Some(true), _) => "holds".into(),
                (Some(false), Some(row)) => format!("broken at row {row}"),
                _ => "not checked".into(),
            };
            format!("{}: {verdict}", order(columns))
        }
        None if parquet.row_groups.iter().all(|group| group.sorted_by.is_empty()) => "none".into(),
        None => "differs between row groups".into(),
    }
}

fn order(columns: &[DeclaredColumn]) -> String {
    let columns = columns.iter().map(|column| {
        format!(
            "{} {} nulls {}",
            column.name,
            if column.descending { "desc" } else { "asc" },
            if column.nulls_first { "first" } else { "last" }
        )
    });
    columns.collect::<Vec<_>>().join(", ")
}

fn columns(leaves: &[LeafFacts], out: &mut dyn Write) -> Result {
    let head =
        ["column", "physical", "codec", "encodings", "compressed", "plain", "nulls", "min", "max"];
    let mut rows = vec![line(head)];
    rows.extend(leaves.iter().map(|leaf| {
        vec![
            leaf.name.clone(),
            leaf.physical_type.clone(),
            leaf.codec.clone(),
            leaf.encodings.join("+"),
            leaf.compressed_bytes.to_string(),
            leaf.uncompressed_bytes.to_string(),
            leaf.nulls.map_or(UNKNOWN.into(), |nulls| nulls.to_string()),
            leaf.min.clone().unwrap_or(UNKNOWN.into()),
            leaf.max.clone().unwrap_or(UNKNOWN.into()),
        ]
    }));
    table(&rows, &[4, 5, 6], out)
}

fn groups(groups: &[GroupFacts], out: &mut dyn Write) -> Result {
    let numbers = |name: String, [rows, packed, plain]: [i64; 3]| {
        vec![name, rows.to_string(), packed.to_string(), plain.to_string()]
    };
    let of = |group: &GroupFacts| [group.rows, group.compressed_bytes, group.uncompressed_bytes];
    let mut rows = vec![line(["", "rows", "compressed", "plain"])];
    if groups.len() <= LISTED_GROUPS {
        // Orders are written only if they differ between row groups.
        let differ = groups.windows(2).any(|two| two[0].sorted_by != two[1].sorted_by);
        for (ordinal, group) in groups.iter().enumerate() {
            let mut row = numbers(ordinal.to_string(), of(group));
            if differ {
                row.push(order(&group.sorted_by));
            }
            rows.push(row);
        }
    } else {
        let mut sorted: [Vec<i64>; 3] = Default::default();
        for group in groups {
            for (values, value) in sorted.iter_mut().zip(of(group)) {
                values.push(value);
            }
        }
        sorted.iter_mut().for_each(|values| values.sort_unstable());
        for (name, at) in [("min", 0), ("median", groups.len() / 2), ("max", groups.len() - 1)] {
            let at = |measure: usize| sorted[measure][at];
            rows.push(numbers(name.into(), [at(0), at(1), at(2)]));
        }
    }
    table(&rows, &[1, 2, 3], out)
}

fn pair(name: &str, value: String) -> Vec<String> {
    vec![name.to_string(), value]
}

fn line<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Formats a size for people, with the bytes for scripts.
fn size(bytes: u64) -> String {
    let power = (bytes.max(1).ilog2() / 10).min(4);
    let value = bytes as f64 / 1024_f64.powi(power.cast_signed());
    match ["", "KiB", "MiB", "GiB", "TiB"][power as usize] {
        "" => format!("{bytes} bytes"),
        unit => format!("{value:.1} {unit} ({bytes} bytes)"),
    }
}

/// Escapes control characters, which could move the cursor or colour a terminal: names and values
/// are untrusted.
fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if c.is_control() {
            shown.extend(c.escape_default())
        } else {
            shown.push(c)
        }
        shown
    })
}

/// Prints `rows` in columns. A column is as wide as its widest cell, up to `WIDEST`. The columns
/// `right` are right-aligned.
fn table(rows: &[Vec<String>], right: &[usize], out: &mut dyn Write) -> Result {
    /// Maximum width of a column. A longer name shifts only the rest of its own line.
    const WIDEST: usize = 64;
    let shown: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let rows = &shown;
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).min(WIDEST)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            text.push_str("  ");
            text.push_str(&if right.contains(&column) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:width$}")
            });
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}
