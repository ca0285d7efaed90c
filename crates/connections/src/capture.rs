//! A capture that was read: its connections in memory or in temporary files, asked for by their index.

use std::ops::Range;

use pepscope_wire::Tally;

use crate::analysis::Connections;
use crate::datagram_flow::DatagramFlow;
use crate::json::write_connection;
use crate::missing::NotCaptured;
use crate::read::{Observed, Summaries};
use crate::records::packet_store::EncodedPackets;
use crate::records::payload_sample::PayloadPieces;
use crate::references::Reference;
use crate::storage::oversize::Oversize;
use crate::storage::partitioned::{Loaded, PartitionedPackets};
use crate::storage::spill::{SpillError, TemporaryBytes};
use crate::summary::ConnectionSummary;

/// Why something of a connection cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    #[error("connection {index} of {count}")]
    NoConnection { index: usize, count: usize },
    #[error("the packets must be stored: open the capture with columns=True")]
    NoPackets,
    #[error("the payload must be stored: open the capture with payload=True")]
    NoPayload,
    #[error(transparent)]
    Spill(#[from] SpillError),
}

/// Where the packets and payload samples of connections are.
pub(crate) enum Packets {
    InMemory(Box<Loaded>),
    InFiles(Box<PartitionedPackets>),
    /// Connections did not fit into memory, and packets were not asked for.
    NotKept,
}

impl Packets {
    pub(crate) fn in_memory(connections: &mut Connections) -> Packets {
        Packets::InMemory(Box::new(Loaded::take_from(0, connections)))
    }
}

/// A capture's connections and UDP flows.
pub struct AnalysedCapture {
    tally: Tally,
    summaries: Summaries,
    packets: Packets,
    observed: Observed,
    left_in_file_order: usize,
}

impl AnalysedCapture {
    pub(crate) fn new(
        tally: Tally,
        summaries: Summaries,
        packets: Packets,
        observed: Observed,
        left_in_file_order: usize,
    ) -> Self {
        AnalysedCapture { tally, summaries, packets, observed, left_in_file_order }
    }

    /// What the capture held besides TCP.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How much of the connections was not captured.
    pub fn not_captured(&self) -> NotCaptured {
        match &self.summaries {
            Summaries::InMemory(connections) => connections.not_captured(),
            Summaries::InFile(stored) => stored.not_captured(),
        }
    }

    /// Connections whose times fall back, but whose packets could not be read again in the order of time.
    pub fn left_in_file_order(&self) -> usize {
        self.left_in_file_order
    }

    /// The largest partition, where it takes more memory than was allowed.
    pub fn oversize(&self) -> Option<Oversize> {
        match &self.packets {
            Packets::InFiles(packets) => packets.oversize(),
            _ => None,
        }
    }

    pub fn connection_count(&self) -> usize {
        match &self.summaries {
            Summaries::InMemory(connections) => connections.len(),
            Summaries::InFile(stored) => stored.len(),
        }
    }

    /// Partitions of which one at a time is in memory; 1 where everything is.
    pub fn partition_count(&self) -> usize {
        match &self.packets {
            Packets::InFiles(packets) => packets.partition_count(),
            _ => 1,
        }
    }

    /// Bytes written to temporary files, and read back by this process so far.
    pub fn temporary_bytes(&self) -> TemporaryBytes {
        let summaries = match &self.summaries {
            Summaries::InMemory(_) => TemporaryBytes::default(),
            Summaries::InFile(stored) => stored.traffic(),
        };
        match &self.packets {
            Packets::InFiles(packets) => summaries + packets.traffic(),
            Packets::InMemory(_) | Packets::NotKept => summaries,
        }
    }

    /// How many processes may each load partitions of their own within the memory allowed; `None` where everything is
    /// in memory.
    pub fn processes_at_most(&self) -> Option<usize> {
        match &self.packets {
            Packets::InFiles(packets) => Some(packets.processes_at_most()),
            Packets::InMemory(_) | Packets::NotKept => None,
        }
    }

    /// Lets go of the partitions in memory, and leaves this process one of so many shares of the memory allowed. Gives
    /// how many partitions it keeps in memory from now on.
    pub fn divide_memory(&self, processes: usize) -> usize {
        match &self.packets {
            Packets::InFiles(packets) => packets.divide_memory(processes),
            Packets::InMemory(_) | Packets::NotKept => 1,
        }
    }

    /// Partition that holds the packets of a connection.
    pub fn partition_of(&self, index: usize) -> Result<usize, LookupError> {
        Ok(self.locate(index)?.0)
    }

