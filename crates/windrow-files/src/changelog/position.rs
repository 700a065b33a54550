//! The position of a Debezium event in the log of its database.
//!
//! ```text
//!  op  source.lsn
//!  r       50        the first snapshot
//!  c      100
//!  u      150
//!  r      900        a second snapshot, after a slot was lost: newer than what came before it
//!  r    (null)       of no known place: older than all events
//! ```
//! An event of a transaction still open during a snapshot may have a position before the
//! snapshot's. The event was written after the snapshot and must sort after it: see
//! [`Known`](crate::verbs). At equal positions an event wins over a snapshot row, because an
//! incremental snapshot reads rows that the preceding event may have changed. A time is no
//! position: the time of a snapshot row is the time of reading, later than events missing from the
//! row.

use windrow::SortColumn as Column;

/// Returns the number of leading columns of `order_by` that form a position.
pub(super) fn leading(order_by: &[Column]) -> usize {
    let mut has_file = false;
    let is_position = |column: &&Column| {
        let name = column.name.as_str();
        let of_source = name.strip_prefix("source.").or_else(|| name.strip_prefix("__source_"));
        let name = of_source.or_else(|| name.strip_prefix("__")).unwrap_or_default();
        has_file |= name == "file";
        !column.descending
            && match name {
                "lsn" | "scn" | "commit_scn" | "commit_lsn" | "change_lsn" | "file" => true,
                // Positions start anew in each file.
                "pos" | "row" => has_file,
                _ => false,
            }
    };
    order_by.iter().take_while(is_position).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_stand_in_front_of_other_columns() {
        for (columns, expected) in [
            (&["source.lsn", "source.ts_ms"][..], 1),
            (&["source.file", "source.pos", "source.row", "ts_ms"], 3),
            (&["source.pos"], 0),
            (&["ts_ms", "source.lsn"], 0),
            (&["__source_scn"], 1),
            (&["__lsn"], 1),
            (&["lsn"], 0),
            (&[], 0),
        ] {
            let order_by: Vec<Column> = columns.iter().map(|name| windrow::asc(*name)).collect();
            assert_eq!(leading(&order_by), expected, "{columns:?}");
        }
        assert_eq!(leading(&[windrow::desc("source.lsn")]), 0);
    }
}
