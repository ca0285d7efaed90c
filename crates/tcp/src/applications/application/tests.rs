use pepscope_path::{Nanoseconds, Random, MILLISECOND, NEVER, SECOND};

use super::{Application, Socket};
use crate::applications::script::{Pause, Reading, Script, Step};
use crate::packets::run::Run;
use crate::packets::segment::ContentId;

const PAGE: ContentId = ContentId(9);

/// A connection that writes down what is asked of it.
#[derive(Default)]
struct Recorder {
    now: Nanoseconds,
    room_bytes: u64,
    arrived: u64,
    offset: u64,
    lines: Vec<String>,
}

impl Recorder {
    fn say(&mut self, what: &str) {
        self.lines.push(format!("{} ms {what}", self.now / MILLISECOND));
    }
}

impl Socket for Recorder {
    fn write(&mut self, content: ContentId, content_offset: u64, bytes: u64) -> u64 {
        let taken = bytes.min(self.room_bytes);
        self.room_bytes -= taken;
        if taken > 0 {
            self.say(&format!("write {} from {content_offset}: {taken}", content.0));
        }
        taken
    }

    fn readable(&self) -> u64 {
        self.arrived
    }

    fn read(&mut self, limit: u64) -> Option<Run> {
        let bytes = self.arrived.min(limit);
        self.arrived -= bytes;
        self.say(&format!("read {bytes}"));
        self.offset += bytes;
        Some(Run { content: PAGE, content_offset: self.offset - bytes, bytes })
    }

    fn close(&mut self, _now: Nanoseconds) {
        self.say("close");
    }

    fn abort(&mut self, _now: Nanoseconds) {
        self.say("abort");
    }
}

/// What happens to an application from outside.
enum Happening {
    Room(u64),
    Arrival(u64),
    PeerFinishes,
}

/// Runs `script` with what happens at each time in milliseconds; what it did, and what it counted.
fn transcript(script: &Script, happenings: Vec<(u64, Happening)>) -> (Vec<String>, super::ApplicationCounts) {
    let mut application = Application::new(script, Random::new(1, "script")).expect("a valid script");
    let mut socket = Recorder::default();
    application.establish(0);
    application.advance(0, &mut socket);
    let mut happenings = happenings.into_iter().peekable();
    loop {
        let outside_ns = happenings.peek().map_or(NEVER, |(at_ms, _)| at_ms * MILLISECOND);
        let now = application.deadline().min(outside_ns);
        if now == NEVER || now > 1_000 * SECOND {
            return (socket.lines, application.counts());
        }
        if outside_ns == now {
            match happenings.next() {
                Some((_, Happening::Room(bytes))) => {
                    socket.room_bytes += bytes;
                    application.note_room();
                }
                Some((_, Happening::Arrival(bytes))) => socket.arrived += bytes,
                Some((_, Happening::PeerFinishes)) => application.finish_peer(),
                None => {}
            }
        }
        socket.now = now;
        application.advance(now, &mut socket);
    }
}

#[test]
fn a_sender_writes_as_the_buffer_gets_room_and_closes() {
    let happenings = vec![(1, Happening::Room(600)), (5, Happening::Room(600))];
    let (lines, counts) = transcript(&Script::sender(PAGE, 1000), happenings);
    assert_eq!(lines, ["1 ms write 9 from 0: 600", "5 ms write 9 from 600: 400", "5 ms close"]);
    assert_eq!((counts.written_bytes, counts.ended_ns), (1000, Some(5 * MILLISECOND)));
}

#[test]
fn a_sender_for_a_time_stops_when_it_is_over() {
    let happenings = vec![(1, Happening::Room(100)), (8, Happening::Room(100)), (15, Happening::Room(100))];
    let (lines, _) = transcript(&Script::sender_for(PAGE, 10 * MILLISECOND), happenings);
    assert_eq!(lines, ["1 ms write 9 from 0: 100", "8 ms write 9 from 100: 100", "10 ms close"]);
}

#[test]
fn a_receiver_closes_when_the_peer_has_finished() {
    let happenings = vec![(1, Happening::Arrival(10)), (2, Happening::Arrival(5)), (3, Happening::PeerFinishes)];
    let (lines, counts) = transcript(&Script::receiver(), happenings);
    assert_eq!(lines, ["1 ms read 10", "2 ms read 5", "3 ms close"]);
    assert_eq!((counts.read_bytes, counts.last_read_ns), (15, Some(2 * MILLISECOND)));
}

#[test]
fn a_browser_asks_waits_thinks_and_asks_again() {
    let script = Script::http_client(2, ContentId(1), 30, 100, 1.0);
    let think_ns = (Random::new(1, "script").exponential(1.0) * SECOND as f64) as u64;
    let happenings = vec![
        (0, Happening::Room(1000)),
        (40, Happening::Arrival(60)),
        (50, Happening::Arrival(40)),
        (50 + think_ns / MILLISECOND + 100, Happening::Arrival(100)),
    ];
    let (lines, counts) = transcript(&script, happenings);
    let again_ms = (50 * MILLISECOND + think_ns) / MILLISECOND;
    let answered_ms = 50 + think_ns / MILLISECOND + 100;
    assert_eq!(
        lines,
        [
            "0 ms write 1 from 0: 30".to_owned(),
            "40 ms read 60".to_owned(),
            "50 ms read 40".to_owned(),
            format!("{again_ms} ms write 1 from 0: 30"),
            format!("{answered_ms} ms read 100"),
            format!("{answered_ms} ms close"),
        ]
    );
    assert_eq!(counts.answers, 2);
    assert!(counts.longest_answer_ns >= 99 * MILLISECOND);
}

