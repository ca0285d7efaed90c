//! How long one range of bytes took at its sender and at its receiver.

use crate::packets::Packets;

/// Times that a common byte range took; no clock relation enters them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferSpans {
    /// From first sent to acknowledged, at the sender.
    pub sender_ns: i64,
    /// From first to last arrival, at the receiver.
    pub receiver_ns: i64,
    pub bytes: i64,
}

/// The range of `direction`'s bytes that both captures hold and that was acknowledged to the sender; `None` below
/// `shortest_bytes`. `shift` added to an offset at the receiver gives the sender's.
pub fn transfer_spans(
    direction: u8,
    sender: &Packets<'_>,
    receiver: &Packets<'_>,
    shift: i64,
    shortest_bytes: i64,
) -> Option<TransferSpans> {
    let data = sender.data_ranges(direction);
    let sent = &data.beyond;
    let acks = sender.acknowledgement_times(direction);
    let acks = &acks.steps;
    let received = receiver.first_arrivals(direction);
    let low = (*sent.start.first()?).max(received.start.first()?.wrapping_add(shift));
    let high = (*sent.end.last()?).min(received.end.last()?.wrapping_add(shift)).min(*acks.value.last()?);
    let bytes = high.wrapping_sub(low);
    if bytes < shortest_bytes {
        return None;
    }
    let (low_there, high_there) = (low.wrapping_sub(shift), high.wrapping_sub(shift));
    let began_ns = earliest(&sent.time_ns, &sent.end, |end| end <= low)?;
    let acknowledged_ns = earliest(&acks.time_ns, &acks.value, |value| value < high)?;
    let first_ns = earliest(&received.time_ns, &received.end, |end| end <= low_there)?;
    let last_ns = earliest(&received.time_ns, &received.end, |end| end < high_there)?;
    Some(TransferSpans {
        sender_ns: acknowledged_ns.wrapping_sub(began_ns),
        receiver_ns: last_ns.wrapping_sub(first_ns),
        bytes,
    })
}

/// The earliest time from the first of the ascending offsets that does not lie below what is looked for.
fn earliest(time_ns: &[i64], offsets: &[i64], is_below: impl Fn(i64) -> bool) -> Option<i64> {
    time_ns[offsets.partition_point(|&offset| is_below(offset))..].iter().min().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::flag;

    #[test]
    fn only_bytes_that_both_ends_hold_are_timed() {
        let sender = Packets {
            time_ns: &[0, 1, 2, 9],
            direction: &[1, 1, 1, 0],
            sequence_offset: &[0, 10, 20, 0],
            acknowledgement_offset: &[0, 0, 0, 20],
            payload_bytes: &[10, 10, 10, 0],
            flags: &[flag::ACK; 4],
            ..Packets::default()
        };
        let receiver = Packets {
            time_ns: &[105, 112],
            direction: &[1, 1],
            sequence_offset: &[110, 120],
            acknowledgement_offset: &[0, 0],
            payload_bytes: &[10, 10],
            flags: &[flag::ACK; 2],
            ..Packets::default()
        };
        let found = transfer_spans(1, &sender, &receiver, -100, 1);
        assert_eq!(found, Some(TransferSpans { sender_ns: 8, receiver_ns: 0, bytes: 10 }));
        assert_eq!(transfer_spans(1, &sender, &receiver, -100, 11), None);
    }
}
