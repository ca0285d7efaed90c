//! A policer: a token bucket that delays nothing, and drops or marks what exceeds it (RFC 2475, section 2.3.3.3).

use std::collections::{HashMap, VecDeque};

use crate::hop::{Datagram, Direction, Hop, HopCounts, Nanoseconds, NEVER};
use crate::settings::SettingsError;

/// Nanoseconds a second, times bits a byte: tokens are counted in parts of a byte so small that rates are exact.
const BYTE: u128 = 8_000_000_000;

/// So many buckets are kept whether they are full or not.
const KEPT_BUCKETS: usize = 1_024;

/// Which packets of a direction share a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policed {
    #[default]
    Together,
    EachMobile,
    EachConnection,
}

/// One direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerLineSettings {
    /// Bits a second of IP packets at which tokens come; `None` lets everything pass.
    pub rate_bit_s: Option<u64>,
    /// Tokens that the bucket holds, full at the beginning.
    pub burst_bytes: u32,
    /// What exceeds is marked where its sender understands marks, instead of dropped.
    pub marks: bool,
    pub policed: Policed,
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
    down: PolicedLine<P>,
    up: PolicedLine<P>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: u128,
    filled_ns: Nanoseconds,
}

impl Bucket {
    fn fill(&mut self, now: Nanoseconds, rate_bit_s: u64, most_tokens: u128) {
        let new_tokens = u128::from(now.saturating_sub(self.filled_ns)) * u128::from(rate_bit_s);
        self.tokens = (self.tokens + new_tokens).min(most_tokens);
        self.filled_ns = self.filled_ns.max(now);
    }

    /// Whether there are tokens for so many bytes, which are then used up.
    fn pay(&mut self, bytes: u32) -> bool {
        let left = self.tokens.checked_sub(u128::from(bytes) * BYTE);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

#[derive(Clone, Debug)]
struct PolicedLine<P> {
    settings: PolicerLineSettings,
    /// By the mobile or the connection, where each has one.
    buckets: HashMap<u64, Bucket>,
    /// With so many, the full ones, which are as good as new ones, are forgotten.
    most_buckets: usize,
    passing: VecDeque<P>,
    counts: HopCounts,
}

impl<P: Datagram> Policer<P> {
    /// # Errors
    /// Refuses a bucket that holds nothing.
    pub fn new(settings: &PolicerSettings) -> Result<Self, SettingsError> {
        Ok(Self { down: PolicedLine::new(settings.down)?, up: PolicedLine::new(settings.up)? })
    }

    fn line(&mut self, direction: Direction) -> &mut PolicedLine<P> {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}

impl<P: Datagram> PolicedLine<P> {
    fn new(settings: PolicerLineSettings) -> Result<Self, SettingsError> {
        if settings.burst_bytes == 0 {
            return Err(SettingsError::new("burst_bytes", 0, "at least 1"));
        }
        Ok(Self {
            settings,
            buckets: HashMap::new(),
            most_buckets: KEPT_BUCKETS,
            passing: VecDeque::new(),
            counts: HopCounts::default(),
        })
    }

    fn most_tokens(&self) -> u128 {
        u128::from(self.settings.burst_bytes) * BYTE
    }

    fn take(&mut self, now: Nanoseconds, mut packet: P) {
        self.counts.offered_packets += 1;
        self.counts.offered_bytes += u64::from(packet.length_bytes());
        if !self.conforms(now, &packet) {
            if !(self.settings.marks && packet.understands_marks()) {
                self.counts.overflowed_packets += 1;
                return;
            }
            packet.mark_congestion();
            self.counts.marked_packets += 1;
        }
        self.passing.push_back(packet);
    }

    fn conforms(&mut self, now: Nanoseconds, packet: &P) -> bool {
        let Some(rate_bit_s) = self.settings.rate_bit_s else {
            return true;
        };
        let (key, most_tokens) = (self.key(packet), self.most_tokens());
        if self.buckets.len() >= self.most_buckets && !self.buckets.contains_key(&key) {
            self.forget_full(now, rate_bit_s);
        }
        let bucket = self.buckets.entry(key).or_insert(Bucket { tokens: most_tokens, filled_ns: now });
        bucket.fill(now, rate_bit_s, most_tokens);
        bucket.pay(packet.length_bytes())
    }

    fn key(&self, packet: &P) -> u64 {
        match self.settings.policed {
            Policed::Together => 0,
            Policed::EachMobile => u64::from(packet.user()),
            Policed::EachConnection => packet.flow(),
        }
    }

    fn forget_full(&mut self, now: Nanoseconds, rate_bit_s: u64) {
        let most_tokens = self.most_tokens();
        self.buckets.retain(|_, bucket| {
            bucket.fill(now, rate_bit_s, most_tokens);
            bucket.tokens < most_tokens
        });
        self.most_buckets = KEPT_BUCKETS.max(2 * self.buckets.len());
    }

    /// Tokens of the bucket that all share, as of the last packet.
    fn tokens_bytes(&self) -> Option<f64> {
        let is_shared = self.settings.policed == Policed::Together;
        let tokens = self.buckets.get(&0).map_or(self.most_tokens(), |bucket| bucket.tokens);
        is_shared.then_some(tokens as f64 / BYTE as f64)
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
        self.line(direction).take(now, packet);
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
        if let Some(tokens_bytes) = self.down.tokens_bytes() {
            record("down_tokens_bytes", tokens_bytes);
        }
        if let Some(tokens_bytes) = self.up.tokens_bytes() {
            record("up_tokens_bytes", tokens_bytes);
        }
    }
}
