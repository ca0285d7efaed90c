//! A middlebox that changes headers and leaves every transfer as it was: what a detector must not take for a proxy.
//!
//! It holds no data and never answers in the place of an end. What it shifts it shifts back in the opposite direction,
//! so the two ends agree with each other while two captures on either side of it do not.

use std::collections::VecDeque;

use pepscope_path::{Datagram, Direction, Hop, HopCounts, Nanoseconds, Random, MILLISECOND, NEVER};

use crate::flow_table::FlowTable;
use crate::packets::packet::Packet;
use crate::packets::segment::{Flags, SackBlocks, Segment};

/// Drops pure acknowledgements that a later one makes superfluous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcknowledgementThinning {
    /// Of this many acknowledgements in a row the last one passes; 0 and 1 drop none.
    pub keep_one_of: u32,
    /// An acknowledgement waits no longer than this for the next.
    pub hold_ns: Nanoseconds,
}

impl Default for AcknowledgementThinning {
    fn default() -> Self {
        Self { keep_one_of: 2, hold_ns: 10 * MILLISECOND }
    }
}

/// What is rewritten; by default nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewriterSettings {
    /// Largest segment that a SYN may announce, in bytes.
    pub maximum_segment_size_bytes: Option<u16>,
    /// Add a number, random for each flow and direction, to sequence numbers (and take it off acknowledgements and
    /// SACK blocks).
    pub shifts_sequence_numbers: bool,
    /// Add a number, random for each flow and direction, to timestamps (and take it off their echoes).
    pub shifts_timestamps: bool,
    /// Largest window that may be advertised, in bytes, after scaling.
    pub window_limit_bytes: Option<u32>,
    pub zeroes_ip_identification: bool,
    /// Routers that it stands for: what it takes off the time to live. A packet with no more than this left is dropped.
    pub routers: u8,
    pub strips_timestamps: bool,
    pub strips_sack: bool,
    pub strips_window_scale: bool,
    pub acknowledgement_thinning: Option<AcknowledgementThinning>,
}

/// One direction of a flow.
#[derive(Clone, Debug, Default)]
struct Way {
    sequence_shift: u32,
    timestamp_shift: u32,
    /// The scale that its sender offered for the windows it advertises.
    offered_scale: Option<u8>,
    passed_acknowledgement: Option<u32>,
    held: Option<Segment>,
    held_count: u32,
    /// Distinguishes the deadline of what is held now from earlier deadlines.
    hold: u32,
}

type Flow = [Way; 2];

/// The hop.
#[derive(Debug)]
pub struct Rewriter {
    settings: RewriterSettings,
    random: Random,
    flows: FlowTable<Flow>,
    leaving: VecDeque<(Direction, Packet)>,
    /// When, which flow, which way and which hold: in order of time, because all holds last equally long.
    deadlines: VecDeque<(Nanoseconds, u32, Direction, u32)>,
    counts: [HopCounts; 2],
}

impl Rewriter {
    /// A rewriter called `name` in the run with `seed`, which decide the shifts.
    #[must_use]
    pub fn new(settings: RewriterSettings, seed: u64, name: &str) -> Self {
        Self {
            settings,
            random: Random::new(seed, name),
            flows: FlowTable::default(),
            leaving: VecDeque::new(),
            deadlines: VecDeque::new(),
            counts: [HopCounts::default(); 2],
        }
    }

    fn handle_segment(&mut self, now: Nanoseconds, direction: Direction, mut segment: Segment) {
        let (settings, random) = (&self.settings, &mut self.random);
        let counts = &mut self.counts[direction.index()];
        if settings.routers > 0 {
            if segment.time_to_live <= settings.routers {
                counts.lost_packets += 1;
                return;
            }
            segment.time_to_live -= settings.routers;
        }
        let Some(flow) = self.flows.get_or_make(segment.flow, || new_flow(settings, random)) else {
            counts.lost_packets += 1;
            return;
        };
        rewrite(settings, flow, direction, &mut segment);

        let way = &mut flow[direction.index()];
        let Some(thinning) = settings.acknowledgement_thinning.filter(|thinning| thinning.keep_one_of > 1) else {
            self.leaving.push_back((direction, Packet::Tcp(segment)));
            return;
        };
        if is_superfluous_after_the_next(&segment, way) {
            if way.held.replace(segment).is_some() {
                counts.lost_packets += 1;
            } else {
                way.hold = way.hold.wrapping_add(1);
                let deadline_ns = now.saturating_add(thinning.hold_ns);
                self.deadlines.push_back((deadline_ns, segment.flow, direction, way.hold));
            }
            way.held_count += 1;
            if way.held_count >= thinning.keep_one_of {
                release(way, direction, &mut self.leaving);
            }
        } else {
            release(way, direction, &mut self.leaving);
            if segment.flags.has(Flags::ACK) {
                way.passed_acknowledgement = Some(segment.acknowledgement);
            }
            self.leaving.push_back((direction, Packet::Tcp(segment)));
        }
        self.forget_old_deadlines();
    }

    /// Takes deadlines off the front whose acknowledgement has left.
    fn forget_old_deadlines(&mut self) {
        while let Some((_, flow, direction, hold)) = self.deadlines.front() {
            let way = self.flows.get(*flow).map(|ways| &ways[direction.index()]);
            if way.is_some_and(|way| way.held.is_some() && way.hold == *hold) {
                break;
            }
            self.deadlines.pop_front();
        }
    }
}

