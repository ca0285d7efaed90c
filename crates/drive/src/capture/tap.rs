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
    until_ns: Nanoseconds,
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
        let recorder = Recorder {
            writer: PcapngWriter::new(sink, &interface, framer.room_bytes()),
            framer,
            is_faithful: clock.is_right() && settings.loss_probability <= 0.0,
            clock,
            loss_probability: settings.loss_probability,
            random: Random::new(seed, &format!("capture {}", settings.name)),
            counts: TapCounts::default(),
        };
        Self {
            from_ns: settings.from_ns,
            until_ns: settings.until_ns,
            coalescer: settings.coalescing.map(Coalescer::new),
            recorder,
        }
    }

    /// Takes note of a packet that passes at `now`.
    #[inline(always)]
    pub fn record(&mut self, now: Nanoseconds, direction: Direction, packet: &Packet) {
        if now < self.from_ns || now >= self.until_ns {
            return;
        }
        if self.coalescer.is_none() {
            self.recorder.record(now, direction, packet);
        } else {
            self.coalesce(now, direction, packet);
        }
    }

    #[inline(never)]
    fn coalesce(&mut self, now: Nanoseconds, direction: Direction, packet: &Packet) {
        if let Some(coalescer) = &mut self.coalescer {
            coalescer.push(now, direction, packet, |at, way, shown| self.recorder.record(at, way, shown));
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
    /// It misses nothing, and its clock is right.
    is_faithful: bool,
    loss_probability: f64,
    random: Random,
    counts: TapCounts,
}

impl Recorder {
    /// Not part of a loop over taps: what compilers take out of it would be done for every packet.
    #[inline(never)]
    fn record(&mut self, at: Nanoseconds, direction: Direction, packet: &Packet) {
        let time_ns = if self.is_faithful {
            self.clock.right_reading(at)
        } else if self.loss_probability > 0.0 && self.random.chance(self.loss_probability) {
            self.counts.missed_packets += 1;
            return;
        } else {
            self.clock.reading(at)
        };
        let block_bytes = self.framer.write(time_ns, direction, packet, self.writer.room());
        self.writer.take(block_bytes);
        self.counts.written_packets = self.counts.written_packets.wrapping_add(1);
    }
}
