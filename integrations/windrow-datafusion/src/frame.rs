//! Data frames: the latest row of each key.

use datafusion::error::Result;
use datafusion::logical_expr::{Expr, SortExpr};
use datafusion::prelude::DataFrame;

/// What data frames can do more.
pub trait WindrowFrame: Sized {
    /// Of the rows of each value of `key`, the last one in the order of `order`; as `DISTINCT ON`, which is bounded in a
    /// session with Windrow.
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
    /// What DataFusion reports of the expressions.
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
