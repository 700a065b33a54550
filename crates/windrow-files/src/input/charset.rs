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
use crate::rewrite::{CHUNK, Rewrite, Rewritten};

/// Memory of a decoder: a piece of text, and twice three bytes of UTF-8 for each of its bytes.
pub(super) const CHARSET_BYTES: usize = 7 * CHUNK;

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
    pub(super) fn reader<R: Read>(self, text: R) -> Rewritten<R, Utf8> {
        let decoder = Some(self.0.new_decoder_with_bom_removal());
        Rewritten::new(text, Utf8 { charset: self, decoder, text: String::new(), lines: 1 })
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

/// Decodes text into UTF-8.
pub(super) struct Utf8 {
    charset: Charset,
    /// `None` behind the end.
    decoder: Option<Decoder>,
    /// The last decoded text.
    text: String,
    /// Line number of the next decoded text.
    lines: u64,
}

impl Utf8 {
    fn decode(&mut self, bytes: &[u8], at_end: bool, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        self.text.clear();
        let most = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
        self.text.reserve(most.unwrap_or(0));
        let (result, _) =
            decoder.decode_to_string_without_replacement(bytes, &mut self.text, at_end);
        self.decoder.take_if(|_| at_end);
        out.extend_from_slice(self.text.as_bytes());
        self.lines += newlines(self.text.as_bytes());
        match result {
            DecoderResult::InputEmpty | DecoderResult::OutputFull => Ok(()),
            DecoderResult::Malformed(..) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("line {} is no text in {}", self.lines, self.charset),
            )),
        }
    }
}

impl Rewrite for Utf8 {
    fn take(&mut self, text: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.decode(text, false, out)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.decode(&[], true, out)
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
