//! All connections of a capture one after the other, decoded some at a time.

use pepscope_connections::{AnalysedCapture, LookupError, PayloadPieces};
use pepscope_evidence::packets::Packets;

use crate::captures::packets::rows;

/// So many connections are decoded at a time. Columns of many small ones stay in the processor's cache, and are no
/// blocks that the allocator takes from the kernel each time.
const BATCH: usize = 128;

/// A connection: its number, its packets, and the payload of its partition, where it has a place.
pub(crate) struct Shown<'a> {
    pub(crate) number: u32,
    pub(crate) packets: Packets<'a>,
    pub(crate) payload: &'a PayloadPieces,
    pub(crate) place: usize,
}

/// Show each connection, partition by partition.
pub(crate) fn visit(analysed: &AnalysedCapture, mut show: impl FnMut(&Shown<'_>)) -> Result<(), LookupError> {
    for (partition, members) in analysed.partition_members().iter().enumerate() {
        analysed.with_partition(partition, |packets, payload| {
            for (batch, numbers) in members.chunks(BATCH).enumerate() {
                let first = batch * BATCH;
                let columns = packets.decode(first..first + numbers.len());
                for (at, (bounds, &number)) in columns.starts.windows(2).zip(numbers).enumerate() {
                    let packets = rows(&columns, bounds[0]..bounds[1]);
                    show(&Shown { number: number as u32, packets, payload, place: first + at });
                }
            }
        })?;
    }
    Ok(())
}
