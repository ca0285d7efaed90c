use super::{AcknowledgementThinning, Rewriter, RewriterSettings};
use crate::packets::packet::{Packet, VoiceFrame};
use crate::packets::segment::{Flags, SackBlocks, Segment, Timestamps};
use pepscope_path::{Direction, Hop, MILLISECOND, NEVER};

fn through(rewriter: &mut Rewriter, direction: Direction, segment: Segment) -> Option<Segment> {
    rewriter.handle_packet(0, direction, Packet::Tcp(segment));
    match rewriter.poll_transmit(0) {
        Some((left, Packet::Tcp(segment))) => {
            assert_eq!(left, direction);
            Some(segment)
        }
        _ => None,
    }
}

fn pure(acknowledgement: u32) -> Segment {
    Segment { flags: Flags::ACK, acknowledgement, window: 100, ..Segment::default() }
}

fn acknowledgements(rewriter: &mut Rewriter) -> Vec<u32> {
    let mut left = Vec::new();
    while let Some((_, Packet::Tcp(segment))) = rewriter.poll_transmit(0) {
        left.push(segment.acknowledgement);
    }
    left
}

#[test]
fn nothing_is_changed_by_default() {
    let mut rewriter = Rewriter::new(RewriterSettings::default(), 1, "rewriter");
    let segment = Segment {
        flags: Flags::SYN,
        sequence: 7,
        window: 60_000,
        maximum_segment_size: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 5, echo_reply: 0 }),
        ip_identification: 9,
        time_to_live: 64,
        ..Segment::default()
    };
    assert_eq!(through(&mut rewriter, Direction::Up, segment), Some(segment));
}

#[test]
fn what_is_shifted_one_way_is_shifted_back_the_other() {
    let settings =
        RewriterSettings { shifts_sequence_numbers: true, shifts_timestamps: true, ..RewriterSettings::default() };
    let mut rewriter = Rewriter::new(settings, 1, "rewriter");
    let data = Segment {
        flags: Flags::ACK,
        sequence: u32::MAX,
        timestamps: Some(Timestamps { value: 50, echo_reply: 0 }),
        ..Segment::default()
    };
    let shifted = through(&mut rewriter, Direction::Down, data).expect("a segment");
    assert_ne!(shifted.sequence, data.sequence);
    let mut sack = SackBlocks::default();
    sack.push(shifted.sequence.wrapping_add(10), shifted.sequence.wrapping_add(20));
    let echo = Segment {
        flags: Flags::ACK,
        acknowledgement: shifted.sequence,
        sack,
        timestamps: shifted.timestamps.map(|stamp| Timestamps { value: 0, echo_reply: stamp.value }),
        ..Segment::default()
    };
    let back = through(&mut rewriter, Direction::Up, echo).expect("a segment");
    assert_eq!(back.acknowledgement, u32::MAX);
    assert_eq!(back.sack.as_slice(), [(9, 19)]);
    assert_eq!(back.timestamps.map(|stamp| stamp.echo_reply), Some(50));
}

#[test]
fn a_first_syn_acknowledges_nothing_that_could_be_shifted() {
    let settings = RewriterSettings { shifts_sequence_numbers: true, ..RewriterSettings::default() };
    let mut rewriter = Rewriter::new(settings, 1, "rewriter");
    let syn = Segment { flags: Flags::SYN, ..Segment::default() };
    assert_eq!(through(&mut rewriter, Direction::Up, syn).map(|segment| segment.acknowledgement), Some(0));
}

#[test]
fn flows_are_shifted_differently() {
    let settings = RewriterSettings { shifts_sequence_numbers: true, ..RewriterSettings::default() };
    let mut rewriter = Rewriter::new(settings, 1, "rewriter");
    let mut shift =
        |flow| through(&mut rewriter, Direction::Up, Segment { flow, ..Segment::default() }).map(|left| left.sequence);
    assert_ne!(shift(0), shift(1));
    assert_eq!(shift(0), shift(0));
}

#[test]
fn options_are_clamped_and_stripped() {
    let settings = RewriterSettings {
        maximum_segment_size_bytes: Some(1360),
        strips_timestamps: true,
        strips_sack: true,
        strips_window_scale: true,
        zeroes_ip_identification: true,
        ..RewriterSettings::default()
    };
    let mut rewriter = Rewriter::new(settings, 1, "rewriter");
    let syn = Segment {
        flags: Flags::SYN,
        maximum_segment_size: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps::default()),
        ip_identification: 4,
        ..Segment::default()
    };
    let bare = Segment { flags: Flags::SYN, maximum_segment_size: Some(1360), ..Segment::default() };
    assert_eq!(through(&mut rewriter, Direction::Up, syn), Some(bare));
    let small = Segment { flags: Flags::SYN, maximum_segment_size: Some(536), ..Segment::default() };
    assert_eq!(through(&mut rewriter, Direction::Up, small), Some(small));
}

