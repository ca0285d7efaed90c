//! Compression around a capture, recognised by its first bytes.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0x00];
const BZIP2: &[u8] = b"BZh";
/// A frame, not the older form without a header (lz4_Frame_format.md).
const LZ4: &[u8] = &[0x04, 0x22, 0x4d, 0x18];
/// Memory that an xz dictionary may take.
const XZ_MEMORY_BYTES: u64 = 256 << 20;
const INPUT_BYTES: usize = 64 << 10;

/// Bytes that `decompressed` needs to see in order to decide.
pub const PREFIX_BYTES: usize = 6;

/// Unwraps `source`, whose first bytes are `prefix` (and still to be read from it), if it is compressed.
///
/// Concatenated members (gzip), frames (zstd, lz4) and streams (xz, bzip2) are read as one.
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
    if prefix.starts_with(BZIP2) {
        return Ok(Box::new(bzip2::bufread::MultiBzDecoder::new(buffered(source))));
    }
    if prefix.starts_with(LZ4) {
        let source = Lz4Source { buffered: buffered(source), asked_at_end: false };
        return Ok(Box::new(Lz4Frames { decoder: lz4_flex::frame::FrameDecoder::new(source) }));
    }
    Ok(source)
}

/// Frames of lz4 one behind the other: the decoder gives no bytes at the end of each, nor where one lacks its end mark.
struct Lz4Frames {
    decoder: lz4_flex::frame::FrameDecoder<Lz4Source>,
}

/// What a decoder of frames reads from. It asks for nothing behind the end mark of a frame.
struct Lz4Source {
    buffered: BufReader<Box<dyn Read + Send>>,
    asked_at_end: bool,
}

impl Read for Lz4Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.buffered.read(buffer)?;
        self.asked_at_end |= read == 0 && !buffer.is_empty();
        Ok(read)
    }
}

impl Read for Lz4Frames {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let cut = |what| Error::new(ErrorKind::UnexpectedEof, what);
            let read = self.decoder.read(buffer).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => cut("an lz4 block is not there in full"),
                _ => error,
            })?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let source = self.decoder.get_mut();
            if source.asked_at_end {
                return Err(cut("an lz4 frame has no end mark"));
            }
            if source.buffered.fill_buf()?.is_empty() {
                return Ok(0);
            }
        }
    }
}
