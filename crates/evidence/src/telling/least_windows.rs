//! The least windows that packets of one direction advertise.

use crate::packets::{flag, Packets};
use crate::telling::strongest;

impl Packets<'_> {
    /// Rows and windows of at most so many packets in `direction`, without SYN and RST, whose windows are the least: the
    /// least of all first, then those of parts of the connection (`strongest`).
    pub fn least_windows(&self, direction: u8, most: usize) -> Vec<(usize, u32)> {
        let kinds = self.direction.iter().zip(self.flags);
        let advertising =
            kinds.enumerate().filter(|&(_, (&way, &flags))| way == direction && flags & (flag::SYN | flag::RST) == 0);
        let rows: Vec<usize> = advertising.map(|(row, _)| row).collect();
        let score: Vec<f64> = rows.iter().map(|&row| -f64::from(self.window_bytes[row])).collect();
        let places = strongest(&score, most, f64::NEG_INFINITY);
        places.into_iter().map(|place| (rows[place], self.window_bytes[rows[place]])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{DOWN, UP};

    #[test]
    fn the_least_come_first_and_those_of_syns_and_resets_never() {
        let packets = Packets {
            time_ns: &[0; 6],
            direction: &[UP, UP, DOWN, UP, UP, UP],
            window_bytes: &[0, 70, 5, 60, 90, 0],
            flags: &[flag::SYN, flag::ACK, flag::ACK, flag::ACK, flag::ACK | flag::FIN, flag::RST],
            ..Packets::default()
        };
        assert_eq!(packets.least_windows(UP, 1), [(3, 60)]);
        assert_eq!(packets.least_windows(UP, 9), [(3, 60), (1, 70), (4, 90)]);
        assert_eq!(packets.least_windows(DOWN, 2), [(2, 5)]);
    }
}
