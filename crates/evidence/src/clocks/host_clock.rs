//! The clock of a host in its own TCP timestamps (RFC 7323, section 5.4), beside the clock of the capture.

use crate::median::{median, median_of};
use crate::packets::{flag, mark, Packets};

/// Segments of one host that bear timestamps, in capture order: when they were captured, and how many ticks the
/// timestamps had counted since the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTicks {
    time_ns: Vec<i64>,
    ticks: Vec<i64>,
}

impl Packets<'_> {
    /// Of the host that sends in `direction`. SYNs are left out: their timestamps may be a SYN cookie's, or a SYN
    /// proxy's.
    pub fn host_ticks(&self, direction: u8) -> HostTicks {
        let mut found = HostTicks::default();
        let mut before = None;
        let mut counted = 0_i64;
        let kinds = self.direction.iter().zip(self.marks).zip(self.flags);
        for (((&way, &marks), &flags), (&time_ns, &stamp)) in kinds.zip(self.time_ns.iter().zip(self.tsval)) {
            if way != direction || marks & mark::HAS_TIMESTAMPS == 0 || flags & flag::SYN != 0 {
                continue;
            }
            // The counter wraps.
            counted += i64::from(stamp.wrapping_sub(before.unwrap_or(stamp)) as i32);
            before = Some(stamp);
            found.time_ns.push(time_ns);
            found.ticks.push(counted);
        }
        found
    }
}

impl HostTicks {
    /// Ticks a second: the median over at most `most` stretches of at least `stretch_ticks` ticks each; `None` where
    /// fewer than `fewest` of them count on.
    pub fn rate_hz(&self, most: usize, stretch_ticks: i64, fewest: usize) -> Option<f64> {
        let total = *self.ticks.last()?;
        let stretches = most.min(usize::try_from(total / stretch_ticks.max(1)).unwrap_or(0));
        if stretches < fewest.max(1) {
            return None;
        }
        let mut places = self.places(total, stretches);
        places.dedup();
        let rates: Vec<f64> = places
            .iter()
            .zip(places.iter().skip(1))
            .map(|(&from, &to)| (self.ticks[to] - self.ticks[from], self.time_ns[to].wrapping_sub(self.time_ns[from])))
            .filter(|&(counted, spent_ns)| counted > 0 && spent_ns > 0)
            .map(|(counted, spent_ns)| counted as f64 * 1e9 / spent_ns as f64)
            .collect();
        if rates.len() < fewest {
            return None;
        }
        median(rates)
    }

    /// Where the ticks first reach each of evenly spread counts from 0 to `total`.
    fn places(&self, total: i64, stretches: usize) -> Vec<usize> {
        let step = total as f64 / stretches as f64;
        let counts = (0..stretches).map(|place| place as f64 * step).chain([total as f64]);
        let mut rows = self.ticks.iter().enumerate().peekable();
        counts
            .filter_map(|count| {
                while rows.next_if(|&(_, &ticks)| (ticks as f64) < count).is_some() {}
                rows.peek().map(|&(place, _)| place)
            })
            .collect()
    }

    /// Median of the capture's time less the host's (any constant) over the first `count` segments from a capture time
    /// on, before another; `None` of fewer.
    pub fn level_ns(&self, tick_ns: f64, start_ns: f64, end_ns: f64, count: usize) -> Option<f64> {
        let first_ns = *self.time_ns.first()?;
        let rows = self.time_ns.iter().zip(&self.ticks);
        let inside = rows.filter(|&(&time_ns, _)| start_ns <= time_ns as f64 && (time_ns as f64) < end_ns).take(count);
        let ahead = inside.map(|(&time_ns, &ticks)| time_ns.wrapping_sub(first_ns) as f64 - ticks as f64 * tick_ns);
        let ahead: Vec<f64> = ahead.collect();
        if ahead.len() != count {
            return None;
        }
        median(ahead)
    }
}

impl HostTicks {
    /// By how much the capture's time less the host's ranges, as medians of `count` successive segments show it; `None`
    /// of fewer.
    pub fn swing_ns(&self, tick_ns: f64, count: usize) -> Option<f64> {
        let first_ns = *self.time_ns.first()?;
        let rows = self.time_ns.iter().zip(&self.ticks);
        let ahead: Vec<f64> =
            rows.map(|(&time_ns, &ticks)| time_ns.wrapping_sub(first_ns) as f64 - ticks as f64 * tick_ns).collect();
        let count = count.max(1);
        let mut window = vec![0.0; count];
        let mut range: Option<(f64, f64)> = None;
        for levels in ahead.windows(count) {
            let level = if let &[one, two, three] = levels {
                one.min(two).max(one.max(two).min(three))
            } else {
                window.copy_from_slice(levels);
                median_of(&mut window)?
            };
            range = Some(range.map_or((level, level), |(least, most)| (least.min(level), most.max(level))));
        }
        range.map(|(least, most)| most - least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that ticks every millisecond from shortly before its counter wraps, by a clock that is set in between.
    fn ticking(set_ns: i64) -> HostTicks {
        let rows: Vec<u32> = (0..200).collect();
        let packets = Packets {
            time_ns: &rows
                .iter()
                .map(|&row| i64::from(row) * 10_000_000 + if row < 100 { 0 } else { set_ns })
                .collect::<Vec<_>>(),
            direction: &[0; 200],
            tsval: &rows.iter().map(|&row| (u32::MAX - 500).wrapping_add(row * 10)).collect::<Vec<_>>(),
            flags: &[flag::ACK; 200],
            marks: &[mark::HAS_TIMESTAMPS; 200],
            ..Packets::default()
        };
        assert_eq!(packets.host_ticks(1), HostTicks::default());
        packets.host_ticks(0)
    }

    #[test]
    fn one_step_does_not_move_the_rate_and_shows_in_the_level() {
        let host = ticking(700_000_000);
        assert_eq!(host.rate_hz(64, 20, 5), Some(1000.0));
        let level = |start_ns, end_ns| host.level_ns(1e6, start_ns, end_ns, 3);
        assert_eq!((level(0.0, 1e9), level(1.5e9, 2e9)), (Some(0.0), Some(7e8)));
        assert_eq!(level(1.1e9, 1.2e9), None);
        assert_eq!((host.swing_ns(1e6, 3), ticking(0).swing_ns(1e6, 3)), (Some(7e8), Some(0.0)));
        assert_eq!(host.swing_ns(1e6, 201), None);
    }

    #[test]
    fn too_few_ticks_show_no_rate() {
        assert_eq!(ticking(0).rate_hz(64, 1000, 5), None);
        assert_eq!(HostTicks::default().rate_hz(64, 20, 5), None);
        assert_eq!(HostTicks::default().level_ns(1e6, 0.0, 1e9, 3), None);
    }
}
