//! A middlebox that changes headers of real packets and leaves every transfer as it was: what a simulation's
//! [`pepscope_tcp::Rewriter`] does to its segments, done to bytes, with checksums set right.

use std::collections::{HashMap, VecDeque};

use pepscope_path::{Datagram, Direction, Hop, HopCounts, Nanoseconds, Random, NEVER};
use pepscope_tcp::{RewriterSettings, FLOW_LIMIT};

use super::frame::Frame;
use super::report_datagram::internet_checksum;

const PROTOCOL_TCP: u8 = 6;
const TCP_HEADER_BYTES: usize = 20;
const FLAG_SYN: u8 = 0x02;
const FLAG_ACK: u8 = 0x10;
const LARGEST_SCALE: u8 = 14; // RFC 7323, section 2.3

/// Kinds of TCP options.
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Addresses and ports of the server's side and of the mobile's.
type FlowKey = ([u8; 16], [u8; 16], [u8; 4]);

/// One direction of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    sequence_shift: u32,
    timestamp_shift: u32,
    /// The scale that its sender offered for the windows it advertises.
    offered_scale: Option<u8>,
}

/// The hop.
#[derive(Debug)]
pub struct FrameRewriter {
    settings: RewriterSettings,
    random: Random,
    flows: HashMap<FlowKey, [Way; 2]>,
    leaving: VecDeque<(Direction, Frame)>,
    counts: [HopCounts; 2],
}

impl FrameRewriter {
    /// A rewriter called `name` in the run with `seed`, which decide the shifts.
    #[must_use]
    pub fn new(settings: RewriterSettings, seed: u64, name: &str) -> Self {
        Self {
            settings,
            random: Random::new(seed, name),
            flows: HashMap::new(),
            leaving: VecDeque::new(),
            counts: [HopCounts::default(); 2],
        }
    }

    /// Rewrites a TCP segment; `false` if it does not get through. What is none passes as it is.
    fn rewrite(&mut self, direction: Direction, frame: &mut Frame) -> bool {
        let Some(network_bytes) = frame.tcp_at() else { return true };
        let bytes = frame.bytes_mut();
        let Some(offset) = bytes.get(network_bytes + 12).map(|offset| usize::from(offset >> 4) * 4) else {
            return true;
        };
        if offset < TCP_HEADER_BYTES || bytes.len() < network_bytes + offset {
            return true;
        }
        if !self.lower_time_to_live(bytes) {
            return false;
        }
        let Some(key) = flow_key(bytes, network_bytes, direction) else { return true };
        if self.flows.len() >= FLOW_LIMIT as usize && !self.flows.contains_key(&key) {
            return false;
        }
        let (settings, random) = (&self.settings, &mut self.random);
        let flow = self.flows.entry(key).or_insert_with(|| new_flow(settings, random));
        rewrite_segment(settings, flow, direction, &mut bytes[network_bytes..], offset);
        if settings.zeroes_ip_identification && bytes[0] >> 4 == 4 {
            bytes[4..6].fill(0);
        }
        set_checksums(bytes, network_bytes);
        true
    }

    fn lower_time_to_live(&self, bytes: &mut [u8]) -> bool {
        let at = if bytes[0] >> 4 == 4 { 8 } else { 7 };
        if self.settings.routers > 0 {
            if bytes[at] <= self.settings.routers {
                return false;
            }
            bytes[at] -= self.settings.routers;
        }
        true
    }
}

fn new_flow(settings: &RewriterSettings, random: &mut Random) -> [Way; 2] {
    let mut new_way = || Way {
        sequence_shift: if settings.shifts_sequence_numbers { (random.bits() >> 32) as u32 } else { 0 },
        timestamp_shift: if settings.shifts_timestamps { (random.bits() >> 32) as u32 } else { 0 },
        offered_scale: None,
    };
    [new_way(), new_way()]
}

fn flow_key(bytes: &[u8], network_bytes: usize, direction: Direction) -> Option<FlowKey> {
    let mut addresses = [[0; 16]; 2];
    let (first, length) = if bytes[0] >> 4 == 4 { (12, 4) } else { (8, 16) };
    for (number, address) in addresses.iter_mut().enumerate() {
        let at = first + number * length;
        address[..length].copy_from_slice(bytes.get(at..at + length)?);
    }
    let ports = bytes.get(network_bytes..network_bytes + 4)?;
    Some(match direction {
        Direction::Down => (addresses[0], addresses[1], [ports[0], ports[1], ports[2], ports[3]]),
        Direction::Up => (addresses[1], addresses[0], [ports[2], ports[3], ports[0], ports[1]]),
    })
}

