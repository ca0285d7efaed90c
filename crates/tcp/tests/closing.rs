//! Transcripts of endings. One way takes 50 ms; numbers count from each end's initial sequence number.

use crate::wire::{End, Fate, Wire};
use pepscope_path::{MILLISECOND, SECOND};
use pepscope_tcp::{ContentId, Event, Flags, RetransmissionSettings, Segment, Settings, State};

fn opened() -> Wire {
    let settings = Settings {
        maximum_segment_size: 1000,
        receive_buffer_bytes: 8000,
        window_scale: None,
        timestamps: false,
        sack: false,
        retransmission: RetransmissionSettings { initial: SECOND, ..RetransmissionSettings::CLASSIC },
        retransmission_retries: 3,
        time_wait: 4 * SECOND,
        ..Settings::default()
    };
    let mut wire = Wire::new(settings, settings);
    wire.open();
    wire
}

#[test]
fn each_end_closes_its_half() {
    let mut wire = opened();
    wire.write(End::Server, 1, 0, 1500);
    wire.close(End::Server);
    wire.run(SECOND);
    wire.write(End::Client, 2, 0, 300);
    wire.close(End::Client);
    wire.run(20 * SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 8000
        0.150 server > 1001..1501 ack 1 win 8000 PSH
        0.150 server > FIN 1501 ack 1 win 8000
        0.200 client > 1 ack 1001 win 8000
        0.200 client > 1 ack 1501 win 7500
        0.200 client > 1 ack 1502 win 7499
        0.200 client: PeerFinished
        1.000 client > 1..301 of 2 ack 1502 win 7499 PSH
        1.000 client > FIN 301 ack 1502 win 7499
        1.050 server > 1502 ack 301 win 7700
        1.050 server > 1502 ack 302 win 7699
        1.050 server: PeerFinished
        1.050 server: Closed
        1.100 client: Closed
        ",
    );
    assert_eq!((wire.client.state(), wire.server.state()), (State::Closed, State::Closed));
}

#[test]
fn both_ends_may_close_at_once() {
    let mut wire = opened();
    wire.close(End::Client);
    wire.close(End::Server);
    wire.run(SECOND);
    wire.expect(
        "
        0.150 client > FIN 1 ack 1 win 8000
        0.150 server > FIN 1 ack 1 win 8000
        0.200 server > 2 ack 2 win 7999
        0.200 server: PeerFinished
        0.200 client > 2 ack 2 win 7999
        0.200 client: PeerFinished
        0.250 client: Closed
        0.250 server: Closed
        ",
    );
    assert_eq!((wire.client.state(), wire.server.state()), (State::TimeWait, State::TimeWait));
}

#[test]
fn a_lost_last_acknowledgement_is_repeated_from_time_wait() {
    let mut wire = opened();
    wire.close(End::Client);
    wire.run(500 * MILLISECOND);
    let mut lost = false;
    wire.rule = Box::new(move |from, segment, _| {
        let is_last = from == End::Client && !segment.flags.has(Flags::FIN) && !lost;
        lost |= is_last;
        if is_last {
            Fate::Lose
        } else {
            Fate::Deliver
        }
    });
    wire.close(End::Server);
    wire.run(20 * SECOND);
    wire.expect(
        "
        0.150 client > FIN 1 ack 1 win 8000
        0.200 server > 1 ack 2 win 7999
        0.200 server: PeerFinished
        0.500 server > FIN 1 ack 2 win 7999
        0.550 client > 2 ack 2 win 7999 (lost)
        0.550 client: PeerFinished
        0.550 client: Closed
        1.500 server > FIN 1 ack 2 win 7999
        1.550 client > 2 ack 2 win 7999
        1.600 server: Closed
        ",
    );
}

#[test]
fn an_abort_resets_the_peer_and_answers_what_was_under_way() {
    let mut wire = opened();
    wire.write(End::Server, 1, 0, 5000);
    wire.run(wire.now + 20 * MILLISECOND);
    wire.abort(End::Client);
    wire.run(20 * SECOND);
    wire.expect(
        "
        0.150 server > 1..1001 ack 1 win 8000
        0.150 server > 1001..2001 ack 1 win 8000
        0.150 server > 2001..3001 ack 1 win 8000
        0.150 server > 3001..4001 ack 1 win 8000
        0.150 server > 4001..5001 ack 1 win 8000 PSH
        0.170 client > RST 1 ack 1 win 0
        0.200 client > RST 1 win 0
        0.200 client > RST 1 win 0
        0.200 client > RST 1 win 0
        0.200 client > RST 1 win 0
        0.200 client > RST 1 win 0
        0.220 server: Reset
        ",
    );
    assert_eq!(wire.events.last().map(|(_, end, event)| (*end, *event)), Some((End::Server, Event::Reset)));
    assert_eq!(wire.server.write(ContentId(1), 0, 10), 0);
}

#[test]
fn a_reset_outside_the_exact_place_is_challenged() {
    let mut wire = opened();
    let mut forged = Segment { flags: Flags::RST, sequence: 500, ..Segment::default() };
    let now = wire.now;
    wire.server.handle_segment(now, &forged);
    wire.flush();
    assert_eq!(wire.server.state(), State::Established);
    wire.expect(
        "
        0.150 server > 1 ack 1 win 8000
        ",
    );
    forged.sequence = 1;
    wire.server.handle_segment(now, &forged);
    wire.flush();
    wire.expect(
        "
        0.150 server: Reset
        ",
    );
}

#[test]
fn a_peer_that_vanishes_is_given_up() {
    let mut wire = opened();
    wire.rule = Box::new(|_, _, _| Fate::Lose);
    wire.write(End::Server, 1, 0, 100);
    wire.run(60 * SECOND);
    wire.expect(
        "
        0.150 server > 1..101 ack 1 win 8000 PSH (lost)
        1.150 server > 1..101 ack 1 win 8000 PSH (lost)
        3.150 server > 1..101 ack 1 win 8000 PSH (lost)
        7.150 server > 1..101 ack 1 win 8000 PSH (lost)
        15.150 server: TimedOut
        ",
    );
    assert_eq!(wire.server.state(), State::Closed);
    assert_eq!(wire.server.statistics().timeouts, 3);
}
