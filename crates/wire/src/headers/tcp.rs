//! TCP headers and options (RFC 9293, RFC 7323, RFC 2018).

use crate::error::Reject;
use crate::headers::header::{Header, HeaderKind, HeaderTrace};
use crate::headers::view::View;
use crate::segment::TcpOptions;

pub(crate) const HEADER_BYTES: usize = 20;
/// Through the window field: the least that makes a segment.
pub(crate) const NEEDED_BYTES: usize = 16;

/// Checks that enough of the header is captured, and that it fits its packet; gives its length in bytes.
pub(crate) fn check(view: View<'_>) -> Result<usize, Reject> {
    let header = view.bytes::<NEEDED_BYTES>(0)?;
    let header_bytes = usize::from(header[12] >> 4) * 4;
    if header_bytes < HEADER_BYTES || header_bytes > view.wire_bytes() {
        return Err(Reject::Malformed);
    }
    Ok(header_bytes)
}

/// Notes each option of the header of `header_bytes` at the start of `view`, and where their list ends early.
#[inline]
pub(crate) fn trace_options(view: View<'_>, header_bytes: usize, trace: &mut impl HeaderTrace) {
    let raw = view.captured();
    let raw = raw.get(HEADER_BYTES..header_bytes.min(raw.len())).unwrap_or_default();
    let start = view.start() + HEADER_BYTES;
    let end = view.start() + header_bytes;
    let mut at = 0;
    while let Some(&kind) = raw.get(at) {
        if kind == kind::NO_OPERATION {
            at += 1;
            continue;
        }
        let length = raw.get(at + 1).copied().map_or(0, usize::from);
        let (kind, length) = if kind == kind::END || length < 2 {
            (HeaderKind::TcpOptionsEnd, raw.len() - at)
        } else {
            (HeaderKind::TcpOption, length.min(raw.len() - at))
        };
        trace.note(Header { kind, offset: start + at, length, end });
        at += length;
    }
}

mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NO_OPERATION: u8 = 1;
    pub(super) const MAXIMUM_SEGMENT_SIZE: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}

/// NOP, NOP, timestamps: what nearly every segment carries and nothing else.
const USUAL_LAYOUT: [u8; 4] = [kind::NO_OPERATION, kind::NO_OPERATION, kind::TIMESTAMPS, 10];

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes.get(at..).and_then(<[u8]>::first_chunk::<4>).copied().unwrap_or_default())
}

/// The timestamps (TSval, TSecr) where the option bytes have the usual layout.
#[inline(always)]
pub(crate) fn usual_timestamps(raw: &[u8; 12]) -> Option<(u32, u32)> {
    (raw.first_chunk() == Some(&USUAL_LAYOUT)).then(|| (word(raw, 4), word(raw, 8)))
}

/// Reads the option bytes of a TCP header; what is cut or broken ends the reading.
pub fn parse_options(raw: &[u8]) -> TcpOptions {
    let mut options = TcpOptions::default();
    read_options(raw, &mut options);
    options
}

/// Reads the option bytes of a TCP header into `options`, which hold none yet.
#[inline(always)]
pub(crate) fn read_options(raw: &[u8], options: &mut TcpOptions) {
    if raw.is_empty() {
        return;
    }
    if let Some(timestamps) = <&[u8; 12]>::try_from(raw).ok().and_then(usual_timestamps) {
        options.timestamps = Some(timestamps);
        return;
    }
    read_any_options(raw, options);
}

