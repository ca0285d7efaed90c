//! How often packets contradict what stands before them: fewer times in the order in which they passed than in another.

use pepscope_wire::segment::{flag, Segment};

/// What one sender's packets before this one said.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    initial_sequence_number: Option<u32>,
    /// Where what it sent ends.
    end: Option<u32>,
    acknowledged: Option<u32>,
}

/// Counts packets that begin before what their sender sent, that acknowledge less than one before them did, or that
/// acknowledge what was not sent yet.
///
/// Retransmissions, reordering and what a capture lacks contradict too, but about as often in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contradictions {
    said: [Said; 2],
    pub(crate) count: u64,
}

impl Contradictions {
    /// The next packet, which `side` sent.
    pub(crate) fn note(&mut self, side: usize, segment: &Segment<'_>) {
        if segment.flags & flag::RST != 0 {
            return;
        }
        let [first, second] = &mut self.said;
        let (own, other) = if side == 0 { (first, second) } else { (second, first) };
        let is_syn = segment.flags & flag::SYN != 0;
        if is_syn {
            if own.initial_sequence_number.is_some_and(|number| number != segment.sequence) {
                // Another connection between the same end points.
                own.end = None;
                other.acknowledged = None;
            }
            own.initial_sequence_number = Some(segment.sequence);
        }
        self.count += u64::from(own.end.is_some_and(|end| is_before(segment.sequence, end)));
        let numbers = segment.payload_length + u32::from(is_syn) + u32::from(segment.flags & flag::FIN != 0);
        own.end = Some(later(own.end, segment.sequence.wrapping_add(numbers)));
        if segment.flags & flag::ACK != 0 {
            let acknowledged = segment.acknowledgement;
            let runs_back = own.acknowledged.is_some_and(|before| is_before(acknowledged, before));
            let is_sent = other.end.is_some_and(|end| !is_before(end, acknowledged));
            self.count += u64::from(runs_back || !is_sent);
            own.acknowledged = Some(later(own.acknowledged, acknowledged));
        }
    }
}

/// Comparison of sequence numbers (RFC 9293 section 3.4).
fn is_before(number: u32, other: u32) -> bool {
    (number.wrapping_sub(other) as i32) < 0
}

fn later(known: Option<u32>, number: u32) -> u32 {
    known.filter(|&known| is_before(number, known)).unwrap_or(number)
}
