//! Two ends of a connection joined by a wire that delays, loses, repeats and reorders as a rule says, and records what
//! was sent.

use std::collections::BinaryHeap;
use std::fmt::Write as _;

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER, SECOND};
use pepscope_tcp::{Connection, ContentId, Ecn, Event, Flags, Segment, Settings};

/// What the wire does with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Deliver,
    Lose,
    /// Sets the congestion mark if the segment may carry it.
    Mark,
    Delay(Nanoseconds),
    Repeat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

#[derive(Debug, PartialEq, Eq)]
struct Flying {
    arrival: Nanoseconds,
    order: u64,
    to: End,
    segment: Segment,
}

impl Ord for Flying {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.arrival, other.order).cmp(&(self.arrival, self.order))
    }
}

impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A segment that an end sent.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)]
pub struct Sent {
    pub at: Nanoseconds,
    pub from: End,
    pub segment: Segment,
    pub fate: Fate,
}

type Rule = Box<dyn FnMut(End, &Segment, u64) -> Fate>;

pub struct Wire {
    pub client: Connection,
    pub server: Connection,
    pub now: Nanoseconds,
    pub delay: Nanoseconds,
    /// Time on the wire of one byte.
    pub byte_time: Nanoseconds,
    /// Called with the sending end, the segment, and its number among the data segments of that end, from 1.
    pub rule: Rule,
    pub sent: Vec<Sent>,
    pub events: Vec<(Nanoseconds, End, Event)>,
    pub transcript: String,
    flying: BinaryHeap<Flying>,
    order: u64,
    data_segments: [u64; 2],
    free_at: [Nanoseconds; 2],
    /// Both applications read what arrives before anything is sent.
    pub reads: bool,
}

#[allow(dead_code)]
impl Wire {
    pub fn new(client: Settings, server: Settings) -> Self {
        Self {
            client: Connection::client(client, 1, 0),
            server: Connection::server(server, 1, 0),
            now: 0,
            delay: 50 * MILLISECOND,
            byte_time: 0,
            rule: Box::new(|_, _, _| Fate::Deliver),
            sent: Vec::new(),
            events: Vec::new(),
            transcript: String::new(),
            flying: BinaryHeap::new(),
            order: 0,
            data_segments: [0; 2],
            free_at: [0; 2],
            reads: true,
        }
    }

    /// Loses these data segments of the server, by their number from 1.
    pub fn lose_from_server(&mut self, lost: &[u64]) {
        let lost = lost.to_vec();
        self.rule = Box::new(
            move |from, _, number| {
                if from == End::Server && lost.contains(&number) {
                    Fate::Lose
                } else {
                    Fate::Deliver
                }
            },
        );
    }

    pub fn connect(&mut self) {
        self.client.connect(self.now);
        self.flush();
    }