/// The option kinds in their order, padding (1) included, up to the list's end; 0 behind them.
pub fn option_kinds<const N: usize>(mut rest: &[u8]) -> [u8; N] {
    let mut kinds = [0; N];
    for place in &mut kinds {
        let Some((&first, after)) = rest.split_first() else { break };
        if first == kind::END {
            break;
        }
        *place = first;
        let length = if first == kind::NO_OPERATION { 1 } else { usize::from(after.first().copied().unwrap_or(0)) };
        if length == 0 {
            break;
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    kinds
}

/// Whether an option list of which only `raw` was captured goes on behind that; `header_bytes` is the whole header's
/// length. It does not where the header has no options, nor behind the end of the list.
#[cold]
pub(crate) fn goes_on(raw: &[u8], header_bytes: usize) -> bool {
    header_bytes > HEADER_BYTES + raw.len() && !is_ended(raw)
}

/// Whether the list's end stands in these option bytes.
fn is_ended(mut rest: &[u8]) -> bool {
    while let Some((&first, after)) = rest.split_first() {
        rest = match first {
            kind::END => return true,
            kind::NO_OPERATION => after,
            _ => match after.first() {
                Some(&length) if length >= 2 => rest.get(usize::from(length)..).unwrap_or_default(),
                _ => return false,
            },
        };
    }
    false
}

#[inline(never)]
fn read_any_options(mut rest: &[u8], options: &mut TcpOptions) {
    while let Some((&first, after)) = rest.split_first() {
        if first == kind::END {
            break;
        }
        if first == kind::NO_OPERATION {
            rest = after;
            continue;
        }
        let length = usize::from(after.first().copied().unwrap_or_default());
        let Some(value) = rest.get(2..length) else { break };
        match (first, value) {
            (kind::MAXIMUM_SEGMENT_SIZE, &[high, low]) => {
                options.maximum_segment_size = Some(u16::from_be_bytes([high, low]));
            }
            (kind::WINDOW_SCALE, &[shift]) => options.window_scale = Some(shift),
            (kind::SACK_PERMITTED, &[]) => options.sack_permitted = true,
            (kind::SACK, edges) if !edges.is_empty() && edges.len() % 8 == 0 => {
                options.sack_count = 0;
                for (block, edges) in options.sack_blocks.iter_mut().zip(edges.chunks_exact(8)) {
                    *block = (word(edges, 0), word(edges, 4));
                    options.sack_count += 1;
                }
            }
            (kind::TIMESTAMPS, stamps) if stamps.len() == 8 => {
                options.timestamps = Some((word(stamps, 0), word(stamps, 4)));
            }
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_linux_syn() {
        let raw = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        let options = parse_options(&raw);
        assert_eq!(options.maximum_segment_size, Some(1460));
        assert_eq!(options.window_scale, Some(7));
        assert!(options.sack_permitted);
        assert_eq!(options.timestamps, Some((1, 0)));
        assert_eq!(options.sack_count, 0);
    }

    #[test]
    fn usual_layout_equals_general_reading() {
        let raw = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
        let mut general = TcpOptions::default();
        read_any_options(&raw, &mut general);
        assert_eq!(parse_options(&raw), general);
        assert_eq!(parse_options(&raw).timestamps, Some((0x0102_0304, 0x0506_0708)));
    }

    #[test]
    fn kinds_keep_their_order_and_padding() {
        let raw = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(option_kinds::<8>(&raw), [2, 4, 8, 1, 3, 0, 0, 0]);
        assert_eq!(option_kinds::<3>(&raw), [2, 4, 8]);
        assert_eq!(option_kinds::<4>(&[1, 1, 0, 2]), [1, 1, 0, 0]);
        assert_eq!(option_kinds::<4>(&[4, 0, 4, 2]), [4, 0, 0, 0]);
        assert_eq!(option_kinds::<4>(&[4]), [4, 0, 0, 0]);
    }

    #[test]
    fn sack_blocks() {
        let raw = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
        let options = parse_options(&raw);
        assert_eq!(options.sack_count, 2);
        assert_eq!(options.sack_blocks[..2], [(1, 2), (3, 4)]);
    }

    #[test]
    fn a_list_that_was_cut_goes_on_unless_its_end_was_captured() {
        let syn = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        for captured in 0..syn.len() {
            assert!(goes_on(&syn[..captured], HEADER_BYTES + syn.len()), "{captured}");
        }
        assert!(!goes_on(&syn, HEADER_BYTES + syn.len()));
        assert!(!goes_on(&[], HEADER_BYTES), "no options at all, cut in the checksum");
        assert!(!goes_on(&[4, 2, 0], HEADER_BYTES + 4), "only padding is missing");
        assert!(goes_on(&[4, 2, 1], HEADER_BYTES + 4));
        assert!(goes_on(&[8, 10, 0, 0], HEADER_BYTES + 12), "zeros within an option end nothing");
    }

    #[test]
    fn broken_lengths_end_the_reading() {
        assert_eq!(parse_options(&[8, 0, 3, 3, 7]), TcpOptions::default());
        assert_eq!(parse_options(&[8, 1, 3, 3, 7]), TcpOptions::default());
        assert_eq!(parse_options(&[8, 200, 3, 3, 7]), TcpOptions::default());
        assert_eq!(parse_options(&[8]), TcpOptions::default());
        assert_eq!(parse_options(&[3, 3, 9, 8, 10, 0, 0]).window_scale, Some(9));
    }
}
