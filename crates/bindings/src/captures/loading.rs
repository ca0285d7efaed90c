//! Packets and payload of many connections, loaded together: they share memory, since they are let go of together.

use std::sync::Arc;

use pepscope_evidence::payload::sample::{PayloadSample as Sample, PayloadStore};
use pyo3::prelude::*;

use crate::captures::capture::{raised, Capture};
use crate::captures::packets::{PacketColumns, MOST_SHARED};
use crate::captures::payload::PayloadSample;

/// Connections whose packets are decoded at once.
const LOADED_AT_ONCE: usize = 64;

/// Packets, payload up and down, and the places of those whose clock fell, and whose payload is blanked.
pub(crate) type Loaded = (Vec<PacketColumns>, Vec<PayloadSample>, Vec<PayloadSample>, Vec<usize>, Vec<usize>);

/// Packets and payload of some connections of a capture.
pub(crate) fn load(capture: &Capture, py: Python<'_>, indices: &[usize], least_fall_ns: i64) -> PyResult<Loaded> {
    let mut every = Vec::with_capacity(indices.len());
    let [mut up, mut down] = [Vec::with_capacity(indices.len()), Vec::with_capacity(indices.len())];
    let (mut fallen, mut blanked) = (Vec::new(), Vec::new());
    for some in indices.chunks(LOADED_AT_ONCE) {
        let mut shared = shared_packets(capture, py, some)?.map(Vec::into_iter);
        let (mut store, mut streams) = (PayloadStore::default(), Vec::with_capacity(some.len()));
        for &index in some {
            // Packets and payload of one connection after the other: partitions are loaded from files once.
            let packets = match shared.as_mut().and_then(Iterator::next) {
                Some(packets) => packets,
                None => capture.packet_columns(py, index)?,
            };
            if packets.clock_falls(py, least_fall_ns)? {
                fallen.push(every.len());
            }
            every.push(packets);
            // A partition may be read from its file.
            let added = py.detach(|| {
                capture.analysed.with_payload(index, |kept, place| [0, 1].map(|way| store.add(kept.of(place, way))))
            });
            streams.push(added.map_err(raised)?);
        }
        let store = Arc::new(store);
        for both in streams {
            let both = both.map(|chosen| Sample::of_store(&store, chosen));
            if both.iter().any(Sample::is_one_byte_repeated) {
                blanked.push(up.len());
            }
            let [of_client, of_server] = both;
            up.push(of_client.into());
            down.push(of_server.into());
        }
    }
    Ok((every, up, down, fallen, blanked))
}

/// The packets of small connections that lie near each other in memory, which then share columns; None of others.
fn shared_packets(capture: &Capture, py: Python<'_>, indices: &[usize]) -> PyResult<Option<Vec<PacketColumns>>> {
    let (Some(&low), Some(&high)) = (indices.iter().min(), indices.iter().max()) else { return Ok(None) };
    let analysed = &capture.analysed;
    if analysed.partition_count() != 1 || high - low >= 2 * indices.len() {
        return Ok(None);
    }
    let counts = analysed.packet_counts(low..high + 1).map_err(raised)?;
    if counts.iter().any(|&count| count > MOST_SHARED) {
        return Ok(None);
    }
    let decode = || analysed.with_packets(low, |packets, place| packets.decode(place..place + high - low + 1));
    let columns = Arc::new(py.detach(decode).map_err(raised)?);
    let rows = |index: &usize| columns.starts[index - low]..columns.starts[index - low + 1];
    Ok(Some(indices.iter().map(|index| PacketColumns::shared(&columns, rows(index))).collect()))
}
