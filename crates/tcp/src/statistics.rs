//! Totals of one end of a connection.

/// Counted since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments of all kinds, SYN and RST included.
    pub segments_sent: u64,
    pub segments_received: u64,
    /// Segments that carry data or FIN, sent again or not.
    pub data_segments_sent: u64,
    /// Payload, what was sent again included.
    pub payload_bytes_sent: u64,
    pub retransmitted_segments: u64,
    pub retransmitted_bytes: u64,
    /// Expirations of the retransmission timer for data, FIN, SYN or SYN-ACK.
    pub timeouts: u64,
    pub fast_retransmits: u64,
    /// Losses that the control took for corruption: retransmitted without slowing down.
    pub corruption_retransmits: u64,
    /// Times that the control slowed down because of echoed marks (standard ECN).
    pub mark_reactions: u64,
    pub window_probes: u64,
    /// Segments sent because the last ones may be lost (RFC 8985, section 7).
    pub tail_loss_probes: u64,
    /// Reductions of the window that proved wrong and were taken back.
    pub undone_reductions: u64,
    pub duplicate_acknowledgements: u64,
    pub out_of_order_segments: u64,
    /// Segments with payload that brought nothing new.
    pub duplicate_segments: u64,
    pub marks_received: u64,
    /// Segments refused because their timestamp is older than one seen (RFC 7323, section 5).
    pub stale_timestamps: u64,
    /// Segments refused because they lie outside the window.
    pub outside_window: u64,
}
