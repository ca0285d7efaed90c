//! A capture from its file to its connections within a memory limit.
//!
//! Packet columns are kept in memory as long as they fit. Where they do not, the file is read again and its segments go
//! to temporary files, in partitions of which each fits ([`crate::spill`]). Standard input cannot be read twice, so its
//! segments go there from the start. Without packet columns only connections need memory: those beyond the limit go to
//! temporary files in the same pass.
//!
//! Where times of connections fall back, the file is read again, and those between the same end points are taken in the
//! order of time if that contradicts them less ([`crate::storage::in_time`]).

use std::sync::{Arc, Mutex, PoisonError};

use pepscope_wire::segment::Segment;
use pepscope_wire::{CaptureError, CaptureReader, Datagram, DatagramObserver, Echo, PlainSegment, SegmentVisitor};

use crate::analysis::{Analysis, Connections, Settings};
use crate::capture::{AnalysedCapture, Packets};
use crate::datagram_flow::{DatagramFlow, DatagramFlows};
use crate::key::Key;
use crate::records::piece_choice::Payload;
use crate::references::{Reference, References};
use crate::storage::aside::{Apart, Aside};
use crate::storage::in_time::Doubted;
use crate::storage::oversize::PartitionSizes;
use crate::storage::partitioned::PartitionedPackets;
use crate::storage::spill::{Spill, SpillError};
use crate::storage::stored::{StoredSummaries, SummaryStore};

/// Segments between two calls of `progress` and looks at the memory; some milliseconds of work.
const SEGMENTS_BETWEEN_LOOKS: u32 = 1 << 16;
const FEWEST_PARTITIONS: usize = 8;
/// Each is an open file, and systems allow 1024 of them. A power of two, as all numbers of partitions are.
const MOST_PARTITIONS: usize = 64;
/// One that finds times that fall back, one that finds too many packets, and one that has all of them in files.
const MOST_PASSES: usize = 3;

const SUMMARIES_ONLY: Settings = Settings { columns: false, payload: Payload::Nothing };

/// What UDP flows and their samples take at most, however little memory is allowed: results must not depend on it.
const DATAGRAM_MEMORY_BYTES: usize = 32 << 20;

/// Why a capture was not read to its end.
#[derive(Debug)]
pub enum ReadError<E> {
    Capture(CaptureError),
    Spill(SpillError),
    /// The capture took less memory when it was read for the second time.
    Changed,
    /// The caller stopped it.
    Stopped(E),
}

impl<E> From<SpillError> for ReadError<E> {
    fn from(error: SpillError) -> Self {
        ReadError::Spill(error)
    }
}

/// A capture that can be opened, and a callback while it is read.
pub trait Source {
    /// Why the caller stops the reading.
    type Stop;

    /// Whether it can be opened again from its beginning.
    fn can_be_read_again(&self) -> bool;

    fn open(&mut self) -> Result<CaptureReader, ReadError<Self::Stop>>;

    /// Called now and then with the bytes of the file read so far, and in all (0 where that is not known).
    fn progress(&mut self, read_bytes: u64, file_bytes: u64) -> Result<(), Self::Stop>;
}

/// Reads and analyses a capture. Packet columns (without them: connections) that take more than `memory_bytes` go to
/// temporary files. With `settings.payload` UDP flows are kept as well; references always are.
pub fn read_capture<S: Source>(
    source: &mut S,
    settings: Settings,
    memory_bytes: u64,
) -> Result<AnalysedCapture, ReadError<S::Stop>> {
    let observer = SharedObserver::default();
    let open = |source: &mut S| -> Result<CaptureReader, ReadError<S::Stop>> {
        let mut reader = source.open()?;
        let flows = settings.payload.is_kept().then(|| DatagramFlows::new(DATAGRAM_MEMORY_BYTES));
        observer.replace(BesidesTcp { flows, references: References::default() });
        reader.set_observer(Box::new(observer.clone()));
        Ok(reader)
    };
    let can_be_read_again = source.can_be_read_again();
    let mut plan = if settings.columns && !can_be_read_again { Plan::MemoryAndFiles } else { Plan::Memory };
    for _ in 0..MOST_PASSES {
        let mut reader = open(source)?;
        let mut sink = Sink::new(plan, settings, memory_bytes, can_be_read_again)?;
        plan = match pass(source, &mut reader, &mut sink)? {
            Some(other) => other,
            None => {
                let left_in_file_order = sink.left_in_file_order();
                let (summaries, packets) = sink.finish()?;
                let (tally, observed) = (reader.tally().clone(), observer.finish());
                return Ok(AnalysedCapture::new(tally, summaries, packets, observed, left_in_file_order));
            }
        };
    }
    Err(ReadError::Changed)
}

