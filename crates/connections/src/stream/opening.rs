//! The SYN of one side: initial sequence number, options, and when it was sent.

use pepscope_wire::segment::Segment;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    first_time_ns: i64,
    last_time_ns: i64,
    pub(crate) options_at: u64,
    pub(crate) initial_sequence_number: u32,
    /// Packets with a SYN that were captured, and those of them that were sent: not captured again.
    pub(crate) syn_packets: u32,
    pub(crate) syn_count: u32,
    first_tsval: u32,
    last_tsval: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) maximum_segment_size: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    pub(crate) options_length: u8,
    pub(crate) sack_permitted: bool,
    pub(crate) timestamps: bool,
    options_truncated: bool,
}

impl Opening {
    pub(crate) fn seen(&self) -> bool {
        self.syn_packets > 0
    }

    pub(crate) fn initial_sequence_number(&self) -> Option<u32> {
        self.seen().then_some(self.initial_sequence_number)
    }

    /// An acknowledgement number covers this side's SYN, what the SYN carried, and bytes behind them.
    pub(crate) fn is_acknowledged_with_more(&self, acknowledgement: u32) -> bool {
        let own_end = self.initial_sequence_number.wrapping_add(1).wrapping_add(self.payload_bytes);
        (acknowledgement.wrapping_sub(own_end) as i32) > 0
    }

    /// The whole option list of the SYN was captured: what was not read was not there.
    pub(crate) fn options_captured(&self) -> bool {
        self.seen() && !self.options_truncated
    }

    /// Note a SYN of this side, or the same packet again (`repeats`); its options go to `options_store` if it is the
    /// first.
    pub(crate) fn note(&mut self, segment: &Segment<'_>, repeats: bool, options_store: &mut Vec<u8>) {
        let tsval = segment.options.timestamps.map_or(0, |(tsval, _)| tsval);
        if !self.seen() {
            let length = segment.options_raw.len().min(usize::from(u8::MAX));
            self.options_at = options_store.len() as u64;
            self.options_length = length as u8;
            options_store.extend_from_slice(&segment.options_raw[..length]);
            self.initial_sequence_number = segment.sequence;
            self.payload_bytes = segment.payload_length;
            self.maximum_segment_size = segment.options.maximum_segment_size;
            self.window_scale = segment.options.window_scale;
            self.sack_permitted = segment.options.sack_permitted;
            self.timestamps = segment.options.timestamps.is_some();
            self.options_truncated = segment.options_truncated;
            self.first_time_ns = segment.time_ns;
            self.first_tsval = tsval;
        }
        if !repeats {
            self.syn_count = self.syn_count.saturating_add(1);
            self.last_time_ns = segment.time_ns;
            self.last_tsval = tsval;
        }
        self.syn_packets = self.syn_packets.saturating_add(1);
    }

    /// Time from the SYN that is answered to the answer at `time_ns`; `None` where several SYNs were sent and the
    /// answer's TSecr does not show which one it answers.
    pub(crate) fn answered_after_ns(&self, time_ns: i64, tsecr: Option<u32>) -> Option<i64> {
        let told_apart = self.timestamps && self.first_tsval != self.last_tsval;
        let sent_ns = match tsecr {
            _ if self.syn_count <= 1 => self.first_time_ns,
            Some(tsecr) if told_apart && tsecr == self.first_tsval => self.first_time_ns,
            Some(tsecr) if told_apart && tsecr == self.last_tsval => self.last_time_ns,
            _ => return None,
        };
        let elapsed_ns = time_ns.saturating_sub(sent_ns);
        (elapsed_ns >= 0).then_some(elapsed_ns)
    }
}
