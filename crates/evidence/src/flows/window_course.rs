//! The course of a receive window: how often it was shut and opened again, and its extremes.

use crate::packets::{flag, Packets};

/// How the windows of one direction went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowCourse {
    /// How often it was open again after it had been shut.
    pub cycles: usize,
    pub times_shut: usize,
    pub least_bytes: i64,
    pub largest_bytes: i64,
    /// Least share of the largest window so far.
    pub least_share: f64,
}

impl Packets<'_> {
    /// The windows that packets in `direction` advertise.
    ///
    /// A window is shut at `shut_share` of the largest so far and open from `open_share` of it. What precedes the first
    /// window above `open_share` of the first counts for the largest only.
    pub fn window_course(&self, direction: u8, shut_share: f64, open_share: f64) -> WindowCourse {
        let mut windows = self.advertised_windows(direction);
        let mut course = WindowCourse { cycles: 0, times_shut: 0, least_bytes: 0, largest_bytes: 0, least_share: 1.0 };
        let Some(first) = windows.clone().next() else {
            return course;
        };
        let opened = windows.clone().position(|window| f64::from(window) > open_share * f64::from(first));
        let before = windows.by_ref().take(opened.unwrap_or(0)).max().unwrap_or(0);
        let (mut least, mut largest, mut is_shut) = (u32::MAX, 0, false);
        for window in windows {
            least = least.min(window);
            largest = largest.max(window);
            let share = f64::from(window) / f64::from(largest.max(1));
            course.least_share = course.least_share.min(share);
            if share <= shut_share {
                course.times_shut += usize::from(!is_shut);
                is_shut = true;
            } else if share >= open_share {
                course.cycles += usize::from(is_shut);
                is_shut = false;
            }
        }
        course.least_bytes = i64::from(least);
        course.largest_bytes = i64::from(before.max(largest));
        course
    }

    /// Windows of the packets in `direction` that carry ACK and neither SYN, FIN nor RST.
    fn advertised_windows(&self, direction: u8) -> impl Iterator<Item = u32> + Clone + '_ {
        const LOOKED_AT: u16 = flag::SYN | flag::FIN | flag::RST | flag::ACK;
        let kinds = self.direction.iter().zip(self.flags);
        self.window_bytes
            .iter()
            .zip(kinds)
            .filter(move |&(_, (&way, &flags))| way == direction && flags & LOOKED_AT == flag::ACK)
            .map(|(&window, _)| window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(windows: &[u32]) -> WindowCourse {
        let count = windows.len();
        let packets = Packets {
            direction: &vec![0; count],
            flags: &vec![flag::ACK; count],
            window_bytes: windows,
            ..Packets::default()
        };
        packets.window_course(0, 0.05, 0.5)
    }

    #[test]
    fn a_window_that_stays_shut_has_no_cycle() {
        let found = course(&[0, 100, 60, 4, 4, 3, 30, 2]);
        assert_eq!((found.times_shut, found.cycles), (1, 0));
        assert_eq!((found.least_bytes, found.largest_bytes, found.least_share), (2, 100, 0.02));
    }

    #[test]
    fn each_opening_ends_a_cycle() {
        let found = course(&[100, 0, 50, 200, 11, 10, 100]);
        assert_eq!((found.times_shut, found.cycles), (2, 2));
    }

    #[test]
    fn nothing_advertised_is_nothing_shut() {
        assert_eq!(course(&[]).least_share, 1.0);
        assert_eq!(course(&[0, 0]).times_shut, 1);
    }
}