    /// Hands the summaries of these connections to `act`.
    pub fn with_summaries<T>(
        &self,
        indices: impl Iterator<Item = usize> + Clone,
        act: impl FnOnce(&[ConnectionSummary<'_>]) -> T,
    ) -> Result<T, LookupError> {
        let no_connection = || self.no_connection(indices.clone().max().unwrap_or_default());
        match &self.summaries {
            Summaries::InMemory(connections) => {
                let found: Option<Vec<_>> = indices.clone().map(|index| connections.summary(index)).collect();
                Ok(act(&found.ok_or_else(no_connection)?))
            }
            Summaries::InFile(stored) => {
                let bytes: Option<Vec<Vec<u8>>> =
                    indices.clone().map(|index| stored.bytes(index)).collect::<Result<_, _>>()?;
                let bytes = bytes.ok_or_else(no_connection)?;
                let summaries: Result<Vec<_>, _> = bytes.iter().map(|bytes| stored.decode(bytes)).collect();
                Ok(act(&summaries?))
            }
        }
    }

    /// How many packets these connections have.
    pub fn packet_counts(&self, indices: impl Iterator<Item = usize> + Clone) -> Result<Vec<u64>, LookupError> {
        match &self.summaries {
            Summaries::InMemory(connections) => indices
                .map(|index| connections.packet_count_of(index).ok_or_else(|| self.no_connection(index)))
                .collect(),
            Summaries::InFile(_) => {
                self.with_summaries(indices, |found| found.iter().map(|summary| summary.packets).collect())
            }
        }
    }

    /// Appends the JSON objects of these connections with commas between them.
    pub fn write_json(&self, range: Range<usize>, text: &mut Vec<u8>) -> Result<(), LookupError> {
        let start = range.start;
        for index in range {
            if index > start {
                text.push(b',');
            }
            match &self.summaries {
                // Not through `with_summaries`, whose list of thousands costs more than writing them.
                Summaries::InMemory(connections) => {
                    let summary = connections.summary(index).ok_or_else(|| self.no_connection(index))?;
                    write_connection(text, index as u64, &summary);
                }
                Summaries::InFile(_) => self.with_summaries(index..index + 1, |found| {
                    found.iter().for_each(|summary| write_connection(text, index as u64, summary));
                })?,
            }
        }
        Ok(())
    }

    /// Hands the packets of a connection's partition to `act`, and the connection's place in there.
    pub fn with_packets<T>(
        &self,
        index: usize,
        act: impl FnOnce(&EncodedPackets, usize) -> T,
    ) -> Result<T, LookupError> {
        let (partition, place) = self.locate(index)?;
        self.with_loaded(partition, LookupError::NoPackets, |loaded| Some(act(loaded.packets.as_ref()?, place)))
    }

    /// Hands the payload samples of a connection's partition to `act`, and the connection's place in there.
    pub fn with_payload<T>(
        &self,
        index: usize,
        act: impl FnOnce(&PayloadPieces, usize) -> T,
    ) -> Result<T, LookupError> {
        let (partition, place) = self.locate(index)?;
        self.with_loaded(partition, LookupError::NoPayload, |loaded| Some(act(loaded.payload.as_ref()?, place)))
    }

    /// The connections of each partition, in the order of their places.
    pub fn partition_members(&self) -> Vec<Vec<usize>> {
        match &self.summaries {
            Summaries::InMemory(connections) => vec![(0..connections.len()).collect()],
            Summaries::InFile(stored) => stored.members(self.partition_count()),
        }
    }

    /// Hands the packets and payload samples of a partition to `act`; a connection's place is that among the members.
    pub fn with_partition<T>(
        &self,
        partition: usize,
        act: impl FnOnce(&EncodedPackets, &PayloadPieces) -> T,
    ) -> Result<T, LookupError> {
        let both = |loaded: &Loaded| match (&loaded.packets, &loaded.payload) {
            (None, _) => Err(LookupError::NoPackets),
            (_, None) => Err(LookupError::NoPayload),
            (Some(packets), Some(payload)) => Ok(act(packets, payload)),
        };
        self.with_loaded(partition, LookupError::NoPackets, |loaded| Some(both(loaded)))?
    }

    /// The UDP flows outside known tunnels, by first datagram.
    pub fn datagram_flows(&self) -> &[DatagramFlow] {
        &self.observed.flows
    }

    /// Datagrams of UDP flows for which there was no room.
    pub fn datagrams_left_out(&self) -> u64 {
        self.observed.datagrams_left_out
    }

    /// Round trips that no TCP split can shorten, by the time of the request.
    pub fn references(&self) -> &[Reference] {
        &self.observed.references
    }

    /// Flows and references for which there was no room.
    pub fn references_left_out(&self) -> u64 {
        self.observed.references_left_out
    }

    /// Passes the stored data of a partition to `act`.
    fn with_loaded<T>(
        &self,
        partition: usize,
        not_kept: LookupError,
        act: impl FnOnce(&Loaded) -> Option<T>,
    ) -> Result<T, LookupError> {
        match &self.packets {
            Packets::InMemory(loaded) => act(loaded).ok_or(not_kept),
            Packets::InFiles(packets) => packets.with(partition, act)?.ok_or(not_kept),
            Packets::NotKept => Err(not_kept),
        }
    }

    /// Partition of a connection, and its place in there.
    fn locate(&self, index: usize) -> Result<(usize, usize), LookupError> {
        let place = match &self.summaries {
            Summaries::InMemory(connections) => (index < connections.len()).then_some((0, index)),
            Summaries::InFile(stored) => stored.place(index),
        };
        place.ok_or_else(|| self.no_connection(index))
    }

    fn no_connection(&self, index: usize) -> LookupError {
        LookupError::NoConnection { index, count: self.connection_count() }
    }
}
