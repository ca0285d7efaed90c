//! A capture as read, for Python to ask.

use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods};
use pepscope_connections::{json, AnalysedCapture, ConnectionSummary, DatagramFlow, DatagramSide, LookupError, Size};
use pepscope_evidence::payload::sample;
use pepscope_wire::link_type_name;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::captures::datagrams;
use crate::captures::freed_memory::let_freed_memory_be_reused;
use crate::captures::loading::{self, Loaded};
use crate::captures::packets::PacketColumns;
use crate::captures::payload::PayloadSample;
use crate::captures::read::CaptureError;
use crate::captures::references;
use crate::captures::summaries::{self, Fields};
use crate::captures::tally::counts;
use crate::connections::exchanges;
use crate::connections::senders;
use crate::texts::Joined;

/// Connections for whose JSON memory is taken in advance.
const MOST_AT_ONCE: usize = 256;

/// Number of a link-layer type, its name, its frames, and whether they can be read.
type LinkTypeRow = (u16, Option<&'static str>, u64, bool);

/// Bytes allowed, partitions, packets and bytes of the largest connection, those of the largest partition.
type OversizeRow = (u64, usize, (u64, u64), (u64, u64));

/// A capture as read.
#[pyclass(frozen, module = "pepscope._core")]
pub(crate) struct Capture {
    pub(crate) analysed: AnalysedCapture,
}

impl Capture {
    pub(crate) fn new(analysed: AnalysedCapture) -> Self {
        Capture { analysed }
    }

    fn observed_flow(&self, index: usize) -> PyResult<&DatagramFlow> {
        let flows = self.analysed.datagram_flows();
        flows.get(index).ok_or_else(|| PyIndexError::new_err(format!("UDP flow {index} of {}", flows.len())))
    }
}

pub(crate) fn raised(error: LookupError) -> PyErr {
    match error {
        LookupError::NoConnection { .. } => PyIndexError::new_err(error.to_string()),
        LookupError::NoPackets | LookupError::NoPayload => PyValueError::new_err(error.to_string()),
        LookupError::Spill(error) => CaptureError::new_err(error.to_string()),
    }
}

#[pymethods]
impl Capture {
    #[getter]
    fn packet_count(&self) -> u64 {
        let tally = self.analysed.tally();
        tally.frames - tally.filtered_out
    }

    #[getter]
    fn tcp_packet_count(&self) -> u64 {
        self.analysed.tally().tcp_segments
    }

    /// Times of the first and the last frame of any kind, in nanoseconds; `None` where no frame has a time.
    #[getter]
    fn time_span_ns(&self) -> Option<(i64, i64)> {
        self.analysed.tally().time_span_ns
    }

    #[getter]
    fn connection_count(&self) -> usize {
        self.analysed.connection_count()
    }

    #[getter]
    fn partition_count(&self) -> usize {
        self.analysed.partition_count()
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(py);
        for (name, count) in counts(self.analysed.tally()) {
            named.set_item(name, count)?;
        }
        named.set_item("datagrams_left_out", self.analysed.datagrams_left_out())?;
        named.set_item("references_left_out", self.analysed.references_left_out())?;
        Ok(named)
    }

    /// Where reading ended too early, and what is wrong there.
    #[getter]
    fn damage(&self) -> Option<(u64, String)> {
        self.analysed.tally().damage.as_ref().map(|damage| (damage.byte_offset, damage.cause.clone()))
    }

    /// Of a capture of several parts: those that broke off before its end, with place and cause.
    #[getter]
    fn part_damage(&self) -> Vec<(String, u64, String)> {
        let parts = &self.analysed.tally().parts;
        parts.damage.iter().map(|(name, damage)| (name.clone(), damage.byte_offset, damage.cause.clone())).collect()
    }

    /// Of a capture of several parts: the parts in their order, each with the number of frames before it.
    #[getter]
    fn part_begins(&self) -> Vec<(String, u64)> {
        self.analysed.tally().parts.begins.clone()
    }

    /// Of a capture of several parts: those that begin before the one before ended, that one, and by how many
    /// nanoseconds.
    #[getter]
    fn part_overlaps(&self) -> Vec<(String, String, i64)> {
        let overlaps = self.analysed.tally().parts.overlaps.iter();
        overlaps.map(|overlap| (overlap.part.clone(), overlap.part_before.clone(), overlap.by_ns)).collect()
    }

    /// Connections and packets of which something was not captured, by what that is.
    #[getter]
    fn not_captured<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.analysed.not_captured();
        let named = PyDict::new(py);
        named.set_item("packets_with_truncated_options", found.packets_with_truncated_options)?;
        named.set_item("one_way", found.one_way)?;
        named.set_item("without_acknowledgements", found.without_acknowledgements)?;
        named.set_item("without_data", found.without_data)?;
        Ok(named)
    }

    /// Connections whose times fall back, but whose packets could not be read again in the order of time.
    #[getter]
    fn left_in_file_order(&self) -> usize {
        self.analysed.left_in_file_order()
    }

    /// Where a partition takes more memory than was allowed: bytes allowed, partitions, packets and bytes of the largest
    /// connection, packets and bytes of the largest partition.
    #[getter]
    fn oversize(&self) -> Option<OversizeRow> {
        let pair = |size: Size| (size.packets, size.bytes);
        let found = self.analysed.oversize()?;
        Some((found.allowed_bytes, found.partitions, pair(found.largest_connection), pair(found.largest_partition)))
    }

    /// Bytes written to temporary files, and read back by this process so far.
    #[getter]
    fn temporary_bytes(&self) -> (u64, u64) {
        let traffic = self.analysed.temporary_bytes();
        (traffic.written, traffic.read)
    }

    /// How many processes may each load partitions of their own; `None` where everything is in memory.
    #[getter]
    fn processes_at_most(&self) -> Option<usize> {
        self.analysed.processes_at_most()
    }

    /// Lets go of partitions in memory and leaves this process one of so many shares of the memory allowed; gives how
    /// many partitions it keeps from now on.
    fn divide_memory(&self, processes: usize) -> usize {
        self.analysed.divide_memory(processes)
    }

    /// The link-layer types that the capture names.
    #[getter]
    fn link_types(&self) -> Vec<LinkTypeRow> {
        let counts = self.analysed.tally().link_types.iter();
        counts.map(|count| (count.link_type, link_type_name(count.link_type), count.frames, count.known)).collect()
    }

    /// What the packets without TCP hold, their number, and whether TCP may be inside all the same.
    #[getter]
    fn contents(&self) -> Vec<(String, u64, bool)> {
        let counts = self.analysed.tally().contents.iter();
        counts.map(|count| (count.content.to_string(), count.frames, count.content.may_hide_tcp())).collect()
    }

    /// Values of the connection, of its flow up and of its flow down.
    fn connection<'py>(
        &self,
        py: Python<'py>,
        index: usize,
        closes: &Bound<'py, PyTuple>,
        missing: &Bound<'py, PyTuple>,
    ) -> PyResult<Fields<'py>> {
        let range = index..index.saturating_add(1);
        self.analysed
            .with_summaries(range, |found| summaries::fields(py, index, &found[0], closes, missing))
            .map_err(raised)?
    }

    /// Summaries of these connections as arrays, of all fields or of those with these names.
    #[pyo3(signature = (start, stop, names=None))]
    fn connection_columns<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        stop: usize,
        names: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let columns = |found: &[ConnectionSummary<'_>]| summaries::columns(py, found, NOT_SEEN, names.as_deref());
        self.analysed.with_summaries(start..stop, columns).map_err(raised)?
    }

    /// Numbers of summaries of some connections as arrays, -2**63 where one was not seen, and their end points.
    fn summaries<'py>(&self, py: Python<'py>, indices: Vec<usize>) -> PyResult<Summaries<'py>> {
        let chosen = |found: &[ConnectionSummary<'_>]| {
            let clients = summaries::end_points(py, found, |each| (each.client_address, each.client_port));
            let servers = summaries::end_points(py, found, |each| (each.server_address, each.server_port));
            let options = |octets: &[u8]| PyBytes::new(py, octets);
            let options =
                found.iter().map(|each| (options(each.up.syn_options), options(each.down.syn_options))).unzip();
            Ok((summaries::numbers(py, found, i64::MIN)?, (clients, servers), options))
        };
        self.analysed.with_summaries(indices.into_iter(), chosen).map_err(raised)?
    }

    /// Packets of some connections.
    fn packet_counts<'py>(&self, py: Python<'py>, indices: Vec<usize>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let counts = self.analysed.packet_counts(indices.into_iter()).map_err(raised)?;
        Ok(PyArray1::from_iter(py, counts.into_iter().map(|count| count as i64)))
    }

    /// Packets of some connections, and their payload up and down; the places of those whose clock fell by more than
    /// `least_fall_ns`, and of those whose payload is blanked in a stream.
    fn load(&self, py: Python<'_>, indices: Vec<usize>, least_fall_ns: i64) -> PyResult<Loaded> {
        loading::load(self, py, &indices, least_fall_ns)
    }

    /// JSON objects of these connections with commas between them.
    fn connections_json<'py>(&self, py: Python<'py>, start: usize, stop: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut text = Vec::with_capacity(stop.saturating_sub(start).min(MOST_AT_ONCE) * json::TYPICAL_BYTES);
        py.detach(|| self.analysed.write_json(start..stop, &mut text)).map_err(raised)?;
        Ok(PyBytes::new(py, &text))
    }

    /// Which partition holds the packets of a connection.
    fn partition_of(&self, index: usize) -> PyResult<usize> {
        self.analysed.partition_of(index).map_err(raised)
    }

    /// The packets of a connection.
    pub(crate) fn packet_columns(&self, py: Python<'_>, index: usize) -> PyResult<PacketColumns> {
        let_freed_memory_be_reused();
        let columns = py
            .detach(|| self.analysed.with_packets(index, |packets, place| packets.decode(place..place + 1)))
            .map_err(raised)?;
        Ok(PacketColumns::new(py, columns))
    }

    /// Frame number of each packet of a connection, from 1.
    fn frame_numbers<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let frames = py
            .detach(|| {
                self.analysed.with_packets(index, |packets, place| {
                    packets.frame_indices(place).map(frame_number).collect::<Vec<_>>()
                })
            })
            .map_err(raised)?;
        Ok(handed_over(py, frames))
    }

    /// Row, left and right edge of the SACK blocks of a connection.
    fn sack_blocks<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyTuple>> {
        let blocks = py
            .detach(|| {
                self.analysed.with_packets(index, |packets, place| packets.sack_blocks(place).collect::<Vec<_>>())
            })
            .map_err(raised)?;
        let columns: [Vec<i64>; 3] = [
            blocks.iter().map(|block| i64::from(block.packet)).collect(),
            blocks.iter().map(|block| block.left).collect(),
            blocks.iter().map(|block| block.right).collect(),
        ];
        PyTuple::new(py, columns.map(|column| handed_over(py, column)))
    }

    /// Exchanges of all connections and round trips of each connection and direction.
    fn exchanges<'py>(&self, py: Python<'py>) -> PyResult<exchanges::Tables<'py>> {
        let found = py.detach(|| exchanges::of_capture(&self.analysed)).map_err(raised)?;
        exchanges::tables(py, found)
    }

    /// What each side of all connections sends.
    fn senders<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = py.detach(|| senders::of_capture(&self.analysed)).map_err(raised)?;
        senders::table(py, found)
    }

    /// How round trips and windows of each side's data respond to load, of some connections or of all.
    #[pyo3(signature = (connections=None))]
    fn load_responses<'py>(&self, py: Python<'py>, connections: Option<Vec<usize>>) -> PyResult<Bound<'py, PyDict>> {
        let find = || senders::load_of_capture(&self.analysed, connections.as_deref());
        let found = py.detach(find).map_err(raised)?;
        senders::load_table(py, found)
    }

    #[getter]
    fn datagram_flow_count(&self) -> usize {
        self.analysed.datagram_flows().len()
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

    /// Frame numbers, from 1, of the datagrams that were kept of each side of one UDP flow.
    fn datagram_frame_numbers<'py>(&self, py: Python<'py>, index: usize) -> PyResult<[Bound<'py, PyAny>; 2]> {
        let [first, second] = &self.observed_flow(index)?.sides;
        let numbers = |side: &DatagramSide| side.kept().map(|(kept, _)| frame_number(kept.frame_index)).collect();
        Ok([handed_over(py, numbers(first)), handed_over(py, numbers(second))])
    }

    /// Round trips that no TCP split can shorten, as arrays.
    fn references<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        references::columns(py, self.analysed.references())
    }

    /// The payload kept of each direction.
    fn payload(&self, py: Python<'_>, index: usize) -> PyResult<(PayloadSample, PayloadSample)> {
        let [up, down] = py
            .detach(|| {
                self.analysed.with_payload(index, |kept, place| {
                    [0, 1].map(|direction| sample::PayloadSample::of(kept.of(place, direction)))
                })
            })
            .map_err(raised)?;
        Ok((up.into(), down.into()))
    }
}

/// Columns, end points of clients and of servers, and options of SYNs up and down.
type Summaries<'py> = (Bound<'py, PyDict>, (Joined<'py>, Joined<'py>), (Octets<'py>, Octets<'py>));
type Octets<'py> = Vec<Bound<'py, PyBytes>>;

/// Stands for a whole number that was not seen in the columns of all connections.
const NOT_SEEN: i64 = -1;

/// As Wireshark counts.
pub(crate) fn frame_number(frame_index: u64) -> i64 {
    frame_index as i64 + 1
}

/// Give a column to NumPy without copying it; all who ask for a connection share it, so it is read-only.
pub(crate) fn handed_over<T: Element>(py: Python<'_>, column: Vec<T>) -> Bound<'_, PyAny> {
    column.into_pyarray(py).readwrite().make_nonwriteable().as_any().clone()
}
