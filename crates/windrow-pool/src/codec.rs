//! Compression of temporary files.

use windrow_rows::{Error, Result};

/// Compression of spilled chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// No compression: fastest if the disk or the page cache keeps up.
    #[default]
    None,
    /// LZ4: about 2 times smaller on change logs, at the price of some merge passes.
    Lz4,
    /// Zstandard, level 1: for slow or small disks.
    Zstd,
}

/// Returns the bytes of workspace of [`compress`] for `len` bytes.
pub(super) fn scratch_bytes(codec: Codec, len: usize) -> usize {
    match codec {
        Codec::None => 0,
        Codec::Lz4 => lz4_flex::block::get_maximum_output_size(len),
        Codec::Zstd => zstd::zstd_safe::compress_bound(len),
    }
}

/// Compresses `bytes`, or returns them raw if compression gains nothing. Returns the codec used and
/// the bytes to store. `scratch` has [`scratch_bytes`] bytes.
pub(super) fn compress<'a>(
    codec: Codec,
    bytes: &'a [u8],
    scratch: &'a mut [u8],
) -> (Codec, &'a [u8]) {
    let packed = match codec {
        Codec::None => None,
        Codec::Lz4 => lz4_flex::block::compress_into(bytes, scratch).ok(),
        Codec::Zstd => zstd::bulk::compress_to_buffer(bytes, scratch, 1).ok(),
    };
    match packed {
        Some(len) if len < bytes.len() => (codec, &scratch[..len]),
        _ => (Codec::None, bytes),
    }
}

/// Decompresses `stored`, which must fill `out`.
pub(super) fn decompress(codec: Codec, stored: &[u8], out: &mut [u8]) -> Result<()> {
    let corrupt = |message: String| Error::Corrupt { place: "spilled chunk".into(), message };
    let len = match codec {
        Codec::None => {
            out.copy_from_slice(stored);
            out.len()
        }
        Codec::Lz4 => lz4_flex::block::decompress_into(stored, out)
            .map_err(|error| corrupt(error.to_string()))?,
        Codec::Zstd => zstd::bulk::decompress_to_buffer(stored, out)
            .map_err(|error| corrupt(error.to_string()))?,
    };
    if len != out.len() {
        return Err(corrupt(format!("expected {} bytes, got {len}", out.len())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_return_what_they_got_and_store_noise_raw() {
        let text = b"windrow windrow windrow windrow windrow".repeat(100);
        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(4096)
        .collect();
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            let mut scratch = vec![0; scratch_bytes(codec, noise.len())];
            let (used, stored) = compress(codec, &text, &mut scratch);
            assert_eq!(used, codec);
            let mut back = vec![0; text.len()];
            decompress(used, stored, &mut back).unwrap();
            assert_eq!(back, text);
            let stored = stored.to_vec();
            assert_eq!(compress(codec, &noise, &mut scratch).0, Codec::None);
            assert!(codec == Codec::None || decompress(codec, &stored[1..], &mut back).is_err());
        }
    }
}