impl Hop<Packet> for Rewriter {
    fn handle_packet(&mut self, now: Nanoseconds, direction: Direction, packet: Packet) {
        let counts = &mut self.counts[direction.index()];
        counts.offered_packets += 1;
        counts.offered_bytes += u64::from(packet.length_bytes());
        match packet {
            Packet::Tcp(segment) => self.handle_segment(now, direction, segment),
            Packet::Voice(_) | Packet::Datagram(_) | Packet::Report { .. } => {
                self.leaving.push_back((direction, packet))
            }
        }
    }

    fn handle_timeout(&mut self, now: Nanoseconds) {
        while let Some((deadline_ns, flow, direction, _)) = self.deadlines.front().copied() {
            if deadline_ns > now {
                break;
            }
            if let Some(ways) = self.flows.get_mut(flow) {
                release(&mut ways[direction.index()], direction, &mut self.leaving);
            }
            self.deadlines.pop_front();
            self.forget_old_deadlines();
        }
    }

    fn poll_transmit(&mut self, _now: Nanoseconds) -> Option<(Direction, Packet)> {
        let (direction, packet) = self.leaving.pop_front()?;
        let counts = &mut self.counts[direction.index()];
        counts.delivered_packets += 1;
        counts.delivered_bytes += u64::from(packet.length_bytes());
        Some((direction, packet))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        self.deadlines.front().map_or(NEVER, |(deadline_ns, ..)| *deadline_ns)
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.counts[direction.index()]
    }

    fn observe(&self, _now: Nanoseconds, _record: &mut dyn FnMut(&'static str, f64)) {}
}

fn new_flow(settings: &RewriterSettings, random: &mut Random) -> Flow {
    let mut new_way = || Way {
        sequence_shift: if settings.shifts_sequence_numbers { (random.bits() >> 32) as u32 } else { 0 },
        timestamp_shift: if settings.shifts_timestamps { (random.bits() >> 32) as u32 } else { 0 },
        ..Way::default()
    };
    [new_way(), new_way()]
}

fn rewrite(settings: &RewriterSettings, flow: &mut Flow, direction: Direction, segment: &mut Segment) {
    let is_syn = segment.flags.has(Flags::SYN);
    let acknowledges = segment.flags.has(Flags::ACK);
    let (ahead, back) = (direction.index(), direction.opposite().index());

    segment.sequence = segment.sequence.wrapping_add(flow[ahead].sequence_shift);
    if acknowledges {
        segment.acknowledgement = segment.acknowledgement.wrapping_sub(flow[back].sequence_shift);
    }
    if settings.strips_sack {
        segment.sack = SackBlocks::default();
        segment.sack_permitted = false;
    } else if !segment.sack.is_empty() && flow[back].sequence_shift != 0 {
        let mut shifted = SackBlocks::default();
        for (left, right) in segment.sack.as_slice() {
            let shift = flow[back].sequence_shift;
            shifted.push(left.wrapping_sub(shift), right.wrapping_sub(shift));
        }
        segment.sack = shifted;
    }
    if settings.strips_timestamps {
        segment.timestamps = None;
    } else if let Some(timestamps) = &mut segment.timestamps {
        timestamps.value = timestamps.value.wrapping_add(flow[ahead].timestamp_shift);
        if acknowledges {
            timestamps.echo_reply = timestamps.echo_reply.wrapping_sub(flow[back].timestamp_shift);
        }
    }
    if is_syn {
        if let (Some(offered), Some(largest)) = (segment.maximum_segment_size, settings.maximum_segment_size_bytes) {
            segment.maximum_segment_size = Some(offered.min(largest));
        }
        if settings.strips_window_scale {
            segment.window_scale = None;
        }
        flow[ahead].offered_scale = segment.window_scale;
    }
    if let Some(limit_bytes) = settings.window_limit_bytes {
        let scale = match (is_syn, flow[ahead].offered_scale, flow[back].offered_scale) {
            (false, Some(scale), Some(_)) => scale.min(14), // RFC 7323, section 2.3
            _ => 0,
        };
        // A limit below one unit still allows one unit: a zero window would stop the transfer.
        let limit = u16::try_from(limit_bytes >> scale).unwrap_or(u16::MAX).max(1);
        segment.window = segment.window.min(limit);
    }
    if settings.zeroes_ip_identification {
        segment.ip_identification = 0;
    }
}

/// Whether nothing is lost with `segment` once a later acknowledgement passes: it is pure, and it is news.
fn is_superfluous_after_the_next(segment: &Segment, way: &Way) -> bool {
    if segment.flags != Flags::ACK || segment.payload_bytes > 0 || !segment.sack.is_empty() {
        return false;
    }
    let newest = way.held.map(|held| held.acknowledgement).or(way.passed_acknowledgement);
    newest.is_some_and(|newest| (segment.acknowledgement.wrapping_sub(newest) as i32) > 0)
}

fn release(way: &mut Way, direction: Direction, leaving: &mut VecDeque<(Direction, Packet)>) {
    if let Some(held) = way.held.take() {
        way.passed_acknowledgement = Some(held.acknowledgement);
        leaving.push_back((direction, Packet::Tcp(held)));
    }
    way.held_count = 0;
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transfers;
