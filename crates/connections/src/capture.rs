//! A capture that was read: its connections in memory or in temporary files, asked for by their index.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pepscope_wire::Tally;

use crate::analysis::{Connections, Settings};
use crate::columns::EncodedPackets;
use crate::datagram_flow::DatagramFlow;
use crate::json::write_connection;
use crate::missing::NotCaptured;
use crate::oversize::Oversize;
use crate::payload_sample::PayloadPieces;
use crate::read::{Observed, Summaries};
use crate::references::Reference;
use crate::spill::{Partitions, SpillError};
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

/// Packets and payload samples of one partition in memory.
pub(crate) struct Loaded {
    partition: usize,
    packets: Option<EncodedPackets>,
    payload: Option<PayloadPieces>,
}

impl Loaded {
    fn take_from(partition: usize, connections: &mut Connections) -> Self {
        Loaded { partition, packets: connections.take_packets(), payload: connections.take_payload() }
    }
}

/// Packets in temporary files, analysed again when they are asked for.
pub(crate) struct PartitionedPackets {
    partitions: Partitions,
    settings: Settings,
    oversize: Option<Oversize>,
    /// The partition that was asked for last.
    loaded: Mutex<Option<Loaded>>,
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

    pub(crate) fn in_partitions(partitions: Partitions, settings: Settings, oversize: Option<Oversize>) -> Packets {
        Packets::InFiles(Box::new(PartitionedPackets { partitions, settings, oversize, loaded: Mutex::new(None) }))
    }
}

/// A capture's connections and UDP flows.
pub struct AnalysedCapture {
    tally: Tally,
    summaries: Summaries,
    packets: Packets,
    observed: Observed,
}

impl AnalysedCapture {
    pub(crate) fn new(tally: Tally, summaries: Summaries, packets: Packets, observed: Observed) -> Self {
        AnalysedCapture { tally, summaries, packets, observed }
    }

    /// What the capture held besides TCP.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How much of the connections was not captured.
    pub fn not_captured(&self) -> NotCaptured {
        match &self.summaries {
            Summaries::InMemory(connections) => NotCaptured::of(connections.summaries()),
            Summaries::InFile(stored) => stored.not_captured(),
        }
    }

    /// The largest partition, where it takes more memory than was allowed.
    pub fn oversize(&self) -> Option<Oversize> {
        match &self.packets {
            Packets::InFiles(packets) => packets.oversize,
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
            Packets::InFiles(packets) => packets.partitions.len(),
            _ => 1,
        }
    }

    /// Partition that holds the packets of a connection.
    pub fn partition_of(&self, index: usize) -> Result<usize, LookupError> {
        Ok(self.locate(index)?.0)
    }

    /// Hands the summaries of these connections to `act`.
    pub fn with_summaries<T>(
        &self,
        range: Range<usize>,
        act: impl FnOnce(&[ConnectionSummary<'_>]) -> T,
    ) -> Result<T, LookupError> {
        let no_connection = || self.no_connection(range.end.saturating_sub(1));
        match &self.summaries {
            Summaries::InMemory(connections) => {
                let found: Option<Vec<_>> = range.clone().map(|index| connections.summary(index)).collect();
                Ok(act(&found.ok_or_else(no_connection)?))
            }
            Summaries::InFile(stored) => {
                let bytes: Option<Vec<Vec<u8>>> =
                    range.clone().map(|index| stored.bytes(index)).collect::<Result<_, _>>()?;
                let bytes = bytes.ok_or_else(no_connection)?;
                let summaries: Result<Vec<_>, _> = bytes.iter().map(|bytes| stored.decode(bytes)).collect();
                Ok(act(&summaries?))
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

    /// Passes the stored data of a partition to `act`; a partition that is not in memory replaces another one.
    fn with_loaded<T>(
        &self,
        partition: usize,
        not_kept: LookupError,
        act: impl FnOnce(&Loaded) -> Option<T>,
    ) -> Result<T, LookupError> {
        match &self.packets {
            Packets::InMemory(loaded) => act(loaded).ok_or(not_kept),
            Packets::InFiles(packets) => {
                let PartitionedPackets { partitions, settings, loaded, .. } = packets.as_ref();
                let mut slot = loaded.lock().unwrap_or_else(PoisonError::into_inner);
                if slot.as_ref().is_none_or(|loaded| loaded.partition != partition) {
                    *slot = None; // frees the old one before the new one is made
                    let mut connections = partitions.analyse(partition, *settings)?;
                    *slot = Some(Loaded::take_from(partition, &mut connections));
                }
                slot.as_ref().and_then(act).ok_or(not_kept)
            }
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