/// Where a pass over the file keeps segments.
enum Plan {
    /// As long as memory has room.
    Memory,
    /// In memory as long as it has room, and in files, since there is no second pass.
    MemoryAndFiles,
    Files {
        partitions: usize,
    },
    /// Those between doubted end points in files, which are read in the order of time, all others in memory.
    DoubtedApart(Doubted),
}

/// Pushes every segment into the sink. Gives another plan where the file has to be read again.
fn pass<S: Source>(
    source: &mut S,
    reader: &mut CaptureReader,
    sink: &mut Sink,
) -> Result<Option<Plan>, ReadError<S::Stop>> {
    loop {
        let visited = if sink.settings.keeps_packets() {
            reader.visit_many(SEGMENTS_BETWEEN_LOOKS, &mut Taking::<true>(sink))?
        } else {
            reader.visit_many(SEGMENTS_BETWEEN_LOOKS, &mut Taking::<false>(sink))?
        };
        let is_end = visited < SEGMENTS_BETWEEN_LOOKS;
        if !is_end {
            report_progress(source, reader)?;
        }
        if !sink.keeps_within_memory() {
            let partitions = if is_end { FEWEST_PARTITIONS } else { partitions_needed(reader) };
            return Ok(Some(Plan::Files { partitions }));
        }
        if is_end {
            return Ok(sink.doubted_anew().map(Plan::DoubtedApart));
        }
    }
}

fn report_progress<S: Source>(source: &mut S, reader: &CaptureReader) -> Result<(), ReadError<S::Stop>> {
    let file_bytes = reader.file_bytes().unwrap_or(0);
    source.progress(reader.file_bytes_read(), file_bytes).map_err(ReadError::Stopped)
}

/// Eight times as many as would just fit, since connections differ in size and several processes may have to share the
/// memory; `reader` stands where the memory was used up.
///
/// A power of two: the connections of a partition are then those of one partition, or of several, in any other capture
/// that shows the same addresses, and two captures can be gone through side by side.
fn partitions_needed(reader: &CaptureReader) -> usize {
    let whole = reader.file_bytes().unwrap_or(u64::MAX);
    let ratio = whole.div_ceil(reader.file_bytes_read().max(1)).saturating_mul(8);
    let needed = usize::try_from(ratio).unwrap_or(usize::MAX).clamp(FEWEST_PARTITIONS, MOST_PARTITIONS);
    needed.next_power_of_two()
}

/// What the latest pass makes of UDP datagrams and ICMP echo messages.
#[derive(Default)]
struct BesidesTcp {
    flows: Option<DatagramFlows>,
    references: References,
}

/// Shared with the reader that meets the datagrams.
#[derive(Clone, Default)]
struct SharedObserver(Arc<Mutex<BesidesTcp>>);

impl SharedObserver {
    fn replace(&self, by: BesidesTcp) -> BesidesTcp {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), by)
    }

    fn finish(&self) -> Observed {
        let BesidesTcp { flows, references } = self.replace(BesidesTcp::default());
        Observed {
            datagrams_left_out: flows.as_ref().map_or(0, DatagramFlows::left_out),
            flows: flows.map_or_else(Vec::new, DatagramFlows::finish),
            references_left_out: references.left_out(),
            references: references.finish(),
        }
    }
}

