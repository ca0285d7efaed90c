//! A place where packets are captured, with what real captures do to the truth.

use std::io::{self, Write};
use std::rc::Rc;

use pepscope_path::{Direction, Nanoseconds, Random};
use pepscope_tcp::Packet;

use super::addresses::{AddressBook, Translation};
use super::clock::{Clock, ClockSettings};
use super::coalescing::{Coalescer, CoalescingSettings};
use super::content::Contents;
use super::frame::Framer;
use super::pcapng::{Interface, LinkType, PcapngWriter};
use super::prepared::Cut;

/// The longest frame: an Ethernet header and the longest IP packet.
const LONGEST_FRAME_BYTES: usize = 65_549;

/// What a capture point records, and how badly.
#[derive(Clone, Debug)]
pub struct TapSettings {
    pub name: String,
    pub description: String,
    pub link_type: LinkType,
    /// Most captured bytes of a frame; 0 for all.
    pub snap_bytes: u32,
    /// Most captured bytes of a TCP payload that does not begin with text.
    pub payload_bytes: u16,
    pub clock: ClockSettings,
    /// The probability that a packet passes and is missing from the capture.
    pub loss_probability: f64,
    pub coalescing: Option<CoalescingSettings>,
    pub translation: Option<Translation>,
    /// Packets that pass in [`from_ns`, `until_ns`) of true time are recorded.
    pub from_ns: Nanoseconds,
    pub until_ns: Nanoseconds,
}

/// How much a tap saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapCounts {
    pub written_packets: u64,
    /// Lost by the capture.
    pub missed_packets: u64,
}

/// A running capture.
pub struct Tap {
    from_ns: Nanoseconds,
    lasts_ns: Nanoseconds,
    /// As long as it lasts where it shows packets as they pass, when they pass; else 0.
    is_faithful_for_ns: Nanoseconds,
    coalescer: Option<Coalescer>,
    recorder: Recorder,
}

impl Tap {
    /// Begins a capture into `sink` with the addresses of `book`; `seed` for what the capture loses.
    #[must_use]
    pub fn new(
        settings: &TapSettings,
        book: AddressBook,
        contents: Rc<Contents>,
        seed: u64,
        sink: Box<dyn Write + Send>,
    ) -> Self {
        let interface = Interface {
            name: settings.name.clone(),
            description: settings.description.clone(),
            link_type: settings.link_type,
            snap_bytes: settings.snap_bytes,
        };
        let snap_bytes = match settings.snap_bytes as usize {
            0 => LONGEST_FRAME_BYTES,
            bytes => bytes.min(LONGEST_FRAME_BYTES),
        };
        let cut = Cut { frame_bytes: snap_bytes, payload_bytes: settings.payload_bytes.into() };
        let framer = Framer::new(settings.link_type, cut, book, contents);
        let clock = Clock::new(settings.clock.clone());
        let is_faithful = clock.is_right() && settings.loss_probability <= 0.0 && settings.coalescing.is_none();
        let lasts_ns = settings.until_ns.saturating_sub(settings.from_ns);
        let recorder = Recorder {
            writer: PcapngWriter::new(sink, &interface, framer.room_bytes()),
            framer,
            clock,
            loss_probability: settings.loss_probability,
            random: Random::new(seed, &format!("capture {}", settings.name)),
            counts: TapCounts::default(),
        };
        Self {
            from_ns: settings.from_ns,
            lasts_ns,
            is_faithful_for_ns: if is_faithful { lasts_ns } else { 0 },
            coalescer: settings.coalescing.map(Coalescer::new),
            recorder,
        }
    }

    /// Takes note of a packet that passes at `now`. Not part of a loop over taps: what compilers take out of it would be
    /// done for every packet.
    #[inline(never)]
    pub fn record(&mut self, now: Nanoseconds, direction: Direction, packet: &Packet) {
        let since_ns = now.wrapping_sub(self.from_ns);
        if since_ns < self.is_faithful_for_ns && self.recorder.record_usual(now, direction, packet) {
            return;
        }
        if since_ns < self.lasts_ns {
            self.record_any(now, direction, packet);
        }
    }

    #[inline(never)]
    fn record_any(&mut self, now: Nanoseconds, direction: Direction, packet: &Packet) {
        match &mut self.coalescer {
            Some(coalescer) => {
                coalescer.push(now, direction, packet, |at, way, shown| self.recorder.record(at, way, shown));
            }
            None => self.recorder.record(now, direction, packet),
        }
    }

    /// Whether the capture can no longer be written.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.recorder.writer.has_failed()
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// Whatever first went wrong in writing it.
    pub fn finish(mut self, now: Nanoseconds) -> io::Result<TapCounts> {
        let Self { coalescer, recorder, .. } = &mut self;
        if let Some(coalescer) = coalescer {
            coalescer.finish(|at, way, shown| recorder.record(at, way, shown));
        }
        let Recorder { writer, mut clock, counts, .. } = self.recorder;
        writer.finish(clock.reading(now), counts.written_packets + counts.missed_packets, counts.missed_packets)?;
        Ok(counts)
    }
}

/// The part that writes, once it is known what is shown when.
struct Recorder {
    framer: Framer,
    writer: PcapngWriter,
    clock: Clock,
    loss_probability: f64,
    random: Random,
    counts: TapCounts,
}

impl Recorder {
    /// [`Self::record`] where nothing is missed and the clock is right; `false` and nothing if the block is not a usual
    /// one.
    #[inline(always)]
    fn record_usual(&mut self, at: Nanoseconds, direction: Direction, packet: &Packet) -> bool {
        let time_ns = self.clock.right_reading(at);
        let written = self.framer.write_usual(time_ns, direction, packet, self.writer.room());
        written.map(|bytes| self.take(bytes)).is_some()
    }

    fn record(&mut self, at: Nanoseconds, direction: Direction, packet: &Packet) {
        if self.loss_probability > 0.0 && self.random.chance(self.loss_probability) {
            self.counts.missed_packets += 1;
            return;
        }
        let time_ns = self.clock.reading(at);
        let bytes = self.framer.write(time_ns, direction, packet, self.writer.room());
        self.take(bytes);
    }

    #[inline(always)]
    fn take(&mut self, block_bytes: usize) {
        self.writer.take(block_bytes);
        self.counts.written_packets = self.counts.written_packets.wrapping_add(1);
    }
}
