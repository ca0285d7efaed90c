//! Streams cut, shuffled, repeated and lost at random: counts and offsets stay exact, and nothing panics.

use crate::transcript::*;
use pepscope_connections::{json, Analysis, Payload, Settings};
use pepscope_wire::segment::{Segment, TcpOptions, Tunnel, TunnelKind};
use proptest::prelude::*;

/// A segment of the stream, and what happens to it.
#[derive(Clone, Copy, Debug)]
struct Fate {
    length: u32,
    lost: bool,
    repeated: bool,
    delayed_by: usize,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = (1..3000_u32, prop::bool::weighted(0.15), prop::bool::weighted(0.1), 0..6_usize)
        .prop_map(|(length, lost, repeated, delayed_by)| Fate { length, lost, repeated, delayed_by });
    prop::collection::vec(fate, 1..200)
}

proptest! {
    #[test]
    fn counts_and_offsets_are_exact(client in any::<u32>(), server in any::<u32>(), fates in fates()) {
        let numbers = Numbers { client, server };
        let mut sent = Vec::new();
        let mut offset = 0_i64;
        for (index, fate) in fates.iter().enumerate() {
            sent.push((index + fate.delayed_by, offset, *fate));
            if fate.repeated && !fate.lost {
                sent.push((index + fate.delayed_by + 3, offset, *fate));
            }
            offset += i64::from(fate.length);
        }
        sent.sort_by_key(|&(position, ..)| position);
        let captured: Vec<_> = sent.iter().filter(|(_, _, fate)| !fate.lost).collect();

        let mut segments = numbers.handshake();
        for (number, (_, offset, fate)) in captured.iter().enumerate() {
            // Further apart than copies are.
            segments.push(numbers.up(30_000 + number as i64 * 2_000, ACK, *offset, 0, fate.length));
        }
        segments.push(numbers.down(900_000, ACK, 0, offset, 0));
        let connections = analyse(&segments);

        let offsets: Vec<i64> = captured.iter().map(|&&(_, offset, _)| offset).collect();
        prop_assert_eq!(&columns(&connections).sequence_offset[3..3 + offsets.len()], &offsets[..]);
        prop_assert_eq!(columns(&connections).acknowledgement_offset.last().copied(), Some(offset));
        let Some(summary) = connections.summary(0) else { return Err(TestCaseError::fail("no connection")) };
        let lost: u64 = fates.iter().filter(|fate| fate.lost).map(|fate| u64::from(fate.length)).sum();
        let highest = captured.iter().map(|(_, offset, fate)| offset + i64::from(fate.length)).max().unwrap_or(0);
        // A single missing byte at the very end cannot be told from an unseen FIN.
        let lost = if offset - highest == 1 { lost - 1 } else { lost };
        prop_assert_eq!(summary.up.missed_bytes, lost);
        prop_assert_eq!(summary.up.stream_bytes, highest as u64);
        prop_assert_eq!(summary.up.data_packets, captured.len() as u64);
        prop_assert_eq!(summary.up.payload_bytes, captured.iter().map(|(_, _, fate)| u64::from(fate.length)).sum::<u64>());
        let again = fates.iter().filter(|fate| fate.repeated && !fate.lost && fate.length > 1).count() as u64;
        let single = fates.iter().filter(|fate| fate.length == 1).count() as u64;
        let late = summary.up.retransmitted_packets + summary.up.reordered_packets;
        prop_assert!(summary.up.retransmitted_packets + single >= again && late <= captured.len() as u64);
    }

    #[test]
    fn nothing_panics_and_every_packet_is_counted(packets in prop::collection::vec(any_segment(), 0..300)) {
        let mut analysis = Analysis::new(Settings { columns: true, payload: Payload::Sample });
        for (index, segment) in packets.iter().enumerate() {
            analysis.push(&Segment { frame_index: index as u64, ..*segment });
        }
        let connections = analysis.finish();
        prop_assert_eq!(connections.packet_count(), packets.len() as u64);
        prop_assert_eq!(columns(&connections).starts.last().copied(), Some(packets.len()));
        let text = json::connections_json(connections.summaries());
        prop_assert_eq!(text.first(), Some(&b'['));
        prop_assert_eq!(text.iter().filter(|&&byte| byte == b'{').count(), connections.len() * 3);
        let mut times: Vec<i64> = packets.iter().map(|segment| segment.time_ns).collect();
        let mut kept = columns(&connections).time_ns.clone();
        times.sort_unstable();
        kept.sort_unstable();
        prop_assert_eq!(times, kept);
    }
}

/// Numbers that meet often: near each other, near the wrap, or anywhere.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0..5000_u32, 1 => (u32::MAX - 3000)..=u32::MAX, 1 => any::<u32>()]
}

