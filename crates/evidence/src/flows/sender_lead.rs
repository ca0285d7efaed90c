//! How far one flow's sender is ahead of its receiver: bytes acknowledged to the one that have not reached the other.

use crate::ascending::Ascending;
use crate::clocks::lines::ClockLines;
use crate::flows::byte_times::NEVER;
use crate::flows::times::{FlowTimes, TimedAck};
use crate::packets::{flag, Packets, DOWN, UP};

/// What a relay can hold: `fixed_bytes` and `bytes_per_segment` for each segment of `segment_bytes` that was delivered
/// in its application and its send buffer, and in its receive buffer what its windows leave room for.
#[derive(Clone, Copy, Debug)]
pub struct RelayBuffers {
    pub fixed_bytes: i64,
    pub segment_bytes: i64,
    pub bytes_per_segment: i64,
    /// What may wait unread beside the largest window, however little was read.
    pub first_window_bytes: i64,
    /// How large a window may become for each byte that was read.
    pub window_per_read_byte: i64,
}

impl RelayBuffers {
    /// What they can hold when so many bytes had reached the receiver, behind a window.
    fn capacity_bytes(&self, delivered_bytes: i64, window: Window) -> i64 {
        let segments = delivered_bytes / self.segment_bytes.max(1);
        let passed_on = self.fixed_bytes.wrapping_add(self.bytes_per_segment.wrapping_mul(segments));
        let read = delivered_bytes.wrapping_add(passed_on);
        // A window grows with what arrives, also while its reader waits: so much again may stand behind it.
        let grown = window.largest_bytes.wrapping_mul(2).min(read.wrapping_mul(self.window_per_read_byte));
        let whole = grown.max(window.largest_bytes.wrapping_add(self.first_window_bytes));
        passed_on.wrapping_add(whole).wrapping_sub(window.bytes)
    }
}

/// The captures of a flow, and how they are to be compared.
#[derive(Clone, Copy, Debug)]
pub struct LeadComparison<'a> {
    pub receiver: Packets<'a>,
    /// The sender's capture, where it holds the windows that were advertised to it in bytes.
    pub windows: Option<Packets<'a>>,
    /// What is added to an offset in the receiver's capture to have the sender's.
    pub shift: i64,
    pub clock: ClockLines<'a>,
    /// Whether the relation is known: then the data of the flow do not move it against the acknowledgements.
    pub clock_given: bool,
    /// What timestamps may be wrong by.
    pub error_ns: i64,
    pub buffers: RelayBuffers,
}

/// A sender's lead under the friendliest clock. Bytes at or below 0 mean never ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderLead {
    pub total_bytes: i64,
    /// Most that was acknowledged and had not arrived.
    pub most_bytes: i64,
    /// Arrived when the last byte was acknowledged to the sender.
    pub delivered_when_done_bytes: i64,
    /// Acknowledged to the sender when the first byte arrived.
    pub acknowledged_at_start_bytes: i64,
    /// From the first byte sent to the first that arrived.
    pub silence_ns: i64,
    /// From the first byte sent until the last was acknowledged.
    pub sender_duration_ns: i64,
    pub receiver_duration_ns: i64,
    /// Most by which the lead exceeded what a relay's buffers could hold then, and what they could; 0 where the windows
    /// are not known.
    pub beyond_buffers_bytes: i64,
    pub buffers_bytes: i64,
}