fn add(field: &mut [u8], shift: u32) {
    let before = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
    field[..4].copy_from_slice(&before.wrapping_add(shift).to_be_bytes());
}

/// `tcp` is the segment, of whose header the first `offset` bytes are.
fn rewrite_segment(
    settings: &RewriterSettings,
    flow: &mut [Way; 2],
    direction: Direction,
    tcp: &mut [u8],
    offset: usize,
) {
    let (ahead, back) = (direction.index(), direction.opposite().index());
    let (is_syn, acknowledges) = (tcp[13] & FLAG_SYN != 0, tcp[13] & FLAG_ACK != 0);
    add(&mut tcp[4..8], flow[ahead].sequence_shift);
    if acknowledges {
        add(&mut tcp[8..12], flow[back].sequence_shift.wrapping_neg());
    }
    if is_syn {
        flow[ahead].offered_scale = None;
    }
    let mut rest = &mut tcp[TCP_HEADER_BYTES..offset];
    while let [kind, ..] = rest {
        let length = match *kind {
            0 => break,
            NO_OPERATION => 1,
            _ => match rest.get(1) {
                Some(&length) if length >= 2 && usize::from(length) <= rest.len() => usize::from(length),
                _ => break, // a sender's mistake, which is not ours to mend
            },
        };
        let (option, behind) = rest.split_at_mut(length);
        rewrite_option(settings, flow, (ahead, back), (is_syn, acknowledges), option);
        rest = behind;
    }
    if let Some(limit_bytes) = settings.window_limit_bytes {
        let scale = match (is_syn, flow[ahead].offered_scale, flow[back].offered_scale) {
            (false, Some(scale), Some(_)) => scale.min(LARGEST_SCALE),
            _ => 0,
        };
        // A limit below one unit still allows one unit: a zero window would stop the transfer.
        let limit = u16::try_from(limit_bytes >> scale).unwrap_or(u16::MAX).max(1);
        let window = u16::from_be_bytes([tcp[14], tcp[15]]).min(limit);
        tcp[14..16].copy_from_slice(&window.to_be_bytes());
    }
}

fn rewrite_option(
    settings: &RewriterSettings,
    flow: &mut [Way; 2],
    (ahead, back): (usize, usize),
    (is_syn, acknowledges): (bool, bool),
    option: &mut [u8],
) {
    match (option[0], option.len()) {
        (SACK_PERMITTED | SACK, _) if settings.strips_sack => option.fill(NO_OPERATION),
        (SACK, _) => {
            for edge in option[2..].chunks_exact_mut(4) {
                add(edge, flow[back].sequence_shift.wrapping_neg());
            }
        }
        (TIMESTAMPS, 10) if settings.strips_timestamps => option.fill(NO_OPERATION),
        (TIMESTAMPS, 10) => {
            add(&mut option[2..6], flow[ahead].timestamp_shift);
            if acknowledges {
                add(&mut option[6..10], flow[back].timestamp_shift.wrapping_neg());
            }
        }
        (WINDOW_SCALE, 3) if is_syn && settings.strips_window_scale => option.fill(NO_OPERATION),
        (WINDOW_SCALE, 3) if is_syn => flow[ahead].offered_scale = Some(option[2]),
        (MAXIMUM_SEGMENT_SIZE, 4) if is_syn => {
            if let Some(largest) = settings.maximum_segment_size_bytes {
                let offered = u16::from_be_bytes([option[2], option[3]]);
                option[2..].copy_from_slice(&offered.min(largest).to_be_bytes());
            }
        }
        _ => {}
    }
}

