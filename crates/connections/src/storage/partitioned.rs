//! Packets in temporary files: partitions are analysed again when they are asked for, and as many stay in memory as the
//! limit allows.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::analysis::{Connections, Settings};
use crate::records::packet_store::EncodedPackets;
use crate::records::payload_sample::PayloadPieces;
use crate::storage::oversize::{Oversize, PartitionSizes};
use crate::storage::spill::{Partitions, SpillError, TemporaryBytes};

/// Packets and payload samples of one partition in memory.
pub(crate) struct Loaded {
    partition: usize,
    pub(crate) packets: Option<EncodedPackets>,
    pub(crate) payload: Option<PayloadPieces>,
}

impl Loaded {
    pub(crate) fn take_from(partition: usize, connections: &mut Connections) -> Self {
        Loaded { partition, packets: connections.take_packets(), payload: connections.take_payload() }
    }
}

/// Packets in temporary files.
pub(crate) struct PartitionedPackets {
    partitions: Partitions,
    settings: Settings,
    memory_bytes: u64,
    sizes: PartitionSizes,
    kept: Mutex<Kept>,
}

/// Partitions in memory, the one that was asked for last at the end.
struct Kept {
    at_most: usize,
    loaded: Vec<Loaded>,
}

impl PartitionedPackets {
    pub(crate) fn new(partitions: Partitions, settings: Settings, memory_bytes: u64, sizes: PartitionSizes) -> Self {
        let at_most = sizes.kept_in(memory_bytes);
        let kept = Mutex::new(Kept { at_most, loaded: Vec::new() });
        PartitionedPackets { partitions, settings, memory_bytes, sizes, kept }
    }

    pub(crate) fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    pub(crate) fn oversize(&self) -> Option<Oversize> {
        self.sizes.beyond(self.memory_bytes, self.partitions.len())
    }

    pub(crate) fn traffic(&self) -> TemporaryBytes {
        self.partitions.traffic()
    }

    /// How many processes may each load partitions of their own within the limit; at least one.
    pub(crate) fn processes_at_most(&self) -> usize {
        let fitting = self.memory_bytes / self.sizes.largest_loading_bytes().max(1);
        usize::try_from(fitting).unwrap_or(usize::MAX).max(1)
    }

    /// Lets go of all partitions. From now on this process may use one of so many shares of the limit; gives how many
    /// partitions that allows it to keep.
    pub(crate) fn divide_memory(&self, processes: usize) -> usize {
        let mut kept = self.kept();
        kept.loaded = Vec::new();
        kept.at_most = self.sizes.kept_in(self.memory_bytes / processes.max(1) as u64);
        kept.at_most
    }

    /// Passes a partition to `act`, loading it where it is not in memory.
    pub(crate) fn with<T>(&self, partition: usize, act: impl FnOnce(&Loaded) -> T) -> Result<T, SpillError> {
        let mut kept = self.kept();
        match kept.loaded.iter().position(|loaded| loaded.partition == partition) {
            Some(place) => kept.loaded[place..].rotate_left(1),
            None => {
                // Frees the old ones before the new one is made.
                let beyond = (kept.loaded.len() + 1).saturating_sub(kept.at_most);
                kept.loaded.drain(..beyond);
                let mut connections = self.partitions.analyse(partition, self.settings)?;
                kept.loaded.push(Loaded::take_from(partition, &mut connections));
            }
        }
        Ok(act(&kept.loaded[kept.loaded.len() - 1]))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
