//! One folder for each format: its files as units of one schema.

pub(crate) mod avro;
pub(crate) mod csv;
pub(crate) mod handed;
pub(crate) mod ipc;
pub(crate) mod json;
pub(crate) mod opening;
pub(crate) mod parquet;

use crate::settings::Format;

use opening::InputFormat;

/// Returns how files of `format` are opened.
pub(crate) fn of(format: Format) -> &'static dyn InputFormat {
    match format {
        Format::Parquet => &parquet::Parquet,
        Format::ArrowFile => &ipc::Arrow::File,
        Format::ArrowStream => &ipc::Arrow::Stream,
        Format::Csv => &csv::Csv,
        Format::Ndjson => &json::Ndjson,
        Format::Avro => &avro::Avro,
    }
}

/// Returns the format by a magic number at the start of `head`. Text has no magic number.
pub(crate) fn of_magic(head: &[u8]) -> Option<Format> {
    Format::ALL.into_iter().find(|format| !of(*format).is_text() && of(*format).sniff(head))
}

/// Returns the format of a stream by its head.
pub(crate) fn of_stream(head: &[u8]) -> Format {
    Format::ALL.into_iter().find(|format| of(*format).sniff(head)).unwrap_or(Format::Csv)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_by_their_first_bytes() {
        assert_eq!(of_stream(b"PAR1...."), Format::Parquet);
        assert_eq!(of_stream(b"ARROW1\0\0"), Format::ArrowFile);
        assert_eq!(of_stream(b"\xFF\xFF\xFF\xFF\x10"), Format::ArrowStream);
        assert_eq!(of_stream(b"Obj\x01\x02"), Format::Avro);
        assert_eq!(of_stream(b" \n{\"a\":1}"), Format::Ndjson);
        assert_eq!(of_stream(b"a,b\n"), Format::Csv);
        assert_eq!(of_stream(b""), Format::Csv);
    }
}
