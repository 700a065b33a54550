//! Conversion of the engine's errors to DataFusion's, and back.

use arrow_schema::ArrowError;
use datafusion::error::DataFusionError;
use windrow::Error;

/// Converts an error of the engine. Lack of disk space becomes `ResourcesExhausted`; Arrow's errors
/// and errors of inputs keep their kind.
pub(crate) fn datafusion_error(error: Error) -> DataFusionError {
    match error {
        Error::Arrow(ArrowError::ExternalError(error)) => match error.downcast() {
            Ok(own) => *own,
            Err(other) => ArrowError::ExternalError(other).into(),
        },
        Error::Arrow(error) => error.into(),
        space @ Error::TempSpace { .. } => DataFusionError::ResourcesExhausted(space.to_string()),
        Error::Io { context, source } => {
            let error = std::io::Error::new(source.kind(), format!("{context}: {source}"));
            DataFusionError::IoError(error)
        }
        error => DataFusionError::External(Box::new(error)),
    }
}

/// Wraps an error of an input that the engine reads. [`datafusion_error`] unwraps the original.
pub(crate) fn engine_error(error: DataFusionError) -> Error {
    Error::Arrow(ArrowError::ExternalError(Box::new(error)))
}
