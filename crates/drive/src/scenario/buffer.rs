//! Limits of buffers and their congestion warning, as links and radio bearers share them.

use pepscope_path::{MarkingSettings, QueueLimit};

use super::fields::{Fields, Read};

const MOST: u64 = 1_000_000_000;
pub(super) const ONE_LIMIT: &str = "the only limit of the queue";

/// What a limit counts: the name of its field and what it makes of the number.
type Unit = (&'static str, fn(u64) -> QueueLimit);
const PACKETS: Unit = ("queue_packets", |packets| QueueLimit::Packets(packets as u32));
const BYTES: Unit = ("queue_bytes", QueueLimit::Bytes);
const FRAMES: Unit = ("queue_frames", |frames| QueueLimit::Frames(frames as u32));
pub(super) const PACKETS_OR_BYTES: &[Unit] = &[PACKETS, BYTES];
pub(super) const PACKETS_BYTES_OR_FRAMES: &[Unit] = &[PACKETS, BYTES, FRAMES];

/// Reads the limit of a buffer, in whichever of `units` it is given.
///
/// # Errors
/// If a field is outside its range or there is more than one.
pub(super) fn read_limit(fields: &mut Fields, units: &[Unit], default: QueueLimit) -> Read<QueueLimit> {
    if !units.iter().any(|(name, _)| fields.is_given(name)) {
        match default {
            QueueLimit::Unlimited => {}
            QueueLimit::Packets(packets) => fields.default_integer(PACKETS.0, packets.into()),
            QueueLimit::Bytes(bytes) => fields.default_integer(BYTES.0, bytes),
            QueueLimit::Frames(frames) => fields.default_integer(FRAMES.0, frames.into()),
        }
    }
    let mut limit = None;
    for (name, of) in units {
        match fields.optional_integer(name, 0..=MOST)? {
            Some(number) if limit.is_some() => return Err(fields.refuse(name, number, ONE_LIMIT)),
            Some(number) => limit = Some(of(number)),
            None => {}
        }
    }
    Ok(limit.unwrap_or(QueueLimit::Unlimited))
}

/// Reads the congestion warning of TCP-Jersey, if there is to be any.
///
/// # Errors
/// If a field is outside its range or missing.
pub(super) fn read_marking(fields: &mut Fields) -> Read<Option<MarkingSettings>> {
    fields.optional_section("marking", |marking| {
        Ok(MarkingSettings {
            threshold_packets: marking.required_number("threshold_packets", 0.0..=1e6)?,
            weight: marking.number("weight", 0.0..=1.0, 0.002)?,
        })
    })
}
