//! A method of data frames: the latest row of each key.

use datafusion::error::Result;
use datafusion::logical_expr::{Expr, SortExpr};
use datafusion::prelude::DataFrame;

/// Additional methods of data frames.
pub trait WindrowFrame: Sized {
    /// Returns the last row of each value of `key`, in the order of `order`. Equivalent to
    /// `DISTINCT ON`; memory is bounded in a session with Windrow.
    ///
    /// ```
    /// use datafusion::prelude::{col, dataframe};
    /// use windrow_datafusion::WindrowFrame;
    ///
    /// # fn main() -> datafusion::error::Result<()> {
    /// let log = dataframe!("id" => [1, 2, 1], "lsn" => [10, 11, 12])?;
    /// let state = log.latest(vec![col("id")], vec![col("lsn").sort(true, false)])?;
    /// # let _ = state;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// DataFusion's error, if an expression is invalid.
    fn latest(self, key: Vec<Expr>, order: Vec<SortExpr>) -> Result<Self>;
}

impl WindrowFrame for DataFrame {
    fn latest(self, key: Vec<Expr>, order: Vec<SortExpr>) -> Result<Self> {
        let all = self.schema().columns().into_iter().map(Expr::Column).collect();
        let backwards =
            |by: SortExpr| SortExpr { asc: !by.asc, nulls_first: !by.nulls_first, ..by };
        let keys = key.iter().map(|key| key.clone().sort(true, false));
        let sort = keys.chain(order.into_iter().map(backwards)).collect();
        self.distinct_on(key, all, Some(sort))
    }
}
