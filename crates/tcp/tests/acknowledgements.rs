//! Transcripts of when and what an end acknowledges. One way takes 50 ms.

use crate::wire::{End, Fate, Wire};
use pepscope_path::{MILLISECOND, SECOND};
use pepscope_tcp::{EcnMode, Recovery, Settings};

fn settings() -> Settings {
    Settings {
        maximum_segment_size: 1000,
        receive_buffer_bytes: 20_000,
        window_scale: None,
        timestamps: false,
        quick_acknowledgements: 0,
        initial_window_segments: 4,
        ..Settings::default()
    }
}

fn opened(settings: Settings) -> Wire {
    let mut wire = Wire::new(settings, settings);
    wire.open();
    wire.byte_time = 1000;
    wire
}

#[test]
fn every_second_segment_is_acknowledged_and_the_last_after_a_while() {
    let mut wire = opened(settings());
    wire.write(End::Server, 1, 0, 3000);
    wire.run(SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 20000
        0.150 server > 1001..2001 ack 1 win 20000
        0.150 server > 2001..3001 ack 1 win 20000 PSH
        0.202 client > 1 ack 2001 win 20000
        0.243 client > 1 ack 3001 win 20000
        ",
    );
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    let mut wire = opened(Settings { quick_acknowledgements: 2, ..settings() });
    wire.write(End::Server, 1, 0, 3000);
    wire.run(SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 20000
        0.150 server > 1001..2001 ack 1 win 20000
        0.150 server > 2001..3001 ack 1 win 20000 PSH
        0.201 client > 1 ack 1001 win 20000
        0.202 client > 1 ack 2001 win 20000
        0.243 client > 1 ack 3001 win 20000
        ",
    );
}

#[test]
fn a_hole_is_reported_at_once_with_the_newest_block_first() {
    let mut wire = opened(settings());
    wire.lose_from_server(&[1, 3]);
    wire.write(End::Server, 1, 0, 4000);
    wire.run(wire.now + 150 * MILLISECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 20000 (lost)
        0.150 server > 1001..2001 ack 1 win 20000
        0.150 server > 2001..3001 ack 1 win 20000 (lost)
        0.150 server > 3001..4001 ack 1 win 20000 PSH
        0.202 client > 1 ack 1 win 20000 sack 1001..2001
        0.204 client > 1 ack 1 win 20000 sack 3001..4001 1001..2001
        ",
    );
}

#[test]
fn a_duplicate_is_reported_first() {
    let mut wire = opened(settings());
    wire.rule =
        Box::new(|from, _, number| if from == End::Server && number == 2 { Fate::Repeat } else { Fate::Deliver });
    wire.write(End::Server, 1, 0, 2000);
    wire.run(SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 20000
        0.150 server > 1001..2001 ack 1 win 20000 PSH (twice)
        0.202 client > 1 ack 2001 win 20000
        0.202 client > 1 ack 2001 win 20000 sack 1001..2001
        ",
    );
}

#[test]
fn contents_do_not_share_a_segment_and_writes_end_in_a_push() {
    let mut wire = opened(settings());
    wire.write(End::Server, 1, 0, 700);
    wire.write(End::Server, 1, 700, 600);
    wire.write(End::Server, 2, 0, 300);
    wire.write(End::Server, 3, 0, 1200);
    wire.run(SECOND);
    wire.expect(
        "
        0.150 server > 1..701 ack 1 win 20000 PSH
        0.150 server > 701..1301 ack 1 win 20000 PSH
        0.150 server > 1301..1601 of 2 ack 1 win 20000 PSH
        0.150 server > 1601..2601 of 3 ack 1 win 20000
        0.150 server > 2601..2801 of 3 ack 1 win 20000 PSH
        0.201 client > 1 ack 1301 win 20000
        0.202 client > 1 ack 2601 win 20000
        0.243 client > 1 ack 2801 win 19800
        ",
    );
}

#[test]
fn a_mark_is_echoed_until_the_sender_has_slowed_down() {
    let mut wire = opened(Settings { ecn: EcnMode::Standard, delayed_acknowledgement: None, ..settings() });
    wire.rule = Box::new(|from, _, number| if from == End::Server && number == 2 { Fate::Mark } else { Fate::Deliver });
    wire.write(End::Server, 1, 0, 8000);
    wire.run(SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 20000
        0.150 server > 1001..2001 ack 1 win 20000 (marked)
        0.150 server > 2001..3001 ack 1 win 20000
        0.150 server > 3001..4001 ack 1 win 20000
        0.201 client > 1 ack 1001 win 20000
        0.202 client > 1 ack 2001 win 20000 ECE
        0.203 client > 1 ack 3001 win 20000 ECE
        0.204 client > 1 ack 4001 win 20000 ECE
        0.251 server > 4001..5001 ack 1 win 20000
        0.251 server > 5001..6001 ack 1 win 20000
        0.302 client > 1 ack 5001 win 20000 ECE
        0.303 client > 1 ack 6001 win 20000 ECE
        0.352 server > 6001..7001 ack 1 win 20000 CWR
        0.352 server > 7001..8001 ack 1 win 20000 PSH
        0.403 client > 1 ack 7001 win 20000
        0.404 client > 1 ack 8001 win 20000
        ",
    );
    assert_eq!(wire.server.statistics().mark_reactions, 1);
    assert_eq!(wire.server.statistics().retransmitted_segments, 0);
}

