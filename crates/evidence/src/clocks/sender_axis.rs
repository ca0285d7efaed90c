//! Times of the receiver's capture on the sender's clock.

use crate::clocks::lines::{whole, ClockLines};

/// How the two clocks are related, for data of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// The sender's clock is the client's.
    pub is_up: bool,
    /// The sender's time from which seconds count.
    pub origin_ns: i64,
    /// The receiver's first time; the clocks agree there where nothing relates them.
    pub start_ns: i64,
    /// The server's clock minus the client's; None where nothing relates them.
    pub lines: Option<ClockLines<'a>>,
    /// What is added to the lines.
    pub raise_ns: f64,
}

impl Axis<'_> {
    /// A time of the receiver's capture in seconds on the sender's clock.
    #[inline]
    pub fn receiver_s(&self, time_ns: i64) -> f64 {
        let Some(lines) = self.lines else {
            return time_ns.wrapping_sub(self.start_ns) as f64 / 1e9;
        };
        let difference_ns = if self.is_up {
            lines.server_minus_client_ns(client_time(time_ns, lines)) + self.raise_ns
        } else {
            -(lines.server_minus_client_ns(time_ns) + self.raise_ns)
        };
        (time_ns.wrapping_sub(self.origin_ns) as f64 - difference_ns) / 1e9
    }
}

/// The client's time at which the server's clock shows this one; two rounds suffice for drifts below a percent.
fn client_time(server_ns: i64, lines: ClockLines<'_>) -> i64 {
    let offset_ns = lines.0.first().map_or(0.0, |line| line.offset_ns);
    let first = server_ns.wrapping_sub(whole(offset_ns));
    (0..2).fold(first, |client_ns, _| server_ns.wrapping_sub(whole(lines.server_minus_client_ns(client_ns))))
}
