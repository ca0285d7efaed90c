//! Properties of the segments of two captures, laid over each other and compared.

use pepscope_evidence::packets::{flag, mark, Packets, NO_ACKNOWLEDGEMENT};
use pepscope_evidence::segments::columns::{Sampling, Vantage};
use pepscope_evidence::segments::pair::{KnownOffsets, Limits, PairSegments};
use proptest::collection::vec;
use proptest::prelude::*;

/// The widest gap between two IP identifications in which a third shows who sent it.
const MOST_SKIPPED: i64 = 3276;
const LIMITS: Limits =
    Limits { sampling: Sampling { every: 1, fewest: 0 }, fewest_joined: 8, copies: 8, majority: 0.5 };

/// A transfer down: a data segment, then its acknowledgement, and so on.
#[derive(Clone, Debug)]
struct Transfer {
    direction: Vec<u8>,
    sequence_offset: Vec<i64>,
    acknowledgement_offset: Vec<i64>,
    payload_bytes: Vec<u32>,
    flags: Vec<u16>,
    numbers: Vec<u32>,
    ip_id: Vec<u16>,
    marks: Vec<u16>,
    times: Vec<i64>,
    nothing: (Vec<u32>, Vec<u8>),
}

impl Transfer {
    /// Offsets begin at `up` and `down` in the two streams.
    fn new(lengths: &[u32], [up, down]: [i64; 2]) -> Self {
        let count = 2 * lengths.len();
        let ends: Vec<i64> = lengths
            .iter()
            .scan(down, |end, &length| {
                *end += i64::from(length);
                Some(*end)
            })
            .collect();
        let both = |data: &dyn Fn(usize) -> i64, pure: &dyn Fn(usize) -> i64| -> Vec<i64> {
            (0..count).map(|row| if row % 2 == 0 { data(row / 2) } else { pure(row / 2) }).collect()
        };
        Self {
            direction: (0..count).map(|row| u8::from(row % 2 == 0)).collect(),
            sequence_offset: both(&|place| ends[place] - i64::from(lengths[place]), &|_| up),
            acknowledgement_offset: both(&|_| up, &|place| ends[place]),
            payload_bytes: (0..count).map(|row| if row % 2 == 0 { lengths[row / 2] } else { 0 }).collect(),
            flags: vec![flag::ACK; count],
            numbers: (0..count as u32).collect(),
            ip_id: (0..count as u16).collect(),
            marks: vec![mark::HAS_TIMESTAMPS; count],
            times: (0..count as i64).collect(),
            nothing: (vec![0; count], vec![64; count]),
        }
    }

    fn vantage(&self) -> Vantage<'_> {
        let packets = Packets {
            time_ns: &self.times,
            direction: &self.direction,
            sequence_offset: &self.sequence_offset,
            acknowledgement_offset: &self.acknowledgement_offset,
            payload_bytes: &self.payload_bytes,
            window_bytes: &self.nothing.0,
            flags: &self.flags,
            tsval: &self.numbers,
            tsecr: &self.nothing.0,
            ip_id: &self.ip_id,
            ttl: &self.nothing.1,
            payload_hash: &self.nothing.0,
            marks: &self.marks,
            round_trip_time_ns: &self.times,
            ..Packets::default()
        };
        assert!(packets.is_even());
        Vantage { packets, ..Default::default() }
    }
}

fn unknown() -> KnownOffsets {
    KnownOffsets { shifts: [0, 0], supported: [false, false] }
}

