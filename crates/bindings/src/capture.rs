//! A capture as read, for Python to ask.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use numpy::{Element, IntoPyArray, PyArrayMethods};
use pepscope_connections::json::write_connection;
use pepscope_connections::stored::StoredSummaries;
use pepscope_connections::{Columns, ConnectionSummary, Connections, DatagramFlow, PayloadPieces};
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
    /// `None` once NumPy has them.
    columns: Option<Columns>,
    payload: Option<PayloadPieces>,
}

impl Loaded {
    fn take_from(part: usize, connections: &mut Connections) -> Self {
        let columns = connections.take_columns();
        Loaded { part, columns, payload: connections.take_payload() }
    }
}

/// A capture as read.
#[pyclass(frozen, module = "pepscope._core")]
pub(crate) struct Capture {
    tally: Tally,
    summaries: Summaries,
    /// Rows of connection `i` where all is in memory are `starts[i]..starts[i + 1]`; empty where no columns are kept.
    starts: Vec<usize>,
    /// Where packets are loaded from; `None` where all is in memory, or no packets are kept.
    parked: Option<ParkedPackets>,
    loaded: Mutex<Option<Loaded>>,
    observed: ObservedFlows,
}

impl Capture {
    pub(crate) fn new(tally: Tally, analysed: Analysed, observed: ObservedFlows) -> PyResult<Self> {
        Ok(match analysed {
            Analysed::InMemory(mut connections) => {
                let mut loaded = Loaded::take_from(0, &mut connections);
                let starts = loaded.columns.as_mut().map(|columns| std::mem::take(&mut columns.starts));
                Capture {
                    tally,
                    summaries: Summaries::Held(connections),
                    starts: starts.unwrap_or_default(),
                    parked: None,
                    loaded: Mutex::new(Some(loaded)),
                    observed,
                }
            }
            Analysed::Parked { summaries, packets } => Capture {
                tally,
                summaries: Summaries::Stored(summaries),
                starts: Vec::new(),
                parked: packets,
                loaded: Mutex::new(None),
                observed,
            },
        })
    }

    /// Do something with the packets of a part, loading them in place of another part's where they are not at hand.
    fn with_loaded<T>(
        &self,
        part: usize,
        needs_columns: bool,
        act: impl FnOnce(&mut Loaded) -> PyResult<T> + Send,
    ) -> PyResult<T>
    where
        T: Send,
    {
        let mut slot = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ParkedPackets { partitions, settings, .. }) = &self.parked {
            let at_hand = |loaded: &Loaded| loaded.part == part && (!needs_columns || loaded.columns.is_some());
            if !slot.as_ref().is_some_and(at_hand) {
                *slot = None; // let go of the old one first
                let mut connections = partitions.analyse(part, *settings).map_err(spill_failure)?;
                *slot = Some(Loaded::take_from(part, &mut connections));
            }
        }
        match slot.as_mut() {
            Some(loaded) => act(loaded),
            None => Err(PyValueError::new_err("no packets were kept")),
        }
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
        self.tally.warnings().into_iter().chain(oversize).collect()
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

    /// Partition of a connection, and where its packets start and stop in there.
    fn packet_range(&self, index: usize) -> PyResult<(usize, usize, usize)> {
        let (partition, place) = self.locate(index)?;
        let starts = match &self.parked {
            Some(parked) => parked.starts.get(partition).map_or(&[][..], Vec::as_slice),
            None => &self.starts,
        };
        match starts.get(place..place + 2) {
            Some(&[start, stop]) => Ok((partition, start, stop)),
            _ => Err(PyValueError::new_err("the packets were not kept; open the capture with columns=True")),
        }
    }

    /// The packet columns of a partition in the order of PacketColumns, then row, left and right edge of its SACK blocks;
    /// the one in memory is handed over once.
    fn load_partition<'py>(&self, py: Python<'py>, partition: usize) -> PyResult<Bound<'py, PyTuple>> {
        if partition >= self.partition_count() {
            let count = self.partition_count();
            return Err(PyIndexError::new_err(format!("partition {partition} of {count}")));
        }
        let taken = py.detach(|| self.with_loaded(partition, true, |loaded| Ok(loaded.columns.take())))?;
        let columns =
            taken.ok_or_else(|| PyValueError::new_err("the packets of this partition were handed over before"))?;
        let blocks = &columns.sack_blocks;
        let sack_packet: Vec<i64> = blocks.iter().map(|block| i64::from(block.packet)).collect();
        let sack_left: Vec<i64> = blocks.iter().map(|block| block.left).collect();
        let sack_right: Vec<i64> = blocks.iter().map(|block| block.right).collect();
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
                handed_over(py, sack_packet),
                handed_over(py, sack_left),
                handed_over(py, sack_right),
            ],
        )
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
            self.with_loaded(partition, false, |loaded| {
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

/// Give a column to NumPy without copying it; many views share it, so it is read-only.
fn handed_over<T: Element>(py: Python<'_>, column: Vec<T>) -> Bound<'_, PyAny> {
    column.into_pyarray(py).readwrite().make_nonwriteable().as_any().clone()
}
