//! True one-way delays: from when an end of a TCP leg sends a segment until the other end of the leg has it.

use pepscope_path::{Direction, Nanoseconds};
use pepscope_tcp::Segment;

/// Parts into which each doubling of the delay is divided: quantiles are right within 2.2 % of their value.
const PARTS: u32 = 32;
const BUCKETS: usize = ((64 - 5) * PARTS + PARTS) as usize;

/// Delays of many segments in constant memory.
#[derive(Clone, Debug)]
pub struct DelaySummary {
    sum_ns: u64,
    minimum_ns: Nanoseconds,
    maximum_ns: Nanoseconds,
    buckets: [u64; BUCKETS],
}

impl Default for DelaySummary {
    fn default() -> Self {
        Self { sum_ns: 0, minimum_ns: u64::MAX, maximum_ns: 0, buckets: [0; BUCKETS] }
    }
}

/// Values below `PARTS` have buckets of their own, larger ones share one with those that agree in the leading six bits.
#[inline]
fn bucket(value: u64) -> usize {
    let exponent = (value | u64::from(PARTS)).ilog2() - PARTS.ilog2();
    ((exponent * PARTS) as usize).wrapping_add((value >> exponent) as usize)
}

/// The middle of a bucket.
fn middle(bucket: usize) -> f64 {
    let parts = PARTS as usize;
    if bucket < 2 * parts {
        return bucket as f64;
    }
    let exponent = bucket / parts - 1;
    let width = (1u64 << exponent) as f64;
    (bucket - exponent * parts) as f64 * width + width / 2.0
}

impl DelaySummary {
    #[inline(always)]
    fn add(&mut self, delay_ns: Nanoseconds) {
        self.sum_ns = self.sum_ns.saturating_add(delay_ns);
        if delay_ns < self.minimum_ns {
            self.minimum_ns = delay_ns;
        }
        if delay_ns > self.maximum_ns {
            self.maximum_ns = delay_ns;
        }
        if let Some(count) = self.buckets.get_mut(bucket(delay_ns)) {
            *count = count.wrapping_add(1);
        }
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// 0 where there was none.
    #[must_use]
    pub fn mean_s(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum_ns as f64 / count as f64 * 1e-9,
        }
    }

    #[must_use]
    pub fn minimum_ns(&self) -> Nanoseconds {
        self.minimum_ns.min(self.maximum_ns)
    }

    #[must_use]
    pub fn maximum_ns(&self) -> Nanoseconds {
        self.maximum_ns
    }

    /// The delay that a share of `quantile` (0 to 1) of the segments does not exceed, in seconds.
    #[must_use]
    pub fn quantile_s(&self, quantile: f64) -> f64 {
        let wanted = (self.count() as f64 * quantile).ceil().max(1.0);
        let mut seen = 0u64;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen as f64 >= wanted {
                return middle(index).clamp(self.minimum_ns() as f64, self.maximum_ns as f64) * 1e-9;
            }
        }
        self.maximum_ns as f64 * 1e-9
    }
}

/// One segment that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub leg: u8,
    pub flow: u32,
    pub direction: Direction,
    pub sequence: u32,
    pub payload_bytes: u16,
    pub sent_ns: Nanoseconds,
    pub arrived_ns: Nanoseconds,
}

/// The place of the summary of a flow that has none.
const NO_PLACE: u32 = u32::MAX;

/// One-way delays by leg, flow and direction.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    legs: usize,
    /// The places of summaries by flow, leg and direction.
    places: Vec<u32>,
    summaries: Vec<DelaySummary>,
    /// Every arrival, if wanted.
    arrivals: Option<Vec<Arrival>>,
}

impl Delays {
    /// For a chain with `legs` connections in a row and flows of small numbers; `every_arrival` keeps each one, in memory that grows.
    #[must_use]
    pub fn new(legs: usize, every_arrival: bool) -> Self {
        Self { legs, places: Vec::new(), summaries: Vec::new(), arrivals: every_arrival.then(Vec::new) }
    }

