//! A clock relation: the server's clock minus the client's as a line, or as one line after another.

/// The server's clock minus the client's from `start_ns` on (client's clock), as a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockLine {
    pub start_ns: i64,
    pub reference_ns: i64,
    pub offset_ns: f64,
    pub drift: f64,
}

/// Lines in order of time; what stands before the second begins belongs to the first.
#[derive(Clone, Copy, Debug)]
pub struct ClockLines<'a>(pub &'a [ClockLine]);

impl ClockLines<'_> {
    /// Place of the line that holds at a time of the client's clock.
    pub fn place_at(&self, client_ns: i64) -> usize {
        let later = self.0.iter().skip(1).rposition(|line| client_ns >= line.start_ns);
        later.map_or(0, |place| place + 1)
    }

    /// The difference at a time of the client's clock; 0 without lines.
    pub fn server_minus_client_ns(&self, client_ns: i64) -> f64 {
        let line = self.0.get(self.place_at(client_ns));
        line.map_or(0.0, |line| line.offset_ns + line.drift * client_ns.wrapping_sub(line.reference_ns) as f64)
    }

    /// A time of one clock by the other, in whole nanoseconds.
    ///
    /// The lines run over client times: of a server's time the first line's offset gives the client's nearly enough,
    /// since the drift over it is small.
    pub fn other_clock_ns(&self, time_ns: i64, from_client: bool) -> i64 {
        if from_client {
            return time_ns.wrapping_add(whole(self.server_minus_client_ns(time_ns)));
        }
        let offset_ns = self.0.first().map_or(0.0, |line| line.offset_ns);
        let client_ns = time_ns.wrapping_sub(whole(offset_ns));
        time_ns.wrapping_sub(whole(self.server_minus_client_ns(client_ns)))
    }
}

/// The nearest whole number, of two the even one. Where the processor's own rounding must not be taken for granted,
/// `round_ties_even` calls a function; adding a number rounds to its last place.
pub(super) fn whole(number: f64) -> i64 {
    /// From here on the last place of a number is one.
    const WHOLE: f64 = (1_u64 << 52) as f64;
    /// The numbers beside the sum are in that range for all that are smaller.
    const MOST: f64 = (1_u64 << 51) as f64;
    if number.abs() < MOST {
        ((number + 1.5 * WHOLE) - 1.5 * WHOLE) as i64
    } else {
        number.round_ties_even() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whole_numbers_are_the_nearest(number in prop_oneof![any::<f64>(), -1e16..1e16, -9.0..9.0]) {
            prop_assert_eq!(whole(number), number.round_ties_even() as i64);
        }

        #[test]
        fn of_two_nearest_the_even_one_counts(below in -(1_i64 << 51)..1 << 51) {
            let number = below as f64 + 0.5;
            prop_assert_eq!(whole(number), number.round_ties_even() as i64);
        }
    }

    #[test]
    fn a_line_holds_from_its_start_until_the_next() {
        let first = ClockLine { start_ns: 100, reference_ns: 100, offset_ns: 10.0, drift: 0.5 };
        let second = ClockLine { start_ns: 200, reference_ns: 200, offset_ns: -3.0, drift: 0.0 };
        let clock = ClockLines(&[first, second]);
        assert_eq!([90, 110, 199, 200].map(|time_ns| clock.server_minus_client_ns(time_ns)), [5.0, 15.0, 59.5, -3.0]);
        assert_eq!((clock.other_clock_ns(300, true), clock.other_clock_ns(297, false)), (297, 300));
        assert_eq!(ClockLines(&[]).other_clock_ns(7, false), 7);
    }
}
