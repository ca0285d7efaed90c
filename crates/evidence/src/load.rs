//! How round trips and windows of one direction's data respond to load.
//!
//! End to end the bytes that a sender keeps in flight wait where the path is slowest, and its round trips grow with
//! them. Behind a split the near leg is fast: round trips stay, and the split point's buffer fills until its window
//! shuts. A slow reader shuts windows as well, and a path that is nowhere full, or a deep buffer at the split point that
//! a transfer does not fill, show neither.

use std::collections::VecDeque;

use crate::columns::by_connection_columns;
use crate::packets::{flag, Packets, NO_ACKNOWLEDGEMENT};

/// Segments in flight that are remembered; of more, the oldest are forgotten.
const MOST_IN_FLIGHT: usize = 1 << 16;
/// Samples that are ranked; of more, every second one goes, and so on.
const MOST_SAMPLES: usize = 1 << 14;

/// Calls a macro with the columns of load responses: name and type.
#[macro_export]
macro_rules! for_each_load_column {
    ($act:ident) => {
        $act! {
            connection: u32,
            sent: u8,
            samples: u32,
            least_ns: i64,
            idle_ns: i64,
            loaded_ns: i64,
            idle_flight_bytes: i64,
            loaded_flight_bytes: i64,
            rank_correlation: f64,
            times_shut: u32,
            shut_ns: i64,
        }
    };
}

macro_rules! load_columns {
    ($($name:ident: $element:ty,)*) => {
        /// Of one direction; -1 (NaN) stands for what is not known. `pepscope.captures.senders` says what fields hold.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct LoadResponse {
            $(pub $name: $element,)*
        }

        by_connection_columns! {
            /// Load responses as columns of one length, two rows a connection: of data up, and down.
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct LoadColumns { $($name: $element,)* }
        }

        impl LoadColumns {
            pub fn push(&mut self, response: &LoadResponse) {
                $(self.$name.push(response.$name);)*
            }
        }
    };
}
for_each_load_column!(load_columns);

/// A round trip, and the bytes in flight once its segment had left.
type Sample = (i64, i64);

/// Samples, evenly thinned where there are very many.
#[derive(Debug, Default)]
struct Samples {
    seen: u64,
    halvings: u32,
    kept: Vec<Sample>,
}

impl Samples {
    fn push(&mut self, sample: Sample) {
        if self.seen % (1 << self.halvings.min(63)) == 0 {
            if self.kept.len() >= MOST_SAMPLES {
                let mut rank = 0_usize;
                self.kept.retain(|_| {
                    rank += 1;
                    rank % 2 == 1
                });
                self.halvings += 1;
            }
            self.kept.push(sample);
        }
        self.seen += 1;
    }
}

/// Windows that the receiver advertises.
#[derive(Debug, Default)]
struct Window {
    shut_since_ns: Option<i64>,
    times_shut: u32,
    shut_ns: i64,
}

impl Window {
    fn advertise(&mut self, time_ns: i64, window_bytes: u32) {
        match (window_bytes, self.shut_since_ns) {
            (0, None) => {
                self.times_shut += 1;
                self.shut_since_ns = Some(time_ns);
            }
            (1.., Some(since_ns)) => {
                self.shut_ns = self.shut_ns.saturating_add(time_ns.saturating_sub(since_ns).max(0));
                self.shut_since_ns = None;
            }
            _ => {}
        }
    }
}

impl Packets<'_> {
    /// How round trips of `direction`'s data, and the windows of their receiver, respond to load.
    pub fn load_response(&self, connection: u32, direction: u8) -> LoadResponse {
        let mut samples = Samples::default();
        let mut window = Window::default();
        let mut in_flight: VecDeque<(i64, i64)> = VecDeque::new();
        let (mut acknowledged, mut highest) = (None::<i64>, i64::MIN);
        for place in 0..self.len() {
            let flags = self.flags[place];
            if flags & (flag::RST | flag::SYN) != 0 {
                continue;
            }
            if self.direction[place] == direction {
                let bytes = i64::from(self.payload_bytes[place]);
                let end = self.sequence_offset[place].saturating_add(bytes);
                if bytes == 0 || end <= highest {
                    continue;
                }
                highest = end;
                if in_flight.len() >= MOST_IN_FLIGHT {
                    in_flight.pop_front();
                }
                in_flight.push_back((end, end.saturating_sub(acknowledged.unwrap_or(end.saturating_sub(bytes)))));
                continue;
            }
            let offset = self.acknowledgement_offset[place];
            if offset == NO_ACKNOWLEDGEMENT {
                continue;
            }
            window.advertise(self.time_ns[place], self.window_bytes[place]);
            acknowledged = Some(acknowledged.map_or(offset, |before| before.max(offset)));
            let mut covered = None;
            while let Some(&(_, flight)) = in_flight.front().filter(|&&(end, _)| end <= offset) {
                covered = Some(flight);
                in_flight.pop_front();
            }
            let round_trip_ns = self.round_trip_time_ns[place];
            if let Some(flight) = covered.filter(|_| round_trip_ns >= 0) {
                samples.push((round_trip_ns, flight));
            }
        }
        let found = Ranked::of(samples.kept);
        LoadResponse {
            connection,
            sent: direction,
            samples: u32::try_from(samples.seen).unwrap_or(u32::MAX),
            least_ns: found.least_ns,
            idle_ns: found.idle.0,
            loaded_ns: found.loaded.0,
            idle_flight_bytes: found.idle.1,
            loaded_flight_bytes: found.loaded.1,
            rank_correlation: found.rank_correlation,
            times_shut: window.times_shut,
            shut_ns: window.shut_ns,
        }
    }
}

