//! The clock behind the timestamps option (RFC 7323, section 5.4), and the peer's timestamps.

use pepscope_path::{Nanoseconds, SECOND};

use crate::packets::segment::Timestamps;

/// A timestamp older than that does not order segments any more (RFC 7323, section 5.5).
const RECENT_LIFETIME: Nanoseconds = 24 * 24 * 3600 * SECOND;

/// Timestamps of one end.
#[derive(Clone, Debug)]
pub(crate) struct TimestampClock {
    offset: u32,
    tick: Nanoseconds,
    value: u32,
    /// `value` holds from here on for one tick.
    since: Nanoseconds,
    /// Both ends use the option.
    pub is_active: bool,
    recent: u32,
    recent_at: Nanoseconds,
}

impl TimestampClock {
    pub fn new(offset: u32, tick: Nanoseconds) -> Self {
        Self { offset, tick: tick.max(1), value: offset, since: 0, is_active: false, recent: 0, recent_at: 0 }
    }

    #[inline]
    pub fn value(&mut self, now: Nanoseconds) -> u32 {
        if now - self.since >= self.tick {
            let ticks = now / self.tick;
            self.value = self.offset.wrapping_add(ticks as u32);
            self.since = ticks * self.tick;
        }
        self.value
    }

    /// The option of a segment that leaves.
    #[inline]
    pub fn option(&mut self, now: Nanoseconds) -> Timestamps {
        Timestamps { value: self.value(now), echo_reply: self.recent }
    }

    /// Whether `timestamps` are older than what was seen (PAWS; RFC 7323, section 5.3).
    #[inline]
    pub fn is_stale(&self, now: Nanoseconds, timestamps: Timestamps) -> bool {
        (timestamps.value.wrapping_sub(self.recent) as i32) < 0 && now - self.recent_at < RECENT_LIFETIME
    }

    #[inline]
    pub fn note(&mut self, now: Nanoseconds, timestamps: Timestamps) {
        self.recent = timestamps.value;
        self.recent_at = now;
    }

    /// Whether an echo reply is older than `time`, so that it answers what left before (RFC 3522).
    pub fn is_echo_before(&self, timestamps: Timestamps, time: Nanoseconds) -> bool {
        let then = self.offset.wrapping_add((time / self.tick) as u32);
        self.is_active && timestamps.echo_reply != 0 && (timestamps.echo_reply.wrapping_sub(then) as i32) < 0
    }

    /// The round-trip time that an echo reply gives if both ends use the option, no finer than a tick (RFC 7323,
    /// section 4.1).
    #[inline]
    pub fn round_trip_time(&mut self, now: Nanoseconds, timestamps: Timestamps) -> Option<Nanoseconds> {
        if !self.is_active {
            return None;
        }
        let ticks = self.value(now).wrapping_sub(timestamps.echo_reply) as i32;
        (timestamps.echo_reply != 0 && ticks >= 0).then(|| u64::from(ticks.unsigned_abs()).max(1) * self.tick)
    }
}

#[cfg(test)]
mod tests {
    use super::TimestampClock;
    use crate::packets::segment::Timestamps;
    use pepscope_path::MILLISECOND;

    #[test]
    fn the_clock_steps_once_a_tick_and_wraps() {
        let mut clock = TimestampClock::new(u32::MAX, 10 * MILLISECOND);
        let values = [0, 9, 10, 19, 1000].map(|time| clock.value(time * MILLISECOND));
        assert_eq!(values, [u32::MAX, u32::MAX, 0, 0, 99]);
    }

    #[test]
    fn older_timestamps_are_stale_across_the_wrap() {
        let mut clock = TimestampClock::new(0, MILLISECOND);
        clock.note(0, Timestamps { value: 2, echo_reply: 0 });
        assert!(clock.is_stale(1, Timestamps { value: u32::MAX, echo_reply: 0 }));
        assert!(!clock.is_stale(1, Timestamps { value: 2, echo_reply: 0 }));
        assert!(!clock.is_stale(25 * 24 * 3600 * 1000 * MILLISECOND, Timestamps { value: 1, echo_reply: 0 }));
    }

    #[test]
    fn an_echo_gives_the_round_trip_in_ticks() {
        let mut clock = TimestampClock::new(5, MILLISECOND);
        clock.is_active = true;
        let sent = clock.option(10 * MILLISECOND);
        let reply = Timestamps { value: 0, echo_reply: sent.value };
        assert_eq!(clock.round_trip_time(50 * MILLISECOND, reply), Some(40 * MILLISECOND));
        assert_eq!(clock.round_trip_time(50 * MILLISECOND, Timestamps::default()), None);
    }
}
