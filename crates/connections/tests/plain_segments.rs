//! The short path for packets that only continue a connection does to it what the long one does.

use crate::transcript::*;
use pepscope_connections::{Analysis, ChoosePieces, Connections, Offered, Payload, Settings};
use pepscope_wire::segment::{flag, Segment, TcpOptions, TunnelKind};
use pepscope_wire::PlainSegment;
use proptest::prelude::*;

/// What one side does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Data {
        length: u32,
    },
    /// Leaves out so many bytes before its data.
    Gap {
        bytes: u32,
        length: u32,
    },
    /// Sends bytes from so far back, or acknowledges from there.
    Again {
        back: u32,
        length: u32,
    },
    Acknowledge {
        back: u32,
    },
    Window {
        window: u16,
    },
    KeepAlive,
    /// The very same packet once more.
    Copy,
    Flags {
        flags: u16,
    },
    Anything {
        sequence: u32,
        acknowledgement: u32,
        length: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let length = || prop_oneof![Just(1_u32), 1..1500_u32];
    let flags =
        prop_oneof![Just(SYN), Just(SYN_ACK), Just(FIN), Just(RST), Just(0), Just(ACK | flag::PSH), 0..0x200_u16];
    prop_oneof![
        12 => length().prop_map(|length| Step::Data { length }),
        10 => prop_oneof![3 => Just(0), 1 => 0..3000_u32].prop_map(|back| Step::Acknowledge { back }),
        1 => (prop_oneof![1..3000_u32, any::<u32>()], length()).prop_map(|(bytes, length)| Step::Gap { bytes, length }),
        1 => (1..3000_u32, length()).prop_map(|(back, length)| Step::Again { back, length }),
        1 => prop_oneof![Just(0_u16), any::<u16>()].prop_map(|window| Step::Window { window }),
        1 => Just(Step::KeepAlive),
        1 => Just(Step::Copy),
        1 => flags.prop_map(|flags| Step::Flags { flags }),
        1 => (any::<u32>(), any::<u32>(), length())
            .prop_map(|(sequence, acknowledgement, length)| Step::Anything { sequence, acknowledgement, length }),
    ]
}

/// How a connection is captured: with its handshake, with timestamps, with IP identifications.
type Manner = (bool, bool, bool);

fn conversation(manner: Manner, steps: &[(bool, i64, Step)]) -> Vec<Segment<'static>> {
    let (has_handshake, has_timestamps, is_numbered) = manner;
    let mut segments = if has_handshake { NUMBERS.handshake() } else { Vec::new() };
    let (mut sent, mut windows, mut time_us) = ([0_i64; 2], [500_u16; 2], 25_000);
    for (number, &(is_up, after_us, step)) in steps.iter().enumerate() {
        time_us += after_us;
        let own = usize::from(!is_up);
        let make = |flags, offset, acknowledged, length| {
            let segment = if is_up { up } else { down };
            segment(time_us, flags, offset, acknowledged, length)
        };
        let (next, other) = (sent[own], sent[1 - own]);
        let mut segment = match step {
            Step::Data { length } => {
                sent[own] += i64::from(length);
                make(ACK, next, other, length)
            }
            Step::Gap { bytes, length } => {
                sent[own] += i64::from(bytes) + i64::from(length);
                make(ACK, next + i64::from(bytes), other, length)
            }
            Step::Again { back, length } => make(ACK, next - i64::from(back), other, length),
            Step::Acknowledge { back } => make(ACK, next, other - i64::from(back), 0),
            Step::Window { window } => {
                windows[own] = window;
                make(ACK, next, other, 0)
            }
            Step::KeepAlive => make(ACK, next - 1, other, 0),
            Step::Copy => match segments.last() {
                Some(last) => Segment { time_ns: time_us * 1000, ..*last },
                None => make(ACK, next, other, 0),
            },
            Step::Flags { flags } => make(flags, next, other, 0),
            Step::Anything { sequence, acknowledgement, length } => {
                Segment { sequence, acknowledgement, ..make(ACK, next, other, length) }
            }
        };
        if !matches!(step, Step::Copy) {
            segment.window = windows[own];
            segment.ip_id = if is_numbered { number as u16 + 1 } else { 0 };
            if has_timestamps {
                segment = timestamps(segment, time_us as u32 / 1000, time_us as u32 / 2000);
            }
        }
        segments.push(segment);
    }
    for (index, segment) in segments.iter_mut().enumerate() {
        segment.frame_index = index as u64;
    }
    segments
}

