//! Buffers and losses: what links and radio bearers have in common.

use pepscope_path::{GilbertElliott, LossSettings, MarkingSettings, Places, QueueLimit, QueueSettings};

use crate::fields::{Fields, Read};

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

/// Reads the queue of a line.
///
/// # Errors
/// If a field is outside its range or there is more than one limit.
pub(super) fn read_queue(fields: &mut Fields) -> Read<QueueSettings> {
    let packets = fields.optional_integer("queue_packets", 0..=1_000_000_000)?;
    let bytes = fields.optional_integer("queue_bytes", 0..=1_000_000_000)?;
    let limit = match (packets, bytes) {
        (None, None) => QueueLimit::Unlimited,
        (Some(packets), None) => QueueLimit::Packets(packets as u32),
        (None, Some(bytes)) => QueueLimit::Bytes(bytes),
        (Some(_), Some(bytes)) => return Err(fields.refuse("queue_bytes", bytes, ONE_LIMIT)),
    };
    let counts_service = fields.flag("queue_counts_service", false)?;
    let marking = read_marking(fields)?;
    let places = if counts_service { Places::WaitingAndInService } else { Places::Waiting };
    let queue = QueueSettings { limit, places, marking };
    queue.check().map_err(|error| fields.refused_by(&error))?;
    Ok(queue)
}

/// Reads the losses of a line, by `kind`: `independent` (`probability`); `gilbert-elliott` (`good_to_bad`, `bad_to_good`,
/// `loss_in_good` default 0, `loss_in_bad` default 1; all probabilities a packet); `listed` (`packets`: numbers of the
/// packets sent, from 0, increasing).
///
/// # Errors
/// If a field is outside its range.
pub(super) fn read_loss(fields: &mut Fields) -> Read<LossSettings> {
    Ok(fields.optional_section("loss", read_loss_kind)?.unwrap_or_default())
}

fn read_loss_kind(fields: &mut Fields) -> Read<LossSettings> {
    Ok(match fields.kind(&["independent", "gilbert-elliott", "listed"])? {
        "independent" => LossSettings::Independent { probability: fields.required_number("probability", 0.0..=1.0)? },
        "gilbert-elliott" => LossSettings::GilbertElliott(GilbertElliott {
            good_to_bad: fields.required_number("good_to_bad", 0.0..=1.0)?,
            bad_to_good: fields.required_number("bad_to_good", 0.0..=1.0)?,
            loss_in_good: fields.number("loss_in_good", 0.0..=1.0, 0.0)?,
            loss_in_bad: fields.number("loss_in_bad", 0.0..=1.0, 1.0)?,
        }),
        _ => LossSettings::Listed { numbers: fields.optional_integers("packets", 0..=u64::MAX)?.unwrap_or_default() },
    })
}
