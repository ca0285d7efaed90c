//! Packets served to each terminal in each second (seed 003, figures 3 to 5).

use super::link::Hsdpa;
use super::settings::{Bearer, HsdpaSettings};
use super::validation::at_least;
use crate::{Datagram, Direction, Hop, Nanoseconds, QueueLimit, QueueReport, SettingsError, SECOND};

/// Packets that arrive at the Node-B for each terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// A queue that is never empty: the profile is the capacity that the cell offers.
    Backlogged,
    /// Packets at equal distances: the profile is the part of them that the cell serves.
    Constant { rate_bit_s: f64 },
}

#[derive(Clone, Debug)]
struct Filler {
    user: u16,
    bytes: u32,
}

impl Datagram for Filler {
    fn length_bytes(&self) -> u32 {
        self.bytes
    }

    fn header_bytes(&self) -> u32 {
        0
    }

    fn user(&self) -> u16 {
        self.user
    }

    fn understands_marks(&self) -> bool {
        false
    }

    fn mark_congestion(&mut self) {}

    fn from_report(_user: u16, _report: QueueReport) -> Option<Self> {
        None
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// Packets of `packet_bytes` delivered to each terminal (outer index) in each second (inner index) of `seconds`.
///
/// # Errors
/// The first invalid setting.
pub fn bandwidth_profile(
    settings: &HsdpaSettings,
    source: Source,
    packet_bytes: u32,
    seconds: u32,
    seed: u64,
) -> Result<Vec<Vec<u32>>, SettingsError> {
    at_least("packet_bytes", f64::from(packet_bytes), 1.0, "at least 1")?;
    let between_packets = match source {
        Source::Backlogged => None,
        Source::Constant { rate_bit_s } => {
            at_least("rate_bit_s", rate_bit_s, 1e-3, "at least 0.001 bit/s")?;
            Some(libm::round(f64::from(packet_bytes) * 8e9 / rate_bit_s).max(1.0) as Nanoseconds)
        }
    };
    let mut link = Hsdpa::new(settings, seed, "bandwidth profile")?;
    let limits: Vec<u64> = settings.users.iter().map(|user| backlog(user.bearer, user.queue, packet_bytes)).collect();
    let mut served = vec![vec![0; seconds as usize]; settings.users.len()];
    let end = u64::from(seconds) * SECOND;
    let mut next_arrival = 0;
    let mut now = 0;
    while now < end {
        match between_packets {
            None => {
                for (user, &limit) in (0u16..).zip(&limits) {
                    while link.queued_frames(user) < limit {
                        link.handle_packet(now, Direction::Down, Filler { user, bytes: packet_bytes });
                    }
                }
            }
            Some(interval) => {
                while next_arrival <= now {
                    for user in 0..settings.users.len() {
                        link.handle_packet(now, Direction::Down, Filler { user: user as u16, bytes: packet_bytes });
                    }
                    next_arrival += interval;
                }
            }
        }
        link.handle_timeout(now);
        while let Some((direction, packet)) = link.poll_transmit(now) {
            if direction == Direction::Down {
                served[usize::from(packet.user)][(now / SECOND) as usize] += 1;
            }
        }
        let arrival = if between_packets.is_some() { next_arrival } else { now + settings.tti };
        now = link.poll_timeout().min(arrival).max(now + 1);
    }
    Ok(served)
}

/// Backlog without a limit, in frames: more than a block holds in an interval.
const ENOUGH_FRAMES: u64 = 1000;

/// Queue length in the link's own unit up to which one more packet always fits.
fn backlog(bearer: Bearer, limit: QueueLimit, packet_bytes: u32) -> u64 {
    let frames = match bearer {
        Bearer::Acknowledged(framing, _) | Bearer::Unacknowledged(framing) => {
            u64::from(packet_bytes.div_ceil(framing.payload_bytes))
        }
        Bearer::Dedicated { .. } => 1,
    };
    match limit {
        QueueLimit::Unlimited => ENOUGH_FRAMES.max(frames),
        QueueLimit::Frames(limit) => (u64::from(limit) + 1).saturating_sub(frames),
        QueueLimit::Packets(limit) => (u64::from(limit) * frames).saturating_sub(frames),
        QueueLimit::Bytes(limit) => (limit / u64::from(packet_bytes) * frames).saturating_sub(frames),
    }
}