/// What samples say once they are ranked.
struct Ranked {
    least_ns: i64,
    /// Median round trip and flight of the quarter with the least flight, and of the one with the most.
    idle: Sample,
    loaded: Sample,
    rank_correlation: f64,
}

impl Ranked {
    fn of(mut samples: Vec<Sample>) -> Ranked {
        let least_ns = samples.iter().map(|sample| sample.0).min().unwrap_or(-1);
        samples.sort_unstable_by_key(|&(_, flight)| flight);
        let quarter = samples.len().div_ceil(4);
        let medians = |part: &[Sample]| {
            let middle = |pick: fn(&Sample) -> i64| {
                let mut values: Vec<i64> = part.iter().map(pick).collect();
                values.sort_unstable();
                values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(-1)
            };
            (middle(|sample| sample.0), middle(|sample| sample.1))
        };
        Ranked {
            least_ns,
            idle: medians(samples.get(..quarter).unwrap_or_default()),
            loaded: medians(samples.get(samples.len() - quarter..).unwrap_or_default()),
            rank_correlation: rank_correlation(&samples),
        }
    }
}

/// Spearman's correlation of both parts, ties sharing their mean rank; NaN where either part is constant.
fn rank_correlation(samples: &[Sample]) -> f64 {
    let (times, flights) = (mean_ranks(samples, |sample| sample.0), mean_ranks(samples, |sample| sample.1));
    let mean = (samples.len() as f64 - 1.0) / 2.0;
    let (mut product, mut square, mut other) = (0.0, 0.0, 0.0);
    for (time, flight) in times.iter().zip(&flights) {
        let (time, flight) = (time - mean, flight - mean);
        product += time * flight;
        square += time * time;
        other += flight * flight;
    }
    if square > 0.0 && other > 0.0 {
        product / (square * other).sqrt()
    } else {
        f64::NAN
    }
}

fn mean_ranks(samples: &[Sample], pick: impl Fn(&Sample) -> i64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_unstable_by_key(|&place| pick(&samples[place]));
    let mut ranks = vec![0.0; samples.len()];
    let mut start = 0;
    for tied in order.chunk_by(|&one, &other| pick(&samples[one]) == pick(&samples[other])) {
        let rank = start as f64 + (tied.len() as f64 - 1.0) / 2.0;
        tied.iter().for_each(|&place| ranks[place] = rank);
        start += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 100 bytes up, each acknowledged so many nanoseconds later, with these windows.
    fn response(sent: &[(i64, i64)], windows: &[u32]) -> LoadResponse {
        let mut events: Vec<(i64, u8, usize)> = Vec::new();
        for (number, &(time_ns, round_trip_ns)) in sent.iter().enumerate() {
            events.push((time_ns, 0, number));
            events.push((time_ns + round_trip_ns, 1, number));
        }
        events.sort_unstable();
        let pick = |of: &dyn Fn(&(i64, u8, usize)) -> i64| events.iter().map(of).collect::<Vec<i64>>();
        let ends = pick(&|event| event.2 as i64 * 100 + 100);
        let is_data: Vec<bool> = events.iter().map(|event| event.1 == 0).collect();
        Packets {
            time_ns: &pick(&|event| event.0),
            direction: &events.iter().map(|event| event.1).collect::<Vec<_>>(),
            sequence_offset: &ends.iter().map(|end| end - 100).collect::<Vec<_>>(),
            acknowledgement_offset: &ends,
            payload_bytes: &is_data.iter().map(|&data| if data { 100 } else { 0 }).collect::<Vec<_>>(),
            window_bytes: &events.iter().map(|event| windows[event.2 % windows.len()]).collect::<Vec<_>>(),
            flags: &vec![flag::ACK; events.len()],
            round_trip_time_ns: &events
                .iter()
                .map(|event| if event.1 == 0 { -1 } else { sent[event.2].1 })
                .collect::<Vec<_>>(),
            ..Packets::default()
        }
        .load_response(0, 0)
    }

    #[test]
    fn round_trips_that_grow_with_the_flight_correlate() {
        let growing: Vec<(i64, i64)> = (0..40).map(|number| (number * 10, 100 + number * 5)).collect();
        let found = response(&growing, &[60_000]);
        assert_eq!((found.samples, found.least_ns, found.times_shut), (40, 100, 0));
        assert!(found.rank_correlation > 0.95, "{}", found.rank_correlation);
        assert!(found.loaded_ns > found.idle_ns && found.loaded_flight_bytes > found.idle_flight_bytes);
    }

    #[test]
    fn a_flat_path_has_no_correlation() {
        let flat: Vec<(i64, i64)> = (0..40).map(|number| (number * 10, 100)).collect();
        assert!(response(&flat, &[60_000]).rank_correlation.is_nan());
        assert_eq!(response(&[], &[1]).idle_ns, -1);
    }

    #[test]
    fn a_shut_window_is_timed_until_it_opens() {
        let spaced: Vec<(i64, i64)> = (0..4).map(|number| (number * 1000, 100)).collect();
        let found = response(&spaced, &[100, 0, 0, 200]);
        assert_eq!((found.times_shut, found.shut_ns), (1, 2000));
    }

    #[test]
    fn ties_share_their_rank() {
        assert_eq!(mean_ranks(&[(5, 0), (1, 0), (5, 0)], |sample| sample.0), [1.5, 0.0, 1.5]);
    }

    #[test]
    fn very_many_samples_are_thinned_evenly() {
        let mut samples = Samples::default();
        (0..100_000).for_each(|number| samples.push((number, 0)));
        assert!(samples.kept.len() <= MOST_SAMPLES && samples.kept.len() >= MOST_SAMPLES / 2);
        assert_eq!(samples.kept[1].0 - samples.kept[0].0, samples.kept[3].0 - samples.kept[2].0);
    }
}
