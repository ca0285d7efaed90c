//! A capture as read, for Python to ask.

use std::hint::black_box;
use std::ops::Range;
use std::sync::{Mutex, Once, PoisonError};

use numpy::{Element, IntoPyArray, PyArrayMethods};
use pepscope_connections::json::write_connection;
use pepscope_connections::stored::StoredSummaries;
use pepscope_connections::{ConnectionSummary, Connections, DatagramFlow, NotCaptured, PackedPackets, PayloadPieces};
use pepscope_wire::{link_type_name, Tally};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::datagrams;
use crate::read::{counts, spill_failure, Analysed, ObservedFlows, ParkedPackets};
use crate::summaries::{self, Fields};

/// Stream offsets and the bytes there.
type Pieces<'py> = (Vec<i64>, Vec<Bound<'py, PyBytes>>);

/// Summaries of all connections, by first packet.
enum Summaries {
    Held(Box<Connections>),
    Stored(StoredSummaries),
}

/// Packets and payload samples of one part.
struct Loaded {
    part: usize,
    packets: Option<PackedPackets>,
    payload: Option<PayloadPieces>,
}

impl Loaded {
    fn take_from(part: usize, connections: &mut Connections) -> Self {
        Loaded { part, packets: connections.take_packets(), payload: connections.take_payload() }
    }
}

/// A capture as read.
#[pyclass(frozen, module = "pepscope._core")]
pub(crate) struct Capture {
    tally: Tally,
    summaries: Summaries,
    /// Where packets are loaded from; `None` where all is in memory, or no packets are kept.
    parked: Option<Box<ParkedPackets>>,
    loaded: Mutex<Option<Loaded>>,
    observed: ObservedFlows,
}

impl Capture {
    pub(crate) fn new(tally: Tally, analysed: Analysed, observed: ObservedFlows) -> PyResult<Self> {
        Ok(match analysed {
            Analysed::InMemory(mut connections) => {
                let loaded = Loaded::take_from(0, &mut connections);
                Capture {
                    tally,
                    summaries: Summaries::Held(connections),
                    parked: None,
                    loaded: Mutex::new(Some(loaded)),
                    observed,
                }
            }
            Analysed::Parked { summaries, packets } => Capture {
                tally,
                summaries: Summaries::Stored(summaries),
                parked: packets,
                loaded: Mutex::new(None),
                observed,
            },
        })
    }

