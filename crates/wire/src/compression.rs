//! Compression around a capture, recognised by its first bytes.

use std::io::{BufReader, Read};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0x00];
/// Memory that an xz dictionary may take.
const XZ_MEMORY_BYTES: u64 = 256 << 20;
const INPUT_BYTES: usize = 64 << 10;

/// Bytes that `decompressed` needs to see in order to decide.
pub const PREFIX_BYTES: usize = 6;

/// Unwraps `source`, whose first bytes are `prefix` (and still to be read from it), if it is compressed.
///
/// Concatenated members (gzip), frames (zstd) and streams (xz) are read as one.
pub fn decompressed(source: Box<dyn Read + Send>, prefix: &[u8]) -> std::io::Result<Box<dyn Read + Send>> {
    let buffered = |source| BufReader::with_capacity(INPUT_BYTES, source);
    if prefix.starts_with(GZIP) {
        return Ok(Box::new(flate2::bufread::MultiGzDecoder::new(buffered(source))));
    }
    if prefix.starts_with(ZSTD) {
        return Ok(Box::new(zstd::stream::read::Decoder::with_buffer(buffered(source))?));
    }
    if prefix.starts_with(XZ) {
        let decoder = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES, liblzma::stream::CONCATENATED)?;
        return Ok(Box::new(liblzma::bufread::XzDecoder::new_stream(buffered(source), decoder)));
    }
    Ok(source)
}
