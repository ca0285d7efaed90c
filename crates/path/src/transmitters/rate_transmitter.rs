//! Service at a rate that changes in steps.

use std::collections::VecDeque;

use crate::hop::{Nanoseconds, NEVER, SECOND};
use crate::settings::SettingsError;
use crate::transmitters::rates::{RateProfile, Rates};
use crate::transmitters::transmission::Transmitter;

/// What a change of rate does to the packet in service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceRule {
    /// Its remaining bits are sent at the new rate: the link delivers exactly what its rate offers.
    #[default]
    Exact,
    /// It keeps the rate at which its service began, as in ns-2 and ns-3; where that is 0, service waits for the next
    /// rate that is not. Deep fades then take longer than the rate alone gives.
    Frozen,
}

/// Radio frames that packets are cut into, each packet into whole ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioFrames {
    /// 40 in seed 003, where a packet of 512 bytes makes 13 frames.
    pub frame_bytes: u32,
}

/// Sends packets at the rates of a profile.
#[derive(Clone, Debug)]
pub(crate) struct RateTransmitter {
    rates: Rates,
    rule: ServiceRule,
    radio_frames: Option<RadioFrames>,
    /// What the last nanosecond of the packet before offered beyond its end, in bits times nanoseconds a second.
    surplus: u128,
    pace: Pace,
    /// Begin and end of the services to come under [`ServiceRule::Frozen`], whose speed does not follow from the
    /// profile.
    frozen: VecDeque<(Nanoseconds, Nanoseconds)>,
    /// Earliest time that [`RateTransmitter::offered_frames`] will ask for; [`NEVER`] if it will not.
    reported_until: Nanoseconds,
    offered_work: u128,
}

/// What the last service was like.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    bytes: u32,
    /// The span of one rate that it began in.
    from: Nanoseconds,
    until: Nanoseconds,
    rate_bit_s: u64,
    /// Up to there nothing is to be forgotten.
    fresh_until: Nanoseconds,
    /// What the packet takes at that rate: whole nanoseconds, and the work that is left then.
    whole_ns: Nanoseconds,
    rest: u64,
}

impl RateTransmitter {
    pub(crate) fn new(
        profile: &RateProfile,
        rule: ServiceRule,
        radio_frames: Option<RadioFrames>,
        seed: u64,
        name: &str,
    ) -> Result<Self, SettingsError> {
        if radio_frames.is_some_and(|frames| frames.frame_bytes == 0) {
            return Err(SettingsError::new("frame_bytes", 0, "at least 1"));
        }
        Ok(Self {
            rates: Rates::new(profile, seed, name)?,
            rule,
            radio_frames,
            surplus: 0,
            pace: Pace::default(),
            frozen: VecDeque::new(),
            reported_until: NEVER,
            offered_work: 0,
        })
    }

    pub(crate) fn sends_frames(&self) -> bool {
        self.radio_frames.is_some()
    }

    pub(crate) fn rate_at(&self, now: Nanoseconds) -> u64 {
        self.rates.rate_at(now)
    }

    /// Whole bits that the profile offered until `now`.
    pub(crate) fn offered_bits(&self, now: Nanoseconds) -> u64 {
        u64::try_from(self.rates.work_until(now) / u128::from(SECOND)).unwrap_or(u64::MAX)
    }

    /// Keeps what [`RateTransmitter::offered_frames`] needs from the start on.
    pub(crate) fn begin_reports(&mut self) {
        self.reported_until = 0;
    }

    /// Whole frames that the profile offered since the last call (what is left of one carries over).
    pub(crate) fn offered_frames(&mut self, until: Nanoseconds) -> u32 {
        self.rates.make_until(until);
        self.offered_work += self.rates.work(self.reported_until, until);
        self.reported_until = until;
        let frame = self.frame_work().max(1);
        let frames = self.offered_work / frame;
        self.offered_work %= frame;
        u32::try_from(frames).unwrap_or(u32::MAX)
    }

    fn frame_work(&self) -> u128 {
        self.radio_frames.map_or(0, |frames| work_of_bytes(u64::from(frames.frame_bytes)))
    }