#[test]
fn a_window_is_limited_in_bytes_once_both_ends_scale() {
    let settings = RewriterSettings { window_limit_bytes: Some(64_000), ..RewriterSettings::default() };
    let mut rewriter = Rewriter::new(settings, 1, "rewriter");
    let mut window_after = |direction, flags, window_scale| {
        let segment = Segment { flags, window_scale, window: 65_535, ..Segment::default() };
        through(&mut rewriter, direction, segment).map(|left| left.window)
    };
    assert_eq!(window_after(Direction::Up, Flags::SYN, Some(7)), Some(64_000));
    assert_eq!(window_after(Direction::Up, Flags::ACK, None), Some(64_000));
    assert_eq!(window_after(Direction::Down, Flags::SYN | Flags::ACK, Some(0)), Some(64_000));
    assert_eq!(window_after(Direction::Up, Flags::ACK, None), Some(500));
}

#[test]
fn routers_take_their_hops_and_drop_what_is_spent() {
    let settings = RewriterSettings { routers: 3, ..RewriterSettings::default() };
    let mut rewriter = Rewriter::new(settings, 1, "rewriter");
    let fresh = Segment { time_to_live: 64, ..Segment::default() };
    assert_eq!(through(&mut rewriter, Direction::Up, fresh).map(|left| left.time_to_live), Some(61));
    assert_eq!(through(&mut rewriter, Direction::Up, Segment { time_to_live: 3, ..fresh }), None);
    assert_eq!(rewriter.counts(Direction::Up).lost_packets, 1);
}

#[test]
fn one_of_three_acknowledgements_passes() {
    let thinning = AcknowledgementThinning { keep_one_of: 3, hold_ns: MILLISECOND };
    let settings = RewriterSettings { acknowledgement_thinning: Some(thinning), ..RewriterSettings::default() };
    let mut rewriter = Rewriter::new(settings, 1, "rewriter");
    for acknowledgement in 1..=7 {
        rewriter.handle_packet(0, Direction::Up, Packet::Tcp(pure(acknowledgement)));
    }
    assert_eq!(acknowledgements(&mut rewriter), [1, 4, 7]);
    assert_eq!(rewriter.counts(Direction::Up).lost_packets, 4);
    assert_eq!(rewriter.poll_timeout(), NEVER);
}

#[test]
fn a_held_acknowledgement_leaves_in_time_or_before_what_follows_it() {
    let thinning = AcknowledgementThinning { keep_one_of: 9, hold_ns: MILLISECOND };
    let settings = RewriterSettings { acknowledgement_thinning: Some(thinning), ..RewriterSettings::default() };
    let mut rewriter = Rewriter::new(settings, 1, "rewriter");
    for acknowledgement in [1, 2] {
        rewriter.handle_packet(0, Direction::Up, Packet::Tcp(pure(acknowledgement)));
    }
    assert_eq!(acknowledgements(&mut rewriter), [1]);
    assert_eq!(rewriter.poll_timeout(), MILLISECOND);
    rewriter.handle_timeout(MILLISECOND);
    assert_eq!(acknowledgements(&mut rewriter), [2]);
    for acknowledgement in [3, 4, 4] {
        rewriter.handle_packet(2 * MILLISECOND, Direction::Up, Packet::Tcp(pure(acknowledgement)));
    }
    assert_eq!(acknowledgements(&mut rewriter), [4, 4], "a duplicate is never swallowed");
    let congested = Segment { flags: Flags::ACK | Flags::ECE, ..pure(6) };
    for segment in [pure(5), congested] {
        rewriter.handle_packet(2 * MILLISECOND, Direction::Up, Packet::Tcp(segment));
    }
    assert_eq!(acknowledgements(&mut rewriter), [5, 6]);
    assert_eq!(rewriter.poll_timeout(), NEVER);
}

#[test]
fn other_packets_pass_untouched() {
    let mut rewriter = Rewriter::new(RewriterSettings { routers: 9, ..RewriterSettings::default() }, 1, "rewriter");
    let voice = Packet::Voice(VoiceFrame { user: 0, sequence: 1, payload_bytes: 22 });
    rewriter.handle_packet(0, Direction::Down, voice);
    assert_eq!(rewriter.poll_transmit(0), Some((Direction::Down, voice)));
}