    pub fn end(&mut self, end: End) -> &mut Connection {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

    /// Sends what both ends want to send now.
    pub fn flush(&mut self) {
        for end in [End::Client, End::Server] {
            let now = self.now;
            while self.reads && self.end(end).read(u64::MAX).is_some() {}
            while let Some(segment) = self.end(end).poll_transmit(now) {
                self.dispatch(end, segment);
            }
            while let Some(event) = self.end(end).poll_event() {
                self.events.push((now, end, event));
                if event != Event::Readable && event != Event::Writable {
                    let _ = writeln!(self.transcript, "{} {}: {event:?}", time(now), name(end));
                }
            }
        }
    }

    fn dispatch(&mut self, from: End, mut segment: Segment) {
        let side = from as usize;
        if segment.payload_bytes > 0 {
            self.data_segments[side] += 1;
        }
        let fate = (self.rule)(from, &segment, self.data_segments[side]);
        let _ = writeln!(self.transcript, "{}", self.line(from, &segment, fate));
        self.sent.push(Sent { at: self.now, from, segment, fate });
        self.free_at[side] = self.free_at[side].max(self.now) + self.byte_time * u64::from(segment.length_bytes());
        let arrival = self.free_at[side] + self.delay;
        let to = if from == End::Client { End::Server } else { End::Client };
        let (arrival, copies) = match fate {
            Fate::Lose => return,
            Fate::Deliver => (arrival, 1),
            Fate::Mark => {
                if segment.ecn == Ecn::Capable {
                    segment.ecn = Ecn::Congestion;
                }
                (arrival, 1)
            }
            Fate::Delay(more) => (arrival + more, 1),
            Fate::Repeat => (arrival, 2),
        };
        for _ in 0..copies {
            self.order += 1;
            self.flying.push(Flying { arrival, order: self.order, to, segment });
        }
    }

    pub fn next_time(&self) -> Nanoseconds {
        let arrival = self.flying.peek().map_or(NEVER, |flying| flying.arrival);
        arrival.min(self.client.poll_timeout()).min(self.server.poll_timeout())
    }

    /// Goes on to the next thing that happens; `false` if nothing will.
    pub fn step(&mut self) -> bool {
        let next = self.next_time();
        if next == NEVER {
            return false;
        }
        assert!(next >= self.now, "time goes back from {} to {next}", self.now);
        self.now = next;
        if self.flying.peek().is_some_and(|flying| flying.arrival <= next) {
            if let Some(flying) = self.flying.pop() {
                self.end(flying.to).handle_segment(next, &flying.segment);
            }
        } else {
            self.client.handle_timeout(next);
            self.server.handle_timeout(next);
        }
        self.flush();
        true
    }

    /// Runs until `until` or until nothing more happens.
    pub fn run(&mut self, until: Nanoseconds) {
        while self.next_time() <= until && self.step() {}
        self.now = self.now.max(until);
    }

    /// Runs until the handshake is over and forgets what was written down.
    pub fn open(&mut self) {
        self.connect();
        while self.next_time() <= 10 * SECOND
            && !(self.server.state() == pepscope_tcp::State::Established
                && self.client.state() == pepscope_tcp::State::Established)
        {
            self.step();
        }
        self.transcript.clear();
        self.sent.clear();
        self.data_segments = [0; 2];
    }

    pub fn write(&mut self, end: End, content: u32, offset: u64, bytes: u64) {
        let accepted = self.end(end).write(ContentId(content), offset, bytes);
        assert_eq!(accepted, bytes, "the send buffer is too small for this test");
        self.flush();
    }

    /// Reads everything that `end` has and gives how much that was.
    pub fn read(&mut self, end: End) -> u64 {
        let mut bytes = 0;
        while let Some(run) = self.end(end).read(u64::MAX) {
            bytes += run.bytes;
        }
        self.flush();
        bytes
    }

    pub fn close(&mut self, end: End) {
        let now = self.now;
        self.end(end).close(now);
        self.flush();
    }

    pub fn abort(&mut self, end: End) {
        let now = self.now;
        self.end(end).abort(now);
        self.flush();
    }

    fn line(&self, from: End, segment: &Segment, fate: Fate) -> String {
        let initial = |end: End| match end {
            End::Client => self.client.settings().initial_sequence_number,
            End::Server => self.server.settings().initial_sequence_number,
        };
        let to = if from == End::Client { End::Server } else { End::Client };
        let relative = |number: u32, end: End| number.wrapping_sub(initial(end));
        let mut line = format!("{} {} >", time(self.now), name(from));
        for (flag, text) in [(Flags::SYN, "SYN"), (Flags::FIN, "FIN"), (Flags::RST, "RST")] {
            if segment.flags.has(flag) {
                let _ = write!(line, " {text}");
            }
        }
        let first = relative(segment.sequence, from);
        let _ = match segment.payload_bytes {
            0 => write!(line, " {first}"),
            bytes => write!(line, " {first}..{}", first.wrapping_add(u32::from(bytes))),
        };
        if segment.payload_bytes > 0 && segment.content != ContentId(1) {
            let _ = write!(line, " of {}", segment.content.0);
        }
        if segment.flags.has(Flags::ACK) {
            let _ = write!(line, " ack {}", relative(segment.acknowledgement, to));
        }
        let _ = write!(line, " win {}", segment.window);
        if !segment.sack.is_empty() {
            let _ = write!(line, " sack");
            for (left, right) in segment.sack.as_slice() {
                let _ = write!(line, " {}..{}", relative(*left, to), relative(*right, to));
            }
        }
        if let Some(bytes) = segment.maximum_segment_size {
            let _ = write!(line, " mss {bytes}");
        }
        if let Some(scale) = segment.window_scale {
            let _ = write!(line, " scale {scale}");
        }
        if segment.sack_permitted {
            let _ = write!(line, " sack-permitted");
        }
        if let Some(timestamps) = segment.timestamps {
            let _ = write!(line, " ts {}/{}", timestamps.value, timestamps.echo_reply);
        }
        for (flag, text) in [(Flags::PSH, "PSH"), (Flags::ECE, "ECE"), (Flags::CWR, "CWR")] {
            if segment.flags.has(flag) {
                let _ = write!(line, " {text}");
            }
        }
        match fate {
            Fate::Deliver => {}
            Fate::Lose => line.push_str(" (lost)"),
            Fate::Mark => line.push_str(" (marked)"),
            Fate::Delay(_) => line.push_str(" (late)"),
            Fate::Repeat => line.push_str(" (twice)"),
        }
        line
    }

    /// Fails with both texts if the transcript since the last call is not `expected`, indentation left aside.
    #[track_caller]
    pub fn expect(&mut self, expected: &str) {
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let written = std::mem::take(&mut self.transcript);
        let lines: Vec<&str> = written.lines().map(str::trim).collect();
        assert!(lines == expected, "\nexpected:\n{}\nwritten:\n{}\n", expected.join("\n"), lines.join("\n"));
    }
}

fn name(end: End) -> &'static str {
    match end {
        End::Client => "client",
        End::Server => "server",
    }
}

fn time(now: Nanoseconds) -> String {
    format!("{}.{:03}", now / SECOND, now % SECOND / MILLISECOND)
}