    /// Bytes on the link for a packet of `bytes`: whole frames, where it sends such.
    fn sent_bytes(&self, bytes: u32) -> u64 {
        match self.radio_frames {
            None => u64::from(bytes),
            Some(frames) => u64::from(bytes.div_ceil(frames.frame_bytes)) * u64::from(frames.frame_bytes),
        }
    }

    /// The end at `now` of a service from `begin` on that is like the last one; `None`, with nothing done, if it is
    /// not.
    #[inline(always)]
    fn finish_again(&mut self, now: Nanoseconds, begin: Nanoseconds, bytes: u32) -> Option<Nanoseconds> {
        let pace = &self.pace;
        if bytes != pace.bytes || now >= pace.fresh_until || begin < pace.from || begin >= pace.until {
            return None;
        }
        if self.rule == ServiceRule::Frozen {
            return Some(begin.saturating_add(pace.whole_ns).saturating_add(u64::from(pace.rest > 0)));
        }
        let surplus = u64::try_from(self.surplus).ok().filter(|&surplus| surplus < pace.rate_bit_s)?;
        let (duration, surplus) = if pace.rest > surplus {
            (pace.whole_ns + 1, pace.rate_bit_s - (pace.rest - surplus))
        } else {
            (pace.whole_ns, surplus - pace.rest)
        };
        if duration > pace.until - begin {
            return None;
        }
        self.surplus = u128::from(surplus);
        Some(begin + duration)
    }

    /// Gets ready for services like one of `bytes` from `begin` on.
    fn set_pace(&mut self, begin: Nanoseconds, bytes: u32) {
        let (span, from, fresh_until) = self.rates.span_at(begin);
        let rate_bit_s = span.rate_bit_s;
        self.pace = match u64::from(bytes).checked_mul(WORK_OF_BYTE) {
            Some(work) if rate_bit_s > 0 && work >= rate_bit_s && !self.sends_frames() => Pace {
                bytes,
                from,
                until: span.end_ns,
                fresh_until,
                rate_bit_s,
                whole_ns: work / rate_bit_s,
                rest: work % rate_bit_s,
            },
            _ => Pace::default(),
        };
    }

    #[inline(never)]
    fn finish_stepwise(&mut self, now: Nanoseconds, begin: Nanoseconds, bytes: u32) -> Nanoseconds {
        self.rates.forget_before(now.min(self.reported_until));
        while self.frozen.front().is_some_and(|&(_, end)| end <= now) {
            self.frozen.pop_front();
        }
        let work = work_of_bytes(self.sent_bytes(bytes));
        let end = match self.rule {
            ServiceRule::Exact => self.finish_exactly(begin, work),
            ServiceRule::Frozen => self.finish_frozen(begin, work),
        };
        self.set_pace(begin, bytes);
        end
    }

    fn finish_exactly(&mut self, begin: Nanoseconds, work: u128) -> Nanoseconds {
        let Some(mut work) = work.checked_sub(self.surplus) else {
            self.surplus -= work;
            return begin;
        };
        let mut position = begin;
        let mut index = self.rates.index_at(begin);
        loop {
            let span = self.rates.span(index);
            let offered = u128::from(span.rate_bit_s) * u128::from(span.end_ns - position);
            if offered >= work {
                let duration = divide_rounding_up(work, span.rate_bit_s);
                self.surplus = u128::from(span.rate_bit_s) * u128::from(duration) - work;
                return position + duration;
            }
            if span.end_ns == NEVER {
                return NEVER;
            }
            work -= offered;
            position = span.end_ns;
            index += 1;
        }
    }

    fn finish_frozen(&mut self, begin: Nanoseconds, work: u128) -> Nanoseconds {
        let mut begin = begin;
        let mut index = self.rates.index_at(begin);
        let mut span = self.rates.span(index);
        while span.rate_bit_s == 0 {
            if span.end_ns == NEVER {
                return NEVER;
            }
            begin = span.end_ns;
            index += 1;
            span = self.rates.span(index);
        }
        let end = begin.saturating_add(divide_rounding_up(work, span.rate_bit_s));
        if self.sends_frames() {
            self.frozen.push_back((begin, end));
        }
        end
    }