impl FlowTimes {
    /// The lead of this flow's sender; `None` where too few times are known.
    pub fn sender_lead(&self, comparison: &LeadComparison<'_>) -> Option<SenderLead> {
        if self.data.len() < 2 || self.acks.len() < 2 {
            return None;
        }
        let delivery = self.delivery(comparison)?;
        let begin = delivery.begin;
        let (arrived, reached) = (*delivery.time_ns.first()?, *delivery.reached.last()?);
        let acknowledged = self.acks.last()?.value;
        let mut arrivals = Ascending::new(&delivery.time_ns);
        let mut delivered_at = |seen_ns: i64| match arrivals.up_to(seen_ns.wrapping_add(comparison.error_ns)) {
            0 => begin,
            came => delivery.reached[came - 1],
        };
        let done = self.acks.partition_point(|ack| ack.value < acknowledged.min(reached));
        let done_ns = self.acks.get(done)?.seen_ns;
        let before = self.acks.partition_point(|ack| ack.seen_ns < arrived);
        let at_start = before.checked_sub(1).map_or(0, |place| self.acks[place].value.wrapping_sub(begin));
        let windows = comparison.windows.map(|packets| Windows::of(&packets, if self.is_up { DOWN } else { UP }));
        let mut windows = windows.as_ref().map(Windows::lookups);
        let mut found = SenderLead {
            total_bytes: acknowledged.max(reached).wrapping_sub(begin),
            delivered_when_done_bytes: delivered_at(done_ns).wrapping_sub(begin),
            acknowledged_at_start_bytes: at_start,
            silence_ns: arrived.wrapping_sub(self.data[0].sent_ns),
            sender_duration_ns: done_ns.wrapping_sub(self.data[0].sent_ns),
            receiver_duration_ns: delivery.time_ns.last()?.wrapping_sub(arrived),
            ..SenderLead::default()
        };
        let (mut most, mut furthest) = (None, None);
        for &TimedAck { value, seen_ns, .. } in self.acks.iter().filter(|ack| ack.arrival_ns != NEVER) {
            let delivered = delivered_at(seen_ns);
            let lead = value.wrapping_sub(delivered);
            most = most.max(Some(lead));
            let Some(windows) = &mut windows else {
                continue;
            };
            let delivered_bytes = delivered.wrapping_sub(begin).max(0);
            let capacity = comparison.buffers.capacity_bytes(delivered_bytes, windows.at(seen_ns));
            let beyond = lead.wrapping_sub(capacity);
            if furthest.is_none_or(|(before, _): (i64, i64)| beyond > before) {
                furthest = Some((beyond, capacity));
            }
        }
        found.most_bytes = most.unwrap_or(0);
        (found.beyond_buffers_bytes, found.buffers_bytes) = furthest.unwrap_or((0, 0));
        Some(found)
    }

    /// What had arrived when, on the sender's clock, with no forward delay at best.
    fn delivery(&self, comparison: &LeadComparison<'_>) -> Option<Delivery> {
        let held = comparison.receiver.first_arrivals(if self.is_up { UP } else { DOWN });
        let begin = held.start.iter().min()?.wrapping_add(comparison.shift);
        let on_sender_clock = |receiver_ns| comparison.clock.other_clock_ns(receiver_ns, !self.is_up);
        let latest = self.data.iter().map(|datum| datum.sent_ns.wrapping_sub(on_sender_clock(datum.arrived_ns)));
        let latest_ns = latest.max()?;
        let moved_ns = if comparison.clock_given { latest_ns.max(0) } else { latest_ns };
        let (mut time_ns, mut reached) = (i64::MIN, i64::MIN);
        let count = held.time_ns.len();
        let mut delivery = Delivery { begin, time_ns: Vec::with_capacity(count), reached: Vec::with_capacity(count) };
        let mut deliver = |(&came_ns, &end): (&i64, &i64)| {
            time_ns = time_ns.max(on_sender_clock(came_ns).wrapping_add(moved_ns));
            reached = reached.max(end.wrapping_add(comparison.shift));
            delivery.time_ns.push(time_ns);
            delivery.reached.push(reached);
        };
        let came = held.time_ns.iter().zip(&held.end);
        if held.time_ns.is_sorted() {
            came.for_each(deliver);
        } else {
            let mut came: Vec<_> = came.collect();
            came.sort_by_key(|&(time_ns, _)| time_ns);
            came.into_iter().for_each(&mut deliver);
        }
        Some(delivery)
    }
}

/// The stream as it arrived: from the offset `begin`, and how far it had got at ascending times.
struct Delivery {
    begin: i64,
    time_ns: Vec<i64>,
    reached: Vec<i64>,
}

/// A window that was advertised, and the largest until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Window {
    bytes: i64,
    largest_bytes: i64,
}

/// The windows that one end advertises.
struct Windows {
    time_ns: Vec<i64>,
    advertised: Vec<Window>,
}

impl Windows {
    fn of(packets: &Packets<'_>, direction: u8) -> Self {
        let most = packets.direction.iter().filter(|&&way| way == direction).count();
        let mut windows = Windows { time_ns: Vec::with_capacity(most), advertised: Vec::with_capacity(most) };
        let mut largest_bytes = 0;
        let kinds = packets.direction.iter().zip(packets.flags);
        for (((&way, &flags), &bytes), &time_ns) in kinds.zip(packets.window_bytes).zip(packets.time_ns) {
            if way == direction && flags & flag::SYN == 0 {
                let bytes = i64::from(bytes);
                largest_bytes = bytes.max(largest_bytes);
                windows.time_ns.push(time_ns);
                windows.advertised.push(Window { bytes, largest_bytes });
            }
        }
        windows
    }

    fn lookups(&self) -> WindowsAt<'_> {
        WindowsAt { windows: self, ascending: self.time_ns.is_sorted().then(|| Ascending::new(&self.time_ns)) }
    }
}

/// Looks up windows at times that mostly ascend.
struct WindowsAt<'a> {
    windows: &'a Windows,
    /// None where a capture's times are out of order.
    ascending: Option<Ascending<'a, i64>>,
}