fn set_checksums(bytes: &mut [u8], network_bytes: usize) {
    let (network, tcp) = bytes.split_at_mut(network_bytes);
    let length = (tcp.len() as u32).to_be_bytes();
    let pseudo_end = [0, 0, 0, PROTOCOL_TCP];
    tcp[16..18].fill(0);
    let addresses = if network[0] >> 4 == 4 { &network[12..20] } else { &network[8..40] };
    let checksum = internet_checksum(&[addresses, &length, &pseudo_end, tcp]);
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    if network[0] >> 4 == 4 {
        network[10..12].fill(0);
        let checksum = internet_checksum(&[network]);
        network[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

impl Hop<Frame> for FrameRewriter {
    fn handle_packet(&mut self, _now: Nanoseconds, direction: Direction, mut frame: Frame) {
        let counts = &mut self.counts[direction.index()];
        counts.offered_packets += 1;
        counts.offered_bytes += u64::from(frame.length_bytes());
        if self.rewrite(direction, &mut frame) {
            self.leaving.push_back((direction, frame));
        } else {
            self.counts[direction.index()].lost_packets += 1;
        }
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_transmit(&mut self, _now: Nanoseconds) -> Option<(Direction, Frame)> {
        let (direction, frame) = self.leaving.pop_front()?;
        let counts = &mut self.counts[direction.index()];
        counts.delivered_packets += 1;
        counts.delivered_bytes += u64::from(frame.length_bytes());
        Some((direction, frame))
    }

    fn poll_timeout(&self) -> Nanoseconds {
        NEVER
    }

    fn counts(&self, direction: Direction) -> HopCounts {
        self.counts[direction.index()]
    }

    fn observe(&self, _now: Nanoseconds, _record: &mut dyn FnMut(&'static str, f64)) {}
}

#[cfg(test)]
mod tests {
    use super::super::frame::Terminals;
    use super::super::report_datagram::internet_checksum;
    use super::{FrameRewriter, NO_OPERATION};
    use crate::live::frame::Frame;
    use pepscope_path::{Direction, Hop};
    use pepscope_tcp::RewriterSettings;

    const ADDRESSES: [[u8; 4]; 2] = [[203, 0, 113, 10], [10, 45, 0, 2]];

    /// A segment of the flow that goes in `direction`, over IPv4, without checksums.
    fn packet(direction: Direction, flags: u8, sequence: u32, acknowledgement: u32, options: &[u8]) -> Vec<u8> {
        let (from, to) = (direction.index(), direction.opposite().index());
        let ports = [[0, 80], [156, 64]];
        let total = 40 + options.len() as u8 + 3;
        let mut bytes = vec![0x45, 0, 0, total, 7, 7, 0x40, 0, 64, 6, 0, 0];
        bytes.extend_from_slice(&ADDRESSES[from]);
        bytes.extend_from_slice(&ADDRESSES[to]);
        bytes.extend_from_slice(&ports[from]);
        bytes.extend_from_slice(&ports[to]);
        bytes.extend_from_slice(&sequence.to_be_bytes());
        bytes.extend_from_slice(&acknowledgement.to_be_bytes());
        bytes.extend_from_slice(&[(5 + options.len() as u8 / 4) << 4, flags, 0x20, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(options);
        bytes.extend_from_slice(b"odd");
        bytes
    }

    fn through(rewriter: &mut FrameRewriter, direction: Direction, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let frame = Frame::new(bytes, direction, &Terminals { first_ipv4: 0, first_ipv6: 0, count: 1 });
        rewriter.handle_packet(0, direction, frame);
        rewriter.poll_transmit(0).map(|(_, frame)| frame.bytes().to_vec())
    }

    fn number(bytes: &[u8], at: usize) -> u32 {
        u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }

    fn rewriter(settings: RewriterSettings) -> FrameRewriter {
        FrameRewriter::new(settings, 1, "box")
    }

    const SYN_OPTIONS: [u8; 20] = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
    const SACK_OPTIONS: [u8; 24] = [1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 5, 1, 1, 5, 10, 0, 0, 1, 0, 0, 0, 2, 0];

    #[test]
    fn checksums_are_right_whatever_was_changed() {
        let all = RewriterSettings {
            shifts_sequence_numbers: true,
            shifts_timestamps: true,
            routers: 3,
            zeroes_ip_identification: true,
            maximum_segment_size_bytes: Some(1200),
            window_limit_bytes: Some(9000),
            ..RewriterSettings::default()
        };
        let mut rewriter = rewriter(all);
        let out = through(&mut rewriter, Direction::Up, packet(Direction::Up, 2, 5, 0, &SYN_OPTIONS)).unwrap();
        assert_eq!(internet_checksum(&[&out[..20]]), 0);
        let length = ((out.len() - 20) as u32).to_be_bytes();
        assert_eq!(internet_checksum(&[&out[12..20], &length, &[0, 0, 0, 6], &out[20..]]), 0);
        assert_eq!((out[8], &out[4..6], &out[42..44]), (61, &[0, 0][..], &1200_u16.to_be_bytes()[..]));
        assert!(u16::from_be_bytes([out[34], out[35]]) <= 9000);
        assert_eq!(&out[out.len() - 3..], b"odd");
    }

    #[test]
    fn what_is_shifted_one_way_is_shifted_back_the_other() {
        let settings =
            RewriterSettings { shifts_sequence_numbers: true, shifts_timestamps: true, ..RewriterSettings::default() };
        let mut rewriter = rewriter(settings);
        let up = through(&mut rewriter, Direction::Up, packet(Direction::Up, 0x10, 1000, 0, &SACK_OPTIONS)).unwrap();
        let (sequence_shift, timestamp_shift) = (number(&up, 24).wrapping_sub(1000), number(&up, 44).wrapping_sub(9));
        assert!(sequence_shift != 0 && timestamp_shift != 0);
        let mut options = SACK_OPTIONS;
        options[8..12].copy_from_slice(&timestamp_shift.wrapping_add(5).to_be_bytes());
        options[16..20].copy_from_slice(&sequence_shift.wrapping_add(256).to_be_bytes());
        let answer = packet(Direction::Down, 0x10, 0, sequence_shift.wrapping_add(1000), &options);
        let down = through(&mut rewriter, Direction::Down, answer).unwrap();
        assert_eq!((number(&down, 28), number(&down, 48), number(&down, 56)), (1000, 5, 256));
    }

    #[test]
    fn options_are_stripped_by_filling_their_place() {
        let settings = RewriterSettings {
            strips_timestamps: true,
            strips_sack: true,
            strips_window_scale: true,
            ..RewriterSettings::default()
        };
        let mut rewriter = rewriter(settings);
        let out = through(&mut rewriter, Direction::Up, packet(Direction::Up, 2, 5, 0, &SYN_OPTIONS)).unwrap();
        assert_eq!(&out[40..44], &SYN_OPTIONS[..4]);
        assert!(out[44..60].iter().all(|&byte| byte == NO_OPERATION));
    }

    #[test]
    fn a_limit_counts_with_the_scale_that_both_offered() {
        let mut rewriter =
            rewriter(RewriterSettings { window_limit_bytes: Some(64_000), ..RewriterSettings::default() });
        for direction in [Direction::Up, Direction::Down] {
            through(&mut rewriter, direction, packet(direction, 2, 5, 0, &SYN_OPTIONS)).unwrap();
        }
        let out = through(&mut rewriter, Direction::Up, packet(Direction::Up, 0x10, 6, 6, &[])).unwrap();
        assert_eq!(u16::from_be_bytes([out[34], out[35]]), 64_000 >> 7);
    }

    #[test]
    fn a_packet_at_the_end_of_its_hops_is_lost_and_what_is_no_tcp_passes_as_it_is() {
        let mut rewriter = rewriter(RewriterSettings { routers: 64, ..RewriterSettings::default() });
        assert_eq!(through(&mut rewriter, Direction::Up, packet(Direction::Up, 0x10, 1, 1, &[])), None);
        assert_eq!(rewriter.counts(Direction::Up).lost_packets, 1);
        let mut datagram = packet(Direction::Up, 0x10, 1, 1, &[]);
        datagram[9] = 17;
        assert_eq!(through(&mut rewriter, Direction::Up, datagram.clone()), Some(datagram));
    }

    #[test]
    fn packets_that_are_cut_short_or_strange_do_no_harm() {
        let settings =
            RewriterSettings { shifts_sequence_numbers: true, strips_sack: true, ..RewriterSettings::default() };
        let mut rewriter = rewriter(settings);
        let whole = packet(Direction::Up, 2, 5, 0, &SYN_OPTIONS);
        for length in 0..whole.len() {
            let out = through(&mut rewriter, Direction::Up, whole[..length].to_vec());
            assert_eq!(out.map(|out| out.len()), Some(length));
        }
        for place in 40..60 {
            for value in [0, 1, 2, 255] {
                let mut strange = whole.clone();
                strange[place] = value;
                assert!(through(&mut rewriter, Direction::Up, strange).is_some());
            }
        }
    }
}