    /// Do something with the packets of a part, loading them in place of another part's where they are not at hand.
    fn with_loaded<T>(&self, part: usize, act: impl FnOnce(&Loaded) -> PyResult<T> + Send) -> PyResult<T>
    where
        T: Send,
    {
        let mut slot = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ParkedPackets { partitions, settings, .. }) = self.parked.as_deref() {
            if slot.as_ref().is_none_or(|loaded| loaded.part != part) {
                *slot = None; // let go of the old one first
                let mut connections = partitions.analyse(part, *settings).map_err(spill_failure)?;
                *slot = Some(Loaded::take_from(part, &mut connections));
            }
        }
        match slot.as_ref() {
            Some(loaded) => act(loaded),
            None => Err(PyValueError::new_err("no packets were kept")),
        }
    }

    /// Do something with the packets of the part that holds a connection, given its place in there.
    fn with_packets<T: Send>(&self, index: usize, act: impl FnOnce(&PackedPackets, usize) -> T + Send) -> PyResult<T> {
        let not_kept = || PyValueError::new_err("the packets were not kept; open the capture with columns=True");
        let (part, place) = self.locate(index)?;
        if matches!((&self.summaries, &self.parked), (Summaries::Stored(_), None)) {
            return Err(not_kept());
        }
        self.with_loaded(part, |loaded| loaded.packets.as_ref().map(|kept| act(kept, place)).ok_or_else(not_kept))
    }

    /// Partition of a connection, and its place in there.
    fn locate(&self, index: usize) -> PyResult<(usize, usize)> {
        let place = match &self.summaries {
            Summaries::Held(connections) => (index < connections.len()).then_some((0, index)),
            Summaries::Stored(stored) => stored.place(index),
        };
        place.ok_or_else(|| self.no_connection(index))
    }

    fn count(&self) -> usize {
        match &self.summaries {
            Summaries::Held(connections) => connections.len(),
            Summaries::Stored(stored) => stored.len(),
        }
    }

    fn no_connection(&self, index: usize) -> PyErr {
        PyIndexError::new_err(format!("connection {index} of {}", self.count()))
    }

    /// Hand the summaries of these connections to `act`.
    fn with_summaries<T>(
        &self,
        range: Range<usize>,
        act: impl FnOnce(&[ConnectionSummary<'_>]) -> PyResult<T>,
    ) -> PyResult<T> {
        match &self.summaries {
            Summaries::Held(connections) => {
                let found: Option<Vec<_>> = range.clone().map(|index| connections.summary(index)).collect();
                act(&found.ok_or_else(|| self.no_connection(range.end.saturating_sub(1)))?)
            }
            Summaries::Stored(stored) => {
                let bytes: Option<Vec<Vec<u8>>> =
                    range.clone().map(|index| stored.bytes(index)).collect::<Result<_, _>>().map_err(spill_failure)?;
                let bytes = bytes.ok_or_else(|| self.no_connection(range.end.saturating_sub(1)))?;
                let summaries: Result<Vec<_>, _> = bytes.iter().map(|bytes| stored.decode(bytes)).collect();
                act(&summaries.map_err(spill_failure)?)
            }
        }
    }

    fn observed_flow(&self, index: usize) -> PyResult<&DatagramFlow> {
        let flows = &self.observed.flows;
        flows.get(index).ok_or_else(|| PyIndexError::new_err(format!("UDP flow {index} of {}", flows.len())))
    }
}

#[pymethods]
impl Capture {
    #[getter]
    fn packet_count(&self) -> u64 {
        self.tally.frames - self.tally.filtered_out
    }

    #[getter]
    fn tcp_packet_count(&self) -> u64 {
        self.tally.tcp_segments
    }

    /// Times of the first and the last frame of any kind, in nanoseconds; `None` where no frame has a time.
    #[getter]
    fn time_span_ns(&self) -> Option<(i64, i64)> {
        self.tally.time_span_ns
    }

    #[getter]
    fn connection_count(&self) -> usize {
        self.count()
    }

    #[getter]
    fn partition_count(&self) -> usize {
        self.parked.as_ref().map_or(1, |parked| parked.partitions.len())
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(py);
        for (name, count) in counts(&self.tally) {
            named.set_item(name, count)?;
        }
        named.set_item("datagrams_left_out", self.observed.left_out)?;
        Ok(named)
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        let oversize = self.parked.as_ref().and_then(|parked| parked.warning.clone());
        let not_captured = match &self.summaries {
            Summaries::Held(connections) => NotCaptured::of(connections.summaries()),
            Summaries::Stored(stored) => stored.not_captured(),
        };
        self.tally.warnings().into_iter().chain(not_captured.warnings()).chain(oversize).collect()
    }

    /// Number and name of the known link types that have packets.
    #[getter]
    fn link_types(&self) -> Vec<(u16, &'static str)> {
        let present = self.tally.link_types.iter().filter(|count| count.known && count.frames > 0);
        present.map(|count| (count.link_type, link_type_name(count.link_type).unwrap_or("unnamed"))).collect()
    }

    /// Fields of the connection, of its flow up and of its flow down.
    fn connection<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Fields<'py>> {
        self.with_summaries(index..index.saturating_add(1), |found| summaries::fields(py, index, &found[0]))
    }

    /// Summaries of these connections as arrays.
    fn connection_columns<'py>(&self, py: Python<'py>, start: usize, stop: usize) -> PyResult<Bound<'py, PyDict>> {
        self.with_summaries(start..stop, |found| summaries::columns(py, found))
    }

    /// JSON objects of these connections with commas between them.
    fn connections_json<'py>(&self, py: Python<'py>, start: usize, stop: usize) -> PyResult<Bound<'py, PyBytes>> {
        let text = py.detach(|| {
            let mut text = Vec::new();
            for index in start..stop {
                if index > start {
                    text.push(b',');
                }
                match &self.summaries {
                    // Not through `with_summaries`, whose list of thousands costs more than writing them.
                    Summaries::Held(connections) => {
                        let summary = connections.summary(index).ok_or_else(|| self.no_connection(index))?;
                        write_connection(&mut text, index as u64, &summary);
                    }
                    Summaries::Stored(_) => self.with_summaries(index..index + 1, |found| {
                        found.iter().for_each(|summary| write_connection(&mut text, index as u64, summary));
                        Ok(())
                    })?,
                }
            }
            PyResult::Ok(text)
        })?;
        Ok(PyBytes::new(py, &text))
    }

    /// Which part holds the packets of a connection.
    fn partition_of(&self, index: usize) -> PyResult<usize> {
        Ok(self.locate(index)?.0)
    }

    /// The packet columns of a connection in the order of PacketColumns.
    fn packet_columns<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyTuple>> {
        REUSE.call_once(let_freed_memory_be_reused);
        let columns = py.detach(|| self.with_packets(index, |packets, place| packets.unpack(place..place + 1)))?;
        PyTuple::new(
            py,
            [
                handed_over(py, columns.time_ns),
                handed_over(py, columns.direction),
                handed_over(py, columns.sequence_offset),
                handed_over(py, columns.acknowledgement_offset),
                handed_over(py, columns.payload_bytes),
                handed_over(py, columns.window_bytes),
                handed_over(py, columns.flags),
                handed_over(py, columns.tsval),
                handed_over(py, columns.tsecr),
                handed_over(py, columns.ip_id),
                handed_over(py, columns.ttl),
                handed_over(py, columns.payload_hash),
                handed_over(py, columns.marks),
                handed_over(py, columns.round_trip_time_ns),
            ],
        )
    }

    /// Row, left and right edge of the SACK blocks of a connection.
    fn sack_blocks<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyTuple>> {
        let blocks = self.with_packets(index, |packets, place| packets.sack_blocks(place).collect::<Vec<_>>())?;
        let columns: [Vec<i64>; 3] = [
            blocks.iter().map(|block| i64::from(block.packet)).collect(),
            blocks.iter().map(|block| block.left).collect(),
            blocks.iter().map(|block| block.right).collect(),
        ];
        PyTuple::new(py, columns.map(|column| handed_over(py, column)))
    }

    #[getter]
    fn datagram_flow_count(&self) -> usize {
        self.observed.flows.len()
    }

    /// Fields of one UDP flow.
    fn datagram_flow<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyDict>> {
        datagrams::fields(py, index, self.observed_flow(index)?)
    }

    /// Rank, time, length and kept bytes of the datagrams that were kept of each side of one UDP flow.
    fn datagram_samples<'py>(&self, py: Python<'py>, index: usize) -> PyResult<[datagrams::Sample<'py>; 2]> {
        let [first, second] = &self.observed_flow(index)?.sides;
        Ok([datagrams::sample(py, first), datagrams::sample(py, second)])
    }

    /// Stream offsets and pieces of each direction.
    fn payload<'py>(&self, py: Python<'py>, index: usize) -> PyResult<[Pieces<'py>; 2]> {
        let (partition, place) = self.locate(index)?;
        let [up, down] = py.detach(|| {
            self.with_loaded(partition, |loaded| {
                let kept = loaded.payload.as_ref();
                let kept = kept
                    .ok_or_else(|| PyValueError::new_err("no payload was kept; open the capture with payload=True"))?;
                let of = |direction| kept.of(place, direction).map(|(at, piece)| (at, piece.to_vec())).unzip();
                Ok::<[(Vec<i64>, Vec<Vec<u8>>); 2], PyErr>([of(0), of(1)])
            })
        })?;
        let pieces = |(offsets, pieces): (Vec<i64>, Vec<Vec<u8>>)| {
            (offsets, pieces.iter().map(|piece| PyBytes::new(py, piece)).collect())
        };
        Ok([pieces(up), pieces(down)])
    }
}

static REUSE: Once = Once::new();

/// glibc returns large blocks to the kernel when they are freed, up to when a mapping larger than they was freed, but
/// counts no mapping above 32 MiB (mallopt(3), M_MMAP_THRESHOLD). Columns of one connection after the other then take
/// the same pages, where fresh ones would cost more than filling them. Other allocators lose nothing.
fn let_freed_memory_be_reused() {
    const LARGEST_COUNTED: usize = 32 << 20;
    const HEADER_AND_ROUNDING: usize = 8 << 10;
    drop(black_box(Vec::<u8>::with_capacity(LARGEST_COUNTED - HEADER_AND_ROUNDING)));
}

/// Give a column to NumPy without copying it; all who ask for a connection share it, so it is read-only.
fn handed_over<T: Element>(py: Python<'_>, column: Vec<T>) -> Bound<'_, PyAny> {
    column.into_pyarray(py).readwrite().make_nonwriteable().as_any().clone()
}