fn any_segment() -> impl Strategy<Value = Segment<'static>> {
    let place = (0..3_u8, any::<bool>(), any::<bool>(), prop_oneof![0..1_000_000_i64, any::<i64>()]);
    let numbers = (number(), number(), prop_oneof![Just(0_u16), any::<u16>()], 0..0x200_u16);
    let data = (prop_oneof![4 => 0..3000_u32, 1 => any::<u32>()], 0..400_u32, 0..3_u16);
    let options = (
        prop::option::of((0..50_u32, 0..50_u32)),
        prop::option::of(any::<u8>()),
        any::<[(u32, u32); 4]>(),
        prop_oneof![3 => Just(0_u8), 1 => 0..=4_u8],
    );
    (place, numbers, data, options).prop_map(
        |((host, up, v6, time_ns), numbers, (payload_length, captured, ip_id), (timestamps, scale, blocks, count))| {
            let (sequence, acknowledgement, window, flags) = numbers;
            let base = if up { self::up(0, flags, 0, 0, 0) } else { down(0, flags, 0, 0, 0) };
            let mut base = Segment { sequence, acknowledgement, window, flags, time_ns, payload_length, ip_id, ..base };
            base.payload = payload(i64::from(sequence), captured.min(payload_length));
            base.options = TcpOptions {
                maximum_segment_size: scale.map(u16::from),
                window_scale: scale,
                sack_permitted: count > 2,
                timestamps,
                sack_blocks: blocks,
                sack_count: count,
            };
            base.options_raw = payload(3, u32::from(count) * 10);
            base.source_port ^= u16::from(host);
            base.destination_port ^= u16::from(host);
            if v6 {
                base.ip_version = 6;
                base.source[0] = 0x20;
                base.destination[0] = 0x20;
                base.tunnel = Tunnel { kind: TunnelKind::GtpU, identifier: u32::from(count) };
            }
            base
        },
    )
}

/// What in-memory and partitioned analysis must agree on, connection by connection.
#[test]
fn partitions_give_what_the_whole_gives() {
    use pepscope_connections::spill::Spill;
    use pepscope_connections::stored::SummaryStore;
    use proptest::strategy::ValueTree;
    let settings = Settings { columns: true, payload: Payload::Sample };
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for partitions in [1, 2, 7] {
        let packets = prop::collection::vec(any_segment(), 600).new_tree(&mut runner);
        let Ok(packets) = packets.map(|tree| tree.current()) else { unreachable!() };
        let mut times: Vec<i64> = packets.iter().map(|segment| segment.time_ns).collect();
        times.sort_unstable();
        let mut whole = Analysis::new(settings);
        let Ok(mut spill) = Spill::create(None, partitions) else { unreachable!() };
        for (index, segment) in packets.iter().enumerate() {
            // Other hosts too, so that there is something to spread.
            let mut segment = Segment { frame_index: index as u64, time_ns: times[index], ..*segment };
            segment.source_port ^= (index % 5) as u16 * 8;
            segment.destination_port ^= (index % 5) as u16 * 8;
            whole.push(&segment);
            assert!(spill.push(&segment).is_ok());
        }
        let whole = whole.finish();
        let Ok(parts) = spill.finish() else { unreachable!() };
        assert_eq!(
            (parts.len(), (0..partitions).map(|part| parts.segment_count(part)).sum::<u64>()),
            (partitions, 600)
        );
        let Ok(analysed) = (0..partitions).map(|part| parts.analyse(part, settings)).collect::<Result<Vec<_>, _>>()
        else {
            unreachable!()
        };
        let Ok(mut store) = SummaryStore::create(None) else { unreachable!() };
        for (number, part) in analysed.iter().enumerate() {
            assert!(store.add(number as u16, part).is_ok());
        }
        let Ok(stored) = store.finish() else { unreachable!() };
        assert_eq!(stored.len(), whole.len());
        assert!(whole.len() > 20);
        for index in 0..stored.len() {
            let Some((part, local)) = stored.place(index) else { unreachable!() };
            let Ok(Some(bytes)) = stored.bytes(index) else { unreachable!() };
            assert_eq!(stored.decode(&bytes).ok(), whole.summary(index));
            assert!(stored.decode(&bytes[..bytes.len() - 1]).is_err());
            assert_eq!(rows(&analysed[part], local), rows(&whole, index));
        }
        assert_eq!((stored.place(stored.len()), stored.bytes(stored.len()).ok()), (None, Some(None)));
    }
}

/// Segments of known connections go on; new ones are refused and leave no trace.
#[test]
fn push_known_takes_no_new_connections() {
    let mut analysis = Analysis::new(Settings::default());
    let segments = [up(0, ACK, 0, 0, 10), down(1, ACK, 0, 10, 10)];
    assert!(!analysis.push_known(&segments[0]));
    analysis.push(&segments[0]);
    assert!(analysis.push_known(&segments[1]));
    let other = Segment { source_port: 9, ..segments[0] };
    assert!(!analysis.push_known(&other));
    assert_eq!(analysis.finish().packet_count(), 2);
}

fn rows(connections: &pepscope_connections::Connections, index: usize) -> String {
    let columns = columns(connections);
    let Some(pieces) = connections.payload() else { unreachable!() };
    let first = columns.starts[index];
    let blocks: Vec<_> = columns
        .sack_blocks_of(index)
        .iter()
        .map(|block| (block.packet as usize - first, block.left, block.right))
        .collect();
    let rows: Vec<_> = (first..columns.starts[index + 1])
        .map(|row| {
            (
                (columns.time_ns[row], columns.direction[row], columns.sequence_offset[row]),
                (columns.acknowledgement_offset[row], columns.payload_bytes[row], columns.window_bytes[row]),
                (columns.flags[row], columns.tsval[row], columns.tsecr[row], columns.ip_id[row], columns.ttl[row]),
                (columns.payload_hash[row], columns.marks[row], columns.round_trip_time_ns[row]),
            )
        })
        .collect();
    let payload: Vec<Vec<_>> = (0..2).map(|direction| pieces.of(index, direction).collect()).collect();
    format!("{rows:?} {blocks:?} {payload:?}")
}

#[test]
fn a_directory_that_cannot_hold_files_is_an_error() {
    let Err(error) = pepscope_connections::spill::Spill::create(Some("/nonexistent/directory".as_ref()), 2) else {
        unreachable!("there is no such directory")
    };
    assert!(error.to_string().starts_with("cannot create a temporary file in /nonexistent/directory: "));
}