impl DatagramObserver for SharedObserver {
    fn observe(&mut self, datagram: &Datagram<'_>) {
        let mut besides = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        besides.references.push(datagram);
        if let Some(flows) = &mut besides.flows {
            flows.push(datagram);
        }
    }

    fn observe_echo(&mut self, echo: &Echo) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).references.push_echo(echo);
    }
}

/// The UDP flows of a capture and its round trips besides TCP, and how many of each found no room.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) flows: Vec<DatagramFlow>,
    pub(crate) datagrams_left_out: u64,
    pub(crate) references: Vec<Reference>,
    pub(crate) references_left_out: u64,
}

/// Summaries of all connections, by first packet.
pub(crate) enum Summaries {
    InMemory(Box<Connections>),
    InFile(StoredSummaries),
}

/// Where segments go.
struct Sink {
    settings: Settings,
    memory_bytes: u64,
    can_be_read_again: bool,
    /// Gone once it holds more than is allowed.
    analysis: Option<Analysis>,
    aside: Option<Aside>,
}

/// A sink that takes segments, and whether it keeps packets of them.
struct Taking<'a, const KEEPS: bool>(&'a mut Sink);

impl<const KEEPS: bool> SegmentVisitor for Taking<'_, KEEPS> {
    type Stop = SpillError;

    #[inline(always)]
    fn visit_plain(&mut self, segment: &PlainSegment<'_>) -> Result<bool, SpillError> {
        match (&mut self.0.analysis, &self.0.aside) {
            (Some(analysis), None) => Ok(analysis.push_plain::<KEEPS>(segment)),
            _ => Ok(false),
        }
    }

    fn visit(&mut self, segment: &Segment<'_>) -> Result<(), SpillError> {
        self.0.push(segment)
    }
}

impl Sink {
    fn new(plan: Plan, settings: Settings, memory_bytes: u64, can_be_read_again: bool) -> Result<Sink, SpillError> {
        let (in_memory, aside) = match plan {
            Plan::Memory => (true, None),
            Plan::MemoryAndFiles => (true, Some(Aside::every(MOST_PARTITIONS)?)),
            Plan::Files { partitions } => (false, Some(Aside::every(partitions)?)),
            Plan::DoubtedApart(doubted) => (true, Some(Aside::doubted(doubted)?)),
        };
        let analysis = in_memory.then(|| Analysis::new(settings));
        Ok(Sink { settings, memory_bytes, can_be_read_again, analysis, aside })
    }

    #[inline]
    fn push(&mut self, segment: &Segment<'_>) -> Result<(), SpillError> {
        if let Some(apart) = self.apart() {
            if apart.doubted.contains(&Key::of(segment)) {
                return apart.spill.push(segment);
            }
        }
        if !self.settings.columns {
            return self.push_without_packets(segment);
        }
        if let Some(analysis) = &mut self.analysis {
            analysis.push(segment);
        }
        if let Some(spill) = self.aside.as_mut().and_then(|aside| aside.spill.as_mut()) {
            spill.push(segment)?;
        }
        Ok(())
    }

    fn apart(&mut self) -> Option<&mut Apart> {
        self.aside.as_mut()?.apart.as_mut()
    }

    /// Segments of connections for which memory has no room go to temporary files.
    #[inline]
    fn push_without_packets(&mut self, segment: &Segment<'_>) -> Result<(), SpillError> {
        let to_come = self.apart().map_or(0, |apart| apart.doubted.len());
        let Some(analysis) = &mut self.analysis else { return Ok(()) };
        let held_bytes = (analysis.connection_count() + to_come) * Analysis::CONNECTION_BYTES;
        if held_bytes as u64 <= self.memory_bytes {
            analysis.push(segment);
            return Ok(());
        }
        if analysis.push_known(segment) {
            return Ok(());
        }
        // Opened where they are needed, since opening them takes longer than reading a small capture.
        match &mut self.aside.get_or_insert_default().spill {
            Some(spill) => spill.push(segment),
            none => none.insert(Spill::create(None, MOST_PARTITIONS)?).push(segment),
        }
    }

