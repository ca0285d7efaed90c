//! Kinds of packets that a capture lacks, as the packets that it holds prove: removed by a filter, or never seen because
//! the other direction takes another way (asymmetric routing).

use crate::connection::Connection;
use crate::stream::side::Side;
use crate::summary::ConnectionSummary;

/// The initial window, which a sender may send before an acknowledgement arrives: ten segments of 1460 bytes (RFC 6928
/// section 2).
const BURST_PACKETS: u64 = 10;
const BURST_BYTES: u64 = 14_600;

/// What a capture lacks of the packets that one side sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingPackets {
    /// Nothing that the other packets would prove.
    #[default]
    None,
    /// Everything, though the other side sent or acknowledged what it could not have without.
    All,
    /// Acknowledgements without data, though the other side sent much more than the packets at hand acknowledge.
    PureAcknowledgements,
    /// Packets with data, though the other side acknowledged such.
    Data,
}

impl MissingPackets {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            MissingPackets::None => "none",
            MissingPackets::All => "all",
            MissingPackets::PureAcknowledgements => "pure-acknowledgements",
            MissingPackets::Data => "data",
        }
    }

    /// What is missing of the packets that `own` sent to `other`.
    ///
    /// A receiver acknowledges at least every second segment (RFC 9293 section 3.8.6.3). Where receive offload joins
    /// segments first, a packet may acknowledge a burst; more bursts than packets, and no pure acknowledgement among
    /// these, means that others were left out.
    pub(crate) fn of(own: &Side, other: &Side) -> Self {
        let first_copies = other.data_packets.saturating_sub(other.retransmitted_packets + other.duplicate_packets);
        if own.packets == 0 {
            let proven = first_copies > BURST_PACKETS || own.missed_bytes() > 0;
            return if proven { MissingPackets::All } else { MissingPackets::None };
        }
        if own.data_packets == 0 && own.missed_bytes() > BURST_BYTES {
            return MissingPackets::Data;
        }
        if own.pure_acknowledgements == 0 && first_copies > BURST_PACKETS * (own.packets + 1) {
            return MissingPackets::PureAcknowledgements;
        }
        MissingPackets::None
    }
}

/// How much of a capture's connections was not captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotCaptured {
    /// Connections with packets of one direction only.
    pub one_way: u64,
    /// Connections without any pure acknowledgement of much data.
    pub without_acknowledgements: u64,
    /// Connections without the packets with data that were acknowledged.
    pub without_data: u64,
    /// Packets that the snap length cut within the TCP options.
    pub packets_with_truncated_options: u64,
}

impl NotCaptured {
    /// Of these connections, without making their summaries.
    pub(crate) fn of<'a>(connections: impl Iterator<Item = &'a Connection>) -> Self {
        let mut found = NotCaptured::default();
        for Connection { sides: [first, second], .. } in connections {
            let missing = [MissingPackets::of(first, second), MissingPackets::of(second, first)];
            found.add(missing, first.options_truncated_packets + second.options_truncated_packets);
        }
        found
    }

    pub(crate) fn count(&mut self, connection: &ConnectionSummary<'_>) {
        let ConnectionSummary { up, down, .. } = connection;
        let truncated = up.options_truncated_packets + down.options_truncated_packets;
        self.add([up.missing_packets, down.missing_packets], truncated);
    }

    /// Adds a connection by what is missing of its two flows, and their packets with truncated options.
    fn add(&mut self, missing: [MissingPackets; 2], packets_with_truncated_options: u64) {
        let lacks = |kind| u64::from(missing.contains(&kind));
        self.one_way += lacks(MissingPackets::All);
        self.without_acknowledgements += lacks(MissingPackets::PureAcknowledgements);
        self.without_data += lacks(MissingPackets::Data);
        self.packets_with_truncated_options += packets_with_truncated_options;
    }
}