proptest! {
    #[test]
    fn the_same_packets_meet_wherever_their_streams_lie(
        lengths in vec(1_u32..1449, 8..40),
        offsets in (-1_i64 << 40..1 << 40, -1_i64 << 40..1 << 40),
    ) {
        let client = Transfer::new(&lengths, [0, 0]);
        let server = Transfer::new(&lengths, offsets.into());
        let found = PairSegments::align(&client.vantage(), &server.vantage(), unknown(), LIMITS).unwrap();
        let down = found.compare(1, MOST_SKIPPED);
        let data = down.data.unwrap();
        prop_assert_eq!([data.partners, data.whole, data.stamps_equal, data.ip_ids_equal], [lengths.len(); 4]);
        let up = found.compare(0, MOST_SKIPPED);
        let positions = up.acknowledgements.positions.unwrap();
        prop_assert_eq!([positions.emitted, positions.arrived, positions.hits], [lengths.len(); 3]);
        prop_assert_eq!(up.acknowledgements.fields.partners, lengths.len());
        prop_assert_eq!((up.places.both, up.places.neither), (lengths.len(), 0));
        prop_assert_eq!(up.emitted_acknowledgements, lengths.len());
        prop_assert_eq!((up.uncovered, up.uncovered_reverse), (0.0, 0.0));
    }

    #[test]
    fn packets_beside_their_like_give_no_other_offsets(
        lengths in vec(1_u32..1449, 8..40), changed in 0_usize..160, window in 0_u32..2,
    ) {
        let client = Transfer::new(&lengths, [0, 0]);
        let mut server = client.clone();
        if let Some(row) = (changed < 2 * lengths.len()).then_some(changed) {
            (server.numbers[row], server.nothing.0[row]) = (7, window);
        }
        // Of streams that nothing supports offsets are always looked for.
        let found = |supported| {
            let known = KnownOffsets { supported, ..unknown() };
            let segments = PairSegments::align(&client.vantage(), &server.vantage(), known, LIMITS).unwrap();
            [0, 1].map(|way| segments.compare(way, MOST_SKIPPED))
        };
        prop_assert_eq!(found([true, true]), found([false, false]));
    }

    #[test]
    fn nothing_follows_a_reset_and_handshakes_are_left_out(lengths in vec(1_u32..1449, 3..40), reset in 0_usize..80) {
        let mut transfer = Transfer::new(&lengths, [0, 0]);
        transfer.flags[0] |= flag::SYN;
        transfer.flags[2] |= flag::RST;
        transfer.acknowledgement_offset[1] = NO_ACKNOWLEDGEMENT;
        let plain = Sampling { every: 1, fewest: 0 };
        let vantage = transfer.vantage();
        let [up, down] = vantage.read([0, 0], plain);
        prop_assert_eq!((up.acknowledgements.len(), down.data.len()), (lengths.len() - 1, lengths.len() - 2));
        prop_assert!(up.data.is_empty() && down.acknowledgements.is_empty());
        // What goes down goes to the host that has reset, after that.
        let reset_times_ns = [Some(reset as i64), None];
        let [up_after, down_after] = Vantage { reset_times_ns, ..vantage }.read([0, 0], plain);
        prop_assert_eq!(up, up_after);
        let kept = down.data.iter().filter(|segment| segment.tsval as usize <= reset).count();
        prop_assert_eq!(down_after.data.len(), kept);
    }

    #[test]
    fn samples_of_two_captures_hold_the_same_regions(
        count in 100_usize..400,
        offset in -1_i64 << 40..1 << 40,
        every in 2_u64..9,
    ) {
        let lengths = vec![60_000; count];
        let (client, server) = (Transfer::new(&lengths, [0, 0]), Transfer::new(&lengths, [0, offset]));
        let sampling = Sampling { every, fewest: 1 };
        let [_, near] = client.vantage().read([0, 0], sampling);
        let [_, far] = server.vantage().read([0, -offset], sampling);
        prop_assert_eq!(&near, &far);
        prop_assert!(near.data.len() < count);
    }

    #[test]
    fn data_that_a_capture_lacks_is_uncovered(lengths in vec(1_u32..1449, 3..40), gone in 1_usize..39) {
        let gone = 1 + gone % (lengths.len() - 2);
        let whole = Transfer::new(&lengths, [0, 0]);
        let mut lacking = whole.clone();
        lacking.flags[2 * gone] |= flag::RST;
        let known = KnownOffsets { shifts: [0, 0], supported: [true, true] };
        let found = PairSegments::align(&whole.vantage(), &lacking.vantage(), known, LIMITS).unwrap();
        let total: u32 = lengths.iter().sum();
        let down = found.compare(1, MOST_SKIPPED);
        prop_assert_eq!(down.uncovered, f64::from(lengths[gone]) / f64::from(total));
        prop_assert_eq!(down.data.unwrap().partners, lengths.len() - 1);
    }
}

#[test]
fn a_stream_aligned_alone_is_compared_without_the_other() {
    let (client, mut server) = (Transfer::new(&[100; 9], [0, 0]), Transfer::new(&[100; 9], [7, 0]));
    server.marks.fill(0);
    server.ip_id.fill(0);
    let known = KnownOffsets { shifts: [0, 0], supported: [false, true] };
    let found = PairSegments::align(&client.vantage(), &server.vantage(), known, LIMITS).unwrap();
    assert_eq!(found.compare(1, MOST_SKIPPED).data.unwrap().whole, 9);
    assert_eq!(found.compare(0, MOST_SKIPPED).acknowledgements.fields.partners, 9);
    assert!(PairSegments::align(&client.vantage(), &server.vantage(), unknown(), LIMITS).is_none());
}

#[test]
fn copies_sent_after_the_end_of_a_capture_are_left_out_if_it_holds_a_packet_of_the_other_host() {
    let lengths = [1000; 10];
    let arrived = Transfer { numbers: vec![77; 20], ip_id: (1000..1020).collect(), ..Transfer::new(&lengths, [0, 0]) };
    let known = KnownOffsets { supported: [true, true], ..unknown() };
    for (of_syns, compared) in [(0, 0), (1, lengths.len())] {
        let mut emitted = Transfer::new(&lengths, [0, 0]);
        for row in (1..20).step_by(2) {
            (emitted.flags[row], emitted.direction[row]) = (flag::SYN | flag::ACK, of_syns);
        }
        let found = PairSegments::align(&arrived.vantage(), &emitted.vantage(), known, LIMITS).unwrap();
        assert_eq!(found.compare(1, MOST_SKIPPED).data.map_or(0, |data| data.partners), compared);
    }
}