#[test]
fn a_server_answers_until_the_browser_closes() {
    let happenings = vec![
        (0, Happening::Room(1000)),
        (1, Happening::Arrival(30)),
        (2, Happening::Arrival(15)),
        (3, Happening::Arrival(15)),
        (4, Happening::PeerFinishes),
    ];
    let (lines, _) = transcript(&Script::http_server(PAGE, 30, 100), happenings);
    assert_eq!(
        lines,
        [
            "1 ms read 30",
            "1 ms write 9 from 0: 100",
            "2 ms read 15",
            "3 ms read 15",
            "3 ms write 9 from 0: 100",
            "4 ms close"
        ]
    );
}

#[test]
fn a_slow_reader_takes_a_chunk_at_a_time_and_keeps_its_rate() {
    let pace = Reading::Paced { rate_bytes_s: 10_000, chunk_bytes: 30 };
    let happenings = vec![(1, Happening::Arrival(100)), (50, Happening::PeerFinishes)];
    let (lines, _) = transcript(&Script::receiver().reading(pace), happenings);
    assert_eq!(lines, ["1 ms read 30", "4 ms read 30", "7 ms read 30", "10 ms read 10", "50 ms close"]);
}

#[test]
fn nothing_is_read_in_a_pause() {
    let pauses = vec![
        Pause { start_ns: 2 * MILLISECOND, duration_ns: 10 * MILLISECOND },
        Pause { start_ns: 20 * MILLISECOND, duration_ns: 5 * MILLISECOND },
    ];
    let happenings = [1, 3, 4, 13, 21].into_iter().map(|at_ms| (at_ms, Happening::Arrival(10))).collect();
    let (lines, _) = transcript(&Script::receiver().pausing(pauses), happenings);
    assert_eq!(lines, ["1 ms read 10", "12 ms read 20", "13 ms read 10", "25 ms read 10"]);
}

#[test]
fn an_abort_comes_after_its_bytes_or_its_time() {
    let after_bytes = Script::new(vec![Step::Receive { bytes: 15 }, Step::Abort]);
    let happenings = vec![(1, Happening::Arrival(10)), (2, Happening::Arrival(10)), (3, Happening::Arrival(10))];
    let (lines, counts) = transcript(&after_bytes, happenings);
    assert_eq!(lines, ["1 ms read 10", "2 ms read 10", "2 ms abort"]);
    assert!(counts.aborted);

    let after_time = Script::sender(PAGE, 1000).aborting_after(7 * MILLISECOND);
    let (lines, _) = transcript(&after_time, vec![(1, Happening::Room(10)), (9, Happening::Room(10))]);
    assert_eq!(lines, ["1 ms write 9 from 0: 10", "7 ms abort"]);
}

#[test]
fn both_directions_go_on_at_once() {
    let happenings = vec![
        (1, Happening::Arrival(40)),
        (2, Happening::Room(50)),
        (3, Happening::Arrival(60)),
        (4, Happening::Room(50)),
    ];
    let (lines, counts) = transcript(&Script::exchanger(PAGE, 100, 100), happenings);
    assert_eq!(
        lines,
        ["1 ms read 40", "2 ms write 9 from 0: 50", "3 ms read 60", "4 ms write 9 from 50: 50", "4 ms close"]
    );
    assert_eq!(counts.read_digest, counts.written_digest);
}

#[test]
fn repeats_nest() {
    let inner = Step::Repeat { times: Some(2), steps: vec![Step::Wait { duration_ns: 3 * MILLISECOND }] };
    let send = Step::Send { content: PAGE, bytes: 1 };
    let script = Script::new(vec![Step::Repeat { times: Some(3), steps: vec![inner, send] }, Step::Close]);
    let (lines, _) = transcript(&script, vec![(0, Happening::Room(9))]);
    assert_eq!(lines, ["6 ms write 9 from 0: 1", "12 ms write 9 from 0: 1", "18 ms write 9 from 0: 1", "18 ms close"]);
}

#[test]
fn a_script_without_an_end_closes_after_the_peer() {
    let script = Script::new(vec![Step::Receive { bytes: 5 }]);
    let happenings = vec![(1, Happening::Arrival(9)), (2, Happening::PeerFinishes)];
    let (lines, _) = transcript(&script, happenings);
    assert_eq!(lines, ["1 ms read 9", "2 ms close"]);
}

#[test]
fn a_browser_waits_after_all_but_the_last_byte_and_a_server_before_the_whole_request() {
    let mut socket = Recorder { room_bytes: 1000, ..Recorder::default() };
    let mut browser =
        Application::new(&Script::http_client(2, ContentId(1), 30, 100, 0.0), Random::new(1, "script")).expect("valid");
    browser.establish(0);
    browser.advance(0, &mut socket);
    assert!(browser.waits_after(99) && browser.waits_after(100)); // it thinks before it asks again
    socket.arrived = 100;
    browser.advance(0, &mut socket);
    assert!(browser.waits_after(99) && !browser.waits_after(100)); // it closes
    let mut server = Application::new(&Script::http_server(PAGE, 30, 100), Random::new(1, "script")).expect("valid");
    server.establish(0);
    server.advance(0, &mut Recorder::default());
    assert!(server.waits_after(29) && !server.waits_after(30));
}
