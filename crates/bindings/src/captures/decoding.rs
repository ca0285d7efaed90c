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
pub(crate) fn visit(analysed: &AnalysedCapture, show: impl FnMut(&Shown<'_>)) -> Result<(), LookupError> {
    visit_where(analysed, |_| true, show)
}

/// Show some connections, by their numbers. Partitions that hold none of them are not loaded.
pub(crate) fn visit_where(
    analysed: &AnalysedCapture,
    is_wanted: impl Fn(usize) -> bool,
    mut show: impl FnMut(&Shown<'_>),
) -> Result<(), LookupError> {
    for (partition, members) in analysed.partition_members().iter().enumerate() {
        if !members.iter().any(|&number| is_wanted(number)) {
            continue;
        }
        analysed.with_partition(partition, |packets, payload| {
            for (batch, numbers) in members.chunks(BATCH).enumerate() {
                let mut first = batch * BATCH;
                for run in numbers.chunk_by(|&one, &next| is_wanted(one) == is_wanted(next)) {
                    let places = first..first + run.len();
                    first = places.end;
                    if !is_wanted(run[0]) {
                        continue;
                    }
                    let columns = packets.decode(places.clone());
                    for ((bounds, &number), place) in columns.starts.windows(2).zip(run).zip(places) {
                        let packets = rows(&columns, bounds[0]..bounds[1]);
                        show(&Shown { number: number as u32, packets, payload, place });
                    }
                }
            }
        })?;
    }
    Ok(())
}
