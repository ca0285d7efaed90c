//! A policer: a token bucket that delays nothing, and drops or marks what exceeds it (RFC 2475, section 2.3.3.3).

use std::collections::VecDeque;

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, NEVER};
use crate::settings::SettingsError;

/// Nanoseconds a second, times bits a byte: tokens are counted in parts of a byte so small that rates are exact.
const BYTE: u128 = 8_000_000_000;

/// One direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerLineSettings {
    /// Bits a second of IP packets at which tokens come; `None` lets everything pass.
    pub rate_bit_s: Option<u64>,
    /// Tokens that the bucket holds, full at the beginning.
    pub burst_bytes: u32,
    /// What exceeds is marked where its sender understands marks, instead of dropped.
    pub marks: bool,
}

/// Both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerSettings {
    pub down: PolicerLineSettings,
    pub up: PolicerLineSettings,
}

/// A policer in each direction.
#[derive(Clone, Debug)]
pub struct Policer<P> {
    down: Bucket<P>,
    up: Bucket<P>,
}

#[derive(Clone, Debug)]
struct Bucket<P> {
    settings: PolicerLineSettings,
    tokens: u128,
    filled_ns: Nanoseconds,
    passing: VecDeque<P>,
    counts: HopCounts,
}

impl<P: Datagram> Policer<P> {
    /// # Errors
    /// Refuses a bucket that holds nothing.
    pub fn new(settings: &PolicerSettings) -> Result<Self, SettingsError> {
        Ok(Self { down: Bucket::new(settings.down)?, up: Bucket::new(settings.up)? })
    }

    fn bucket(&mut self, direction: Direction) -> &mut Bucket<P> {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}

impl<P: Datagram> Bucket<P> {
    fn new(settings: PolicerLineSettings) -> Result<Self, SettingsError> {
        if settings.burst_bytes == 0 {
            return Err(SettingsError::new("burst_bytes", 0, "at least 1"));
        }
        let tokens = u128::from(settings.burst_bytes) * BYTE;
        Ok(Self { settings, tokens, filled_ns: 0, passing: VecDeque::new(), counts: HopCounts::default() })
    }

    fn take(&mut self, now: Nanoseconds, mut packet: P) {
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(packet.length_bytes());
        if !self.conforms(now, packet.length_bytes()) {
            if !(self.settings.marks && packet.understands_marks()) {
                self.counts.overflowed_packets += 1;
                return;
            }
            packet.mark_congestion();
            self.counts.marked_packets += 1;
        }
        self.passing.push_back(packet);
    }

    /// Whether there are tokens for so many bytes, which are then used up.
    fn conforms(&mut self, now: Nanoseconds, bytes: u32) -> bool {
        let Some(rate_bit_s) = self.settings.rate_bit_s else {
            return true;
        };
        let new_tokens = u128::from(now.saturating_sub(self.filled_ns)) * u128::from(rate_bit_s);
        self.tokens = (self.tokens + new_tokens).min(u128::from(self.settings.burst_bytes) * BYTE);
        self.filled_ns = self.filled_ns.max(now);
        let left = self.tokens.checked_sub(u128::from(bytes) * BYTE);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    fn give(&mut self) -> Option<P> {
        let packet = self.passing.pop_front()?;
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += u64::from(packet.length_bytes());
        Some(packet)
    }
}

impl<P: Datagram> Hop<P> for Policer<P> {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: P) {
        self.bucket(direction).take(now, packet);
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_transmit(&mut self, _now: Nanoseconds) -> Option<(Direction, P)> {
        let down = self.down.give().map(|packet| (Direction::Down, packet));
        down.or_else(|| self.up.give().map(|packet| (Direction::Up, packet)))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        NEVER
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        match direction {
            Direction::Down => self.down.counts,
            Direction::Up => self.up.counts,
        }
    }

    fn observe(&self, _now: Nanoseconds, record: &mut dyn FnMut(&'static str, f64)) {
        record("down_tokens_bytes", self.down.tokens as f64 / BYTE as f64);
        record("up_tokens_bytes", self.up.tokens as f64 / BYTE as f64);
    }
}
