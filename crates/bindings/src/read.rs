//! Reading and analysis, with the GIL released.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pepscope_connections::spill::{Partitions, Spill, SpillError};
use pepscope_connections::stored::{StoredSummaries, SummaryStore};
use pepscope_connections::{Analysis, Connections, DatagramFlow, DatagramFlows, Settings};
use pepscope_wire::bpf::{Filter, Instruction, Program};
use pepscope_wire::segment::Segment;
use pepscope_wire::{CaptureReader, Datagram, DatagramObserver, Tally};
use pyo3::prelude::*;

use crate::capture::Capture;
use crate::oversize::Oversize;
use crate::standard_input::{Interruption, StandardInput};

mod errors {
    pyo3::import_exception!(pepscope.errors, CaptureError);
    pyo3::import_exception!(pepscope.errors, FilterError);
}
pub(crate) use errors::CaptureError;

/// Segments between looks at signals and reports of progress; some milliseconds of work.
const SEGMENTS_BETWEEN_LOOKS: u32 = 1 << 16;
const FEWEST_PARTITIONS: usize = 4;
/// Each is an open file, and systems allow 1024 of them.
const MOST_PARTITIONS: usize = 64;

const SUMMARIES_ONLY: Settings = Settings { columns: false, payload: false };
const PACKETS_ONLY: Settings = Settings { columns: true, payload: false };

/// What UDP flows and their samples take at most, however little memory is allowed: results must not depend on it.
const DATAGRAM_MEMORY_BYTES: usize = 32 << 20;

type FilterPrograms = HashMap<u16, Vec<(u16, u8, u8, u32)>>;

/// Read and analyse a capture.
#[pyfunction]
pub(crate) fn read_capture(
    py: Python<'_>,
    path: PathBuf,
    filter_programs: Option<FilterPrograms>,
    memory_bytes: u64,
    payload: bool,
    columns: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Capture> {
    let filter = filter_programs.map(compiled).transpose()?;
    let settings = Settings { columns, payload };
    py.detach(|| {
        let datagram_memory_bytes = payload.then_some(DATAGRAM_MEMORY_BYTES);
        let mut source = Source {
            path,
            filter,
            interruption: Interruption::default(),
            datagram_memory_bytes,
            flows: SharedFlows::default(),
        };
        let mut reader = source.open()?;
        // Standard input cannot be read twice, so its segments are parked from the start. Without packets to keep, only
        // connections beyond those that memory may hold are parked, whatever the source.
        let parks = !columns || source.is_standard_input();
        let spill = if parks { Some(new_spill(MOST_PARTITIONS)?) } else { None };
        let sink = Sink { settings, memory_bytes, analysis: Some(Analysis::new(settings)), spill };
        let analysed = match pass(&mut reader, sink, progress.as_ref())? {
            Pass::Complete(analysed) => analysed,
            Pass::TooLarge { partitions } => {
                reader = source.open()?;
                let sink = Sink { settings, memory_bytes, analysis: None, spill: Some(new_spill(partitions)?) };
                match pass(&mut reader, sink, progress.as_ref())? {
                    Pass::Complete(analysed) => analysed,
                    Pass::TooLarge { .. } => {
                        return Err(CaptureError::new_err("the capture changed while it was read"))
                    }
                }
            }
        };
        if let Some(raised) = source.interruption.take() {
            return Err(raised);
        }
        let flows = source.take_flows();
        Capture::new(reader.tally().clone(), analysed, flows)
    })
}

fn new_spill(partitions: usize) -> PyResult<Spill> {
    Spill::create(None, partitions).map_err(spill_failure)
}

/// What to read, as often as needed.
struct Source {
    path: PathBuf,
    filter: Option<Filter>,
    interruption: Interruption,
    /// `None` where UDP flows are not wanted.
    datagram_memory_bytes: Option<usize>,
    flows: SharedFlows,
}

/// UDP flows of the latest pass, shared by the reader that meets the datagrams and the source that wants them.
#[derive(Clone, Default)]
struct SharedFlows(Arc<Mutex<Option<DatagramFlows>>>);

impl SharedFlows {
    fn replace(&self, flows: Option<DatagramFlows>) -> Option<DatagramFlows> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), flows)
    }
}

impl DatagramObserver for SharedFlows {
    fn observe(&mut self, datagram: &Datagram<'_>) {
        if let Some(flows) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            flows.push(datagram);
        }
    }
}