/// The segment as a plain one, where it is one.
fn plain<'a>(segment: &Segment<'a>) -> Option<PlainSegment<'a>> {
    let timestamps = segment.options.timestamps;
    let decisive = flag::SYN | flag::FIN | flag::RST | flag::ACK;
    let is_plain = segment.flags & decisive == flag::ACK
        && segment.options == TcpOptions { timestamps, ..TcpOptions::default() }
        && segment.tunnel.kind == TunnelKind::None;
    let halves = |address: [u8; 16]| {
        let whole = u128::from_be_bytes(address);
        [(whole >> 64) as u64, whole as u64]
    };
    is_plain.then(|| PlainSegment {
        frame_index: segment.frame_index,
        time_ns: segment.time_ns,
        source: halves(segment.source),
        destination: halves(segment.destination),
        source_port: segment.source_port,
        destination_port: segment.destination_port,
        ttl: segment.ttl,
        ip_id: segment.ip_id,
        flags: segment.flags,
        sequence: segment.sequence,
        acknowledgement: segment.acknowledgement,
        window: segment.window,
        payload_length: segment.payload_length,
        payload: segment.payload,
        timestamps,
    })
}

/// The connections by the long path alone and with the short one, and how many packets that took.
fn both(segments: &[Segment<'_>]) -> (Connections, Connections, usize) {
    by_both(Settings { columns: true, payload: Payload::Sample }, segments)
}

fn by_both(settings: Settings, segments: &[Segment<'_>]) -> (Connections, Connections, usize) {
    let (mut long, mut short) = (Analysis::new(settings), Analysis::new(settings));
    let mut taken = 0;
    for segment in segments {
        long.push(segment);
        if plain(segment).is_some_and(|plain| short.push_plain::<true>(&plain)) {
            taken += 1;
        } else {
            short.push(segment);
        }
    }
    (long.finish(), short.finish(), taken)
}

fn samples(connections: &Connections) -> Vec<Vec<(i64, Vec<u8>)>> {
    let Some(pieces) = connections.payload() else { unreachable!("payload was asked for") };
    (0..connections.len() * 2)
        .map(|owner| pieces.of(owner / 2, owner % 2).map(|(offset, bytes)| (offset, bytes.to_vec())).collect())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn both_paths_give_the_same(
        manner in any::<Manner>(),
        steps in prop::collection::vec((any::<bool>(), prop_oneof![0..50_i64, 0..200_000_i64], step()), 0..150),
    ) {
        let (long, short, _) = both(&conversation(manner, &steps));
        prop_assert_eq!(long.summaries().collect::<Vec<_>>(), short.summaries().collect::<Vec<_>>());
        prop_assert_eq!(columns(&long), columns(&short));
        prop_assert_eq!(samples(&long), samples(&short));
    }
}

#[test]
fn a_transfer_takes_the_short_path() {
    let transfer: Vec<_> = (0..1000)
        .map(|number| match number % 3 {
            2 => (false, 10, Step::Acknowledge { back: 0 }),
            _ => (true, 10, Step::Data { length: 1448 }),
        })
        .collect();
    for manner in [(true, true, true), (true, false, false), (false, true, true)] {
        let (_, _, taken) = both(&conversation(manner, &transfer));
        let expected = if manner.0 { 998 } else { 936 };
        assert!(taken >= expected, "{taken} of 1000 packets, {manner:?}");
    }
}

/// The first packet of a side says more than that it continues, however late it comes.
#[test]
fn a_side_may_be_seen_late() {
    let mut steps = vec![(true, 10, Step::Data { length: 1000 }); 80];
    steps.extend([(false, 10, Step::Acknowledge { back: 0 }), (false, 10, Step::Data { length: 10 })]);
    let (long, short, taken) = both(&conversation((false, true, true), &steps));
    assert!(taken > 10, "{taken} packets");
    assert_eq!(long.summaries().collect::<Vec<_>>(), short.summaries().collect::<Vec<_>>());
    assert_eq!(columns(&long), columns(&short));
}

/// Chooses every second packet with payload, so that one which is not offered changes what is kept.
#[derive(Default)]
struct Halves(u64);

impl ChoosePieces for Halves {
    fn is_wanted(&mut self, connection: usize, side: usize, offered: &Offered<'_>) -> bool {
        let said = format!("{connection} {side} {offered:?}");
        self.0 = said.bytes().fold(self.0, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        (self.0 ^ self.0 >> 32) % 2 == 0
    }
}

proptest! {
    #[test]
    fn both_paths_offer_the_same_to_a_choice(
        manner in any::<Manner>(),
        steps in prop::collection::vec((any::<bool>(), prop_oneof![0..50_i64, 0..200_000_i64], step()), 0..150),
    ) {
        let chosen = Payload::Chosen(|| Box::new(Halves::default()));
        let (long, short, _) = by_both(Settings { columns: true, payload: chosen }, &conversation(manner, &steps));
        prop_assert_eq!(samples(&long), samples(&short));
    }
}