    /// Lets go of packets in memory that take more than is allowed. False, and nothing, where they are nowhere else.
    fn keeps_within_memory(&mut self) -> bool {
        let held_bytes = self.analysis.as_ref().map_or(0, Analysis::memory_bytes) as u64;
        if !self.settings.columns || held_bytes <= self.memory_bytes {
            return true;
        }
        let are_in_files = self.aside.as_ref().is_some_and(|aside| aside.spill.is_some());
        if are_in_files {
            self.analysis = None;
        }
        are_in_files
    }

    /// End points of connections whose times fall back, where this pass did not keep them apart and another one can.
    fn doubted_anew(&mut self) -> Option<Doubted> {
        if !self.can_be_read_again || self.apart().is_some() {
            return None;
        }
        self.analysis.as_ref().map(Analysis::doubted).filter(|doubted| !doubted.is_empty())
    }

    /// Connections whose times fall back and whose packets are nowhere to be read again.
    fn left_in_file_order(&self) -> usize {
        let are_left = !self.can_be_read_again && !self.settings.columns;
        self.analysis.as_ref().filter(|_| are_left).map_or(0, |analysis| analysis.falling_back().count())
    }

    fn finish(self) -> Result<(Summaries, Packets), SpillError> {
        let Sink { settings, memory_bytes, analysis, aside, .. } = self;
        let Aside { apart, spill } = aside.unwrap_or_default();
        let (mut analysis, spill) = match (analysis, spill) {
            (None, Some(spill)) => return partitioned(spill, settings, memory_bytes),
            (analysis, spill) => (analysis.unwrap_or_else(|| Analysis::new(settings)), spill),
        };
        if let Some(apart) = apart {
            analysis = apart.push_in_time(analysis)?;
        }
        match spill {
            Some(beyond_memory) if !settings.columns => {
                Ok((Summaries::InFile(store_all(&analysis.finish(), beyond_memory)?), Packets::NotKept))
            }
            Some(every) => Ok(in_memory(taken_in_time(analysis, every, settings)?)),
            None => Ok(in_memory(analysis)),
        }
    }
}

fn in_memory(analysis: Analysis) -> (Summaries, Packets) {
    let mut connections = Box::new(analysis.finish());
    let packets = Packets::in_memory(&mut connections);
    (Summaries::InMemory(connections), packets)
}

/// The analysis, or a new one of its segments (`every` holds them) where times of connections fall back.
fn taken_in_time(analysis: Analysis, every: Spill, settings: Settings) -> Result<Analysis, SpillError> {
    let doubted = analysis.doubted();
    if doubted.is_empty() {
        return Ok(analysis);
    }
    drop(analysis);
    Apart { doubted, spill: every }.push_in_time(Analysis::new(settings))
}

/// Summaries of the connections in memory and of those in temporary files, without packets.
fn store_all(in_memory: &Connections, spill: Spill) -> Result<StoredSummaries, SpillError> {
    let mut store = SummaryStore::create(None)?;
    store.add(0, in_memory)?;
    let partitions = spill.finish()?;
    for partition in 0..partitions.len() {
        store.add(partition as u16 + 1, &partitions.analyse(partition, SUMMARIES_ONLY)?)?;
    }
    store.count_traffic(partitions.traffic());
    store.finish()
}

/// Summaries of all partitions, and the largest of them.
fn partitioned(spill: Spill, settings: Settings, memory_bytes: u64) -> Result<(Summaries, Packets), SpillError> {
    let partitions = spill.finish()?;
    let mut store = SummaryStore::create(None)?;
    let mut sizes = PartitionSizes::default();
    for partition in 0..partitions.len() {
        let connections = partitions.analyse(partition, settings)?;
        store.add(partition as u16, &connections)?;
        sizes.count(&connections);
    }
    let packets = PartitionedPackets::new(partitions, settings, memory_bytes, sizes);
    Ok((Summaries::InFile(store.finish()?), Packets::InFiles(Box::new(packets))))
}