#[test]
fn each_mark_is_echoed_once_where_every_packet_counts() {
    let settings = Settings { ecn: EcnMode::EveryPacket, delayed_acknowledgement: None, ..settings() };
    let mut wire = opened(settings);
    wire.rule = Box::new(|from, _, number| if from == End::Server && number == 2 { Fate::Mark } else { Fate::Deliver });
    wire.write(End::Server, 1, 0, 4000);
    wire.run(SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 20000
        0.150 server > 1001..2001 ack 1 win 20000 (marked)
        0.150 server > 2001..3001 ack 1 win 20000
        0.150 server > 3001..4001 ack 1 win 20000 PSH
        0.201 client > 1 ack 1001 win 20000
        0.202 client > 1 ack 2001 win 20000 ECE
        0.203 client > 1 ack 3001 win 20000
        0.204 client > 1 ack 4001 win 20000
        ",
    );
}

#[test]
fn the_timer_repairs_what_nothing_else_can_and_backs_off() {
    let mut wire = opened(Settings { recovery: Recovery::NewReno, sack: false, ..settings() });
    wire.rule = Box::new(|from, _, number| if from == End::Server && number <= 3 { Fate::Lose } else { Fate::Deliver });
    wire.write(End::Server, 1, 0, 1000);
    wire.run(5 * SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 20000 PSH (lost)
        0.450 server > 1..1001 ack 1 win 20000 PSH (lost)
        1.050 server > 1..1001 ack 1 win 20000 PSH (lost)
        2.250 server > 1..1001 ack 1 win 20000 PSH
        2.341 client > 1 ack 1001 win 20000
        ",
    );
    assert_eq!(wire.server.congestion_window(), 1000);
    // Which of the four was acknowledged is unknown: the timeout stays backed off (Karn).
    assert_eq!(wire.server.retransmission_timeout(), 2400 * MILLISECOND);
}

#[test]
fn timestamps_identify_the_acknowledged_transmission() {
    let mut wire = opened(Settings { timestamps: true, timestamp_offset: 7, ..settings() });
    wire.rule = Box::new(|from, _, number| if from == End::Server && number <= 3 { Fate::Lose } else { Fate::Deliver });
    wire.write(End::Server, 1, 0, 900);
    wire.run(5 * SECOND);
    assert!(wire.server.is_drained());
    assert!(wire.server.retransmission_timeout() < 400 * MILLISECOND);
}

#[test]
fn a_segment_from_before_the_last_timestamp_is_refused() {
    let mut wire = opened(Settings { timestamps: true, ..settings() });
    wire.write(End::Server, 1, 0, 900);
    wire.run(SECOND);
    let mut old =
        wire.sent.iter().find(|sent| sent.segment.payload_bytes > 0).map(|sent| sent.segment).unwrap_or_default();
    wire.write(End::Server, 1, 900, 900);
    wire.run(2 * SECOND);
    // The sequence numbers of an old segment may be valid again after 2^32 bytes.
    old.sequence = old.sequence.wrapping_add(1800);
    let now = wire.now;
    wire.client.handle_segment(now, &old);
    wire.flush();
    assert_eq!(wire.client.statistics().stale_timestamps, 1);
    assert_eq!(wire.client.bytes_received(), 1800);
}

#[test]
fn recovery_from_reports_sends_only_what_is_missing() {
    let mut wire = opened(Settings { initial_window_segments: 8, delayed_acknowledgement: None, ..settings() });
    wire.lose_from_server(&[1, 3]);
    wire.write(End::Server, 1, 0, 8000);
    wire.run(SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 20000 (lost)
        0.150 server > 1001..2001 ack 1 win 20000
        0.150 server > 2001..3001 ack 1 win 20000 (lost)
        0.150 server > 3001..4001 ack 1 win 20000
        0.150 server > 4001..5001 ack 1 win 20000
        0.150 server > 5001..6001 ack 1 win 20000
        0.150 server > 6001..7001 ack 1 win 20000
        0.150 server > 7001..8001 ack 1 win 20000 PSH
        0.202 client > 1 ack 1 win 20000 sack 1001..2001
        0.204 client > 1 ack 1 win 20000 sack 3001..4001 1001..2001
        0.205 client > 1 ack 1 win 20000 sack 3001..5001 1001..2001
        0.206 client > 1 ack 1 win 20000 sack 3001..6001 1001..2001
        0.207 client > 1 ack 1 win 20000 sack 3001..7001 1001..2001
        0.208 client > 1 ack 1 win 20000 sack 3001..8001 1001..2001
        0.255 server > 1..1001 ack 1 win 20000
        0.256 server > 2001..3001 ack 1 win 20000
        0.257 server > 7001..8001 ack 1 win 20000 PSH
        0.306 client > 1 ack 2001 win 20000 sack 3001..8001
        0.307 client > 1 ack 8001 win 20000
        0.308 client > 1 ack 8001 win 20000 sack 7001..8001
        ",
    );
}
