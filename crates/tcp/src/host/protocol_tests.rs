//! Protocols on connections: whatever the ends and the path, the other end gets each message in order and no earlier.

use pepscope_path::{Nanoseconds, MILLISECOND, NEVER, SECOND};
use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest, Just, ProptestConfig};
use proptest::{collection, option};

use super::transfers::{ends, read_by, readers};
use super::{Host, Outcome};
use crate::applications::application::{Action, Protocol};
use crate::applications::script::Script;
use crate::applications::streams::{Message, Piece, Streams, Write};
use crate::middleboxes::proxy::{AbortPropagation, Forwarding, MachineSettings, Opening, Proxy, ProxySettings};
use crate::settings::Settings;
use crate::test_path::{wired, TestPath};

/// Asks for one answer after the other, each a time after the last; a server answers.
#[derive(Debug)]
struct Turns {
    /// Lengths of questions and answers; none at a server.
    questions: Vec<(u64, u64)>,
    pause_ns: Nanoseconds,
    next: usize,
    ask_ns: Nanoseconds,
    answer: Option<u64>,
    heard: u64,
    closes: bool,
    /// The flow that it wakes with its first question.
    wakes: Option<u32>,
}

impl Turns {
    fn new(questions: Vec<(u64, u64)>, pause_ns: Nanoseconds) -> Self {
        Self { questions, pause_ns, next: 0, ask_ns: NEVER, answer: None, heard: 0, closes: false, wakes: None }
    }
}

impl Protocol for Turns {
    fn handle_connected(&mut self, now: Nanoseconds) {
        if !self.questions.is_empty() {
            self.ask_ns = now;
        }
    }

    fn handle_message(&mut self, now: Nanoseconds, message: Message) {
        assert_eq!(message.number, self.heard, "told in order");
        self.heard += 1;
        if self.questions.is_empty() {
            self.answer = Some(message.answer_bytes);
        } else if self.next == self.questions.len() {
            self.closes = true;
        } else {
            self.ask_ns = now + self.pause_ns;
        }
    }

    fn handle_peer_finished(&mut self, _now: Nanoseconds) {
        self.closes = true;
    }

    fn handle_timeout(&mut self, _now: Nanoseconds) {}

    fn poll_timeout(&self) -> Nanoseconds {
        self.ask_ns
    }

    fn poll_action(&mut self, now: Nanoseconds) -> Option<Action> {
        if let Some(flow) = self.wakes.take() {
            return Some(Action::Wake { flow });
        }
        if let Some(bytes) = self.answer.take() {
            let message = Message { number: self.heard - 1, ..Message::default() };
            return Some(Action::Write(Write::new(vec![Piece::Filler(bytes)], message)));
        }
        if now >= self.ask_ns {
            let (bytes, answer_bytes) = self.questions[self.next];
            let message = Message { number: self.next as u64, answer_bytes, ..Message::default() };
            self.next += 1;
            self.ask_ns = NEVER;
            return Some(Action::Write(Write::new(vec![Piece::Literal(vec![7; bytes as usize])], message)));
        }
        std::mem::take(&mut self.closes).then_some(Action::Close)
    }
}

fn converse(path: &mut TestPath, flow: u32, client: Turns) -> Streams {
    let streams = Streams::default();
    let run = |host: &mut Host, protocol| {
        let content = streams.open();
        host.run_protocol(flow, Box::new(protocol), streams.clone(), content).expect("a flow of the host");
        content
    };
    run(&mut path.mobile, client);
    run(&mut path.server, Turns::new(Vec::new(), 0));
    streams
}

fn relay() -> Proxy {
    let settings = ProxySettings {
        server_leg: Settings::default(),
        mobile_leg: Settings::default(),
        forwarding: Forwarding::Relay { buffer_bytes: 30_000 },
        opening: Opening::AtOnce,
        aborts: AbortPropagation::AtOnce,
        bypassed_flows: Vec::new(),
        machine: MachineSettings::default(),
    };
    Proxy::new(settings, 1, "relay")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_question_is_answered_in_turn(
        both in [ends(), ends()],
        reads in [readers(), readers()],
        questions in collection::vec((1u64..5_000, 1u64..60_000), 1..6),
        pause_ms in option::of(0u64..3_000),
        line in (100_000u64..20_000_000, 0u64..100, 2u32..60, prop_oneof![Just(0.0), Just(0.05)]),
        is_split in any::<bool>(),
    ) {
        let (rate_bit_s, delay_ms, queue_packets, loss) = line;
        let link = || wired(rate_bit_s, delay_ms, queue_packets, loss);
        let mut hops = vec![link()];
        if is_split {
            hops.push(Box::new(relay()));
            hops.push(link());
        }
        let mut path = TestPath::new(hops);
        let scripts = reads.map(|reading| read_by(Script::new(Vec::new()), reading));
        path.add(0, 0, both, scripts);
        let count = questions.len();
        let client = Turns::new(questions, pause_ms.unwrap_or(0) * MILLISECOND);
        let streams = converse(&mut path, 0, client);
        path.run_until(1_000_000 * SECOND);
        path.assert_intact(0);
        prop_assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
        prop_assert_eq!(path.server_result(0).outcome, Outcome::Closed);
        let sides = [crate::packets::segment::ContentId(1 << 30), crate::packets::segment::ContentId((1 << 30) + 1)];
        let [asked, answered] = sides.map(|content| streams.messages(content));
        prop_assert_eq!((asked.len(), answered.len()), (count, count));
        for (question, answer) in asked.iter().zip(&answered) {
            prop_assert!(question.read_ns.is_some_and(|read_ns| read_ns >= question.written_ns + delay_ms * MILLISECOND));
            prop_assert!(Some(answer.written_ns) >= question.read_ns);
        }
    }
}

#[test]
fn a_dormant_flow_opens_when_it_is_woken_and_counts_only_then() {
    let mut path = TestPath::new(vec![wired(10_000_000, 10, 100, 0.0)]);
    for flow in 0..3 {
        path.add(flow, 0, [Settings::default(); 2], [Script::new(Vec::new()), Script::new(Vec::new())]);
        let mut client = Turns::new(vec![(100, 1000)], 0);
        client.wakes = (flow == 0).then_some(1);
        converse(&mut path, flow, client);
        if flow > 0 {
            path.mobile.open_when_needed(flow).expect("a flow of the mobile");
            path.server.open_when_needed(flow).expect("a flow of the server");
        }
    }
    path.run_until(1000 * SECOND);
    assert_eq!([0, 1, 2].map(|flow| path.mobile.is_dormant(flow)), [false, false, true]);
    assert_eq!(path.mobile_result(0).outcome, Outcome::Closed);
    // It was woken when the first was connected.
    assert_eq!(Some(path.mobile_result(1).start_ns), path.mobile_result(0).connected_ns);
    assert_eq!(path.mobile_result(1).outcome, Outcome::Closed);
    assert_eq!(path.mobile_result(2).connected_ns, None);
    assert!(path.mobile.is_finished() && path.server.is_finished());
}
