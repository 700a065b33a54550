//! Decoding of text in other encodings into UTF-8.
//!
//! Names of encodings are the web's: `latin1` is windows-1252, as in browsers. A byte order mark
//! identifies UTF-16 without a name.
//!
//! Invariant: malformed text is an error, and never becomes a replacement character. The crate
//! `encoding_rs_io` has no such mode.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::error::{Error, Result};

/// Bytes to read at a time.
const BUFFER: usize = 64 << 10;

/// Memory of a [`Utf8Text`]: a buffer of text, and three bytes of UTF-8 for each of its bytes.
pub(super) const CHARSET_BYTES: usize = 4 * BUFFER;

/// The encoding of text.
///
/// ```
/// use windrow_files::Charset;
///
/// assert_eq!("latin1".parse::<Charset>()?.to_string(), "windows-1252");
/// assert_eq!("UTF-16LE".parse::<Charset>()?.to_string(), "UTF-16LE");
/// # Ok::<(), windrow_files::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset(&'static Encoding);

impl Charset {
    /// Returns the encoding of a byte order mark at the start of `head`, other than UTF-8's.
    pub(super) fn of_mark(head: &[u8]) -> Option<Self> {
        match head {
            // UTF-32's mark starts with the same bytes, and so does an Arrow stream.
            [0xFF, 0xFE, 0, 0, ..] => None,
            [0xFF, 0xFE, ..] => Some(Self(UTF_16LE)),
            [0xFE, 0xFF, ..] => Some(Self(UTF_16BE)),
            _ => None,
        }
    }

    /// Returns true if text needs no decoding.
    pub(super) fn is_utf8(self) -> bool {
        self.0 == UTF_8
    }

    /// Decodes `text` into UTF-8, without a byte order mark.
    pub(super) fn reader<R: Read>(self, text: R) -> Utf8Text<R> {
        Utf8Text {
            inner: text,
            decoder: self.0.new_decoder_with_bom_removal(),
            charset: self,
            bytes: vec![0; BUFFER],
            read: 0,
            from: 0,
            ready: vec![0; 3 * BUFFER],
            filled: 0,
            passed: 0,
            lines: 1,
            at_end: false,
        }
    }
}

impl fmt::Display for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl FromStr for Charset {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // For the web, `utf-16` means little endian. The web's label `replacement` is no encoding.
        let found = Encoding::for_label_no_replacement(text.as_bytes());
        found.map(Self).ok_or_else(|| {
            Error::usage(format!(
                "{text:?} is no encoding that is known; there are utf-8, utf-16le, utf-16be, latin1, \
                 windows-1250 to -1258, iso-8859-2 to -16, koi8-r, shift_jis, euc-jp, gbk, gb18030, big5, \
                 euc-kr, ..."
            ))
        })
    }
}

/// A stream of UTF-8 text, decoded from another encoding.
pub(super) struct Utf8Text<R> {
    inner: R,
    decoder: Decoder,
    charset: Charset,
    /// Buffer of bytes read; `from..read` is yet to be decoded.
    bytes: Vec<u8>,
    read: usize,
    from: usize,
    /// Decoded text; `passed..filled` is yet to be returned.
    ready: Vec<u8>,
    filled: usize,
    passed: usize,
    /// Line number of the next decoded text.
    lines: u64,
    at_end: bool,
}

impl<R: Read> Utf8Text<R> {
    /// Decodes the next text into `ready`.
    fn decode(&mut self) -> io::Result<()> {
        if self.from == self.read {
            self.read = loop {
                match self.inner.read(&mut self.bytes) {
                    Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
            self.from = 0;
            self.at_end = self.read == 0;
        }
        let bytes = &self.bytes[self.from..self.read];
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(bytes, &mut self.ready, self.at_end);
        self.from += read;
        (self.filled, self.passed) = (written, 0);
        self.lines += newlines(&self.ready[..written]);
        match result {
            DecoderResult::InputEmpty | DecoderResult::OutputFull => Ok(()),
            DecoderResult::Malformed(..) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("line {} is no text in {}", self.lines, self.charset),
            )),
        }
    }
}

impl<R: Read> Read for Utf8Text<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.passed == self.filled && !(self.at_end && self.from == self.read) {
            self.decode()?;
        }
        let count = out.len().min(self.filled - self.passed);
        out[..count].copy_from_slice(&self.ready[self.passed..self.passed + count]);
        self.passed += count;
        Ok(count)
    }
}

pub(crate) fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader of a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(out.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn decoded(name: &str, bytes: &[u8], step: usize) -> io::Result<String> {
        let mut text = String::new();
        let charset: Charset = name.parse().expect("an encoding");
        charset.reader(Slow(bytes, step)).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn text_of_other_encodings() {
        let text = "a,é\n€,𝄞\n".repeat(20_000);
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(u16::to_be_bytes)
            .collect();
        for step in [1, 3, 1000, 1 << 20] {
            assert!(decoded("utf-16le", &little, step).unwrap() == text);
            assert!(decoded("utf-16be", &big, step).unwrap() == text);
        }
        assert_eq!(decoded("latin1", b"caf\xe9 \x80", 1).unwrap(), "café €");
        assert_eq!(decoded("shift_jis", b"\x83e\x83X\x83g", 1).unwrap(), "テスト");
        assert_eq!(decoded("utf-8", b"", 1).unwrap(), "");
    }

    #[test]
    fn what_is_no_text_is_an_error() {
        for (name, bytes, line) in [
            ("utf-16le", &b"a\0\n\0\x00\xd8a\0"[..], 2),
            ("utf-16be", b"\0a\0", 1),
            ("shift_jis", b"a\nb\n\x83", 3),
        ] {
            for step in [1, 100] {
                let fault = decoded(name, bytes, step).unwrap_err().to_string();
                assert!(fault.contains(&format!("line {line} ")), "{fault}");
            }
        }
        assert!("klingon".parse::<Charset>().is_err());
        assert!("replacement".parse::<Charset>().is_err());
    }

    #[test]
    fn marks_tell_utf16() {
        let of = |head: &[u8]| Charset::of_mark(head).map(|charset| charset.to_string());
        assert_eq!(of(b"\xFF\xFEa\0").as_deref(), Some("UTF-16LE"));
        assert_eq!(of(b"\xFE\xFF\0a").as_deref(), Some("UTF-16BE"));
        assert_eq!(of(b"\xFF\xFE\0\0"), None);
        assert_eq!(of(b"\xFF\xFF\xFF\xFF"), None);
        assert_eq!(of(b"\xEF\xBB\xBFa"), None);
    }
}