    /// Brings every arrival in order of time, of one time those downstream first: hosts that take turns note theirs one
    /// after the other.
    pub(crate) fn order_arrivals(&mut self) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.sort_by_key(|arrival| (arrival.arrived_ns, arrival.direction.index()));
        }
    }

    #[inline(always)]
    fn index(&self, leg: usize, flow: u32, direction: Direction) -> usize {
        self.legs.wrapping_mul(flow as usize).wrapping_add(leg) << 1 | direction.index()
    }

    #[inline(always)]
    pub(crate) fn arrived(&mut self, leg: usize, now: Nanoseconds, direction: Direction, segment: &Segment) {
        let index = self.index(leg, segment.flow, direction);
        let delay_ns = now.saturating_sub(segment.sent_ns);
        let place = self.places.get(index).map_or(NO_PLACE, |place| *place);
        let summary = match self.summaries.get_mut(place as usize) {
            Some(summary) => summary,
            None => self.begin(index),
        };
        summary.add(delay_ns);
        if self.arrivals.is_some() {
            self.keep(leg, now, direction, segment);
        }
    }

    /// The summary at `index`, which is begun.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, index: usize) -> &mut DelaySummary {
        if self.places.len() <= index {
            self.places.resize(index + 1, NO_PLACE);
        }
        let place = self.summaries.len();
        self.places[index] = place as u32;
        self.summaries.push(DelaySummary::default());
        &mut self.summaries[place]
    }

    #[cold]
    #[inline(never)]
    fn keep(&mut self, leg: usize, now: Nanoseconds, direction: Direction, segment: &Segment) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.push(Arrival {
                leg: leg as u8,
                flow: segment.flow,
                direction,
                sequence: segment.sequence,
                payload_bytes: segment.payload_bytes,
                sent_ns: segment.sent_ns,
                arrived_ns: now,
            });
        }
    }

    /// Delays of a flow over the leg that is number `leg` from the server.
    #[must_use]
    pub fn summary(&self, leg: usize, flow: u32, direction: Direction) -> Option<&DelaySummary> {
        if leg >= self.legs {
            return None;
        }
        self.summaries.get(*self.places.get(self.index(leg, flow, direction))? as usize)
    }

    /// Number of legs.
    #[must_use]
    pub fn legs(&self) -> usize {
        self.legs
    }

    /// Every arrival in order of time; nothing if that was not asked for.
    #[must_use]
    pub fn arrivals(&self) -> &[Arrival] {
        self.arrivals.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{bucket, middle, Delays};
    use pepscope_path::Direction;
    use pepscope_tcp::Segment;

    #[test]
    fn every_delay_has_a_bucket_near_it() {
        for value in (0..200).chain([1_000, 40_123_456, 1 << 40, u64::MAX / 3, u64::MAX]) {
            let found = middle(bucket(value));
            assert!((found - value as f64).abs() <= value as f64 * 0.016 + 0.5, "{value} {found}");
        }
        assert_eq!(bucket(u64::MAX) + 1, super::BUCKETS);
    }

    #[test]
    fn delays_are_summed_up_by_leg_flow_and_direction() {
        let mut delays = Delays::new(2, true);
        for number in 0..100u64 {
            let segment = Segment { flow: 3, sent_ns: 1_000_000, ..Segment::default() };
            delays.arrived(1, 1_000_000 + number * 1_000_000, Direction::Down, &segment);
        }
        let summary = delays.summary(1, 3, Direction::Down).unwrap();
        assert_eq!((summary.count(), summary.minimum_ns(), summary.maximum_ns()), (100, 0, 99_000_000));
        assert!((summary.mean_s() - 0.0495).abs() < 1e-12);
        assert!((summary.quantile_s(0.5) / 0.049 - 1.0).abs() < 0.03);
        assert!(delays.summary(0, 3, Direction::Down).is_none());
        assert!(delays.summary(1, 3, Direction::Up).is_none());
        assert_eq!(delays.arrivals().len(), 100);
    }
}
