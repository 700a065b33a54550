//! The queries: the eleven of DataFusion's own bench of sorts, three of change logs, two exchanges, and
//! all of TPC-H.

use Rest::{Exchanged, Published, Sorted, Whole};

/// A query, with and without its order.
pub(crate) struct Query {
    pub(crate) name: &'static str,
    /// The columns of an unsorted scan.
    columns: &'static str,
    rest: Rest,
}

enum Rest {
    /// Ordered by the first n columns.
    Sorted(usize),
    /// Distributed into n partitions by a hash of the first column, which are read together or, if
    /// true, one after another.
    Exchanged(usize, bool),
    /// A complete statement.
    Whole(&'static str),
    /// The 22 queries of TPC-H, run in sequence.
    Published,
}

const EXCHANGED: &str = "l_orderkey, l_suppkey, l_linenumber, l_comment, l_partkey, l_quantity";
const WIDE: &str = "l_linenumber, l_suppkey, l_orderkey, l_partkey, l_quantity, l_extendedprice, l_discount, l_tax, \
    l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode";
const WIDEST: &str = "l_orderkey, l_suppkey, l_linenumber, l_comment, l_partkey, l_quantity, l_extendedprice, \
    l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode";
/// The latest row of each key of the change log.
pub(crate) const LATEST: &str = "SELECT id, lsn, op, payload, amount, ts FROM (SELECT *, row_number() OVER \
    (PARTITION BY id ORDER BY lsn DESC) rn FROM log) WHERE rn = 1";
const LOG: &str = "id, lsn, op, payload, amount, ts";

const DISTINCT: &str =
    "SELECT DISTINCT ON (id) id, lsn, op, payload, amount, ts FROM log ORDER BY id, lsn DESC";

const fn query(name: &'static str, columns: &'static str, rest: Rest) -> Query {
    Query { name, columns, rest }
}

pub(crate) const QUERIES: [Query; 17] = [
    query("q1", "l_linenumber, l_partkey", Sorted(1)),
    query("q2", "l_orderkey, l_partkey", Sorted(1)),
    query("q3", "l_comment, l_partkey", Sorted(1)),
    query("q4", "l_orderkey, l_linenumber, l_partkey", Sorted(2)),
    query("q5", "l_linenumber, l_suppkey, l_orderkey", Sorted(3)),
    query("q6", "l_linenumber, l_suppkey, l_orderkey, l_partkey", Sorted(3)),
    query("q7", WIDE, Sorted(3)),
    query("q8", "l_orderkey, l_suppkey, l_linenumber, l_comment", Sorted(4)),
    query("q9", "l_orderkey, l_suppkey, l_linenumber, l_comment, l_partkey", Sorted(4)),
    query("q10", WIDEST, Sorted(4)),
    query("q11", "l_shipmode, l_comment, l_partkey", Sorted(2)),
    query("log-sort", LOG, Sorted(2)),
    query("log-latest", LOG, Whole(LATEST)),
    query("log-distinct", LOG, Whole(DISTINCT)),
    query("exchange", EXCHANGED, Exchanged(16, false)),
    query("exchange-in-turns", EXCHANGED, Exchanged(16, true)),
    query("tpch", "", Published),
];

impl Query {
    /// Returns the statement, or `None` for TPC-H, whose queries are files.
    pub(crate) fn sql(&self) -> Option<String> {
        let order = (1..=self.key()).map(|column| column.to_string()).collect::<Vec<_>>();
        match self.rest {
            Sorted(_) => Some(format!("{} ORDER BY {}", self.scan(), order.join(", "))),
            Exchanged(..) => Some(self.scan()),
            Whole(sql) => Some(sql.to_owned()),
            Published => None,
        }
    }

    /// Returns the scan of the same columns without an order.
    pub(crate) fn scan(&self) -> String {
        let table = if self.name.starts_with("log") { "log" } else { "lineitem" };
        format!("SELECT {} FROM {table}", self.columns)
    }

    /// Returns the number of partitions into which rows are distributed, and whether these are read
    /// one after another.
    pub(crate) fn exchange(&self) -> Option<(usize, bool)> {
        if let Exchanged(partitions, in_turns) = self.rest {
            Some((partitions, in_turns))
        } else {
            None
        }
    }

    /// Returns the number of leading columns that must ascend.
    pub(crate) fn key(&self) -> usize {
        if let Sorted(key) = self.rest { key } else { 0 }
    }
}
