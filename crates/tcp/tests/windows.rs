//! Transcripts of receive windows: closed ones, probes, silly ones. One way takes 50 ms.

use crate::wire::{End, Fate, Wire};
use pepscope_path::{MILLISECOND, SECOND};
use pepscope_tcp::{Settings, State};

fn opened() -> Wire {
    let settings = Settings {
        maximum_segment_size: 1000,
        receive_buffer_bytes: 3000,
        window_scale: None,
        timestamps: false,
        sack: false,
        delayed_acknowledgement: None,
        ..Settings::default()
    };
    let mut wire = Wire::new(settings, settings);
    wire.open();
    wire.reads = false;
    wire
}

#[test]
fn a_closed_window_is_probed_ever_later_and_reading_opens_it() {
    let mut wire = opened();
    wire.write(End::Server, 1, 0, 5000);
    wire.run(3 * SECOND);
    wire.read(End::Client);
    wire.run(5 * SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 3000
        0.150 server > 1001..2001 ack 1 win 3000
        0.150 server > 2001..3001 ack 1 win 3000
        0.200 client > 1 ack 1001 win 2000
        0.200 client > 1 ack 2001 win 1000
        0.200 client > 1 ack 3001 win 0
        0.500 server > 3001..3002 ack 1 win 3000
        0.550 client > 1 ack 3001 win 0
        1.000 server > 3001..3002 ack 1 win 3000
        1.050 client > 1 ack 3001 win 0
        2.000 server > 3001..3002 ack 1 win 3000
        2.050 client > 1 ack 3001 win 0
        3.000 client > 1 ack 3001 win 3000
        3.050 server > 3001..4001 ack 1 win 3000
        3.050 server > 4001..5001 ack 1 win 3000 PSH
        3.100 client > 1 ack 4001 win 2000
        3.100 client > 1 ack 5001 win 1000
        ",
    );
}

#[test]
fn a_lost_window_update_is_found_by_a_probe() {
    let mut wire = opened();
    wire.write(End::Server, 1, 0, 4000);
    wire.run(SECOND);
    wire.rule = Box::new(|_, _, _| Fate::Lose);
    wire.read(End::Client);
    wire.rule = Box::new(|_, _, _| Fate::Deliver);
    wire.run(5 * SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 3000
        0.150 server > 1001..2001 ack 1 win 3000
        0.150 server > 2001..3001 ack 1 win 3000
        0.200 client > 1 ack 1001 win 2000
        0.200 client > 1 ack 2001 win 1000
        0.200 client > 1 ack 3001 win 0
        0.500 server > 3001..3002 ack 1 win 3000
        0.550 client > 1 ack 3001 win 0
        1.000 server > 3001..3002 ack 1 win 3000
        1.000 client > 1 ack 3001 win 3000 (lost)
        1.050 client > 1 ack 3002 win 2999
        1.100 server > 3002..4001 ack 1 win 3000 PSH
        1.150 client > 1 ack 4001 win 2000
        ",
    );
    assert!(wire.server.is_drained());
}

#[test]
fn a_slow_reader_opens_the_window_in_whole_segments() {
    let mut wire = opened();
    wire.write(End::Server, 1, 0, 5000);
    wire.run(wire.now + 200 * MILLISECOND);
    wire.transcript.clear();
    for _ in 0..8 {
        wire.client.read(250);
        wire.flush();
        wire.run(wire.now + 10 * MILLISECOND);
    }
    wire.run(wire.now + 100 * MILLISECOND);
    wire.expect(
        "
        0.380 client > 1 ack 3001 win 1000
        0.420 client > 1 ack 3001 win 2000
        0.430 server > 3001..4001 ack 1 win 3000
        0.470 server > 4001..5001 ack 1 win 3000 PSH
        0.480 client > 1 ack 4001 win 1000
        0.520 client > 1 ack 5001 win 0
        ",
    );
}

#[test]
fn a_fast_reader_sends_no_window_updates() {
    let settings = Settings { receive_buffer_bytes: 60_000, quick_acknowledgements: 0, ..Settings::default() };
    let mut wire = Wire::new(settings, settings);
    wire.open();
    wire.write(End::Server, 1, 0, 2_000_000);
    wire.run(20 * SECOND);
    assert!(wire.server.is_drained());
    let sent = wire.server.statistics().data_segments_sent;
    let acknowledgements = wire.client.statistics().segments_sent;
    assert!(acknowledgements <= sent / 2 + 60, "{acknowledgements} ACKs for {sent} segments");
}

#[test]
fn a_peer_that_answers_no_probe_is_given_up() {
    let mut wire = opened();
    wire.write(End::Server, 1, 0, 5000);
    wire.run(SECOND);
    wire.rule = Box::new(|_, _, _| Fate::Lose);
    wire.run(3600 * SECOND);
    assert_eq!(wire.server.state(), State::Closed);
}

#[test]
fn an_imposed_limit_bounds_what_is_outstanding() {
    let mut wire = opened();
    wire.reads = true;
    wire.server.window_limit(Some(2000));
    wire.write(End::Server, 1, 0, 4000);
    wire.run(wire.now + 120 * MILLISECOND);
    wire.server.window_limit(None);
    wire.flush();
    wire.run(wire.now + SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 3000
        0.150 server > 1001..2001 ack 1 win 3000
        0.200 client > 1 ack 1001 win 3000
        0.200 client > 1 ack 2001 win 3000
        0.250 server > 2001..3001 ack 1 win 3000
        0.250 server > 3001..4001 ack 1 win 3000 PSH
        0.300 client > 1 ack 3001 win 3000
        0.300 client > 1 ack 4001 win 3000
        ",
    );
}