impl WindowsAt<'_> {
    /// The last window that was advertised by a time, or the first of all.
    fn at(&mut self, time_ns: i64) -> Window {
        let known = match &mut self.ascending {
            Some(ascending) => ascending.up_to(time_ns),
            None => self.windows.time_ns.partition_point(|&advertised_ns| advertised_ns <= time_ns),
        };
        self.windows.advertised.get(known.saturating_sub(1)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::lines::ClockLine;
    use crate::flows::times::TimedDatum;

    const LINE: ClockLine = ClockLine { start_ns: 0, reference_ns: 0, offset_ns: 500.0, drift: 0.0 };
    const BUFFERS: RelayBuffers = RelayBuffers {
        fixed_bytes: 5,
        segment_bytes: 10,
        bytes_per_segment: 2,
        first_window_bytes: 7,
        window_per_read_byte: 4,
    };

    /// Four segments up, each acknowledged at once, that arrive from `arrival_ns` on at half the rate.
    fn lead(arrival_ns: i64) -> Option<SenderLead> {
        let sent: Vec<i64> = (0..4).map(|number| number * 10).collect();
        let arrived: Vec<i64> = sent.iter().map(|time_ns| arrival_ns + 2 * time_ns + 500).collect();
        let both = || sent.iter().zip(&arrived);
        let ack = |sent_ns: i64, arrival_ns| TimedAck {
            value: sent_ns + 10,
            seen_ns: sent_ns + 5,
            arrival_ns,
            ..TimedAck::default()
        };
        let flow = FlowTimes {
            is_up: true,
            data: both().map(|(&sent_ns, &arrived_ns)| TimedDatum { sent_ns, arrived_ns }).collect(),
            acks: both().map(|(&sent_ns, &arrival_ns)| ack(sent_ns, arrival_ns)).collect(),
            ..FlowTimes::default()
        };
        let receiver = Packets {
            time_ns: &arrived,
            direction: &[UP; 4],
            sequence_offset: &[100, 110, 120, 130],
            acknowledgement_offset: &[0; 4],
            payload_bytes: &[10; 4],
            flags: &[flag::ACK; 4],
            ..Packets::default()
        };
        let clock = ClockLines(&[LINE]);
        let (windows, shift, error_ns, buffers) = (None, -100, 0, BUFFERS);
        flow.sender_lead(&LeadComparison { receiver, windows, shift, clock, clock_given: true, error_ns, buffers })
    }

    #[test]
    fn what_is_acknowledged_and_has_not_arrived_is_the_lead() {
        let found = lead(7).unwrap_or_default();
        assert_eq!((found.total_bytes, found.most_bytes), (40, 20));
        assert_eq!((found.delivered_when_done_bytes, found.acknowledged_at_start_bytes), (20, 10));
        assert_eq!((found.silence_ns, found.sender_duration_ns, found.receiver_duration_ns), (7, 35, 60));
        assert_eq!(lead(1000).unwrap_or_default().acknowledged_at_start_bytes, 40);
    }

    #[test]
    fn a_window_is_looked_up_with_the_largest_until_then() {
        let packets = Packets {
            time_ns: &[0, 10, 20],
            direction: &[1, 1, 1],
            flags: &[flag::ACK; 3],
            window_bytes: &[100, 150, 30],
            ..Packets::default()
        };
        let windows = Windows::of(&packets, 1);
        let mut lookups = windows.lookups();
        let found = [-5, 0, 19, 25].map(|time_ns| lookups.at(time_ns)).map(|each| (each.bytes, each.largest_bytes));
        assert_eq!(found, [(100, 100), (100, 100), (150, 150), (30, 150)]);
        assert_eq!(Windows::of(&packets, 0).lookups().at(7), Window::default());
        let out_of_order = Windows { time_ns: vec![10, 0, 20], ..windows };
        assert_eq!([25, 5].map(|time_ns| out_of_order.lookups().at(time_ns).bytes), [30, 150]);
    }

    #[test]
    fn what_waits_unread_is_what_a_window_may_have_been() {
        let capacity =
            |delivered, bytes, largest_bytes| BUFFERS.capacity_bytes(delivered, Window { bytes, largest_bytes });
        // Nothing was delivered: the window that was shown, and a first one, less the one that is shown now.
        assert_eq!(capacity(0, 60, 60), 5 + 7);
        assert_eq!(capacity(0, 20, 60), 5 + 7 + 40);
        // Of 100 bytes delivered and 25 passed on a window may have become 500, but no more than twice the largest.
        assert_eq!(capacity(100, 400, 400), 25 + 500 - 400);
        assert_eq!(capacity(100, 200, 200), 25 + 2 * 200 - 200);
        assert_eq!(capacity(100, 0, 900), 25 + 900 + 7);
    }
}
