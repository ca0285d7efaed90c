//! IEEE 802.11 data frames, bare or behind a radiotap header.

use crate::error::Reject;
use crate::headers::header::{HeaderKind, HeaderTrace};
use crate::headers::layer::Layer;
use crate::headers::view::View;

const TYPE_DATA: u8 = 2;
const SUBTYPE_NO_DATA: u8 = 0x4;
const SUBTYPE_QOS: u8 = 0x8;
const TO_DISTRIBUTION: u8 = 0x01;
const FROM_DISTRIBUTION: u8 = 0x02;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
const QOS_AGGREGATE: u8 = 0x80;
/// Destination, source and length before each frame of an aggregate (A-MSDU).
const AGGREGATE_HEADER_BYTES: usize = 14;

/// Steps over an 802.11 data frame header (IEEE 802.11-2020 section 9.3.2.1); of an aggregate, into its first frame.
pub(crate) fn frame<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    after_header(view, false, trace)
}

fn after_header<'a>(view: View<'a>, padded: bool, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    let [control, flags] = view.bytes::<2>(0)?;
    let subtype = control >> 4;
    if control & 0x3 != 0 || (control >> 2) & 0x3 != TYPE_DATA || subtype & SUBTYPE_NO_DATA != 0 {
        return Err(Reject::NotIp);
    }
    if flags & PROTECTED != 0 {
        return Err(Reject::Encrypted);
    }
    let mut header_bytes = 24;
    if flags & TO_DISTRIBUTION != 0 && flags & FROM_DISTRIBUTION != 0 {
        header_bytes += 6;
    }
    let mut aggregate = false;
    if subtype & SUBTYPE_QOS != 0 {
        aggregate = view.byte(header_bytes)? & QOS_AGGREGATE != 0;
        header_bytes += 2;
        if flags & ORDER != 0 {
            header_bytes += 4;
        }
    }
    if padded {
        header_bytes = header_bytes.next_multiple_of(4);
    }
    let mut body = trace.step_over(HeaderKind::Ieee80211, view, header_bytes)?;
    if aggregate {
        body = trace.step_over(HeaderKind::AggregateSubframe, body, AGGREGATE_HEADER_BYTES)?;
    }
    Ok((Layer::LogicalLinkControl, body))
}

const RADIOTAP_HAS_MORE: u32 = 1 << 31;
const RADIOTAP_TIMER: u32 = 1;
const RADIOTAP_FLAGS: u32 = 1 << 1;
/// The 802.11 header is padded to a multiple of four bytes.
const RADIOTAP_FLAG_PADDED: u8 = 0x20;
const RADIOTAP_MOST_WORDS: usize = 64;

/// Steps over a radiotap header (radiotap.org) and the frame header behind it.
pub(crate) fn radiotap<'a>(view: View<'a>, trace: &mut impl HeaderTrace) -> Result<(Layer, View<'a>), Reject> {
    let length = usize::from(view.u16_le(2)?);
    let present = view.u32_le(4)?;
    let mut fields = 8;
    let mut word = present;
    while word & RADIOTAP_HAS_MORE != 0 {
        word = view.u32_le(fields)?;
        fields += 4;
        if fields > 4 * RADIOTAP_MOST_WORDS {
            return Err(Reject::Malformed);
        }
    }
    if present & RADIOTAP_TIMER != 0 {
        fields = fields.next_multiple_of(8) + 8;
    }
    let padded = present & RADIOTAP_FLAGS != 0 && view.byte(fields)? & RADIOTAP_FLAG_PADDED != 0;
    after_header(trace.step_over(HeaderKind::Radiotap, view, length)?, padded, trace)
}
