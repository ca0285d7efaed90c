//! A FIN that arrives before it was sent, under a clock that data of the other direction allow.

use crate::clocks::lines::ClockLines;
use crate::flows::times::FlowTimes;

impl FlowTimes {
    /// By how much a FIN against this flow's data arrived too early (ns), its clock moved as far as the data allow;
    /// `None` where no data stand in the same piece of the clock.
    ///
    /// `sent_ns` and `arrived_ns` are the FIN's times at its own sender and receiver. What data before a step of a
    /// clock allow, they do not allow behind it.
    pub fn fin_lead_ns(&self, sent_ns: i64, arrived_ns: i64, clock: ClockLines<'_>) -> Option<f64> {
        let (client_ns, server_ns) = if self.is_up { (arrived_ns, sent_ns) } else { (sent_ns, arrived_ns) };
        let rest_ns =
            |client_ns: i64, difference_ns: i64| difference_ns as f64 - clock.server_minus_client_ns(client_ns);
        let piece = clock.place_at(client_ns);
        let alike = self.data_differences(false).filter(|&(client_ns, _)| clock.place_at(client_ns) == piece);
        let room_ns = alike.map(|(client_ns, difference_ns)| rest_ns(client_ns, difference_ns));
        let fin_ns = rest_ns(client_ns, server_ns.wrapping_sub(client_ns));
        // Data down bound the server's clock from below, data up from above.
        if self.is_up {
            room_ns.reduce(f64::min).map(|least_ns| fin_ns - least_ns)
        } else {
            room_ns.reduce(f64::max).map(|greatest_ns| greatest_ns - fin_ns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::lines::ClockLine;
    use crate::flows::times::TimedDatum;

    #[test]
    fn the_clock_is_moved_as_far_as_data_of_the_same_piece_allow() {
        let first = ClockLine { start_ns: 0, reference_ns: 0, offset_ns: 1000.0, drift: 0.0 };
        let second = ClockLine { start_ns: 500, offset_ns: 3000.0, ..first };
        let clock = ClockLines(&[first, second]);
        let data = |times: &[(i64, i64)]| -> Vec<TimedDatum> {
            times.iter().map(|&(sent_ns, arrived_ns)| TimedDatum { sent_ns, arrived_ns }).collect()
        };
        let down = FlowTimes { data: data(&[(990, 10), (1095, 105), (3600, 610)]), ..FlowTimes::default() };
        // Data down took 10 ns at least: the FIN of the client came 910 ns early on the lines, and 10 ns may be the clock's.
        assert_eq!(down.fin_lead_ns(300, 390, clock), Some(900.0));
        assert_eq!(down.fin_lead_ns(700, 3690, clock), Some(0.0));
        let up = FlowTimes { is_up: true, data: data(&[(10, 1015)]), ..FlowTimes::default() };
        assert_eq!(up.fin_lead_ns(1300, 400, clock), Some(-105.0));
        assert_eq!(up.fin_lead_ns(3700, 600, clock), None);
    }
}
