//! Transcripts of openings. One way takes 50 ms; numbers count from each end's initial sequence number.

use crate::wire::{End, Fate, Wire};
use pepscope_path::SECOND;
use pepscope_tcp::{Connection, Event, Flags, RetransmissionSettings, Settings, State};

fn plain() -> Settings {
    Settings {
        maximum_segment_size: 1000,
        receive_buffer_bytes: 8000,
        window_scale: None,
        timestamps: false,
        sack: false,
        initial_sequence_number: u32::MAX - 2,
        retransmission: RetransmissionSettings::CLASSIC,
        ..Settings::default()
    }
}

#[test]
fn three_segments_open_and_both_ends_know_the_options() {
    let settings =
        Settings { receive_buffer_bytes: 1 << 20, window_scale: Some(7), timestamps: true, sack: true, ..plain() };
    let mut wire = Wire::new(settings, settings);
    wire.connect();
    wire.run(SECOND);
    wire.expect(
        "
        0.000 client > SYN 0 win 65535 mss 1000 scale 7 sack-permitted ts 0/0
        0.050 server > SYN 0 ack 1 win 65535 mss 1000 scale 7 sack-permitted ts 50/0
        0.100 client > 1 ack 1 win 8192 ts 100/50
        0.100 client: Connected
        0.150 server: Connected
        ",
    );
    assert_eq!(wire.client.segment_payload_bytes(), 988);
}

#[test]
fn an_option_that_one_end_does_not_offer_is_not_used() {
    let offering = Settings { window_scale: Some(7), timestamps: true, sack: true, ..plain() };
    let mut wire = Wire::new(offering, plain());
    wire.connect();
    wire.run(SECOND);
    wire.expect(
        "
        0.000 client > SYN 0 win 8000 mss 1000 scale 7 sack-permitted ts 0/0
        0.050 server > SYN 0 ack 1 win 8000 mss 1000
        0.100 client > 1 ack 1 win 8000
        0.100 client: Connected
        0.150 server: Connected
        ",
    );
}

#[test]
fn lost_openings_are_sent_again_ever_later() {
    let mut wire = Wire::new(plain(), plain());
    let mut count = 0;
    wire.rule = Box::new(move |_, segment, _| {
        count += u64::from(segment.flags.has(Flags::SYN));
        if segment.flags.has(Flags::SYN) && count <= 3 {
            Fate::Lose
        } else {
            Fate::Deliver
        }
    });
    wire.connect();
    wire.run(60 * SECOND);
    wire.expect(
        "
        0.000 client > SYN 0 win 8000 mss 1000 (lost)
        3.000 client > SYN 0 win 8000 mss 1000 (lost)
        9.000 client > SYN 0 win 8000 mss 1000 (lost)
        21.000 client > SYN 0 win 8000 mss 1000
        21.050 server > SYN 0 ack 1 win 8000 mss 1000
        21.100 client > 1 ack 1 win 8000
        21.100 client: Connected
        21.150 server: Connected
        ",
    );
    assert_eq!(wire.client.retransmission_timeout(), 3 * SECOND);
}

#[test]
fn an_opening_without_an_answer_is_given_up() {
    let mut wire = Wire::new(Settings { handshake_retries: 2, ..plain() }, plain());
    wire.rule = Box::new(|_, _, _| Fate::Lose);
    wire.connect();
    wire.run(100 * SECOND);
    wire.expect(
        "
        0.000 client > SYN 0 win 8000 mss 1000 (lost)
        3.000 client > SYN 0 win 8000 mss 1000 (lost)
        9.000 client > SYN 0 win 8000 mss 1000 (lost)
        21.000 client: TimedOut
        ",
    );
}

#[test]
fn a_closed_port_refuses() {
    let mut wire = Wire::new(plain(), plain());
    wire.server.close(0);
    wire.connect();
    wire.run(SECOND);
    wire.expect(
        "
        0.000 client > SYN 0 win 8000 mss 1000
        0.050 server > RST 3 ack 1 win 0
        0.100 client: Reset
        ",
    );
    assert_eq!(wire.client.state(), State::Closed);
}

#[test]
fn both_ends_may_open_at_once() {
    let mut wire = Wire::new(plain(), plain());
    wire.server = Connection::client(plain(), 1, 0);
    wire.server.connect(0);
    wire.connect();
    wire.run(SECOND);
    wire.expect(
        "
        0.000 client > SYN 0 win 8000 mss 1000
        0.000 server > SYN 0 win 8000 mss 1000
        0.050 server > SYN 0 ack 1 win 8000 mss 1000
        0.050 client > SYN 0 ack 1 win 8000 mss 1000
        0.100 client: Connected
        0.100 server: Connected
        ",
    );
    assert_eq!(wire.events.iter().filter(|(_, _, event)| *event == Event::Connected).count(), 2);
    assert_eq!(wire.end(End::Server).state(), State::Established);
}
