//! Errors of the engine as DataFusion's.

use arrow_schema::ArrowError;
use datafusion::error::DataFusionError;
use windrow::Error;

/// An error of the engine by its kind: one of space is one of resources, one of Arrow or of an input is itself.
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

/// The other way, for inputs that the engine reads: [`datafusion_error`] gives it back as it was.
pub(crate) fn engine_error(error: DataFusionError) -> Error {
    Error::Arrow(ArrowError::ExternalError(Box::new(error)))
}