    /// Radio frames that a packet of `bytes` is sent in.
    #[inline]
    pub(crate) fn frames(&self, bytes: u32) -> u32 {
        self.radio_frames.map_or(0, |frames| bytes.div_ceil(frames.frame_bytes))
    }

    /// How many frames of the packet in service, which is out at `departure`, are still to be sent at `now`. To the
    /// nanosecond: the surplus of a packet's last one is not counted apart.
    pub(crate) fn frames_left(&self, now: Nanoseconds, departure: Nanoseconds, bytes: u32) -> u32 {
        let frames = self.frames(bytes);
        if frames == 0 {
            return 0;
        }
        let left = match self.rule {
            ServiceRule::Exact => self.rates.work(now, departure).div_ceil(self.frame_work()),
            ServiceRule::Frozen => {
                let service = self.frozen.iter().find(|&&(_, end)| end == departure);
                service.map_or(u128::from(frames), |&(begin, end)| {
                    let left_ns = u128::from(end - now.max(begin).min(end));
                    (u128::from(frames) * left_ns).div_ceil(u128::from((end - begin).max(1)))
                })
            }
        };
        u32::try_from(left).unwrap_or(u32::MAX).min(frames)
    }
}

impl Transmitter for RateTransmitter {
    #[inline(always)]
    fn finish(&mut self, now: Nanoseconds, busy_until: Nanoseconds, bytes: u32) -> Nanoseconds {
        if busy_until < now {
            self.surplus = 0;
        }
        let begin = busy_until.max(now);
        match self.finish_again(now, begin, bytes) {
            Some(end) => end,
            None => self.finish_stepwise(now, begin, bytes),
        }
    }

    fn packet_s(&self, bytes: u32) -> f64 {
        // The rate at hand stands for the typical one: idle spells are short against the average's memory.
        let rate_bit_s = self.rates.first_rate_bit_s().max(1);
        self.sent_bytes(bytes) as f64 * 8.0 / rate_bit_s as f64
    }
}

const WORK_OF_BYTE: u64 = 8 * SECOND;

/// Work is in bits times nanoseconds a second, so that a rate in bit/s times nanoseconds is exact.
fn work_of_bytes(bytes: u64) -> u128 {
    u128::from(bytes) * u128::from(WORK_OF_BYTE)
}

/// `work` / `rate`, at most [`NEVER`]; `rate` is not 0 where there is work.
fn divide_rounding_up(work: u128, rate_bit_s: u64) -> u64 {
    match u64::try_from(work) {
        Ok(work) => work.div_ceil(rate_bit_s.max(1)),
        Err(_) => u64::try_from(work.div_ceil(u128::from(rate_bit_s.max(1)))).unwrap_or(NEVER),
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, RateTransmitter, ServiceRule};
    use crate::transmitters::rates::{AfterLastStep, RateProfile, RateStep};
    use crate::transmitters::transmission::Transmitter;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};
    use proptest::sample;

    proptest! {
        #[test]
        fn services_like_the_last_one_end_as_if_each_were_the_first(
            steps in prop::collection::vec((1_000_000u64..400_000_000, 0u64..3_000_000), 1..6),
            arrivals in prop::collection::vec((0u64..60_000_000, sample::select(vec![40u32, 512, 512, 512, 1500])), 1..80),
            rate_bit_s in 1u64..20_000_000_000,
            is_exact in any::<bool>(),
        ) {
            let last = RateStep { duration_ns: 5_000_000, rate_bit_s };
            let steps = steps.iter().map(|&(duration_ns, rate_bit_s)| RateStep { duration_ns, rate_bit_s });
            let steps = steps.chain([last]).collect();
            let profile = RateProfile::Steps { steps, after: AfterLastStep::Repeat };
            let rule = if is_exact { ServiceRule::Exact } else { ServiceRule::Frozen };
            let mut quick = RateTransmitter::new(&profile, rule, None, 1, "rates").unwrap();
            let mut plain = quick.clone();
            let (mut now, mut busy_until) = (0, 0);
            for (gap, bytes) in arrivals {
                now += gap;
                plain.pace = Pace::default();
                let end = quick.finish(now, busy_until, bytes);
                prop_assert_eq!(end, plain.finish(now, busy_until, bytes));
                busy_until = end;
            }
        }
    }
}