/// The UDP flows of a capture, and how many datagrams found no room among them.
#[derive(Default)]
pub(crate) struct ObservedFlows {
    pub(crate) flows: Vec<DatagramFlow>,
    pub(crate) left_out: u64,
}

impl Source {
    fn is_standard_input(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    fn take_flows(&mut self) -> ObservedFlows {
        let flows = self.flows.replace(None);
        flows.map_or_else(ObservedFlows::default, |flows| ObservedFlows {
            left_out: flows.left_out(),
            flows: flows.finish(),
        })
    }

    fn open(&self) -> PyResult<CaptureReader> {
        let opened = if self.is_standard_input() {
            CaptureReader::from_standard_input(Box::new(StandardInput { interruption: self.interruption.clone() }))
        } else {
            CaptureReader::open(&self.path)
        };
        if let Some(raised) = self.interruption.take() {
            return Err(raised);
        }
        let mut reader = opened.map_err(|error| CaptureError::new_err(error.to_string()))?;
        if let Some(filter) = &self.filter {
            reader.set_filter(filter.clone());
        }
        if let Some(limit) = self.datagram_memory_bytes {
            self.flows.replace(Some(DatagramFlows::new(limit)));
            reader.set_observer(Box::new(self.flows.clone()));
        }
        Ok(reader)
    }
}

fn compiled(programs: FilterPrograms) -> PyResult<Filter> {
    let mut filter = Filter::new();
    for (link_type, steps) in programs {
        let instructions: Vec<_> = steps.into_iter().map(|(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect();
        let program = Program::new(&instructions).map_err(|error| errors::FilterError::new_err(error.to_string()))?;
        filter.insert(link_type, program);
    }
    Ok(filter)
}

/// A capture's connections, and where their packets are.
pub(crate) enum Analysed {
    InMemory(Box<Connections>),
    /// More than memory may hold: summaries are in a file, and packets, if any are kept, are analysed again when they
    /// are asked for.
    Parked {
        summaries: StoredSummaries,
        packets: Option<Box<ParkedPackets>>,
    },
}

/// Packets in temporary files.
pub(crate) struct ParkedPackets {
    pub(crate) partitions: Partitions,
    pub(crate) settings: Settings,
    /// One sentence, where a partition takes more memory than was allowed.
    pub(crate) warning: Option<String>,
}

/// Where segments go.
struct Sink {
    settings: Settings,
    memory_bytes: u64,
    /// Gone once it holds more than is allowed.
    analysis: Option<Analysis>,
    spill: Option<Spill>,
}

impl Sink {
    #[inline]
    fn push(&mut self, segment: &Segment<'_>) -> Result<(), SpillError> {
        if !self.settings.columns {
            return self.push_without_packets(segment);
        }
        if let Some(analysis) = &mut self.analysis {
            analysis.push(segment);
        }
        if let Some(spill) = &mut self.spill {
            spill.push(segment)?;
        }
        Ok(())
    }

    /// Segments of connections that memory has no more room for are parked.
    #[inline]
    fn push_without_packets(&mut self, segment: &Segment<'_>) -> Result<(), SpillError> {
        let Some(analysis) = &mut self.analysis else { return Ok(()) };
        let held_bytes = analysis.connection_count() * Analysis::CONNECTION_BYTES;
        match &mut self.spill {
            Some(spill) if held_bytes as u64 > self.memory_bytes => {
                if analysis.push_known(segment) {
                    Ok(())
                } else {
                    spill.push(segment)
                }
            }
            _ => {
                analysis.push(segment);
                Ok(())
            }
        }
    }

    fn exceeds_memory(&self) -> bool {
        self.settings.columns
            && self.analysis.as_ref().is_some_and(|analysis| analysis.memory_bytes() as u64 > self.memory_bytes)
    }

    fn finish(self) -> PyResult<Analysed> {
        let Sink { settings, memory_bytes, analysis, spill } = self;
        let parked_anything = spill.as_ref().is_some_and(|spill| spill.segment_count() > 0);
        match (analysis, spill) {
            (Some(analysis), Some(spill)) if !settings.columns && parked_anything => {
                store_all(&analysis.finish(), spill).map_err(spill_failure)
            }
            (Some(analysis), _) => Ok(Analysed::InMemory(Box::new(analysis.finish()))),
            (None, Some(spill)) => park(spill, settings, memory_bytes).map_err(spill_failure),
            (None, None) => Err(CaptureError::new_err("the capture was not read")),
        }
    }
}

/// Summaries of what was held and of what was parked, without packets.
fn store_all(held: &Connections, spill: Spill) -> Result<Analysed, SpillError> {
    let mut store = SummaryStore::create(None)?;
    store.add(0, held)?;
    let partitions = spill.finish()?;
    for partition in 0..partitions.len() {
        store.add(partition as u16 + 1, &partitions.analyse(partition, SUMMARIES_ONLY)?)?;
    }
    Ok(Analysed::Parked { summaries: store.finish()?, packets: None })
}

/// Summaries of all partitions, and whether the packets of each will fit into memory.
fn park(spill: Spill, settings: Settings, memory_bytes: u64) -> Result<Analysed, SpillError> {
    let partitions = spill.finish()?;
    let mut store = SummaryStore::create(None)?;
    let mut oversize = Oversize::beyond(memory_bytes);
    for partition in 0..partitions.len() {
        let connections = partitions.analyse(partition, PACKETS_ONLY)?;
        store.add(partition as u16, &connections)?;
        oversize.look_at(&connections);
    }
    let warning = oversize.warning(partitions.len());
    let packets = Box::new(ParkedPackets { partitions, settings, warning });
    Ok(Analysed::Parked { summaries: store.finish()?, packets: Some(packets) })
}

pub(crate) fn spill_failure(error: SpillError) -> PyErr {
    CaptureError::new_err(error.to_string())
}

/// How the pass over the file ended.
enum Pass {
    Complete(Analysed),
    /// The packets take more memory than is allowed; so many partitions should do.
    TooLarge {
        partitions: usize,
    },
}

/// Push every segment into the sink, looking now and then for Ctrl-C and telling how far we are.
fn pass(reader: &mut CaptureReader, mut sink: Sink, progress: Option<&Py<PyAny>>) -> PyResult<Pass> {
    let mut until_look = SEGMENTS_BETWEEN_LOOKS;
    loop {
        match reader.visit_next(|segment| sink.push(segment)) {
            Ok(Some(pushed)) => pushed.map_err(spill_failure)?,
            Ok(None) => break,
            Err(error) => return Err(CaptureError::new_err(error.to_string())),
        }
        until_look -= 1;
        if until_look == 0 {
            until_look = SEGMENTS_BETWEEN_LOOKS;
            look(reader, progress)?;
            if sink.exceeds_memory() {
                if sink.spill.is_none() {
                    return Ok(Pass::TooLarge { partitions: partitions_needed(reader) });
                }
                sink.analysis = None;
            }
        }
    }
    if sink.exceeds_memory() {
        if sink.spill.is_none() {
            return Ok(Pass::TooLarge { partitions: FEWEST_PARTITIONS });
        }
        sink.analysis = None;
    }
    sink.finish().map(Pass::Complete)
}

/// Twice as many as would just fit, as connections differ in size; `reader` stands where the memory was used up.
fn partitions_needed(reader: &CaptureReader) -> usize {
    let whole = reader.file_bytes().unwrap_or(u64::MAX);
    let ratio = whole.div_ceil(reader.file_bytes_read().max(1)).saturating_mul(2);
    usize::try_from(ratio).unwrap_or(usize::MAX).clamp(FEWEST_PARTITIONS, MOST_PARTITIONS)
}

fn look(reader: &CaptureReader, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let Some(progress) = progress {
            progress.call1(py, (reader.file_bytes_read(), reader.file_bytes().unwrap_or(0)))?;
        }
        Ok(())
    })
}

/// Counts by name, for Python.
pub(crate) fn counts(tally: &Tally) -> Vec<(&'static str, u64)> {
    vec![
        ("frames", tally.frames),
        ("tcp_segments", tally.tcp_segments),
        ("filtered_out", tally.filtered_out),
        ("unknown_link_type", tally.unknown_link_type),
        ("not_ip", tally.not_ip),
        ("not_tcp", tally.not_tcp),
        ("cut_short", tally.cut_short),
        ("malformed", tally.malformed),
        ("too_deep", tally.too_deep),
        ("encrypted", tally.encrypted),
        ("fragments_held", tally.fragments_held),
        ("unfinished_datagrams", tally.unfinished_datagrams),
        ("frames_without_time", tally.frames_without_time),
        ("bytes_read", tally.bytes_read),
    ]
}
